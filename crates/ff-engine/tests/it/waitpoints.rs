//! Suspensions, the tokens that end them, and the keys that sign these.

use std::path::Path;

use ff_core::condition::{Condition, Over};
use ff_core::state::PublicState;
use ff_core::types::{ExecutionId, SignalId, WaitpointId, WaitpointToken};
use ff_engine::{
    Engine, NewSignal, NewSuspension, OpenedWaitpoint, SignalOutcome, Suspended, WaitpointSpec, Waitpoints,
    WaitpointsError, fence_of,
};
use ff_keys::{Keys, Source};
use ff_script::generated::{ResumeCause, SignalEffect, SuspensionReason, Task, TimeoutBehavior};
use tempfile::TempDir;
use uuid::Uuid;

use crate::kit::*;
use crate::on_both_hosts;
use crate::wiretap::Wiretap;

fn directory() -> TempDir {
    tempfile::Builder::new().prefix("ff-keys-").tempdir().unwrap()
}

fn keys_in(directory: &Path) -> Keys {
    Keys::open(Source::DataDir(directory.join("keys"))).unwrap()
}

fn waitpoints(engine: &Engine, keys: &Keys) -> Waitpoints {
    Waitpoints::new(engine.operations().clone(), keys.clone())
}

fn named(key: &str) -> WaitpointSpec {
    WaitpointSpec { key: key.to_owned(), ..WaitpointSpec::default() }
}

fn suspension(task: &Task, waitpoints: Vec<WaitpointSpec>) -> NewSuspension {
    NewSuspension {
        execution_id: task.execution_id,
        fence: fence_of(task),
        namespace: None,
        reason: SuspensionReason::WaitingForApproval,
        waitpoints,
        adopt: None,
        condition: Condition::default(),
        timeout_ms: None,
        timeout_behavior: TimeoutBehavior::Fail,
        continuation: None,
        continuation_encoding: None,
        step: None,
        wait: None,
        request_id: None,
    }
}

fn signal(name: &str) -> NewSignal {
    NewSignal { name: name.to_owned(), ..NewSignal::default() }
}

async fn running(engine: &Engine, kind: &str) -> Task {
    let id = submit(engine.operations(), work(kind)).await;
    claim_one(engine.operations(), &worker("w", 60_000), id).await
}

/// Suspends, and answers the waitpoints.
async fn suspend(waitpoints: &Waitpoints, new: NewSuspension) -> Vec<OpenedWaitpoint> {
    match waitpoints.suspend(new).await.unwrap() {
        Suspended::Waiting { waitpoints, .. } => waitpoints,
        other => panic!("not suspended: {other:?}"),
    }
}

fn only(opened: &OpenedWaitpoint) -> &WaitpointToken {
    let [token] = opened.tokens.as_slice() else { panic!("not one token: {opened:?}") };
    &token.token
}

fn texts(opened: &[OpenedWaitpoint]) -> Vec<(WaitpointId, Vec<String>)> {
    let tokens = |opened: &OpenedWaitpoint| opened.tokens.iter().map(|t| t.token.as_str().to_owned()).collect();
    opened.iter().map(|opened| (opened.waitpoint_id, tokens(opened))).collect()
}

