//! Operator actions on executions: cancel, hold, release, change, replay, delete; in every sub-state, each recorded.

use std::collections::BTreeMap;

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, LANE, LEASE_MS, NAMESPACE, plain_lane};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::generated::*;

/// The ways to be runnable.
const SUB_STATES: [&str; 6] = ["eligible", "delayed", "granted", "held", "rate limited", "blocked by route"];

fn uuid_list(store: &Store) -> Vec<uuid::Uuid> {
    vec![store.uuid(0)]
}

async fn grant_next(store: &Store, capabilities: &[&str]) -> Grant {
    let call = IssueGrants {
        namespace: NAMESPACE.into(),
        lane: LANE.into(),
        instance: "w9".into(),
        kinds: None,
        capabilities: capabilities.iter().map(|&t| t.to_owned()).collect(),
        max: 1,
        lease_ids: None,
        ttl_ms: 60_000,
        grant_ids: uuid_list(store),
    };
    let IssueGrantsReply::Granted { mut grants, .. } = store.ask(&call).await.unwrap() else { panic!("paused") };
    grants.remove(0)
}

/// A runnable execution in this sub-state; nothing else waits in its lane.
async fn runnable(store: &Store, sub_state: &str) -> ExecutionId {
    let plain = store.submission(sub_state);
    match sub_state {
        "eligible" => store.submit(plain).await,
        "delayed" => store.submit(Submission { delay_ms: Some(3_600_000), ..plain }).await,
        "granted" => {
            let id = store.submit(plain).await;
            assert_eq!(grant_next(store, &[]).await.execution_id, id);
            id
        }
        "held" => {
            let id = store.submit(plain).await;
            store.ask(&HoldExecution::new("ann".into(), id)).await.unwrap();
            id
        }
        "rate limited" => {
            let id = store
                .submit(Submission { quotas: Some(vec![QuotaRef::new(store.uuid(0), "k".into())]), ..plain })
                .await;
            let grant = grant_next(store, &[]).await;
            assert_eq!(grant.execution_id, id);
            let block = BlockExecution {
                unheld: None,
                execution_id: id,
                grant_id: grant.grant_id,
                reason: AdmissionReason::WaitingForQuota,
                detail: BTreeMap::new(),
            };
            assert_eq!(store.ask(&block).await, Ok(BlockExecutionReply::Blocked));
            id
        }
        "blocked by route" => {
            let id = store.submit(Submission { requires: Some(vec!["gpu".into()]), ..plain }).await;
            for _ in 0..2 {
                store.ask(&ReviewRoutes::new(LANE.into(), 64, NAMESPACE.into(), vec![])).await.unwrap();
                store.advance(1_000);
            }
            assert_eq!(store.describe(id).await.blocking_reason, Some(BlockingReason::WaitingForCapableWorker));
            id
        }
        other => panic!("{other}"),
    }
}

fn actions(e: &Execution) -> Vec<(&str, &str)> {
    e.operator_actions.iter().map(|action| (action.action.as_str(), action.actor.as_str())).collect()
}

