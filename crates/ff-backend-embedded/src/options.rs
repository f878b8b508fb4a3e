//! The settings for opening a store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};

/// When a write is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// On disk before the reply.
    #[default]
    Fsync,
    /// Acknowledged at once, on disk within a second. A killed process loses nothing; a power failure may lose that
    /// second.
    Relaxed,
}

/// How to open a store; see [`crate::Embedded::open`].
#[derive(Clone)]
pub struct Options {
    /// The store's directory; created with mode 0700 if it is absent.
    pub directory: PathBuf,
    /// The text of the library.
    pub library: String,
    pub clock: Arc<dyn Clock>,
    /// When a write is safe.
    pub durability: Durability,
    /// The maximum size of the store in bytes. The file is sparse.
    pub map_size: usize,
    /// Bytes of disk kept in reserve, so that calls that end or free work still fit when the disk is full. 0 disables
    /// the reserve.
    pub reserve_bytes: u64,
    /// Data files up to this many bytes have every page checked when they are opened. For larger ones only the header
    /// is checked, and [`crate::Embedded::verify`] checks the rest on demand.
    pub verify_up_to: u64,
    /// Test mode. A function fails with `Raised` if it refuses or raises after a write, touches a key of another
    /// partition, or uses an unlisted command. This holds even if the function caught the error.
    pub strict: bool,
    /// The maximum number of Lua instructions per call.
    pub instructions_max: u64,
}

/// 1 TiB: address space, not disk.
const MAP_SIZE: usize = 1 << 40;

/// Enough to end some thousands of executions.
const RESERVE_BYTES: u64 = 8 << 20;

impl Options {
    /// The defaults: `Fsync`, the machine's clock, 1 TiB, not strict.
    pub fn new(directory: impl Into<PathBuf>, library: impl Into<String>) -> Self {
        Options {
            directory: directory.into(),
            library: library.into(),
            clock: Arc::new(SystemClock),
            durability: Durability::default(),
            map_size: MAP_SIZE,
            reserve_bytes: RESERVE_BYTES,
            verify_up_to: 64 << 20,
            strict: false,
            instructions_max: 50_000_000,
        }
    }
}
