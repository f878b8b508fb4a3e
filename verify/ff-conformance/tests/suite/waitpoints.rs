//! Waitpoints: the inbox of open questions, who may signal and until when, and what is kept afterwards.

use ff_conformance::harness::refusal;
use ff_conformance::waits::{condition, token};
use ff_conformance::work::{Fenced, HOME, LANE, plain_lane};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{ExecutionId, WaitpointId};
use ff_script::Call;
use ff_script::generated::*;

use crate::suspend::invalid;
use crate::time::{ends_as, nothing_before};

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

async fn never_says<C: Call>(store: &Store, call: &C, secrets: &[String]) {
    let reply = store.reply_bytes(HOME, call).await;
    for secret in secrets {
        assert!(!contains(&reply, secret), "{} says a digest", C::FUNCTION);
    }
}

fn page(limit: i64, namespace: Option<&str>, after: Option<WaitpointPosition>) -> ListWaitpoints {
    ListWaitpoints { namespace: namespace.map(str::to_owned), after, ..ListWaitpoints::new(limit) }
}

/// The whole inbox in pages of this size.
async fn paged(store: &Store, limit: i64, namespace: Option<&str>) -> Vec<WaitpointId> {
    let (mut ids, mut after) = (Vec::new(), None);
    for _ in 0..1_000 {
        let ListWaitpointsReply::Page { items, last, more } = store.ask(&page(limit, namespace, after)).await.unwrap();
        assert!(items.len() <= limit as usize);
        ids.extend(items.iter().map(|item| item.waitpoint_id));
        if !more {
            return ids;
        }
        after = last;
    }
    panic!("the list does not end");
}

fn close(task: &Task, waitpoint: &NewWaitpoint) -> CloseWaitpoint {
    CloseWaitpoint { execution_id: task.execution_id, fence: task.fence(), waitpoint_id: waitpoint.waitpoint_id }
}

fn create(task: &Task, waitpoint: &NewWaitpoint) -> CreateWaitpoint {
    CreateWaitpoint::new(task.execution_id, task.fence(), waitpoint.clone())
}

