//! Budgets: made and changed by operators, reserved from and reported to by anyone; and what a running attempt used.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{get, post};
use axum::{Json, Router};
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, ExecutionId};
use ff_engine::{BudgetCursor, BudgetFilter, BudgetLimits, NewBudget, Reserved, UsageAnswer};
use ff_script::generated::{DimensionLimit, OnHard, OnSoft, ScopeType};
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::suspend::word;
use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer, Name};
use crate::body::Body;
use crate::problem::{Answer, Problem};
use crate::query::{Query, limit_of};
use crate::shape::Listed;
use crate::shape::budget::{BudgetShape, LedgerShape, Once, OutcomeShape, ResetShape, ScopeBody, amounts};
use crate::shape::task::FenceBody;

/// How long a reservation without a lease holds, unless it says.
const TTL_MS: i64 = 60_000;
/// The most budgets of a page.
const PAGE_MAX: i64 = 64;
/// A change that meets another one is merged again so often.
const TRIES: usize = 4;

pub fn routes() -> Router<App> {
    Router::new()
        .route("/v1/budgets", get(list).post(create))
        .route("/v1/budgets/{name}", get(show).patch(change).delete(delete))
        .route("/v1/budgets/{name}/reset", post(reset))
        .route("/v1/budgets/{name}/approve", post(approve))
        .route("/v1/budgets/{name}/correct", post(correct))
        .route("/v1/budgets/{name}/reserve", post(reserve))
        .route("/v1/budgets/{name}/usage", post(usage))
        .route("/v1/budgets/{name}/settle", post(settle))
        .route("/v1/budgets/{name}/release", post(release))
        .route("/v1/tasks/{id}/usage", post(task_usage))
        .route("/v1/executions/{id}/usage", get(ledger))
}

/// The budget a path names.
struct Path(BudgetId);

