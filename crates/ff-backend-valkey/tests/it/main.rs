//! The host against real servers: one of each flavour, restarts, clusters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod durability;
mod kit;
mod library;
mod standalone;
#[cfg(feature = "tls")]
mod tls;
mod wake;
