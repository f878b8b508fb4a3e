//! What a running attempt uses of budgets and quotas: reports, reservations, a provider's "too many", and what it weighed.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_engine::UsageAnswer;
use ff_engine::operations::{ThrottleUntil, reservation_id};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::problem::{Answer, Problem};
use crate::shape::budget::{AMOUNT_MAX, OutcomeShape, amounts};
use ff_core::json::Once;
use ff_script::generated::{Fence, LedgerLine};

/// The longest a key is throttled at once.
const THROTTLE_MAX_MS: i64 = 86_400_000;

pub fn routes() -> Described {
    Described::new()
        .with(routes!(report))
        .with(routes!(reserve))
        .with(routes!(settle))
        .with(routes!(release))
        .with(routes!(throttle))
        .with(routes!(weigh))
        .with(routes!(ledger))
}

/// The answer of a fenced call; a lease that ended with it, or before it, frees its slot.
fn heard<T>(
    app: &App,
    id: ExecutionId,
    fence: Fence,
    answer: Result<T, ff_script::Error>,
    ends: impl FnOnce(&T) -> bool,
) -> Answer<T> {
    let answer = answer.map_err(|error| Problem::from(error).about(id));
    let over = match &answer {
        Ok(answer) => ends(answer),
        Err(problem) => problem.ends_lease(),
    };
    if over {
        app.fleet.ended(fence.lease_id);
    }
    answer
}

fn ended(answer: &UsageAnswer) -> bool {
    matches!(answer, UsageAnswer::HardBreach { ended: true, .. })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReportUsageBody)]
struct ReportBody {
    fence: Fence,
    budget_id: BudgetId,
    #[schema(value_type = vocabulary::Amounts)]
    dimensions: Once<i64>,
    #[schema(value_type = Option<vocabulary::DedupKey>)]
    dedup_key: Option<String>,
    request_id: Option<String>,
}

/// Reports what a running attempt used; a request id makes it safe to repeat as well as a key does.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/usage",
    params(Id),
    request_body = ReportBody,
    responses((status = 200, body = OutcomeShape)),
    extensions(("x-ff-codes" = json!("fence budget_not_found hard_breach usage_pending"))),
)]
async fn report(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ReportBody>,
) -> JsonAnswer<OutcomeShape> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    app.check_budget(&caller, body.budget_id).await?;
    let key = body.dedup_key.or_else(|| body.request_id.map(|request| format!("{id}:{request}")));
    let dimensions = amounts(body.dimensions)?;
    let answer = app.operations.report_usage(id, &body.fence, body.budget_id, dimensions, key).await;
    Ok(Json(heard(&app, id, body.fence, answer, ended)?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReserveForTaskBody)]
struct ReserveBody {
    fence: Fence,
    budget_id: BudgetId,
    #[schema(value_type = vocabulary::Amounts)]
    dimensions: Once<i64>,
    #[schema(value_type = Option<vocabulary::DedupKey>)]
    dedup_key: Option<String>,
    request_id: Option<String>,
}

/// Holds amounts for as long as the lease lives. The same key under the same lease is the same reservation.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/reserve",
    params(Id),
    request_body = ReserveBody,
    responses((status = 200, body = OutcomeShape)),
    extensions(("x-ff-codes" = json!("fence budget_not_found idempotency_conflict hard_breach"))),
)]
async fn reserve(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ReserveBody>,
) -> JsonAnswer<OutcomeShape> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    app.check_budget(&caller, body.budget_id).await?;
    let key = body.dedup_key.or(body.request_id).unwrap_or_else(|| Uuid::now_v7().to_string());
    let reserved_as = reservation_id(body.budget_id, &format!("{}:{key}", body.fence.lease_id));
    let dimensions = amounts(body.dimensions)?;
    let operations = &app.operations;
    let answer = operations.reserve_under_lease(id, &body.fence, body.budget_id, reserved_as, dimensions).await;
    let reserved = heard(&app, id, body.fence, answer, |_| false)?;
    Ok(Json(OutcomeShape::of_reservation(reserved_as, reserved)))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SettleForTaskBody)]