for_each_host! {
    async fn the_inbox_lists_open_waitpoints_oldest_first(store) {
        for namespace in ["default", "other"] {
            store.install_lane(namespace, LANE, plain_lane()).await;
        }
        let (mut all, mut other) = (Vec::new(), Vec::new());
        for round in 0..4 {
            for namespace in ["default", "other"] {
                let id = store.submit(Submission { namespace: namespace.into(), ..store.submission("mail") }).await;
                let claim = ClaimExecutions { namespace: namespace.into(), ..store.claim_call("w1", 1) };
                let task = store.claim_with(HOME, &claim).await.remove(0);
                assert_eq!(task.execution_id, id);
                let doors = [store.waitpoint("b"), store.waitpoint("a")];
                store.open_early(&task, &doors[0]).await;
                if round % 2 == 0 {
                    store.suspend(&task, &[&doors[1]]).await;
                } else {
                    store.open_early(&task, &doors[1]).await;
                }
                let ids = doors.map(|door| door.waitpoint_id);
                all.extend(ids);
                if namespace == "other" { other.extend(ids) }
            }
            if round % 2 == 0 { store.advance(5) }
        }
        for limit in [1, 2, 3, 5, 16, 17, 1_000] {
            assert_eq!(paged(&store, limit, None).await, all, "pages of {limit}");
            assert_eq!(paged(&store, limit, Some("other")).await, other, "pages of {limit} of one namespace");
            assert_eq!(paged(&store, limit, Some("nobody")).await, []);
        }
        assert_eq!(store.inbox().await.iter().map(|w| (w.namespace.as_str(), w.key.as_str(), w.state)).take(4).collect::<Vec<_>>(), [
            ("default", "b", WaitpointState::Active), ("default", "a", WaitpointState::Active), ("other", "b", WaitpointState::Active), ("other", "a", WaitpointState::Active),
        ]);
    }

    async fn a_waitpoint_says_who_may_answer_and_how_far_the_wait_is(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, NewWaitpoint { uses: Some(3), expires_in_ms: Some(9_000), allowed_signals: Some(vec!["yes".into(), "no".into()]), ..store.approvals("door", &["ann", "bob"]) });
        let id = task.execution_id;
        let created = store.now();
        store.open_early(&task, &door).await;
        let seen = store.look(&door).await;
        assert_eq!((seen.state, seen.suspension_id, seen.reason, seen.condition.len()), (WaitpointState::Pending, None, None, 0));
        store.ask(&store.answer_call(id, &door, "ann", "yes")).await.unwrap();
        store.advance(10);
        let call = SuspendExecution { reason: SuspensionReason::WaitingForApproval, condition: condition(r#"{"all_of":[{"signal":"yes"},{"count":2,"over":"approvers","of":{"signal":"no","waitpoint":"door"}}]}"#), ..store.suspend_call(&task, &[]) };
        store.suspend_with(&call).await;
        store.ask(&store.answer_call(id, &door, "ann", "no")).await.unwrap();
        let approver = |label: &str, uses_left, answered| ApproverState { approver: Some(label.into()), uses_left: Some(uses_left), answered };
        let node = |op, counted, satisfied| ConditionProgress { counted, satisfied, ..ConditionProgress::new(op, counted, satisfied) };
        let expected = Waitpoint {
            waitpoint_id: door.waitpoint_id, execution_id: id, namespace: "default".into(), lane: LANE.into(), kind: "mail".into(), key: "door".into(), state: WaitpointState::Active,
            suspension_id: Some(call.suspension_id), reason: Some(SuspensionReason::WaitingForApproval), created_at: created, expires_at: Some(created + 9_000), closed_at: None, closed_reason: None,
            allowed_signals: Some(vec!["yes".into(), "no".into()]), approvers: vec![approver("ann", 1, true), approver("bob", 3, false)], signals: 2,
            condition: vec![
                node(ConditionOp::AllOf, 0, false),
                ConditionProgress { parent: Some(0), name: Some("yes".into()), ..node(ConditionOp::Signal, 1, true) },
                ConditionProgress { parent: Some(0), name: Some("no".into()), waitpoint: Some("door".into()), n: Some(2), over: Some(CountOver::Approvers), ..node(ConditionOp::Count, 1, false) },
            ],
        };
        assert_eq!(store.look(&door).await, expected);
        assert_eq!(store.inbox().await, std::slice::from_ref(&expected));
        assert_eq!(store.waitpoints_of(id).await, std::slice::from_ref(&expected));
        assert_eq!(store.describe(id).await.suspension.unwrap().condition, expected.condition);
        store.ask(&store.answer_call(id, &door, "bob", "no")).await.unwrap();
        let seen = store.look(&door).await;
        assert_eq!((seen.state, seen.closed_at, seen.closed_reason.as_deref(), seen.reason, seen.condition.len()), (WaitpointState::Closed, Some(store.now()), Some("resumed"), None, 0));
    }

    async fn no_reply_says_a_digest(store) {
        store.install_default_lane().await;
        let door = store.approvals("door", &["ann", "bob"]);
        let (task, early) = (store.start("mail", "w1").await, store.waitpoint("early"));
        let id = task.execution_id;
        store.open_early(&task, &early).await;
        store.ask(&store.signal_call(id, &early, "go")).await.unwrap();
        store.suspend_with(&SuspendExecution { condition: condition(r#"{"count":2,"over":"approvers"}"#), ..store.suspend_call(&task, &[&door]) }).await;
        let secrets: Vec<_> = door.tokens.iter().chain(&early.tokens).map(|token| token.digest.clone()).collect();
        never_says(&store, &ListWaitpoints::new(10), &secrets).await;
        never_says(&store, &DescribeWaitpoint { waitpoint_id: door.waitpoint_id }, &secrets).await;
        never_says(&store, &ExecutionWaitpoints { execution_id: id }, &secrets).await;
        never_says(&store, &DescribeExecution { execution_id: id }, &secrets).await;
        never_says(&store, &ReadSignals::new(id, 10, false), &secrets).await;
        never_says(&store, &ReadEvents::new(100), &secrets).await;
        never_says(&store, &store.answer_call(id, &door, "ann", "go"), &secrets).await;
        never_says(&store, &store.claim_call("w1", 1), &secrets).await;
    }

    async fn closed_waitpoints_are_kept_a_hundred_at_most(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        let mut made = Vec::new();
        for _ in 0..105 {
            let door = store.waitpoint("door");
            store.open_early(&task, &door).await;
            store.ask(&close(&task, &door)).await.unwrap();
            made.push(door.waitpoint_id);
        }
        let open = store.waitpoint("door");
        store.open_early(&task, &open).await;
        made.push(open.waitpoint_id);
        let kept: Vec<_> = store.waitpoints_of(id).await.into_iter().map(|waitpoint| waitpoint.waitpoint_id).collect();
        assert_eq!(kept, made[5..], "closed ones first, then open ones");
        assert_eq!(refusal(store.ask(&DescribeWaitpoint { waitpoint_id: made[4] }).await), ErrorCode::WaitpointNotFound);
        assert_eq!(store.dump().await.keys().filter(|key| key.starts_with("ff:wp:")).count(), 101);
        assert_eq!(refusal(store.ask(&ExecutionWaitpoints { execution_id: store.execution_id() }).await), ErrorCode::ExecutionNotFound);
    }

    async fn a_pending_waitpoint_closes_at_its_time(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        let (sooner, later) = (NewWaitpoint { expires_in_ms: Some(1_000), ..store.waitpoint("sooner") }, NewWaitpoint { expires_in_ms: Some(2_000), ..store.waitpoint("later") });
        let reply = store.ask(&create(&task, &later)).await;
        assert_eq!(reply, Ok(CreateWaitpointReply::Created { expires_at: Some(store.now() + 2_000), replayed: false }));
        store.open_early(&task, &sooner).await;
        nothing_before(&store, store.now() + 1_000).await;
        let seen = store.look(&sooner).await;
        assert_eq!((seen.state, seen.closed_at, seen.closed_reason.as_deref()), (WaitpointState::Closed, Some(store.now()), Some("expired")));
        assert_eq!(store.inbox().await.iter().map(|w| w.waitpoint_id).collect::<Vec<_>>(), [later.waitpoint_id]);
        let e = store.describe(id).await;
        assert_eq!((e.state, e.waitpoints.len()), (PublicState::Active, 1), "the attempt runs on");
        nothing_before(&store, store.now() + 1_000).await;
        assert!(store.inbox().await.is_empty());
        store.complete(&task).await;
    }

    async fn a_wait_that_nobody_can_answer_any_more_ends_as_if_it_timed_out(store) {
        store.install_default_lane().await;
        for (behavior, timeout_ms, ends) in [
            (TimeoutBehavior::Fail, None, Some(Outcome::Failed)),
            (TimeoutBehavior::Cancel, None, Some(Outcome::Cancelled)),
            (TimeoutBehavior::Expire, None, Some(Outcome::Expired)),
            (TimeoutBehavior::AutoResumeWithTimeoutSignal, None, None),
            (TimeoutBehavior::Escalate, None, None),
            (TimeoutBehavior::Fail, Some(60_000), None),
        ] {
            let task = store.start("mail", "w1").await;
            let id = task.execution_id;
            let doors = [NewWaitpoint { expires_in_ms: Some(1_000), ..store.waitpoint("a") }, NewWaitpoint { expires_in_ms: Some(2_000), ..store.waitpoint("b") }];
            let review_waitpoint_id = Some(store.waitpoint_id());
            let call = SuspendExecution { timeout_ms, timeout_behavior: behavior, review_waitpoint_id, ..store.suspend_call(&task, &[&doors[0], &doors[1]]) };
            store.suspend_with(&call).await;
            nothing_before(&store, store.now() + 1_000).await;
            assert_eq!(store.state(id).await, PublicState::Suspended, "one can still be signalled");
            assert_eq!(refusal(store.signal(id, &doors[0], "go").await), ErrorCode::WaitpointNotOpen);
            nothing_before(&store, store.now() + 1_000).await;
            if let Some(outcome) = ends {
                ends_as(&store, id, outcome, "suspension_timeout").await;
                continue;
            }
            match (behavior, timeout_ms) {
                (TimeoutBehavior::Escalate, _) => {
                    assert_eq!(store.inbox().await.iter().map(|w| w.key.as_str()).collect::<Vec<_>>(), ["operator_review"]);
                    store.ask(&CancelExecution::new("op".into(), id)).await.unwrap();
                }
                (_, Some(_)) => {
                    assert_eq!(store.state(id).await, PublicState::Suspended, "its own timeout is still to come");
                    nothing_before(&store, store.now() + 58_000).await;
                    ends_as(&store, id, Outcome::Failed, "suspension_timeout").await;
                }
                _ => {
                    let again = store.claim_one("w1").await;
                    assert_eq!(again.resume.as_ref().unwrap().cause, ResumeCause::Timeout);
                    store.complete(&again).await;
                }
            }
        }
    }

    async fn a_worker_gives_up_a_waitpoint(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
        store.open_early(&task, &door).await;
        assert_eq!(store.ask(&close(&task, &door)).await, Ok(CloseWaitpointReply::Closed { replayed: false }));
        store.advance(1);
        let before = store.dump().await;
        assert_eq!(store.ask(&close(&task, &door)).await, Ok(CloseWaitpointReply::Closed { replayed: true }));
        assert_eq!(store.dump().await, before);
        assert_eq!(store.look(&door).await.closed_reason.as_deref(), Some("closed"));
        let (_, foreign) = store.start_suspended().await;
        for unknown in [&foreign, &store.waitpoint("nowhere")] {
            assert_eq!(refusal(store.ask(&close(&task, unknown)).await), ErrorCode::WaitpointNotFound);
        }
        // Its key can be used again, its id cannot.
        store.open_early(&task, &store.waitpoint("door")).await;
        let same = NewWaitpoint { waitpoint_id: door.waitpoint_id, ..store.waitpoint("other") };
        assert!(invalid(store.ask(&create(&task, &same)).await).contains("waitpoint.waitpoint_id"));
        store.complete(&task).await;
        assert_eq!(store.inbox().await.len(), 1, "the end of the attempt closed the rest but the stranger's");
    }

    async fn a_waitpoint_is_created_once(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, NewWaitpoint { expires_in_ms: Some(500), ..store.waitpoint("door") });
        let call = create(&task, &door);
        let expires_at = Some(store.now() + 500);
        assert_eq!(store.ask(&call).await, Ok(CreateWaitpointReply::Created { expires_at, replayed: false }));
        store.advance(100);
        let before = store.dump().await;
        assert_eq!(store.ask(&call).await, Ok(CreateWaitpointReply::Created { expires_at, replayed: true }));
        let foreign = store.waitpoint("x");
        for (waitpoint, words) in [
            (NewWaitpoint { key: "door".into(), ..foreign.clone() }, "waitpoint.key"),
            (NewWaitpoint { waitpoint_id: door.waitpoint_id, ..foreign.clone() }, "waitpoint.waitpoint_id"),
            (NewWaitpoint { tokens: vec![], ..foreign.clone() }, "waitpoint.tokens"),
            (NewWaitpoint { tokens: vec![Token::new(token("1")), Token::new(token("2"))], ..foreign.clone() }, "waitpoint.tokens"),
        ] {
            let said = invalid(store.ask(&create(&task, &waitpoint)).await);
            assert!(said.contains(words), "expected {words}, got {said}");
        }
        assert_eq!(store.dump().await, before);
        for n in 1..64 {
            store.open_early(&task, &store.waitpoint(&format!("w{n}"))).await;
        }
        assert!(invalid(store.ask(&create(&task, &foreign)).await).contains("at most 64 open waitpoints"));
    }

    async fn a_token_is_replaced_and_the_operator_remembered(store) {
        store.install_default_lane().await;
        let door = NewWaitpoint { expires_in_ms: Some(1_000), uses: Some(5), ..store.approvals("door", &["ann", "bob"]) };
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        store.suspend_with(&SuspendExecution { condition: condition(r#"{"count":9,"over":"signals"}"#), timeout_ms: Some(9_000), ..store.suspend_call(&task, &[&door]) }).await;
        let reissue = |id: ExecutionId, waitpoint: &NewWaitpoint, approver: Option<&str>, name: &str| ReissueToken { approver: approver.map(str::to_owned), ..ReissueToken::new("op".into(), token(name), id, waitpoint.waitpoint_id) };
        let call = reissue(id, &door, Some("ann"), "new");
        let expected = ReissueTokenReply::Reissued { expires_at: Some(store.now() + 1_000), uses_left: Some(5) };
        assert_eq!(store.ask(&call).await, Ok(expected.clone()));
        let before = store.dump().await;
        assert_eq!(store.ask(&call).await, Ok(expected), "a repetition changes nothing");
        for approver in [None, Some("cid")] {
            assert!(invalid(store.ask(&reissue(id, &door, approver, "x")).await).contains("approver"));
        }
        let foreign = store.waitpoint("x");
        for call in [reissue(id, &foreign, None, "x"), reissue(store.execution_id(), &door, Some("ann"), "x")] {
            assert_eq!(refusal(store.ask(&call).await), ErrorCode::WaitpointNotFound);
        }
        assert_eq!(store.dump().await, before);
        assert_eq!(refusal(store.ask(&store.answer_call(id, &door, "ann", "go")).await), ErrorCode::WaitpointNotOpen);
        store.ask(&store.answer_call(id, &door, "bob", "go")).await.unwrap();
        store.ask(&DeliverSignal { token_digest: token("new"), ..store.signal_call(id, &door, "go") }).await.unwrap();
        assert_eq!(store.signals(id).await.iter().map(|signal| signal.approver.as_deref()).collect::<Vec<_>>(), [Some("bob"), Some("ann")]);
        let actions = store.describe(id).await.operator_actions;
        assert_eq!(actions.iter().map(|a| (a.action.as_str(), a.actor.as_str(), a.reason.as_deref())).collect::<Vec<_>>(), [("reissue_token", "op", Some("door"))]);
        store.advance(1_000);
        assert_eq!(refusal(store.ask(&reissue(id, &door, Some("ann"), "late")).await), ErrorCode::WaitpointNotOpen, "its time is over");
    }

    async fn the_end_of_an_attempt_closes_what_it_opened(store) {
        store.install_default_lane().await;
        for end in ["complete", "fail", "lose", "cancel", "delay"] {
            let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
            store.open_early(&task, &door).await;
            store.signal(task.execution_id, &door, "go").await.unwrap();
            match end {
                "complete" => store.complete(&task).await,
                "fail" => { store.fail(&task, "net").await; }
                "lose" => { store.go_to(task.lease_expires_at); store.fire_all().await; }
                "cancel" => { store.ask(&CancelExecution::new("op".into(), task.execution_id)).await.unwrap(); }
                _ => { store.ask(&DelayExecution { delay_ms: Some(10), ..DelayExecution::new(task.execution_id, task.fence()) }).await.unwrap(); }
            }
            let seen = store.look(&door).await;
            assert_eq!((seen.state, seen.closed_reason.as_deref(), seen.signals), (WaitpointState::Closed, Some("attempt_ended"), 1), "{end}");
            assert!(store.inbox().await.is_empty());
            store.ask(&CancelExecution::new("op".into(), task.execution_id)).await.unwrap();
        }
    }
}
