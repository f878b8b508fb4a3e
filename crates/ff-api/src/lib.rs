//! The types users see, and the operations of the HTTP API. Each is declared here, once.
//!
//! The server routes requests by these declarations and describes them in its OpenAPI document. Clients send the same types.

pub mod access;
pub mod blocked;
pub mod budgets;
pub mod children;
pub mod claims;
mod condition;
pub mod executions;
pub mod explain;
pub mod explain_lane;
pub mod flows;
pub mod graph;
mod invalid;
pub mod lanes;
mod made;
pub mod operation;
pub mod page;
pub mod parts;
pub mod payload;
pub mod problem;
pub mod quotas;
pub mod reset;
pub mod results;
mod submission;
pub mod suspensions;
pub mod tasks;
pub mod usage;
#[cfg(feature = "openapi")]
pub mod vocabulary;
pub mod waitpoints;
pub mod workers;

pub use invalid::Invalid;
pub use made::Made;
pub use operation::{Ask, Nothing, Operation};
pub use page::{Listed, PageQuery};
pub use payload::{Encoding, Payload};
pub use problem::Problem;

/// Every operation that is declared.
pub fn operations() -> impl Iterator<Item = &'static operation::Declared> {
    [
        budgets::OPERATIONS,
        children::OPERATIONS,
        claims::OPERATIONS,
        executions::OPERATIONS,
        flows::OPERATIONS,
        graph::OPERATIONS,
        quotas::OPERATIONS,
        results::OPERATIONS,
        suspensions::OPERATIONS,
        tasks::OPERATIONS,
        usage::OPERATIONS,
        waitpoints::OPERATIONS,
        workers::OPERATIONS,
        explain::OPERATIONS,
        explain_lane::OPERATIONS,
        lanes::OPERATIONS,
    ]
    .into_iter()
    .flatten()
}
