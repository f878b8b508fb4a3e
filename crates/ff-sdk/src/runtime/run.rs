//! The loop of a runtime: claim, run, end, drain.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ff_core::types::TimestampMs;
use ff_script::Kinds;
use futures::FutureExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::Instrument;

use super::health::HealthHandle;
use super::{Ctx, Settings, StateMap};
use crate::cancellation::{CancelReason, TaskCancellation};
use crate::middleware::{TaskError, TaskRequest, TaskService, panic_text};
use crate::steps::Aside;
use crate::worker::WorkerState;
use crate::{ClaimedTask, FlowFabricWorker, SdkError};

/// What became of a handler: its result, its failure, or its panic.
type Outcome = Result<Result<Option<Vec<u8>>, TaskError>, Box<dyn std::any::Any + Send>>;

/// How long one claim waits for work before the loop comes round.
const CLAIM_WAIT: Duration = Duration::from_secs(10);
/// When a task that no handler takes may be claimed again: another worker may take it until then.
const WITHOUT_HANDLER: Duration = Duration::from_secs(5);
/// A claim that takes this much longer than it may wait is given up and tried again.
const CLAIM_SLACK: Duration = Duration::from_secs(15);

pub(super) async fn run(
    worker: FlowFabricWorker,
    kinds: Kinds,
    state: Arc<StateMap>,
    service: TaskService,
    settings: Settings,
    health: HealthHandle,
) -> Result<(), SdkError> {
    worker.shared().check_direct("run")?;
    let stop = settings.shutdown.child_token();
    let _signals = settings.signals.then(|| listen_for_signals(stop.clone()));
    let who = worker.shared().serve(settings.concurrency, kinds).await?;
    tracing::info!(
        instance = %who.instance,
        namespace = %who.namespace,
        lanes = ?who.lanes,
        kinds = ?who.kinds,
        slots = who.slots,
        "registered"
    );
    let tasks = Mutex::new(JoinSet::new());
    let start = |task| {
        let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.spawn(run_task(task, Arc::clone(&state), service.clone(), settings.stop_grace));
        while tasks.try_join_next().is_some() {}
    };
    // What ends brings the next tasks along; they start beside those of the claims.
    let mut taken = worker.shared().finisher.take_along();
    let taking = async {
        while let Some(task) = taken.recv().await {
            start(task);
        }
        std::future::pending().await
    };
    let ended = tokio::select! {
        ended = claim_loop(&worker, &settings, &stop, &health, start) => ended,
        never = taking => never,
    };
    worker.shared().finisher.take_nothing();
    taken.close();
    while let Ok(late) = taken.try_recv() {
        tokio::spawn(crate::finish::hand_back(late));
    }
    let mut tasks = tasks.into_inner().unwrap_or_else(PoisonError::into_inner);
    health.draining();
    tracing::info!(instance = %worker.config().worker_instance_id, running = tasks.len(), "claiming has stopped");
    drain(&worker, &mut tasks, &settings).await;
    let released = worker.disconnect().await;
    health.stopped(ended.as_ref().err().map(ToString::to_string));
    if let Err(error) = released {
        tracing::warn!(%error, "the registration is left to run out");
    }
    ended
}

/// Cancels the token on the first SIGTERM or Ctrl-C.
fn listen_for_signals(stop: CancellationToken) -> tokio_util::sync::DropGuard {
    let done = CancellationToken::new();
    let guard = done.clone().drop_guard();
    tokio::spawn(async move {
        #[cfg(unix)]
        let terminated = async {
            match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
                Ok(mut signal) => {
                    signal.recv().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "SIGTERM cannot be heard");
                    std::future::pending::<()>().await;
                }
            }
        };
        #[cfg(not(unix))]
        let terminated = std::future::pending::<()>();
        tokio::select! {
            () = done.cancelled() => return,
            () = terminated => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        tracing::info!("asked to stop");
        stop.cancel();
    });
    guard
}

