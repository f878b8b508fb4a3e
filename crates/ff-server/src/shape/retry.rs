//! The retry policy, as it is written and shown.

use ff_script::generated::{Backoff, BackoffType, Jitter, Retry};
use serde::{Deserialize, Serialize};

/// A retry policy; what is not said has the lane's or the general default.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RetryShape {
    max_attempts: Option<i64>,
    backoff: Option<BackoffShape>,
    jitter: Option<Jitter>,
    retry_on: Option<Vec<String>>,
    never_on: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct BackoffShape {
    r#type: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Fixed,
    Exponential,
}

impl From<RetryShape> for Retry {
    fn from(shape: RetryShape) -> Self {
        let backoff = shape.backoff.map(|backoff| Backoff {
            r#type: match backoff.r#type {
                Kind::Fixed => BackoffType::Fixed,
                Kind::Exponential => BackoffType::Exponential,
            },
            delay_ms: backoff.delay_ms,
            initial_ms: backoff.initial_ms,
            factor: backoff.factor,
            max_ms: backoff.max_ms,
        });
        Self {
            max_attempts: shape.max_attempts,
            backoff,
            jitter: shape.jitter,
            retry_on: shape.retry_on,
            never_on: shape.never_on,
        }
    }
}

impl From<Retry> for RetryShape {
    fn from(retry: Retry) -> Self {
        let backoff = retry.backoff.map(|backoff| BackoffShape {
            r#type: match backoff.r#type {
                BackoffType::Fixed => Kind::Fixed,
                BackoffType::Exponential => Kind::Exponential,
            },
            delay_ms: backoff.delay_ms,
            initial_ms: backoff.initial_ms,
            factor: backoff.factor,
            max_ms: backoff.max_ms,
        });
        Self {
            max_attempts: retry.max_attempts,
            backoff,
            jitter: retry.jitter,
            retry_on: retry.retry_on,
            never_on: retry.never_on,
        }
    }
}