on_both_hosts! {
    async fn a_suspended_attempt_goes_on_with_the_signal_it_waited_for(kit) {
        let (engine, directory) = (kit.engine().await, directory());
        let waitpoints = waitpoints(&engine, &keys_in(directory.path()));
        let task = running(&engine, "agent").await;
        let id = task.execution_id;
        let new = NewSuspension { continuation: Some(b"\x00half way\xff".to_vec()), ..suspension(&task, vec![named("approval")]) };
        let opened = suspend(&waitpoints, new).await;
        becomes(engine.operations(), id, PublicState::Suspended).await;

        let signal = NewSignal {
            signal_id: Some(SignalId::mint()),
            payload: Some(b"\x00\xff yes".to_vec()),
            ..signal("approved")
        };
        let delivered = async || waitpoints.deliver(id, opened[0].waitpoint_id, only(&opened[0]), signal.clone()).await.unwrap();
        let expected = SignalOutcome::TriggeredResume { signal_id: signal.signal_id.unwrap() };
        assert_eq!(delivered().await, expected);
        assert_eq!(delivered().await, expected, "a lost reply is answered again");

        let again = claim_one(engine.operations(), &worker("w2", 60_000), id).await;
        assert_eq!((again.attempt_index, again.attempt_id), (task.attempt_index, task.attempt_id));
        assert!(again.lease_epoch > task.lease_epoch);
        let resume = again.resume.clone().unwrap();
        assert_eq!((resume.cause, resume.more), (ResumeCause::Signal, false));
        assert_eq!(resume.continuation.unwrap().0, b"\x00half way\xff");
        let payloads: Vec<_> = resume.signals.into_iter().map(|signal| (signal.name, signal.payload.unwrap().0)).collect();
        assert_eq!(payloads, [("approved".to_owned(), b"\x00\xff yes".to_vec())]);
        complete(engine.operations(), &again, b"").await;
        engine.stop().await;
    }

    async fn a_signal_that_came_early_lets_the_attempt_go_on_at_once(kit) {
        let (engine, directory) = (kit.engine().await, directory());
        let waitpoints = waitpoints(&engine, &keys_in(directory.path()));
        let task = running(&engine, "agent").await;
        // A handler that waits again and again under one lease, each time at a waitpoint of the same name.
        for round in 0..3_u8 {
            let early = waitpoints.create(task.execution_id, fence_of(&task), None, &named("answer"), None).await.unwrap();
            let brought = NewSignal { payload: Some(vec![round; 3]), ..signal("answer") };
            let outcome = waitpoints.deliver(task.execution_id, early.waitpoint_id, only(&early), brought).await.unwrap();
            assert!(matches!(outcome, SignalOutcome::Accepted { effect: SignalEffect::Buffered, .. }), "{outcome:?}");
            let suspended = waitpoints.suspend(suspension(&task, Vec::new())).await.unwrap();
            let Suspended::AlreadySatisfied { signals, .. } = suspended else { panic!("waits: {suspended:?}") };
            assert_eq!(signals.into_iter().map(|s| s.payload.unwrap().0).collect::<Vec<_>>(), [vec![round; 3]]);
        }
        complete(engine.operations(), &task, b"").await;
        engine.stop().await;
    }

    async fn the_same_request_gets_the_same_waitpoints_and_tokens(kit) {
        let (engine, directory) = (kit.engine().await, directory());
        let keys = keys_in(directory.path());
        let waitpoints = waitpoints(&engine, &keys);
        let task = running(&engine, "agent").await;
        let (id, fence) = (task.execution_id, fence_of(&task));

        let request = Some(Uuid::now_v7());
        let spec = WaitpointSpec { approvers: vec!["ann".to_owned(), "bob".to_owned()], uses: Some(1), ..named("early") };
        let create = async |request| waitpoints.create(id, fence, None, &spec, request).await;
        let first = create(request).await.unwrap();
        assert_eq!(texts(&[create(request).await.unwrap()]), texts(std::slice::from_ref(&first)));
        // Another request is another waitpoint, and this name is taken.
        let taken = create(None).await.unwrap_err();
        assert!(taken.to_string().contains("waitpoint.key"), "{taken}");

        let new = NewSuspension { request_id: Some(Uuid::now_v7()), ..suspension(&task, vec![named("a"), named("b")]) };
        let opened = suspend(&waitpoints, new.clone()).await;
        assert_eq!(opened.iter().map(|o| (o.key.as_str(), o.tokens.len())).collect::<Vec<_>>(), [("early", 0), ("a", 1), ("b", 1)]);
        // Another process with the same keys, and a caller that forgot its request id.
        let other = Waitpoints::new(engine.operations().clone(), keys_in(directory.path()));
        for new in [new.clone(), NewSuspension { request_id: None, ..new.clone() }] {
            let Suspended::Waiting { waitpoints: again, replayed, .. } = other.suspend(new).await.unwrap() else { panic!() };
            assert!(replayed);
            assert_eq!(texts(&again), texts(&opened));
        }
        // Every token works: the one of a repeated answer is the one the store knows.
        for (at, token) in [(0, &first.tokens[1].token), (1, only(&opened[1]))] {
            let outcome = waitpoints.deliver(id, opened[at].waitpoint_id, token, signal("go")).await;
            assert!(at == 1 || outcome.is_ok(), "{outcome:?}");
        }
        engine.stop().await;
    }

    async fn a_token_that_is_not_accepted_is_refused_with_one_answer(kit) {
        let (engine, directory) = (kit.engine().await, directory());
        let waitpoints = waitpoints(&engine, &keys_in(directory.path()));
        let (one, two) = (running(&engine, "one").await, running(&engine, "two").await);
        let both = Condition::Count { n: 2, over: Over::Waitpoints, of: None };
        let new = NewSuspension { condition: both, ..suspension(&one, vec![named("a"), named("b")]) };
        let opened = suspend(&waitpoints, new).await;
        let other = suspend(&waitpoints, suspension(&two, vec![named("a")])).await;
        let (a, b) = (&opened[0], &opened[1]);
        let (id, elsewhere) = (one.execution_id, two.execution_id);

        let mut refused = Vec::new();
        let mut refuse = async |id: ExecutionId, at: WaitpointId, token: &WaitpointToken| {
            let error = waitpoints.deliver(id, at, token, signal("go")).await.unwrap_err();
            refused.push((format!("{error}"), format!("{error:?}")));
        };
        refuse(id, a.waitpoint_id, only(&other[0])).await; // another execution's
        refuse(elsewhere, other[0].waitpoint_id, only(a)).await;
        refuse(elsewhere, a.waitpoint_id, only(a)).await;
        refuse(id, a.waitpoint_id, only(b)).await; // another waitpoint's
        refuse(id, WaitpointId::mint(), only(b)).await; // a waitpoint there is not

        // The first suspension ends; its tokens are no good for the second.
        for opened in [a, b] {
            waitpoints.deliver(id, opened.waitpoint_id, only(opened), signal("go")).await.unwrap();
        }
        let one = claim_one(engine.operations(), &worker("w", 60_000), id).await;
        refuse(id, a.waitpoint_id, only(a)).await; // closed
        let second = suspend(&waitpoints, suspension(&one, vec![named("a")])).await;
        refuse(id, a.waitpoint_id, only(a)).await; // another suspension's
        refuse(id, second[0].waitpoint_id, only(a)).await;
        // A token that was spent, and one whose time is over.
        let two = async {
            waitpoints.deliver(elsewhere, other[0].waitpoint_id, only(&other[0]), signal("go")).await.unwrap();
            claim_one(engine.operations(), &worker("w", 60_000), elsewhere).await
        }.await;
        let once = WaitpointSpec { uses: Some(1), ..named("once") };
        let spent = waitpoints.create(elsewhere, fence_of(&two), None, &once, None).await.unwrap();
        waitpoints.deliver(elsewhere, spent.waitpoint_id, only(&spent), signal("go")).await.unwrap();
        refuse(elsewhere, spent.waitpoint_id, only(&spent)).await;
        let short = WaitpointSpec { expires_in_ms: Some(1), ..named("short") };
        let expired = waitpoints.create(elsewhere, fence_of(&two), None, &short, None).await.unwrap();
        tokio::time::sleep(ms(5)).await;
        refuse(elsewhere, expired.waitpoint_id, only(&expired)).await;

        refused.sort();
        refused.dedup();
        assert_eq!(refused.len(), 1, "{refused:#?}");
        assert!(refused[0].0.contains("open waitpoint"), "{refused:?}");

        // What was never signed by this store's keys does not reach it.
        let forged = only(&second[0]).as_str().to_owned();
        let forged = WaitpointToken::new(format!("{}{}", &forged[..forged.len() - 2], "AA"));
        let error = waitpoints.deliver(id, second[0].waitpoint_id, &forged, signal("go")).await.unwrap_err();
        assert!(matches!(error, WaitpointsError::InvalidToken(_)), "{error:?}");
        engine.stop().await;
    }

    async fn a_reissued_token_kills_the_old_one(kit) {
        let (engine, directory) = (kit.engine().await, directory());
        let waitpoints = waitpoints(&engine, &keys_in(directory.path()));
        let task = running(&engine, "agent").await;
        let id = task.execution_id;
        let spec = WaitpointSpec { approvers: vec!["ann".to_owned(), "bob".to_owned()], ..named("approval") };
        let both = Condition::Count { n: 2, over: Over::Approvers, of: None };
        let opened = suspend(&waitpoints, NewSuspension { condition: both, ..suspension(&task, vec![spec]) }).await;
        let at = opened[0].waitpoint_id;
        let [ann, bob] = opened[0].tokens.as_slice() else { panic!() };

        let new = waitpoints.reissue(at, Some("ann"), "root").await.unwrap();
        assert_eq!(new.approver.as_deref(), Some("ann"));
        let error = waitpoints.deliver(id, at, &ann.token, signal("ok")).await.unwrap_err();
        assert!(error.to_string().contains("open waitpoint"), "{error}");
        let error = waitpoints.reissue(at, Some("eve"), "root").await.unwrap_err();
        assert!(error.to_string().contains("approver"), "{error}");

        let first = waitpoints.deliver(id, at, &new.token, signal("ok")).await.unwrap();
        assert!(matches!(first, SignalOutcome::Accepted { effect: SignalEffect::Counted, .. }), "{first:?}");
        let last = waitpoints.deliver(id, at, &bob.token, signal("ok")).await.unwrap();
        assert!(matches!(last, SignalOutcome::TriggeredResume { .. }), "{last:?}");
        engine.stop().await;
    }

    async fn a_rotated_key_is_accepted_for_its_grace_and_a_revoked_one_not_at_all(kit) {
        let (engine, directory) = (kit.engine().await, directory());
        let waitpoints = waitpoints(&engine, &keys_in(directory.path()));
        let task = running(&engine, "agent").await;
        let (id, fence) = (task.execution_id, fence_of(&task));
        let create = async |key: &str| waitpoints.create(id, fence, None, &named(key), None).await.unwrap();
        let deliver = async |opened: &OpenedWaitpoint| waitpoints.deliver(id, opened.waitpoint_id, only(opened), signal("go")).await;

        let old = create("old").await;
        let old_key = waitpoints.keys().key_ids()[0].clone();
        let new_key = waitpoints.rotate_keys(std::time::Duration::from_secs(3_600)).await.unwrap();
        let new = create("new").await;
        assert!(only(&new).as_str().starts_with(&format!("wp1.{new_key}.")));
        deliver(&old).await.unwrap();
        deliver(&new).await.unwrap();

        waitpoints.revoke_key(&old_key).await.unwrap();
        let error = deliver(&old).await.unwrap_err();
        assert!(matches!(error, WaitpointsError::InvalidToken(_)), "{error:?}");
        deliver(&new).await.unwrap();

        // The signing key, the only one the store knows: what it signed is void, and its successor signs.
        let last_key = waitpoints.revoke_key(&new_key).await.unwrap();
        assert!(matches!(deliver(&new).await.unwrap_err(), WaitpointsError::InvalidToken(_)));
        let last = create("last").await;
        deliver(&last).await.unwrap();
        // Also when another process did it: here the file changes under this one.
        keys_in(directory.path()).revoke(&last_key).unwrap();
        eventually("the revocation is seen", async || deliver(&last).await.err()).await;
        deliver(&create("after").await).await.unwrap();
        // The store knows the keys of today only.
        let late = Waitpoints::new(engine.operations().clone(), keys_in(directory.path()));
        late.note_keys().await.unwrap();
        engine.stop().await;
    }

    async fn tokens_are_good_whenever_the_keys_are_rotated(kit) {
        let (engine, directory) = (kit.engine().await, directory());
        let waitpoints = waitpoints(&engine, &keys_in(directory.path()));
        let task = running(&engine, "agent").await;
        let (id, fence) = (task.execution_id, fence_of(&task));
        waitpoints.note_keys().await.unwrap();
        let rotating = keys_in(directory.path());
        let rotate = tokio::task::spawn_blocking(move || {
            for _ in 0..60 {
                rotating.rotate(std::time::Duration::from_secs(3_600)).unwrap();
            }
        });
        for n in 0..40 {
            let opened = waitpoints.create(id, fence, None, &named(&format!("n{n}")), None).await.unwrap();
            waitpoints.deliver(id, opened.waitpoint_id, only(&opened), signal("go")).await.unwrap();
        }
        rotate.await.unwrap();
        engine.stop().await;
    }

    async fn a_process_with_other_keys_is_told_which_file_to_copy(kit) {
        let (engine, ours, theirs) = (kit.engine().await, directory(), directory());
        let first = waitpoints(&engine, &keys_in(ours.path()));
        let task = running(&engine, "agent").await;
        let create = async |waitpoints: &Waitpoints, key: &str| {
            waitpoints.create(task.execution_id, fence_of(&task), None, &named(key), None).await
        };
        let opened = create(&first, "a").await.unwrap();
        let our_key = first.keys().key_ids()[0].clone();

        // Another machine that was never given the file: it neither signs nor makes keys of its own.
        let other = kit.tool(kit.another_host().await).await;
        let second = waitpoints(&other, &keys_in(theirs.path()));
        let path = theirs.path().join("keys");
        let error = create(&second, "b").await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, WaitpointsError::Keys(ff_keys::Error::ForeignRing { .. })), "{error:?}");
        assert!(text.contains(&*path.to_string_lossy()) && text.contains(our_key.as_str()) && text.contains("copy"), "{text}");
        assert!(!path.exists());
        // Nor with a file of its own.
        let third = Waitpoints::new(other.operations().clone(), Keys::create(&path).unwrap());
        assert!(matches!(create(&third, "c").await, Err(WaitpointsError::Keys(ff_keys::Error::ForeignRing { .. }))));
        let error = third.deliver(task.execution_id, opened.waitpoint_id, only(&opened), signal("go")).await.unwrap_err();
        assert!(matches!(error, WaitpointsError::InvalidToken(_)));
        // With the file it does, at once.
        std::fs::copy(ours.path().join("keys"), &path).unwrap();
        for waitpoints in [&second, &third] {
            create(waitpoints, &Uuid::now_v7().to_string()).await.unwrap();
        }
        other.stop().await;
        engine.stop().await;
    }

    async fn the_store_is_told_of_the_keys_once(kit) {
        let tap = Wiretap::on(kit.host());
        let (engine, directory) = (kit.engine_on(tap.clone()).await, directory());
        let path = directory.path().join("keys");
        let waitpoints = std::sync::Arc::new(Waitpoints::new(engine.operations().clone(), Keys::create(&path).unwrap()));
        let task = running(&engine, "agent").await;
        let create = |n: usize| {
            let (waitpoints, task) = (std::sync::Arc::clone(&waitpoints), task.clone());
            tokio::spawn(async move {
                waitpoints.create(task.execution_id, fence_of(&task), None, &named(&format!("n{n}")), None).await.unwrap()
            })
        };
        futures::future::join_all((0..20).map(create)).await;
        assert_eq!(tap.calls("ff_note_keys"), 1);
        waitpoints.rotate_keys(ms(60_000)).await.unwrap();
        futures::future::join_all((20..40).map(create)).await;
        assert_eq!(tap.calls("ff_note_keys"), 2);
        engine.stop().await;
    }
}
