//! Handlers that wait, and what the test kit does with them.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use ff_core::state::{LifecyclePhase, Outcome};
use ff_core::types::{WaitpointId, WaitpointToken};
use ff_sdk::SdkError;
use ff_sdk::middleware::{MetricsLayer, TaskMetrics};
use ff_sdk::runtime::{Ctx, Data, HandlerResult, SuspendError, TaskInfo, WorkerRuntime};
use ff_sdk::task::{NewFrame, ResumeCause, SignalOutcome, SuspendOptions, TimeoutBehavior, WaitpointSpec};
use ff_sdk::testing::{Call, TestEngine};
use tokio_util::sync::CancellationToken;

use crate::waits::signal;
use crate::world::{World, until};

/// Where the tokens go.
type Posted = Mutex<Vec<(WaitpointId, WaitpointToken)>>;

/// Waits twice; what it left for itself says where it is.
async fn two_steps(ctx: Ctx, Data(posted): Data<Arc<Posted>>) -> HandlerResult {
    let step = ctx.resume().map(|resume| resume.continuation.clone().unwrap_or_default());
    let next = match step.as_deref() {
        None => "first",
        Some(b"first") => "second",
        Some(_) => {
            let signals = ctx.resume_signals().await?;
            return Ok(Some(signals[0].signal_name.clone().into_bytes()));
        }
    };
    ctx.append(NewFrame::new("step", next)).await?;
    let spec = WaitpointSpec { key: next.to_owned(), ..WaitpointSpec::default() };
    let opened = ctx.create_waitpoint(spec).await?;
    let token = opened.tokens[0].token.clone();
    posted.lock().unwrap().push((opened.waitpoint_id, token));
    ctx.suspend(SuspendOptions::new("step_boundary").continuation(next)).await?;
    Err("nothing comes early in this test".into())
}

/// Returns a result although it has suspended: the execution waits all the same.
async fn careless(ctx: Ctx) -> HandlerResult<SdkError> {
    if ctx.resume().is_some() {
        return Ok(Some(b"resumed".to_vec()));
    }
    let suspended = ctx.suspend(SuspendOptions::new("manual_pause")).await;
    assert!(matches!(suspended, Err(SuspendError::Suspended { .. })));
    Ok(Some(b"too early".to_vec()))
}

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl TaskMetrics for Heard {
    fn started(&self, _: &TaskInfo) {}
    fn ended(&self, _: &TaskInfo, _: Duration, failure: Option<&str>) {
        self.0.lock().unwrap().push(format!("{failure:?}"));
    }
}

