//! What the engine answers, one file per noun: each operation of ff-api is a [`crate::Handle`] of the service.

mod budgets;
mod bulk;
mod children;
mod claims;
mod events;
mod executions;
mod explain;
mod flows;
mod fsck;
mod keys;
mod lanes;
mod new_flows;
mod quotas;
mod registration;
mod results;
mod schedules;
mod server;
mod steps;
mod streams;
mod submissions;
mod suspensions;
mod tasks;
mod tokens;
mod usage;
mod waitpoints;
mod workers;

pub(crate) use new_flows::new_flow;

use std::fmt::Display;
use std::time::Duration;

use ff_api::operation::WAIT_MS_MAX;
use ff_api::{Encoding, Invalid, Payload, Problem};
use ff_core::limits::LIST_LIMIT_MAX;
use ff_script::{Bytes, Error};
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub use submissions::new_execution;

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

/// A request id is any text; the same text is the same request.
fn request_id_of(text: Option<&str>) -> Option<Uuid> {
    let text = text?;
    Some(text.parse().unwrap_or_else(|_| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&Sha256::digest(text)[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }))
}

/// How long to wait; by default not at all.
fn wait_of(field: &str, ms: Option<i64>) -> Result<Duration, Invalid> {
    let ms = ms.unwrap_or(0);
    let known = u64::try_from(ms).ok().filter(|ms| *ms <= WAIT_MS_MAX);
    known
        .map(Duration::from_millis)
        .ok_or_else(|| Invalid::new(field, format!("must be in 0..={WAIT_MS_MAX}, got {ms}")))
}

/// A page of those entries of a list that are wanted, and where in the whole list the next page begins. `read` returns
/// entries from an offset on, and whether there are more.
async fn filtered_page<T, F: Future<Output = Result<(Vec<T>, bool), Error>>>(
    offset: i64,
    limit: usize,
    wanted: impl Fn(&T) -> bool,
    read: impl Fn(i64, i64) -> F,
) -> Result<(Vec<T>, Option<String>), Problem> {
    let (mut page, mut at, mut next) = (Vec::new(), offset, offset);
    loop {
        let (items, more) = read(at, LIST_LIMIT_MAX).await?;
        for item in items {
            at += 1;
            if !wanted(&item) {
                continue;
            }
            if page.len() == limit {
                return Ok((page, Some(next.to_string())));
            }
            page.push(item);
            next = at;
        }
        if !more {
            return Ok((page, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_the_same_request() {
        let id = Uuid::now_v7();
        assert_eq!(request_id_of(Some(&id.to_string())), Some(id));
        assert_eq!(request_id_of(Some("r-1")), request_id_of(Some("r-1")));
        assert_ne!(request_id_of(Some("r-1")), request_id_of(Some("r-2")));
        assert_eq!(request_id_of(None), None);
    }
}
