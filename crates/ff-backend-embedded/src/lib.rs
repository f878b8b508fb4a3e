//! Hosts the library in-process: PUC Lua 5.1 over LMDB, one thread, one transaction per group of calls.
//!
//! Callers queue requests. The worker thread owns the Lua state and the write transaction, runs everything that is queued,
//! commits once and only then answers, so one flush to disk is shared by all calls that waited for it.
//!
//! **Invariant:** an answered write is on disk (`Durability::Fsync`), and a call writes everything it planned or nothing.
//! A message of a call leaves after the commit that made the call true.
//!
//! Deliberately absent: key expiry, blocking commands, transactions over several calls, any command the library does not use.

mod clock;
mod directory;
mod environment;
mod faults;
mod host;
mod options;
mod raw;
mod reserve;
mod store;
mod worker;

pub use clock::{Clock, SystemClock, VirtualClock};
pub use faults::Faults;
pub use host::Embedded;
pub use options::{Durability, Options};
pub use store::commands::{READ_COMMANDS, WRITE_COMMANDS};
pub use store::dump::{DumpValue, StreamId};
