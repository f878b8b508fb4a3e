//! Flows through the typed operations: checked before the first call, written in chunks, run and cancelled by an engine in real time.

use std::collections::BTreeSet;

use ff_core::error_code::ErrorCode;
use ff_core::types::{ExecutionId, FlowId};
use ff_engine::{FlowFilter, NewFlow, NewMember, Operations, fence_of, member_id};
use ff_script::generated::{
    CancelFlowReply, CancelPolicy, EdgeOn, FlowState, Inbound, InboundPolicy, MemberState, NewEdge, ReadFlow,
};
use ff_script::{Bytes, Error};
use tokio_util::sync::CancellationToken;

use crate::kit::*;
use crate::on_both_hosts;
use crate::wiretap::Wiretap;
use ff_testkit::Tasks;

fn flow() -> NewFlow {
    NewFlow::new("default", "pipeline")
}

fn members(keys: &[&str]) -> NewFlow {
    keys.iter().fold(flow(), |flow, key| flow.with_member(NewMember::new(*key, "step")))
}

fn edge(from: &str, to: &str) -> NewEdge {
    NewEdge::new(from.to_owned(), to.to_owned(), EdgeOn::Success)
}

/// A root, so many in the middle, and a join.
fn fan(width: usize) -> NewFlow {
    let mut flow = members(&["root", "join"]);
    for n in 0..width {
        let key = format!("m{n}");
        flow =
            flow.with_member(NewMember::new(key.clone(), "map")).with_edge("root", key.clone()).with_edge(key, "join");
    }
    flow
}

/// What a refusal says.
#[track_caller]
fn said<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.expect_err("a refusal").to_string()
}

/// Completes whatever can be claimed until it is told to stop.
fn run_all(operations: &Operations, stop: &CancellationToken) -> tokio::task::JoinHandle<usize> {
    let (operations, stop) = (operations.clone(), stop.clone());
    tokio::spawn(async move {
        let mut done = 0;
        while !stop.is_cancelled() {
            let tasks = claim(&operations, &worker("w1", 30_000), 256).await;
            if tasks.is_empty() {
                tokio::time::sleep(ms(3)).await;
            }
            for task in tasks {
                // A member of a flow that was cancelled meanwhile is refused.
                done +=
                    usize::from(operations.client().complete(task.execution_id, fence_of(&task), None).await.is_ok());
            }
        }
        done
    })
}

