//! Finds or installs Valkey and Redis, and runs them on loopback for tests and benches.
//!
//! Everything here blocks, is bounded in time, and cleans up after itself: a server dies with the value that
//! started it, and with the process that holds the value even when that process is killed.

mod binary;
#[cfg(feature = "browser")]
pub mod browser;
mod cluster;
mod guardian;
mod in_lists;
mod install;
mod server;
mod small_disk;
pub mod tier;

pub use binary::{Flavour, ServerBinary};
pub use cluster::{ClusterOptions, Member, SlotMigration, TestCluster};
pub use in_lists::in_lists;
pub use install::{Need, QUICK, WIDE, install, store};
pub use server::{Aof, Options, TestServer};
pub use small_disk::SmallDisk;
