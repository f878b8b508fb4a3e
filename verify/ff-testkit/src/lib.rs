//! Finds or installs Valkey and Redis, and runs them on loopback for tests and benches.
//!
//! Everything here blocks, has a time limit, and cleans up after itself. A server ends when the value that started it
//! is dropped. It also ends when the process with that value is killed.

mod binary;
#[cfg(feature = "browser")]
pub mod browser;
mod cluster;
mod guardian;
mod in_lists;
mod install;
mod server;
mod small_disk;
mod tasks;
pub mod tier;

pub use binary::{Flavour, ServerBinary};
pub use cluster::{ClusterOptions, Member, SlotMigration, TestCluster};
pub use in_lists::in_lists;
pub use install::{Need, QUICK, WIDE, install, store};
pub use server::{Aof, Options, TestServer};
pub use small_disk::SmallDisk;
pub use tasks::Tasks;