impl<S: Send + Sync> FromRequestParts<S> for Path {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answer<Self> {
        let Name(text) = Name::from_request_parts(parts, state).await?;
        text.parse().map(Self).map_err(|_| Problem::invalid("budget_id", "must be a UUID"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitBody {
    hard: Option<i64>,
    soft: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    budget_id: Option<BudgetId>,
    namespace: Option<String>,
    parent: Option<BudgetId>,
    scope: Option<ScopeBody>,
    dimensions: Once<LimitBody>,
    reset: Option<ResetShape>,
    on_soft: Option<String>,
    on_hard: Option<String>,
}

fn on_soft(text: Option<&str>) -> Answer<Option<OnSoft>> {
    text.map(|text| word("on_soft", text, OnSoft::ALL, OnSoft::as_str)).transpose()
}

fn on_hard(text: Option<&str>) -> Answer<Option<OnHard>> {
    text.map(|text| word("on_hard", text, OnHard::ALL, OnHard::as_str)).transpose()
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<CreateBody>,
) -> Answer<(StatusCode, Json<BudgetShape>)> {
    let scope = body.scope.unwrap_or_else(|| ScopeBody::Bare("custom".to_owned())).scope()?;
    let limit = |(name, LimitBody { hard, soft })| DimensionLimit { name, hard, soft };
    let new = NewBudget {
        budget_id: body.budget_id,
        namespace: body.namespace.unwrap_or_else(|| "default".to_owned()),
        parent: body.parent,
        scope,
        dimensions: body.dimensions.0.into_iter().map(limit).collect(),
        reset: body.reset.unwrap_or_else(|| ResetShape::Word("none".to_owned())).reset()?,
        on_soft: on_soft(body.on_soft.as_deref())?.unwrap_or(OnSoft::Notify),
        on_hard: on_hard(body.on_hard.as_deref())?.unwrap_or(OnHard::Suspend),
    };
    let (budget, duplicate) = app.operations.create_budget(new, caller.name()).await?;
    let status = if duplicate { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(budget.into())))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    namespace: Option<String>,
    scope: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

async fn list(State(app): State<App>, Query(query): Query<ListQuery>) -> JsonAnswer<Listed<BudgetShape>> {
    let limit = limit_of(query.limit.as_deref())?.min(PAGE_MAX);
    let after = query.cursor.as_deref().filter(|text| !text.is_empty()).map(str::parse::<BudgetCursor>).transpose()?;
    let scope =
        query.scope.as_deref().map(|text| word("scope", text, ScopeType::ALL, ScopeType::as_str)).transpose()?;
    let filter = BudgetFilter { namespace: query.namespace, scope };
    let page = app.operations.budgets(&filter, after, usize::try_from(limit).expect("a page is small")).await?;
    Ok(Json(Listed {
        items: page.items.into_iter().map(BudgetShape::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.to_string()),
    }))
}

async fn show(State(app): State<App>, Path(id): Path) -> JsonAnswer<BudgetShape> {
    Ok(Json(app.operations.budget(id).await?.into()))
}

async fn delete(State(app): State<App>, caller: Caller, Path(id): Path) -> Answer<StatusCode> {
    app.operations.delete_budget(id, caller.name()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Limits of one dimension; null means none, and what is not named stays.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitPatch {
    #[serde(default, deserialize_with = "named")]
    hard: Option<Option<i64>>,
    #[serde(default, deserialize_with = "named")]
    soft: Option<Option<i64>>,
}

/// A field that is there, whatever it says.
fn named<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeBody {
    #[serde(default)]
    dimensions: Once<LimitPatch>,
    on_soft: Option<String>,
    on_hard: Option<String>,
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path,
    Body(body): Body<ChangeBody>,
) -> JsonAnswer<BudgetShape> {
    let (on_soft, on_hard) = (on_soft(body.on_soft.as_deref())?, on_hard(body.on_hard.as_deref())?);
    for tries in 1.. {
        let budget = app.operations.budget(id).await?.budget;
        let mut limits = Vec::new();
        for (name, patch) in &body.dimensions.0 {
            let Some(now) = budget.dimensions.iter().find(|dimension| dimension.name == *name) else {
                return Err(Problem::invalid(format!("dimensions.{name}"), "is no dimension of the budget"));
            };
            let (hard, soft) = (patch.hard.unwrap_or(now.hard), patch.soft.unwrap_or(now.soft));
            limits.push(DimensionLimit { name: name.clone(), hard, soft });
        }
        let change = BudgetLimits { limits, on_soft, on_hard, version: Some(budget.version) };
        match app.operations.change_budget(id, change, caller.name()).await {
            Ok(budget) => return Ok(Json(budget.into())),
            Err(error) => {
                let problem = Problem::from(error);
                if tries == TRIES || problem.code() != ErrorCode::BudgetVersionConflict.as_str() {
                    return Err(problem);
                }
            }
        }
    }
    unreachable!("the last try returns")
}

async fn reset(State(app): State<App>, caller: Caller, Path(id): Path) -> JsonAnswer<BudgetShape> {
    Ok(Json(app.operations.reset_budget(id, caller.name()).await?.into()))
}

async fn approve(State(app): State<App>, caller: Caller, Path(id): Path) -> JsonAnswer<BudgetShape> {
    Ok(Json(app.operations.approve_budget(id, caller.name()).await?.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorrectBody {
    dimension: String,
    delta: i64,
    reason: String,
}

async fn correct(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path,
    Body(body): Body<CorrectBody>,
) -> JsonAnswer<BudgetShape> {
    let budget = app.operations.correct_budget(id, &body.dimension, body.delta, caller.name(), &body.reason).await?;
    Ok(Json(budget.into()))
}

/// The running attempt on whose behalf something is held or reported.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReserveBody {
    dimensions: Once<i64>,
    ttl_ms: Option<i64>,
    dedup_key: Option<String>,
    execution_id: Option<ExecutionId>,
    fence: Option<FenceBody>,
}

/// Holds amounts: with the lease under a fence, else for a time. The same key is the same reservation.
async fn reserve(State(app): State<App>, Path(id): Path, Body(body): Body<ReserveBody>) -> JsonAnswer<OutcomeShape> {
    let reservation_id = body.dedup_key.as_deref().map_or_else(Uuid::now_v7, |key| derived(id, key));
    let dimensions = amounts(body.dimensions)?;
    let reserved = match (body.execution_id, body.fence) {
        (Some(execution), Some(fence)) => {
            if body.ttl_ms.is_some() {
                return Err(Problem::invalid("ttl_ms", "belongs to a reservation without a fence"));
            }
            app.operations.reserve_under_lease(execution, &fence.into(), id, reservation_id, dimensions).await?
        }
        (None, None) => app.operations.reserve(id, reservation_id, dimensions, body.ttl_ms.unwrap_or(TTL_MS)).await?,
        (Some(_), None) => return Err(Problem::invalid("fence", "is missing")),
        (None, Some(_)) => return Err(Problem::invalid("execution_id", "is missing")),
    };
    Ok(Json(match reserved {
        Reserved::Held { expires_at } => {
            OutcomeShape { outcome: "ok", reservation_id: Some(reservation_id), expires_at, ..OutcomeShape::default() }
        }
        Reserved::HardBreach { budget_id, dimension, used, limit } => OutcomeShape {
            outcome: "hard_breach",
            budget_id: Some(budget_id),
            dimension: Some(dimension),
            used: Some(used),
            limit: Some(limit),
            ..OutcomeShape::default()
        },
    }))
}

fn derived(budget: BudgetId, key: &str) -> Uuid {
    let digest = Sha256::new().chain_update(budget.as_uuid().as_bytes()).chain_update(key).finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageBody {
    dimensions: Once<i64>,
    dedup_key: Option<String>,
}

/// Reports what was used outside of any execution.
async fn usage(State(app): State<App>, Path(id): Path, Body(body): Body<UsageBody>) -> JsonAnswer<OutcomeShape> {
    let answer = app.operations.spend(id, amounts(body.dimensions)?, body.dedup_key).await?;
    Ok(Json(answer.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettleBody {
    reservation_id: Uuid,
    dimensions: Once<i64>,
}

async fn settle(State(app): State<App>, Path(id): Path, Body(body): Body<SettleBody>) -> JsonAnswer<OutcomeShape> {
    let answer = app.operations.settle_reservation(id, body.reservation_id, amounts(body.dimensions)?).await?;
    let mut shape = OutcomeShape::from(answer);
    shape.lease_ended = None;
    Ok(Json(shape))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseBody {
    reservation_id: Uuid,
}

async fn release(State(app): State<App>, Path(id): Path, Body(body): Body<ReleaseBody>) -> Answer<StatusCode> {
    app.operations.release_reservation(id, body.reservation_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskUsageBody {
    fence: FenceBody,
    budget_id: BudgetId,
    dimensions: Once<i64>,
    dedup_key: Option<String>,
    request_id: Option<String>,
}

/// Reports what a running attempt used; a request id makes it safe to repeat as well as a key does.
async fn task_usage(State(app): State<App>, Id(id): Id, Body(body): Body<TaskUsageBody>) -> JsonAnswer<OutcomeShape> {
    let key = body.dedup_key.or_else(|| body.request_id.map(|request| format!("{id}:{request}")));
    let dimensions = amounts(body.dimensions)?;
    let answer = app.operations.report_usage(id, &body.fence.into(), body.budget_id, dimensions, key).await;
    let answer = answer.map_err(|error| Problem::from(error).about(id));
    let over = match &answer {
        Ok(answer) => matches!(answer, UsageAnswer::HardBreach { ended: true, .. }),
        Err(problem) => problem.ends_lease(),
    };
    if over {
        app.fleet.ended(body.fence.lease_id);
    }
    Ok(Json(answer?.into()))
}

/// What an execution used.
#[derive(Serialize)]
struct UsageShape {
    execution_id: ExecutionId,
    ledger: Vec<LedgerShape>,
    /// The sum of what was accepted, by dimension.
    used: BTreeMap<String, i64>,
    /// Reports that wait for their budget's answer.
    pending: usize,
}

async fn ledger(State(app): State<App>, Id(id): Id) -> JsonAnswer<UsageShape> {
    let usage = app.operations.usage(id).await.map_err(|error| Problem::from(error).about(id))?;
    let mut used: BTreeMap<String, i64> = BTreeMap::new();
    for line in &usage.ledger {
        let sum = used.entry(line.dimension.clone()).or_default();
        *sum = sum.saturating_add(line.accepted);
    }
    let ledger = usage.ledger.into_iter().map(LedgerShape::from).collect();
    Ok(Json(UsageShape { execution_id: id, ledger, used, pending: usage.pending.len() }))
}
