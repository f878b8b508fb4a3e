//! Members of flows as workers and operators see them: passed data, failures, races, cancels.

use std::collections::HashMap;
use std::time::Duration;

use ff_core::error::{ContentionKind, EngineError};
use ff_core::state::Outcome;
use ff_core::types::FlowId;
use ff_sdk::snapshot::{EdgeState, FlowSnapshot, FlowState, MemberState};
use ff_sdk::task::{CancelPolicy, EdgeOn, OnMemberFailure};
use ff_sdk::{ClaimedTask, FlowFabricWorker, FlowFilter, FlowSpec, MemberSpec, Retry, SdkError};

use crate::world::{LANE, SOON, World, claim};

pub fn flow(kind: &str) -> FlowSpec {
    let once = Retry { max_attempts: Some(1), ..Retry::default() };
    FlowSpec::new("default", kind).lane(LANE).retry(once)
}

fn member(key: &str) -> MemberSpec {
    MemberSpec::new(key, "k")
}

async fn ended(world: &World, id: &FlowId) -> FlowSnapshot {
    world.admin.wait_flow(id, SOON).await.unwrap().expect("the flow ends soon")
}

/// Claims this many members, by key.
async fn claim_keys(worker: &FlowFabricWorker, count: usize) -> HashMap<String, ClaimedTask> {
    let mut tasks = HashMap::new();
    while tasks.len() < count {
        let task = claim(worker).await;
        tasks.insert(task.key().expect("a member has a key").to_owned(), task);
    }
    tasks
}

/// A worker that holds this many tasks.
async fn wide_worker(world: &World, tasks: usize) -> FlowFabricWorker {
    let mut config = world.config("w-1");
    config.max_concurrent_tasks = tasks;
    FlowFabricWorker::connect(config).await.unwrap()
}

/// The worker is told that its member was cancelled.
fn assert_cancelled(answer: Result<(), SdkError>) {
    match answer {
        Err(SdkError::Engine(error)) => match *error {
            EngineError::Contention(ContentionKind::ExecutionNotActive { terminal_outcome, .. }) => {
                assert_eq!(terminal_outcome, Some(Outcome::Cancelled));
            }
            other => panic!("{other:?}"),
        },
        other => panic!("its flow was cancelled, and yet {other:?}"),
    }
}

