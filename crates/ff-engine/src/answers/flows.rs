//! Flows: listed, read member by member or whole, released, and given more edges.

use ff_api::flows::{AddEdges, AddedEdges, EdgeBody, SealFlow};
use ff_api::graph::{Flow, FlowGraph, GetFlowGraph, ListFlows, ListMembers, Member, edges_between};
use ff_api::{Ask, Listed, Problem, page};
use ff_script::generated::{EdgeOn, NewEdge};

use crate::operations::FlowFilter;
use crate::principal::Principal;
use crate::service::{Handle, Service};

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

/// Edges as the library takes them.
pub fn new_edges(edges: Vec<EdgeBody>) -> Vec<NewEdge> {
    let edges = edges.into_iter().map(|edge| NewEdge {
        from: edge.from,
        to: edge.to,
        on: edge.on.unwrap_or(EdgeOn::Success),
        pass_as: edge.pass_as,
    });
    edges.collect()
}
