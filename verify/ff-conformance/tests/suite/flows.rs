//! Flows: members run when their edges allow it, and are skipped when that can no longer happen. The flow ends with its
//! last member.

use std::collections::BTreeMap;

use ff_conformance::flows::{TestFlow, any_of, cancelling, edges, quorum};
use ff_conformance::harness::refusal;
use ff_conformance::naive::{Naive, NaiveEdge, NaiveMember};
use ff_conformance::work::{Fenced, HOME, LEASE_MS, digest};
use ff_conformance::{Kind, Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::suspend::invalid;

async fn end(store: &Store, task: &Task, fine: bool) {
    if fine {
        store.complete(task).await;
    } else {
        store.fail(task, "broken").await;
    }
}

/// Claims all work and ends it: members in `failing` fail, the others complete.
async fn run(store: &Store, flow: &TestFlow, failing: &[&str]) -> Vec<String> {
    let mut order = Vec::new();
    loop {
        let tasks = store.claim_members(flow).await;
        if tasks.is_empty() && store.fire_all().await == 0 {
            return order;
        }
        for (key, task) in tasks {
            end(store, &task, !failing.contains(&key.as_str())).await;
            order.push(key);
        }
    }
}

async fn state_of(store: &Store, flow: &TestFlow) -> &'static str {
    store.see_flow(flow.id).await.state.as_str()
}