for_each_transport! {
    async fn a_member_finds_what_its_upstreams_passed_byte_for_byte(world: &World) {
        let worker = wide_worker(world, 2).await;
        let spec = flow("diamond")
            .member(member("root").input(b"\x00 in"))
            .member(member("left").takes("root", "page"))
            .member(member("right").takes("root", "page"))
            .member(member("join").takes("left", "l").takes("right", "r").after("root"));
        let submitted = world.admin.submit_flow(spec.clone()).await.unwrap();
        assert_eq!(submitted.flow_id, spec.fields.flow_id);
        assert_eq!(world.admin.submit_flow(spec).await.unwrap(), submitted, "the same id is the same flow");

        let root = claim(&worker).await;
        assert_eq!((root.flow_id(), root.key(), root.parent_id()), (Some(&submitted.flow_id), Some("root"), None));
        assert_eq!((root.input_payload(), root.execution_id()), (b"\x00 in".as_slice(), &submitted.members["root"]));
        assert!(root.passed().is_empty() && root.upstreams().is_empty());
        root.complete(Some(br#"{"n":12345678901234567890, "b":1}"#.to_vec())).await.unwrap();

        let mut sides = claim_keys(&worker, 2).await;
        for side in sides.values() {
            assert_eq!(side.passed()["page"], br#"{"n":12345678901234567890, "b":1}"#);
        }
        assert_eq!(world.admin.describe_flow(&submitted.flow_id).await.unwrap().state, FlowState::Running);
        sides.remove("left").unwrap().complete(Some(b"\x00\xff".to_vec())).await.unwrap();
        sides.remove("right").unwrap().complete(None).await.unwrap();

        let join = claim(&worker).await;
        assert_eq!(join.passed(), &HashMap::from([("l".to_owned(), b"\x00\xff".to_vec())]), "no result, nothing passed");
        assert_eq!(join.upstreams()["r"].outcome, Outcome::Success);
        assert_eq!(join.upstreams()["l"].execution_id, submitted.members["left"]);
        join.complete(None).await.unwrap();
        let seen = ended(world, &submitted.flow_id).await;
        assert_eq!((seen.state, seen.count(MemberState::Completed), seen.kind.as_str()), (FlowState::Completed, 4, "diamond"));
    }

    async fn a_member_that_runs_after_a_failure_finds_the_failure(world: &World) {
        let worker = world.worker("w-1").await;
        let spec = flow("repair")
            .member(member("work"))
            .member(member("more").after("work"))
            .member(member("repair").edge("work", EdgeOn::Failure, Some("broken".to_owned())));
        let submitted = world.admin.submit_flow(spec).await.unwrap();
        claim(&worker).await.fail("the disk is full", "disk").await.unwrap();

        let repair = claim(&worker).await;
        assert_eq!((repair.key(), repair.passed().len()), (Some("repair"), 0));
        let upstream = &repair.upstreams()["broken"];
        assert_eq!((upstream.outcome, upstream.execution_id), (Outcome::Failed, submitted.members["work"]));
        let failure = upstream.failure.as_ref().expect("it failed");
        assert_eq!((failure.reason.as_str(), failure.category.as_str()), ("the disk is full", "disk"));
        repair.complete(None).await.unwrap();
        let seen = ended(world, &submitted.flow_id).await;
        assert_eq!((seen.state, seen.count(MemberState::Skipped)), (FlowState::Completed, 1), "the failure was taken up");
    }

    async fn the_losers_of_a_race_are_cancelled_and_told(world: &World) {
        let worker = wide_worker(world, 3).await;
        let spec = flow("race").member(member("ann")).member(member("bob")).member(member("eve")).member(
            member("answer").takes("ann", "ann").takes("bob", "bob").takes("eve", "eve").any_of().cancel_remaining(),
        );
        let submitted = world.admin.submit_flow(spec).await.unwrap();
        let mut racers = claim_keys(&worker, 3).await;
        racers.remove("bob").unwrap().complete(Some(b"1".to_vec())).await.unwrap();
        let answer = claim(&worker).await;
        assert_eq!(answer.passed(), &HashMap::from([("bob".to_owned(), b"1".to_vec())]));
        assert_eq!(world.result(&submitted.members["ann"]).await.outcome, Outcome::Cancelled);
        assert_eq!(world.result(&submitted.members["eve"]).await.outcome, Outcome::Cancelled);
        for (_, loser) in racers {
            assert_cancelled(loser.complete(None).await);
        }
        answer.complete(None).await.unwrap();
        let seen = ended(world, &submitted.flow_id).await;
        assert_eq!((seen.state, seen.count(MemberState::Cancelled)), (FlowState::Completed, 2));
    }

    async fn a_worker_that_holds_a_member_of_a_cancelled_flow_is_told(world: &World) {
        let mut config = world.config("w-1");
        config.lease_ttl_ms = 1_000;
        let worker = FlowFabricWorker::connect(config).await.unwrap();
        let submitted = world.admin.submit_flow(flow("f").member(member("a")).member(member("b").after("a"))).await.unwrap();
        let task = claim(&worker).await;
        let seen = world.admin.cancel_flow(&submitted.flow_id, "not needed", CancelPolicy::CancelAll, true).await.unwrap();
        assert_eq!((seen.state, seen.count(MemberState::Cancelled)), (FlowState::Cancelled, 2));
        tokio::time::timeout(SOON, task.cancellation().cancelled()).await.expect("its token fires");
        assert!(!task.is_lease_healthy());
        assert_cancelled(task.complete(Some(b"late".to_vec())).await);
        let ended = ended(world, &submitted.flow_id).await;
        assert_eq!(ended.state, FlowState::Cancelled);
        for id in submitted.members.values() {
            let result = world.result(id).await;
            assert_eq!((result.outcome, result.result), (Outcome::Cancelled, None));
        }
        assert!(worker.claim_next().await.unwrap().is_none());
    }

    async fn what_runs_may_finish_when_its_flow_is_cancelled_that_way(world: &World) {
        let worker = world.worker("w-1").await;
        let submitted = world.admin.submit_flow(flow("f").member(member("a")).member(member("b").after("a"))).await.unwrap();
        let task = claim(&worker).await;
        world.admin.cancel_flow(&submitted.flow_id, "enough", CancelPolicy::LetActiveFinish, false).await.unwrap();
        assert_eq!(world.admin.wait_flow(&submitted.flow_id, Duration::ZERO).await.unwrap(), None, "one still runs");
        task.complete(Some(b"1".to_vec())).await.unwrap();
        let seen = ended(world, &submitted.flow_id).await;
        assert_eq!((seen.state, seen.count(MemberState::Completed)), (FlowState::Cancelled, 1));
    }

    async fn a_flow_fails_with_its_first_failure_when_told_so(world: &World) {
        let worker = wide_worker(world, 2).await;
        let spec = flow("f").on_member_failure(OnMemberFailure::FailFlow).member(member("a")).member(member("b"));
        let submitted = world.admin.submit_flow(spec).await.unwrap();
        let mut both = claim_keys(&worker, 2).await;
        both.remove("a").unwrap().fail("no", "x").await.unwrap();
        let seen = ended(world, &submitted.flow_id).await;
        assert_eq!((seen.state, seen.count(MemberState::Cancelled)), (FlowState::Failed, 1));
        assert_cancelled(both.remove("b").unwrap().complete(None).await);
    }

    async fn an_operator_sees_the_graph_and_finds_the_flow(world: &World) {
        let worker = world.worker("w-1").await;
        let spec = flow("seen").member(member("a")).member(member("b").takes("a", "x")).member(member("c").after_failure_of("a"));
        let submitted = world.admin.submit_flow(spec).await.unwrap();
        world.admin.submit_flow(flow("other").member(member("z").lane("elsewhere"))).await.unwrap();
        claim(&worker).await.complete(Some(b"1".to_vec())).await.unwrap();

        let graph = world.admin.flow_graph(&submitted.flow_id).await.unwrap();
        let states: Vec<_> = graph.members.iter().map(|member| (member.key.as_str(), member.state)).collect();
        assert_eq!(states, [("a", MemberState::Completed), ("b", MemberState::Waiting), ("c", MemberState::Skipped)]);
        assert_eq!(graph.member("b").map(|member| member.execution_id), Some(submitted.members["b"]));
        let edge = |to: &str| graph.edges.iter().find(|edge| edge.to == to).unwrap();
        assert_eq!((edge("b").from.as_str(), edge("b").state, edge("b").pass_as.as_deref()), ("a", EdgeState::Met, Some("x")));
        assert_eq!((edge("c").on, edge("c").state), (EdgeOn::Failure, EdgeState::Dead));

        let filter = FlowFilter { kind: Some("seen".to_owned()), ..FlowFilter::default() };
        let page = world.admin.list_flows(&filter, None, 10).await.unwrap();
        assert_eq!(page.items.iter().map(|flow| flow.flow_id).collect::<Vec<_>>(), [submitted.flow_id]);
        assert_eq!(worker.describe_flow(&submitted.flow_id).await.unwrap(), page.items[0]);
        match worker.describe_flow(&FlowId::mint()).await {
            Err(SdkError::Engine(error)) => assert_eq!(error.code(), "flow_not_found"),
            other => panic!("nobody submitted it, and yet {other:?}"),
        }
        claim(&worker).await.complete(None).await.unwrap();
        ended(world, &submitted.flow_id).await;
    }

    async fn a_flow_that_cannot_be_is_refused_before_anything_is_written(world: &World) {
        let cycle = flow("f").member(member("a").after("b")).member(member("b").after("a"));
        let id = cycle.fields.flow_id;
        let code = |error: SdkError| error.engine().unwrap_or_else(|| panic!("{error:?}")).code();
        assert_eq!(code(world.admin.submit_flow(cycle).await.unwrap_err()), "cycle_detected");
        let unknown = flow("f").member(member("a").after("nobody"));
        assert_eq!(code(world.admin.submit_flow(unknown).await.unwrap_err()), "invalid_argument");
        assert_eq!(code(world.admin.describe_flow(&id).await.unwrap_err()), "flow_not_found");
    }

    async fn a_flow_in_place_of_a_member_runs_between_its_neighbours(world: &World) {
        let worker = world.worker("w-1").await;
        let inner = FlowSpec::new("default", "inner").lane(LANE).member(member("x")).member(member("y").after("x"));
        let spec = flow("outer")
            .member(member("before"))
            .member(MemberSpec::of_flow("inner", inner).after("before"))
            .member(member("after").after("inner"));
        let submitted = world.admin.submit_flow(spec).await.unwrap();
        let mut order = Vec::new();
        for _ in 0..4 {
            let task = claim(&worker).await;
            order.push(task.key().unwrap().to_owned());
            task.complete(None).await.unwrap();
        }
        assert_eq!(order, ["before", "x", "y", "after"]);
        assert_eq!(ended(world, &submitted.flow_id).await.state, FlowState::Completed);
    }
}