on_both_hosts! {
    async fn a_wide_flow_is_written_in_chunks_and_runs_to_its_end(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let new = fan(300);
        let id = new.fields.flow_id;
        let submitted = operations.submit_flow(new.clone()).await.unwrap();
        assert_eq!((submitted.members.len(), submitted.duplicate), (302, false));
        assert_eq!(submitted.members[0], ("root".to_owned(), member_id(id, "root")));
        let again = operations.submit_flow(new).await.unwrap();
        assert!(again.duplicate);
        let stop = CancellationToken::new();
        let running = run_all(operations, &stop);
        let (ended, over) = engine.waiting().flow(id, ms(30_000)).await.unwrap();
        assert!(over, "{ended:?}");
        stop.cancel();
        assert_eq!((ended.state, running.await.unwrap()), (FlowState::Completed, 302));
        let graph = operations.graph(id).await.unwrap();
        assert_eq!((graph.members.len(), graph.edges.len()), (302, 600));
        assert_eq!(graph.members.iter().map(|m| m.number).collect::<BTreeSet<_>>().len(), 302);
    }

    async fn a_join_of_more_edges_than_a_call_takes_is_whole(kit) {
        let engine = kit.engine().await;
        let id = engine.operations().submit_flow(fan(1_500)).await.unwrap().flow.flow_id;
        let graph = engine.operations().graph(id).await.unwrap();
        let join = graph.members.iter().find(|member| member.key == "join").unwrap();
        assert_eq!((join.edges_in, graph.edges.len()), (1_500, 3_000));
        eventually("every member is released", async || {
            let flow = engine.operations().flow(id).await.unwrap();
            (flow.counts.get(&MemberState::WaitingChildren) == Some(&1_501) && flow.walk.is_none()).then_some(())
        }).await;
    }

    async fn a_submission_that_stopped_half_way_goes_on_when_it_is_repeated(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let new = fan(400);
        let id = new.fields.flow_id;
        let tap = Wiretap::on(kit.host());
        tap.cut_after("ff_add_members", 1);
        let cut = kit.tool(tap).await;
        cut.operations().submit_flow(new.clone()).await.unwrap_err();
        assert_eq!(operations.flow(id).await.unwrap().state, FlowState::Open);
        assert!(claim(operations, &worker("w1", 30_000), 10).await.is_empty());
        let submitted = operations.submit_flow(new).await.unwrap();
        assert!(submitted.duplicate && submitted.flow.sealed_at.is_some());
        assert_eq!(submitted.flow.members, 402);
        eventually("the root is released", async || {
            (!claim(operations, &worker("w1", 30_000), 1).await.is_empty()).then_some(())
        }).await;
    }

    async fn a_flow_that_cannot_be_is_refused_before_the_first_call(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let ring = members(&["a", "b", "c", "d"]).with_edge("a", "b").with_edge("b", "c").with_edge("c", "b");
        let refused = operations.submit_flow(ring).await;
        assert!(said(refused.map(|_| ())).contains("b → c → b"));
        assert!(said(operations.submit_flow(members(&["a", "a"])).await.map(|_| ())).contains("members[1].key"));
        assert!(said(operations.submit_flow(members(&["a"]).with_edge("a", "x")).await.map(|_| ())).contains("edges[0].to"));
        let twice = members(&["a", "b"]).with_edge("a", "b").with_edge("a", "b");
        assert!(said(operations.submit_flow(twice).await.map(|_| ())).contains("given twice"));
        let quorum = Inbound { k: Some(2), ..Inbound::new(InboundPolicy::Quorum) };
        let mut short = members(&["a", "b"]).with_edge("a", "b");
        short.members[1].inbound = Some(quorum);
        assert!(said(operations.submit_flow(short).await.map(|_| ())).contains("members[1].inbound.k"));
        assert!(operations.flows(&FlowFilter::default(), None, 10).await.unwrap().items.is_empty());
    }

    async fn edges_are_checked_against_the_graph_as_it_is(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let id = operations.submit_flow(members(&["a", "b", "c"]).with_edge("a", "b")).await.unwrap().flow.flow_id;
        assert_eq!(operations.add_edges(id, vec![edge("b", "c")]).await.unwrap(), 1);
        let closing = operations.add_edges(id, vec![edge("c", "a")]).await;
        assert_eq!(refusal(closing.clone()), ErrorCode::CycleDetected);
        assert!(said(closing).contains("a → b → c → a"));
        // Two that would close a cycle together: one of them is refused, whoever is first.
        let other = operations.submit_flow(members(&["x", "y"])).await.unwrap().flow.flow_id;
        let (one, two) = tokio::join!(operations.add_edges(other, vec![edge("x", "y")]), operations.add_edges(other, vec![edge("y", "x")]));
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    }

    async fn a_flow_grows_by_members_with_their_edges(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let id = operations.submit_flow(members(&["a"])).await.unwrap().flow.flow_id;
        let root = claim_one(operations, &worker("w1", 30_000), member_id(id, "a")).await;
        let added = operations
            .add_members(id, vec![NewMember::new("z", "step"), NewMember::new("y", "step")], vec![edge("a", "y"), edge("y", "z")])
            .await
            .unwrap();
        assert_eq!(added.iter().map(|m| m.key.as_str()).collect::<Vec<_>>(), ["z", "y"]);
        assert!(claim(operations, &worker("w1", 30_000), 5).await.is_empty());
        complete(operations, &root, b"{}").await;
        for key in ["y", "z"] {
            let task = claim_one(operations, &worker("w1", 30_000), member_id(id, key)).await;
            complete(operations, &task, b"{}").await;
        }
        assert_eq!(operations.flow(id).await.unwrap().state, FlowState::Completed);
        let late = operations.add_members(id, vec![NewMember::new("late", "step")], vec![]).await;
        assert_eq!(refusal(late), ErrorCode::FlowTerminal);
    }

    async fn a_cancel_that_waits_answers_when_all_are_cancelled(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let mut new = flow();
        for n in 0..500 {
            new = new.with_member(NewMember::new(format!("m{n}"), "step"));
        }
        let id = operations.submit_flow(new).await.unwrap().flow.flow_id;
        let running = claim(operations, &worker("w1", 30_000), 1).await.remove(0);
        let answer = operations.cancel_flow(id, CancelPolicy::CancelAll, "ann", Some("enough"), true).await.unwrap();
        assert!(matches!(answer, CancelFlowReply::Cancelled { .. }));
        let (ended, over) = engine.waiting().flow(id, ms(20_000)).await.unwrap();
        assert!(over);
        assert_eq!(ended.counts.into_iter().collect::<Vec<_>>(), [(MemberState::Cancelled, 500)]);
        let told = operations.client().complete(running.execution_id, fence_of(&running), None).await;
        assert!(said(told).contains("outcome cancelled"));
        assert!(claim(operations, &worker("w2", 30_000), 10).await.is_empty());
    }

    async fn a_flow_inside_a_flow_runs_in_its_place(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let inner = members(&["x", "y"]).with_edge("x", "y");
        let outer = members(&["a", "z"]).with_member(NewMember::of_flow("inner", inner)).with_edge("a", "inner").with_edge("inner", "z");
        let submitted = operations.submit_flow(outer).await.unwrap();
        let id = submitted.flow.flow_id;
        let stop = CancellationToken::new();
        let running = run_all(operations, &stop);
        let (ended, over) = engine.waiting().flow(id, ms(20_000)).await.unwrap();
        stop.cancel();
        assert!(over, "{ended:?}");
        assert_eq!((ended.state, running.await.unwrap()), (FlowState::Completed, 4));
        let graph = operations.graph(id).await.unwrap();
        let nested = graph.members.iter().find_map(|member| member.nested).unwrap();
        assert_eq!(operations.flow(nested).await.unwrap().state, FlowState::Completed);
    }

    async fn passed_data_of_any_bytes_arrives(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let new = members(&["a", "b"]).with_data("a", "b", "left");
        let id = operations.submit_flow(new).await.unwrap().flow.flow_id;
        let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
        complete(operations, &claim_one(operations, &worker("w1", 30_000), member_id(id, "a")).await, &bytes).await;
        let task = claim_one(operations, &worker("w1", 30_000), member_id(id, "b")).await;
        assert_eq!(task.passed.unwrap()["left"].value, Some(Bytes(bytes)));
    }

    async fn flows_are_listed_newest_first_over_all_partitions(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let mut ids: Vec<FlowId> = Vec::new();
        for _ in 0..25 {
            ids.push(operations.submit_flow(members(&["a"])).await.unwrap().flow.flow_id);
            tokio::time::sleep(ms(2)).await;
        }
        ids.reverse();
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = operations.flows(&FlowFilter::default(), after, 4).await.unwrap();
            seen.extend(page.items.into_iter().map(|flow| flow.flow_id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, ids);
        let finished = FlowFilter { state: Some(FlowState::Completed), ..FlowFilter::default() };
        assert!(operations.flows(&finished, None, 10).await.unwrap().items.is_empty());
    }

    async fn an_unsealed_flow_is_read_but_its_members_are_not_there(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let mut new = members(&["a", "b"]).with_edge("a", "b");
        new.seal = false;
        let id = operations.submit_flow(new).await.unwrap().flow.flow_id;
        let page = operations.members(id, None, 10).await.unwrap();
        assert!(page.items.iter().all(|member| member.state == MemberState::Held));
        assert_eq!(refusal(operations.describe(member_id(id, "a")).await), ErrorCode::ExecutionNotFound);
        operations.seal_flow(id).await.unwrap();
        operations.describe(member_id(id, "a")).await.unwrap();
        let unknown = ReadFlow { after: None, edges: false, flow_id: FlowId::mint(), limit: 5 };
        assert_eq!(refusal(operations.client().call(operations.client().route_of_flow(&unknown.flow_id), &unknown).await), ErrorCode::FlowNotFound);
        let _: ExecutionId = member_id(id, "b");
    }
}
