//! Everything a request may say about an execution: alone, as a member of a flow, or as a child.

/// Declares a body with fields of its own and those of an execution.
///
/// A flattened struct would not do: serde lets it take any field, and its payloads lose their text.
macro_rules! submission {
    ( $(#[$meta:meta])* pub struct $name:ident { $( $(#[$about:meta])* $field:ident: $type:ty, )* } ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $( $(#[$about])* pub $field: $type, )*
            /// Chosen by the client, or minted.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub execution_id: Option<ff_core::types::ExecutionId>,
            /// The default is `default`.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::Namespace>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub namespace: Option<String>,
            /// Where it queues; the default is `default`.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::LaneName>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub lane: Option<String>,
            /// What the worker gets.
            #[cfg_attr(feature = "openapi", schema(value_type = $crate::vocabulary::Payload, required = false))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub input: Option<Box<serde_json::value::RawValue>>,
            /// How `input` carries its bytes.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub input_encoding: Option<$crate::Encoding>,
            /// What to find it by.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::Tags>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tags: Option<std::collections::BTreeMap<String, String>>,
            /// Higher comes first; the default is 0.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::Priority>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub priority: Option<i64>,
            /// Not before this time.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::TimeMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub delay_until: Option<i64>,
            /// Not before so long from now.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::DurationMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub delay_ms: Option<i64>,
            /// Expired if it has not ended by then.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::TimeMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deadline_at: Option<i64>,
            /// Expired if it has not ended so long from now.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::DurationMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub deadline_ms: Option<i64>,
            /// Expired if it has not started so long from now.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::DurationMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub start_within_ms: Option<i64>,
            /// The same key with the same body is the same execution.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::IdempotencyKey>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub idempotency_key: Option<String>,
            /// How long the key is known; the default is a day.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::DurationMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub idempotency_ttl_ms: Option<i64>,
            /// When a failed attempt is tried again.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub retry: Option<ff_script::generated::Retry>,
            /// How long one attempt may take.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::DurationMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub attempt_timeout_ms: Option<i64>,
            /// How often a lost lease is tried again; the default is 5.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::Times>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub max_reclaims: Option<i64>,
            /// How often it may be replayed; the default is 10.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::Times>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub max_replays: Option<i64>,
            /// What its worker must be able to do.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<$crate::vocabulary::Capability>>, max_items = 64))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub requires: Option<Vec<String>>,
            /// What its worker had better be able to do.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<$crate::vocabulary::Capability>>, max_items = 64))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub prefers: Option<Vec<String>>,
            /// Executions of one key share their turn in a fair lane.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::FairnessKey>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub fairness_key: Option<String>,
            /// What it spends from.
            #[cfg_attr(feature = "openapi", schema(max_items = 16))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub budgets: Option<Vec<ff_script::generated::BudgetRef>>,
            /// What it counts against.
            #[cfg_attr(feature = "openapi", schema(max_items = 16))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub quotas: Option<Vec<ff_script::generated::QuotaRef>>,
            /// What its worker may try instead, in order.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<$crate::vocabulary::Payload>>, max_items = 16))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub fallbacks: Option<Vec<Box<serde_json::value::RawValue>>>,
            /// How long it is kept once it has ended; the default is a week.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::DurationMs>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub retention_ms: Option<i64>,
            /// How its streams are kept.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub stream: Option<ff_script::generated::StreamOptions>,
            /// The trace it belongs to.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::TraceParent>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub trace_parent: Option<String>,
            /// Told when it has ended.
            #[cfg_attr(feature = "openapi", schema(value_type = Option<$crate::vocabulary::Url>))]
            #[serde(skip_serializing_if = "Option::is_none")]
            pub completion_webhook: Option<String>,
        }

        impl $name {
            /// The submission that this body means. `place` stands before the names of fields that are wrong; `namespace` and
            /// `lane` count when the body has none.
            ///
            /// # Errors
            /// When the input is not what its encoding says, or too large.
            pub fn submission(
                self,
                place: &str,
                kind: String,
                id: impl FnOnce() -> ff_core::types::ExecutionId,
                namespace: &str,
                lane: &str,
            ) -> Result<ff_script::generated::Submission, $crate::Invalid> {
                let field = format!("{place}input");
                let input = $crate::Payload::read(&field, self.input.as_deref(), self.input_encoding)?;
                if input.as_ref().is_some_and(|input| input.bytes.len() > ff_core::limits::INPUT_BYTES_MAX) {
                    return Err($crate::Invalid::too_large(field, ff_core::limits::INPUT_BYTES_MAX));
                }
                let named = self.input_encoding.filter(|encoding| *encoding == $crate::Encoding::Base64);
                let text = |json: &Box<serde_json::value::RawValue>| ff_script::Bytes(json.get().as_bytes().to_vec());
                Ok(ff_script::generated::Submission {
                    input: input.map(|input| ff_script::Bytes(input.bytes)),
                    input_encoding: named.map(|encoding| encoding.as_str().to_owned()),
                    tags: self.tags,
                    priority: self.priority,
                    delay_until: self.delay_until,
                    delay_ms: self.delay_ms,
                    deadline_at: self.deadline_at,
                    deadline_ms: self.deadline_ms,
                    start_within_ms: self.start_within_ms,
                    idempotency_key: self.idempotency_key,
                    idempotency_ttl_ms: self.idempotency_ttl_ms,
                    retry: self.retry,
                    attempt_timeout_ms: self.attempt_timeout_ms,
                    max_reclaims: self.max_reclaims,
                    max_replays: self.max_replays,
                    requires: self.requires,
                    prefers: self.prefers,
                    fairness_key: self.fairness_key,
                    budgets: self.budgets,
                    quotas: self.quotas,
                    fallbacks: self.fallbacks.map(|all| all.iter().map(text).collect()),
                    retention_ms: self.retention_ms,
                    stream: self.stream,
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

            /// The body that means this submission, and its kind. An empty namespace or lane and a nil id are left to the server;
            /// so is an id beside a key, which decides.
            ///
            /// # Errors
            /// When a tier of the fallbacks is not JSON.
            pub fn of(fields: ff_script::generated::Submission) -> Result<(Self, String), $crate::Invalid> {
                // Every field is named: one that is new does not compile until it is sent.
                let ff_script::generated::Submission {
                    execution_id, namespace, lane, kind, input, priority, retention_ms, body_digest: _, input_encoding, tags,
                    delay_until, delay_ms, deadline_at, deadline_ms, start_within_ms, idempotency_key, idempotency_ttl_ms,
                    retry, attempt_timeout_ms, max_reclaims, max_replays, requires, prefers, fairness_key, budgets, quotas,
                    fallbacks, stream, trace_parent, completion_webhook, lane_depth: _, fired: _,
                } = fields;
                let input = input.map(|ff_script::Bytes(bytes)| match input_encoding {
                    Some(encoding) => $crate::Payload::stored(bytes, &encoding),
                    None => $crate::Payload::of(bytes),
                });
                let (input, input_encoding) = input.map(|input| input.sent()).unzip();
                let tier = |(at, tier): (usize, ff_script::Bytes)| {
                    let text = String::from_utf8(tier.0).ok();
                    let json = text.and_then(|text| serde_json::value::RawValue::from_string(text).ok());
                    json.ok_or_else(|| $crate::Invalid::new(format!("fallbacks[{at}]"), "must be JSON"))
                };
                let fallbacks = fallbacks.map(|all| all.into_iter().enumerate().map(tier).collect::<Result<_, _>>());
                let proposed = idempotency_key.is_none() && !execution_id.as_uuid().is_nil();
                let body = Self {
                    execution_id: proposed.then_some(execution_id),
                    namespace: Some(namespace).filter(|name| !name.is_empty()),
                    lane: Some(lane).filter(|name| !name.is_empty()),
                    input,
                    input_encoding: input_encoding.flatten(),
                    tags,
                    priority,
                    delay_until,
                    delay_ms,
                    deadline_at,
                    deadline_ms,
                    start_within_ms,
                    idempotency_key,
                    idempotency_ttl_ms,
                    retry,
                    attempt_timeout_ms,
                    max_reclaims,
                    max_replays,
                    requires,
                    prefers,
                    fairness_key,
                    budgets,
                    quotas,
                    fallbacks: fallbacks.transpose()?,
                    retention_ms,
                    stream,
                    trace_parent,
                    completion_webhook,
                    ..Self::default()
                };
                Ok((body, kind))
            }
        }
    };
}

pub(crate) use submission;
