//! The retry policy, as it is written and shown.

use ff_script::generated::{Backoff, BackoffType, Jitter, Retry};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::openapi::vocabulary;

/// A retry policy; what is not said has the lane's or the general default.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RetryPolicy)]
pub struct RetryShape {
    #[schema(minimum = 1, maximum = 10_000)]
    max_attempts: Option<i64>,
    backoff: Option<BackoffShape>,
    jitter: Option<Jitter>,
    #[schema(value_type = Option<Vec<vocabulary::Category>>, max_items = 64)]
    retry_on: Option<Vec<String>>,
    #[schema(value_type = Option<Vec<vocabulary::Category>>, max_items = 64)]
    never_on: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BackoffShape {
    r#type: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    delay_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    initial_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    factor: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    max_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = BackoffType)]
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
