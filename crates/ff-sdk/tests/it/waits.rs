//! Suspend, signal, resume: on every transport, with early signals, approvers, timeouts, lost answers and wrong tokens.

use std::time::Duration;

use ff_core::error::{EngineError, StateKind, ValidationKind};
use ff_core::state::{LifecyclePhase, Outcome};
use ff_core::types::{ExecutionId, WaitpointId, WaitpointToken};
use ff_sdk::task::{
    Condition, ConditionMatcher, Over, ResumeCause, Signal, SignalEffect, SignalOutcome, SuspendOptions,
    SuspendOutcome, SuspendWithOutcome, TimeoutBehavior, WaitpointSpec,
};
use ff_sdk::testing::Call;
use ff_sdk::{ClaimedTask, FlowFabricWorker, SdkError};

use crate::world::{World, claim, until};

pub fn signal(name: &str, token: &WaitpointToken) -> Signal {
    Signal {
        signal_name: name.to_owned(),
        signal_category: "test".to_owned(),
        payload: None,
        source_type: "suite".to_owned(),
        source_identity: "tester".to_owned(),
        idempotency_key: None,
        waitpoint_token: token.clone(),
    }
}

fn named(name: &str) -> ConditionMatcher {
    ConditionMatcher { signal_name: name.to_owned() }
}

async fn suspended(task: ClaimedTask, matchers: &[ConditionMatcher]) -> (WaitpointId, String, WaitpointToken) {
    match task.suspend("waiting_for_signal", matchers, None, TimeoutBehavior::Fail).await.unwrap() {
        SuspendOutcome::Suspended { suspension_id: _, waitpoint_id, waitpoint_key, waitpoint_token } => {
            (waitpoint_id, waitpoint_key, waitpoint_token)
        }
        other => panic!("{other:?}"),
    }
}

async fn deliver(worker: &FlowFabricWorker, id: &ExecutionId, at: &WaitpointId, signal: Signal) -> SignalOutcome {
    worker.deliver_signal(id, at, signal).await.unwrap()
}

fn code(error: SdkError) -> &'static str {
    error.engine().unwrap_or_else(|| panic!("a refusal of the engine, got {error:?}")).code()
}

fn field(error: SdkError) -> String {
    match error {
        SdkError::Config { field: Some(field), .. } => field,
        other => panic!("a refusal before the wire, got {other:?}"),
    }
}

