//! Reading one execution: everything, its result, its history, and why it is not running.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use ff_core::ErrorCode;
use ff_core::types::{ExecutionId, QuotaPolicyId};
use ff_engine::operations::{Room, set_of_lane};
use ff_script::Error;
use ff_script::generated::{
    AwaitResultReply, Execution, ExplainExecutionReply, LaneState, LifecyclePhase, Outcome, PublicState, Worker,
    WorkerState,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::app::{App, Id, JsonAnswer, Number};
use crate::payload;
use crate::problem::{Answer, Problem};
use crate::query::{Query, number};
use crate::shape::execution::{ActionShape, AttemptShape, ExecutionShape, FailureShape};
use crate::shape::quota::KeyShape;
use crate::shape::suspension::{PastShape, SuspensionShape};

const WAIT_MAX_MS: i64 = 30_000;
const ATTEMPTS_MAX: u32 = 1_000;
const AT_ONCE: usize = 16;

pub fn routes() -> Router<App> {
    Router::new()
        // PATCH and DELETE of the same path change it.
        .route("/v1/executions/{id}", get(show).patch(super::change::patch).delete(super::change::delete))
        .route("/v1/executions/{id}/result", get(result))
        .route("/v1/executions/{id}/explain", get(explain))
        .route("/v1/executions/{id}/history", get(history))
        .route("/v1/executions/{id}/attempts/{n}", get(attempt))
}

async fn show(State(app): State<App>, Id(id): Id) -> JsonAnswer<ExecutionShape> {
    let execution = app.operations.describe(id).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(execution.into()))
}

async fn attempt(State(app): State<App>, Id(id): Id, Number(n): Number) -> JsonAnswer<AttemptShape> {
    let attempt = app.operations.attempt(id, n).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(attempt.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultQuery {
    wait_ms: Option<String>,
}

#[derive(Serialize)]
struct ResultShape {
    execution_id: ExecutionId,
    outcome: Outcome,
    result: Option<Box<RawValue>>,
    result_encoding: Option<&'static str>,
    failure: Option<FailureShape>,
}

#[derive(Serialize)]
struct NotYet {
    execution_id: ExecutionId,
    state: PublicState,
}

/// The outcome; waits for it when asked to, and says where the execution stands when it has none yet.
async fn result(State(app): State<App>, Id(id): Id, Query(query): Query<ResultQuery>) -> Answer<Response> {
    let wait_ms = number("wait_ms", query.wait_ms.as_deref())?.unwrap_or(0);
    if !(0..=WAIT_MAX_MS).contains(&wait_ms) {
        return Err(Problem::invalid("wait_ms", format!("must be in 0..={WAIT_MAX_MS}, got {wait_ms}")));
    }
    let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0));
    let waiting = app.engine.waiting();
    let answer = tokio::select! {
        answer = waiting.result(id, wait) => answer,
        () = app.stop.cancelled() => waiting.result(id, Duration::ZERO).await,
    };
    Ok(match answer.map_err(|error| Problem::from(error).about(id))? {
        AwaitResultReply::Ended { failure, outcome, result, result_encoding } => {
            let encoding = result_encoding.as_deref().unwrap_or("json");
            let (result, result_encoding) = result.map(|result| payload::shown(&result.0, encoding)).unzip();
            let failure = failure.map(FailureShape::from);
            Json(ResultShape { execution_id: id, outcome, result, result_encoding, failure }).into_response()
        }
        AwaitResultReply::Waiting { state } => {
            (StatusCode::ACCEPTED, Json(NotYet { execution_id: id, state })).into_response()
        }
    })
}

#[derive(Serialize)]
struct History {
    execution_id: ExecutionId,
    attempts: Vec<AttemptShape>,
    suspension: Option<SuspensionShape>,
    past_suspensions: Vec<PastShape>,
    operator_actions: Vec<ActionShape>,
}

async fn history(State(app): State<App>, Id(id): Id) -> JsonAnswer<History> {
    let execution = app.operations.describe(id).await.map_err(|error| Problem::from(error).about(id))?;
    let older = u32::try_from(execution.attempts_spilled).unwrap_or(u32::MAX);
    let operations = &app.operations;
    let mut attempts: Vec<AttemptShape> = stream::iter(older.saturating_sub(ATTEMPTS_MAX)..older)
        .map(|index| async move { operations.attempt(id, index).await.map(AttemptShape::from) })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    attempts.extend(execution.attempts.into_iter().map(AttemptShape::from));
    let operator_actions = execution.operator_actions.into_iter().map(ActionShape::from).collect();
    let suspension = execution.suspension.map(SuspensionShape::from);
    let past_suspensions = execution.past_suspensions.into_iter().map(PastShape::from).collect();
    Ok(Json(History { execution_id: id, attempts, suspension, past_suspensions, operator_actions }))
}