async fn flow_story(store: &Store, id: FlowId) -> Vec<String> {
    let events = store.events(HOME).await;
    events.into_iter().filter(|e| e.flow_id == Some(id) && e.execution_id.is_none()).map(|e| e.r#type).collect()
}

async fn add(
    store: &Store,
    flow_id: FlowId,
    members: Vec<NewMember>,
    shape: &str,
) -> Result<AddMembersReply, ff_script::Error> {
    store.ask(&AddMembers { edges: edges(shape), flow_id, members }).await
}

async fn complete_with(store: &Store, task: &Task, result: &[u8]) {
    let call = CompleteExecution {
        result: Some(result.to_vec().into()),
        ..CompleteExecution::new(task.execution_id, task.fence())
    };
    store.ask(&call).await.unwrap();
}

fn with_inbound(member: NewMember, inbound: Inbound) -> NewMember {
    NewMember { inbound: Some(inbound), ..member }
}

for_each_host! {
    async fn a_diamond_runs_in_the_order_of_its_edges(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b c d", "a>b a>c b>d c>d").await;
        assert_eq!(store.states(&flow).await, "a waiting, b waiting_children, c waiting_children, d waiting_children");
        let a = store.claim_members(&flow).await.remove("a").unwrap();
        assert!(store.claim_keys(&flow).await.is_empty());
        store.complete(&a).await;
        let mut both = store.claim_members(&flow).await;
        assert_eq!(both.keys().collect::<Vec<_>>(), ["b", "c"]);
        store.complete(&both.remove("b").unwrap()).await;
        assert!(store.claim_keys(&flow).await.is_empty());
        assert_eq!(state_of(&store, &flow).await, "running");
        store.complete(&both.remove("c").unwrap()).await;
        store.complete(&store.claim_one("w2").await).await;
        assert_eq!(store.states(&flow).await, "a completed, b completed, c completed, d completed");
        let seen = store.see_flow(flow.id).await;
        assert_eq!((seen.state, seen.members, seen.finished_at), (FlowState::Completed, 4, Some(store.now())));
        assert_eq!(seen.counts, BTreeMap::from([(MemberState::Completed, 4)]));
        assert_eq!(flow_story(&store, flow.id).await, ["flow.created", "flow.sealed", "flow.completed"]);
        assert_eq!(store.story(flow.of("d")).await, ["execution.submitted", "execution.ready", "execution.started", "execution.completed"]);
        store.assert_sound().await;
    }

    async fn a_failure_skips_everything_behind_it(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b c d e", "a>b b>c c>d").await;
        assert_eq!(run(&store, &flow, &["a"]).await, ["a", "e"]);
        assert_eq!(store.states(&flow).await, "a failed, b skipped, c skipped, d skipped, e completed");
        assert_eq!(state_of(&store, &flow).await, "failed");
        assert_eq!(store.story(flow.of("c")).await, ["execution.submitted", "execution.skipped"]);
        store.assert_sound().await;
    }

    async fn edges_on_failure_and_completion_take_a_failure_up(store) {
        store.install_default_lane().await;
        let flow = store.flow("work undo always next", "work!undo work*always work>next").await;
        run(&store, &flow, &["work"]).await;
        assert_eq!(store.states(&flow).await, "always completed, next skipped, undo completed, work failed");
        assert_eq!(state_of(&store, &flow).await, "completed");
        let fine = store.flow("work undo always next", "work!undo work*always work>next").await;
        run(&store, &fine, &[]).await;
        assert_eq!(store.states(&fine).await, "always completed, next completed, undo skipped, work completed");
        assert_eq!(state_of(&store, &fine).await, "completed");
    }

    async fn any_of_runs_after_the_first_and_takes_failures_up(store) {
        store.install_default_lane().await;
        let mut members = store.members("a b c");
        members.push(with_inbound(store.member("first"), any_of()));
        let flow = store.flow_of(store.new_flow(), members, "a>first b>first c>first").await;
        let tasks = store.claim_members(&flow).await;
        store.fail(&tasks["a"], "broken").await;
        assert_eq!(state_of(&store, &flow).await, "running");
        store.complete(&tasks["b"]).await;
        assert_eq!(store.claim_keys(&flow).await, ["first"]);
        store.complete(&tasks["c"]).await;
        assert_eq!(store.states(&flow).await, "a failed, b completed, c completed, first active");
        let first = store.describe(flow.of("first")).await.lease.unwrap();
        let call = CompleteExecution::new(flow.of("first"), Fence { attempt_id: store.describe(flow.of("first")).await.attempts[0].attempt_id, lease_id: first.lease_id, lease_epoch: first.lease_epoch });
        store.ask(&call).await.unwrap();
        assert_eq!(state_of(&store, &flow).await, "completed");
        store.assert_sound().await;
    }

    async fn a_race_that_nobody_wins_is_skipped_and_fails_the_flow(store) {
        store.install_default_lane().await;
        let mut members = store.members("a b c");
        members.push(with_inbound(store.member("two"), quorum(2)));
        let flow = store.flow_of(store.new_flow(), members, "a>two b>two c>two").await;
        run(&store, &flow, &["a", "b"]).await;
        assert_eq!(store.states(&flow).await, "a failed, b failed, c completed, two skipped");
        let seen = store.see_flow(flow.id).await;
        assert_eq!((seen.state, seen.uncaught_failures), (FlowState::Failed, 2));
        store.assert_sound().await;
    }

    async fn cancel_remaining_ends_the_losers_and_spares_what_others_need(store) {
        store.install_default_lane().await;
        let mut members = store.members("a b c other");
        members.push(with_inbound(store.member("first"), cancelling(any_of())));
        let flow = store.flow_of(store.new_flow(), members, "a>first b>first c>first c>other").await;
        let tasks = store.claim_members(&flow).await;
        store.complete(&tasks["a"]).await;
        assert_eq!(store.states(&flow).await, "a completed, b cancelled, c active, first waiting, other waiting_children");
        let refused = store.ask(&CompleteExecution::new(tasks["b"].execution_id, tasks["b"].fence())).await;
        assert_eq!(refusal(refused), ErrorCode::ExecutionNotActive);
        store.complete(&tasks["c"]).await;
        run(&store, &flow, &[]).await;
        assert_eq!(state_of(&store, &flow).await, "completed");
        store.assert_sound().await;
    }

    async fn fail_flow_cancels_the_rest_at_once(store) {
        store.install_default_lane().await;
        let policy = NewFlow { on_member_failure: OnMemberFailure::FailFlow, ..store.new_flow() };
        let flow = store.flow_of(policy, store.members("a b c d"), "a>c b>d").await;
        let tasks = store.claim_members(&flow).await;
        store.fail(&tasks["a"], "broken").await;
        assert_eq!(state_of(&store, &flow).await, "failed");
        store.fire_all().await;
        assert_eq!(store.states(&flow).await, "a failed, b cancelled, c skipped, d cancelled");
        let d = store.describe(flow.of("d")).await;
        assert_eq!(d.failure.unwrap().reason, "flow_failed");
        assert_eq!(flow_story(&store, flow.id).await, ["flow.created", "flow.sealed", "flow.failed"]);
        store.assert_sound().await;
    }

    async fn isolate_branch_succeeds_when_a_sink_does(store) {
        store.install_default_lane().await;
        for (failing, state) in [(&["a"][..], "completed"), (&["a", "b"], "failed")] {
            let policy = NewFlow { on_member_failure: OnMemberFailure::IsolateBranch, ..store.new_flow() };
            let flow = store.flow_of(policy, store.members("a b c d"), "a>c b>d").await;
            run(&store, &flow, failing).await;
            assert_eq!(state_of(&store, &flow).await, state, "{failing:?}");
        }
    }

    async fn a_result_is_passed_under_its_name(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b c", "a>c:left b>c:right").await;
        let tasks = store.claim_members(&flow).await;
        let far = vec![0xff; 9_000];
        complete_with(&store, &tasks["a"], b"\x00one").await;
        complete_with(&store, &tasks["b"], &far).await;
        let c = store.claim_one("w2").await;
        let passed = c.passed.unwrap();
        assert_eq!(c.input, "".into());
        assert_eq!(passed.keys().collect::<Vec<_>>(), ["left", "right"]);
        assert_eq!((passed["left"].value.clone(), passed["left"].execution_id), (Some(b"\x00one".to_vec().into()), flow.of("a")));
        assert_eq!(passed["right"].value, Some(far.into()));
        assert_eq!((c.flow_id, c.key.as_deref()), (Some(flow.id), Some("c")));
    }

    async fn a_failure_edge_passes_the_failure(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b", "a!b:cause").await;
        store.fail(&store.claim_one("w1").await, "broken").await;
        let b = store.claim_one("w1").await;
        let cause = b.passed.unwrap().remove("cause").unwrap();
        assert_eq!((cause.outcome, cause.value, cause.failure.unwrap().category.as_str()), (Outcome::Failed, None, "broken"));
        let _ = flow;
    }

    async fn too_much_passed_data_fails_the_member(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b c d e join", "a>join:a b>join:b c>join:c d>join:d e>join:e").await;
        for (_, task) in store.claim_members(&flow).await {
            complete_with(&store, &task, &vec![1; 1_000_000]).await;
        }
        let join = store.describe(flow.of("join")).await;
        assert_eq!((join.outcome, join.failure.unwrap().category.as_str()), (Some(Outcome::Failed), "passed_too_large"));
        store.assert_sound().await;
    }

    async fn nobody_sees_an_unsealed_flow_and_it_goes_when_nobody_adds_to_it(store) {
        store.install_default_lane().await;
        let before = store.dump_without_streams().await;
        let flow = store.new_flow();
        let id = flow.flow_id;
        let call = SubmitFlow { edges: edges("a>b"), flow, members: store.members("a b"), seal: false };
        store.ask(&call).await.unwrap();
        let member = call.members[0].submission.execution_id;
        assert_eq!(refusal(store.find(member).await), ErrorCode::ExecutionNotFound);
        assert!(store.claim("w1", 10).await.is_empty());
        let ListExecutionsReply::Page { items, .. } = store.ask(&ListExecutions::new(10)).await.unwrap();
        assert!(items.is_empty());
        assert_eq!(store.see_flow(id).await.state, FlowState::Open);
        assert_eq!(store.member_states(id).await["a"], MemberState::Held);
        store.assert_sound().await;
        store.advance(599_999);
        add(&store, id, store.members("c"), "b>c").await.unwrap();
        store.advance(599_999);
        assert_eq!(store.fire_all().await, 0);
        store.advance(1);
        store.fire_all().await;
        assert_eq!(refusal(store.find_flow(id).await), ErrorCode::FlowNotFound);
        let mut after = store.dump_without_streams().await;
        crate::storage::forget_hints(&mut after);
        let mut before = before;
        crate::storage::forget_hints(&mut before);
        assert_eq!(after, before, "nothing is left behind");
    }

    async fn a_flow_written_in_pieces_runs_once_it_is_sealed(store) {
        store.install_default_lane().await;
        let flow = store.new_flow();
        let id = flow.flow_id;
        let members = store.members("a b");
        let mut ids: BTreeMap<String, ExecutionId> = members.iter().map(|m| (m.key.clone(), m.submission.execution_id)).collect();
        store.ask(&SubmitFlow { edges: edges("a>b"), flow, members, seal: false }).await.unwrap();
        let more = store.members("c d");
        ids.extend(more.iter().map(|m| (m.key.clone(), m.submission.execution_id)));
        add(&store, id, more.clone(), "a>c b>d c>d").await.unwrap();
        // The same call again gets the same reply.
        let AddMembersReply::Added { items, .. } = add(&store, id, more, "a>c b>d c>d").await.unwrap();
        assert!(items.iter().all(|item| item.duplicate));
        let flow = TestFlow { id, ids };
        store.ask(&SealFlow { flow_id: id }).await.unwrap();
        assert!(matches!(store.ask(&SealFlow { flow_id: id }).await, Ok(SealFlowReply::Already { .. })));
        assert_eq!(run(&store, &flow, &[]).await, ["a", "b", "c", "d"]);
        assert_eq!(state_of(&store, &flow).await, "completed");
        store.assert_sound().await;
    }

    async fn a_flow_grows_while_it_runs(store) {
        store.install_default_lane().await;
        let mut flow = store.flow("a b", "a>b").await;
        store.complete(&store.claim_one("w1").await).await;
        let members = store.members("c d");
        flow.ids.extend(members.iter().map(|m| (m.key.clone(), m.submission.execution_id)));
        // An edge from an ended upstream resolves at once, one from a running one waits.
        add(&store, flow.id, members, "a>c b>d").await.unwrap();
        assert_eq!(store.states(&flow).await, "a completed, b waiting, c waiting, d waiting_children");
        run(&store, &flow, &[]).await;
        assert_eq!(state_of(&store, &flow).await, "completed");
        assert_eq!(refusal(add(&store, flow.id, store.members("e"), "").await), ErrorCode::FlowTerminal);
        store.assert_sound().await;
    }

    async fn a_member_added_behind_a_failure_is_skipped_at_once(store) {
        store.install_default_lane().await;
        let mut flow = store.flow("a b", "").await;
        let tasks = store.claim_members(&flow).await;
        store.fail(&tasks["a"], "broken").await;
        let members = store.members("c d");
        flow.ids.extend(members.iter().map(|m| (m.key.clone(), m.submission.execution_id)));
        add(&store, flow.id, members, "a>c a!d").await.unwrap();
        assert_eq!(store.states(&flow).await, "a failed, b active, c skipped, d waiting");
        store.complete(&tasks["b"]).await;
        run(&store, &flow, &[]).await;
        // The edge on failure that was added later handles the failure.
        assert_eq!(state_of(&store, &flow).await, "completed");
        store.assert_sound().await;
    }

    async fn edges_between_members_that_are_there_need_the_version_of_the_graph(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b c", "a>b").await;
        let version = store.see_flow(flow.id).await.version;
        let call = |text: &str, version| AddEdges { edges: edges(text), flow_id: flow.id, version };
        assert_eq!(refusal(store.ask(&call("b>c", None)).await), ErrorCode::FlowChanged);
        assert_eq!(refusal(store.ask(&call("b>c", Some(version + 1))).await), ErrorCode::FlowChanged);
        assert_eq!(refusal(store.ask(&call("a>a", Some(version))).await), ErrorCode::CycleDetected);
        // A member that could have run waits again.
        assert_eq!(store.states(&flow).await, "a waiting, b waiting_children, c waiting");
        assert!(matches!(store.ask(&call("b>c", Some(version))).await, Ok(AddEdgesReply::Added { count: 1, .. })));
        assert_eq!(store.states(&flow).await, "a waiting, b waiting_children, c waiting_children");
        assert_eq!(refusal(store.ask(&call("a>c", Some(version))).await), ErrorCode::FlowChanged);
        assert!(invalid(store.ask(&call("a>x", Some(version + 1))).await).contains("edges[0].to"));
        assert_eq!(refusal(store.ask(&call("b!c", Some(version + 1))).await), ErrorCode::IdempotencyConflict);
        store.claim_one("w1").await;
        assert_eq!(refusal(store.ask(&call("c>a", Some(version + 1))).await), ErrorCode::MemberStarted);
        store.assert_sound().await;
    }

    async fn what_does_not_fit_a_flow_is_refused_whole(store) {
        store.install_default_lane().await;
        let before = store.dump().await;
        let submit = |members: Vec<NewMember>, shape: &str| SubmitFlow { edges: edges(shape), flow: store.new_flow(), members, seal: true };
        let mut stranger = store.member("b");
        stranger.submission.execution_id = ExecutionId::from_uuid(store.uuid(1));
        assert!(invalid(store.ask(&submit(vec![store.member("a"), stranger], "")).await).contains("members[1].submission.execution_id"));
        assert_eq!(refusal(store.ask(&submit(store.members("a b"), "b>a")).await), ErrorCode::CycleDetected);
        assert!(invalid(store.ask(&submit(store.members("a b"), "a>c")).await).contains("edges[0].to"));
        assert!(invalid(store.ask(&submit(store.members("a b c"), "a>c:x b>c:x")).await).contains("edges[1].pass_as"));
        assert!(invalid(store.ask(&submit(vec![with_inbound(store.member("a"), Inbound::new(InboundPolicy::Quorum))], "")).await).contains("members[0].inbound.k"));
        assert_eq!(store.dump().await, before);
    }

    async fn the_same_flow_again_is_the_same_flow(store) {
        store.install_default_lane().await;
        let call = SubmitFlow { edges: edges("a>b"), flow: store.new_flow(), members: store.members("a b"), seal: true };
        store.ask(&call).await.unwrap();
        let before = store.dump().await;
        assert!(matches!(store.ask(&call).await, Ok(SubmitFlowReply::Duplicate { .. })));
        let other = SubmitFlow { flow: NewFlow { body_digest: digest("other"), ..call.flow.clone() }, ..call };
        assert_eq!(refusal(store.ask(&other).await), ErrorCode::IdempotencyConflict);
        assert_eq!(store.dump().await, before);
    }

    async fn members_are_kept_while_their_flow_runs_and_all_go_after_it(store) {
        store.install_default_lane().await;
        let before = store.dump_without_streams().await;
        let mut members = store.members("a b");
        for member in &mut members {
            member.submission.retention_ms = Some(1_000);
        }
        let flow = store.flow_of(NewFlow { retention_ms: Some(500), ..store.new_flow() }, members, "a>b:x").await;
        complete_with(&store, &store.claim_one("w1").await, b"1").await;
        store.advance(100_000);
        assert_eq!(store.fire_all().await, 0);
        assert_eq!(refusal(store.ask(&DeleteExecution { actor: "ann".into(), execution_id: flow.of("a") }).await), ErrorCode::FlowNotTerminal);
        store.complete(&store.claim_one("w1").await).await;
        store.fire_all().await;
        assert_eq!(store.describe(flow.of("a")).await.retire_at, Some(store.now() + 1_000));
        store.assert_sound().await;
        store.advance(1_000);
        store.fire_all().await;
        assert_eq!(refusal(store.find_flow(flow.id).await), ErrorCode::FlowNotFound);
        let (mut before, mut after) = (before, store.dump_without_streams().await);
        crate::storage::forget_hints(&mut before);
        crate::storage::forget_hints(&mut after);
        assert_eq!(after, before, "nothing is left behind");
    }

    async fn a_cancelled_flow_lets_nothing_be_claimed(store) {
        store.install_default_lane().await;
        let keys: Vec<String> = (0..150).map(|n| format!("m{n:03}")).collect();
        let mut flow = store.flow(&keys[..64].join(" "), "").await;
        for chunk in keys[64..].chunks(64) {
            let members = store.members(&chunk.join(" "));
            flow.ids.extend(members.iter().map(|m| (m.key.clone(), m.submission.execution_id)));
            add(&store, flow.id, members, "").await.unwrap();
        }
        let running = store.claim_one("w1").await;
        let CancelFlowReply::Cancelled { more, .. } = store.cancel_flow(flow.id, CancelPolicy::CancelAll).await else { panic!("not cancelled") };
        assert!(more);
        assert_eq!(state_of(&store, &flow).await, "cancelled");
        let PartitionStatsReply::Stats { cancel_backlog, pending_cancels, .. } = store.ask(&PartitionStats::default()).await.unwrap();
        assert_eq!((cancel_backlog, pending_cancels), (1, 150 - 64));
        store.assert_sound().await;
        // Claims find members that are still to be cancelled, and end them.
        assert!(store.claim("w2", 10).await.is_empty());
        store.assert_sound().await;
        store.fire_all().await;
        let seen = store.see_flow(flow.id).await;
        assert_eq!((seen.counts, seen.walk), (BTreeMap::from([(MemberState::Cancelled, 150)]), None));
        let told = store.ask(&CompleteExecution::new(running.execution_id, running.fence())).await.unwrap_err();
        assert!(told.to_string().contains("outcome cancelled"), "{told}");
        for id in flow.ids.values().take(3) {
            let member = store.describe(*id).await;
            assert_eq!(member.failure.unwrap().reason, "ann says so");
            assert_eq!(member.operator_actions[0].actor, "ann");
        }
        assert!(matches!(store.cancel_flow(flow.id, CancelPolicy::CancelAll).await, CancelFlowReply::Already { .. }));
        let replay = ReplayExecution::new("ann".into(), running.execution_id);
        assert_eq!(refusal(store.ask(&replay).await), ErrorCode::FlowTerminal);
        store.assert_sound().await;
    }

    async fn gentle_cancels_let_what_runs_finish(store) {
        store.install_default_lane().await;
        for policy in [CancelPolicy::CancelPending, CancelPolicy::LetActiveFinish] {
            let flow = store.flow("a b c d", "a>d").await;
            let tasks: Vec<Task> = store.claim("w1", 2).await;
            store.cancel_flow(flow.id, policy).await;
            store.fire_all().await;
            let seen = store.see_flow(flow.id).await;
            assert_eq!(seen.counts, BTreeMap::from([(MemberState::Active, 2), (MemberState::Cancelled, 2)]));
            assert_eq!((seen.state, seen.finished_at.is_some()), (FlowState::Cancelled, policy == CancelPolicy::CancelPending));
            store.complete(&tasks[0]).await;
            // An execution that gives up its lease is not offered again.
            let call = DelayExecution { delay_ms: Some(5), ..DelayExecution::new(tasks[1].execution_id, tasks[1].fence()) };
            store.ask(&call).await.unwrap();
            store.assert_sound().await;
            store.fire_all().await;
            let seen = store.see_flow(flow.id).await;
            assert_eq!(seen.counts, BTreeMap::from([(MemberState::Completed, 1), (MemberState::Cancelled, 3)]));
            assert!(seen.finished_at.is_some());
            store.assert_sound().await;
        }
    }

    async fn a_member_of_a_cancelled_flow_is_not_retried(store) {
        store.install_default_lane().await;
        let mut member = store.member("a");
        member.submission.retry = None;
        let flow = store.flow_of(store.new_flow(), vec![member], "").await;
        let task = store.claim_one("w1").await;
        store.cancel_flow(flow.id, CancelPolicy::LetActiveFinish).await;
        store.fail(&task, "flaky").await;
        store.fire_all().await;
        assert_eq!(store.states(&flow).await, "a cancelled");
        store.advance(LEASE_MS * 10);
        store.fire_all().await;
        assert!(store.claim("w1", 1).await.is_empty());
        store.assert_sound().await;
    }

    async fn replay_of_a_member_waits_again_for_what_was_skipped(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b c side", "a>b b>c").await;
        run(&store, &flow, &["a"]).await;
        assert_eq!(state_of(&store, &flow).await, "failed");
        store.ask(&ReplayExecution::new("ann".into(), flow.of("a"))).await.unwrap();
        assert_eq!(store.states(&flow).await, "a waiting, b waiting_children, c waiting_children, side completed");
        assert_eq!(state_of(&store, &flow).await, "running");
        store.assert_sound().await;
        run(&store, &flow, &[]).await;
        assert_eq!(store.states(&flow).await, "a completed, b completed, c completed, side completed");
        assert_eq!(state_of(&store, &flow).await, "completed");
        assert_eq!(flow_story(&store, flow.id).await, ["flow.created", "flow.sealed", "flow.failed", "flow.reopened", "flow.completed"]);
        store.assert_sound().await;
    }

    async fn replay_of_a_member_counts_for_those_nobody_sees_yet(store) {
        store.install_default_lane().await;
        // More members than one step handles: the last one is hidden while the first one fails and runs again.
        let names: Vec<String> = (0..150).map(|n| format!("m{n:03}")).collect();
        let new = store.new_flow();
        let mut flow = TestFlow { id: new.flow_id, ids: BTreeMap::new() };
        store.ask(&SubmitFlow { edges: vec![], flow: new, members: vec![], seal: false }).await.unwrap();
        for chunk in names.chunks(64) {
            let members = store.members(&chunk.join(" "));
            flow.ids.extend(members.iter().map(|m| (m.key.clone(), m.submission.execution_id)));
            let shape = if chunk.contains(&names[149]) { "m000>m149" } else { "" };
            add(&store, flow.id, members, shape).await.unwrap();
        }
        store.ask(&SealFlow { flow_id: flow.id }).await.unwrap();
        let mut tasks = store.claim_members(&flow).await;
        store.fail(&tasks.remove("m000").unwrap(), "broken").await;
        assert_eq!(store.story(flow.of("m149")).await, Vec::<String>::new(), "it is still hidden");
        store.ask(&ReplayExecution::new("ann".into(), flow.of("m000"))).await.unwrap();
        store.assert_sound().await;
        for task in tasks.values() {
            store.complete(task).await;
        }
        run(&store, &flow, &[]).await;
        assert_eq!(store.story(flow.of("m149")).await.last().unwrap(), "execution.completed");
        assert_eq!(state_of(&store, &flow).await, "completed");
        store.assert_sound().await;
    }

    async fn a_skipped_member_that_is_replayed_waits_for_its_edges(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b", "a>b").await;
        run(&store, &flow, &["a"]).await;
        store.ask(&ReplayExecution::new("ann".into(), flow.of("b"))).await.unwrap();
        assert_eq!(store.states(&flow).await, "a failed, b waiting_children");
        assert!(store.claim("w1", 5).await.is_empty());
        store.ask(&ReplayExecution::new("ann".into(), flow.of("a"))).await.unwrap();
        run(&store, &flow, &[]).await;
        assert_eq!(state_of(&store, &flow).await, "completed");
        store.assert_sound().await;
    }

    async fn a_member_runs_again_although_its_neighbours_were_retired(store) {
        store.install_default_lane().await;
        let mut members = store.members("a b c");
        members[2].submission.retention_ms = Some(0);
        let flow = store.flow_of(store.new_flow(), members, "a>b b>c").await;
        run(&store, &flow, &["a"]).await;
        store.advance(1);
        store.fire_all().await;
        assert_eq!(store.states(&flow).await, "a failed, b skipped");
        assert_eq!(store.see_flow(flow.id).await.uncaught_failures, 1);
        store.assert_sound().await;
        store.ask(&ReplayExecution::new("ann".into(), flow.of("a"))).await.unwrap();
        run(&store, &flow, &[]).await;
        assert_eq!(store.states(&flow).await, "a completed, b completed");
        assert_eq!(state_of(&store, &flow).await, "completed");
        store.assert_sound().await;
    }

    async fn a_member_cancelled_while_it_waited_is_decided_when_it_runs_again(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b", "a>b").await;
        store.ask(&CancelExecution::new("ann".into(), flow.of("b"))).await.unwrap();
        run(&store, &flow, &[]).await;
        store.ask(&ReplayExecution::new("ann".into(), flow.of("b"))).await.unwrap();
        store.assert_sound().await;
        assert_eq!(run(&store, &flow, &[]).await, ["b"]);
        assert_eq!(state_of(&store, &flow).await, "completed");
    }

    async fn what_two_failures_skipped_waits_again_once_both_run_again(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b c", "a>c b>c").await;
        run(&store, &flow, &["a", "b"]).await;
        store.ask(&ReplayExecution::new("ann".into(), flow.of("a"))).await.unwrap();
        assert_eq!(store.states(&flow).await, "a waiting, b failed, c skipped");
        store.assert_sound().await;
        store.ask(&ReplayExecution::new("ann".into(), flow.of("b"))).await.unwrap();
        assert_eq!(store.states(&flow).await, "a waiting, b waiting, c waiting_children");
        run(&store, &flow, &[]).await;
        assert_eq!(store.states(&flow).await, "a completed, b completed, c completed");
        store.assert_sound().await;
    }

    async fn a_skipped_member_that_is_replayed_is_sound_while_it_waits(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b", "a>b").await;
        run(&store, &flow, &["a"]).await;
        store.ask(&ReplayExecution::new("ann".into(), flow.of("b"))).await.unwrap();
        store.assert_sound().await;
    }

    async fn the_time_to_start_begins_when_the_edges_let_a_member_run(store) {
        store.install_default_lane().await;
        let mut members = store.members("a b");
        members[1].submission.start_within_ms = Some(1_000);
        let flow = store.flow_of(store.new_flow(), members, "a>b").await;
        let task = store.claim_one("w1").await;
        store.advance(5_000);
        store.fire_all().await;
        assert_eq!(store.states(&flow).await, "a active, b waiting_children");
        store.complete(&task).await;
        assert_eq!(store.describe(flow.of("b")).await.start_by, Some(store.now() + 1_000));
        store.advance(1_000);
        store.fire_all().await;
        assert_eq!(store.states(&flow).await, "a completed, b expired");
    }

    async fn a_member_that_a_new_edge_sets_back_says_so(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b", "").await;
        let call = AddEdges { version: Some(0), ..AddEdges::new(edges("a>b"), flow.id) };
        store.ask(&call).await.unwrap();
        assert_eq!(store.story(flow.of("b")).await, ["execution.submitted", "execution.blocked"]);
        assert_eq!(store.claim_keys(&flow).await, ["a"]);
    }

    async fn a_flow_that_is_being_removed_is_not_found(store) {
        store.install_default_lane().await;
        let flow = store.new_flow();
        let flow_id = flow.flow_id;
        let members = |from: u32| (from..from + 60).map(|n| store.member(&format!("m{n}"))).collect::<Vec<_>>();
        store.ask(&SubmitFlow { edges: vec![], flow, members: members(0), seal: false }).await.unwrap();
        add(&store, flow_id, members(60), "").await.unwrap();
        store.advance(600_000);
        // One step of the walk: the first members are gone, the others are not.
        store.call(HOME, &FireDue { draw: 0, limit: 1 }).await.unwrap();
        assert_eq!(refusal(store.ask(&SealFlow { flow_id }).await), ErrorCode::FlowNotFound);
        assert_eq!(refusal(add(&store, flow_id, members(120), "").await), ErrorCode::FlowNotFound);
        assert_eq!(refusal(store.find_flow(flow_id).await), ErrorCode::FlowNotFound);
        store.fire_all().await;
        store.assert_sound().await;
    }

    async fn a_parent_that_runs_again_waits_for_no_child_that_has_ended(store) {
        store.install_default_lane().await;
        let parent = store.start("parent", "w1").await;
        let children = vec![NewChild::new(store.submission("child"))];
        let spawn = SpawnChildren::new(children, parent.execution_id, parent.fence());
        store.ask(&spawn).await.unwrap();
        store.ask(&CancelExecution::new("ann".into(), parent.execution_id)).await.unwrap();
        store.assert_sound().await;
        store.ask(&ReplayExecution::new("ann".into(), parent.execution_id)).await.unwrap();
        assert_eq!(store.describe(parent.execution_id).await.children_open, 0);
        let again = store.claim_one("w1").await;
        let wait_id = ff_core::types::SuspensionId::from_uuid(store.uuid(0));
        let wait = WaitChildren::new(again.execution_id, again.fence(), wait_id);
        assert!(matches!(store.ask(&wait).await.unwrap(), WaitChildrenReply::Ended { .. }));
        store.assert_sound().await;
    }

    async fn a_waitpoint_takes_signals_while_its_attempt_waits_for_children(store) {
        store.install_default_lane().await;
        let parent = store.start("parent", "w1").await;
        let (execution_id, fence) = (parent.execution_id, parent.fence());
        let waitpoint_id = ff_core::types::WaitpointId::from_uuid(store.uuid(0));
        let token = "a".repeat(64);
        let mut waitpoint = NewWaitpoint::new(waitpoint_id, "door".into(), vec![Token::new(token.clone())]);
        waitpoint.expires_in_ms = Some(5_000);
        store.ask(&CreateWaitpoint::new(execution_id, fence, waitpoint)).await.unwrap();
        let children = vec![NewChild::new(store.submission("child"))];
        store.ask(&SpawnChildren::new(children, execution_id, fence)).await.unwrap();
        let wait_id = ff_core::types::SuspensionId::from_uuid(store.uuid(0));
        store.ask(&WaitChildren::new(execution_id, fence, wait_id)).await.unwrap();
        store.assert_sound().await;
        let signal_id = ff_core::types::SignalId::from_uuid(store.uuid(0));
        let signal = DeliverSignal::new(execution_id, "approved".into(), signal_id, token, waitpoint_id);
        assert!(matches!(store.ask(&signal).await.unwrap(), DeliverSignalReply::Accepted { .. }));
        store.advance(5_000);
        store.fire_all().await;
        assert!(store.describe(execution_id).await.waitpoints.is_empty());
        store.assert_sound().await;
        store.complete(&store.claim_one("w1").await).await;
        assert_eq!(store.claim_one("w1").await.execution_id, execution_id);
        store.assert_sound().await;
    }

    async fn a_wide_fan_out_and_join_are_resolved_in_pieces(store) {
        store.install_default_lane().await;
        let leaves: Vec<String> = (0..62).map(|n| format!("l{n:02}")).collect();
        let out: Vec<String> = leaves.iter().flat_map(|leaf| [format!("root>{leaf}"), format!("{leaf}>join")]).collect();
        let mut flow = store.flow(&format!("root {} join", leaves.join(" ")), &out.join(" ")).await;
        for batch in 0..3 {
            let more: Vec<NewMember> = (0..60).map(|n| store.member(&format!("x{batch}-{n:02}"))).collect();
            let shape: Vec<String> = more.iter().map(|m| format!("root>{}", m.key)).collect();
            flow.ids.extend(more.iter().map(|m| (m.key.clone(), m.submission.execution_id)));
            add(&store, flow.id, more, &shape.join(" ")).await.unwrap();
        }
        store.complete(&store.claim_one("w1").await).await;
        let seen = store.see_flow(flow.id).await;
        assert_eq!((seen.counts[&MemberState::Waiting], seen.owed), (64, 1));
        store.assert_sound().await;
        store.fire_all().await;
        assert_eq!(store.see_flow(flow.id).await.counts[&MemberState::Waiting], 242);
        store.assert_sound().await;
        assert_eq!(run(&store, &flow, &[]).await.len(), 243);
        assert_eq!(state_of(&store, &flow).await, "completed");
        store.assert_sound().await;
    }

    async fn a_deep_chain_is_skipped_to_its_end(store) {
        store.install_default_lane().await;
        let keys: Vec<String> = (0..64).map(|n| format!("k{n:03}")).collect();
        let shape: Vec<String> = keys.windows(2).map(|pair| format!("{}>{}", pair[0], pair[1])).collect();
        let mut flow = store.flow(&keys.join(" "), &shape.join(" ")).await;
        let mut last = keys[63].clone();
        for n in 64..150 {
            let key = format!("k{n:03}");
            let member = store.member(&key);
            flow.ids.insert(key.clone(), member.submission.execution_id);
            add(&store, flow.id, vec![member], &format!("{last}>{key}")).await.unwrap();
            last = key;
        }
        store.fail(&store.claim_one("w1").await, "broken").await;
        store.assert_sound().await;
        store.fire_all().await;
        let seen = store.see_flow(flow.id).await;
        assert_eq!((seen.counts[&MemberState::Skipped], seen.state), (149, FlowState::Failed));
        store.assert_sound().await;
    }

    async fn a_flow_can_stand_in_place_of_a_member(store) {
        store.install_default_lane().await;
        for (failing, outer) in [(&[][..], "completed"), (&["x"], "failed")] {
            let (inner, mut members) = (store.new_flow(), store.members("a flow z"));
            let parent = members[1].submission.execution_id;
            let (inner_id, outer_flow) = (inner.flow_id, store.new_flow());
            members[1].nested = Some(inner_id);
            let inner_members = store.members("x y");
            let inner_ids = inner_members.iter().map(|m| (m.key.clone(), m.submission.execution_id)).collect();
            let nested = SubmitFlow { edges: edges("x>y"), flow: NewFlow { parent_id: Some(parent), ..inner }, members: inner_members, seal: false };
            store.ask(&nested).await.unwrap();
            let flow = store.flow_of(outer_flow, members, "a>flow flow>z").await;
            let inner = TestFlow { id: inner_id, ids: inner_ids };
            assert!(invalid(store.ask(&SealFlow { flow_id: inner_id }).await).contains("turn of its member"));
            store.complete(&store.claim_one("w1").await).await;
            assert_eq!(store.describe(parent).await.blocking_reason, Some(BlockingReason::WaitingForChildren));
            store.fire_all().await;
            run(&store, &inner, failing).await;
            store.fire_all().await;
            assert_eq!(state_of(&store, &flow).await, outer);
            assert_eq!(state_of(&store, &inner).await, outer);
            store.assert_sound().await;
        }
    }

    async fn a_flow_made_for_a_member_that_never_came_goes_too(store) {
        store.install_default_lane().await;
        let inside = |parent| SubmitFlow { edges: vec![], flow: NewFlow { parent_id: Some(parent), ..store.new_flow() }, members: store.members("x"), seal: false };
        let mut members = store.members("a flow");
        let (kept, orphan) = (inside(members[1].submission.execution_id), inside(store.members("nobody")[0].submission.execution_id));
        store.ask(&orphan).await.unwrap();
        store.ask(&kept).await.unwrap();
        members[1].nested = Some(kept.flow.flow_id);
        store.flow_of(store.new_flow(), members, "a>flow").await;
        store.assert_sound().await;
        store.advance(600_000);
        store.fire_all().await;
        assert_eq!(refusal(store.find_flow(orphan.flow.flow_id).await), ErrorCode::FlowNotFound);
        assert_eq!(store.see_flow(kept.flow.flow_id).await.state, FlowState::Open, "its turn has not come");
        store.assert_sound().await;
    }

    async fn a_cancel_reaches_the_flow_inside(store) {
        store.install_default_lane().await;
        let (inner, mut members) = (store.new_flow(), store.members("flow"));
        let (parent, inner_id) = (members[0].submission.execution_id, inner.flow_id);
        members[0].nested = Some(inner_id);
        let nested = SubmitFlow { edges: vec![], flow: NewFlow { parent_id: Some(parent), ..inner }, members: store.members("x y"), seal: false };
        store.ask(&nested).await.unwrap();
        let flow = store.flow_of(store.new_flow(), members, "").await;
        store.fire_all().await;
        store.claim_one("w1").await;
        store.cancel_flow(flow.id, CancelPolicy::CancelAll).await;
        assert!(store.claim("w2", 5).await.is_empty());
        store.fire_all().await;
        assert_eq!(store.see_flow(inner_id).await.counts, BTreeMap::from([(MemberState::Cancelled, 2)]));
        store.assert_sound().await;
    }

    async fn a_flow_inside_that_nobody_took_up_goes_and_one_that_waits_stays(store) {
        store.install_default_lane().await;
        let (orphan, waits) = (store.new_flow(), store.new_flow());
        let mut members = store.members("a flow");
        let (parent, orphan_id, waits_id) = (members[1].submission.execution_id, orphan.flow_id, waits.flow_id);
        members[1].nested = Some(waits_id);
        for (flow, parent_id) in [(orphan, store.execution_id()), (waits, parent)] {
            let flow = NewFlow { parent_id: Some(parent_id), ..flow };
            store.ask(&SubmitFlow { edges: vec![], flow, members: store.members("x"), seal: false }).await.unwrap();
        }
        store.flow_of(store.new_flow(), members, "a>flow").await;
        store.advance(600_000);
        store.fire_all().await;
        assert_eq!(refusal(store.find_flow(orphan_id).await), ErrorCode::FlowNotFound);
        store.assert_sound().await;
        assert_eq!(store.see_flow(waits_id).await.state, FlowState::Open);
        store.complete(&store.claim_one("w1").await).await;
        store.fire_all().await;
        assert_eq!(store.see_flow(waits_id).await.state, FlowState::Running);
    }

    async fn a_late_race_takes_up_a_failure_that_came_before_it(store) {
        store.install_default_lane().await;
        let mut flow = store.flow("a b keep", "").await;
        let tasks = store.claim_members(&flow).await;
        store.fail(&tasks["a"], "broken").await;
        store.complete(&tasks["b"]).await;
        assert_eq!(store.see_flow(flow.id).await.uncaught_failures, 1);
        let late = with_inbound(store.member("late"), any_of());
        flow.ids.insert("late".into(), late.submission.execution_id);
        add(&store, flow.id, vec![late], "a>late b>late").await.unwrap();
        assert_eq!(store.see_flow(flow.id).await.uncaught_failures, 0);
        store.assert_sound().await;
        store.complete(&tasks["keep"]).await;
        run(&store, &flow, &[]).await;
        assert_eq!(state_of(&store, &flow).await, "completed");
        store.assert_sound().await;
    }

    async fn a_hold_and_the_edges_of_a_member_both_count(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b", "a>b").await;
        store.ask(&HoldExecution::new("ann".into(), flow.of("b"))).await.unwrap();
        store.complete(&store.claim_one("w1").await).await;
        assert!(store.claim("w1", 1).await.is_empty());
        store.assert_sound().await;
        store.ask(&ReleaseExecution::new("ann".into(), flow.of("b"))).await.unwrap();
        assert_eq!(store.claim_keys(&flow).await, ["b"]);
    }

    async fn the_deadline_of_a_flow_is_its_members(store) {
        store.install_default_lane().await;
        let flow = store.flow_of(NewFlow { deadline_ms: Some(1_000), ..store.new_flow() }, store.members("a b"), "a>b").await;
        store.claim_one("w1").await;
        store.advance(1_000);
        store.fire_all().await;
        assert_eq!(store.states(&flow).await, "a expired, b skipped");
        assert_eq!(state_of(&store, &flow).await, "failed");
        store.assert_sound().await;
    }

    async fn an_explanation_names_what_a_member_waits_for(store) {
        store.install_default_lane().await;
        let flow = store.flow("a b c", "a>c b*c").await;
        store.complete(&store.claim_one("w1").await).await;
        let ExplainExecutionReply::Facts { dependencies, .. } = store.ask(&ExplainExecution { execution_id: flow.of("c") }).await.unwrap();
        let facts = dependencies.unwrap();
        assert_eq!((facts.total, facts.met, facts.needed), (2, 1, 2));
        assert_eq!((facts.open.len(), facts.open[0].key.as_str(), facts.open[0].on), (1, "b", EdgeOn::Completion));
    }

    async fn flows_and_members_are_listed(store) {
        store.install_default_lane().await;
        let mut all = Vec::new();
        for n in 0..5 {
            let flow = store.flow("a b c", "a>b").await;
            if n % 2 == 0 { store.advance(1) }
            all.push(flow);
        }
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let ListFlowsReply::Page { items, last, more } = store.ask(&ListFlows { after: after.clone(), ..ListFlows::new(2) }).await.unwrap();
            seen.extend(items.iter().map(|flow| flow.flow_id));
            after = last;
            if !more { break }
        }
        let mut expected: Vec<_> = all.iter().map(|flow| flow.id).collect();
        expected.sort_by_key(|id| std::cmp::Reverse(*id));
        seen.sort_by_key(|id| std::cmp::Reverse(*id));
        assert_eq!(seen, expected);
        let ListExecutionsReply::Page { items, more, .. } = store.ask(&ListExecutions { flow_id: Some(all[1].id), ..ListExecutions::new(10) }).await.unwrap();
        assert_eq!((items.iter().filter_map(|item| item.key.as_deref()).collect::<Vec<_>>(), more), (vec!["c", "b", "a"], false));
    }

    async fn random_flows_end_as_a_naive_evaluation_says(store) {
        store.install_default_lane().await;
        let asked = std::env::var("FF_FLOWS").ok().and_then(|n| n.parse().ok());
        let graphs = asked.unwrap_or(if store.kind() == Kind::Embedded { 120 } else { 25 });
        for seed in 0..graphs {
            random_flow(&store, seed).await;
        }
        store.assert_sound().await;
    }
}