for_each_transport! {
    async fn a_signal_resumes_the_same_attempt_with_a_higher_epoch_and_everything_in_hand(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        assert!(task.resume().is_none() && task.resume_signals().await.unwrap().is_empty());
        let (attempt, epoch) = (*task.attempt_id(), task.lease_epoch());
        let continuation = br#"{"step":12345678901234567890, "b":1}"#;
        let options = SuspendOptions::new("waiting_for_callback").signal("paid").continuation(continuation);
        let SuspendWithOutcome::Suspended(suspension) = task.suspend_with(options).await.unwrap() else { panic!("nothing came early") };
        assert_eq!(world.describe(&id).await.lifecycle_phase, LifecyclePhase::Suspended);
        assert!(worker.claim_next().await.unwrap().is_none(), "the permit is free, the execution is not");

        let seen = world.describe(&id).await.suspension.expect("it waits");
        assert_eq!((seen.suspension_id, seen.reason.as_str()), (suspension.suspension_id, "waiting_for_callback"));
        assert_eq!(seen.waitpoints[0].waitpoint_id, suspension.waitpoints[0].waitpoint_id);
        let [waitpoint] = suspension.waitpoints.as_slice() else { panic!("{suspension:?}") };
        let token = &waitpoint.tokens[0].token;
        let other = deliver(&worker, &id, &waitpoint.waitpoint_id, signal("other", token)).await;
        assert!(matches!(other, SignalOutcome::Accepted { effect: SignalEffect::Unused, .. }), "{other:?}");
        let paid = Signal { payload: Some(b"\x00\xff 100".to_vec()), idempotency_key: Some("once".to_owned()), ..signal("paid", token) };
        let first = deliver(&worker, &id, &waitpoint.waitpoint_id, paid.clone()).await;
        let SignalOutcome::TriggeredResume { signal_id } = first else { panic!("{first:?}") };

        let task = claim(&worker).await;
        assert_eq!((task.execution_id(), task.attempt_id()), (&id, &attempt));
        assert!(task.lease_epoch() > epoch);
        assert_eq!(world.describe(&id).await.attempts.len(), 1);
        let resume = task.resume().expect("it was suspended");
        assert_eq!((resume.cause, resume.suspension_id), (ResumeCause::Signal, suspension.suspension_id));
        assert_eq!(resume.continuation.as_deref(), Some(continuation.as_slice()));
        let signals = task.resume_signals().await.unwrap();
        assert_eq!(signals.len(), 1);
        assert_eq!((signals[0].signal_id, signals[0].signal_name.as_str()), (signal_id, "paid"));
        assert_eq!(signals[0].payload.as_deref(), Some(b"\x00\xff 100".as_slice()));
        assert_eq!((signals[0].signal_category.as_deref(), signals[0].source_type.as_deref()), (Some("test"), Some("suite")));
        assert_eq!(signals[0].source_identity.as_deref(), Some("tester"));
        assert_eq!(signals[0].waitpoint_id, Some(waitpoint.waitpoint_id));
        task.complete(None).await.unwrap();
        assert_eq!(world.result(&id).await.outcome, Outcome::Success);
    }

    async fn signals_that_came_early_are_enough_and_the_task_goes_on(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        let (waitpoint_id, token) = task.create_pending_waitpoint("answer", 60_000).await.unwrap();
        let payload = Some(br#"{"n":12345678901234567890, "b":1}"#.to_vec());
        let early = deliver(&worker, &id, &waitpoint_id, Signal { payload: payload.clone(), ..signal("yes", &token) }).await;
        assert!(matches!(early, SignalOutcome::Accepted { effect: SignalEffect::Buffered, .. }), "{early:?}");
        let epoch = task.lease_epoch();
        let outcome = task.suspend("waiting_for_signal", &[named("yes")], Some(60_000), TimeoutBehavior::Fail).await.unwrap();
        let SuspendOutcome::AlreadySatisfied { task, signals, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(signals.iter().map(|signal| signal.signal_name.as_str()).collect::<Vec<_>>(), ["yes"]);
        assert_eq!(signals[0].payload, payload);
        assert_eq!(task.lease_epoch(), epoch);
        assert!(task.resume_signals().await.unwrap().is_empty(), "this claim resumes nothing");
        task.renew_lease().await.unwrap();

        // The same key again is another waitpoint.
        let (again, token) = task.create_pending_waitpoint("answer", 60_000).await.unwrap();
        assert_ne!(again, waitpoint_id);
        let (at, key, same) = suspended(task, &[]).await;
        assert_eq!((at, key.as_str(), same.as_str()), (again, "answer", token.as_str()));
        assert!(matches!(deliver(&worker, &id, &again, signal("any", &token)).await, SignalOutcome::TriggeredResume { .. }));
        claim(&worker).await.complete(None).await.unwrap();
    }

    async fn all_of_several_matchers_must_come_and_a_repeated_one_counts_once(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let (at, key, token) = suspended(claim(&worker).await, &[named("a"), named("b")]).await;
        assert_eq!(key, "signal");
        let keyed = |name: &str| Signal { idempotency_key: Some(name.to_owned()), ..signal(name, &token) };
        let SignalOutcome::Accepted { signal_id, effect: SignalEffect::Counted } = deliver(&worker, &id, &at, keyed("a")).await else { panic!("it counts") };
        assert_eq!(deliver(&worker, &id, &at, keyed("a")).await, SignalOutcome::Duplicate { existing_signal_id: signal_id });
        assert!(matches!(deliver(&worker, &id, &at, keyed("b")).await, SignalOutcome::TriggeredResume { .. }));
        let task = claim(&worker).await;
        let names: Vec<String> = task.resume_signals().await.unwrap().into_iter().map(|signal| signal.signal_name).collect();
        assert_eq!(names, ["a", "b"]);
        task.complete(None).await.unwrap();
    }

    async fn two_approvers_are_two_tokens_whatever_the_senders_call_themselves(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        let spec = WaitpointSpec { key: "release".to_owned(), approvers: vec!["ann".to_owned(), "bob".to_owned()], ..WaitpointSpec::default() };
        let opened = task.create_pending_waitpoint_with(spec).await.unwrap();
        let approvers: Vec<Option<&str>> = opened.tokens.iter().map(|token| token.approver.as_deref()).collect();
        assert_eq!(approvers, [Some("ann"), Some("bob")]);
        let options = SuspendOptions::new("waiting_for_approval").condition(Condition::Count { n: 2, over: Over::Approvers, of: None });
        let SuspendWithOutcome::Suspended(suspension) = task.suspend_with(options).await.unwrap() else { panic!("nobody answered") };
        assert_eq!(suspension.waitpoints[0].tokens.len(), 2, "remembered from when it was opened");

        let at = opened.waitpoint_id;
        let as_one = |who: usize, name: &str| Signal { source_identity: "bob".to_owned(), ..signal(name, &opened.tokens[who].token) };
        assert!(matches!(deliver(&worker, &id, &at, as_one(0, "approved")).await, SignalOutcome::Accepted { effect: SignalEffect::Counted, .. }));
        let second = deliver(&worker, &id, &at, as_one(0, "approved")).await;
        assert!(matches!(second, SignalOutcome::Accepted { .. }), "ann is one approver, however often: {second:?}");
        assert!(matches!(deliver(&worker, &id, &at, as_one(1, "approved")).await, SignalOutcome::TriggeredResume { .. }));
        let task = claim(&worker).await;
        let signals = task.resume_signals().await.unwrap();
        let mut who: Vec<&str> = signals.iter().filter_map(|signal| signal.approver.as_deref()).collect();
        who.dedup();
        assert_eq!(who, ["ann", "bob"]);
        task.complete(None).await.unwrap();
    }

    async fn a_suspension_that_takes_too_long_ends_as_it_was_told_to(world: &World) {
        let worker = world.worker("w-1").await;
        let table = [
            (TimeoutBehavior::Fail, Some(Outcome::Failed)),
            (TimeoutBehavior::Cancel, Some(Outcome::Cancelled)),
            (TimeoutBehavior::Expire, Some(Outcome::Expired)),
            (TimeoutBehavior::AutoResume, None),
            (TimeoutBehavior::Escalate, None),
        ];
        for (behavior, expected) in table {
            let id = world.submit("k", b"{}").await;
            let outcome = claim(&worker).await.suspend("manual_pause", &[], Some(50), behavior).await.unwrap();
            let SuspendOutcome::Suspended { waitpoint_id, waitpoint_token, .. } = outcome else { panic!("{outcome:?}") };
            match (behavior, expected) {
                (_, Some(outcome)) => {
                    assert_eq!(world.result(&id).await.outcome, outcome, "{behavior}");
                    let late = worker.deliver_signal(&id, &waitpoint_id, signal("late", &waitpoint_token)).await.unwrap_err();
                    assert_eq!(code(late), "waitpoint_not_open");
                }
                (TimeoutBehavior::AutoResume, _) => {
                    let task = claim(&worker).await;
                    assert_eq!(task.resume().map(|resume| resume.cause), Some(ResumeCause::Timeout));
                    let signals = task.resume_signals().await.unwrap();
                    assert_eq!(signals.iter().map(|signal| signal.signal_name.as_str()).collect::<Vec<_>>(), ["timeout"]);
                    task.complete(None).await.unwrap();
                }
                _ => {
                    tokio::time::sleep(Duration::from_millis(600)).await;
                    assert_eq!(world.describe(&id).await.lifecycle_phase, LifecyclePhase::Suspended);
                    let answered = deliver(&worker, &id, &waitpoint_id, signal("late", &waitpoint_token)).await;
                    assert!(matches!(answered, SignalOutcome::TriggeredResume { .. }), "{answered:?}");
                    claim(&worker).await.complete(None).await.unwrap();
                }
            }
        }
    }

    async fn a_lost_answer_is_asked_for_again_and_has_the_same_tokens(world: &World) {
        let (worker, faults) = world.faulty_worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        faults.lose_answer(Call::Waitpoint);
        let (first, token) = task.create_pending_waitpoint("first", 60_000).await.unwrap();
        faults.lose_answer(Call::Suspend);
        faults.lose_answer(Call::Suspend);
        let options = SuspendOptions::new("waiting_for_signal")
            .waitpoint(WaitpointSpec { key: "second".to_owned(), ..WaitpointSpec::default() })
            .condition(Condition::Count { n: 2, over: Over::Waitpoints, of: None });
        let SuspendWithOutcome::Suspended(suspension) = task.suspend_with(options).await.unwrap() else { panic!("nothing came early") };
        assert_eq!(suspension.waitpoints.len(), 2, "{suspension:?}");
        let open = |key: &str| suspension.waitpoints.iter().find(|waitpoint| waitpoint.key == key).expect("it is open");
        assert_eq!((open("first").waitpoint_id, open("first").tokens[0].token.as_str()), (first, token.as_str()));
        faults.lose_answer(Call::Signal);
        let counted = deliver(&worker, &id, &first, signal("x", &token)).await;
        assert!(matches!(counted, SignalOutcome::Accepted { effect: SignalEffect::Counted, .. }), "{counted:?}");
        let second = open("second");
        let resumed = deliver(&worker, &id, &second.waitpoint_id, signal("x", &second.tokens[0].token)).await;
        assert!(matches!(resumed, SignalOutcome::TriggeredResume { .. }), "{resumed:?}");
        claim(&worker).await.complete(None).await.unwrap();

        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        let (at, token) = task.create_pending_waitpoint("early", 60_000).await.unwrap();
        deliver(&worker, &id, &at, signal("x", &token)).await;
        faults.lose_answer(Call::Suspend);
        let outcome = task.suspend("waiting_for_signal", &[], None, TimeoutBehavior::Fail).await.unwrap();
        let SuspendOutcome::AlreadySatisfied { task, signals, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(signals.len(), 1);
        task.complete(None).await.unwrap();
    }

    async fn a_task_whose_lease_was_taken_cannot_wait_write_or_open_anything(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        world.admin.revoke_lease(&id, false).await.unwrap();
        let other = world.worker("w-2").await;
        let fresh = claim(&other).await;
        assert_eq!(code(task.create_pending_waitpoint("x", 1_000).await.unwrap_err()), "stale_lease");
        assert_eq!(code(task.append_frame("f", b"x", None).await.unwrap_err()), "stale_lease");
        let error = task.suspend("waiting_for_signal", &[], None, TimeoutBehavior::Fail).await.unwrap_err();
        assert_eq!(error.engine(), Some(&EngineError::State(StateKind::StaleLease)));
        fresh.complete(None).await.unwrap();
    }

    async fn a_token_opens_its_own_waitpoint_and_no_other(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let (at, _, token) = suspended(claim(&worker).await, &[]).await;
        let other_id = world.submit("k", b"{}").await;
        let (other_at, _, other) = suspended(claim(&worker).await, &[]).await;

        for (execution, waitpoint, token) in [(&id, &at, &other), (&other_id, &at, &token), (&id, &other_at, &token)] {
            let refused = worker.deliver_signal(execution, waitpoint, signal("x", token)).await.unwrap_err();
            assert_eq!(code(refused), "waitpoint_not_open");
        }
        let text = token.as_str();
        let last = if text.ends_with('0') { "1" } else { "0" };
        for forged in [format!("{}{last}", &text[..text.len() - 1]), "wp1.a.b.c".to_owned(), String::new()] {
            let refused = worker.deliver_signal(&id, &at, signal("x", &WaitpointToken::new(forged))).await.unwrap_err();
            let shown = format!("{refused} {refused:?}");
            assert!(!shown.contains("wp1."), "{shown}");
            let expected = ValidationKind::Refused(ff_core::ErrorCode::InvalidToken);
            assert!(matches!(refused.engine(), Some(EngineError::Validation { kind, .. }) if *kind == expected), "{shown}");
        }
        assert!(matches!(deliver(&worker, &id, &at, signal("x", &token)).await, SignalOutcome::TriggeredResume { .. }));
        let again = worker.deliver_signal(&id, &at, signal("x", &token)).await.unwrap_err();
        assert_eq!(code(again), "waitpoint_not_open");
    }

    async fn what_is_wrong_is_refused_by_name(world: &World) {
        let mut config = world.config("w-1");
        config.max_concurrent_tasks = 3;
        let worker = FlowFabricWorker::connect(config).await.unwrap();
        for _ in 0..3 {
            world.submit("k", b"{}").await;
        }
        let error = claim(&worker).await.suspend("bored", &[], None, TimeoutBehavior::Fail).await.unwrap_err();
        assert_eq!(field(error), "reason_code");
        let many = vec![named("x"); 65];
        let error = claim(&worker).await.suspend("manual_pause", &many, None, TimeoutBehavior::Fail).await.unwrap_err();
        assert_eq!(field(error), "condition");
        let task = claim(&worker).await;
        assert_eq!(code(task.create_pending_waitpoint("", 1_000).await.unwrap_err()), "invalid_argument");
        let (_, token) = task.create_pending_waitpoint("x", 1_000).await.unwrap();
        assert_eq!(code(task.create_pending_waitpoint("x", 1_000).await.unwrap_err()), "invalid_argument");
        let (_, _, same) = suspended(task, &[]).await;
        assert_eq!(same.as_str(), token.as_str(), "a refused waitpoint is forgotten");
    }

    async fn no_token_is_ever_printed(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        let spec = WaitpointSpec { key: "x".to_owned(), ..WaitpointSpec::default() };
        let opened = task.create_pending_waitpoint_with(spec).await.unwrap();
        let secret = opened.tokens[0].token.as_str().to_owned();
        assert!(secret.starts_with("wp1."));
        let mut shown = format!("{opened:?} {:?} {task:?} {:?}", signal("x", &opened.tokens[0].token), worker.config());
        let SuspendWithOutcome::Suspended(suspension) = task.suspend_with(SuspendOptions::new("manual_pause")).await.unwrap() else { panic!("nothing came") };
        shown += &format!("{suspension:?} {:?}", SuspendWithOutcome::Suspended(suspension.clone()));
        let at = opened.waitpoint_id;
        shown += &format!("{:?}", deliver(&worker, &id, &at, signal("x", &opened.tokens[0].token)).await);
        shown += &format!("{:?}", worker.deliver_signal(&id, &at, signal("x", &opened.tokens[0].token)).await.unwrap_err());
        let task = claim(&worker).await;
        shown += &format!("{:?} {:?} {:?}", task.resume(), task.resume_signals().await.unwrap(), world.describe(&id).await);
        let outcome = task.suspend("manual_pause", &[], None, TimeoutBehavior::Fail).await.unwrap();
        shown += &format!("{outcome:?}");
        for part in [secret.as_str(), secret.rsplit('.').next().expect("it has a mac")] {
            assert!(!shown.contains(part), "{shown}");
        }
        assert!(!shown.contains("wp1."), "{shown}");
    }

    async fn more_signals_than_fit_into_a_claim_are_all_read(world: &World) {
        let worker = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let options = SuspendOptions::new("waiting_for_signal").condition(Condition::Count { n: 80, over: Over::Signals, of: None });
        let SuspendWithOutcome::Suspended(suspension) = claim(&worker).await.suspend_with(options).await.unwrap() else { panic!("nothing came early") };
        let waitpoint = &suspension.waitpoints[0];
        for n in 0..80_u32 {
            let signal = Signal { payload: Some(n.to_string().into_bytes()), ..signal("n", &waitpoint.tokens[0].token) };
            deliver(&worker, &id, &waitpoint.waitpoint_id, signal).await;
        }
        let task = claim(&worker).await;
        let seen: Vec<Vec<u8>> = task.resume_signals().await.unwrap().into_iter().filter_map(|signal| signal.payload).collect();
        assert_eq!(seen, (0..80_u32).map(|n| n.to_string().into_bytes()).collect::<Vec<_>>());
        task.complete(None).await.unwrap();
    }

    async fn renewal_stops_with_the_suspend_and_nobody_else_is_disturbed(world: &World) {
        let mut config = world.config("w-1");
        (config.lease_ttl_ms, config.max_concurrent_tasks) = (1_000, 2);
        let worker = FlowFabricWorker::connect(config).await.unwrap();
        let id = world.submit("k", b"{}").await;
        let (at, _, token) = suspended(claim(&worker).await, &[]).await;
        world.submit("k", b"{}").await;
        let other = claim(&worker).await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(other.is_lease_healthy());
        assert_eq!(world.describe(&id).await.lifecycle_phase, LifecyclePhase::Suspended);
        deliver(&worker, &id, &at, signal("x", &token)).await;
        let task = claim(&worker).await;
        assert_eq!(task.execution_id(), &id);
        task.complete(None).await.unwrap();
        other.complete(None).await.unwrap();
        until("both ended", || async { world.describe(&id).await.outcome.is_some() }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_other_keys_is_told_which_file_to_copy() {
    let world = World::valkey().await;
    let worker = world.worker("w-1").await;
    let id = world.submit("k", b"{}").await;
    let (at, _, token) = suspended(claim(&worker).await, &[]).await;

    let elsewhere = tempfile::tempdir().unwrap();
    let mut config = world.config("w-2");
    config.data_dir = Some(elsewhere.path().to_owned());
    let stranger = FlowFabricWorker::connect(config).await.unwrap();
    world.submit("k", b"{}").await;
    let task = claim(&stranger).await;
    let error = task.create_pending_waitpoint("x", 1_000).await.unwrap_err();
    let text = error.to_string();
    assert_eq!(field(error), "keys");
    let file = elsewhere.path().join("keys");
    assert!(text.contains("copy the keys file") && text.contains(&file.display().to_string()), "{text}");
    assert!(!file.exists(), "no keys are made that nobody else has");
    // It cannot tell a genuine token from another either.
    assert!(stranger.deliver_signal(&id, &at, signal("x", &token)).await.is_err());

    let mut config = world.config("w-3");
    config.keys = Some(elsewhere.path().join("missing"));
    let lost = FlowFabricWorker::connect(config).await.unwrap();
    let error = lost.deliver_signal(&id, &at, signal("x", &token)).await.unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    assert_eq!(field(error), "keys");
    assert!(matches!(deliver(&worker, &id, &at, signal("x", &token)).await, SignalOutcome::TriggeredResume { .. }));
}

/// Everything that is logged on this thread, kept.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "current_thread")]
async fn no_token_is_ever_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    for world in [World::embedded().await, World::valkey().await, World::http().await] {
        let (worker, faults) = world.faulty_worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        faults.lose_answer(Call::Waitpoint);
        let (at, token) = task.create_pending_waitpoint("x", 60_000).await.unwrap();
        faults.lose_answer(Call::Suspend);
        suspended(task, &[]).await;
        faults.lose_answer(Call::Signal);
        deliver(&worker, &id, &at, signal("x", &token)).await;
        worker.deliver_signal(&id, &at, signal("x", &token)).await.unwrap_err();
        drop(claim(&worker).await);
        let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(logged.contains("repeated"), "the log is heard: {logged}");
        assert!(!logged.contains("wp1."), "{:?}: {logged}", world.transport);
    }
}
