//! A cluster: every slot, moving slots, failovers, killed nodes.
