//! Traces across processes: a submitter's trace continues in the server and in the worker's attempt.
//!
//! The context is the W3C `traceparent` text. It travels in the header of a request, and with an execution from
//! submission to every attempt. Without a subscriber that exports spans, this crate costs nothing and changes nothing.

mod context;
#[cfg(feature = "export")]
mod export;

pub use context::{TraceParent, current, fail, follow, name, note};
#[cfg(feature = "export")]
pub use export::{BadEndpoint, Exporter, endpoint_of_environment};