/// Why an execution is not running, and what would change that.
#[derive(Serialize)]
struct Explained {
    execution_id: ExecutionId,
    state: PublicState,
    /// True while nothing but its turn is missing, or when it runs.
    can_run: bool,
    reasons: Vec<Reason>,
    lane: LaneFacts,
    /// Its place in the queue of its partition, while it waits there.
    place: Option<Place>,
    requires: Option<Requires>,
    /// Each quota it names, as its key stands now.
    quotas: Vec<QuotaFacts>,
    /// What it waits for: open waitpoints and how far its condition is.
    suspension: Option<SuspensionShape>,
}

#[derive(Serialize)]
struct QuotaFacts {
    quota_id: Uuid,
    weight: i64,
    /// Says so when the quota is gone: nothing starts that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'static str>,
    #[serde(flatten)]
    state: KeyShape,
}

#[derive(Serialize)]
struct Reason {
    reason: &'static str,
    detail: BTreeMap<String, String>,
    /// What would unblock it.
    remedy: String,
}

#[derive(Serialize)]
struct LaneFacts {
    namespace: String,
    lane: String,
    state: &'static str,
    /// How many of its executions may run at once, and how many count against that.
    max_active: Option<i64>,
    active: Option<i64>,
}

#[derive(Serialize)]
struct Place {
    queue: String,
    ahead: i64,
}

#[derive(Serialize)]
struct Requires {
    capabilities: Vec<String>,
    /// Some live worker of the lane has them all.
    covered: bool,
    nearest: Option<Nearest>,
}

#[derive(Serialize)]
struct Nearest {
    instance: String,
    missing: Vec<String>,
}

async fn explain(State(app): State<App>, Id(id): Id) -> JsonAnswer<Explained> {
    let facts = app.operations.explain(id).await.map_err(|error| Problem::from(error).about(id))?;
    let ExplainExecutionReply::Facts { ahead, execution, lane_state, max_active, queue, .. } = facts;
    let room = match max_active {
        Some(_) => Some(app.operations.room(&set_of_lane(&execution.namespace, &execution.lane)).await?),
        None => None,
    };
    let workers = app.operations.workers().await?;
    let serving = serving(&execution, &workers);
    let requires = (!execution.requires.is_empty()).then(|| coverage(&execution, &serving));
    let lane_state = lane_state.unwrap_or(LaneState::Active);
    let reasons = reasons(&execution, lane_state, room, &serving, requires.as_ref());
    let quotas = quota_facts(&app, &execution).await?;
    Ok(Json(Explained {
        execution_id: id,
        state: execution.state,
        can_run: execution.phase != LifecyclePhase::Terminal && reasons.is_empty(),
        reasons,
        lane: LaneFacts {
            namespace: execution.namespace,
            lane: execution.lane,
            state: lane_state.as_str(),
            max_active,
            active: room.map(|room| room.held),
        },
        place: ahead.map(|ahead| Place { queue, ahead }),
        requires,
        quotas,
        suspension: execution.suspension.map(SuspensionShape::from),
    }))
}

async fn quota_facts(app: &App, execution: &Execution) -> Answer<Vec<QuotaFacts>> {
    let mut facts = Vec::new();
    for quota in execution.quotas.iter().filter(|_| execution.phase != LifecyclePhase::Terminal) {
        let found = match app.operations.quota(QuotaPolicyId::from_uuid(quota.quota_id), Some(&quota.key)).await {
            Ok((_, state)) => state.map(KeyShape::from),
            Err(Error::Engine(error)) if error.error_code() == Some(ErrorCode::QuotaNotFound) => None,
            Err(error) => return Err(error.into()),
        };
        let problem = found.is_none().then_some("not found");
        let state = found.unwrap_or_else(|| KeyShape::unknown(&quota.key));
        facts.push(QuotaFacts { quota_id: quota.quota_id, weight: quota.weight.unwrap_or(1), problem, state });
    }
    Ok(facts)
}

