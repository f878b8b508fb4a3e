//! Signals: each counts exactly once, under a token of its waitpoint, and every signal that is not taken fails in the
//! same way.

use std::collections::BTreeSet;
use std::sync::Arc;

use ff_conformance::harness::refusal;
use ff_conformance::waits::{condition, token};
use ff_conformance::work::{Fenced, HOME};
use ff_conformance::{Kind, Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{ExecutionId, SignalId, WaitpointId};
use ff_script::generated::DeliverSignalReply::{Accepted, Duplicate, TriggeredResume};
use ff_script::generated::*;

use crate::suspend::invalid;

const DAY_MS: i64 = 86_400_000;

/// Starts an execution, opens these waitpoints while it runs, and suspends it for this condition. Early signals arrive
/// in between.
async fn waiting(store: &Store, waitpoints: &[NewWaitpoint], json: &str) -> Task {
    let task = store.start("mail", "w1").await;
    let all: Vec<_> = waitpoints.iter().collect();
    store.suspend_with(&SuspendExecution { condition: condition(json), ..store.suspend_call(&task, &all) }).await;
    task
}

/// The outcome of a signal, in one word.
fn word(reply: &DeliverSignalReply) -> &'static str {
    match reply {
        Accepted { effect, .. } => effect.as_str(),
        TriggeredResume { .. } => "resumed",
        Duplicate { .. } => "duplicate",
    }
}

async fn counted(store: &Store, id: ExecutionId) -> Vec<i64> {
    store.describe(id).await.suspension.unwrap().condition.iter().map(|node| node.counted).collect()
}

async fn uses_left(store: &Store, waitpoint: &NewWaitpoint) -> Vec<Option<i64>> {
    store.look(waitpoint).await.approvers.iter().map(|approver| approver.uses_left).collect()
}

/// Checks that all these signals fail with the same bytes and change nothing.
async fn refused_alike(store: &Arc<Store>, cases: Vec<(&str, DeliverSignal)>) {
    let nothing = store.signal_call(store.execution_id(), &store.waitpoint("nowhere"), "go");
    let bytes = store.reply_bytes(HOME, &nothing).await;
    assert_eq!(refusal(store.ask(&nothing).await), ErrorCode::WaitpointNotOpen);
    let before = store.dump().await;
    for (what, call) in cases {
        assert_eq!(store.reply_bytes(HOME, &call).await, bytes, "{what}");
        assert_eq!(store.dump().await, before, "{what} changes nothing");
    }
}

