//! `POST /v1/executions`: one submission, accepted whole or refused whole.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use ff_core::types::ExecutionId;
use ff_engine::NewExecution;
use ff_script::generated::{PublicState, SubmitExecutionReply};
use ff_trace::TraceParent;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::App;
use crate::body::{Body, PAYLOAD};
use crate::execution_body::execution_body;
use crate::openapi::{Described, vocabulary};
use crate::problem::{Answer, Problem};
use crate::query::{IdempotencyHeader, TraceHeader};

pub fn routes() -> Described {
    // GET of the same path is the list's.
    Described::new().with(routes!(submit, super::list::list))
}

execution_body! {
    /// Everything a submitter may say.
    pub struct SubmitBody {
        /// What it is: workers go by it.
        #[schema(value_type = vocabulary::Kind)]
        kind: String,
    }
}

/// What became of a submission.
#[derive(Serialize, ToSchema)]
#[schema(as = Submitted)]
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
    pub fn into_new(mut self) -> Answer<NewExecution> {
        let kind = std::mem::take(&mut self.kind);
        Ok(NewExecution { fields: self.submission("", kind, ExecutionId::mint, "default", "default")? })
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
            self.trace_parent = trace_of(headers);
        }
        Ok(self)
    }
}

/// The trace a request belongs to. A header that cannot be read belongs to none: a trace is not worth a refusal.
pub fn trace_of(headers: &HeaderMap) -> Option<String> {
    let trace = headers.get("traceparent")?.to_str().ok()?;
    trace.parse::<TraceParent>().ok().map(|trace| trace.to_string())
}

/// Submits one execution: accepted whole or refused whole.
#[utoipa::path(
    post,
    path = "/v1/executions",
    params(IdempotencyHeader, TraceHeader),
    request_body = SubmitBody,
    responses((status = 201, description = "It is new.", body = SubmittedShape), (status = 200, description = "It was there already: the same id or key with the same body.", body = SubmittedShape)),
    extensions(("x-ff-codes" = json!("execution_not_found idempotency_conflict lane_disabled lane_full capability_invalid budget_not_found quota_not_found"))),
)]
async fn submit(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<SubmitBody, PAYLOAD>,
) -> Answer<impl IntoResponse> {
    let new = body.with_headers(&headers)?.into_new()?;
    app.check_submission(&caller, &new.fields).await?;
    let span = tracing::Span::current();
    span.record("namespace", new.fields.namespace.as_str()).record("lane", new.fields.lane.as_str());
    let reply = app.dispatcher.submit(new).await?;
    let submitted = SubmittedShape::from(reply);
    span.record("execution_id", tracing::field::display(submitted.execution_id));
    let status = if submitted.duplicate { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(submitted)))
}
