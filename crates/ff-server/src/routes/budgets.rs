//! Budgets: made and changed by operators, reserved from and reported to by anyone.

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{get, post};
use axum::{Json, Router};
use ff_core::types::{BudgetId, ExecutionId};
use ff_engine::operations::{BudgetPatch, LimitPatch, reservation_id as reservation_id_of};
use ff_engine::{BLOCKED_PAGE_MAX, BudgetCursor, BudgetFilter, NewBudget};
use ff_script::generated::{DimensionLimit, OnHard, OnSoft, ScopeType};
use serde::{Deserialize, Deserializer};
use uuid::Uuid;

use super::suspend::word;
use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body::Body;
use crate::problem::{Answer, Problem};
use crate::query::{Query, limit_of};
use crate::shape::Listed;
use crate::shape::blocked::LineShape;
use crate::shape::budget::{BudgetShape, Once, OutcomeShape, ResetShape, ScopeBody, amounts, limits};
use crate::shape::task::FenceBody;

/// How long a reservation without a lease holds, unless it says.
const TTL_MS: i64 = 60_000;
/// The most budgets of a page.
const PAGE_MAX: i64 = 64;

pub fn routes() -> Router<App> {
    Router::new()
        .route("/v1/budgets", get(list).post(create))
        .route("/v1/budgets/{name}", get(show).patch(change).delete(delete))
        .route("/v1/budgets/{name}/blocked", get(blocked))
        .route("/v1/budgets/{name}/reset", post(reset))
        .route("/v1/budgets/{name}/approve", post(approve))
        .route("/v1/budgets/{name}/correct", post(correct))
        .route("/v1/budgets/{name}/reserve", post(reserve))
        .route("/v1/budgets/{name}/usage", post(usage))
        .route("/v1/budgets/{name}/settle", post(settle))
        .route("/v1/budgets/{name}/release", post(release))
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
    let limit = |(name, LimitBody { hard, soft }): (String, LimitBody)| {
        limits(&name, hard, soft).map(|()| DimensionLimit { name, hard, soft })
    };
    let new = NewBudget {
        budget_id: body.budget_id,
        namespace: body.namespace.unwrap_or_else(|| "default".to_owned()),
        parent: body.parent,
        scope,
        dimensions: body.dimensions.0.into_iter().map(limit).collect::<Answer<_>>()?,
        reset: body.reset.unwrap_or_else(|| ResetShape::Word("none".to_owned())).reset()?,
        on_soft: on_soft(body.on_soft.as_deref())?.unwrap_or(OnSoft::Notify),
        on_hard: on_hard(body.on_hard.as_deref())?.unwrap_or(OnHard::Suspend),
    };
    caller.check(&new.namespace, None)?;
    if let Some(parent) = new.parent {
        app.check_budget(&caller, parent).await?;
    }
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

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> JsonAnswer<Listed<BudgetShape>> {
    let limit = limit_of(query.limit.as_deref())?.min(PAGE_MAX);
    let after = query.cursor.as_deref().filter(|text| !text.is_empty()).map(str::parse::<BudgetCursor>).transpose()?;
    let scope =
        query.scope.as_deref().map(|text| word("scope", text, ScopeType::ALL, ScopeType::as_str)).transpose()?;
    let filter = BudgetFilter { namespace: caller.namespace(query.namespace)?, scope };
    let page = app.operations.budgets(&filter, after, usize::try_from(limit).expect("a page is small")).await?;
    Ok(Json(Listed {
        items: page.items.into_iter().map(BudgetShape::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.to_string()),
    }))
}

async fn show(State(app): State<App>, Path(id): Path) -> JsonAnswer<BudgetShape> {
    Ok(Json(app.operations.budget(id).await?.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockedQuery {
    limit: Option<String>,
    cursor: Option<String>,
}

/// Who waits for it, the first to go on first.
async fn blocked(State(app): State<App>, Path(id): Path, Query(query): Query<BlockedQuery>) -> JsonAnswer<LineShape> {
    let limit = usize::try_from(limit_of(query.limit.as_deref())?).unwrap_or(BLOCKED_PAGE_MAX);
    let after = query.cursor.as_deref().filter(|text| !text.is_empty()).map(str::parse).transpose()?;
    Ok(Json(app.operations.blocked_on_budget(id, after, limit).await?.into()))
}

async fn delete(State(app): State<App>, caller: Caller, Path(id): Path) -> Answer<StatusCode> {
    app.operations.delete_budget(id, caller.name()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Limits of one dimension; null means none, and what is not named stays.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitPatchBody {
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
    dimensions: Once<LimitPatchBody>,
    on_soft: Option<String>,
    on_hard: Option<String>,
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path,
    Body(body): Body<ChangeBody>,
) -> JsonAnswer<BudgetShape> {
    for (name, patch) in &body.dimensions.0 {
        limits(name, patch.hard.flatten(), patch.soft.flatten())?;
    }
    let patched =
        body.dimensions.0.into_iter().map(|(name, LimitPatchBody { hard, soft })| (name, LimitPatch { hard, soft }));
    let patch = BudgetPatch {
        limits: patched.collect(),
        on_soft: on_soft(body.on_soft.as_deref())?,
        on_hard: on_hard(body.on_hard.as_deref())?,
    };
    Ok(Json(app.operations.patch_budget(id, &patch, caller.name()).await?.into()))
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
async fn reserve(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path,
    Body(body): Body<ReserveBody>,
) -> JsonAnswer<OutcomeShape> {
    let reservation_id = body.dedup_key.as_deref().map_or_else(Uuid::now_v7, |key| reservation_id_of(id, key));
    let dimensions = amounts(body.dimensions)?;
    let reserved = match (body.execution_id, body.fence) {
        (Some(execution), Some(fence)) => {
            if body.ttl_ms.is_some() {
                return Err(Problem::invalid("ttl_ms", "belongs to a reservation without a fence"));
            }
            app.check_fence(&caller, execution, fence.lease_id).await?;
            app.operations.reserve_under_lease(execution, &fence.into(), id, reservation_id, dimensions).await?
        }
        (None, None) => app.operations.reserve(id, reservation_id, dimensions, body.ttl_ms.unwrap_or(TTL_MS)).await?,
        (Some(_), None) => return Err(Problem::invalid("fence", "is missing")),
        (None, Some(_)) => return Err(Problem::invalid("execution_id", "is missing")),
    };
    Ok(Json(OutcomeShape::of_reservation(reservation_id, reserved)))
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
