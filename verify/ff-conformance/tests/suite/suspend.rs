//! Suspend and resume: an attempt gives up its lease and goes on as the same attempt, whatever ended the wait.

use std::sync::Arc;

use ff_conformance::harness::refusal;
use ff_conformance::waits::{condition, token};
use ff_conformance::work::{Fenced, HOME, LANE, LEASE_MS, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{ExecutionId, SuspensionId};
use ff_script::Error;
use ff_script::generated::*;

use crate::events::{emits, silent};
use crate::time::{ends_as, nothing_before};

const REASONS: [SuspensionReason; 9] = [
    SuspensionReason::WaitingForSignal,
    SuspensionReason::WaitingForApproval,
    SuspensionReason::WaitingForCallback,
    SuspensionReason::WaitingForToolResult,
    SuspensionReason::WaitingForOperatorReview,
    SuspensionReason::PausedByPolicy,
    SuspensionReason::PausedByBudget,
    SuspensionReason::StepBoundary,
    SuspensionReason::ManualPause,
];

/// The field and the problem of an invalid argument.
#[track_caller]
pub fn invalid<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    let error = outcome.expect_err("a refusal");
    assert_eq!(refusal::<()>(Err(error.clone())), ErrorCode::InvalidArgument, "{error}");
    error.to_string()
}

async fn open_keys(store: &Store, id: ExecutionId) -> Vec<String> {
    store.describe(id).await.waitpoints.into_iter().map(|waitpoint| waitpoint.key).collect()
}

