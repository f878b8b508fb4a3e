//! A claimed execution: what it is, and the ways to end it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ff_core::EngineError;
use ff_core::error::{Detail, TransportKind};
use ff_core::types::{AttemptId, AttemptIndex, ExecutionId, LaneId, LeaseEpoch, LeaseId, Namespace, TimestampMs};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::backend::{Backend, Claim, End, Failing, Identity, LeaseRef};
use crate::cancellation::TaskCancellation;
use crate::error::worth_repeating;
use crate::lease::{Keeper, Lease, UNHEALTHY_AFTER};
use crate::worker::Shared;
use crate::{SdkError, finish};

use crate::flows::Spawns;
pub use crate::flows::{
    CancelPolicy, ChildSpec, EdgeOn, InboundPolicy, OnMemberFailure, OnSatisfied, ParentClose, Upstream,
    WaitChildrenOutcome,
};
use crate::steps::Steps;
use crate::streams::Writer;
pub use crate::streams::{
    AppendFrameOutcome, AsBackend, FrameMode, InvalidCursor, MAX_TAIL_BLOCK_MS, NewFrame, STREAM_READ_HARD_CAP,
    StreamCursor, StreamFrame, StreamFrames, read_stream, stream_summary, tail_stream,
};
use crate::waits::Pending;
pub use crate::waits::{
    Condition, ConditionMatcher, IssuedToken, Matcher, OpenedWaitpoint, Over, Resume, ResumeCause, ResumeSignal,
    Signal, SignalEffect, SignalOutcome, SuspendOptions, SuspendOutcome, SuspendWithOutcome, Suspension,
    SuspensionReason, TimeoutBehavior, UnknownTimeoutBehavior, WaitpointSpec,
};
pub use ff_core::contracts::{BreachAction, ReportUsageResult, Reservation, ReserveResult};
pub use ff_script::generated::{OnHard, OnSoft, QuotaRate, QuotaWeights, RateMode};

/// What the engine decided after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOutcome {
    /// Another attempt follows.
    RetryScheduled {
        /// Not before this time.
        delay_until: TimestampMs,
    },
    /// The execution has failed for good.
    TerminalFailed,
}

const REPEAT_FIRST: Duration = Duration::from_millis(50);
const REPEAT_MAX: Duration = Duration::from_secs(2);

/// The longest reason and category the engine takes, in bytes.
const REASON_MAX: usize = ff_core::limits::REASON_BYTES_MAX;
const CATEGORY_MAX: usize = 128;

/// What a task and its handler share.
pub(crate) struct TaskCore {
    pub(crate) claim: Claim,
    pub(crate) lease: Arc<Lease>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) who: Arc<Identity>,
    keeper: Arc<Keeper>,
    pub(crate) pending: Pending,
    pub(crate) writer: Writer,
    pub(crate) spawns: Spawns,
    /// What the handler recorded, and where this run of it stands.
    pub(crate) steps: Steps,
    /// The attempt was set aside: this lease is over.
    aside: AtomicBool,
    /// A wait has returned what this run was resumed with: it ends no other.
    resume_taken: AtomicBool,
    /// The budget's limit that ended the lease, if one did.
    pub(crate) breach: OnceLock<Detail>,
}

impl TaskCore {
    /// The attempt waits: its lease is given back and not to be renewed.
    pub(crate) fn set_aside(&self) {
        self.aside.store(true, Ordering::SeqCst);
        self.keeper.remove(self.lease.at.lease_id);
    }

    /// The handler is entered from its top.
    pub(crate) fn begin_run(&self) {
        self.steps.begin_run();
        self.spawns.begin_run();
        self.resume_taken.store(false, Ordering::SeqCst);
    }

