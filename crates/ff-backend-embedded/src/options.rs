//! What a caller chooses when it opens a store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};

/// When a write is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// On disk before it is answered.
    #[default]
    Fsync,
    /// Answered at once, on disk within a second. A killed process loses nothing, a power failure may.
    Relaxed,
}

/// How to open a store; see [`crate::Embedded::open`].
#[derive(Clone)]
pub struct Options {
    /// Where the store lives; created with mode 0700 when absent.
    pub directory: PathBuf,
    /// The text of the library to run.
    pub library: String,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// When a write is safe.
    pub durability: Durability,
    /// The most the store may grow to, in bytes; the file is sparse.
    pub map_size: usize,
    /// Bytes kept back on the disk, so that what ends or frees work still fits when it is full; 0 keeps nothing back.
    pub reserve_bytes: u64,
    /// Data files up to this many bytes have every page checked when they are opened; of larger ones only the header is looked at, and
    /// [`crate::Embedded::verify`] checks the rest on demand.
    pub verify_up_to: u64,
    /// Test mode: a function that refuses or raises after a write, touches a key of another partition, or names a command that is
    /// not on the list is answered with `Raised`, even where it caught the error itself.
    pub strict: bool,
    /// How many Lua instructions one call may run.
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
