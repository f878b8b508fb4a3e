//! `POST /v1/executions`: one submission, accepted whole or refused whole.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Json, Router};
use ff_core::types::ExecutionId;
use ff_engine::NewExecution;
use ff_script::Bytes;
use ff_script::generated::{BudgetRef, PublicState, QuotaRef, StreamOptions, Submission, SubmitExecutionReply};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::app::App;
use crate::body::{Body, PAYLOAD};
use crate::payload::{self, Encoding};
use crate::problem::{Answer, Problem};
use crate::shape::retry::RetryShape;

pub fn routes() -> Router<App> {
    // GET of the same path is the list's.
    Router::new().route("/v1/executions", post(submit).get(super::list::list))
}

/// Everything a submitter may say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmitBody {
    execution_id: Option<ExecutionId>,
    namespace: Option<String>,
    lane: Option<String>,
    kind: String,
    input: Option<Box<RawValue>>,
    input_encoding: Option<Encoding>,
    tags: Option<BTreeMap<String, String>>,
    priority: Option<i64>,
    delay_until: Option<i64>,
    delay_ms: Option<i64>,
    deadline_at: Option<i64>,
    deadline_ms: Option<i64>,
    start_within_ms: Option<i64>,
    idempotency_key: Option<String>,
    idempotency_ttl_ms: Option<i64>,
    retry: Option<RetryShape>,
    attempt_timeout_ms: Option<i64>,
    max_reclaims: Option<i64>,
    max_replays: Option<i64>,
    requires: Option<Vec<String>>,
    prefers: Option<Vec<String>>,
    fairness_key: Option<String>,
    budgets: Option<Vec<BudgetBody>>,
    quotas: Option<Vec<QuotaBody>>,
    fallbacks: Option<Vec<Box<RawValue>>>,
    retention_ms: Option<i64>,
    stream: Option<StreamBody>,
    trace_parent: Option<String>,
    completion_webhook: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetBody {
    budget_id: Uuid,
    estimate: Option<BTreeMap<String, i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaBody {
    quota_id: Uuid,
    key: String,
    weight: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamBody {
    max_frames: Option<i64>,
}

/// What became of a submission.
#[derive(Serialize)]
pub struct SubmittedShape {
    execution_id: ExecutionId,
    state: Option<PublicState>,
    duplicate: bool,
}

impl From<SubmitExecutionReply> for SubmittedShape {
    fn from(reply: SubmitExecutionReply) -> Self {
        match reply {
            SubmitExecutionReply::Created { execution_id, state } => {
                Self { execution_id, state: Some(state), duplicate: false }
            }
            SubmitExecutionReply::Duplicate { execution_id, state } => Self { execution_id, state, duplicate: true },
        }
    }
}

impl SubmitBody {
    /// The submission this body means.
    pub fn into_new(self) -> Answer<NewExecution> {
        let (input, input_encoding) = payload::taken("input", self.input, self.input_encoding, payload::PAYLOAD_MAX)?;
        let namespace = self.namespace.unwrap_or_else(|| "default".to_owned());
        let lane = self.lane.unwrap_or_else(|| "default".to_owned());
        let mut new = NewExecution::new(namespace, lane, self.kind);
        if let Some(id) = self.execution_id {
            new = new.with_id(id);
        }
        new.fields = Submission {
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
            budgets: self.budgets.map(|all| {
                all.into_iter().map(|b| BudgetRef { budget_id: b.budget_id, estimate: b.estimate }).collect()
            }),
            quotas: self.quotas.map(|all| {
                all.into_iter().map(|q| QuotaRef { quota_id: q.quota_id, key: q.key, weight: q.weight }).collect()
            }),
            fallbacks: self.fallbacks.map(|all| all.iter().map(|tier| Bytes(tier.get().as_bytes().to_vec())).collect()),
            retention_ms: self.retention_ms,
            stream: self.stream.map(|stream| StreamOptions { max_frames: stream.max_frames }),
            trace_parent: self.trace_parent,
            completion_webhook: self.completion_webhook,
            ..new.fields
        };
        Ok(new)
    }

    /// The key and the trace of the request's headers count as if the body said them.
    fn with_headers(mut self, headers: &HeaderMap) -> Answer<Self> {
        if let Some(key) = headers.get("idempotency-key") {
            let key = key.to_str().map_err(|_| Problem::invalid("idempotency_key", "must be printable text"))?;
            match &self.idempotency_key {
                Some(said) if said != key => {
                    return Err(Problem::invalid("idempotency_key", "differs from the Idempotency-Key header"));
                }
                _ => self.idempotency_key = Some(key.to_owned()),
            }
        }
        if self.trace_parent.is_none() {
            self.trace_parent = headers.get("traceparent").and_then(|trace| trace.to_str().ok()).map(str::to_owned);
        }
        Ok(self)
    }
}

async fn submit(
    State(app): State<App>,
    headers: HeaderMap,
    Body(body): Body<SubmitBody, PAYLOAD>,
) -> Answer<impl IntoResponse> {
    let reply = app.operations.submit(body.with_headers(&headers)?.into_new()?).await?;
    let submitted = SubmittedShape::from(reply);
    let status = if submitted.duplicate { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(submitted)))
}