    /// True for the first wait of this run that asks.
    pub(crate) fn take_resume(&self) -> bool {
        !self.resume_taken.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn is_set_aside(&self) -> bool {
        self.aside.load(Ordering::SeqCst)
    }

    /// Repeats a call that was lost on the way until it is answered or the lease can no longer be trusted.
    ///
    /// Renewal goes on meanwhile. Trust is a matter of time only: a renewal that is refused because the lost call did succeed
    /// must not keep the repetition from hearing so.
    pub(crate) async fn repeat<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T, SdkError>
    where
        F: Future<Output = Result<T, SdkError>>,
    {
        self.check_breach()?;
        let mut pause = REPEAT_FIRST;
        loop {
            match call().await {
                Err(error) if worth_repeating(&error) && self.lease.is_trusted() => {
                    tracing::debug!(%error, execution = %self.lease.at.execution_id, "a call was lost on the way and is repeated");
                    tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..=1.0))).await;
                    pause = (pause * 2).min(REPEAT_MAX);
                }
                answer => return answer,
            }
        }
    }

    pub(crate) async fn update_progress(&self, pct: u8, message: &str) -> Result<(), SdkError> {
        self.check_breach()?;
        self.backend.reach().progress(self.lease.at, pct, message).await
    }

    pub(crate) async fn renew(&self) -> Result<(), SdkError> {
        self.check_breach()?;
        let sent = Instant::now();
        let answer = self.backend.reach().renew(&self.who, &[self.lease.at]).await.into_iter().next();
        let answer = answer.unwrap_or_else(|| crate::backend::Renewal::Unanswered("no answer".to_owned()));
        if !self.lease.settle(sent, &answer) {
            self.keeper.remove(self.lease.at.lease_id);
        }
        match answer {
            crate::backend::Renewal::Renewed { .. } => Ok(()),
            crate::backend::Renewal::Refused(error) => Err(error.into()),
            crate::backend::Renewal::Unanswered(detail) => {
                Err(SdkError::Transport { source: detail.into(), context: "renewing a lease".to_owned() })
            }
        }
    }
}

/// An execution this process holds the lease of.
///
/// The lease is renewed in the background until the task is ended or dropped. The methods that end it take it by value, so a
/// second ending cannot be written. Each repeats itself, with the same fence, while the engine cannot be reached and the lease can
/// be trusted; after a lost answer the engine answers what it committed. A task that is dropped keeps its place until its lease runs
/// out, and says so once in the log.
///
/// ```
/// use ff_sdk::{ClaimedTask, SdkError};
///
/// async fn shout(task: ClaimedTask) -> Result<(), SdkError> {
///     task.update_progress(50, "shouting").await?;
///     let loud = std::str::from_utf8(task.input_payload()).map(str::to_uppercase);
///     match loud {
///         Ok(text) => task.complete(Some(text.into_bytes())).await,
///         Err(_) => task.fail("the input is not text", "bad_input").await.map(|_| ()),
///     }
/// }
/// ```
#[must_use = "a task that is dropped keeps its place until its lease runs out"]
pub struct ClaimedTask {
    core: Arc<TaskCore>,
    worker: Arc<Shared>,
    /// Its place among those the worker holds.
    permit: Option<OwnedSemaphorePermit>,
    ended: bool,
}

impl std::fmt::Debug for ClaimedTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClaimedTask")
            .field("lease", &self.core.lease.at)
            .field("kind", &self.core.claim.kind)
            .finish_non_exhaustive()
    }
}

impl ClaimedTask {
    pub(crate) fn new(claim: Claim, sent: Instant, worker: Arc<Shared>, permit: OwnedSemaphorePermit) -> Self {
        let (backend, who, keeper) = (Arc::clone(&worker.backend), worker.who(), Arc::clone(&worker.keeper));
        let lease = Lease::new(claim.lease, Duration::from_millis(who.lease_ttl_ms), sent);
        keeper.add(Arc::clone(&lease));
        let writer = Writer::new(claim.frames);
        let claimed_at = claim.lease_expires_at - i64::try_from(who.lease_ttl_ms).unwrap_or(i64::MAX);
        let steps = Steps::new(claim.steps.clone(), claim.steps_more, claimed_at);
        let core = Arc::new(TaskCore {
            claim,
            lease,
            backend,
            who,
            keeper,
            pending: Pending::default(),
            writer,
            spawns: Spawns::default(),
            steps,
            aside: AtomicBool::new(false),
            resume_taken: AtomicBool::new(false),
            breach: OnceLock::new(),
        });
        Self { core, worker, permit: Some(permit), ended: false }
    }

