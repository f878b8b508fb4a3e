//! Everything a request may say about an execution: alone, as a member of a flow, or as a child.

use ff_script::generated::{BudgetRef, QuotaRef};
use serde::Deserialize;
use uuid::Uuid;

use crate::shape::budget::Once;

/// Defines a body with fields of its own and those of an execution. A flattened struct would not do: it takes any field, and
/// its payloads lose their text.
macro_rules! execution_body {
    ( $(#[$meta:meta])* pub struct $name:ident { $( $(#[$about:meta])* $field:ident: $type:ty, )* } ) => {
        $(#[$meta])*
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $( $(#[$about])* pub $field: $type, )*
            execution_id: Option<ff_core::types::ExecutionId>,
            namespace: Option<String>,
            lane: Option<String>,
            input: Option<Box<serde_json::value::RawValue>>,
            input_encoding: Option<$crate::payload::Encoding>,
            tags: Option<std::collections::BTreeMap<String, String>>,
            priority: Option<i64>,
            delay_until: Option<i64>,
            delay_ms: Option<i64>,
            deadline_at: Option<i64>,
            deadline_ms: Option<i64>,
            start_within_ms: Option<i64>,
            idempotency_key: Option<String>,
            idempotency_ttl_ms: Option<i64>,
            retry: Option<$crate::shape::retry::RetryShape>,
            attempt_timeout_ms: Option<i64>,
            max_reclaims: Option<i64>,
            max_replays: Option<i64>,
            requires: Option<Vec<String>>,
            prefers: Option<Vec<String>>,
            fairness_key: Option<String>,
            budgets: Option<Vec<$crate::execution_body::BudgetBody>>,
            quotas: Option<Vec<$crate::execution_body::QuotaBody>>,
            fallbacks: Option<Vec<Box<serde_json::value::RawValue>>>,
            retention_ms: Option<i64>,
            stream: Option<$crate::execution_body::StreamBody>,
            trace_parent: Option<String>,
            completion_webhook: Option<String>,
        }

        impl $name {
            /// The submission it means, in a namespace and lane unless it says others; `place` stands before the names of
            /// fields that are wrong.
            fn submission(
                self,
                place: &str,
                kind: String,
                id: impl FnOnce() -> ff_core::types::ExecutionId,
                namespace: &str,
                lane: &str,
            ) -> $crate::problem::Answer<ff_script::generated::Submission> {
                let (input, input_encoding) = $crate::payload::taken(
                    &format!("{place}input"),
                    self.input,
                    self.input_encoding,
                    $crate::payload::PAYLOAD_MAX,
                )?;
                let text = |json: &Box<serde_json::value::RawValue>| ff_script::Bytes(json.get().as_bytes().to_vec());
                Ok(ff_script::generated::Submission {
                    input,
                    input_encoding,
                    tags: self.tags,
                    priority: self.priority,
                    delay_until: self.delay_until,
                    delay_ms: self.delay_ms,
                    deadline_at: self.deadline_at,
                    deadline_ms: self.deadline_ms,
                    start_within_ms: self.start_within_ms,
                    idempotency_key: self.idempotency_key,
                    idempotency_ttl_ms: self.idempotency_ttl_ms,
                    retry: self.retry.map(Into::into),
                    attempt_timeout_ms: self.attempt_timeout_ms,
                    max_reclaims: self.max_reclaims,
                    max_replays: self.max_replays,
                    requires: self.requires,
                    prefers: self.prefers,
                    fairness_key: self.fairness_key,
                    budgets: self.budgets.map(|all| all.into_iter().map(Into::into).collect()),
                    quotas: self.quotas.map(|all| all.into_iter().map(Into::into).collect()),
                    fallbacks: self.fallbacks.map(|all| all.iter().map(text).collect()),
                    retention_ms: self.retention_ms,
                    stream: self
                        .stream
                        .map(|stream| ff_script::generated::StreamOptions { max_frames: stream.max_frames }),
                    trace_parent: self.trace_parent,
                    completion_webhook: self.completion_webhook,
                    ..ff_script::generated::Submission::new(
                        self.execution_id.unwrap_or_else(id),
                        self.namespace.unwrap_or_else(|| namespace.to_owned()),
                        self.lane.unwrap_or_else(|| lane.to_owned()),
                        kind,
                        String::new(),
                    )
                })
            }
        }
    };
}
pub(crate) use execution_body;

/// A budget it spends from.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetBody {
    budget_id: Uuid,
    estimate: Option<Once<i64>>,
}

impl From<BudgetBody> for BudgetRef {
    fn from(body: BudgetBody) -> Self {
        Self { budget_id: body.budget_id, estimate: body.estimate.map(|estimate| estimate.0) }
    }
}

/// A quota it counts against.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaBody {
    quota_id: Uuid,
    key: String,
    weight: Option<i64>,
}

impl From<QuotaBody> for QuotaRef {
    fn from(body: QuotaBody) -> Self {
        Self { quota_id: body.quota_id, key: body.key, weight: body.weight }
    }
}

/// How its streams are kept.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamBody {
    /// How many frames at most.
    pub max_frames: Option<i64>,
}
