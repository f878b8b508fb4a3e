//! Quotas: make, read, change, delete, and throttle a key.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use ff_core::types::QuotaPolicyId;
use ff_engine::BLOCKED_PAGE_MAX;
use ff_script::generated::{Quota, QuotaRate, QuotaWeights, RateMode};
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, JsonAnswer, QuotaPath};
use crate::body::Body;
use crate::problem::{Answer, Problem};
use crate::query::{Query, limit_of, number};
use crate::shape::Listed;
use crate::shape::blocked::LineShape;
use crate::shape::quota::{KeyShape, QuotaShape};

/// How many keys a quota shows when none is asked for.
const KEYS_SHOWN: usize = 100;

pub fn routes() -> Router<App> {
    Router::new()
        .route("/v1/quotas", get(list).post(create))
        .route("/v1/quotas/{quota}", get(show).patch(change).delete(delete))
        .route("/v1/quotas/{quota}/blocked", get(blocked))
        .route("/v1/quotas/{quota}/throttle", post(throttle))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateBody {
    limit: i64,
    window_ms: i64,
    mode: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightsBody {
    limit: i64,
    window_ms: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    quota_id: Option<Uuid>,
    namespace: Option<String>,
    rate: Option<RateBody>,
    concurrency: Option<i64>,
    weighted: Option<WeightsBody>,
    hold_while_suspended: Option<bool>,
}

impl RateBody {
    fn read(self) -> Answer<QuotaRate> {
        let mode = match self.mode {
            None => RateMode::Sliding,
            Some(word) => {
                word.parse().map_err(|_| Problem::invalid("rate.mode", format!("{word:?} is none of its words")))?
            }
        };
        Ok(QuotaRate { limit: self.limit, window_ms: self.window_ms, mode })
    }
}

impl From<WeightsBody> for QuotaWeights {
    fn from(body: WeightsBody) -> Self {
        Self { limit: body.limit, window_ms: body.window_ms }
    }
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<CreateBody>,
) -> Answer<(StatusCode, Json<QuotaShape>)> {
    let quota = Quota {
        rate: body.rate.map(RateBody::read).transpose()?,
        concurrency: body.concurrency,
        weighted: body.weighted.map(Into::into),
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    namespace: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> JsonAnswer<Listed<QuotaShape>> {
    let limit = usize::try_from(limit_of(query.limit.as_deref())?).unwrap_or(usize::MAX);
    let offset = usize::try_from(number("cursor", query.cursor.as_deref())?.unwrap_or(0))
        .map_err(|_| Problem::invalid("cursor", "is not a cursor of this list"))?;
    let all = app.operations.quotas(caller.namespace(query.namespace)?.as_deref()).await?;
    let more = all.len() > offset.saturating_add(limit);
    let items = all.into_iter().skip(offset).take(limit).map(QuotaShape::from).collect();
    Ok(Json(Listed { items, next_cursor: more.then(|| (offset + limit).to_string()) }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowQuery {
    key: Option<String>,
}

async fn show(
    State(app): State<App>,
    QuotaPath(id): QuotaPath,
    Query(query): Query<ShowQuery>,
) -> JsonAnswer<QuotaShape> {
    let (entry, state) =
        app.operations.quota(id, query.key.as_deref()).await.map_err(|error| Problem::from(error).about(id))?;
    let keys = match state {
        Some(state) => vec![KeyShape::from(state)],
        None => app.operations.quota_keys(id, KEYS_SHOWN).await?.into_iter().map(|key| key.state.into()).collect(),
    };
    Ok(Json(QuotaShape::from(entry).with(keys)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockedQuery {
    key: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// Who waits under a key, the next to be called first.
async fn blocked(
    State(app): State<App>,
    QuotaPath(id): QuotaPath,
    Query(query): Query<BlockedQuery>,
) -> JsonAnswer<LineShape> {
    let key = query.key.ok_or_else(|| Problem::invalid("key", "is missing"))?;
    let limit = usize::try_from(limit_of(query.limit.as_deref())?).unwrap_or(BLOCKED_PAGE_MAX);
    let after = query.cursor.as_deref().filter(|text| !text.is_empty()).map(str::parse).transpose()?;
    let page = app.operations.blocked_on_quota(id, &key, after, limit).await;
    Ok(Json(page.map_err(|error| Problem::from(error).about(id))?.into()))
}

/// What is not named stays; null takes a part away.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeBody {
    #[serde(default, deserialize_with = "named")]
    rate: Option<Option<RateBody>>,
    #[serde(default, deserialize_with = "named")]
    concurrency: Option<Option<i64>>,
    #[serde(default, deserialize_with = "named")]
    weighted: Option<Option<WeightsBody>>,
    hold_while_suspended: Option<bool>,
}

/// A field that is there, whatever it says.
fn named<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    QuotaPath(id): QuotaPath,
    Body(body): Body<ChangeBody>,
) -> JsonAnswer<QuotaShape> {
    let rate = body.rate.map(|rate| rate.map(RateBody::read).transpose()).transpose()?;
    let weighted: Option<Option<QuotaWeights>> = body.weighted.map(|weighted| weighted.map(Into::into));
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

async fn delete(State(app): State<App>, caller: Caller, QuotaPath(id): QuotaPath) -> Answer<StatusCode> {
    app.operations.delete_quota(id, caller.name()).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThrottleBody {
    key: String,
    /// Until when nothing starts; a time that has passed changes nothing, 0 ends it.
    until: i64,
}

#[derive(Serialize)]
struct Throttled {
    quota_id: QuotaPolicyId,
    key: String,
    throttled_until: Option<i64>,
}

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