/// Suspends for the signal `go` at a fresh waitpoint with this timeout.
async fn suspended_with_timeout(store: &Store, timeout_behavior: TimeoutBehavior, ms: i64) -> (Task, NewWaitpoint) {
    let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
    let review_waitpoint_id = (timeout_behavior == TimeoutBehavior::Escalate).then(|| store.waitpoint_id());
    let call = SuspendExecution {
        condition: condition(r#"{"signal":"go"}"#),
        timeout_ms: Some(ms),
        timeout_behavior,
        review_waitpoint_id,
        ..store.suspend_call(&task, &[&door])
    };
    store.suspend_with(&call).await;
    (task, door)
}

async fn lane_counts(store: &Store) -> (i64, i64, i64) {
    let PartitionStatsReply::Stats { lanes, .. } = store.ask(&PartitionStats::default()).await.unwrap();
    (lanes[0].eligible, lanes[0].active, lanes[0].suspended)
}

/// Suspends with a continuation and lets any signal resume it.
async fn suspended_with(store: &Store, continuation: Vec<u8>) -> (Task, NewWaitpoint) {
    let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
    store
        .suspend_with(&SuspendExecution {
            continuation: Some(continuation.into()),
            ..store.suspend_call(&task, &[&door])
        })
        .await;
    (task, door)
}

async fn continuation_keys(store: &Arc<Store>) -> usize {
    store.dump().await.keys().filter(|key| key.ends_with(":continuation")).count()
}

for_each_host! {
    async fn a_suspend_gives_the_lease_back(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
        let call = SuspendExecution { timeout_ms: Some(5_000), reason: SuspensionReason::WaitingForApproval, ..store.suspend_call(&task, &[&door]) };
        let reply = store.ask(&call).await;
        let open = OpenWaitpoint { waitpoint_id: door.waitpoint_id, key: "door".into(), state: WaitpointState::Active, expires_at: None };
        assert_eq!(reply, Ok(SuspendExecutionReply::Suspended { suspension_id: call.suspension_id, waitpoints: vec![open.clone()], timeout_at: Some(store.now() + 5_000), replayed: false }));
        let e = store.describe(task.execution_id).await;
        assert_eq!((e.state, e.phase, e.lease), (PublicState::Suspended, LifecyclePhase::Suspended, None));
        assert_eq!((e.attempt_state, e.attempts.len(), e.attempts[0].ended_at), (Some(AttemptState::Suspended), 1, None), "the attempt has not ended");
        let suspension = e.suspension.unwrap();
        assert_eq!((suspension.suspension_id, suspension.reason, suspension.suspended_at, suspension.timeout_at, suspension.timeout_behavior, suspension.waitpoints),
            (call.suspension_id, SuspensionReason::WaitingForApproval, store.now(), Some(store.now() + 5_000), TimeoutBehavior::Fail, vec![open]));
        assert_eq!(lane_counts(&store).await, (0, 0, 1));
        assert!(!store.dump().await.keys().any(|key| key.ends_with(":workers:w1")), "no lease is held");
        assert!(store.claim("w2", 1).await.is_empty(), "it cannot be claimed");
        store.assert_sound().await;
        // The end of the old lease has no effect any more.
        store.go_to(task.lease_expires_at - 26_000);
        assert_eq!(store.fire_all().await, 0);
        store.wake(task.execution_id, &door, "go").await;
        assert_eq!(lane_counts(&store).await, (1, 0, 0));
    }

    async fn a_worker_that_suspended_writes_nothing_more(store) {
        store.install_default_lane().await;
        let (task, door) = store.start_suspended().await;
        let (id, fence) = (task.execution_id, task.fence());
        let before = store.dump().await;
        assert_eq!(refusal(store.ask(&RenewLease::new(id, fence)).await), ErrorCode::ExecutionNotActive);
        assert_eq!(refusal(store.ask(&CompleteExecution::new(id, fence)).await), ErrorCode::ExecutionNotActive);
        assert_eq!(store.dump().await, before);
        store.wake(id, &door, "go").await;
        let again = store.claim_one("w2").await;
        let before = store.dump().await;
        assert_eq!(refusal(store.ask(&CompleteExecution::new(id, fence)).await), ErrorCode::StaleLease, "the same attempt, another lease");
        assert_eq!(refusal(store.ask(&store.suspend_call(&task, &[&store.waitpoint("x")])).await), ErrorCode::StaleLease);
        assert_eq!(store.dump().await, before);
        store.complete(&again).await;
    }

    async fn every_reason_is_kept_and_no_other_is_taken(store) {
        store.install_default_lane().await;
        for reason in REASONS {
            let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
            store.suspend_with(&SuspendExecution { reason, ..store.suspend_call(&task, &[&door]) }).await;
            assert_eq!(store.describe(task.execution_id).await.suspension.unwrap().reason, reason);
        }
        let task = store.start("mail", "w1").await;
        let call = store.suspend_call(&task, &[&store.waitpoint("door")]);
        let before = store.dump().await;
        for word in ["because", "", "waiting_for_children", "WAITING_FOR_SIGNAL"] {
            let mut args = rmpv::decode::read_value(&mut ff_script::Call::encode(&call).as_slice()).unwrap();
            let rmpv::Value::Map(fields) = &mut args else { panic!("arguments are a map") };
            for (name, value) in fields.iter_mut() {
                if name.as_str() == Some("reason") { *value = word.into(); }
            }
            let reply = store.raw(HOME, "ff_suspend_execution", false, &args).await;
            assert_eq!((reply["err"].as_str(), reply["detail"]["field"].as_str()), (Some("invalid_argument"), Some("reason")), "{word:?}");
        }
        assert_eq!(store.dump().await, before);
    }

    async fn an_attempt_waits_at_as_many_waitpoints_as_it_opens(store) {
        store.install_default_lane().await;
        for count in [1, 3, 64] {
            let task = store.start("mail", "w1").await;
            let doors: Vec<_> = (0..count).map(|n| store.waitpoint(&format!("door-{n}"))).collect();
            store.suspend(&task, &doors.iter().collect::<Vec<_>>()).await;
            assert_eq!(open_keys(&store, task.execution_id).await, doors.iter().map(|door| door.key.clone()).collect::<Vec<_>>());
            assert_eq!(store.inbox().await.len(), count);
            store.wake(task.execution_id, &doors[count - 1], "go").await;
            assert!(store.inbox().await.is_empty(), "one signal was enough; all are closed");
            store.complete(&store.claim_one("w1").await).await;
        }
        let task = store.start("mail", "w1").await;
        store.open_early(&task, &store.waitpoint("early")).await;
        let doors: Vec<_> = (0..64).map(|n| store.waitpoint(&format!("door-{n}"))).collect();
        let words = invalid(store.ask(&store.suspend_call(&task, &doors.iter().collect::<Vec<_>>())).await);
        assert!(words.contains("waitpoints[63].key") && words.contains("at most 64 open waitpoints"), "{words}");
        store.suspend(&task, &doors[..63].iter().collect::<Vec<_>>()).await;
    }

    async fn pending_waitpoints_are_adopted_all_or_those_named(store) {
        store.install_default_lane().await;
        for (adopt, new, open) in [
            (None, vec![], vec!["a", "b", "c"]),
            (None, vec!["d"], vec!["a", "b", "c", "d"]),
            (Some(vec![1]), vec![], vec!["b"]),
            (Some(vec![2, 0]), vec!["b"], vec!["a", "c", "b"]),
            (Some(vec![0, 0]), vec![], vec!["a"]),
            (Some(vec![]), vec!["d"], vec!["d"]),
        ] {
            let task = store.start("mail", "w1").await;
            let pending = ["a", "b", "c"].map(|key| store.waitpoint(key));
            for waitpoint in &pending {
                store.open_early(&task, waitpoint).await;
            }
            let new: Vec<_> = new.into_iter().map(|key| store.waitpoint(key)).collect();
            let ids = adopt.as_ref().map(|places| places.iter().map(|&place: &usize| pending[place].waitpoint_id).collect());
            let call = SuspendExecution { adopt: ids, ..store.suspend_call(&task, &new.iter().collect::<Vec<_>>()) };
            store.suspend_with(&call).await;
            assert_eq!(open_keys(&store, task.execution_id).await, open, "adopting {adopt:?}");
            assert_eq!(store.inbox().await.len(), open.len());
            for (place, waitpoint) in pending.iter().enumerate() {
                let seen = store.look(waitpoint).await;
                if adopt.as_ref().is_none_or(|places| places.contains(&place)) {
                    assert_eq!((seen.state, seen.suspension_id), (WaitpointState::Active, Some(call.suspension_id)));
                } else {
                    assert_eq!((seen.state, seen.closed_reason.as_deref()), (WaitpointState::Closed, Some("not_adopted")));
                    assert_eq!(refusal(store.signal(task.execution_id, waitpoint, "go").await), ErrorCode::WaitpointNotOpen);
                }
            }
            store.ask(&CancelExecution::new("ann".into(), task.execution_id)).await.unwrap();
        }
    }

    async fn otherwise_is_opened_when_there_is_no_other(store) {
        store.install_default_lane().await;
        for (pending, new, open) in [(false, false, "otherwise"), (true, false, "pending"), (false, true, "new")] {
            let task = store.start("mail", "w1").await;
            if pending {
                store.open_early(&task, &store.waitpoint("pending")).await;
            }
            let fresh = store.waitpoint("new");
            let new = if new { vec![&fresh] } else { vec![] };
            store.suspend_with(&SuspendExecution { otherwise: Some(store.waitpoint("otherwise")), ..store.suspend_call(&task, &new) }).await;
            assert_eq!(open_keys(&store, task.execution_id).await, [open]);
        }
        let task = store.start("mail", "w1").await;
        let words = invalid(store.ask(&store.suspend_call(&task, &[])).await);
        assert!(words.contains("waitpoints") && words.contains("none pending"), "{words}");
        let tokenless = NewWaitpoint { tokens: vec![], ..store.waitpoint("otherwise") };
        let words = invalid(store.ask(&SuspendExecution { otherwise: Some(tokenless), ..store.suspend_call(&task, &[]) }).await);
        assert!(words.contains("otherwise.tokens"), "{words}");
    }

    async fn a_suspend_that_cannot_be_is_refused_whole(store) {
        store.install_default_lane().await;
        let (_, foreign) = store.start_suspended().await;
        let task = store.start("mail", "w2").await;
        let pending = store.waitpoint("pending");
        store.open_early(&task, &pending).await;
        let closed = store.waitpoint("closed");
        store.open_early(&task, &closed).await;
        store.ask(&CloseWaitpoint { execution_id: task.execution_id, fence: task.fence(), waitpoint_id: closed.waitpoint_id }).await.unwrap();
        let door = store.waitpoint("door");
        let base = store.suspend_call(&task, &[&door]);
        let with = |waitpoint: NewWaitpoint| SuspendExecution { waitpoints: vec![door.clone(), waitpoint], ..base.clone() };
        let other = || store.waitpoint("other");
        let same_label = NewWaitpoint { tokens: vec![Token { approver: Some("ann".into()), ..Token::new(token("1")) }, Token { approver: Some("ann".into()), ..Token::new(token("2")) }], ..other() };
        let escalate = |id| SuspendExecution { timeout_behavior: TimeoutBehavior::Escalate, review_waitpoint_id: id, ..base.clone() };
        let before = store.dump().await;
        for (call, words) in [
            (with(NewWaitpoint { key: "door".into(), ..other() }), "waitpoints[1].key"),
            (with(NewWaitpoint { key: "pending".into(), ..other() }), "waitpoints[1].key"),
            (with(NewWaitpoint { waitpoint_id: door.waitpoint_id, ..other() }), "waitpoints[1].waitpoint_id"),
            (with(NewWaitpoint { waitpoint_id: pending.waitpoint_id, ..other() }), "waitpoints[1].waitpoint_id"),
            (with(NewWaitpoint { waitpoint_id: closed.waitpoint_id, ..other() }), "waitpoints[1].waitpoint_id"),
            (with(NewWaitpoint { waitpoint_id: foreign.waitpoint_id, ..other() }), "waitpoints[1].waitpoint_id"),
            (with(NewWaitpoint { tokens: vec![], ..other() }), "waitpoints[1].tokens"),
            (with(NewWaitpoint { tokens: vec![Token::new(token("t")), Token { approver: Some("ann".into()), ..Token::new(token("t")) }], ..other() }), "one digest twice"),
            (with(same_label), "one approver twice"),
            (escalate(None), "review_waitpoint_id"),
            (escalate(Some(door.waitpoint_id)), "review_waitpoint_id"),
            (escalate(Some(foreign.waitpoint_id)), "review_waitpoint_id"),
        ] {
            let said = invalid(store.ask(&call).await);
            assert!(said.contains(words), "expected {words}, got {said}");
        }
        for unknown in [store.waitpoint_id(), foreign.waitpoint_id, closed.waitpoint_id] {
            let call = SuspendExecution { adopt: Some(vec![pending.waitpoint_id, unknown, store.waitpoint_id()]), ..base.clone() };
            let reply = store.reply(HOME, &call).await;
            assert_eq!((reply["err"].as_str(), reply["detail"]["waitpoint_id"].as_str()), (Some("waitpoint_not_found"), Some(unknown.to_string().as_str())), "the first unknown one is named");
        }
        assert_eq!(store.dump().await, before, "nothing of a refused suspend is left");
    }

    async fn a_condition_that_cannot_be_is_refused_with_its_place(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let door = store.waitpoint("door");
        let base = store.suspend_call(&task, &[&door]);
        let node = ConditionNode::new;
        let at = |parent: i64, op| ConditionNode { parent: Some(parent), ..node(op) };
        use ConditionOp::{AllOf, AnyOf, Count, Signal};
        let before = store.dump().await;
        let nested = r#"{"any_of":[{"all_of":[{"any_of":[{"all_of":[{"signal":"a"}]}]}]}]}"#;
        let wide = |leaves: usize| format!(r#"{{"all_of":[{}]}}"#, vec![r#"{"signal":"a"}"#; leaves].join(","));
        for (nodes, words) in [
            (condition(nested), "condition[4]: is deeper than 4"),
            (condition(&wide(65)), "at most 64 leaves, got 65"),
            (condition(r#"{"any_of":[{"signal":"a"},{"signal":"a","waitpoint":"window"}]}"#), "condition[2].waitpoint"),
            (vec![node(Count)], "condition[0]: must say n and over"),
            (vec![ConditionNode { n: Some(2), ..node(Count) }], "condition[0]: must say n and over"),
            (vec![ConditionNode { over: Some(CountOver::Signals), ..node(Count) }], "condition[0]: must say n and over"),
            (vec![ConditionNode { n: Some(2), ..node(Signal) }], "condition[0]: has n or over"),
            (vec![node(AnyOf)], "condition[0]: holds no conditions"),
            (vec![node(AllOf), at(0, AnyOf), at(0, Signal)], "condition[1]: holds no conditions"),
            (vec![ConditionNode { name: Some("a".into()), ..node(AnyOf) }, at(0, Signal)], "condition[0]: has a name"),
            (vec![at(0, Signal)], "condition[0]: must not have a parent"),
            (vec![node(Signal), node(Signal)], "condition[1]: must name a parent"),
            (vec![node(AnyOf), at(1, Signal)], "condition[1]: must name a parent"),
            (vec![node(AnyOf), at(2, Signal), at(0, Signal)], "condition[1]: must name a parent"),
            (vec![node(Signal), at(0, Signal)], "condition[1]: has a parent that holds no conditions"),
        ] {
            let said = invalid(store.ask(&SuspendExecution { condition: nodes, ..base.clone() }).await);
            assert!(said.replace("invalid argument ", "").contains(words), "expected {words}, got {said}");
        }
        for count in [0, 1_001] {
            let nodes = vec![ConditionNode { n: Some(count), over: Some(CountOver::Signals), ..node(Count) }];
            assert!(invalid(store.ask(&SuspendExecution { condition: nodes, ..base.clone() }).await).contains("condition[0].n"));
        }
        assert_eq!(store.dump().await, before);
        let deepest = r#"{"any_of":[{"all_of":[{"any_of":[{"signal":"a"}]}]}]}"#;
        store.suspend_with(&SuspendExecution { condition: condition(deepest), ..base }).await;
        let task = store.start("mail", "w1").await;
        store.suspend_with(&SuspendExecution { condition: condition(&wide(64)), ..store.suspend_call(&task, &[&store.waitpoint("door")]) }).await;
    }

    async fn a_continuation_comes_back_byte_by_byte(store) {
        store.install_default_lane().await;
        for bytes in [vec![], (0..=255).collect::<Vec<u8>>(), vec![0xff; 262_144], b"\xc3\x28".to_vec()] {
            let (task, door) = suspended_with(&store, bytes.clone()).await;
            store.wake(task.execution_id, &door, "go").await;
            let again = store.claim_one("w1").await;
            assert_eq!(again.resume.clone().unwrap().continuation, Some(bytes.into()));
            store.complete(&again).await;
            assert_eq!(continuation_keys(&store).await, 0, "it ends with its attempt");
        }
        for encoding in [None, Some("base64".to_owned()), Some("any".to_owned())] {
            let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
            let call = SuspendExecution {
                continuation: Some("7".into()),
                continuation_encoding: encoding.clone(),
                ..store.suspend_call(&task, &[&door])
            };
            store.suspend_with(&call).await;
            store.wake(task.execution_id, &door, "go").await;
            let again = store.claim_one("w1").await;
            assert_eq!(again.resume.clone().unwrap().continuation_encoding, encoding);
            store.complete(&again).await;
        }
        let task = store.start("mail", "w1").await;
        let call = SuspendExecution { continuation: Some(vec![0; 262_145].into()), ..store.suspend_call(&task, &[&store.waitpoint("door")]) };
        assert!(invalid(store.ask(&call).await).contains("continuation"));
    }

    async fn each_wait_of_an_attempt_has_its_own_continuation(store) {
        store.install_default_lane().await;
        let (mut task, mut door) = suspended_with(&store, b"1".to_vec()).await;
        for (given, n) in [(Some("2"), 1), (None, 0), (Some("3"), 1)] {
            store.wake(task.execution_id, &door, "go").await;
            task = store.claim_one("w1").await;
            door = store.waitpoint("door");
            let continuation = given.map(Into::into);
            store.suspend_with(&SuspendExecution { continuation: continuation.clone(), ..store.suspend_call(&task, &[&door]) }).await;
            assert_eq!(continuation_keys(&store).await, n);
            store.wake(task.execution_id, &door, "go").await;
            task = store.claim_one("w1").await;
            assert_eq!(task.resume.clone().unwrap().continuation, continuation);
            door = store.waitpoint("door");
            store.suspend_with(&SuspendExecution { continuation, ..store.suspend_call(&task, &[&door]) }).await;
        }
    }

    async fn a_wait_that_takes_too_long_ends_as_it_says(store) {
        store.install_default_lane().await;
        for (behavior, outcome, attempt) in [
            (TimeoutBehavior::Fail, Outcome::Failed, AttemptState::Failed),
            (TimeoutBehavior::Cancel, Outcome::Cancelled, AttemptState::Cancelled),
            (TimeoutBehavior::Expire, Outcome::Expired, AttemptState::Interrupted),
        ] {
            let (task, door) = suspended_with_timeout(&store, behavior, 5_000).await;
            nothing_before(&store, store.now() + 5_000).await;
            ends_as(&store, task.execution_id, outcome, "suspension_timeout").await;
            let e = store.describe(task.execution_id).await;
            assert_eq!((e.attempts[0].state, e.attempts[0].ended_at, e.suspension.is_none(), e.waitpoints.len()), (attempt, Some(store.now()), true, 0));
            assert_eq!(e.past_suspensions.len(), 1);
            assert_eq!(store.look(&door).await.state, WaitpointState::Closed);
            assert!(store.inbox().await.is_empty());
        }
    }

    async fn a_timeout_can_wake_the_attempt_with_a_signal_of_its_own(store) {
        store.install_default_lane().await;
        let (task, door) = suspended_with_timeout(&store, TimeoutBehavior::AutoResumeWithTimeoutSignal, 5_000).await;
        let suspension = store.describe(task.execution_id).await.suspension.unwrap().suspension_id;
        nothing_before(&store, store.now() + 5_000).await;
        assert_eq!(store.state(task.execution_id).await, PublicState::Resumable);
        assert_eq!(refusal(store.signal(task.execution_id, &door, "late").await), ErrorCode::WaitpointNotOpen);
        let again = store.claim_one("w2").await;
        let resume = again.resume.clone().unwrap();
        assert_eq!((resume.suspension_id, resume.cause, resume.signals.len()), (suspension, ResumeCause::Timeout, 1));
        let signal = &resume.signals[0];
        assert_eq!((signal.name.as_str(), signal.category.as_deref(), signal.source.as_deref(), &signal.payload, signal.waitpoint_id), ("timeout", Some("timeout"), Some("engine"), &None, None));
        assert_eq!(signal.received_at, store.now());
        assert_eq!(again.attempt_id, task.attempt_id);
    }

    async fn a_review_leaves_an_id_that_was_taken_since_to_its_owner(store) {
        store.install_default_lane().await;
        let (task, review) = (store.start("mail", "w1").await, store.waitpoint("mine"));
        let call = SuspendExecution {
            condition: condition(r#"{"signal":"go"}"#), timeout_ms: Some(5_000), timeout_behavior: TimeoutBehavior::Escalate, review_waitpoint_id: Some(review.waitpoint_id),
            ..store.suspend_call(&task, &[&store.waitpoint("door")])
        };
        store.suspend_with(&call).await;
        let other = store.start("mail", "w2").await;
        store.suspend_with(&store.suspend_call(&other, &[&review])).await;
        nothing_before(&store, store.now() + 5_000).await;
        assert_eq!(open_keys(&store, task.execution_id).await, ["door", "operator_review"]);
        assert_eq!(store.look(&review).await.execution_id, other.execution_id, "it is still the other's");
    }

    async fn an_escalated_wait_goes_on_until_an_operator_answers(store) {
        store.install_default_lane().await;
        let (task, door) = suspended_with_timeout(&store, TimeoutBehavior::Escalate, 5_000).await;
        let id = task.execution_id;
        let suspension = store.describe(id).await.suspension.unwrap().suspension_id;
        let count = store.events(HOME).await.len();
        nothing_before(&store, store.now() + 5_000).await;
        let events = store.events(HOME).await.split_off(count);
        assert_eq!(events.iter().map(|event| event.r#type.as_str()).collect::<Vec<_>>(), ["execution.escalated"]);
        let e = store.describe(id).await;
        let wait = e.suspension.unwrap();
        assert_eq!((e.state, wait.suspension_id, wait.timeout_at), (PublicState::Suspended, suspension, None), "it stays suspended, the timeout is gone");
        assert_eq!(open_keys(&store, id).await, ["door", "operator_review"]);
        let review = NewWaitpoint { waitpoint_id: wait.waitpoints[1].waitpoint_id, ..store.waitpoint("operator_review") };
        let seen = store.look(&review).await;
        assert_eq!((seen.state, seen.suspension_id, seen.approvers.len()), (WaitpointState::Active, Some(suspension), 0), "no approver can signal yet");
        assert_eq!(refusal(store.signal(id, &review, "go").await), ErrorCode::WaitpointNotOpen);
        let issue = |name: &str| ReissueToken { approver: Some("boss".into()), ..ReissueToken::new("ann".into(), token(name), id, review.waitpoint_id) };
        for name in ["first", "second"] {
            assert_eq!(store.ask(&issue(name)).await, Ok(ReissueTokenReply::Reissued { expires_at: None, uses_left: None }));
        }
        let answer = |name: &str| DeliverSignal { token_digest: token(name), payload: Some("ok".into()), ..store.signal_call(id, &review, "approve") };
        assert_eq!(refusal(store.ask(&answer("first")).await), ErrorCode::WaitpointNotOpen, "the old token is dead");
        let reply = store.ask(&answer("second")).await;
        assert!(matches!(reply, Ok(DeliverSignalReply::TriggeredResume { .. })), "{reply:?}");
        let resume = store.claim_one("w1").await.resume.unwrap();
        assert_eq!((resume.cause, resume.signals.len()), (ResumeCause::Signal, 1));
        assert_eq!((resume.signals[0].waitpoint_key.as_deref(), resume.signals[0].approver.as_deref(), &resume.signals[0].payload), (Some("operator_review"), Some("boss"), &Some("ok".into())));
        assert_eq!(store.look(&door).await.state, WaitpointState::Closed);
    }

    async fn an_escalated_wait_can_still_be_satisfied(store) {
        store.install_default_lane().await;
        let (task, door) = suspended_with_timeout(&store, TimeoutBehavior::Escalate, 5_000).await;
        store.advance(5_000);
        store.fire_all().await;
        store.advance(1_000_000);
        assert_eq!(store.fire_all().await, 0, "it does not time out twice");
        store.wake(task.execution_id, &door, "go").await;
        assert!(store.inbox().await.is_empty(), "the review is closed too");
    }

    async fn the_clock_of_an_attempt_stands_still_while_it_waits(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { attempt_timeout_ms: Some(10_000), ..store.submission("mail") }, "w1").await;
        let mut task = task;
        for _ in 0..2 {
            store.advance(3_000);
            let door = store.waitpoint("door");
            store.suspend(&task, &[&door]).await;
            assert_eq!(store.describe(task.execution_id).await.attempt_deadline_at, None);
            store.advance(1_000_000);
            assert_eq!(store.fire_all().await, 0);
            store.wake(task.execution_id, &door, "go").await;
            store.advance(500_000);
            assert_eq!(store.fire_all().await, 0, "nor while it waits to be claimed");
            task = store.claim_one("w1").await;
        }
        assert_eq!(task.attempt_deadline_at, Some(store.now() + 4_000), "6 of 10 seconds are used");
        nothing_before(&store, store.now() + 4_000).await;
        assert_eq!(store.describe(task.execution_id).await.attempts[0].state, AttemptState::TimedOut);
    }

    async fn a_cancel_with_grace_reaches_the_attempt_wherever_it_is(store) {
        store.install_default_lane().await;
        for place in ["suspended", "resumable", "active again"] {
            let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
            let id = task.execution_id;
            let at = store.now() + 5_000;
            store.ask(&CancelExecution { grace_ms: Some(5_000), reason: Some("enough".into()), ..CancelExecution::new("ann".into(), id) }).await.unwrap();
            store.suspend(&task, &[&door]).await;
            if place != "suspended" {
                store.wake(id, &door, "go").await;
            }
            if place == "active again" {
                let again = store.claim_one("w1").await;
                let RenewLeaseReply::Renewed { cancel_requested, .. } = store.ask(&RenewLease::new(id, again.fence())).await.unwrap();
                assert!(cancel_requested, "the worker is still asked to cancel");
            }
            nothing_before(&store, at).await;
            ends_as(&store, id, Outcome::Cancelled, "cancelled").await;
            assert_eq!(store.describe(id).await.failure.unwrap().reason, "enough", "{place}");
            store.assert_sound().await;
        }
        // Nothing starts once the grace period is over, even before the timer fires.
        let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
        store.ask(&CancelExecution { grace_ms: Some(5_000), ..CancelExecution::new("ann".into(), task.execution_id) }).await.unwrap();
        store.suspend(&task, &[&door]).await;
        store.wake(task.execution_id, &door, "go").await;
        store.advance(5_000);
        assert!(store.claim("w1", 1).await.is_empty());
    }

    async fn a_deadline_ends_a_suspended_execution(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { deadline_ms: Some(1_000), ..store.submission("mail") }, "w1").await;
        let door = store.waitpoint("door");
        store.suspend(&task, &[&door]).await;
        nothing_before(&store, store.now() + 1_000).await;
        ends_as(&store, task.execution_id, Outcome::Expired, "deadline").await;
        assert_eq!(refusal(store.signal(task.execution_id, &door, "go").await), ErrorCode::WaitpointNotOpen);
        assert_eq!(store.describe(task.execution_id).await.past_suspensions[0].cause, "interrupted");
    }

    async fn an_operator_ends_a_wait_and_is_remembered(store) {
        store.install_default_lane().await;
        for action in ["resume", "fail", "cancel"] {
            let (task, door) = store.start_suspended().await;
            let id = task.execution_id;
            let suspension = store.describe(id).await.suspension.unwrap().suspension_id.to_string();
            match action {
                "resume" => {
                    let call = ResumeExecution { reason: Some("why".into()), ..ResumeExecution::new("ann".into(), id) };
                    let reply = emits(&store, id, "execution.resumed", &[("actor", "ann"), ("cause", "operator"), ("suspension_id", &suspension)], store.ask(&call)).await;
                    assert_eq!(reply, Ok(ResumeExecutionReply::Resumed { state: PublicState::Resumable }));
                    assert_eq!(refusal(store.ask(&call).await), ErrorCode::ExecutionNotSuspended);
                }
                "fail" => {
                    let call = FailSuspension { execution_id: id, actor: "ann".into(), reason: "why".into(), category: "review".into() };
                    let reply = emits(&store, id, "execution.failed", &[("actor", "ann"), ("category", "review")], store.ask(&call)).await;
                    assert_eq!(reply, Ok(FailSuspensionReply::Failed));
                    assert_eq!(refusal(store.ask(&call).await), ErrorCode::ExecutionNotSuspended);
                    ends_as(&store, id, Outcome::Failed, "review").await;
                }
                _ => {
                    let call = CancelExecution { reason: Some("why".into()), grace_ms: Some(9_000), ..CancelExecution::new("ann".into(), id) };
                    let reply = emits(&store, id, "execution.cancelled", &[("actor", "ann"), ("category", "cancelled"), ("reason", "why")], store.ask(&call)).await;
                    assert_eq!(reply, Ok(CancelExecutionReply::Cancelled), "there is no worker, so no grace period");
                }
            }
            let e = store.describe(id).await;
            assert_eq!(e.operator_actions.iter().map(|a| (a.action.as_str(), a.actor.as_str(), a.reason.as_deref(), a.at)).collect::<Vec<_>>(), [(action, "ann", Some("why"), store.now())]);
            assert_eq!(e.past_suspensions[0].actor.as_deref(), Some("ann"), "{action}");
            assert_eq!(refusal(store.signal(id, &door, "go").await), ErrorCode::WaitpointNotOpen);
            if action == "resume" {
                let again = store.claim_one("w1").await;
                let resume = again.resume.clone().unwrap();
                assert_eq!((resume.cause, resume.signals.len(), again.attempt_id), (ResumeCause::Operator, 0, task.attempt_id));
                store.complete(&again).await;
            }
        }
        let waiting = store.submit_kind("mail").await;
        assert_eq!(refusal(store.ask(&ResumeExecution::new("ann".into(), waiting)).await), ErrorCode::ExecutionNotSuspended);
        assert_eq!(refusal(store.ask(&ResumeExecution::new("ann".into(), store.execution_id())).await), ErrorCode::ExecutionNotFound);
    }

    async fn a_lost_reply_of_a_suspend_is_answered_again(store) {
        store.install_default_lane().await;
        let (task, door, side) = (store.start("mail", "w1").await, store.waitpoint("door"), store.waitpoint("side"));
        let call = SuspendExecution { timeout_ms: Some(9_000), ..store.suspend_call(&task, &[&door, &side]) };
        let Ok(SuspendExecutionReply::Suspended { waitpoints: first, timeout_at, .. }) = store.ask(&call).await else { panic!("not suspended") };
        store.advance(5);
        // A client that creates new ids for its second try gets the ids of the first try.
        let fresh = SuspendExecution { suspension_id: SuspensionId::from_uuid(store.uuid(0)), waitpoints: vec![store.waitpoint("door")], ..call.clone() };
        for again in [&call, &call, &fresh] {
            let before = store.dump().await;
            let reply = store.ask(again).await;
            assert_eq!(reply, Ok(SuspendExecutionReply::Suspended { suspension_id: call.suspension_id, waitpoints: first.clone(), timeout_at, replayed: true }));
            assert_eq!(store.dump().await, before);
        }
        // Whatever happened since, the wait is over, but it was a suspend.
        store.wake(task.execution_id, &door, "go").await;
        let before = store.dump().await;
        let Ok(SuspendExecutionReply::Suspended { suspension_id, waitpoints, replayed: true, .. }) = store.ask(&call).await else { panic!("not answered") };
        assert_eq!((suspension_id, waitpoints.iter().map(|w| (w.waitpoint_id, w.state)).collect::<Vec<_>>()), (call.suspension_id, vec![(door.waitpoint_id, WaitpointState::Closed), (side.waitpoint_id, WaitpointState::Closed)]));
        store.ask(&CancelExecution::new("ann".into(), task.execution_id)).await.unwrap();
        assert!(matches!(store.ask(&call).await, Ok(SuspendExecutionReply::Suspended { replayed: true, .. })), "also after the end");
        assert_ne!(store.dump().await, before);
    }

    async fn what_came_early_and_is_enough_leaves_the_lease_as_it_is(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
        let id = task.execution_id;
        store.open_early(&task, &door).await;
        store.ask(&DeliverSignal { payload: Some("early".into()), ..store.signal_call(id, &door, "go") }).await.unwrap();
        store.signal(id, &door, "more").await.unwrap();
        let call = store.suspend_call(&task, &[]);
        let Ok(SuspendExecutionReply::AlreadySatisfied { signals, more }) = emits(&store, id, "execution.already_satisfied", &[("suspension_id", &call.suspension_id.to_string())], store.ask(&call)).await else { panic!("not satisfied") };
        assert_eq!((signals.len(), more, signals[0].name.as_str(), &signals[0].payload), (1, false, "go", &Some("early".into())));
        let e = store.describe(id).await;
        assert_eq!((e.state, e.lease.map(|lease| lease.lease_epoch), e.waitpoints.len(), e.suspension), (PublicState::Active, Some(task.lease_epoch), 0, None));
        assert_eq!(store.look(&door).await.closed_reason.as_deref(), Some("already_satisfied"));
        // The reply was lost: the same suspend gets the same reply.
        let before = store.dump().await;
        assert_eq!(store.ask(&call).await, Ok(SuspendExecutionReply::AlreadySatisfied { signals: signals.clone(), more }));
        assert_eq!(store.dump().await, before);
        let ReadSignalsReply::Page { signals: read, .. } = store.ask(&ReadSignals::new(id, 10, true)).await.unwrap();
        assert_eq!(read, signals);
        // A later suspend starts from zero: neither signal counts again.
        let side = store.waitpoint("side");
        store.suspend(&task, &[&side]).await;
        assert_eq!(store.describe(id).await.suspension.unwrap().condition[0].counted, 0);
        store.wake(id, &side, "now").await;
        let resume = store.claim_one("w1").await.resume.unwrap();
        assert_eq!(resume.signals.iter().map(|signal| signal.name.as_str()).collect::<Vec<_>>(), ["now"]);
        let ReadSignalsReply::Page { signals: read, .. } = store.ask(&ReadSignals::new(id, 10, true)).await.unwrap();
        assert_eq!(read, resume.signals, "nor is it read again");
    }

    async fn signals_that_were_enough_are_read_apart_when_they_are_many(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        // First a wait, so that signals of an earlier resume exist.
        let door = store.waitpoint("door");
        store.suspend(&task, &[&door]).await;
        store.wake(id, &door, "first").await;
        let task = store.claim_one("w1").await;
        let side = store.waitpoint("side");
        store.open_early(&task, &side).await;
        for n in 0..70 {
            store.signal(id, &side, &format!("s{n}")).await.unwrap();
        }
        let call = SuspendExecution { condition: condition(r#"{"count":70,"over":"signals"}"#), ..store.suspend_call(&task, &[]) };
        let Ok(SuspendExecutionReply::AlreadySatisfied { signals, more }) = store.ask(&call).await else { panic!("not satisfied") };
        assert_eq!((signals.len(), more), (64, true));
        let rest = ReadSignals { after: signals.last().map(|signal| signal.id.clone()), ..ReadSignals::new(id, 100, true) };
        let ReadSignalsReply::Page { signals: rest, more } = store.ask(&rest).await.unwrap();
        assert_eq!((rest.iter().map(|signal| signal.name.clone()).collect::<Vec<_>>(), more), ((64..70).map(|n| format!("s{n}")).collect(), false));
    }

    async fn a_resume_continues_the_same_attempt(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
        let id = task.execution_id;
        assert_eq!(task.resume, None);
        store.ask(&UpdateProgress { message: Some("half".into()), ..UpdateProgress::new(id, task.fence(), 50) }).await.unwrap();
        store.ask(&AppendFrames::new(id, task.fence(), vec![NewFrame { payload: Some("1".into()), ..NewFrame::new("token".into(), FrameMode::Durable) }])).await.unwrap();
        let call = SuspendExecution { continuation: Some("here".into()), condition: condition(r#"{"all_of":[{"signal":"a"},{"signal":"b"}]}"#), ..store.suspend_call(&task, &[&door]) };
        store.suspend_with(&call).await;
        let payload: Vec<u8> = (0..=255).collect();
        let first = DeliverSignal {
            payload: Some(payload.clone().into()), payload_encoding: Some("raw".into()), category: Some("c".into()), source: Some("s".into()), source_identity: Some("who".into()), correlation_id: Some("x".into()),
            ..store.signal_call(id, &door, "b")
        };
        store.ask(&first).await.unwrap();
        let received = store.now();
        store.signal(id, &door, "unrelated").await.unwrap();
        store.advance(1_000);
        store.wake(id, &door, "a").await;
        let e = store.describe(id).await;
        assert_eq!((e.state, e.continues, e.attempts.len(), e.attempt_state), (PublicState::Resumable, true, 1, Some(AttemptState::Suspended)));
        assert_eq!(store.describe(id).await.suspension, None);
        let claim = store.claim_call("w2", 1);
        let again = store.claim_with(HOME, &claim).await.remove(0);
        assert_eq!((again.attempt_id, again.attempt_index, again.attempt_type), (task.attempt_id, 0, AttemptType::Initial));
        assert!(again.lease_epoch > task.lease_epoch && again.lease_id != task.lease_id, "another lease with a higher epoch");
        assert_eq!(again.frames, 1, "its stream goes on after the frames it wrote");
        let resume = again.resume.clone().unwrap();
        assert_eq!((resume.suspension_id, resume.cause, resume.more, &resume.continuation), (call.suspension_id, ResumeCause::Signal, false, &Some("here".into())));
        assert_eq!(resume.signals.iter().map(|signal| signal.name.as_str()).collect::<Vec<_>>(), ["b", "a"], "what satisfied it, in order of arrival");
        assert_eq!(resume.signals[0], Signal {
            id: resume.signals[0].id.clone(), signal_id: first.signal_id, name: "b".into(), waitpoint_id: Some(door.waitpoint_id), waitpoint_key: Some("door".into()), approver: None,
            payload: Some(payload.into()), payload_encoding: Some("raw".into()), category: Some("c".into()), source: Some("s".into()), source_identity: Some("who".into()), correlation_id: Some("x".into()),
            received_at: received,
        });
        // A repeated claim returns the same.
        let ClaimExecutionsReply::Replayed { tasks } = store.ask(&claim).await.unwrap() else { panic!("not repeated") };
        assert_eq!(tasks, std::slice::from_ref(&again));
        let e = store.describe(id).await;
        assert_eq!((e.attempts.len(), e.attempts[0].state, e.progress.map(|p| p.pct)), (1, AttemptState::Started, Some(50)));
        assert_eq!((e.past_suspensions.len(), e.past_suspensions[0].cause.as_str(), e.past_suspensions[0].ended_at), (1, "signal", store.now()));
        let reply = store.ask(&AppendFrames { first_sequence: Some(1), ..AppendFrames::new(id, again.fence(), vec![NewFrame::new("token".into(), FrameMode::Durable)]) }).await;
        assert!(matches!(reply, Ok(AppendFramesReply::Appended { next_sequence: 2, replayed: false, .. })), "{reply:?}");
        store.complete(&again).await;
        let e = store.describe(id).await;
        assert_eq!((e.attempts.len(), e.attempts[0].lease_epoch), (1, again.lease_epoch));
        assert_eq!(store.story(id).await, ["execution.submitted", "execution.started", "execution.suspended", "waitpoint.signalled", "waitpoint.signalled", "execution.resumed", "execution.started", "execution.completed"]);
    }

    async fn large_signals_come_with_the_task_as_far_as_they_fit(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
        let id = task.execution_id;
        store.suspend_with(&SuspendExecution { condition: condition(r#"{"count":3,"over":"signals"}"#), ..store.suspend_call(&task, &[&door]) }).await;
        for n in 0..3_u8 {
            store.ask(&DeliverSignal { payload: Some(vec![n; 262_144].into()), ..store.signal_call(id, &door, "go") }).await.unwrap();
        }
        let resume = store.claim_one("w1").await.resume.unwrap();
        assert_eq!((resume.signals.len(), resume.more), (1, true));
        let (mut read, mut after) = (Vec::new(), None);
        loop {
            let ReadSignalsReply::Page { signals, more } = store.ask(&ReadSignals { after: after.clone(), ..ReadSignals::new(id, 2, true) }).await.unwrap();
            after = signals.last().map(|signal| signal.id.clone());
            read.extend(signals);
            if !more { break }
        }
        assert_eq!(read.iter().map(|signal| signal.payload.as_ref().unwrap()[0]).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(store.signals(id).await, read, "the list of all says the same");
    }

    async fn after_a_lost_lease_the_next_attempt_starts_afresh(store) {
        store.install_default_lane().await;
        let (task, door) = suspended_with(&store, b"here".to_vec()).await;
        store.wake(task.execution_id, &door, "go").await;
        let again = store.claim_one("w1").await;
        assert!(again.resume.is_some());
        let fresh = store.lose_and_reclaim(&again, "w2").await;
        assert_eq!((fresh.attempt_index, fresh.attempt_type, fresh.resume, fresh.frames), (1, AttemptType::Reclaim, None, 0));
        assert_ne!(fresh.attempt_id, task.attempt_id);
        assert_eq!(continuation_keys(&store).await, 0);
        let ReadSignalsReply::Page { signals, .. } = store.ask(&ReadSignals::new(task.execution_id, 10, true)).await.unwrap();
        assert_eq!(signals, [], "nothing let this attempt go on");
    }

    async fn what_was_enough_is_forgotten_with_its_attempt(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
        store.open_early(&task, &door).await;
        store.signal(task.execution_id, &door, "go").await.unwrap();
        let call = store.suspend_call(&task, &[]);
        assert!(matches!(store.ask(&call).await, Ok(SuspendExecutionReply::AlreadySatisfied { .. })));
        let fresh = store.lose_and_reclaim(&task, "w2").await;
        let ReadSignalsReply::Page { signals, .. } = store.ask(&ReadSignals::new(task.execution_id, 10, true)).await.unwrap();
        assert_eq!(signals, []);
        let side = store.waitpoint("side");
        store.suspend_with(&SuspendExecution { suspension_id: call.suspension_id, ..store.suspend_call(&fresh, &[&side]) }).await;
    }

    async fn work_with_quotas_continues_through_a_grant(store) {
        store.install_default_lane().await;
        let id = store.submit(Submission { quotas: Some(vec![QuotaRef::new(store.uuid(0), "k".into())]), ..store.submission("mail") }).await;
        let claim = async || {
            let issue = IssueGrants { namespace: NAMESPACE.into(), lane: LANE.into(), instance: "w1".into(), kinds: None, capabilities: vec![], max: 1, lease_ids: None, ttl_ms: 1_000, grant_ids: vec![store.uuid(0)] };
            let Ok(IssueGrantsReply::Granted { grants, .. }) = store.ask(&issue).await else { panic!("not granted") };
            let (ids, grant_id) = (store.lease_ids(), grants[0].grant_id);
            let call = ConsumeGrant { keep: None, execution_id: id, grant_id, instance: "w1".into(), worker_id: "k".into(), kinds: None, capabilities: vec![], lease_ttl_ms: LEASE_MS, attempt_id: ids.attempt_id, lease_id: ids.lease_id };
            let Ok(ConsumeGrantReply::Claimed { task }) = store.ask(&call).await else { panic!("not claimed") };
            assert_eq!(store.ask(&call).await, Ok(ConsumeGrantReply::Replayed { task: task.clone() }));
            task
        };
        let task = claim().await;
        let door = store.waitpoint("door");
        store.suspend_with(&SuspendExecution { continuation: Some("here".into()), ..store.suspend_call(&task, &[&door]) }).await;
        store.wake(id, &door, "go").await;
        assert!(store.claim("w1", 1).await.is_empty(), "it is admitted again first");
        let again = claim().await;
        assert_eq!((again.attempt_id, again.attempt_index), (task.attempt_id, 0));
        assert_eq!(again.resume.unwrap().continuation, Some("here".into()));
    }

    async fn the_last_suspensions_are_remembered(store) {
        store.install_default_lane().await;
        let mut task = store.start("mail", "w1").await;
        let mut ids = Vec::new();
        for _ in 0..35 {
            let door = store.waitpoint("door");
            let call = store.suspend_call(&task, &[&door]);
            ids.push(call.suspension_id);
            store.suspend_with(&call).await;
            store.wake(task.execution_id, &door, "go").await;
            task = store.claim_one("w1").await;
        }
        let e = store.describe(task.execution_id).await;
        assert_eq!(e.past_suspensions.iter().map(|past| past.suspension_id).collect::<Vec<_>>(), ids[3..]);
        assert_eq!((e.attempts.len(), e.signals), (1, 35));
    }

    async fn a_suspend_ends_a_row_of_lost_leases_and_a_request_to_yield(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { max_reclaims: Some(1), ..store.submission("mail") }, "w1").await;
        let task = store.lose_and_reclaim(&task, "w1").await;
        store.ask(&RevokeLease { grace: Some(true), ..RevokeLease::new("ann".into(), task.execution_id) }).await.unwrap();
        let door = store.waitpoint("door");
        store.suspend(&task, &[&door]).await;
        store.wake(task.execution_id, &door, "go").await;
        let again = store.claim_one("w1").await;
        let RenewLeaseReply::Renewed { yield_requested, .. } = store.ask(&RenewLease::new(again.execution_id, again.fence())).await.unwrap();
        assert!(!yield_requested);
        store.lose_and_reclaim(&again, "w1").await;
    }

    async fn each_step_of_a_wait_appends_one_event(store) {
        store.install_default_lane().await;
        let (task, early) = (store.start("mail", "w1").await, store.waitpoint("early"));
        let id = task.execution_id;
        let (early_id, fence) = (early.waitpoint_id.to_string(), task.fence());
        let create = CreateWaitpoint::new(id, fence, early.clone());
        emits(&store, id, "waitpoint.created", &[("waitpoint_id", &early_id), ("key", "early")], store.ask(&create)).await.unwrap();
        silent(&store, store.ask(&create)).await.unwrap();
        let signal = store.signal_call(id, &early, "a");
        let signal_id = signal.signal_id.to_string();
        emits(&store, id, "waitpoint.signalled", &[("waitpoint_id", &early_id), ("signal_id", &signal_id), ("name", "a"), ("effect", "buffered")], store.ask(&signal)).await.unwrap();
        silent(&store, store.ask(&signal)).await.unwrap();
        let close = CloseWaitpoint { execution_id: id, fence, waitpoint_id: early.waitpoint_id };
        emits(&store, id, "waitpoint.closed", &[("waitpoint_id", &early_id), ("key", "early")], store.ask(&close)).await.unwrap();
        silent(&store, store.ask(&close)).await.unwrap();
        let passing = NewWaitpoint { expires_in_ms: Some(10), ..store.waitpoint("passing") };
        store.open_early(&task, &passing).await;
        store.advance(10);
        emits(&store, id, "waitpoint.expired", &[("count", "1")], store.fire_all()).await;
        silent(&store, store.ask(&AppendFrames::new(id, fence, vec![NewFrame::new("t".into(), FrameMode::Durable)]))).await.unwrap();
        let door = NewWaitpoint { expires_in_ms: Some(50), ..store.waitpoint("door") };
        let call = SuspendExecution { timeout_ms: Some(100), timeout_behavior: TimeoutBehavior::AutoResumeWithTimeoutSignal, ..store.suspend_call(&task, &[&door]) };
        let suspension = call.suspension_id.to_string();
        emits(&store, id, "execution.suspended", &[("reason", "waiting_for_signal"), ("suspension_id", &suspension)], store.ask(&call)).await.unwrap();
        silent(&store, store.ask(&call)).await.unwrap();
        let reissue = ReissueToken::new("ann".into(), token("new"), id, door.waitpoint_id);
        emits(&store, id, "waitpoint.token_reissued", &[("waitpoint_id", &door.waitpoint_id.to_string()), ("actor", "ann")], store.ask(&reissue)).await.unwrap();
        silent(&store, store.ask(&reissue)).await.unwrap();
        store.advance(50);
        emits(&store, id, "waitpoint.expired", &[("count", "1")], store.fire_all()).await;
        store.advance(50);
        emits(&store, id, "execution.resumed", &[("cause", "timeout"), ("suspension_id", &suspension)], store.fire_all()).await;
        emits(&store, id, "execution.started", &[("attempt_type", "initial"), ("continues", "true")], store.claim_one("w1")).await;
    }
}
