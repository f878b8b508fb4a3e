//! Budgets: made and changed by operators, reserved from and reported to by anyone.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ff_core::types::{BudgetId, ExecutionId};
use ff_engine::operations::{BudgetPatch, LimitPatch, reservation_id as reservation_id_of};
use ff_engine::{BLOCKED_PAGE_MAX, BudgetCursor, BudgetFilter, NewBudget};
use ff_script::generated::{DimensionLimit, OnHard, OnSoft, ScopeType};
use serde::{Deserialize, Deserializer};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, BudgetPath, JsonAnswer};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::problem::{Answer, Problem};
use crate::query::{Query, limit_of};
use crate::shape::Listed;
use crate::shape::blocked::LineShape;
use crate::shape::budget::{BudgetShape, Object, OutcomeShape, ResetShape, ScopeBody, amounts, limits};
use crate::word::word;
use ff_core::json::Once;
use ff_script::generated::Fence;

/// How long a reservation without a lease holds, unless it says.
const TTL_MS: i64 = 60_000;
/// The most budgets of a page.
const PAGE_MAX: i64 = 64;

pub fn routes() -> Described {
    Described::new()
        .with(routes!(list, create))
        .with(routes!(show, change, delete))
        .with(routes!(blocked))
        .with(routes!(reset))
        .with(routes!(approve))
        .with(routes!(correct))
        .with(routes!(reserve))
        .with(routes!(usage))
        .with(routes!(settle))
        .with(routes!(release))
        .showing::<LimitBody>()
        .showing::<LimitPatchBody>()
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LimitBody {
    #[schema(value_type = Option<vocabulary::LimitAmount>)]
    hard: Option<i64>,
    #[schema(value_type = Option<vocabulary::LimitAmount>)]
    soft: Option<i64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateBudgetBody)]
struct CreateBody {
    budget_id: Option<BudgetId>,
    #[schema(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    parent: Option<BudgetId>,
    scope: Option<ScopeBody>,
    #[schema(schema_with = vocabulary::by_some_dimension::<LimitBody>)]
    dimensions: Once<Object<LimitBody>>,
    reset: Option<ResetShape>,
    #[schema(value_type = Option<OnSoft>)]
    on_soft: Option<String>,
    #[schema(value_type = Option<OnHard>)]
    on_hard: Option<String>,
}

fn on_soft(text: Option<&str>) -> Answer<Option<OnSoft>> {
    text.map(|text| word("on_soft", text)).transpose()
}

fn on_hard(text: Option<&str>) -> Answer<Option<OnHard>> {
    text.map(|text| word("on_hard", text)).transpose()
}

/// Makes a budget, below another one when it names a parent.
#[utoipa::path(
    post,
    path = "/v1/budgets",
    request_body = CreateBody,
    responses((status = 201, description = "It is new.", body = BudgetShape), (status = 200, description = "It was there already: the same id with the same definition.", body = BudgetShape)),
    extensions(("x-ff-codes" = json!("budget_not_found budget_in_use idempotency_conflict"))),
)]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<CreateBody>,
) -> Answer<(StatusCode, Json<BudgetShape>)> {
    let scope = body.scope.unwrap_or_else(|| ScopeBody::Bare("custom".to_owned())).scope()?;
    let limit = |(name, Object(LimitBody { hard, soft })): (String, Object<LimitBody>)| {
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

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    #[param(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    #[param(value_type = Option<ScopeType>)]
    scope: Option<String>,
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1_000)]
    limit: Option<String>,
    cursor: Option<String>,
}

/// One page of budgets, oldest first; at most 64.
#[utoipa::path(
    get,
    path = "/v1/budgets",
    params(ListQuery),
    responses((status = 200, body = Listed<BudgetShape>)),
)]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> JsonAnswer<Listed<BudgetShape>> {
    let limit = limit_of(query.limit.as_deref())?.min(PAGE_MAX);
    let after = query.cursor.as_deref().map(str::parse::<BudgetCursor>).transpose()?;
    let scope = query.scope.as_deref().map(|text| word("scope", text)).transpose()?;
    let filter = BudgetFilter { namespace: caller.namespace(query.namespace)?, scope };
    let page = app.operations.budgets(&filter, after, usize::try_from(limit).expect("a page is small")).await?;
    Ok(Json(Listed {
        items: page.items.into_iter().map(BudgetShape::from).collect(),
        next_cursor: page.next.map(|cursor| cursor.to_string()),
    }))
}

