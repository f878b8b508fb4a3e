//! A handler's side of waiting and streaming.

use ff_core::types::{SuspensionId, WaitpointId, WaitpointToken};
use ff_engine::{OpenedWaitpoint, WaitpointSpec};

use super::Ctx;
use crate::SdkError;
use crate::backend::Suspended;
use crate::streams::{AppendFrameOutcome, NewFrame, StreamCursor, StreamFrames};
use crate::waits::{Resume, ResumeCause, ResumeSignal, SuspendOptions};

/// Why [`Ctx::suspend`] has no signals to show, or [`Ctx::wait_children`] no outcomes.
#[derive(Debug, thiserror::Error)]
pub enum SuspendError {
    /// The execution waits: this run of the handler is over. Hand it on with `?`; whatever the handler returns, the runtime lets
    /// the execution wait.
    #[error("the execution is suspended; this run of its handler is over")]
    Suspended {
        /// The suspension.
        suspension_id: SuspensionId,
    },
    /// The execution waits for its children: this run of the handler is over. Hand it on with `?`, as with
    /// [`SuspendError::Suspended`].
    #[error("the execution waits for {open} children; this run of its handler is over")]
    WaitingForChildren {
        /// How many have not ended.
        open: u64,
    },
    /// The execution could not be suspended.
    #[error(transparent)]
    Failed(#[from] SdkError),
}

impl From<SuspendError> for SdkError {
    /// For handlers that return [`SdkError`]: the runtime knows by itself that the execution waits.
    fn from(error: SuspendError) -> Self {
        match error {
            SuspendError::Failed(error) => error,
            suspended => SdkError::unsupported("suspend", suspended.to_string()),
        }
    }
}

/// Waiting. A handler that suspends ends its run: [`Ctx::suspend`] answers [`SuspendError::Suspended`], the handler returns it with
/// `?`, and the runtime neither completes nor fails the task. When the execution is resumed, the handler is called again from
/// its beginning, in whichever worker claims it, and finds in [`Ctx::resume`] why, and what it left for itself.
///
/// Tokens are handed out before the handler suspends: it opens the waitpoint, sends the tokens on their way, and suspends. Signals
/// that arrive meanwhile count; when they are enough, [`Ctx::suspend`] answers them and the handler goes on.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_sdk::runtime::{Ctx, HandlerResult, WorkerRuntime};
/// use ff_sdk::task::{SuspendOptions, WaitpointSpec};
///
/// async fn publish(ctx: Ctx) -> HandlerResult {
///     let review = SuspendOptions::new("waiting_for_approval").signal("approved").step("review");
///     if ctx.resume_of(&review).is_none() {
///         let opened = ctx.create_waitpoint(WaitpointSpec { key: "review".to_owned(), ..Default::default() }).await?;
///         // … mail opened.tokens[0].token.as_str() to the reviewer …
///     }
///     let signals = ctx.wait_for_signals(review).await?;
///     Ok(signals[0].payload.clone())
/// }
///
/// # let engine = ff_sdk::testing::TestEngine::start().await?;
/// # let id = engine.submit("publish", b"{}").await?;
/// # let running = engine.run(WorkerRuntime::new(engine.worker("w-1").await?).on("publish", publish));
/// # while engine.describe(&id).await?.lifecycle_phase != ff_core::state::LifecyclePhase::Suspended {
/// #     tokio::task::yield_now().await;
/// # }
/// engine.signal(&id, "review", "approved", b"ship it").await?;
/// assert_eq!(engine.result(&id).await?.result.as_deref(), Some(b"ship it".as_slice()));
/// # running.stop().await?;
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
impl Ctx {
    /// Why the handler is called again; `None` in a run that follows no wait. It may be another wait than the one the handler is
    /// about to begin, or a budget or children: [`Ctx::resume_of`] asks for one of them.
    #[must_use]
    pub fn resume(&self) -> Option<&Resume> {
        self.0.claim.resume.as_ref()
    }

