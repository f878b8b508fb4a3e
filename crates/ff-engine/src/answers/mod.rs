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
mod tasks;
mod tokens;
mod usage;
mod waitpoints;

use std::fmt::Display;

use ff_api::{Encoding, Payload, Problem};
use ff_script::Bytes;

pub use flows::new_edges;

/// Fails when a text is longer than its limit.
pub(crate) fn bounded(field: &str, text: Option<&str>, bytes_max: usize) -> Result<(), Problem> {
    match text {
        Some(text) if text.len() > bytes_max => Err(Problem::too_large(field, bytes_max)),
        _ => Ok(()),
    }
}

/// Says what a problem is about.
pub(crate) fn about<E>(what: impl Display) -> impl FnOnce(E) -> Problem
where
    Problem: From<E>,
{
    move |error| Problem::from(error).about(what)
}

/// The bytes of a payload and the name of their encoding, as they are stored. JSON is stored without a name.
pub(crate) fn stored(
    field: &str,
    payload: Option<Payload>,
    bytes_max: usize,
) -> Result<(Option<Bytes>, Option<String>), Problem> {
    let Some(payload) = payload else { return Ok((None, None)) };
    if payload.bytes.len() > bytes_max {
        return Err(Problem::too_large(field, bytes_max));
    }
    let named = (payload.encoding == Encoding::Base64).then(|| payload.encoding.as_str().to_owned());
    Ok((Some(Bytes(payload.bytes)), named))
}