/// A budget as it stands.
#[utoipa::path(
    get,
    path = "/v1/budgets/{name}",
    params(BudgetPath),
    responses((status = 200, body = BudgetShape)),
    extensions(("x-ff-codes" = json!("budget_not_found"))),
)]
async fn show(State(app): State<App>, BudgetPath(id): BudgetPath) -> JsonAnswer<BudgetShape> {
    Ok(Json(app.operations.budget(id).await?.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BlockedQuery {
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1_000)]
    limit: Option<String>,
    cursor: Option<String>,
}

/// Who waits for it, the first to go on first.
#[utoipa::path(
    get,
    path = "/v1/budgets/{name}/blocked",
    params(BudgetPath, BlockedQuery),
    responses((status = 200, body = LineShape)),
    extensions(("x-ff-codes" = json!("budget_not_found"))),
)]
async fn blocked(
    State(app): State<App>,
    BudgetPath(id): BudgetPath,
    Query(query): Query<BlockedQuery>,
) -> JsonAnswer<LineShape> {
    let limit = usize::try_from(limit_of(query.limit.as_deref())?).unwrap_or(BLOCKED_PAGE_MAX);
    let after = query.cursor.as_deref().map(str::parse).transpose()?;
    Ok(Json(app.operations.blocked_on_budget(id, after, limit).await?.into()))
}

/// Deletes a budget that nothing holds from.
#[utoipa::path(
    delete,
    path = "/v1/budgets/{name}",
    params(BudgetPath),
    responses((status = 204, description = "It is gone.")),
    extensions(("x-ff-codes" = json!("budget_not_found budget_in_use"))),
)]
async fn delete(State(app): State<App>, caller: Caller, BudgetPath(id): BudgetPath) -> Answer<StatusCode> {
    app.operations.delete_budget(id, caller.name()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Limits of one dimension; null means none, and what is not named stays.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LimitPatchBody {
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<vocabulary::LimitAmount>)]
    hard: Option<Option<i64>>,
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<vocabulary::LimitAmount>)]
    soft: Option<Option<i64>>,
}

/// A field that is there, whatever it says.
fn named<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeBudgetBody)]
struct ChangeBody {
    #[serde(default)]
    #[schema(schema_with = vocabulary::by_dimension::<LimitPatchBody>, required = false)]
    dimensions: Once<Object<LimitPatchBody>>,
    #[schema(value_type = Option<OnSoft>)]
    on_soft: Option<String>,
    #[schema(value_type = Option<OnHard>)]
    on_hard: Option<String>,
}

/// Changes limits and what happens at them; what is not named stays.
#[utoipa::path(
    patch,
    path = "/v1/budgets/{name}",
    params(BudgetPath),
    request_body = ChangeBody,
    responses((status = 200, body = BudgetShape)),
    extensions(("x-ff-codes" = json!("budget_not_found budget_version_conflict"))),
)]
async fn change(
    State(app): State<App>,
    caller: Caller,
    BudgetPath(id): BudgetPath,
    Body(body): Body<ChangeBody>,
) -> JsonAnswer<BudgetShape> {
    for (name, Object(patch)) in &body.dimensions.0 {
        limits(name, patch.hard.flatten(), patch.soft.flatten())?;
    }
    let patched = |(name, Object(LimitPatchBody { hard, soft }))| (name, LimitPatch { hard, soft });
    let patch = BudgetPatch {
        limits: body.dimensions.0.into_iter().map(patched).collect(),
        on_soft: on_soft(body.on_soft.as_deref())?,
        on_hard: on_hard(body.on_hard.as_deref())?,
    };
    Ok(Json(app.operations.patch_budget(id, &patch, caller.name()).await?.into()))
}

/// Begins a new period: nothing is used.
#[utoipa::path(
    post,
    path = "/v1/budgets/{name}/reset",
    params(BudgetPath),
    responses((status = 200, body = BudgetShape)),
    extensions(("x-ff-codes" = json!("budget_not_found"))),
)]
async fn reset(State(app): State<App>, caller: Caller, BudgetPath(id): BudgetPath) -> JsonAnswer<BudgetShape> {
    Ok(Json(app.operations.reset_budget(id, caller.name()).await?.into()))
}

/// Lets a budget pass its soft limits until its next reset.
#[utoipa::path(
    post,
    path = "/v1/budgets/{name}/approve",
    params(BudgetPath),
    responses((status = 200, body = BudgetShape)),
    extensions(("x-ff-codes" = json!("budget_not_found"))),
)]
async fn approve(State(app): State<App>, caller: Caller, BudgetPath(id): BudgetPath) -> JsonAnswer<BudgetShape> {
    Ok(Json(app.operations.approve_budget(id, caller.name()).await?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CorrectBody {
    #[schema(value_type = vocabulary::Dimension)]
    dimension: String,
    #[schema(minimum = -9_007_199_254_740_991_i64, maximum = 9_007_199_254_740_991_i64)]
    delta: i64,
    #[schema(value_type = vocabulary::Reason)]
    reason: String,
}

/// Corrects what is used of a dimension, with a reason.
#[utoipa::path(
    post,
    path = "/v1/budgets/{name}/correct",
    params(BudgetPath),
    request_body = CorrectBody,
    responses((status = 200, body = BudgetShape)),
    extensions(("x-ff-codes" = json!("budget_not_found"))),
)]
async fn correct(
    State(app): State<App>,
    caller: Caller,
    BudgetPath(id): BudgetPath,
    Body(body): Body<CorrectBody>,
) -> JsonAnswer<BudgetShape> {
    let budget = app.operations.correct_budget(id, &body.dimension, body.delta, caller.name(), &body.reason).await?;
    Ok(Json(budget.into()))
}

/// The running attempt on whose behalf something is held or reported.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReserveBody {
    #[schema(value_type = vocabulary::Amounts)]
    dimensions: Once<i64>,
    #[schema(minimum = 1, maximum = 86_400_000)]
    ttl_ms: Option<i64>,
    #[schema(value_type = Option<vocabulary::DedupKey>)]
    dedup_key: Option<String>,
    execution_id: Option<ExecutionId>,
    fence: Option<Fence>,
}

