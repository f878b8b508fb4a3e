//! Reading one execution: everything, its result and its history.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ff_api::suspensions::Suspension;
use ff_core::types::ExecutionId;
use ff_script::generated::{Attempt, AwaitResultReply, Failure, OperatorAction, Outcome, PastSuspension, PublicState};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use crate::app::{App, Id, JsonAnswer, Number};
use crate::openapi::{Described, vocabulary};
use crate::payload::{self, Encoding};
use crate::problem::{Answer, Problem};
use crate::query::{Query, number};
use crate::shape::execution::ExecutionShape;

const WAIT_MAX_MS: i64 = 30_000;
const ATTEMPTS_MAX: u32 = 1_000;
const AT_ONCE: usize = 16;

pub fn routes() -> Described {
    Described::new()
        // PATCH and DELETE of the same path change it.
        .with(routes!(show, super::change::patch, super::change::delete))
        .with(routes!(result))
        .with(routes!(history))
        .with(routes!(attempt))
}

/// Everything about one execution.
#[utoipa::path(
    get,
    path = "/v1/executions/{id}",
    params(Id),
    responses((status = 200, body = ExecutionShape)),
    extensions(("x-ff-codes" = json!("execution_not_found"))),
)]
async fn show(State(app): State<App>, Id(id): Id) -> JsonAnswer<ExecutionShape> {
    let about = |error| Problem::from(error).about(id);
    let execution = app.operations.describe(id).await.map_err(about)?;
    let tells = execution.completion_webhook.is_some();
    let mut shape = ExecutionShape::from(execution);
    if tells {
        shape.webhook = app.operations.webhook_of(id).await.map_err(about)?;
    }
    Ok(Json(shape))
}

/// One attempt.
#[utoipa::path(
    get,
    path = "/v1/executions/{id}/attempts/{n}",
    params(Id, Number),
    responses((status = 200, body = Attempt)),
    extensions(("x-ff-codes" = json!("execution_not_found attempt_not_found"))),
)]
async fn attempt(State(app): State<App>, Id(id): Id, Number(n): Number) -> JsonAnswer<Attempt> {
    let attempt = app.operations.attempt(id, n).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(attempt))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ResultQuery {
    #[param(value_type = Option<i64>, minimum = 0, maximum = 30_000)]
    wait_ms: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionResult)]
struct ResultShape {
    execution_id: ExecutionId,
    outcome: Outcome,
    #[schema(value_type = vocabulary::Payload, required = false)]
    result: Option<Box<RawValue>>,
    #[schema(value_type = Option<Encoding>)]
    result_encoding: Option<&'static str>,
    failure: Option<Failure>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ResultPending)]
struct NotYet {
    execution_id: ExecutionId,
    state: PublicState,
}

/// The outcome; waits for it when asked to, and says where the execution stands when it has none yet.
#[utoipa::path(
    get,
    path = "/v1/executions/{id}/result",
    params(Id, ResultQuery),
    responses((status = 200, description = "It has ended.", body = ResultShape), (status = 202, description = "It has not ended yet.", body = NotYet)),
    extensions(("x-ff-codes" = json!("execution_not_found"))),
)]
async fn result(State(app): State<App>, Id(id): Id, Query(query): Query<ResultQuery>) -> Answer<Response> {
    let wait_ms = number("wait_ms", query.wait_ms.as_deref())?.unwrap_or(0);
    if !(0..=WAIT_MAX_MS).contains(&wait_ms) {
        return Err(Problem::invalid("wait_ms", format!("must be in 0..={WAIT_MAX_MS}, got {wait_ms}")));
    }
    let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0));
    let waiting = app.engine.waiting();
    let _open = (!wait.is_zero()).then(|| app.metrics.process.long_poll());
    let answer = tokio::select! {
        answer = waiting.result(id, wait) => answer,
        () = app.stop.cancelled() => waiting.result(id, Duration::ZERO).await,
    };
    Ok(match answer.map_err(|error| Problem::from(error).about(id))? {
        AwaitResultReply::Ended { failure, outcome, result, result_encoding } => {
            let encoding = result_encoding.as_deref().unwrap_or("json");
            let (result, result_encoding) = result.map(|result| payload::shown(&result.0, encoding)).unzip();
            Json(ResultShape { execution_id: id, outcome, result, result_encoding, failure }).into_response()
        }
        AwaitResultReply::Waiting { state } => {
            (StatusCode::ACCEPTED, Json(NotYet { execution_id: id, state })).into_response()
        }
    })
}

#[derive(Serialize, ToSchema)]
struct History {
    execution_id: ExecutionId,
    attempts: Vec<Attempt>,
    suspension: Option<Suspension>,
    past_suspensions: Vec<PastSuspension>,
    operator_actions: Vec<OperatorAction>,
}

/// What happened to an execution: its attempts, suspensions and what operators did.
#[utoipa::path(
    get,
    path = "/v1/executions/{id}/history",
    params(Id),
    responses((status = 200, body = History)),
    extensions(("x-ff-codes" = json!("execution_not_found attempt_not_found"))),
)]
async fn history(State(app): State<App>, Id(id): Id) -> JsonAnswer<History> {
    let execution = app.operations.describe(id).await.map_err(|error| Problem::from(error).about(id))?;
    let older = u32::try_from(execution.attempts_spilled).unwrap_or(u32::MAX);
    let operations = &app.operations;
    let mut attempts: Vec<Attempt> = stream::iter(older.saturating_sub(ATTEMPTS_MAX)..older)
        .map(|index| async move { operations.attempt(id, index).await })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    attempts.extend(execution.attempts);
    let operator_actions = execution.operator_actions.into_iter().collect();
    let suspension = execution.suspension.map(Suspension::from);
    let past_suspensions = execution.past_suspensions.into_iter().collect();
    Ok(Json(History { execution_id: id, attempts, suspension, past_suspensions, operator_actions }))
}