for_each_host! {
    async fn a_signal_is_told_what_became_of_it(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
        let id = task.execution_id;
        store.open_early(&task, &door).await;
        let call = store.signal_call(id, &door, "a");
        assert_eq!(store.ask(&call).await, Ok(Accepted { signal_id: call.signal_id, effect: SignalEffect::Buffered }));
        store.suspend_with(&SuspendExecution { condition: condition(r#"{"all_of":[{"signal":"a"},{"signal":"b"},{"signal":"c"}]}"#), ..store.suspend_call(&task, &[]) }).await;
        for (name, what) in [("x", "unused"), ("a", "unused"), ("c", "counted"), ("c", "unused"), ("b", "resumed")] {
            let call = DeliverSignal { idempotency_key: Some(name.into()), ..store.signal_call(id, &door, name) };
            let reply = store.ask(&call).await;
            match name {
                // The second `c` uses the key of the first.
                "c" if what == "unused" => assert!(matches!(reply, Ok(Duplicate { signal_id }) if signal_id != call.signal_id), "{reply:?}"),
                _ => assert_eq!(reply.as_ref().map(word), Ok(what), "{name}"),
            }
        }
        assert_eq!(store.describe(id).await.signals, 5, "a duplicate is not kept");
        let resume = store.claim_one("w1").await.resume.unwrap();
        assert_eq!(resume.signals.iter().map(|signal| signal.name.as_str()).collect::<Vec<_>>(), ["a", "c", "b"]);
    }

    async fn an_empty_condition_takes_any_signal(store) {
        store.install_default_lane().await;
        let doors = [store.waitpoint("a"), store.waitpoint("b")];
        let task = store.start("mail", "w1").await;
        store.suspend(&task, &[&doors[0], &doors[1]]).await;
        store.wake(task.execution_id, &doors[1], "whatever").await;
    }

    async fn an_idempotency_key_names_one_signal_for_a_day(store) {
        store.install_default_lane().await;
        let door = NewWaitpoint { uses: Some(2), ..store.waitpoint("door") };
        let task = waiting(&store, std::slice::from_ref(&door), r#"{"count":3,"over":"signals"}"#).await;
        let id = task.execution_id;
        let keyed = || DeliverSignal { idempotency_key: Some("k".into()), ..store.signal_call(id, &door, "go") };
        let first = keyed();
        assert_eq!(store.ask(&first).await.as_ref().map(word), Ok("counted"));
        store.advance(DAY_MS - 1);
        let before = store.dump().await;
        assert_eq!(store.ask(&keyed()).await, Ok(Duplicate { signal_id: first.signal_id }));
        assert_eq!(store.dump().await, before, "it consumes no use and counts nowhere");
        store.advance(1);
        let second = keyed();
        assert_eq!(store.ask(&second).await.as_ref().map(word), Ok("counted"), "the key is free again");
        assert_eq!(store.ask(&keyed()).await, Ok(Duplicate { signal_id: second.signal_id }));
        assert_eq!((counted(&store, id).await, uses_left(&store, &door).await), (vec![2], vec![Some(0)]));
    }

    async fn an_idempotency_key_belongs_to_one_sender_at_one_waitpoint(store) {
        store.install_default_lane().await;
        let (door, side) = (store.approvals("door", &["ann", "bob"]), store.waitpoint("side"));
        let task = waiting(&store, &[door.clone(), side.clone()], r#"{"count":9,"over":"signals"}"#).await;
        let id = task.execution_id;
        let keyed = |call: DeliverSignal| DeliverSignal { idempotency_key: Some("k".into()), ..call };
        for (call, what) in [
            (store.answer_call(id, &door, "ann", "go"), "counted"),
            (store.answer_call(id, &door, "bob", "go"), "counted"),
            (store.signal_call(id, &side, "go"), "counted"),
            (store.answer_call(id, &door, "ann", "go"), "duplicate"),
            (store.answer_call(id, &door, "bob", "other"), "duplicate"),
            (store.signal_call(id, &side, "go"), "duplicate"),
        ] {
            assert_eq!(store.ask(&keyed(call)).await.as_ref().map(word), Ok(what));
        }
        // A new token is the same sender.
        store.ask(&ReissueToken { approver: Some("ann".into()), ..ReissueToken::new("op".into(), token("new"), id, door.waitpoint_id) }).await.unwrap();
        let call = DeliverSignal { token_digest: token("new"), ..keyed(store.answer_call(id, &door, "ann", "go")) };
        assert_eq!(store.ask(&call).await.as_ref().map(word), Ok("duplicate"));
        assert_eq!(counted(&store, id).await, [3]);
    }

    async fn a_repeated_signal_gets_its_first_answer(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("mail", "w1").await, store.waitpoint("door"));
        let id = task.execution_id;
        store.open_early(&task, &door).await;
        let early = store.signal_call(id, &door, "early");
        store.ask(&early).await.unwrap();
        store.suspend_with(&SuspendExecution { condition: condition(r#"{"all_of":[{"signal":"a"},{"signal":"b"}]}"#), ..store.suspend_call(&task, &[]) }).await;
        let mut calls = vec![(early, "buffered")];
        for (name, what) in [("x", "unused"), ("a", "counted"), ("b", "resumed")] {
            let call = store.signal_call(id, &door, name);
            assert_eq!(store.ask(&call).await.as_ref().map(word), Ok(what));
            calls.push((call, what));
        }
        let again = async |when: &str| {
            let before = store.dump().await;
            for (call, what) in &calls {
                let other = DeliverSignal { name: "other".into(), payload: Some("other".into()), ..call.clone() };
                for call in [call, &other] {
                    assert_eq!(store.ask(call).await.as_ref().map(word), Ok(*what), "{} {when}", call.name);
                }
            }
            assert_eq!(store.dump().await, before, "a repetition {when} writes nothing");
        };
        again("after the waitpoint closed").await;
        let task = store.claim_one("w1").await;
        again("while the attempt goes on").await;
        store.complete(&task).await;
        store.advance(2 * DAY_MS);
        again("after the end, days later").await;
    }

    async fn whatever_is_not_taken_is_refused_alike_and_changes_nothing(store) {
        store.install_default_lane().await;
        // Another execution with a waitpoint of its own.
        let (stranger, foreign) = store.start_suspended().await;
        // One that waits at two waitpoints, after an earlier wait and an earlier attempt.
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        let lost = store.waitpoint("lost");
        store.open_early(&task, &lost).await;
        let task = store.lose_and_reclaim(&task, "w1").await;
        let earlier = store.waitpoint("door");
        store.suspend(&task, &[&earlier]).await;
        store.wake(id, &earlier, "go").await;
        let task = store.claim_one("w1").await;
        let closed = store.waitpoint("closed");
        store.open_early(&task, &closed).await;
        store.ask(&CloseWaitpoint { execution_id: id, fence: task.fence(), waitpoint_id: closed.waitpoint_id }).await.unwrap();
        let passed = NewWaitpoint { expires_in_ms: Some(10), ..store.waitpoint("passed") };
        store.open_early(&task, &passed).await;
        store.advance(10);
        store.fire_all().await;
        let passing = NewWaitpoint { expires_in_ms: Some(10), ..store.waitpoint("passing") };
        let spent = NewWaitpoint { uses: Some(1), ..store.waitpoint("spent") };
        let (door, side) = (store.waitpoint("door"), store.approvals("side", &["ann", "bob"]));
        let all = [&door, &side, &spent, &passing];
        store.suspend_with(&SuspendExecution { condition: condition(r#"{"count":9,"over":"signals"}"#), ..store.suspend_call(&task, &all) }).await;
        let used = store.signal_call(id, &spent, "go");
        store.ask(&used).await.unwrap();
        store.ask(&ReissueToken { approver: Some("bob".into()), ..ReissueToken::new("op".into(), token("new"), id, side.waitpoint_id) }).await.unwrap();
        store.advance(10); // `passing` is over; no timer has fired
        // Two executions in their first attempt, one with a waitpoint.
        let (early, runs) = (store.waitpoint("early"), store.start("mail", "w2").await);
        let early_of = store.start("mail", "w2").await;
        store.open_early(&early_of, &early).await;
        let (ended, end) = store.start_suspended().await;
        store.ask(&CancelExecution::new("op".into(), ended.execution_id)).await.unwrap();
        let (retired, gone) = store.start_suspended().await;
        store.ask(&CancelExecution::new("op".into(), retired.execution_id)).await.unwrap();
        store.ask(&DeleteExecution { actor: "ann".into(), execution_id: retired.execution_id }).await.unwrap();

        let to = |waitpoint: &NewWaitpoint| store.signal_call(id, waitpoint, "go");
        let with = |call: DeliverSignal, name: &str| DeliverSignal { token_digest: token(name), ..call };
        refused_alike(&store, vec![
            ("an unknown waitpoint", DeliverSignal { waitpoint_id: WaitpointId::from_uuid(store.uuid(0)), ..to(&door) }),
            ("an unknown execution", DeliverSignal { execution_id: store.execution_id(), ..to(&door) }),
            ("another execution", DeliverSignal { execution_id: stranger.execution_id, ..to(&door) }),
            ("another execution's waitpoint", to(&foreign)),
            ("another running execution's waitpoint", store.signal_call(runs.execution_id, &early, "go")),
            ("an unknown token", with(to(&door), "unknown")),
            ("the token of another waitpoint", with(to(&door), "side/ann")),
            ("the token of another execution's waitpoint with the same key", DeliverSignal { waitpoint_id: foreign.waitpoint_id, ..to(&door) }),
            ("a waitpoint of an earlier suspension", to(&earlier)),
            ("a waitpoint of an earlier attempt", to(&lost)),
            ("one that the worker closed", to(&closed)),
            ("one whose time was over", to(&passed)),
            ("one whose time is over just now", to(&passing)),
            ("a spent token", to(&spent)),
            ("a token that was replaced", store.answer_call(id, &side, "bob", "go")),
            ("a signal id of another waitpoint", DeliverSignal { signal_id: used.signal_id, ..to(&door) }),
            ("an execution that has ended", store.signal_call(ended.execution_id, &end, "go")),
            ("an execution that is gone", store.signal_call(retired.execution_id, &gone, "go")),
        ]).await;
        // They failed for the tested reasons only: the correct ones are taken.
        assert_eq!(store.ask(&to(&door)).await.as_ref().map(word), Ok("counted"));
        assert_eq!(store.ask(&with(to(&side), "new")).await.as_ref().map(word), Ok("counted"));
        assert_eq!(store.ask(&store.answer_call(id, &side, "ann", "go")).await.as_ref().map(word), Ok("counted"));
    }

    async fn a_waitpoint_takes_the_names_it_allows(store) {
        store.install_default_lane().await;
        let door = NewWaitpoint { allowed_signals: Some(vec!["yes".into(), "no".into()]), uses: Some(1), ..store.waitpoint("door") };
        let (task, early) = (store.start("mail", "w1").await, NewWaitpoint { waitpoint_id: store.waitpoint_id(), key: "early".into(), ..door.clone() });
        let id = task.execution_id;
        store.open_early(&task, &early).await;
        let mut seen = store.dump().await;
        for waitpoint in [&early, &door] {
            for name in ["maybe", "ye", "yes ", "YES"] {
                assert_eq!(refusal(store.signal(id, waitpoint, name).await), ErrorCode::SignalNotAllowed, "{name}");
                assert_eq!(store.dump().await, seen, "it consumes no use");
            }
            if waitpoint.key == "early" {
                assert_eq!(store.signal(id, waitpoint, "yes").await.as_ref().map(word), Ok("buffered"));
                store.suspend_with(&SuspendExecution { condition: condition(r#"{"signal":"no"}"#), ..store.suspend_call(&task, &[&door]) }).await;
                seen = store.dump().await;
            }
        }
        store.wake(id, &door, "no").await;
    }

    async fn a_token_is_used_as_often_as_its_waitpoint_allows(store) {
        store.install_default_lane().await;
        let door = NewWaitpoint { uses: Some(2), ..store.approvals("door", &["ann", "bob"]) };
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        store.open_early(&task, &door).await;
        store.ask(&store.answer_call(id, &door, "ann", "go")).await.unwrap();
        store.suspend_with(&SuspendExecution { condition: condition(r#"{"count":9,"over":"signals"}"#), ..store.suspend_call(&task, &[]) }).await;
        assert_eq!(uses_left(&store, &door).await, [Some(1), Some(2)], "an early signal is a use");
        store.ask(&store.answer_call(id, &door, "ann", "go")).await.unwrap();
        assert_eq!(refusal(store.ask(&store.answer_call(id, &door, "ann", "go")).await), ErrorCode::WaitpointNotOpen);
        // A new token does not add uses.
        let reissue = |approver: &str, name: &str| ReissueToken { approver: Some(approver.into()), ..ReissueToken::new("op".into(), token(name), id, door.waitpoint_id) };
        assert_eq!(store.ask(&reissue("ann", "new")).await, Ok(ReissueTokenReply::Reissued { expires_at: None, uses_left: Some(0) }));
        assert_eq!(refusal(store.ask(&DeliverSignal { token_digest: token("new"), ..store.signal_call(id, &door, "go") }).await), ErrorCode::WaitpointNotOpen);
        for left in [1, 0] {
            store.ask(&store.answer_call(id, &door, "bob", "go")).await.unwrap();
            assert_eq!(uses_left(&store, &door).await, [Some(0), Some(left)]);
        }
        assert_eq!((counted(&store, id).await, store.look(&door).await.signals), (vec![4], 4));
    }

    async fn an_execution_takes_a_bounded_number_of_signals(store) {
        if store.kind() == Kind::Cluster { return }
        let store = Store::open_with_limits(store.kind(), &[("signals_max", 5)]).await;
        store.install_default_lane().await;
        let door = store.waitpoint("door");
        let task = store.start("mail", "w1").await;
        let id = task.execution_id;
        store.open_early(&task, &door).await;
        store.signal(id, &door, "early").await.unwrap();
        let timeout_behavior = TimeoutBehavior::AutoResumeWithTimeoutSignal;
        store.suspend_with(&SuspendExecution { condition: condition(r#"{"signal":"never"}"#), timeout_ms: Some(50), timeout_behavior, ..store.suspend_call(&task, &[]) }).await;
        let mut last = None;
        for _ in 1..5 {
            let call = store.signal_call(id, &door, "x");
            store.ask(&call).await.unwrap();
            last = Some(call);
        }
        let before = store.dump().await;
        assert_eq!(refusal(store.signal(id, &door, "never").await), ErrorCode::SignalsFull);
        assert_eq!(store.ask(&last.unwrap()).await.as_ref().map(word), Ok("unused"), "a known one still gets its reply");
        assert_eq!(store.dump().await, before);
        store.advance(50);
        store.fire_all().await;
        assert_eq!(store.claim_one("w1").await.resume.unwrap().cause, ResumeCause::Timeout, "the engine's own signal has room");
        store.assert_sound().await;
    }

    async fn approvers_are_tokens_whatever_a_sender_calls_itself(store) {
        store.install_default_lane().await;
        let (door, side, plain) = (store.approvals("door", &["ann", "bob"]), store.approvals("side", &["bob", "cid"]), store.waitpoint("plain"));
        let task = waiting(&store, &[door.clone(), side.clone(), plain.clone()], r#"{"count":4,"over":"approvers"}"#).await;
        let id = task.execution_id;
        let names = |call: DeliverSignal, who: &str| DeliverSignal { source: Some(who.into()), source_identity: Some(who.into()), ..call };
        for (call, what) in [
            (names(store.answer_call(id, &door, "ann", "yes"), "ann"), "counted"),
            (names(store.answer_call(id, &door, "ann", "yes"), "bob"), "unused"),
            (names(store.answer_call(id, &door, "bob", "yes"), "ann"), "counted"),
            (names(store.answer_call(id, &side, "bob", "yes"), "dan"), "unused"),
            (names(store.signal_call(id, &plain, "yes"), "eve"), "counted"),
            (names(store.signal_call(id, &plain, "yes"), "fay"), "unused"),
            (names(store.answer_call(id, &side, "cid", "yes"), "ann"), "resumed"),
        ] {
            assert_eq!(store.ask(&call).await.as_ref().map(word), Ok(what), "{call:?}");
        }
        let resume = store.claim_one("w1").await.resume.unwrap();
        assert_eq!(resume.signals.iter().map(|signal| signal.approver.as_deref()).collect::<Vec<_>>(), [Some("ann"), Some("bob"), None, Some("cid")]);
    }

    async fn a_count_over_waitpoints_counts_each_once(store) {
        store.install_default_lane().await;
        let doors = ["a", "b", "c"].map(|key| store.approvals(key, &["ann", "bob"]));
        let task = waiting(&store, &doors, r#"{"count":3,"over":"waitpoints","of":{"signal":"yes"}}"#).await;
        let id = task.execution_id;
        for (place, approver, name, what) in [(0, "ann", "yes", "counted"), (0, "bob", "yes", "unused"), (1, "ann", "no", "unused"), (1, "ann", "yes", "counted"), (2, "bob", "yes", "resumed")] {
            let call = store.answer_call(id, &doors[place], approver, name);
            assert_eq!(store.ask(&call).await.as_ref().map(word), Ok(what));
        }
    }

    async fn an_early_signal_counts_exactly_once_for_every_kind_of_condition(store) {
        store.install_default_lane().await;
        for (json, satisfied_by) in [
            ("{}", "x@a"),
            (r#"{"signal":"x"}"#, "x@a"),
            (r#"{"signal":null,"waitpoint":"b"}"#, "x@b"),
            (r#"{"any_of":[{"signal":"x"},{"signal":"y"}]}"#, "y@a"),
            (r#"{"all_of":[{"signal":"x"},{"signal":"y"}]}"#, "x@a y@b"),
            (r#"{"all_of":[{"signal":null},{"signal":null}]}"#, "x@a x@a"),
            (r#"{"all_of":[{"signal":"x"},{"any_of":[{"signal":"x"},{"signal":"y"}]}]}"#, "x@a"),
            (r#"{"count":2,"over":"signals"}"#, "x@a x@a"),
            (r#"{"count":2,"over":"waitpoints"}"#, "x@a y@b"),
            (r#"{"count":2,"over":"approvers"}"#, "x@a y@b"),
            (r#"{"count":2,"over":"signals","of":{"signal":"x","waitpoint":"a"}}"#, "x@a x@a"),
        ] {
            let arrivals: Vec<_> = satisfied_by.split(' ').map(|word| word.split_once('@').unwrap()).collect();
            // However many arrive early, the same signals satisfy it, and none counts twice.
            for early in 0..=arrivals.len() {
                let task = store.start("mail", "w1").await;
                let id = task.execution_id;
                let doors = [store.waitpoint("a"), store.waitpoint("b")];
                for door in &doors {
                    store.open_early(&task, door).await;
                }
                let mut calls = Vec::new();
                for (name, key) in &arrivals {
                    calls.push(store.signal_call(id, doors.iter().find(|door| door.key == *key).unwrap(), name));
                }
                for call in &calls[..early] {
                    assert_eq!(store.ask(call).await.as_ref().map(word), Ok("buffered"));
                }
                let suspend = SuspendExecution { condition: condition(json), ..store.suspend_call(&task, &[]) };
                let reply = store.ask(&suspend).await.unwrap();
                let satisfied = matches!(reply, SuspendExecutionReply::AlreadySatisfied { .. });
                assert_eq!(satisfied, early == calls.len(), "{json} after {early} of {satisfied_by}");
                let signals = if let SuspendExecutionReply::AlreadySatisfied { signals, .. } = reply {
                    store.complete(&task).await;
                    signals
                } else {
                    for (n, call) in calls.iter().enumerate().skip(early) {
                        let what = if n + 1 == calls.len() { "resumed" } else { "counted" };
                        assert_eq!(store.ask(call).await.as_ref().map(word), Ok(what), "{json} with {early} of {satisfied_by}");
                    }
                    let again = store.claim_one("w1").await;
                    store.complete(&again).await;
                    again.resume.unwrap().signals
                };
                assert_eq!(signals.iter().map(|signal| signal.signal_id).collect::<Vec<_>>(), calls.iter().map(|call| call.signal_id).collect::<Vec<_>>(), "{json} with {early} early");
            }
        }
    }

    async fn an_early_signal_counts_though_its_waitpoint_is_over_by_the_suspend(store) {
        store.install_default_lane().await;
        for (fired, named) in [(false, false), (false, true), (true, false), (true, true)] {
            let task = store.start("mail", "w1").await;
            let id = task.execution_id;
            let (door, silent) = (NewWaitpoint { expires_in_ms: Some(10), ..store.waitpoint("door") }, NewWaitpoint { expires_in_ms: Some(10), ..store.waitpoint("silent") });
            store.open_early(&task, &door).await;
            store.open_early(&task, &silent).await;
            let call = store.signal_call(id, &door, "a");
            store.ask(&call).await.unwrap();
            store.advance(10);
            if fired {
                store.fire_all().await;
                assert_eq!(store.look(&door).await.closed_reason.as_deref(), Some("expired"));
            }
            let side = store.waitpoint("side");
            let adopt = named.then(|| vec![door.waitpoint_id]);
            let suspend = SuspendExecution { adopt, condition: condition(r#"{"all_of":[{"signal":"a","waitpoint":"door"},{"signal":"b"}]}"#), ..store.suspend_call(&task, &[&side]) };
            store.suspend_with(&suspend).await;
            assert_eq!(counted(&store, id).await, [0, 1, 0], "fired {fired}, named {named}");
            store.fire_all().await;
            assert_eq!(store.inbox().await.len(), 1, "only the new one is open");
            store.wake(id, &side, "b").await;
            let again = store.claim_one("w1").await;
            assert_eq!(again.resume.clone().unwrap().signals[0].signal_id, call.signal_id);
            // It counted once: it does not count for the next wait.
            let last = store.waitpoint("last");
            store.suspend_with(&SuspendExecution { condition: condition(r#"{"signal":"a"}"#), ..store.suspend_call(&again, &[&last]) }).await;
            assert_eq!(counted(&store, id).await, [0]);
            store.assert_sound().await;
            store.ask(&CancelExecution::new("op".into(), id)).await.unwrap();
        }
    }

    async fn early_signals_that_were_given_up_do_not_count(store) {
        store.install_default_lane().await;
        for how in ["closed", "expired, then closed", "not adopted", "expired and not adopted", "an attempt ago", "expired, an attempt ago"] {
            let mut task = store.start("mail", "w1").await;
            let id = task.execution_id;
            let expires_in_ms = how.starts_with("expired").then_some(10);
            let door = NewWaitpoint { expires_in_ms, ..store.waitpoint("door") };
            store.open_early(&task, &door).await;
            store.signal(id, &door, "a").await.unwrap();
            if expires_in_ms.is_some() {
                store.advance(10);
                store.fire_all().await;
            }
            if how.ends_with("closed") {
                store.ask(&CloseWaitpoint { execution_id: id, fence: task.fence(), waitpoint_id: door.waitpoint_id }).await.unwrap();
            }
            if how.ends_with("an attempt ago") {
                task = store.lose_and_reclaim(&task, "w1").await;
            }
            let side = store.waitpoint("side");
            let adopt = how.ends_with("not adopted").then(Vec::new);
            store.suspend_with(&SuspendExecution { adopt, ..store.suspend_call(&task, &[&side]) }).await;
            assert_eq!(counted(&store, id).await, [0], "{how}");
            store.wake(id, &side, "b").await;
            let again = store.claim_one("w1").await;
            assert_eq!(again.resume.clone().unwrap().signals.len(), 1);
            store.complete(&again).await;
            assert_eq!(store.signals(id).await.len(), 2, "they are kept all the same");
        }
    }

    async fn bytes_of_a_payload_are_kept_as_they_came(store) {
        store.install_default_lane().await;
        let door = store.waitpoint("door");
        let task = waiting(&store, std::slice::from_ref(&door), r#"{"signal":"never"}"#).await;
        let id = task.execution_id;
        let payloads = [None, Some(vec![]), Some((0..=255).collect::<Vec<u8>>()), Some(vec![0xff; 262_144])];
        for payload in payloads.clone() {
            store.ask(&DeliverSignal { payload: payload.map(Into::into), ..store.signal_call(id, &door, "x") }).await.unwrap();
        }
        assert_eq!(store.signals(id).await.into_iter().map(|signal| signal.payload).collect::<Vec<_>>(), payloads.map(|payload| payload.map(Into::into)));
        let large = DeliverSignal { payload: Some(vec![0; 262_145].into()), ..store.signal_call(id, &door, "x") };
        assert!(invalid(store.ask(&large).await).contains("payload"));
    }

    async fn signals_are_read_in_order_page_by_page(store) {
        store.install_default_lane().await;
        let door = store.waitpoint("door");
        let task = waiting(&store, std::slice::from_ref(&door), r#"{"signal":"never"}"#).await;
        let id = task.execution_id;
        for n in 0..7 {
            store.signal(id, &door, &format!("s{n}")).await.unwrap();
            if n % 3 == 0 { store.advance(1) }
        }
        let all = store.signals(id).await;
        assert_eq!(all.iter().map(|signal| signal.name.clone()).collect::<Vec<_>>(), (0..7).map(|n| format!("s{n}")).collect::<Vec<_>>());
        assert_eq!(all.iter().map(|signal| &signal.id).collect::<BTreeSet<_>>().len(), 7);
        for limit in 1..=8 {
            let (mut read, mut after, mut pages) = (Vec::new(), None, 0);
            loop {
                let ReadSignalsReply::Page { signals, more } = store.ask(&ReadSignals { after: after.clone(), ..ReadSignals::new(id, limit, false) }).await.unwrap();
                after = signals.last().map(|signal| signal.id.clone());
                read.extend(signals);
                pages += 1;
                if !more { break }
            }
            assert_eq!((read, pages), (all.clone(), (7 + limit - 1) / limit), "pages of {limit}");
        }
        assert_eq!(refusal(store.ask(&ReadSignals::new(store.execution_id(), 1, false)).await), ErrorCode::ExecutionNotFound);
        let past = ReadSignals { after: Some("99999999999999999999999-0".into()), ..ReadSignals::new(id, 1, false) };
        assert!(invalid(store.ask(&past).await).contains("after"), "no id is that large");
    }

    async fn a_clock_that_steps_back_keeps_the_order_of_signals(store) {
        store.install_default_lane().await;
        let door = store.waitpoint("door");
        let task = waiting(&store, std::slice::from_ref(&door), r#"{"count":3,"over":"signals"}"#).await;
        for (name, step) in [("a", 1_000), ("b", -1_500), ("c", 10)] {
            store.signal(task.execution_id, &door, name).await.unwrap();
            store.advance(step);
        }
        let resume = store.claim_one("w1").await.resume.unwrap();
        assert_eq!(resume.signals.iter().map(|signal| signal.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    async fn two_signals_at_once_resume_it_once(store) {
        store.install_default_lane().await;
        let (task, door) = store.start_suspended().await;
        let id = task.execution_id;
        let calls: Vec<_> = (0..8).map(|_| DeliverSignal { signal_id: SignalId::from_uuid(store.uuid(0)), ..store.signal_call(id, &door, "go") }).collect();
        let mut running = Vec::new();
        for call in calls {
            let store = store.clone();
            running.push(tokio::spawn(async move { store.ask(&call).await }));
        }
        let mut resumed = 0;
        for one in running {
            match one.await.unwrap() {
                Ok(reply) => { assert_eq!(word(&reply), "resumed"); resumed += 1 }
                refused => assert_eq!(refusal(refused), ErrorCode::WaitpointNotOpen),
            }
        }
        assert_eq!((resumed, store.describe(id).await.signals), (1, 1));
    }
}