/// Live workers that take from the execution's lane.
fn serving<'a>(execution: &Execution, workers: &'a [Worker]) -> Vec<&'a Worker> {
    workers
        .iter()
        .filter(|worker| {
            worker.state == WorkerState::Live
                && worker.namespace == execution.namespace
                && worker.lanes.contains(&execution.lane)
        })
        .collect()
}

fn coverage(execution: &Execution, serving: &[&Worker]) -> Requires {
    let missing = |worker: &Worker| -> Vec<String> {
        execution.requires.iter().filter(|token| !worker.capabilities.contains(token)).cloned().collect()
    };
    let nearest = serving
        .iter()
        .map(|worker| Nearest { instance: worker.instance.clone(), missing: missing(worker) })
        .min_by_key(|nearest| nearest.missing.len());
    let covered = nearest.as_ref().is_some_and(|nearest| nearest.missing.is_empty());
    Requires { capabilities: execution.requires.clone(), covered, nearest }
}

fn reasons(
    execution: &Execution,
    lane: LaneState,
    room: Option<Room>,
    serving: &[&Worker],
    requires: Option<&Requires>,
) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut say = |reason, detail: &[(&str, String)], remedy: String| {
        let detail = detail.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        reasons.push(Reason { reason, detail, remedy });
    };
    match execution.phase {
        LifecyclePhase::Terminal => {
            let outcome = execution.outcome.map(|outcome| outcome.to_string()).unwrap_or_default();
            say("ended", &[("outcome", outcome)], "replay it to run it again".to_owned());
            return reasons;
        }
        LifecyclePhase::Active => return reasons,
        LifecyclePhase::Suspended => {
            let facts = execution.suspension.clone().map(|suspension| SuspensionShape::from(suspension).facts());
            say(
                "suspended",
                &facts.unwrap_or_default(),
                "it goes on when its condition is met; an operator may resume, fail or cancel it".to_owned(),
            );
            return reasons;
        }
        LifecyclePhase::Runnable => {}
    }
    if let Some(until) = execution.delay_until.filter(|_| execution.state == PublicState::Delayed) {
        say(
            "delayed",
            &[("delay_until", until.to_string())],
            "it becomes eligible then; PATCH delay_until to change it".to_owned(),
        );
    }
    if let Some(reason) = execution.blocking_reason {
        let detail: Vec<(&str, String)> =
            execution.blocking_detail.iter().flatten().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let remedy = match (reason.as_str(), requires.and_then(|requires| requires.nearest.as_ref())) {
            ("waiting_for_capable_worker", Some(nearest)) => {
                format!("{} lacks only {}", nearest.instance, nearest.missing.join(", "))
            }
            ("waiting_for_capable_worker", None) => {
                "start a worker of this lane that has the required capabilities".to_owned()
            }
            ("held_by_operator", _) => "release it".to_owned(),
            _ => "it goes on by itself once that has cleared".to_owned(),
        };
        say(reason.as_str(), &detail, remedy);
    }
    if matches!(lane, LaneState::Paused | LaneState::Disabled) {
        say("lane_state", &[("state", lane.to_string())], "resume the lane".to_owned());
    }
    if let Some(Room { held, limit: Some(limit) }) =
        room.filter(|room| room.free() <= 0 && execution.granted_until.is_none())
    {
        say(
            "max_active",
            &[
                ("problem", format!("lane is at max_active {held} of {limit}")),
                ("active", held.to_string()),
                ("max_active", limit.to_string()),
            ],
            "it starts when one of the lane's running executions ends; PUT the lane with a higher max_active to start it now"
                .to_owned(),
        );
    }
    if let Some(until) = execution.granted_until {
        say(
            "granted",
            &[("granted_until", until.to_string())],
            "its worker starts it, or the grant runs out".to_owned(),
        );
    }
    if serving.is_empty() {
        say("no_worker", &[("lane", execution.lane.clone())], "start a worker that registers for this lane".to_owned());
    } else if execution.blocking_reason.is_none() && requires.is_some_and(|requires| !requires.covered) {
        let nearest = requires.and_then(|requires| requires.nearest.as_ref());
        let missing = nearest.map(|nearest| nearest.missing.join(",")).unwrap_or_default();
        say("missing_capabilities", &[("missing", missing)], "start a worker of this lane that has them".to_owned());
    }
    reasons
}
