//! Reading flows: a list, one with its first members, members page by page, and the whole graph.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use ff_api::graph::{Flow, FlowQuery, FlowShown, GetFlow, GetFlowGraph, ListFlows, ListMembers, Member, edges_between};
use ff_core::types::FlowId;
use ff_script::generated::{self, GraphPosition, ReadFlow, ReadFlowReply};

use crate::app::{App, Flow as FlowPath, JsonAnswer};
use crate::openapi::Described;
use crate::problem::{Answer, Problem};
use crate::query::Query;

const WAIT_MAX_MS: i64 = 30_000;
/// Members and edges of one answer; the graph has them all.
const MEMBERS_SHOWN: usize = 1_000;
const EDGES_SHOWN: usize = 10_000;

pub fn routes() -> Described {
    Described::new()
        .answering::<ListFlows>()
        .serving::<GetFlow, _>(show)
        .answering::<ListMembers>()
        .answering::<GetFlowGraph>()
}

async fn show(State(app): State<App>, FlowPath(id): FlowPath, Query(query): Query<FlowQuery>) -> JsonAnswer<FlowShown> {
    let wait_ms = query.wait_ms.unwrap_or(0);
    if !(0..=WAIT_MAX_MS).contains(&wait_ms) {
        return Err(Problem::invalid("wait_ms", format!("must be in 0..={WAIT_MAX_MS}, got {wait_ms}")));
    }
    let about = |error| Problem::from(error).about(id);
    let mut waited = None;
    if wait_ms > 0 {
        let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0));
        let _open = app.metrics.process.long_poll();
        tokio::select! {
            ended = app.engine.waiting().flow(id, wait) => {
                let (flow, has_ended) = ended.map_err(about)?;
                // One that has not may be another by now.
                waited = has_ended.then_some(flow);
            }
            () = app.stop.cancelled() => {}
        }
    }
    let flow = match waited {
        Some(flow) => flow,
        None => app.operations.flow(id).await.map_err(about)?,
    };
    let tells = flow.completion_webhook.is_some();
    let mut flow = Flow::from(flow);
    if tells {
        flow.webhook = app.operations.webhook_of_flow(id).await.map_err(about)?;
    }
    let first = first_members(&app, id).await.map_err(|problem| problem.about(id))?;
    Ok(Json(FlowShown {
        flow,
        edges: edges_between(&first.members, first.edges),
        edges_omitted: first.edges_omitted,
        members: first.members.into_iter().map(Member::from).collect(),
        members_next_cursor: first.next.map(|number| number.to_string()),
    }))
}

#[derive(Default)]
struct First {
    members: Vec<generated::Member>,
    edges: Vec<generated::Edge>,
    edges_omitted: bool,
    next: Option<i64>,
}

async fn first_members(app: &App, flow_id: FlowId) -> Answer<First> {
    let client = app.operations.client();
    let mut first = First::default();
    let mut after: Option<GraphPosition> = None;
    loop {
        let room = MEMBERS_SHOWN - first.members.len();
        // A page may stop in the middle of a member's edges, which are read on even when no further member fits.
        let amid = after.as_ref().is_some_and(|after| after.edge > 0) && !first.edges_omitted;
        if room == 0 && !amid {
            first.next = after.map(|after| after.member);
            return Ok(first);
        }
        let call =
            ReadFlow { after, edges: !first.edges_omitted, flow_id, limit: i64::try_from(room.max(1)).unwrap_or(1) };
        let ReadFlowReply::Page { members, edges, next, .. } =
            client.call(client.route_of_flow(&flow_id), &call).await?;
        first.members.extend(members);
        first.edges.extend(edges);
        first.edges_omitted |= first.edges.len() > EDGES_SHOWN;
        match next {
            // Without edges the page goes on after the member.
            Some(next) if first.edges_omitted => after = Some(GraphPosition { edge: 0, ..next }),
            Some(next) => after = Some(next),
            None => return Ok(first),
        }
    }
}