struct SettleBody {
    /// Without one, what was used stands in no execution's ledger.
    fence: Option<Fence>,
    budget_id: BudgetId,
    reservation_id: Uuid,
    #[schema(value_type = vocabulary::Amounts)]
    dimensions: Once<i64>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// Turns a reservation into what was really used; the difference returns.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/settle",
    params(Id),
    request_body = SettleBody,
    responses((status = 200, body = OutcomeShape)),
    extensions(("x-ff-codes" = json!("fence budget_not_found reservation_not_found hard_breach usage_pending"))),
)]
async fn settle(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<SettleBody>,
) -> JsonAnswer<OutcomeShape> {
    app.check_budget(&caller, body.budget_id).await?;
    let dimensions = amounts(body.dimensions)?;
    let (operations, budget, reservation) = (&app.operations, body.budget_id, body.reservation_id);
    let Some(fence) = body.fence else {
        let mut shape = OutcomeShape::from(operations.settle_reservation(budget, reservation, dimensions).await?);
        shape.lease_ended = None;
        return Ok(Json(shape));
    };
    app.check_fence(&caller, id, fence.lease_id).await?;
    let answer = operations.settle_under_lease(id, &fence, budget, reservation, dimensions).await;
    Ok(Json(heard(&app, id, fence, answer, ended)?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReleaseForTaskBody)]
struct ReleaseBody {
    fence: Option<Fence>,
    budget_id: BudgetId,
    reservation_id: Uuid,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// Gives a reservation back unused.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/release",
    params(Id),
    request_body = ReleaseBody,
    responses((status = 200, body = OutcomeShape)),
    extensions(("x-ff-codes" = json!("fence budget_not_found reservation_not_found hard_breach"))),
)]
async fn release(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ReleaseBody>,
) -> JsonAnswer<OutcomeShape> {
    app.check_budget(&caller, body.budget_id).await?;
    if let Some(fence) = body.fence {
        app.check_fence(&caller, id, fence.lease_id).await?;
        let answer = app.operations.check_lease(id, &fence).await;
        heard(&app, id, fence, answer, |()| false)?;
    }
    app.operations.release_reservation(body.budget_id, body.reservation_id).await?;
    Ok(Json(OutcomeShape { outcome: "released", ..OutcomeShape::default() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ThrottleForTaskBody)]
struct ThrottleBody {
    fence: Fence,
    quota_id: QuotaPolicyId,
    #[schema(value_type = vocabulary::QuotaKey)]
    key: String,
    /// Until when nothing starts; a time that has passed changes nothing, 0 ends it.
    #[serde(alias = "until_ms")]
    #[schema(value_type = Option<vocabulary::TimeMs>)]
    until: Option<i64>,
    /// For how long, as a provider's `Retry-After` says it.
    #[schema(minimum = 1, maximum = 86_400_000)]
    retry_after_ms: Option<i64>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Throttled {
    quota_id: QuotaPolicyId,
    key: String,
    throttled_until: Option<i64>,
}

/// A provider had enough: nobody starts under the key until it recovers.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/throttle",
    params(Id),
    request_body = ThrottleBody,
    responses((status = 200, body = Throttled)),
    extensions(("x-ff-codes" = json!("fence quota_not_found hard_breach"))),
)]
async fn throttle(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ThrottleBody>,
) -> JsonAnswer<Throttled> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    app.check_quota(&caller, body.quota_id).await?;
    let until = match (body.until, body.retry_after_ms) {
        (Some(at), None) => ThrottleUntil::Time(at),
        (None, Some(ms)) if (1..=THROTTLE_MAX_MS).contains(&ms) => ThrottleUntil::For(ms),
        (None, Some(ms)) => {
            let problem = format!("must be in 1..={THROTTLE_MAX_MS}, got {ms}");
            return Err(Problem::invalid("retry_after_ms", problem));
        }
        _ => return Err(Problem::invalid("until", "or retry_after_ms must be given, not both")),
    };
    let ThrottleBody { fence, quota_id, key, .. } = body;
    let answer = app.operations.throttle_under_lease(id, &fence, quota_id, &key, until).await;
    let throttled_until = heard(&app, id, fence, answer, |_| false)?;
    Ok(Json(Throttled { quota_id, key, throttled_until }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WeightBody {
    fence: Fence,
    quota_id: QuotaPolicyId,
    #[schema(value_type = vocabulary::QuotaKey)]
    key: String,
    #[schema(value_type = vocabulary::Count)]
    weight: i64,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// Says what the attempt really weighed under a key: more or less than it was admitted with.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/weight",
    params(Id),
    request_body = WeightBody,
    responses((status = 200, body = OutcomeShape)),
    extensions(("x-ff-codes" = json!("fence quota_not_found hard_breach"))),
)]
async fn weigh(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<WeightBody>,
) -> JsonAnswer<OutcomeShape> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    app.check_quota(&caller, body.quota_id).await?;
    let WeightBody { fence, quota_id, key, weight, .. } = body;
    if !(0..=AMOUNT_MAX).contains(&weight) {
        return Err(Problem::invalid("weight", format!("must be in 0..={AMOUNT_MAX}, got {weight}")));
    }
    let answer = app.operations.settle_weight(id, &fence, quota_id, &key, weight).await;
    let settled = heard(&app, id, fence, answer, |_| false)?;
    Ok(Json(OutcomeShape { outcome: if settled { "ok" } else { "gone" }, ..OutcomeShape::default() }))
}

/// What an execution used.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionUsage)]
struct UsageShape {
    execution_id: ExecutionId,
    ledger: Vec<LedgerLine>,
    /// The sum of what was accepted, by dimension.
    used: BTreeMap<String, i64>,
    /// Reports that wait for their budget's answer.
    pending: usize,
}

/// What an execution used of its budgets, by attempt.
#[utoipa::path(
    get,
    path = "/v1/executions/{id}/usage",
    params(Id),
    responses((status = 200, body = UsageShape)),
    extensions(("x-ff-codes" = json!("execution_not_found"))),
)]
async fn ledger(State(app): State<App>, Id(id): Id) -> JsonAnswer<UsageShape> {
    let usage = app.operations.usage(id).await.map_err(|error| Problem::from(error).about(id))?;
    let mut used: BTreeMap<String, i64> = BTreeMap::new();
    for line in &usage.ledger {
        let sum = used.entry(line.dimension.clone()).or_default();
        *sum = sum.saturating_add(line.accepted);
    }
    let ledger = usage.ledger.into_iter().collect();
    Ok(Json(UsageShape { execution_id: id, ledger, used, pending: usage.pending.len() }))
}