    /// The end of this very wait, when that is why the handler is called again: by its signals, its timeout or an operator.
    #[must_use]
    pub fn resume_of(&self, wait: &SuspendOptions) -> Option<&Resume> {
        self.resume().filter(|resume| {
            let ends_a_wait =
                matches!(resume.cause, ResumeCause::Signal | ResumeCause::Timeout | ResumeCause::Operator);
            ends_a_wait && resume.step.as_deref() == Some(wait.name().as_str())
        })
    }

    /// The signals that let the attempt go on, in order of arrival; none unless this run follows a suspension.
    pub async fn resume_signals(&self) -> Result<Vec<ResumeSignal>, SdkError> {
        Ok(self.0.resume_signals())
    }

    /// Opens a waitpoint that takes signals for `expires_in_ms`, before the handler suspends.
    pub async fn create_pending_waitpoint(
        &self,
        key: &str,
        expires_in_ms: u64,
    ) -> Result<(WaitpointId, WaitpointToken), SdkError> {
        self.0.create_pending_waitpoint(key, expires_in_ms).await
    }

    /// Opens a waitpoint of any kind, before the handler suspends.
    pub async fn create_waitpoint(&self, spec: WaitpointSpec) -> Result<OpenedWaitpoint, SdkError> {
        self.0.create_waitpoint(spec).await
    }

    /// Suspends the execution at the waitpoints this run opened, and at those of `options`.
    ///
    /// The signals, when those that came early are enough; else [`SuspendError::Suspended`], and the handler is to return. Another
    /// worker may run the execution from then on: nothing may follow that must not happen twice.
    pub async fn suspend(&self, options: SuspendOptions) -> Result<Vec<ResumeSignal>, SuspendError> {
        match self.0.suspend(options).await? {
            Suspended::AlreadySatisfied { signals, .. } => Ok(signals),
            Suspended::Done(resume) => Ok(resume.signals),
            Suspended::Waiting(suspension) => Err(SuspendError::Suspended { suspension_id: suspension.suspension_id }),
        }
    }

    /// The signals that ended this wait, in the run that follows it; in any other run, [`Ctx::suspend`].
    ///
    /// A wait is ended by its own signals, its own timeout (then they are one named `timeout`) or an operator's resume (then there may
    /// be none), never by another wait, by a budget that has room again or by children. It is known by [`SuspendOptions::step`], or
    /// without one by all its options, so they must be the same in every run.
    ///
    /// For handlers that wait once: one that waits at several places must not come back to a wait that has ended, and tells by
    /// [`Resume::continuation`] how far it was.
    pub async fn wait_for_signals(&self, options: SuspendOptions) -> Result<Vec<ResumeSignal>, SuspendError> {
        if self.resume_of(&options).is_some() && self.0.take_resume() {
            return Ok(self.resume_signals().await?);
        }
        self.suspend(options).await
    }

    /// Appends a frame to the attempt's stream.
    pub async fn append(&self, frame: NewFrame) -> Result<AppendFrameOutcome, SdkError> {
        self.0.append_one(frame).await
    }

    /// Appends a durable frame; see [`crate::ClaimedTask::append_frame`].
    pub async fn append_frame(
        &self,
        frame_type: &str,
        payload: &[u8],
        metadata: Option<&str>,
    ) -> Result<AppendFrameOutcome, SdkError> {
        self.0.append_frame(frame_type, payload, metadata).await
    }

    /// Appends many frames, in order; see [`crate::ClaimedTask::append_frames`].
    pub async fn append_frames(&self, frames: &[NewFrame]) -> Result<Vec<AppendFrameOutcome>, SdkError> {
        self.0.append_frames(frames).await
    }

    /// Frames of this attempt, its earlier runs included, between two places; see [`crate::task::read_stream`].
    pub async fn read_stream(
        &self,
        from: StreamCursor,
        to: StreamCursor,
        limit: u64,
    ) -> Result<StreamFrames, SdkError> {
        let claim = &self.0.claim;
        let backend = self.0.backend.as_ref();
        crate::streams::read(backend, claim.lease.execution_id, claim.attempt_index, &from, &to, limit).await
    }
}
