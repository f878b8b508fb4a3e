//! The host against real servers: one of each flavour, restarts, clusters.

mod cluster;
mod durability;
mod kit;
mod library;
mod standalone;
mod wake;
