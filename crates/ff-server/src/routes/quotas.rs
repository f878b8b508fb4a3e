//! Quotas: make, read, change, delete, and throttle a key.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ff_core::types::QuotaPolicyId;
use ff_engine::BLOCKED_PAGE_MAX;
use ff_script::generated::{Quota, QuotaRate, QuotaWeights, RateMode};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, JsonAnswer, QuotaPath};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::problem::{Answer, Problem};
use crate::query::{OFFSET_MAX, Query, limit_of, number};
use crate::shape::Listed;
use crate::shape::blocked::LineShape;
use crate::shape::quota::QuotaShape;
use crate::word::word;

/// How many keys a quota shows when none is asked for.
const KEYS_SHOWN: usize = 100;

pub fn routes() -> Described {
    Described::new()
        .with(routes!(list, create))
        .with(routes!(show, change, delete))
        .with(routes!(blocked))
        .with(routes!(throttle))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = QuotaRateBody)]
struct RateBody {
    #[schema(minimum = 1, maximum = 1_000_000)]
    limit: i64,
    #[schema(value_type = vocabulary::WindowMs)]
    window_ms: i64,
    #[schema(value_type = Option<RateMode>)]
    mode: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateQuotaBody)]
struct CreateBody {
    quota_id: Option<Uuid>,
    #[schema(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    rate: Option<RateBody>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    concurrency: Option<i64>,
    weighted: Option<QuotaWeights>,
    hold_while_suspended: Option<bool>,
}

impl RateBody {
    fn read(self) -> Answer<QuotaRate> {
        let mode = match self.mode {
            None => RateMode::Sliding,
            Some(mode) => word("rate.mode", &mode)?,
        };
        Ok(QuotaRate { limit: self.limit, window_ms: self.window_ms, mode })
    }
}

/// Makes a quota; it has a rate, a concurrency or a weighted part.
#[utoipa::path(
    post,
    path = "/v1/quotas",
    request_body = CreateBody,
    responses((status = 201, description = "It is new.", body = QuotaShape), (status = 200, description = "It was there already: the same id with the same definition.", body = QuotaShape)),
    extensions(("x-ff-codes" = json!("quota_version_conflict"))),
)]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<CreateBody>,
) -> Answer<(StatusCode, Json<QuotaShape>)> {
    let quota = Quota {
        rate: body.rate.map(RateBody::read).transpose()?,
        concurrency: body.concurrency,
        weighted: body.weighted,
        ..Quota::new(
            QuotaPolicyId::from_uuid(body.quota_id.unwrap_or_else(Uuid::now_v7)),
            body.namespace.unwrap_or_else(|| "default".to_owned()),
            body.hold_while_suspended.unwrap_or(false),
        )
    };
    caller.check(&quota.namespace, None)?;
    let (entry, new) = app.operations.create_quota(quota, caller.name()).await?;
    Ok((if new { StatusCode::CREATED } else { StatusCode::OK }, Json(entry.into())))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    #[param(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1_000)]
    limit: Option<String>,
    #[param(value_type = Option<vocabulary::Count>)]
    cursor: Option<String>,
}

/// One page of quotas.
#[utoipa::path(
    get,
    path = "/v1/quotas",
    params(ListQuery),
    responses((status = 200, body = Listed<QuotaShape>)),
)]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> JsonAnswer<Listed<QuotaShape>> {
    let limit = usize::try_from(limit_of(query.limit.as_deref())?).unwrap_or(usize::MAX);
    let offset = number("cursor", query.cursor.as_deref())?.unwrap_or(0);
    let offset = usize::try_from(offset).ok().filter(|_| offset <= OFFSET_MAX);
    let offset = offset.ok_or_else(|| Problem::invalid("cursor", "is not a cursor of this list"))?;
    let all = app.operations.quotas(caller.namespace(query.namespace)?.as_deref()).await?;
    let more = all.len() > offset.saturating_add(limit);
    let items = all.into_iter().skip(offset).take(limit).map(QuotaShape::from).collect();
    Ok(Json(Listed { items, next_cursor: more.then(|| (offset + limit).to_string()) }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ShowQuery {
    #[param(value_type = Option<vocabulary::QuotaKey>)]
    key: Option<String>,
}

/// A quota and how far its keys are used: the one asked for, or the first hundred.
#[utoipa::path(
    get,
    path = "/v1/quotas/{quota}",
    params(QuotaPath, ShowQuery),
    responses((status = 200, body = QuotaShape)),
    extensions(("x-ff-codes" = json!("quota_not_found"))),
)]
async fn show(
    State(app): State<App>,
    QuotaPath(id): QuotaPath,
    Query(query): Query<ShowQuery>,
) -> JsonAnswer<QuotaShape> {
    let (entry, state) =
        app.operations.quota(id, query.key.as_deref()).await.map_err(|error| Problem::from(error).about(id))?;
    let keys = match state {
        Some(state) => vec![state],
        None => app.operations.quota_keys(id, KEYS_SHOWN).await?.into_iter().map(|key| key.state).collect(),
    };
    Ok(Json(QuotaShape::from(entry).with(keys)))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BlockedQuery {
    #[param(value_type = vocabulary::QuotaKey)]
    key: Option<String>,
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1_000)]
    limit: Option<String>,
    cursor: Option<String>,
}

