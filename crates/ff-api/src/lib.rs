//! The types users see, and the operations of the HTTP API. Each is declared here, once.
//!
//! The server routes requests by these declarations and describes them in its OpenAPI document. Clients send the same types.

pub mod access;
mod condition;
pub mod executions;
pub mod flows;
mod invalid;
pub mod operation;
pub mod page;
pub mod parts;
pub mod payload;
pub mod problem;
mod submission;
pub mod suspensions;
pub mod tasks;
#[cfg(feature = "openapi")]
pub mod vocabulary;
pub mod waitpoints;

pub use invalid::Invalid;
pub use operation::{Ask, Nothing, Operation};
pub use page::{Listed, PageQuery};
pub use payload::{Encoding, Payload};
pub use problem::Problem;

/// Every operation that is declared.
pub fn operations() -> impl Iterator<Item = &'static operation::Declared> {
    [executions::OPERATIONS, flows::OPERATIONS, suspensions::OPERATIONS, tasks::OPERATIONS, waitpoints::OPERATIONS]
        .into_iter()
        .flatten()
}
