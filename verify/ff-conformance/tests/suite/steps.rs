//! Durable steps: what a handler recorded under a name stays recorded, whatever happens to the attempt.

use ff_conformance::harness::{Kind, refusal};
use ff_conformance::waits::{condition, token};
use ff_conformance::work::{Fenced, HOME, LANE, LEASE_MS, NAMESPACE, digest};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{ExecutionId, SuspensionId};
use ff_script::Error;
use ff_script::generated::*;

use crate::suspend::invalid;

fn store_call(task: &Task, name: &str, result: &[u8]) -> StoreStep {
    StoreStep { result: Some(result.to_vec().into()), ..StoreStep::new(task.execution_id, task.fence(), name.into()) }
}

fn known(result: &[u8]) -> StoreStepReply {
    StoreStepReply::Known {
        result: Some(result.to_vec().into()),
        result_encoding: Some("json".into()),
        input_digest: None,
    }
}

async fn keep(store: &Store, task: &Task, name: &str, result: &[u8]) {
    assert_eq!(store.ask(&store_call(task, name, result)).await, Ok(StoreStepReply::Stored), "{name}");
}

async fn steps(store: &Store, execution_id: ExecutionId) -> Vec<Step> {
    let ListStepsReply::Page { steps, more } = store.ask(&ListSteps::new(execution_id, 1_000)).await.unwrap();
    assert!(!more);
    steps
}

async fn names(store: &Store, execution_id: ExecutionId) -> Vec<String> {
    steps(store, execution_id).await.into_iter().map(|step| step.name).collect()
}

async fn get(store: &Store, execution_id: ExecutionId, name: &str) -> Result<GetStepReply, Error> {
    store.ask(&GetStep::new(execution_id, name.into())).await
}

async fn result(store: &Store, execution_id: ExecutionId, name: &str) -> Option<Vec<u8>> {
    let GetStepReply::Found { result, .. } = get(store, execution_id, name).await.unwrap();
    result.map(|bytes| bytes.0)
}

/// The steps in a claim: names with their results.
fn carried(task: &Task) -> Vec<(String, Option<Vec<u8>>)> {
    task.steps.iter().map(|step| (step.name.clone(), step.result.clone().map(|bytes| bytes.0))).collect()
}

fn sleep_call(task: &Task, step: Option<&str>, ms: i64) -> SleepExecution {
    SleepExecution {
        step: step.map(str::to_owned),
        wake_in_ms: Some(ms),
        ..SleepExecution::new(task.execution_id, task.fence())
    }
}

