//! The host against real servers: one of each flavour, restarts, clusters.

mod cluster;
mod durability;
mod kit;
mod library;
mod standalone;
#[cfg(feature = "tls")]
mod tls;
mod wake;
