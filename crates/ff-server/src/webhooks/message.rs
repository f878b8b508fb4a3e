//! What a webhook says, and what an answer to it means.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use ff_core::types::{ExecutionId, FlowId};
use ff_engine::Carried;
use ff_script::generated::{Failure, Webhook};
use serde::Serialize;
use uuid::Uuid;

/// The longest a receiver may ask to be left alone.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// The body: what ended and how. Results stay where they are; whoever may read them knows the id.
#[derive(Serialize)]
struct Body<'a> {
    id: Uuid,
    r#type: &'a str,
    at: i64,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<&'a str>,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<ExecutionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_id: Option<FlowId>,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    tags: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_index: Option<i64>,
    replay_count: i64,
}

/// The body as bytes, the same in every try.
pub fn body(webhook: &Webhook) -> Vec<u8> {
    let body = Body {
        id: webhook.delivery_id,
        r#type: &webhook.r#type,
        at: webhook.at,
        namespace: &webhook.namespace,
        lane: webhook.lane.as_deref(),
        kind: &webhook.kind,
        execution_id: webhook.execution_id,
        flow_id: webhook.flow_id,
        outcome: &webhook.outcome,
        failure: webhook.failure.clone().map(|failure: Failure| failure),
        tags: &webhook.tags,
        attempt_index: webhook.attempt_index,
        replay_count: webhook.replay_count,
    };
    serde_json::to_vec(&body).expect("texts and numbers become JSON")
}

/// What an answer means; `retry_after` is its header of that name.
pub fn meant(status: u16, retry_after: Option<&str>, now: SystemTime) -> Carried {
    match status {
        200..=299 => Carried::Delivered { status },
        410 => Carried::Refused { status, error: "answered 410: it wants no more of this".to_owned() },
        300..=399 => {
            let error = format!("answered {status}; redirects are not followed");
            Carried::Failed { status: Some(status), error, retry_after: None }
        }
        _ => {
            let retry_after = retry_after.and_then(|text| patience(text, now));
            Carried::Failed { status: Some(status), error: format!("answered {status}"), retry_after }
        }
    }
}

/// A number of seconds, or a date.
fn patience(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    let asked = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).ok()?,
    };
    Some(asked.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_means_delivered_refused_or_later() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let failed = |status, error: &str, seconds: Option<u64>| Carried::Failed {
            status: Some(status),
            error: error.to_owned(),
            retry_after: seconds.map(Duration::from_secs),
        };
        assert_eq!(meant(200, None, now), Carried::Delivered { status: 200 });
        assert_eq!(meant(204, Some("60"), now), Carried::Delivered { status: 204 });
        assert!(matches!(meant(410, None, now), Carried::Refused { status: 410, .. }));
        for (status, header, seconds) in [
            (500, None, None),
            (400, None, None),
            (404, Some(""), None),
            (503, Some("120"), Some(120)),
            (429, Some(" 5 "), Some(5)),
            (429, Some("86400"), Some(3_600)),
            (429, Some("99999999999999999999999"), None),
            (429, Some("-5"), None),
            (429, Some("soon"), None),
            (503, Some("Sun, 09 Sep 2001 01:47:40 GMT"), Some(60)),
            (503, Some("Sun, 09 Sep 2001 01:46:00 GMT"), None),
        ] {
            assert_eq!(
                meant(status, header, now),
                failed(status, &format!("answered {status}"), seconds),
                "{header:?}"
            );
        }
        let moved = meant(302, Some("9"), now);
        assert_eq!(moved, failed(302, "answered 302; redirects are not followed", None));
    }
}