/// A suspend under a step's name for two distinct approvers.
fn ask_two(store: &Store, task: &Task, waitpoints: &[&NewWaitpoint]) -> SuspendExecution {
    SuspendExecution {
        condition: condition(r#"{"count":2,"over":"approvers"}"#),
        step: Some("sign-off".into()),
        adopt: Some(Vec::new()),
        ..store.suspend_call(task, waitpoints)
    }
}

async fn replay(
    store: &Store,
    id: ExecutionId,
    change: impl FnOnce(&mut ReplayExecution),
) -> Result<ReplayExecutionReply, Error> {
    let mut call = ReplayExecution::new("ann".into(), id);
    change(&mut call);
    store.ask(&call).await
}

fn fork_call(store: &Store, of: ExecutionId, from_step: Option<&str>) -> ForkExecution {
    let fork_id = store.execution_id();
    ForkExecution {
        from_step: from_step.map(str::to_owned),
        ..ForkExecution::new("ann".into(), digest(&fork_id.to_string()), of, fork_id)
    }
}

/// Claims everything, including this execution.
async fn claim_of(store: &Store, id: ExecutionId) -> Task {
    let tasks = store.claim("w9", 64).await;
    tasks.into_iter().find(|task| task.execution_id == id).expect("it is claimable")
}

for_each_host! {
    async fn a_step_that_is_stored_keeps_its_first_result(store) {
        store.install_default_lane().await;
        let task = store.start("agent", "w1").await;
        keep(&store, &task, "charge", b"1").await;
        assert_eq!(store.ask(&store_call(&task, "charge", b"2")).await, Ok(known(b"1")));
        assert_eq!(result(&store, task.execution_id, "charge").await, Some(b"1".to_vec()));
        let seen = &steps(&store, task.execution_id).await[0];
        assert_eq!((seen.kind, seen.state, seen.tries, seen.result_bytes), (StepKind::Run, StepState::Done, 1, Some(1)));
        assert_eq!(store.describe(task.execution_id).await.steps, 1);
        store.assert_sound().await;
    }

    async fn every_later_attempt_finds_what_was_stored(store) {
        store.install_default_lane().await;
        let first = store.start("agent", "w1").await;
        assert_eq!(first.steps, []);
        keep(&store, &first, "a", b"1").await;
        keep(&store, &first, "2", b"").await;
        keep(&store, &first, "large", &vec![7; 5_000]).await;
        let second = store.lose_and_reclaim(&first, "w2").await;
        let expected = [("a".to_owned(), Some(b"1".to_vec())), ("2".to_owned(), Some(Vec::new())), ("large".to_owned(), None)];
        assert_eq!(carried(&second), expected);
        assert!(!second.steps_more);
        keep(&store, &second, "b", b"3").await;
        store.fail(&second, "broken").await;
        store.advance(60_000);
        store.fire_all().await;
        let third = store.claim_one("w3").await;
        assert_eq!(carried(&third).len(), 4);
        assert_eq!(steps(&store, third.execution_id).await.iter().map(|step| step.attempt_index).collect::<Vec<_>>(), [0, 0, 0, 1]);
        assert_eq!(result(&store, third.execution_id, "large").await, Some(vec![7; 5_000]));
        store.complete(&third).await;
        store.assert_sound().await;
    }

    async fn a_zombie_stores_nothing(store) {
        store.install_default_lane().await;
        let lost = store.start("agent", "w1").await;
        let now = store.lose_and_reclaim(&lost, "w2").await;
        let note = NoteStep::new("broken".into(), lost.execution_id, lost.fence(), "a".into(), "no".into(), 1);
        assert_eq!(refusal(store.ask(&store_call(&lost, "a", b"1")).await), ErrorCode::StaleLease);
        assert_eq!(refusal(store.ask(&note).await), ErrorCode::StaleLease);
        assert_eq!(refusal(store.ask(&sleep_call(&lost, Some("nap"), 5_000)).await), ErrorCode::StaleLease);
        assert_eq!(names(&store, now.execution_id).await, Vec::<String>::new());
        store.complete(&now).await;
        assert_eq!(refusal(store.ask(&store_call(&now, "a", b"1")).await), ErrorCode::ExecutionNotActive);
        assert_eq!(store.describe(now.execution_id).await.steps, 0);
        store.assert_sound().await;
    }

    async fn a_failed_step_is_noted_with_its_tries(store) {
        store.install_default_lane().await;
        let task = store.start("agent", "w1").await;
        let note = |tries, retry_at| NoteStep { retry_at, ..NoteStep::new("down".into(), task.execution_id, task.fence(), "call".into(), "503".into(), tries) };
        assert_eq!(store.ask(&note(1, Some(store.now() + 500))).await, Ok(NoteStepReply::Noted));
        assert_eq!(store.ask(&note(2, None)).await, Ok(NoteStepReply::Noted));
        let seen = steps(&store, task.execution_id).await.remove(0);
        assert_eq!((seen.state, seen.tries, seen.failure.unwrap().reason.as_str(), seen.due_at), (StepState::Failed, 2, "503", None));
        let call = StoreStep { tries: Some(3), ..store_call(&task, "call", b"ok") };
        assert_eq!(store.ask(&call).await, Ok(StoreStepReply::Stored));
        assert_eq!(store.ask(&note(4, None)).await, Ok(NoteStepReply::Known));
        let seen = steps(&store, task.execution_id).await.remove(0);
        assert_eq!((seen.state, seen.tries, seen.failure), (StepState::Done, 3, None));
        store.assert_sound().await;
    }

    async fn another_input_runs_again_only_when_asked_to(store) {
        store.install_default_lane().await;
        let task = store.start("agent", "w1").await;
        let with = |digest: &str, result: &[u8], rerun| StoreStep { input_digest: Some(digest.into()), rerun, ..store_call(&task, "a", result) };
        assert_eq!(store.ask(&with("one", &vec![1; 5_000], None)).await, Ok(StoreStepReply::Stored));
        let StoreStepReply::Known { input_digest, .. } = store.ask(&with("two", b"2", None)).await.unwrap() else { panic!("not known") };
        assert_eq!(input_digest.as_deref(), Some("one"));
        assert!(matches!(store.ask(&with("one", b"2", Some(true))).await, Ok(StoreStepReply::Known { .. })));
        assert_eq!(store.ask(&with("two", b"2", Some(true))).await, Ok(StoreStepReply::Stored));
        assert_eq!(result(&store, task.execution_id, "a").await, Some(b"2".to_vec()));
        assert_eq!(store.describe(task.execution_id).await.step_bytes, 1);
        store.assert_sound().await;
    }

    async fn what_a_step_must_not_be_is_refused_and_changes_nothing(store) {
        store.install_default_lane().await;
        let task = store.start("agent", "w1").await;
        let before = store.dump().await;
        for (name, problem) in [("", "must be 1 to 256"), ("a\nb", "not allowed")] {
            let said = invalid(store.ask(&store_call(&task, name, b"")).await);
            assert!(said.contains("name") && said.contains(problem), "{said}");
        }
        let said = invalid(store.ask(&store_call(&task, "a", &vec![0; 1_048_577])).await);
        assert!(said.contains("result") && said.contains("1048576"), "{said}");
        let both = SleepExecution { wake_at: Some(5), ..sleep_call(&task, None, 5) };
        assert!(invalid(store.ask(&both).await).contains("until"));
        assert_eq!(refusal(get(&store, task.execution_id, "a").await), ErrorCode::StepNotFound);
        assert_eq!(store.dump().await, before);
        assert!(matches!(store.ask(&sleep_call(&task, Some("nap"), 0)).await, Ok(SleepExecutionReply::Done { .. })));
        assert_eq!(refusal(store.ask(&store_call(&task, "nap", b"")).await), ErrorCode::StepChanged);
        let wait = SuspendExecution { step: Some("nap".into()), ..store.suspend_call(&task, &[&store.waitpoint("door")]) };
        assert_eq!(refusal(store.ask(&wait).await), ErrorCode::StepChanged);
        store.assert_sound().await;
    }

    async fn the_last_step_costs_what_the_first_one_did(store) {
        store.install_default_lane().await;
        let task = store.start("agent", "w1").await;
        let mut costs = Vec::new();
        for at in 0..1_000 {
            let call = store_call(&task, &format!("step {at}"), b"done");
            costs.push(store.counted(HOME, &call).await.unwrap().calls);
        }
        assert_eq!(costs[0], 5, "TIME, GET execution, SET execution, two fields of one hash");
        assert_eq!(costs[1], 6, "and HGET of the name");
        assert!(costs[1..].iter().all(|cost| *cost == costs[1]), "{costs:?}");
        store.assert_sound().await;
    }

    async fn a_claim_carries_so_many_bytes_of_steps_and_says_that_there_are_more(store) {
        store.install_default_lane().await;
        let first = store.start("agent", "w1").await;
        for at in 0..80 {
            keep(&store, &first, &format!("step {at}"), &vec![1; 4_096]).await;
        }
        let again = store.lose_and_reclaim(&first, "w2").await;
        assert!(again.steps_more);
        assert_eq!(again.steps.len(), 63, "256 KiB of steps of a little more than 4 KiB");
        assert_eq!(again.steps[62].name, "step 62");
        let ListStepsReply::Page { steps, more } = store.ask(&ListSteps { after: Some(70), ..ListSteps::new(again.execution_id, 5) }).await.unwrap();
        assert_eq!((steps.len(), steps[0].name.as_str(), more), (5, "step 70", true));
        store.assert_sound().await;
    }

    async fn an_attempt_rests_and_goes_on_by_itself(store) {
        store.install_default_lane().await;
        let submission = Submission { attempt_timeout_ms: Some(60_000), ..store.submission("agent") };
        let task = store.start_with(submission, "w1").await;
        store.advance(1_000);
        let call = sleep_call(&task, Some("nap"), 3_600_000);
        let wake_at = store.now() + 3_600_000;
        assert_eq!(store.ask(&call).await, Ok(SleepExecutionReply::Resting { wake_at, replayed: false }));
        assert_eq!(store.ask(&call).await, Ok(SleepExecutionReply::Resting { wake_at, replayed: true }));
        let seen = store.describe(task.execution_id).await;
        assert_eq!((seen.state, seen.delay_until, seen.lease), (PublicState::Delayed, Some(wake_at), None));
        assert_eq!(steps(&store, task.execution_id).await[0].state, StepState::Waiting);
        store.assert_sound().await;
        store.advance(3_599_999);
        store.fire_all().await;
        assert!(store.claim("w2", 1).await.is_empty(), "not before its time");
        store.advance(1);
        store.fire_all().await;
        assert_eq!(store.state(task.execution_id).await, PublicState::Resumable);
        let again = store.claim_one("w2").await;
        assert_eq!((again.attempt_index, again.attempt_id, again.attempt_deadline_at), (0, task.attempt_id, Some(store.now() + 59_000)));
        let resume = again.resume.clone().unwrap();
        assert_eq!((resume.cause, resume.step.as_deref()), (ResumeCause::Timer, Some("nap")));
        assert_eq!(store.ask(&sleep_call(&again, Some("nap"), 3_600_000)).await, Ok(SleepExecutionReply::Done { wake_at }));
        assert_eq!(steps(&store, task.execution_id).await[0].state, StepState::Done);
        store.complete(&again).await;
        assert_eq!(store.story(task.execution_id).await, [
            "execution.submitted", "execution.started", "execution.rested", "execution.ready", "execution.started", "execution.completed",
        ]);
        store.assert_sound().await;
    }

    async fn a_sleep_keeps_its_wake_up_over_attempts(store) {
        store.install_default_lane().await;
        let task = store.start("agent", "w1").await;
        let wake_at = store.now() + 100_000;
        store.ask(&sleep_call(&task, Some("nap"), 100_000)).await.unwrap();
        store.go_to(wake_at);
        store.fire_all().await;
        let awake = store.claim_one("w1").await;
        let second = store.lose_and_reclaim(&awake, "w2").await;
        assert_eq!((second.attempt_index, second.resume.clone()), (1, None));
        assert_eq!(store.ask(&sleep_call(&second, Some("nap"), 100_000)).await, Ok(SleepExecutionReply::Done { wake_at }));
        store.complete(&second).await;
        store.assert_sound().await;
    }

    async fn an_approval_that_was_asked_for_outlives_the_attempt(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("agent", "w1").await, store.approvals("sign-off", &["ann", "bob"]));
        let open = CreateWaitpoint { step: Some("sign-off".into()), ..CreateWaitpoint::new(task.execution_id, task.fence(), door.clone()) };
        assert!(matches!(store.ask(&open).await, Ok(CreateWaitpointReply::Created { replayed: false, .. })));
        let answer = store.ask(&store.answer_call(task.execution_id, &door, "ann", "yes")).await;
        assert!(matches!(answer, Ok(DeliverSignalReply::Accepted { effect: SignalEffect::Buffered, .. })), "{answer:?}");
        // Between two attempts there is no lease, and the token still counts.
        store.fail(&task, "broken").await;
        store.assert_sound().await;
        let other = store.ask(&DeliverSignal { token_digest: token("sign-off/bob"), ..store.signal_call(task.execution_id, &door, "hm") }).await;
        assert!(matches!(other, Ok(DeliverSignalReply::Accepted { effect: SignalEffect::Buffered, .. })), "{other:?}");
        store.advance(60_000);
        store.fire_all().await;
        let second = store.claim_one("w2").await;
        assert_eq!(second.attempt_index, 1);
        // The next run finds it with its signals.
        let anew = CreateWaitpoint { step: Some("sign-off".into()), ..CreateWaitpoint::new(second.execution_id, second.fence(), store.approvals("sign-off", &["ann", "bob"])) };
        assert_eq!(store.ask(&anew).await, Ok(CreateWaitpointReply::Open { waitpoint_id: door.waitpoint_id, expires_at: None }));
        let reply = store.ask(&ask_two(&store, &second, &[])).await;
        let Ok(SuspendExecutionReply::AlreadySatisfied { signals, .. }) = reply else { panic!("{reply:?}") };
        assert_eq!(signals.iter().map(|s| s.approver.as_deref().unwrap()).collect::<Vec<_>>(), ["ann", "bob"]);
        store.assert_sound().await;
        // So does every later run.
        let third = store.lose_and_reclaim(&second, "w3").await;
        let reply = store.ask(&ask_two(&store, &third, &[])).await;
        let Ok(SuspendExecutionReply::Done { resume }) = reply else { panic!("{reply:?}") };
        assert_eq!((resume.cause, resume.signals.len()), (ResumeCause::Signal, 2));
        store.complete(&third).await;
        store.fire_all().await;
        store.assert_sound().await;
    }

    async fn another_wait_does_not_end_a_named_one(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("agent", "w1").await, store.waitpoint("door"));
        let open = CreateWaitpoint { step: Some("first".into()), ..CreateWaitpoint::new(task.execution_id, task.fence(), door.clone()) };
        store.ask(&open).await.unwrap();
        let window = store.waitpoint("window");
        store.suspend(&task, &[&window]).await;
        let seen = store.describe(task.execution_id).await;
        let open = |key: &str| seen.waitpoints.iter().find(|w| w.key == key).map(|w| w.state);
        assert_eq!((open("door"), open("window")), (Some(WaitpointState::Pending), Some(WaitpointState::Active)));
        let early = store.signal(task.execution_id, &door, "now").await;
        assert!(matches!(early, Ok(DeliverSignalReply::Accepted { effect: SignalEffect::Buffered, .. })), "{early:?}");
        store.assert_sound().await;
        store.wake(task.execution_id, &window, "now").await;
        let again = store.claim_one("w2").await;
        let wait = SuspendExecution { step: Some("first".into()), ..store.suspend_call(&again, &[]) };
        let reply = store.ask(&wait).await;
        assert!(matches!(reply, Ok(SuspendExecutionReply::AlreadySatisfied { .. })), "{reply:?}");
        store.complete(&again).await;
        store.assert_sound().await;
    }

    async fn a_named_wait_is_counted_from_its_first_asking_and_ends_once(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("agent", "w1").await, store.waitpoint("door"));
        let asked_at = store.now();
        store.ask(&CreateWaitpoint { step: Some("go".into()), ..CreateWaitpoint::new(task.execution_id, task.fence(), door.clone()) }).await.unwrap();
        let second = store.lose_and_reclaim(&task, "w2").await;
        let wait = SuspendExecution {
            step: Some("go".into()), timeout_ms: Some(100_000), timeout_behavior: TimeoutBehavior::AutoResumeWithTimeoutSignal,
            ..store.suspend_call(&second, &[&store.waitpoint("door")])
        };
        let reply = store.ask(&wait).await;
        let Ok(SuspendExecutionReply::Suspended { waitpoints, timeout_at, .. }) = reply else { panic!("{reply:?}") };
        assert_eq!(waitpoints.iter().map(|w| w.waitpoint_id).collect::<Vec<_>>(), [door.waitpoint_id], "the first one is kept");
        assert_eq!(timeout_at, Some(asked_at + 100_000));
        store.assert_sound().await;
        store.go_to(asked_at + 100_000);
        store.fire_all().await;
        let third = store.claim_one("w3").await;
        let told = |reply: Result<SuspendExecutionReply, Error>| {
            let Ok(SuspendExecutionReply::Done { resume }) = reply else { panic!("{reply:?}") };
            (resume.cause, resume.signals.into_iter().map(|s| s.name).collect::<Vec<_>>())
        };
        let expected = (ResumeCause::Timeout, vec!["timeout".to_owned()]);
        let wait_of = |task: &Task| SuspendExecution { step: Some("go".into()), ..store.suspend_call(task, &[&store.waitpoint("door")]) };
        assert_eq!(told(store.ask(&wait_of(&third)).await), expected);
        let fourth = store.lose_and_reclaim(&third, "w4").await;
        assert_eq!(told(store.ask(&wait_of(&fourth)).await), expected);
        store.complete(&fourth).await;
        store.assert_sound().await;
    }

    async fn an_operator_ends_a_named_wait_with_what_it_has(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("agent", "w1").await, store.approvals("sign-off", &["ann", "bob"]));
        store.suspend_with(&ask_two(&store, &task, &[&door])).await;
        store.ask(&store.answer_call(task.execution_id, &door, "ann", "yes")).await.unwrap();
        store.ask(&ResumeExecution::new("eve".into(), task.execution_id)).await.unwrap();
        let again = store.claim_one("w2").await;
        let reply = store.ask(&ask_two(&store, &again, &[])).await;
        let Ok(SuspendExecutionReply::Done { resume }) = reply else { panic!("{reply:?}") };
        assert_eq!((resume.cause, resume.actor.as_deref(), resume.signals.len()), (ResumeCause::Operator, Some("eve"), 1));
        store.complete(&again).await;
        store.assert_sound().await;
    }

    async fn the_end_of_the_execution_closes_a_named_wait_and_a_replay_asks_anew(store) {
        store.install_default_lane().await;
        let (task, door) = (store.start("agent", "w1").await, store.waitpoint("door"));
        let wait = SuspendExecution { step: Some("go".into()), timeout_ms: Some(1_000), ..store.suspend_call(&task, &[&door]) };
        store.suspend_with(&wait).await;
        store.advance(1_000);
        store.fire_all().await;
        assert_eq!(store.state(task.execution_id).await, PublicState::Failed);
        assert_eq!(refusal(store.signal(task.execution_id, &door, "late").await), ErrorCode::WaitpointNotOpen);
        store.assert_sound().await;
        replay(&store, task.execution_id, |_| {}).await.unwrap();
        let again = store.claim_one("w1").await;
        let gate = store.waitpoint("door");
        let wait = SuspendExecution { step: Some("go".into()), timeout_ms: Some(1_000), ..store.suspend_call(&again, &[&gate]) };
        store.suspend_with(&wait).await;
        assert_eq!(store.describe(task.execution_id).await.suspension.unwrap().timeout_at, Some(store.now() + 1_000));
        store.wake(task.execution_id, &gate, "now").await;
        store.complete(&store.claim_one("w1").await).await;
        store.assert_sound().await;
    }

    async fn children_under_a_step_are_spawned_once_and_answer_the_same_again(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        let child = |key: &str| {
            let submission = Submission::new(store.execution_id(), NAMESPACE.into(), LANE.into(), "child".into(), digest(key));
            NewChild::new(submission)
        };
        let spawn = |task: &Task, children| SpawnChildren { step: Some("fan out".into()), ..SpawnChildren::new(children, task.execution_id, task.fence()) };
        let SpawnChildrenReply::Spawned { items } = store.ask(&spawn(&parent, vec![child("a"), child("b")])).await.unwrap();
        let second = store.lose_and_reclaim(&parent, "w2").await;
        let SpawnChildrenReply::Spawned { items: again } = store.ask(&spawn(&second, vec![child("c")])).await.unwrap();
        assert_eq!(again.iter().map(|i| i.execution_id).collect::<Vec<_>>(), items.iter().map(|i| i.execution_id).collect::<Vec<_>>());
        let wait = |task: &Task| WaitChildren { step: Some("join".into()), ..WaitChildren::new(task.execution_id, task.fence(), SuspensionId::from_uuid(store.uuid(0))) };
        assert_eq!(store.ask(&wait(&second)).await, Ok(WaitChildrenReply::Waiting { open: 2 }));
        store.assert_sound().await;
        for task in store.claim("w3", 2).await {
            let call = CompleteExecution { result: Some(b"1".to_vec().into()), ..CompleteExecution::new(task.execution_id, task.fence()) };
            store.ask(&call).await.unwrap();
        }
        let third = store.claim_one("w1").await;
        assert_eq!(third.resume.clone().unwrap().step.as_deref(), Some("join"));
        assert_eq!(steps(&store, parent.execution_id).await.iter().map(|s| (s.kind, s.state)).collect::<Vec<_>>(), [
            (StepKind::Spawn, StepState::Done), (StepKind::Children, StepState::Done),
        ]);
        // A child spawned later is not part of it.
        store.ask(&SpawnChildren::new(vec![child("late")], third.execution_id, third.fence())).await.unwrap();
        let WaitChildrenReply::Ended { children, .. } = store.ask(&wait(&third)).await.unwrap() else { panic!("not ended") };
        assert_eq!(children.iter().map(|c| Some(c.execution_id)).collect::<Vec<_>>(), items.iter().map(|i| i.execution_id).collect::<Vec<_>>());
        store.assert_sound().await;
        // A fork keeps the outcomes.
        let call = fork_call(&store, parent.execution_id, None);
        store.ask(&call).await.unwrap();
        let fork = claim_of(&store, call.fork_id).await;
        let WaitChildrenReply::Ended { children: kept, .. } = store.ask(&wait(&fork)).await.unwrap() else { panic!("not ended") };
        assert_eq!(kept, children);
        store.assert_sound().await;
    }

    async fn a_fork_without_the_outcomes_of_children_spawns_its_own(store) {
        store.install_default_lane().await;
        let parent = store.start("agent", "w1").await;
        keep(&store, &parent, "a", b"1").await;
        let submission = Submission::new(store.execution_id(), NAMESPACE.into(), LANE.into(), "child".into(), digest("child"));
        let spawn = SpawnChildren { step: Some("fan out".into()), ..SpawnChildren::new(vec![NewChild::new(submission)], parent.execution_id, parent.fence()) };
        store.ask(&spawn).await.unwrap();
        keep(&store, &parent, "b", b"2").await;
        let call = fork_call(&store, parent.execution_id, None);
        store.ask(&call).await.unwrap();
        assert_eq!(names(&store, call.fork_id).await, ["a", "b"]);
        store.assert_sound().await;
    }

    async fn a_replay_keeps_its_steps_those_before_one_or_none(store) {
        store.install_default_lane().await;
        let mut task = store.start("agent", "w1").await;
        for name in ["a", "b", "c"] {
            keep(&store, &task, name, &vec![9; if name == "b" { 6_000 } else { 10 }]).await;
        }
        store.complete(&task).await;
        assert_eq!(refusal(replay(&store, task.execution_id, |call| call.from_step = Some("nope".into())).await), ErrorCode::StepNotFound);
        replay(&store, task.execution_id, |_| {}).await.unwrap();
        task = store.claim_one("w1").await;
        assert_eq!(carried(&task).len(), 3);
        store.complete(&task).await;
        replay(&store, task.execution_id, |call| call.from_step = Some("b".into())).await.unwrap();
        assert_eq!(names(&store, task.execution_id).await, ["a"]);
        assert_eq!(store.describe(task.execution_id).await.step_bytes, 10);
        store.assert_sound().await;
        task = store.claim_one("w1").await;
        keep(&store, &task, "b", b"new").await;
        assert_eq!(result(&store, task.execution_id, "b").await, Some(b"new".to_vec()));
        store.complete(&task).await;
        replay(&store, task.execution_id, |call| call.from_start = Some(true)).await.unwrap();
        assert_eq!(names(&store, task.execution_id).await, Vec::<String>::new());
        task = store.claim_one("w1").await;
        assert_eq!(task.steps, []);
        store.complete(&task).await;
        store.assert_sound().await;
    }

    async fn a_fork_starts_with_the_steps_before_a_named_one(store) {
        store.install_default_lane().await;
        let submission = Submission { input: Some(b"in".to_vec().into()), tags: Some([("k".to_owned(), "v".to_owned())].into()), ..store.submission("agent") };
        let task = store.start_with(submission, "w1").await;
        keep(&store, &task, "a", b"1").await;
        keep(&store, &task, "b", &vec![2; 6_000]).await;
        let door = store.waitpoint("door");
        store.suspend_with(&SuspendExecution { step: Some("go".into()), ..store.suspend_call(&task, &[&door]) }).await;
        store.wake(task.execution_id, &door, "yes").await;
        let task = store.claim_one("w1").await;
        store.ask(&NoteStep::new("x".into(), task.execution_id, task.fence(), "bad".into(), "y".into(), 1)).await.unwrap();

        let whole = fork_call(&store, task.execution_id, None);
        assert_eq!(store.ask(&whole).await, Ok(ForkExecutionReply::Forked { state: Some(PublicState::Waiting), steps: 3, duplicate: false }));
        assert_eq!(store.ask(&whole).await, Ok(ForkExecutionReply::Forked { state: Some(PublicState::Waiting), steps: 3, duplicate: true }));
        let partly = ForkExecution { input: Some(b"other".to_vec().into()), priority: Some(7), ..fork_call(&store, task.execution_id, Some("b")) };
        store.ask(&partly).await.unwrap();
        assert_eq!(refusal(store.ask(&fork_call(&store, task.execution_id, Some("nope"))).await), ErrorCode::StepNotFound);

        let (a, b) = (store.describe(whole.fork_id).await, store.describe(partly.fork_id).await);
        assert_eq!((a.forked_from, a.input.0.as_slice(), a.tags["k"].as_str(), a.kind.as_str()), (Some(task.execution_id), b"in".as_slice(), "v", "agent"));
        assert_eq!((b.priority, b.input.0.as_slice(), b.steps), (7, b"other".as_slice(), 1));
        assert_eq!(store.describe(task.execution_id).await.forks, [whole.fork_id, partly.fork_id]);
        assert_eq!(names(&store, whole.fork_id).await, ["a", "b", "go"]);
        assert_eq!(result(&store, whole.fork_id, "b").await, Some(vec![2; 6_000]));
        store.assert_sound().await;
        // The origin may be deleted; the fork keeps its copies.
        store.complete(&task).await;
        store.ask(&DeleteExecution { actor: "ann".into(), execution_id: task.execution_id }).await.unwrap();
        store.assert_sound().await;
        let fork = claim_of(&store, whole.fork_id).await;
        let reply = store.ask(&SuspendExecution { step: Some("go".into()), ..store.suspend_call(&fork, &[]) }).await;
        let Ok(SuspendExecutionReply::Done { resume }) = reply else { panic!("{reply:?}") };
        assert_eq!(resume.signals[0].name, "yes");
        store.complete(&fork).await;
        store.assert_sound().await;
    }

    async fn nothing_of_its_steps_is_left_after_retention(store) {
        store.install_default_lane().await;
        let submission = Submission { retention_ms: Some(1_000), ..store.submission("agent") };
        let task = store.start_with(submission, "w1").await;
        keep(&store, &task, "a", b"1").await;
        keep(&store, &task, "b", &vec![1; 9_000]).await;
        store.complete(&task).await;
        store.advance(1_000);
        store.fire_all().await;
        let left: Vec<String> = store.dump().await.keys().filter(|key| key.contains(&task.execution_id.to_string())).cloned().collect();
        assert_eq!(left, Vec::<String>::new());
        store.assert_sound().await;
    }

    async fn an_execution_holds_a_bounded_number_of_steps(store) {
        if store.kind() == Kind::Cluster { return }
        let store = Store::open_with_limits(store.kind(), &[("steps_max", 3), ("steps_bytes_max", 100)]).await;
        store.install_default_lane().await;
        let task = store.start("agent", "w1").await;
        assert_eq!(refusal(store.ask(&store_call(&task, "a", &[0; 101])).await), ErrorCode::StepsFull);
        for name in ["a", "b", "c"] {
            keep(&store, &task, name, b"1").await;
        }
        assert_eq!(refusal(store.ask(&store_call(&task, "d", b"1")).await), ErrorCode::StepsFull);
        assert_eq!(refusal(store.ask(&sleep_call(&task, Some("d"), LEASE_MS)).await), ErrorCode::StepsFull);
        assert_eq!(store.ask(&store_call(&task, "c", b"2")).await, Ok(known(b"1")));
        store.assert_sound().await;
    }
}