for_each_host! {
    async fn a_cancel_ends_whatever_has_not_started(store) {
        store.install_default_lane().await;
        for sub_state in SUB_STATES {
            let id = runnable(&store, sub_state).await;
            let cancel = CancelExecution { reason: Some("enough".into()), grace_ms: Some(9_000), ..CancelExecution::new("ann".into(), id) };
            assert_eq!(store.ask(&cancel).await, Ok(CancelExecutionReply::Cancelled), "{sub_state}");
            let e = store.describe(id).await;
            assert_eq!((e.outcome, e.blocking_reason, e.granted_until, e.delay_until), (Some(Outcome::Cancelled), None, None, None), "{sub_state}");
            assert_eq!(e.failure.unwrap(), Failure { reason: "enough".into(), category: "cancelled".into() });
            assert_eq!(e.operator_actions.last().map(|a| (a.action.as_str(), a.actor.as_str(), a.reason.as_deref())), Some(("cancel", "ann", Some("enough"))));
            assert_eq!(store.ask(&cancel).await, Ok(CancelExecutionReply::Already { outcome: Outcome::Cancelled }), "{sub_state}");
            assert!(store.claim_as("w1", &["gpu"], 9).await.is_empty(), "nothing cancelled is claimed, {sub_state}");
        }
        assert_eq!(refusal(store.ask(&CancelExecution::new("ann".into(), store.execution_id())).await), ErrorCode::ExecutionNotFound);
    }

    async fn a_cancel_without_grace_ends_a_running_attempt_at_once(store) {
        store.install_default_lane().await;
        for grace_ms in [None, Some(0)] {
            let task = store.start("mail", "w1").await;
            let cancel = CancelExecution { grace_ms, ..CancelExecution::new("ann".into(), task.execution_id) };
            assert_eq!(store.ask(&cancel).await, Ok(CancelExecutionReply::Cancelled));
            let e = store.describe(task.execution_id).await;
            assert_eq!((e.outcome, e.lease, e.attempts[0].state), (Some(Outcome::Cancelled), None, AttemptState::Cancelled));
            assert_eq!(refusal(store.ask(&RenewLease::new(task.execution_id, task.fence())).await), ErrorCode::ExecutionNotActive);
        }
    }

    async fn a_cancel_with_grace_waits_for_the_worker(store) {
        store.install_default_lane().await;
        for answer in ["cancel", "complete", "fail"] {
            let task = store.start(answer, "w1").await;
            let (id, fence) = (task.execution_id, task.fence());
            let cancel = CancelExecution { grace_ms: Some(500), ..CancelExecution::new("ann".into(), id) };
            assert_eq!(store.ask(&cancel).await, Ok(CancelExecutionReply::Requested { cancel_by: store.now() + 500 }));
            // A repeated cancel can shorten the grace period, never lengthen it.
            let longer = CancelExecution { grace_ms: Some(900), ..cancel.clone() };
            assert_eq!(store.ask(&longer).await, Ok(CancelExecutionReply::Requested { cancel_by: store.now() + 500 }));
            let shorter = CancelExecution { grace_ms: Some(300), ..cancel };
            assert_eq!(store.ask(&shorter).await, Ok(CancelExecutionReply::Requested { cancel_by: store.now() + 300 }));
            let RenewLeaseReply::Renewed { cancel_requested, .. } = store.ask(&RenewLease::new(id, fence)).await.unwrap();
            assert!(cancel_requested);
            let outcome = match answer {
                "cancel" => { store.ask(&CancelAttempt::new(id, fence)).await.unwrap(); Outcome::Cancelled }
                "complete" => { store.complete(&task).await; Outcome::Success }
                _ => { store.ask(&FailExecution { retryable: Some(false), ..FailExecution::new("net".into(), 0, id, fence, "down".into()) }).await.unwrap(); Outcome::Failed }
            };
            assert_eq!(store.describe(id).await.outcome, Some(outcome));
            store.advance(300);
            assert_eq!(store.fire_all().await, 0, "the worker has ended it, so the grace period is over");
        }
    }

    async fn a_hold_keeps_any_runnable_execution_from_starting(store) {
        store.install_default_lane().await;
        for sub_state in SUB_STATES.into_iter().filter(|s| *s != "held") {
            let id = runnable(&store, sub_state).await;
            let hold = HoldExecution { reason: Some("audit".into()), ..HoldExecution::new("ann".into(), id) };
            assert_eq!(store.ask(&hold).await, Ok(HoldExecutionReply::Held), "{sub_state}");
            let before = store.dump().await;
            assert_eq!(store.ask(&hold).await, Ok(HoldExecutionReply::Already));
            assert_eq!(store.dump().await, before);
            let e = store.describe(id).await;
            assert_eq!((e.state, e.blocking_reason), (PublicState::Waiting, Some(BlockingReason::HeldByOperator)));
            assert_eq!(e.blocking_detail, Some(BTreeMap::from([("actor".into(), "ann".into()), ("reason".into(), "audit".into())])));
            store.advance(3_600_000);
            store.fire_all().await;
            assert_eq!(store.describe(id).await.blocking_reason, Some(BlockingReason::HeldByOperator), "time does not release it, {sub_state}");
            assert!(store.claim_as("w1", &["gpu"], 9).await.is_empty());
            let release = ReleaseExecution::new("bob".into(), id);
            assert_eq!(store.ask(&release).await, Ok(ReleaseExecutionReply::Released { state: PublicState::Waiting }), "{sub_state}");
            let e = store.describe(id).await;
            let expected = if sub_state == "blocked by route" { Some(BlockingReason::WaitingForCapableWorker) } else { None };
            assert_eq!(e.blocking_reason, expected, "{sub_state}");
            let reply = store.ask(&release).await;
            assert_eq!(reply, Ok(ReleaseExecutionReply::Already { state: PublicState::Waiting }));
            assert_eq!(e.operator_actions.iter().map(|a| (a.action.as_str(), a.actor.as_str())).collect::<Vec<_>>(), [("hold", "ann"), ("release", "bob")]);
            store.ask(&CancelExecution::new("ann".into(), id)).await.unwrap();
        }
    }

    async fn a_released_execution_takes_its_old_place_or_goes_on_waiting_for_its_time(store) {
        store.install_default_lane().await;
        let first = store.submit_kind("first").await;
        store.ask(&HoldExecution::new("ann".into(), first)).await.unwrap();
        store.advance(5);
        let second = store.submit_kind("second").await;
        store.ask(&ReleaseExecution::new("ann".into(), first)).await.unwrap();
        assert_eq!(store.claim("w1", 2).await.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [first, second]);

        let later = store.submit(Submission { delay_ms: Some(100), ..store.submission("later") }).await;
        store.ask(&HoldExecution::new("ann".into(), later)).await.unwrap();
        assert_eq!(store.ask(&ReleaseExecution::new("ann".into(), later)).await, Ok(ReleaseExecutionReply::Released { state: PublicState::Delayed }));
        store.advance(100);
        store.fire_all().await;
        assert_eq!(store.claim_one("w1").await.execution_id, later);
    }

    async fn what_runs_or_ended_cannot_be_held_or_released(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        for _ in 0..2 {
            assert_eq!(refusal(store.ask(&HoldExecution::new("ann".into(), id)).await), ErrorCode::ExecutionNotRunnable);
            assert_eq!(refusal(store.ask(&ReleaseExecution::new("ann".into(), id)).await), ErrorCode::ExecutionNotRunnable);
            if store.state(id).await == PublicState::Active {
                store.complete(&task).await;
            }
        }
    }

    async fn priority_and_lane_change_in_every_sub_state(store) {
        store.install_default_lane().await;
        store.install_lane(NAMESPACE, "other", plain_lane()).await;
        for sub_state in SUB_STATES {
            let id = runnable(&store, sub_state).await;
            let before = store.describe(id).await;
            let change = ChangeExecution { priority: Some(7), lane: Some("other".into()), ..ChangeExecution::new("ann".into(), id) };
            let ChangeExecutionReply::Changed { state } = store.ask(&change).await.unwrap();
            let e = store.describe(id).await;
            assert_eq!((e.priority, e.lane.as_str(), e.state), (7, "other", state), "{sub_state}");
            assert_eq!(e.score, before.created_at - 7 * ff_conformance::work::STRICT, "{sub_state}");
            assert_eq!(e.granted_until, None, "a grant does not follow, {sub_state}");
            // Uncovered requirement sets are known per lane, and the other lane was not reviewed yet. An execution that
            // waited for a quota asks again, and joins its line with the new priority.
            let again = matches!(sub_state, "blocked by route" | "rate limited");
            let expected = if again { None } else { before.blocking_reason };
            assert_eq!((e.blocking_reason, e.delay_until), (expected, before.delay_until), "{sub_state}");
            assert_eq!(actions(&e).last(), Some(&("change", "ann")));
            store.assert_sound().await;
            store.ask(&CancelExecution::new("ann".into(), id)).await.unwrap();
        }
    }

    async fn a_new_priority_orders_the_queue_anew(store) {
        store.install_default_lane().await;
        let ids = [store.submit_kind("a").await, store.submit_kind("b").await, store.submit_kind("c").await];
        store.ask(&ChangeExecution { priority: Some(1), ..ChangeExecution::new("ann".into(), ids[2]) }).await.unwrap();
        assert_eq!(store.claim("w1", 1).await[0].execution_id, ids[2]);
    }

    async fn an_execution_moves_to_lanes_that_accept_it_only(store) {
        store.install_default_lane().await;
        store.install_lane(NAMESPACE, "closed", LaneDefinition { state: LaneState::Disabled, ..plain_lane() }).await;
        let id = store.submit_kind("mail").await;
        let to = |lane: &str| ChangeExecution { lane: Some(lane.into()), ..ChangeExecution::new("ann".into(), id) };
        let before = store.dump().await;
        assert_eq!(refusal(store.ask(&to("closed")).await), ErrorCode::LaneDisabled);
        assert_eq!(refusal(store.ask(&to("nowhere")).await), ErrorCode::LaneUnseen);
        assert_eq!(store.dump().await, before);
    }

    async fn a_delay_is_changed_in_every_sub_state(store) {
        store.install_default_lane().await;
        for sub_state in SUB_STATES {
            let id = runnable(&store, sub_state).await;
            let at = store.now() + 50;
            let later = ChangeExecution { delay_until: Some(at), ..ChangeExecution::new("ann".into(), id) };
            let ChangeExecutionReply::Changed { state } = store.ask(&later).await.unwrap();
            if sub_state == "held" {
                assert_ne!(state, PublicState::Delayed, "{sub_state}");
            } else {
                assert_eq!(state, PublicState::Delayed, "{sub_state}");
            }
            assert_eq!(store.describe(id).await.delay_until, Some(at), "{sub_state}");
            store.assert_sound().await;
            let sooner = ChangeExecution { delay_until: Some(0), ..ChangeExecution::new("ann".into(), id) };
            store.ask(&sooner).await.unwrap();
            store.assert_sound().await;
            if sub_state == "eligible" || sub_state == "delayed" || sub_state == "granted" {
                assert_eq!(store.claim_one("w1").await.execution_id, id, "a time already past means now, {sub_state}");
            }
            store.ask(&CancelExecution::new("ann".into(), id)).await.unwrap();
        }
    }

    async fn deadline_and_tags_change_until_the_end(store) {
        store.install_default_lane().await;
        let tags = |value: &str| BTreeMap::from([("customer".to_owned(), value.to_owned())]);
        let by_tag = |value: &str| ListExecutions { tag_key: Some("customer".into()), tag_value: Some(value.into()), ..ListExecutions::new(10) };
        let found = |call: ListExecutions| { let store = store.clone(); async move {
            let ListExecutionsReply::Page { items, .. } = store.ask(&call).await.unwrap();
            items.into_iter().map(|item| item.execution_id).collect::<Vec<_>>()
        }};
        for sub_state in SUB_STATES.into_iter().chain(["active"]) {
            let id = if sub_state == "active" { store.start("mail", "w1").await.execution_id } else { runnable(&store, sub_state).await };
            let at = store.now() + 70;
            let reason = store.describe(id).await.blocking_reason;
            for value in ["1", "2"] {
                let change = ChangeExecution { deadline_at: Some(at), tags: Some(tags(value)), ..ChangeExecution::new("ann".into(), id) };
                store.ask(&change).await.unwrap();
            }
            let e = store.describe(id).await;
            assert_eq!((e.deadline_at, &e.tags, e.blocking_reason), (Some(at), &tags("2"), reason), "{sub_state}");
            assert_eq!((found(by_tag("1")).await, found(by_tag("2")).await.contains(&id)), (vec![], true), "{sub_state}");
            store.advance(69);
            store.fire_all().await;
            assert_eq!(store.describe(id).await.outcome, None, "{sub_state}");
            store.advance(1);
            store.fire_all().await;
            assert_eq!(store.describe(id).await.outcome, Some(Outcome::Expired), "{sub_state}");
            let change = ChangeExecution { tags: Some(tags("3")), ..ChangeExecution::new("ann".into(), id) };
            assert_eq!(refusal(store.ask(&change).await), ErrorCode::ExecutionTerminal);
        }
    }

    async fn what_runs_keeps_its_lane_priority_and_delay(store) {
        store.install_default_lane().await;
        let id = store.start("mail", "w1").await.execution_id;
        let none = ChangeExecution::new("ann".into(), id);
        for change in [ChangeExecution { priority: Some(1), ..none.clone() }, ChangeExecution { lane: Some(LANE.into()), ..none.clone() }, ChangeExecution { delay_until: Some(1), ..none }] {
            assert_eq!(refusal(store.ask(&change).await), ErrorCode::ExecutionNotRunnable);
        }
    }

    async fn an_ended_execution_runs_again_as_often_as_it_allows(store) {
        store.install_default_lane().await;
        let submission = Submission { max_replays: Some(2), retry: Some(Retry { max_attempts: Some(1), ..Retry::default() }), start_within_ms: Some(50), ..store.submission("mail") };
        let mut task = store.start_with(submission, "w1").await;
        let id = task.execution_id;
        let replay = ReplayExecution { reason: Some("fixed".into()), ..ReplayExecution::new("ann".into(), id) };
        assert_eq!(refusal(store.ask(&replay).await), ErrorCode::ExecutionNotTerminal);
        for round in 1..=2 {
            if round == 1 { store.fail(&task, "net").await; } else { store.complete(&task).await; }
            store.advance(1_000);
            let reply = store.ask(&replay).await;
            assert_eq!(reply, Ok(ReplayExecutionReply::Replayed { state: PublicState::Waiting, replay_count: round }));
            let e = store.describe(id).await;
            assert_eq!((e.outcome, e.failure, e.result, e.ended_at, e.retire_at), (None, None, None, None, None), "nothing of the last end is left");
            assert_eq!(e.start_by, Some(store.now() + 50), "its queue time starts again");
            let before = task.lease_epoch;
            task = store.claim_one("w1").await;
            assert_eq!((task.attempt_type, task.attempt_index), (AttemptType::Replay, round));
            assert!(task.lease_epoch > before);
        }
        store.complete(&task).await;
        assert_eq!(refusal(store.ask(&replay).await), ErrorCode::MaxReplays);
        let e = store.describe(id).await;
        assert_eq!((e.replay_count, e.attempts.len(), actions(&e)), (2, 3, vec![("replay", "ann"), ("replay", "ann")]));
    }

    async fn a_replay_forgets_a_deadline_already_past_and_a_large_result(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { deadline_ms: Some(100), ..store.submission("mail") }, "w1").await;
        let id = task.execution_id;
        let big = CompleteExecution { result: Some(vec![1; 9_000].into()), ..CompleteExecution::new(id, task.fence()) };
        store.ask(&big).await.unwrap();
        assert!(store.dump().await.keys().any(|key| key.ends_with(":result")));
        store.advance(100);
        store.ask(&ReplayExecution::new("ann".into(), id)).await.unwrap();
        assert!(!store.dump().await.keys().any(|key| key.ends_with(":result")));
        let e = store.describe(id).await;
        assert_eq!((e.deadline_at, e.state, e.result), (None, PublicState::Waiting, None));
        store.complete(&store.claim_one("w1").await).await;

        let expired = store.submit(Submission { deadline_ms: Some(100), ..store.submission("mail") }).await;
        store.advance(100);
        store.fire_all().await;
        store.ask(&ReplayExecution::new("ann".into(), expired)).await.unwrap();
        assert_eq!(store.claim_one("w1").await.attempt_type, AttemptType::Initial, "it had never run");
    }

    async fn a_replay_starts_its_counts_anew(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { max_reclaims: Some(1), fallbacks: Some(vec!["tier".into()]), ..store.submission("mail") }, "w1").await;
        let task = store.lose_and_reclaim(&task, "w1").await;
        store.advance(LEASE_MS);
        store.fire_all().await;
        assert_eq!(store.state(task.execution_id).await, PublicState::Failed);
        store.ask(&ReplayExecution::new("ann".into(), task.execution_id)).await.unwrap();
        let e = store.describe(task.execution_id).await;
        assert_eq!((e.reclaim_count, e.fallback_index), (0, None));
        let task = store.claim_one("w1").await;
        store.lose_and_reclaim(&task, "w1").await;
    }

    async fn only_an_ended_execution_is_deleted(store) {
        store.install_default_lane().await;
        let before = store.dump_without_streams().await;
        let id = store.submit_kind("mail").await;
        assert_eq!(refusal(store.ask(&DeleteExecution { actor: "ann".into(), execution_id: id }).await), ErrorCode::ExecutionNotTerminal);
        let task = store.claim_one("w1").await;
        assert_eq!(refusal(store.ask(&DeleteExecution { actor: "ann".into(), execution_id: id }).await), ErrorCode::ExecutionNotTerminal);
        store.complete(&task).await;
        assert_eq!(store.ask(&DeleteExecution { actor: "ann".into(), execution_id: id }).await, Ok(DeleteExecutionReply::Deleted));
        assert_eq!(refusal(store.ask(&DeleteExecution { actor: "ann".into(), execution_id: id }).await), ErrorCode::ExecutionNotFound);
        let mut after = store.dump_without_streams().await;
        crate::storage::forget_hints(&mut after);
        assert_eq!(after, before);
    }

    async fn the_last_hundred_actions_are_remembered(store) {
        store.install_default_lane().await;
        let id = store.submit_kind("mail").await;
        for number in 0..105 {
            let change = ChangeExecution { priority: Some(number), ..ChangeExecution::new(format!("op-{number}"), id) };
            store.ask(&change).await.unwrap();
        }
        let e = store.describe(id).await;
        assert_eq!((e.operator_actions.len(), e.operator_actions[0].actor.as_str(), e.operator_actions[99].actor.as_str()), (100, "op-5", "op-104"));
    }

    async fn preferences_count_in_the_lane_an_execution_moves_to(store) {
        store.install_default_lane().await;
        store.install_lane(NAMESPACE, "other", plain_lane()).await;
        store.submit(Submission { lane: "other".into(), ..store.submission("plain") }).await;
        store.advance(1);
        let liked = store.submit(Submission { prefers: Some(vec!["eu".into()]), ..store.submission("liked") }).await;
        store.ask(&ChangeExecution { lane: Some("other".into()), ..ChangeExecution::new("ann".into(), liked) }).await.unwrap();
        let claim = ClaimExecutions { lane: "other".into(), capabilities: vec!["eu".into()], ..store.claim_call("w1", 1) };
        assert_eq!(store.claim_with(ff_conformance::work::HOME, &claim).await[0].execution_id, liked);
    }
}
