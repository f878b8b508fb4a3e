//! Traces across processes: a submitter's trace goes on in the server and in the worker's attempt.
//!
//! What travels is the W3C `traceparent` text: in the header of a request, and with an execution from its submission to every
//! attempt. Without a subscriber that exports spans everything here costs nothing and changes nothing.

mod context;
#[cfg(feature = "export")]
mod export;

pub use context::{TraceParent, current, fail, follow, name, note};
#[cfg(feature = "export")]
pub use export::{BadEndpoint, Exporter, endpoint_of_environment};