/// Who waits under a key, the next to be called first.
#[utoipa::path(
    get,
    path = "/v1/quotas/{quota}/blocked",
    params(QuotaPath, BlockedQuery),
    responses((status = 200, body = LineShape)),
    extensions(("x-ff-codes" = json!("quota_not_found"))),
)]
async fn blocked(
    State(app): State<App>,
    QuotaPath(id): QuotaPath,
    Query(query): Query<BlockedQuery>,
) -> JsonAnswer<LineShape> {
    let key = query.key.ok_or_else(|| Problem::invalid("key", "is missing"))?;
    let limit = usize::try_from(limit_of(query.limit.as_deref())?).unwrap_or(BLOCKED_PAGE_MAX);
    let after = query.cursor.as_deref().map(str::parse).transpose()?;
    let page = app.operations.blocked_on_quota(id, &key, after, limit).await;
    Ok(Json(page.map_err(|error| Problem::from(error).about(id))?.into()))
}

/// What is not named stays; null takes a part away.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeQuotaBody)]
struct ChangeBody {
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<RateBody>)]
    rate: Option<Option<RateBody>>,
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000)]
    concurrency: Option<Option<i64>>,
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<QuotaWeights>)]
    weighted: Option<Option<QuotaWeights>>,
    hold_while_suspended: Option<bool>,
}

/// A field that is there, whatever it says.
fn named<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// Changes a quota; what is not named stays, null takes a part away.
#[utoipa::path(
    patch,
    path = "/v1/quotas/{quota}",
    params(QuotaPath),
    request_body = ChangeBody,
    responses((status = 200, body = QuotaShape)),
    extensions(("x-ff-codes" = json!("quota_not_found quota_version_conflict"))),
)]
async fn change(
    State(app): State<App>,
    caller: Caller,
    QuotaPath(id): QuotaPath,
    Body(body): Body<ChangeBody>,
) -> JsonAnswer<QuotaShape> {
    let rate = body.rate.map(|rate| rate.map(RateBody::read).transpose()).transpose()?;
    let weighted: Option<Option<QuotaWeights>> = body.weighted;
    let change = |quota: &mut Quota| {
        if let Some(rate) = &rate {
            quota.rate.clone_from(rate);
        }
        if let Some(concurrency) = body.concurrency {
            quota.concurrency = concurrency;
        }
        if let Some(weighted) = &weighted {
            quota.weighted.clone_from(weighted);
        }
        if let Some(hold) = body.hold_while_suspended {
            quota.hold_while_suspended = hold;
        }
    };
    let entry = app.operations.change_quota(id, change, caller.name()).await;
    Ok(Json(entry.map_err(|error| Problem::from(error).about(id))?.into()))
}

/// Deletes a quota; nothing starts that names it.
#[utoipa::path(
    delete,
    path = "/v1/quotas/{quota}",
    params(QuotaPath),
    responses((status = 204, description = "It is gone.")),
    extensions(("x-ff-codes" = json!("quota_not_found"))),
)]
async fn delete(State(app): State<App>, caller: Caller, QuotaPath(id): QuotaPath) -> Answer<StatusCode> {
    app.operations.delete_quota(id, caller.name()).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ThrottleBody)]
struct ThrottleBody {
    #[schema(value_type = vocabulary::QuotaKey)]
    key: String,
    /// Until when nothing starts; a time that has passed changes nothing, 0 ends it.
    #[schema(value_type = vocabulary::TimeMs)]
    until: i64,
}

#[derive(Serialize, ToSchema)]
struct Throttled {
    quota_id: QuotaPolicyId,
    key: String,
    throttled_until: Option<i64>,
}

/// Lets nothing start under a key until a time.
#[utoipa::path(
    post,
    path = "/v1/quotas/{quota}/throttle",
    params(QuotaPath),
    request_body = ThrottleBody,
    responses((status = 200, body = Throttled)),
    extensions(("x-ff-codes" = json!("quota_not_found"))),
)]
async fn throttle(
    State(app): State<App>,
    caller: Caller,
    QuotaPath(id): QuotaPath,
    Body(body): Body<ThrottleBody>,
) -> JsonAnswer<Throttled> {
    let throttled = app.operations.throttle_quota(id, &body.key, body.until, Some(caller.name())).await;
    let throttled_until = throttled.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Throttled { quota_id: id, key: body.key, throttled_until }))
}