    pub(crate) fn core(&self) -> &Arc<TaskCore> {
        &self.core
    }

    /// The execution.
    #[must_use]
    pub fn execution_id(&self) -> &ExecutionId {
        &self.core.claim.lease.execution_id
    }

    /// Which attempt this is.
    #[must_use]
    pub fn attempt_index(&self) -> AttemptIndex {
        self.core.claim.attempt_index
    }

    /// The attempt.
    #[must_use]
    pub fn attempt_id(&self) -> &AttemptId {
        &self.core.claim.lease.attempt_id
    }

    /// The lease.
    #[must_use]
    pub fn lease_id(&self) -> &LeaseId {
        &self.core.claim.lease.lease_id
    }

    /// The lease's epoch: higher than that of any earlier lease of the execution.
    #[must_use]
    pub fn lease_epoch(&self) -> LeaseEpoch {
        self.core.claim.lease.lease_epoch
    }

    /// The lane it came from.
    #[must_use]
    pub fn lane_id(&self) -> &LaneId {
        &self.core.claim.lane
    }

    /// The namespace it came from.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.core.claim.namespace
    }

    /// What kind of work it is.
    #[must_use]
    pub fn execution_kind(&self) -> &str {
        &self.core.claim.kind
    }

    /// The input, byte for byte as submitted.
    #[must_use]
    pub fn input_payload(&self) -> &[u8] {
        &self.core.claim.input
    }

    /// The tags.
    #[must_use]
    pub fn tags(&self) -> &HashMap<String, String> {
        &self.core.claim.tags
    }

    /// The fallback tier of this attempt, when the submission has tiers.
    #[must_use]
    pub fn fallback(&self) -> Option<&[u8]> {
        self.core.claim.fallback.as_deref()
    }

    /// The trace the submitter continues.
    #[must_use]
    pub fn trace_parent(&self) -> Option<&str> {
        self.core.claim.trace_parent.as_deref()
    }

    /// A span for this attempt, part of the submitter's trace when spans are exported (feature `otel`). The runtime runs handlers
    /// in it; whoever claims by hand runs the work in it with [`tracing::Instrument`].
    #[must_use]
    pub fn span(&self) -> tracing::Span {
        let claim = &self.core.claim;
        let span = tracing::info_span!(
            "attempt",
            otel.kind = "consumer",
            execution_id = %claim.lease.execution_id,
            attempt = %claim.attempt_index,
            namespace = claim.namespace.as_str(),
            lane = claim.lane.as_str(),
            kind = claim.kind,
        );
        crate::trace::follow(&span, self.trace_parent());
        crate::trace::name(&span, || format!("attempt {}", claim.kind));
        span
    }

    /// False after three failed renewals in a row, and once the lease is not to be trusted any more.
    #[must_use]
    pub fn is_lease_healthy(&self) -> bool {
        self.core.lease.failures() < UNHEALTHY_AFTER && !self.core.lease.cancellation.is_lease_lost()
    }

    /// How many renewals failed in a row.
    #[must_use]
    pub fn consecutive_renewal_failures(&self) -> u32 {
        self.core.lease.failures()
    }

    /// Fires when the work should stop, with the reason.
    #[must_use]
    pub fn cancellation(&self) -> &TaskCancellation {
        &self.core.lease.cancellation
    }

    /// Renews the lease now; the background does so by itself.
    pub async fn renew_lease(&self) -> Result<(), SdkError> {
        self.core.renew().await
    }

    /// Notes how far the work is, 0 to 100, for everyone who looks at the execution.
    pub async fn update_progress(&self, pct: u8, message: &str) -> Result<(), SdkError> {
        self.core.update_progress(pct, message).await
    }

    /// Ends the execution as a success, with a result.
    pub async fn complete(mut self, result: Option<Vec<u8>>) -> Result<(), SdkError> {
        let core = Arc::clone(&self.core);
        let end = End { lease: core.lease.at, lane: core.claim.lane.as_str().to_owned(), result };
        let (worker, permit) = (Arc::clone(&self.worker), Mutex::new(self.permit.take()));
        let answer = core
            .repeat(async || {
                let own = permit.lock().unwrap_or_else(PoisonError::into_inner).take();
                let Some(own) = own else {
                    let detail = "the results were not sent".to_owned();
                    return Err(EngineError::Transport { kind: TransportKind::Closed, detail }.into());
                };
                let (answer, back) = finish::complete(&worker, end.clone(), Arc::clone(&core.lease), own).await;
                *permit.lock().unwrap_or_else(PoisonError::into_inner) = back;
                answer
            })
            .await;
        self.ended = true;
        answer
    }

    /// Ends the attempt as a failure; the execution's policy decides whether another one follows.
    pub async fn fail(self, reason: &str, category: &str) -> Result<FailOutcome, SdkError> {
        let failing =
            Failing { reason: reason.to_owned(), category: category.to_owned(), retryable: None, retry_after_ms: None };
        self.fail_with(failing).await
    }

    /// Like [`ClaimedTask::fail`], with a word about the next attempt.
    pub async fn fail_with(self, failing: Failing) -> Result<FailOutcome, SdkError> {
        let failing = Failing {
            reason: cut(failing.reason, REASON_MAX),
            category: cut(
                if failing.category.is_empty() { "unspecified".to_owned() } else { failing.category },
                CATEGORY_MAX,
            ),
            ..failing
        };
        self.end(|backend, lease| {
            let failing = &failing;
            async move { backend.reach().fail(lease, failing).await }
        })
        .await
    }

    /// Ends the execution as cancelled.
    pub async fn cancel(self, reason: &str) -> Result<(), SdkError> {
        let reason = cut(reason.to_owned(), REASON_MAX);
        self.end(|backend, lease| {
            let reason = reason.as_str();
            async move { backend.reach().cancel_attempt(lease, reason).await }
        })
        .await
    }

    /// Hands the execution back until a time; a time already past means now. Counts as no failure.
    pub async fn delay_execution(self, until: TimestampMs) -> Result<(), SdkError> {
        self.end(|backend, lease| async move { backend.reach().delay(lease, until).await }).await
    }

    /// Hands the execution back at once; it is counted nowhere.
    pub async fn yield_back(self) -> Result<(), SdkError> {
        self.end(|backend, lease| async move { backend.reach().yield_back(lease).await }).await
    }

    /// Lets the lease run out, for a reason already known to whoever calls this.
    pub(crate) fn abandon(mut self) {
        self.ended = true;
    }

    /// Makes the call that ends the task, as often as it takes to hear the answer.
    async fn end<'a, T, F>(mut self, mut call: impl FnMut(Arc<dyn Backend>, LeaseRef) -> F) -> Result<T, SdkError>
    where
        F: Future<Output = Result<T, SdkError>> + 'a,
    {
        let answer = self.core.repeat(|| call(Arc::clone(&self.core.backend), self.core.lease.at)).await;
        self.ended = true;
        answer
    }
}

/// At most `max` bytes, cut between two characters.
pub(crate) fn cut(mut text: String, max: usize) -> String {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

impl Drop for ClaimedTask {
    fn drop(&mut self) {
        self.core.keeper.remove(self.core.lease.at.lease_id);
        if !self.ended && !self.core.is_set_aside() {
            tracing::warn!(
                execution = %self.core.lease.at.execution_id,
                "a task was dropped without an ending; its lease runs out by itself"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        assert_eq!(cut("äöü".to_owned(), 5), "äö");
        assert_eq!(cut("abc".to_owned(), 5), "abc");
        assert_eq!(cut("abc".to_owned(), 0), "");
    }
}
