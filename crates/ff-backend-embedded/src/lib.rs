//! Runs the library in-process: LuaJIT's interpreter over LMDB, one thread, one transaction per group of calls.
//!
//! Callers queue requests. The worker thread owns the Lua state and the write transaction. It runs everything in the
//! queue, commits once and only then replies. So all waiting calls share one flush to disk.
//!
//! **Invariant:** an acknowledged write is on disk (`Durability::Fsync`), and a call writes either everything it
//! planned or nothing. A call's message leaves after the commit of that call.
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