for_each_transport! {
    async fn a_handler_that_suspends_is_called_again_and_finds_where_it_was(world: &World) {
        let (token, posted) = (CancellationToken::new(), Arc::new(Posted::default()));
        let runtime = WorkerRuntime::new(world.worker("w-1").await)
            .data(Arc::clone(&posted))
            .on("two_steps", two_steps)
            .without_signals()
            .shutdown_on(token.clone());
        let running = tokio::spawn(runtime.run());
        let sender = world.worker("sender").await;
        let id = world.submit("two_steps", b"{}").await;
        for (step, name) in ["one", "two"].into_iter().enumerate() {
            until("it waits", || async {
                world.describe(&id).await.suspension.is_some_and(|suspension| {
                    posted.lock().unwrap().get(step).is_some_and(|(at, _)| suspension.waitpoints[0].waitpoint_id == *at)
                })
            })
            .await;
            let (at, token) = posted.lock().unwrap()[step].clone();
            sender.deliver_signal(&id, &at, signal(name, &token)).await.unwrap();
        }
        assert_eq!(world.result(&id).await.result.as_deref(), Some(b"two".as_slice()));
        assert_eq!(world.describe(&id).await.attempts.len(), 1);
        token.cancel();
        running.await.unwrap().unwrap();
    }

    async fn a_handler_that_has_suspended_completes_nothing_whatever_it_returns(world: &World) {
        let (token, heard) = (CancellationToken::new(), Arc::new(Heard::default()));
        let runtime = WorkerRuntime::new(world.worker("w-1").await)
            .on("careless", careless)
            .layer(MetricsLayer::new(heard.clone()))
            .without_signals()
            .shutdown_on(token.clone());
        let running = tokio::spawn(runtime.run());
        let id = world.submit("careless", b"{}").await;
        until("its run is over", || async { !heard.0.lock().unwrap().is_empty() }).await;
        assert_eq!(heard.0.lock().unwrap().as_slice(), [r#"Some("suspended")"#]);
        let seen = world.describe(&id).await;
        assert_eq!((seen.lifecycle_phase, seen.outcome), (LifecyclePhase::Suspended, None));
        token.cancel();
        running.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_waits_twice_and_each_run_knows_its_place() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let id = engine.submit("two_steps", b"{}").await?;
    let runtime =
        WorkerRuntime::new(engine.worker("w-1").await?).data(Arc::new(Posted::default())).on("two_steps", two_steps);
    let running = engine.run(runtime);
    for step in ["first", "second"] {
        until("it waits", || async {
            engine
                .waitpoints(&id)
                .await
                .unwrap()
                .iter()
                .any(|waitpoint| waitpoint.key == step && waitpoint.suspension_id.is_some())
        })
        .await;
        let answered = engine.signal(&id, step, &format!("{step} answered"), b"{}").await?;
        assert!(matches!(answered, SignalOutcome::TriggeredResume { .. }), "{answered:?}");
    }
    let result = engine.result(&id).await?;
    assert_eq!(result.result.as_deref(), Some(b"second answered".as_slice()));
    let frames: Vec<Vec<u8>> = engine.frames(&id).await?.into_iter().map(|frame| frame.payload).collect();
    assert_eq!(frames, [b"first".to_vec(), b"second".to_vec()]);
    assert_eq!(engine.describe(&id).await?.attempts.len(), 1);
    engine.assert_exactly_one_effect(&id).await?;
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_passes_a_suspension_only_when_told() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let id = engine.submit("k", b"{}").await?;
    let worker = engine.worker("w-1").await?;
    let task = worker.claim_next().await?.expect("one waits");
    task.suspend("waiting_for_approval", &[], Some(3_600_000), TimeoutBehavior::AutoResume).await?;
    engine.advance(Duration::from_secs(3_599)).await?;
    assert!(worker.claim_next().await?.is_none());
    engine.advance_past_timeout(&id).await?;
    let task = worker.claim_next().await?.expect("its time has come");
    assert_eq!(task.resume().map(|resume| resume.cause), Some(ResumeCause::Timeout));
    task.complete(None).await?;
    engine.assert_exactly_one_effect(&id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_resumes_and_there_are_no_signals() -> Result<(), SdkError> {
    let engine = TestEngine::start().await?;
    let id = engine.submit("k", b"{}").await?;
    let worker = engine.worker("w-1").await?;
    let options = SuspendOptions::new("waiting_for_operator_review").continuation(b"kept");
    worker.claim_next().await?.expect("one waits").suspend_with(options).await?;
    engine.engine().operations().resume(id, "olga", None).await?;
    let task = worker.claim_next().await?.expect("it goes on");
    let resume = task.resume().expect("it was suspended");
    assert_eq!((resume.cause, resume.continuation.as_deref()), (ResumeCause::Operator, Some(b"kept".as_slice())));
    assert!(task.resume_signals().await?.is_empty());
    task.complete(None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wherever_the_worker_dies_around_a_suspend_the_wait_is_there_or_the_work_runs_again() -> Result<(), SdkError> {
    use ff_sdk::testing::CrashPoint;
    for (point, waits) in [(CrashPoint::BeforeCall(Call::Suspend), false), (CrashPoint::AfterCall(Call::Suspend), true)]
    {
        let engine = TestEngine::start().await?;
        let id = engine.submit("k", b"{}").await?;
        let first = engine.worker("w-1").await?;
        let task = first.claim_next().await?.expect("one waits");
        let (at, token) = task.create_pending_waitpoint("x", 3_600_000).await?;
        engine.crash(&first, point);
        assert!(task.suspend("waiting_for_signal", &[], None, TimeoutBehavior::Fail).await.is_err());
        engine.advance(Duration::from_secs(60)).await?;
        let second = engine.worker("w-2").await?;
        if waits {
            assert!(second.claim_next().await?.is_none());
            second.deliver_signal(&id, &at, signal("x", &token)).await?;
        }
        let task = second.claim_next().await?.expect("it runs");
        assert_eq!(task.attempt_index().get(), if waits { 0 } else { 1 });
        assert_eq!(task.resume().is_some(), waits);
        task.complete(None).await?;
        engine.assert_exactly_one_effect(&id).await?;
        assert_eq!(engine.describe(&id).await?.outcome, Some(Outcome::Success));
    }
    Ok(())
}
