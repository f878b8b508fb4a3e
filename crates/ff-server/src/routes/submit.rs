//! `POST /v1/executions`: one submission, accepted whole or refused whole.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use ff_api::executions::{SubmitBody, SubmitExecution};
use ff_engine::new_execution;
use ff_trace::TraceParent;

use crate::access::Caller;
use crate::answering::written;
use crate::app::App;
use crate::body::{Body, PAYLOAD};
use crate::openapi::Described;
use crate::problem::{Answer, Problem};

pub fn routes() -> Described {
    Described::new().serving::<SubmitExecution, _>(submit)
}

/// The key and the trace of the request's headers count as if the body said them.
fn with_headers(mut body: SubmitBody, headers: &HeaderMap) -> Answer<SubmitBody> {
    body.idempotency_key = idempotency_key(headers, body.idempotency_key)?;
    if body.trace_parent.is_none() {
        body.trace_parent = trace_of(headers);
    }
    Ok(body)
}

/// The key of a request: its header and its body mean the same.
pub fn idempotency_key(headers: &HeaderMap, body: Option<String>) -> Answer<Option<String>> {
    let Some(sent) = headers.get("idempotency-key") else { return Ok(body) };
    let sent = sent.to_str().map_err(|_| Problem::invalid("idempotency_key", "must be printable text"))?;
    match body {
        Some(body) if body != sent => {
            Err(Problem::invalid("idempotency_key", "differs from the Idempotency-Key header"))
        }
        _ => Ok(Some(sent.to_owned())),
    }
}

/// The trace a request belongs to. A header that cannot be read belongs to none: a trace is not worth a refusal.
pub fn trace_of(headers: &HeaderMap) -> Option<String> {
    let trace = headers.get("traceparent")?.to_str().ok()?;
    trace.parse::<TraceParent>().ok().map(|trace| trace.to_string())
}

async fn submit(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<SubmitBody, PAYLOAD>,
) -> Answer<Response> {
    let new = new_execution(with_headers(body, &headers)?)?;
    let span = tracing::Span::current();
    span.record("namespace", new.fields.namespace.as_str()).record("lane", new.fields.lane.as_str());
    let submitted = app.submit(&caller, new).await?;
    span.record("execution_id", tracing::field::display(submitted.execution_id));
    written::<SubmitExecution>(&submitted)
}