/// Runs a random graph with random policies and outcomes in random order, sometimes cancels it, and compares after
/// every step.
async fn random_flow(store: &Store, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let count = rng.random_range(1..=14);
    let density = rng.random_range(5..45);
    let policy =
        [OnMemberFailure::Continue, OnMemberFailure::FailFlow, OnMemberFailure::IsolateBranch][rng.random_range(0..3)];
    let mut naive_edges = Vec::new();
    for to in 0..count {
        for from in 0..to {
            if rng.random_range(0..100) < density {
                let on = match rng.random_range(0..6) {
                    0 => EdgeOn::Failure,
                    1 => EdgeOn::Completion,
                    _ => EdgeOn::Success,
                };
                naive_edges.push(NaiveEdge { from, to, on });
            }
        }
    }
    let naive_members: Vec<NaiveMember> = (0..count)
        .map(|at| {
            let inbound = naive_edges.iter().filter(|e| e.to == at).count();
            let policy = match rng.random_range(0..5) {
                0 => InboundPolicy::AnyOf,
                1 if inbound > 0 => InboundPolicy::Quorum,
                _ => InboundPolicy::AllOf,
            };
            let k = if inbound > 0 { rng.random_range(1..=inbound) } else { 0 };
            NaiveMember { policy, k, cancels: rng.random_bool(0.4) }
        })
        .collect();
    let members: Vec<NewMember> = naive_members
        .iter()
        .enumerate()
        .map(|(at, m)| {
            let k = (m.policy == InboundPolicy::Quorum).then_some(m.k as i64);
            let on_satisfied = Some(if m.cancels { OnSatisfied::CancelRemaining } else { OnSatisfied::LetRun });
            with_inbound(store.member(&format!("m{at:02}")), Inbound { policy: m.policy, k, on_satisfied })
        })
        .collect();
    let edges: Vec<NewEdge> =
        naive_edges.iter().map(|e| NewEdge::new(format!("m{:02}", e.from), format!("m{:02}", e.to), e.on)).collect();
    let flow = NewFlow { on_member_failure: policy, ..store.new_flow() };
    let ids: Vec<ExecutionId> = members.iter().map(|m| m.submission.execution_id).collect();
    let id = flow.flow_id;
    store.ask(&SubmitFlow { edges, flow, members, seal: true }).await.unwrap();
    let mut naive = Naive::new(naive_members, naive_edges, policy);
    let mut running: Vec<(usize, Task)> = Vec::new();
    loop {
        store.fire_all().await;
        for task in store.claim("w1", rng.random_range(1..=4)).await {
            running.push((ids.iter().position(|id| *id == task.execution_id).unwrap(), task));
        }
        let ended = naive.ended();
        running.retain(|(at, _)| ended[*at].is_none());
        compare(store, id, &naive, seed).await;
        if running.is_empty() {
            break;
        }
        if rng.random_range(0..60) == 0 {
            naive.cancel();
            store.cancel_flow(id, CancelPolicy::CancelAll).await;
            continue;
        }
        let (at, task) = running.swap_remove(rng.random_range(0..running.len()));
        let fine = rng.random_bool(0.65);
        end(store, &task, fine).await;
        naive.end(at, if fine { MemberState::Completed } else { MemberState::Failed });
    }
    let seen = store.see_flow(id).await;
    assert!(seen.finished_at.is_some(), "seed {seed}: the flow is over: {seen:?}");
    if seen.state != FlowState::Cancelled {
        assert_eq!(seen.state == FlowState::Completed, naive.succeeds(), "seed {seed}: {seen:?}");
    }
    if seed.is_multiple_of(10) {
        store.assert_sound().await;
    }
}

async fn compare(store: &Store, id: FlowId, naive: &Naive, seed: u64) {
    let states: Vec<MemberState> = store.member_states(id).await.into_values().collect();
    let ready = naive.ready();
    for (at, (state, ended)) in states.iter().zip(naive.ended()).enumerate() {
        let expected = match ended {
            // A failing flow stops in the middle of a failure's consequences: members that would have been skipped are
            // cancelled.
            Some(MemberState::Skipped | MemberState::Cancelled) if naive.is_stopped() => {
                matches!(state, MemberState::Skipped | MemberState::Cancelled)
            }
            Some(how) => *state == how,
            None if ready.contains(&at) => matches!(state, MemberState::Waiting | MemberState::Active),
            None => *state == MemberState::WaitingChildren,
        };
        assert!(expected, "seed {seed}: member {at} is {}, naive says {ended:?} ({states:?})", state.as_str());
    }
}
