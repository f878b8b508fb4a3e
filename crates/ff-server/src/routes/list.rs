//! `GET /v1/executions`: newest first, by filters, page by page.

use axum::Json;
use axum::extract::State;
use ff_core::types::FlowId;
use ff_engine::ExecutionFilter;
use ff_script::generated::PublicState;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::{App, JsonAnswer};
use crate::openapi::vocabulary;
use crate::problem::{Answer, Problem};
use crate::query::{Query, limit_of, time};
use crate::shape::Listed;
use crate::shape::execution::SummaryShape;
use crate::word::word;

/// The filters of a list, as texts of a query or a body.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FilterQuery {
    #[param(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    #[param(value_type = Option<vocabulary::LaneName>)]
    lane: Option<String>,
    #[param(value_type = Option<vocabulary::Kind>)]
    kind: Option<String>,
    #[param(value_type = Option<PublicState>)]
    state: Option<String>,
    /// `key:value`.
    #[param(pattern = ":")]
    tag: Option<String>,
    #[param(value_type = Option<FlowId>)]
    flow_id: Option<String>,
    #[param(value_type = Option<vocabulary::TimeMs>)]
    created_after: Option<String>,
    #[param(value_type = Option<vocabulary::TimeMs>)]
    created_before: Option<String>,
    #[param(value_type = Option<vocabulary::Instance>)]
    worker: Option<String>,
    /// How many at most.
    #[param(ignore)]
    pub limit: Option<String>,
    cursor: Option<String>,
}

/// What a list shows.
pub struct Wanted {
    /// The filter.
    pub filter: ExecutionFilter,
    /// True when some filter is given.
    pub narrowed: bool,
}

impl FilterQuery {
    /// Filters a body carries: namespace, lane, kind, state, tag, flow_id, worker, cursor; created after and before.
    pub fn of(texts: [&Option<String>; 8], times: [Option<i64>; 2]) -> Self {
        let [namespace, lane, kind, state, tag, flow_id, worker, cursor] = texts.map(Clone::clone);
        let [created_after, created_before] = times.map(|time| time.map(|ms| ms.to_string()));
        Self { namespace, lane, kind, state, tag, flow_id, created_after, created_before, worker, limit: None, cursor }
    }

    /// These, and where they say nothing, the others.
    pub fn or(self, other: Self) -> Self {
        Self {
            namespace: self.namespace.or(other.namespace),
            lane: self.lane.or(other.lane),
            kind: self.kind.or(other.kind),
            state: self.state.or(other.state),
            tag: self.tag.or(other.tag),
            flow_id: self.flow_id.or(other.flow_id),
            created_after: self.created_after.or(other.created_after),
            created_before: self.created_before.or(other.created_before),
            worker: self.worker.or(other.worker),
            limit: self.limit.or(other.limit),
            cursor: self.cursor.or(other.cursor),
        }
    }

    /// The filter these texts mean, within what the caller may see.
    pub fn wanted(&self, caller: &Caller) -> Answer<Wanted> {
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let state = said(&self.state).map(|state| word("state", &state)).transpose()?;
        let tag = match said(&self.tag) {
            None => None,
            Some(tag) => {
                let (key, value) = tag.split_once(':').ok_or_else(|| Problem::invalid("tag", "must be key:value"))?;
                Some((key.to_owned(), value.to_owned()))
            }
        };
        let flow = match said(&self.flow_id) {
            None => None,
            Some(id) => Some(id.parse().map_err(|_| Problem::invalid("flow_id", format!("{id:?} is not a UUID")))?),
        };
        let filter = ExecutionFilter {
            namespace: caller.namespace(said(&self.namespace))?,
            lane: caller.lane(said(&self.lane))?,
            kind: said(&self.kind),
            state,
            tag,
            worker: said(&self.worker),
            flow,
            created_after: time("created_after", self.created_after.as_deref())?,
            created_before: time("created_before", self.created_before.as_deref())?,
        };
        let narrowed = filter != ExecutionFilter::default();
        Ok(Wanted { filter, narrowed })
    }

    /// Where the page begins.
    pub fn cursor(&self) -> Answer<Option<ff_engine::ListCursor>> {
        Ok(match self.cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
            None => None,
            Some(cursor) => Some(cursor.parse().map_err(Problem::from)?),
        })
    }
}

/// One page of the executions that match, newest first.
#[utoipa::path(
    get,
    path = "/v1/executions",
    params(FilterQuery, ("limit" = Option<i64>, Query, description = "100 unless said.", minimum = 1, maximum = 1_000)),
    responses((status = 200, body = Listed<SummaryShape>)),
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<FilterQuery>,
) -> JsonAnswer<Listed<SummaryShape>> {
    let limit = usize::try_from(limit_of(query.limit.as_deref())?).unwrap_or(1);
    let cursor = query.cursor()?;
    let filter = query.wanted(&caller)?.filter;
    let page = app.operations.list(&filter, cursor, limit).await?;
    let items = page.items.into_iter().map(SummaryShape::from).collect();
    Ok(Json(Listed { items, next_cursor: page.next.map(|cursor| cursor.to_string()) }))
}
