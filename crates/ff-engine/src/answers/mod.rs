//! What the engine answers, one file per noun: each operation of ff-api is a [`crate::Handle`] of the service.

mod budgets;
mod bulk;
mod executions;
mod explain;
mod flows;
mod fsck;
mod keys;
mod quotas;
mod suspensions;
mod tokens;
mod usage;
mod waitpoints;

pub use flows::new_edges;

use ff_api::Problem;

/// Fails when a text is longer than its limit.
pub(crate) fn bounded(field: &str, text: Option<&str>, bytes_max: usize) -> Result<(), Problem> {
    match text {
        Some(text) if text.len() > bytes_max => Err(Problem::too_large(field, bytes_max)),
        _ => Ok(()),
    }
}
