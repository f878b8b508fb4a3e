//! The types users see, and the operations of the HTTP API. Each is declared here, once.
//!
//! The server routes requests by these declarations and describes them in its OpenAPI document. Clients send the same types.

#![warn(missing_docs)]

pub mod access;
pub mod blocked;
pub mod budgets;
pub mod children;
pub mod claims;
mod condition;
pub mod events;
pub mod executions;
pub mod explain;
pub mod explain_lane;
mod explain_text;
pub mod flows;
pub mod fsck;
pub mod graph;
mod invalid;
pub mod json;
pub mod keys;
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
pub mod schedules;
pub mod server;
pub mod steps;
pub mod streams;
mod submission;
pub mod suspensions;
pub mod tasks;
pub mod tokens;
mod tree;
pub mod usage;
#[cfg(feature = "openapi")]
pub mod vocabulary;
pub mod waitpoints;
pub mod webhooks;
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
        events::OPERATIONS,
        executions::OPERATIONS,
        explain::OPERATIONS,
        explain_lane::OPERATIONS,
        flows::OPERATIONS,
        fsck::OPERATIONS,
        graph::OPERATIONS,
        keys::OPERATIONS,
        lanes::OPERATIONS,
        quotas::OPERATIONS,
        results::OPERATIONS,
        schedules::OPERATIONS,
        server::OPERATIONS,
        steps::OPERATIONS,
        streams::OPERATIONS,
        suspensions::OPERATIONS,
        tasks::OPERATIONS,
        tokens::OPERATIONS,
        usage::OPERATIONS,
        waitpoints::OPERATIONS,
        webhooks::OPERATIONS,
        workers::OPERATIONS,
    ]
    .into_iter()
    .flatten()
}
