//! Flows: listed, read, waited for, released, cancelled, and given more edges.

use std::time::Duration;

use ff_api::flows::{AddEdges, AddedEdges, CancelFlow, FlowCancelOutcome, FlowCancelled, SealFlow};
use ff_api::graph::{Flow, FlowGraph, FlowShown, GetFlow, GetFlowGraph, ListFlows, ListMembers, Member, edges_between};
use ff_api::{Ask, Listed, Problem, page};
use ff_core::limits::REASON_BYTES_MAX;
use ff_core::types::FlowId;
use ff_script::Error;
use ff_script::generated::{self, CancelFlowReply, CancelPolicy};

use super::new_flows::new_edges;
use super::{bounded, wait_of};
use crate::operations::FlowFilter;
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// Members and edges that are shown with a flow; its graph has them all.
const MEMBERS_SHOWN: usize = 1_000;
const EDGES_SHOWN: usize = 10_000;
/// How long a cancel that waits for the end may take.
const CANCEL_WAIT: Duration = Duration::from_secs(30);

impl Handle<ListFlows> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListFlows>) -> Result<Listed<Flow>, Problem> {
        by.check_all_lanes("the list of flows")?;
        let query = ask.query;
        let after = query.cursor.as_deref().map(str::parse).transpose()?;
        let limit = page::length(query.limit)?;
        let filter = FlowFilter { namespace: by.namespace(query.namespace)?, kind: query.kind, state: query.state };
        let page = self.operations.flows(&filter, after, limit).await?;
        let items = page.items.into_iter().map(Flow::from).collect();
        Ok(Listed { items, next_cursor: page.next.map(|cursor| cursor.to_string()) })
    }
}

impl Handle<GetFlow> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetFlow>) -> Result<FlowShown, Problem> {
        let id = ask.at;
        let about = |error| Problem::from(error).about(id);
        let wait = wait_of("wait_ms", ask.query.wait_ms)?;
        let flow = self.flow_within(id, wait).await.map_err(about)?;
        let has_webhook = flow.completion_webhook.is_some();
        let mut flow = Flow::from(flow);
        if has_webhook {
            flow.webhook = self.operations.webhook_of_flow(id).await.map_err(about)?;
        }
        if ask.query.members == Some(false) {
            return Ok(FlowShown::alone(flow));
        }
        let first = self.operations.first_members(id, MEMBERS_SHOWN, EDGES_SHOWN).await.map_err(about)?;
        Ok(FlowShown {
            flow,
            edges: edges_between(&first.members, first.edges),
            edges_omitted: first.edges_omitted,
            members: first.members.into_iter().map(Member::from).collect(),
            members_next_cursor: first.next.map(|number| number.to_string()),
        })
    }
}

impl Handle<ListMembers> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ListMembers>) -> Result<Listed<Member>, Problem> {
        let limit = i64::try_from(page::length(ask.query.limit)?).unwrap_or(i64::MAX);
        let after = page::offset(ask.query.cursor.as_deref())?;
        let page = self.operations.members(ask.at, Some(after), limit).await;
        let page = page.map_err(|error| Problem::from(error).about(ask.at))?;
        let items = page.items.into_iter().map(Member::from).collect();
        Ok(Listed { items, next_cursor: page.next.map(|number| number.to_string()) })
    }
}

impl Handle<GetFlowGraph> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetFlowGraph>) -> Result<FlowGraph, Problem> {
        let about = |error| Problem::from(error).about(ask.at);
        let graph = self.operations.graph(ask.at).await.map_err(about)?;
        let flow = self.operations.flow(ask.at).await.map_err(about)?;
        let edges = edges_between(&graph.members, graph.edges);
        let nodes = graph.members.into_iter().map(Member::from).collect();
        Ok(FlowGraph { flow_id: ask.at, state: flow.state, version: graph.version, nodes, edges })
    }
}

impl Handle<AddEdges> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<AddEdges>) -> Result<AddedEdges, Problem> {
        let added = self.operations.add_edges(ask.at, new_edges(ask.body.edges)).await;
        Ok(AddedEdges { flow_id: ask.at, added: added.map_err(|error| Problem::from(error).about(ask.at))? })
    }
}

impl Handle<SealFlow> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<SealFlow>) -> Result<Flow, Problem> {
        let flow = self.operations.seal_flow(ask.at).await;
        Ok(flow.map_err(|error| Problem::from(error).about(ask.at))?.into())
    }
}

impl Handle<CancelFlow> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CancelFlow>) -> Result<FlowCancelled, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let about = |error| Problem::from(error).about(id);
        let (policy, waits) = (body.policy.unwrap_or(CancelPolicy::CancelAll), body.wait == Some(true));
        let reply = self.operations.cancel_flow(id, policy, by.name(), body.reason.as_deref(), waits).await;
        let (outcome, flow) = match reply.map_err(about)? {
            CancelFlowReply::Cancelled { flow, .. } => (FlowCancelOutcome::Cancelled, flow),
            CancelFlowReply::Already { flow } => (FlowCancelOutcome::Already, flow),
        };
        if !waits {
            return Ok(FlowCancelled { outcome, flow: flow.into(), still_ending: false });
        }
        let flow = self.flow_within(id, CANCEL_WAIT).await.map_err(about)?;
        Ok(FlowCancelled { outcome, still_ending: flow.finished_at.is_none(), flow: flow.into() })
    }
}

impl Service {
    /// A flow once it has ended, or as it stands when the wait is over or the process stops.
    async fn flow_within(&self, id: FlowId, wait: Duration) -> Result<generated::Flow, Error> {
        if !wait.is_zero() {
            tokio::select! {
                waited = self.engine.waiting().flow(id, wait) => {
                    if let (flow, true) = waited? {
                        return Ok(flow);
                    }
                }
                () = self.stop.cancelled() => {}
            }
        }
        self.operations.flow(id).await
    }
}
