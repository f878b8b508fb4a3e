//! The library with every state transition, its typed calls, and the [`Host`] that runs them.
//!
//! A function's contract in `lua/` is the only declaration. `cargo xtask codegen` generates the bundle, the types of
//! [`generated`] and the error codes from it. [`Client`] makes typed calls through any host.

pub mod contents;
pub mod dump;
pub mod host;
pub mod library;
pub mod stored;

pub mod call;
pub mod list;
pub mod wire;
#[rustfmt::skip]
pub mod generated;
#[rustfmt::skip]
pub mod generated_rules;
pub mod rules;
#[cfg(any(test, feature = "samples"))]
pub mod sample;

pub mod client;
mod error;
mod grant;
mod holder_set;
mod kinds;
mod refusal;
pub mod wake;
mod words;

pub use call::Call;
pub use client::{Answers, Client, Counted, List};
pub use contents::{Content, Contents};
pub use error::Error;
pub use holder_set::HolderSet;
pub use host::{Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, Terms, Visits, WakeUp, Watch};
pub use kinds::{Kinds, QueueName};
pub use library::Library;
pub use wake::Wake;
pub use wire::{Bytes, DecodeError};