/// Holds amounts: with the lease under a fence, else for a time. The same key is the same reservation.
#[utoipa::path(
    post,
    path = "/v1/budgets/{name}/reserve",
    params(BudgetPath),
    request_body = ReserveBody,
    responses((status = 200, body = OutcomeShape)),
    extensions(("x-ff-codes" = json!("budget_not_found idempotency_conflict fence"))),
)]
async fn reserve(
    State(app): State<App>,
    caller: Caller,
    BudgetPath(id): BudgetPath,
    Body(body): Body<ReserveBody>,
) -> JsonAnswer<OutcomeShape> {
    if body.dedup_key.as_deref().is_some_and(|key| !(1..=256).contains(&key.len())) {
        return Err(Problem::invalid("dedup_key", "must be 1 to 256 bytes long"));
    }
    let reservation_id = body.dedup_key.as_deref().map_or_else(Uuid::now_v7, |key| reservation_id_of(id, key));
    let dimensions = amounts(body.dimensions)?;
    let reserved = match (body.execution_id, body.fence) {
        (Some(execution), Some(fence)) => {
            if body.ttl_ms.is_some() {
                return Err(Problem::invalid("ttl_ms", "belongs to a reservation without a fence"));
            }
            app.check_fence(&caller, execution, fence.lease_id).await?;
            app.operations.reserve_under_lease(execution, &fence, id, reservation_id, dimensions).await?
        }
        (None, None) => app.operations.reserve(id, reservation_id, dimensions, body.ttl_ms.unwrap_or(TTL_MS)).await?,
        (Some(_), None) => return Err(Problem::invalid("fence", "is missing")),
        (None, Some(_)) => return Err(Problem::invalid("execution_id", "is missing")),
    };
    Ok(Json(OutcomeShape::of_reservation(reservation_id, reserved)))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UsageBody {
    #[schema(value_type = vocabulary::Amounts)]
    dimensions: Once<i64>,
    #[schema(value_type = Option<vocabulary::DedupKey>)]
    dedup_key: Option<String>,
}

/// Reports what was used outside of any execution.
#[utoipa::path(
    post,
    path = "/v1/budgets/{name}/usage",
    params(BudgetPath),
    request_body = UsageBody,
    responses((status = 200, body = OutcomeShape)),
    extensions(("x-ff-codes" = json!("budget_not_found"))),
)]
async fn usage(
    State(app): State<App>,
    BudgetPath(id): BudgetPath,
    Body(body): Body<UsageBody>,
) -> JsonAnswer<OutcomeShape> {
    let answer = app.operations.spend(id, amounts(body.dimensions)?, body.dedup_key).await?;
    Ok(Json(answer.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SettleBody {
    reservation_id: Uuid,
    #[schema(value_type = vocabulary::Amounts)]
    dimensions: Once<i64>,
}

/// Turns a reservation into what was really used; the difference returns.
#[utoipa::path(
    post,
    path = "/v1/budgets/{name}/settle",
    params(BudgetPath),
    request_body = SettleBody,
    responses((status = 200, body = OutcomeShape)),
    extensions(("x-ff-codes" = json!("budget_not_found reservation_not_found"))),
)]
async fn settle(
    State(app): State<App>,
    BudgetPath(id): BudgetPath,
    Body(body): Body<SettleBody>,
) -> JsonAnswer<OutcomeShape> {
    let answer = app.operations.settle_reservation(id, body.reservation_id, amounts(body.dimensions)?).await?;
    let mut shape = OutcomeShape::from(answer);
    shape.lease_ended = None;
    Ok(Json(shape))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReleaseReservationBody)]
struct ReleaseBody {
    reservation_id: Uuid,
}

/// Gives a reservation back unused.
#[utoipa::path(
    post,
    path = "/v1/budgets/{name}/release",
    params(BudgetPath),
    request_body = ReleaseBody,
    responses((status = 204, description = "It is given back.")),
    extensions(("x-ff-codes" = json!("budget_not_found reservation_not_found"))),
)]
async fn release(
    State(app): State<App>,
    BudgetPath(id): BudgetPath,
    Body(body): Body<ReleaseBody>,
) -> Answer<StatusCode> {
    app.operations.release_reservation(id, body.reservation_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