async fn claim_loop(
    worker: &FlowFabricWorker,
    settings: &Settings,
    stop: &CancellationToken,
    health: &HealthHandle,
    start: impl Fn(ClaimedTask),
) -> Result<(), SdkError> {
    let shared = worker.shared();
    let lanes = shared.who().lanes.clone();
    let mut state = worker.watch_state();
    let mut failures = 0_u32;
    loop {
        let current = *state.borrow_and_update();
        match current {
            WorkerState::Serving => {}
            WorkerState::Draining => {
                health.full();
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    _ = state.changed() => continue,
                }
            }
            WorkerState::Replaced => {
                let message = "is held by another process now; this one claims no more";
                return Err(SdkError::config("run", "worker_instance_id", message));
            }
            WorkerState::Disconnected => return Ok(()),
        }
        health.full();
        // A permit says that there is room; the claim takes as many as are free then.
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            permit = shared.permits.acquire() => drop(permit),
        }
        health.claiming();
        let claim = tokio::time::timeout(CLAIM_WAIT + CLAIM_SLACK, shared.claim(&lanes, usize::MAX, CLAIM_WAIT));
        let claimed = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            _ = state.changed() => continue,
            claimed = claim => claimed,
        };
        let error = match claimed {
            Ok(Ok(claimed)) => {
                failures = 0;
                health.claimed();
                claimed.into_iter().for_each(&start);
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {:?}", CLAIM_WAIT + CLAIM_SLACK),
        };
        failures = failures.saturating_add(1);
        health.failed(&error);
        let pause = settings.backoff.delay(failures);
        tracing::warn!(error, failures, ?pause, "a claim failed and is tried again");
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Lets running tasks end within the grace, then tells them to stop; each is ended or handed back.
async fn drain(worker: &FlowFabricWorker, tasks: &mut JoinSet<()>, settings: &Settings) {
    let all = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(settings.drain_grace, all).await.is_err() {
        tracing::info!(running = tasks.len(), "the grace is over; running tasks are handed back");
        worker.shared().keeper.fire_all(CancelReason::Shutdown);
        while tasks.join_next().await.is_some() {}
    }
}

/// Runs one task to its end in its span.
async fn run_task(task: ClaimedTask, state: Arc<StateMap>, service: TaskService, stop_grace: Duration) {
    let span = task.span();
    run_to_its_end(task, state, service, stop_grace).instrument(span).await;
}

/// Runs one task to its end, whatever its handler does.
async fn run_to_its_end(task: ClaimedTask, state: Arc<StateMap>, service: TaskService, stop_grace: Duration) {
    let cancellation = task.cancellation().clone();
    let execution = *task.execution_id();
    let outcome = loop {
        task.core().begin_run();
        let request = TaskRequest::new(Ctx(Arc::clone(task.core())), Arc::clone(&state));
        let handling = AssertUnwindSafe(service.clone().oneshot(request)).catch_unwind();
        let outcome = tokio::select! {
            biased;
            outcome = handling => Some(outcome),
            () = overdue(&cancellation, stop_grace) => None,
        };
        let Some(aside) = aside_of(&task, &cancellation, &outcome) else { break outcome };
        match task.core().go_aside(aside).await {
            Ok(true) => break outcome,
            // What it was to wait for is there: the handler is entered anew, and finds it.
            Ok(false) => {}
            Err(error) => break Some(Ok(Err(TaskError::of_handler(Box::new(error))))),
        }
    };
    if task.core().is_set_aside() {
        // The execution waits; this lease is over, and the next claim runs the handler again.
        tracing::debug!(%execution, "a handler has set its execution aside");
        return task.abandon();
    }
    if !matches!(outcome, Some(Ok(Ok(_)))) {
        crate::trace::fail(&tracing::Span::current());
    }
    let ended = match outcome {
        Some(Ok(Ok(result))) => task.complete(result).await,
        Some(Ok(Err(error))) => end_by(task, &cancellation, Some(error)).await,
        Some(Err(panic)) => {
            let error = TaskError::new(panic_text(&*panic), TaskError::PANIC);
            end_by(task, &cancellation, Some(error)).await
        }
        None => end_by(task, &cancellation, None).await,
    };
    if let Err(error) = ended {
        tracing::warn!(%error, %execution, "a task could not be ended; if its lease is still good it runs out");
    }
}

/// How a handler's attempt is to be set aside: a step asked for it, and the handler handed that on.
fn aside_of(task: &ClaimedTask, cancellation: &TaskCancellation, outcome: &Option<Outcome>) -> Option<Aside> {
    let Some(Ok(Err(error))) = outcome else { return None };
    let stays = matches!(cancellation.reason(), Some(CancelReason::CancelRequested | CancelReason::LeaseLost));
    if stays || task.core().is_set_aside() || error.category != TaskError::SUSPENDED {
        return None;
    }
    task.core().steps.take_aside()
}

/// Ends when the handler was told to stop and has not within the grace.
async fn overdue(cancellation: &TaskCancellation, grace: Duration) {
    let reason = cancellation.cancelled().await;
    tracing::debug!(%reason, "a handler is told to stop");
    // On the way down nobody waits long: the handler had the whole grace.
    let grace = if reason == CancelReason::Shutdown { grace.min(Duration::from_secs(1)) } else { grace };
    tokio::time::sleep(grace).await;
}

/// Ends a task whose handler did not succeed, by why it was told to stop, if it was.
async fn end_by(task: ClaimedTask, cancellation: &TaskCancellation, error: Option<TaskError>) -> Result<(), SdkError> {
    match cancellation.reason() {
        Some(CancelReason::CancelRequested) => task.cancel("cancel requested").await,
        Some(CancelReason::YieldRequested | CancelReason::Shutdown) => task.yield_back().await,
        // Its lease is over, and the engine knows by itself what follows.
        Some(CancelReason::HardBreach) => {
            task.abandon();
            Ok(())
        }
        Some(CancelReason::LeaseLost) => {
            tracing::warn!(execution = %task.execution_id(), "a handler was stopped because its lease was lost");
            task.abandon();
            Ok(())
        }
        None if error.as_ref().is_some_and(TaskError::is_no_handler) => {
            let (execution, kind) = (*task.execution_id(), task.core().claim.kind.clone());
            tracing::warn!(%execution, kind, again_in = ?WITHOUT_HANDLER, "no handler takes this kind; the task is given back");
            // By the engine's clock: the epoch of a lease is the time of its claim in microseconds.
            let claimed_at = i64::try_from(task.core().lease.at.lease_epoch.get() / 1_000).unwrap_or(i64::MAX);
            let later = i64::try_from(WITHOUT_HANDLER.as_millis()).unwrap_or(i64::MAX);
            task.delay_execution(TimestampMs(claimed_at.saturating_add(later))).await
        }
        None => {
            let error = error.unwrap_or_else(|| TaskError::new("stopped without a reason", TaskError::HANDLER));
            task.fail_with(error.into()).await.map(|_| ())
        }
    }
}
