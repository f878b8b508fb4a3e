//! A quota and how far its keys are used.

use ff_core::types::QuotaPolicyId;
use ff_script::generated::{QuotaEntry, QuotaKeyState, QuotaPart, QuotaRate, QuotaUse, QuotaWeights, RateMode};
use serde::Serialize;
use utoipa::ToSchema;

/// A quota's definition and, where they were asked for, its keys.
#[derive(Serialize, ToSchema)]
pub struct QuotaShape {
    quota_id: QuotaPolicyId,
    namespace: String,
    version: i64,
    created_at: i64,
    rate: Option<RateShape>,
    concurrency: Option<i64>,
    weighted: Option<WeightsShape>,
    hold_while_suspended: bool,
    /// How many keys are in use.
    keys_in_use: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Vec<KeyShape>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = QuotaRate)]
struct RateShape {
    limit: i64,
    window_ms: i64,
    #[schema(value_type = RateMode)]
    mode: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = QuotaWeights)]
struct WeightsShape {
    limit: i64,
    window_ms: i64,
}

/// One key of a quota.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaKeyState)]
pub struct KeyShape {
    key: String,
    parts: Vec<UseShape>,
    held: i64,
    waiting: i64,
    throttled_until: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = QuotaUse)]
struct UseShape {
    #[schema(value_type = QuotaPart)]
    part: &'static str,
    used: i64,
    limit: i64,
    /// When one more may pass, while none does.
    next_at: Option<i64>,
}

impl KeyShape {
    /// A key of which nothing is known.
    pub fn unknown(key: &str) -> Self {
        Self { key: key.to_owned(), parts: Vec::new(), held: 0, waiting: 0, throttled_until: None }
    }
}

impl QuotaShape {
    /// With these keys.
    pub fn with(mut self, keys: Vec<KeyShape>) -> Self {
        self.keys = Some(keys);
        self
    }
}

impl From<QuotaEntry> for QuotaShape {
    fn from(entry: QuotaEntry) -> Self {
        let quota = entry.quota;
        Self {
            quota_id: quota.quota_id,
            namespace: quota.namespace,
            version: entry.version,
            created_at: entry.created_at,
            rate: quota.rate.map(|QuotaRate { limit, window_ms, mode }| RateShape {
                limit,
                window_ms,
                mode: mode.as_str(),
            }),
            concurrency: quota.concurrency,
            weighted: quota.weighted.map(|QuotaWeights { limit, window_ms }| WeightsShape { limit, window_ms }),
            hold_while_suspended: quota.hold_while_suspended,
            keys_in_use: entry.keys,
            keys: None,
        }
    }
}

impl From<QuotaKeyState> for KeyShape {
    fn from(state: QuotaKeyState) -> Self {
        let part = |QuotaUse { part, used, limit, next_at }| UseShape { part: part.as_str(), used, limit, next_at };
        Self {
            key: state.key,
            parts: state.parts.into_iter().map(part).collect(),
            held: state.held,
            waiting: state.waiting,
            throttled_until: state.throttled_until,
        }
    }
}
