//! Everything a request may say about an execution: alone, as a member of a flow, or as a child.

use ff_script::generated::{BudgetRef, QuotaRef};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::openapi::vocabulary;
use crate::shape::budget::Once;

/// Defines a body with fields of its own and those of an execution. A flattened struct would not do: it takes any field, and
/// its payloads lose their text.
macro_rules! execution_body {
    ( $(#[$meta:meta])* pub struct $name:ident { $( $(#[$about:meta])* $field:ident: $type:ty, )* } ) => {
        $(#[$meta])*
        #[derive(serde::Deserialize, utoipa::ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $( $(#[$about])* pub $field: $type, )*
            /// Chosen by the client, or minted.
            execution_id: Option<ff_core::types::ExecutionId>,
            /// `default` unless said.
            #[schema(value_type = Option<$crate::openapi::vocabulary::Namespace>)]
            namespace: Option<String>,
            /// Where it queues: `default` unless said.
            #[schema(value_type = Option<$crate::openapi::vocabulary::LaneName>)]
            lane: Option<String>,
            /// What the worker gets.
            #[schema(value_type = $crate::openapi::vocabulary::Payload, required = false)]
            input: Option<Box<serde_json::value::RawValue>>,
            input_encoding: Option<$crate::payload::Encoding>,
            #[schema(value_type = Option<$crate::openapi::vocabulary::Tags>)]
            tags: Option<std::collections::BTreeMap<String, String>>,
            /// 0 unless said.
            #[schema(value_type = Option<$crate::openapi::vocabulary::Priority>)]
            priority: Option<i64>,
            /// Not before this time.
            #[schema(value_type = Option<$crate::openapi::vocabulary::TimeMs>)]
            delay_until: Option<i64>,
            /// Not before so long from now.
            #[schema(value_type = Option<$crate::openapi::vocabulary::DurationMs>)]
            delay_ms: Option<i64>,
            /// Expired if it has not ended by then.
            #[schema(value_type = Option<$crate::openapi::vocabulary::TimeMs>)]
            deadline_at: Option<i64>,
            /// Expired if it has not ended so long from now.
            #[schema(value_type = Option<$crate::openapi::vocabulary::DurationMs>)]
            deadline_ms: Option<i64>,
            /// Expired if it has not started so long from now.
            #[schema(value_type = Option<$crate::openapi::vocabulary::DurationMs>)]
            start_within_ms: Option<i64>,
            #[schema(value_type = Option<$crate::openapi::vocabulary::IdempotencyKey>)]
            idempotency_key: Option<String>,
            /// How long the key is known: a day unless said.
            #[schema(value_type = Option<$crate::openapi::vocabulary::DurationMs>)]
            idempotency_ttl_ms: Option<i64>,
            retry: Option<$crate::shape::retry::RetryShape>,
            /// How long one attempt may take.
            #[schema(value_type = Option<$crate::openapi::vocabulary::DurationMs>)]
            attempt_timeout_ms: Option<i64>,
            /// How often a lost lease is tried again: 5 unless said.
            #[schema(value_type = Option<$crate::openapi::vocabulary::Times>)]
            max_reclaims: Option<i64>,
            /// How often it may be replayed: 10 unless said.
            #[schema(value_type = Option<$crate::openapi::vocabulary::Times>)]
            max_replays: Option<i64>,
            /// What its worker must be able to do.
            #[schema(value_type = Option<Vec<$crate::openapi::vocabulary::Capability>>, max_items = 64)]
            requires: Option<Vec<String>>,
            /// What its worker had better be able to do.
            #[schema(value_type = Option<Vec<$crate::openapi::vocabulary::Capability>>, max_items = 64)]
            prefers: Option<Vec<String>>,
            #[schema(value_type = Option<$crate::openapi::vocabulary::FairnessKey>)]
            fairness_key: Option<String>,
            /// What it spends from.
            #[schema(max_items = 16)]
            budgets: Option<Vec<$crate::execution_body::BudgetBody>>,
            /// What it counts against.
            #[schema(max_items = 16)]
            quotas: Option<Vec<$crate::execution_body::QuotaBody>>,
            /// What its worker may try instead, in order.
            #[schema(value_type = Option<Vec<$crate::openapi::vocabulary::Payload>>, max_items = 16)]
            fallbacks: Option<Vec<Box<serde_json::value::RawValue>>>,
            /// How long it is kept once it has ended: a week unless said.
            #[schema(value_type = Option<$crate::openapi::vocabulary::DurationMs>)]
            retention_ms: Option<i64>,
            stream: Option<$crate::execution_body::StreamBody>,
            #[schema(value_type = Option<$crate::openapi::vocabulary::TraceParent>)]
            trace_parent: Option<String>,
            /// Told when it has ended.
            #[schema(value_type = Option<$crate::openapi::vocabulary::Url>)]
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
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetBody {
    budget_id: Uuid,
    #[schema(value_type = Option<vocabulary::Estimate>)]
    estimate: Option<Once<i64>>,
}

impl From<BudgetBody> for BudgetRef {
    fn from(body: BudgetBody) -> Self {
        Self { budget_id: body.budget_id, estimate: body.estimate.map(|Once(estimate)| estimate) }
    }
}

/// A quota it counts against.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuotaBody {
    quota_id: Uuid,
    #[schema(value_type = vocabulary::QuotaKey)]
    key: String,
    #[schema(value_type = Option<vocabulary::Amount>)]
    weight: Option<i64>,
}

impl From<QuotaBody> for QuotaRef {
    fn from(body: QuotaBody) -> Self {
        Self { quota_id: body.quota_id, key: body.key, weight: body.weight }
    }
}

/// How its streams are kept.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamBody {
    /// How many frames at most.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub max_frames: Option<i64>,
}
