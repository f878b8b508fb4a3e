//! The library that holds every state transition, its typed calls, and the [`Host`] that runs them.

pub mod dump;
pub mod host;

pub use host::{Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, WakeUp, Watch};
