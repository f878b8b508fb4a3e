//! Suspending a task.

use ff_core::EngineError;
use ff_core::condition::Condition;
use ff_core::error::TransportKind;
use ff_core::types::{SuspensionId, TimestampMs, WaitpointId, WaitpointToken};
use ff_engine::{OpenedWaitpoint, WaitpointSpec};
use ff_script::generated::SuspensionReason;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{ResumeSignal, TimeoutBehavior};
use crate::backend::{Suspended, Suspending};
use crate::task::TaskCore;
use crate::{ClaimedTask, SdkError};

/// A signal to wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConditionMatcher {
    /// Its name; `""` is any name.
    pub signal_name: String,
}

/// What became of [`ClaimedTask::suspend`].
#[derive(Debug)]
pub enum SuspendOutcome {
    /// The lease is given back; the execution waits.
    Suspended {
        /// The suspension.
        suspension_id: SuspensionId,
        /// Where signals arrive: the first waitpoint.
        waitpoint_id: WaitpointId,
        /// Its key.
        waitpoint_key: String,
        /// The right to signal it: its first token.
        waitpoint_token: WaitpointToken,
    },
    /// Signals that came early are enough. The task is still held and goes on.
    #[non_exhaustive]
    AlreadySatisfied {
        /// The task.
        task: ClaimedTask,
        /// The signals.
        signals: Vec<ResumeSignal>,
        /// The suspension that did not happen.
        suspension_id: SuspensionId,
    },
}

/// A suspension with everything that was opened for it.
#[derive(Clone, Debug)]
pub struct Suspension {
    /// The suspension.
    pub suspension_id: SuspensionId,
    /// Where signals arrive, each with the tokens this task was given for it.
    pub waitpoints: Vec<OpenedWaitpoint>,
    /// When it takes too long.
    pub timeout_at: Option<TimestampMs>,
}

/// What became of [`ClaimedTask::suspend_with`].
#[derive(Debug)]
pub enum SuspendWithOutcome {
    /// The lease is given back; the execution waits.
    Suspended(Suspension),
    /// Signals that came early are enough. The task is still held and goes on.
    AlreadySatisfied {
        /// The task.
        task: ClaimedTask,
        /// The signals.
        signals: Vec<ResumeSignal>,
        /// The suspension that did not happen.
        suspension_id: SuspensionId,
    },
}

/// What to wait for, where, how long, and what to find afterwards.
///
/// ```
/// use ff_sdk::task::{Condition, Over, SuspendOptions, TimeoutBehavior, WaitpointSpec};
///
/// let options = SuspendOptions::new("waiting_for_approval")
///     .waitpoint(WaitpointSpec {
///         key: "release".to_owned(),
///         approvers: vec!["ann".to_owned(), "bob".to_owned()],
///         ..WaitpointSpec::default()
///     })
///     .condition(Condition::Count { n: 2, over: Over::Approvers, of: None })
///     .timeout(86_400_000, TimeoutBehavior::Escalate)
///     .continuation(b"step 2");
/// assert_eq!(options.waitpoints.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendOptions {
    /// Why: one of the engine's words, e.g. `waiting_for_signal`.
    pub reason_code: String,
    /// Waitpoints to open, beside the pending ones.
    pub waitpoints: Vec<WaitpointSpec>,
    /// The pending waitpoints to wait at, the others are closed; all when empty.
    pub adopt: Vec<WaitpointId>,
    /// What must arrive.
    pub condition: Condition,
    /// How long it may take.
    pub timeout_ms: Option<u64>,
    /// What happens then.
    pub timeout_behavior: TimeoutBehavior,
    /// What whoever continues the attempt finds in [`crate::task::Resume::continuation`], at most 256 KiB.
    pub continuation: Option<Vec<u8>>,
    /// Names the wait, 1 to 256 bytes: the run that continues the attempt knows by it which of its waits has ended. Without one it is
    /// known by everything else that is said here.
    pub step: Option<String>,
}

impl SuspendOptions {
    /// Waits for any signal, for as long as it takes.
    pub fn new(reason_code: impl Into<String>) -> Self {
        Self {
            reason_code: reason_code.into(),
            waitpoints: Vec::new(),
            adopt: Vec::new(),
            condition: Condition::default(),
            timeout_ms: None,
            timeout_behavior: TimeoutBehavior::default(),
            continuation: None,
            step: None,
        }
    }

    /// Opens this waitpoint too.
    #[must_use]
    pub fn waitpoint(mut self, spec: WaitpointSpec) -> Self {
        self.waitpoints.push(spec);
        self
    }

    /// Waits for this.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.condition = condition;
        self
    }

    /// Waits for a signal of this name.
    #[must_use]
    pub fn signal(self, name: &str) -> Self {
        self.condition(Condition::from_matchers([name]))
    }

    /// Waits this long, and then does this.
    #[must_use]
    pub fn timeout(mut self, timeout_ms: u64, behavior: TimeoutBehavior) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self.timeout_behavior = behavior;
        self
    }

    /// Leaves this for whoever continues the attempt.
    #[must_use]
    pub fn continuation(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.continuation = Some(bytes.into());
        self
    }

    /// Names the wait; see [`SuspendOptions::step`].
    #[must_use]
    pub fn step(mut self, name: impl Into<String>) -> Self {
        self.step = Some(name.into());
        self
    }

    /// The name of the wait: the given one, else a digest of what it waits for, where and how long.
    pub(crate) fn name(&self) -> String {
        if let Some(name) = &self.step {
            return name.clone();
        }
        let waitpoints: Vec<&str> = self.waitpoints.iter().map(|spec| spec.key.as_str()).collect();
        let condition = serde_json::to_string(&self.condition).expect("a condition becomes JSON");
        let said = (&self.reason_code, waitpoints, condition, self.timeout_ms, self.timeout_behavior.as_str());
        let said = serde_json::to_vec(&(said, &self.continuation)).expect("texts and numbers become JSON");
        format!("wait {}", hex::encode(&Sha256::digest(said)[..12]))
    }

    /// Refuses what needs no engine to be refused.
    fn check(&self) -> Result<SuspensionReason, SdkError> {
        let refuse = |field: &str, message: String| SdkError::config("suspend", field, message);
        self.condition.check().map_err(|error| refuse("condition", format!("is refused: {error}")))?;
        let known = SuspensionReason::ALL.iter().copied().find(|reason| reason.as_str() == self.reason_code);
        known.ok_or_else(|| {
            let words: Vec<&str> = SuspensionReason::ALL.iter().map(|reason| reason.as_str()).collect();
            refuse("reason_code", format!("must be one of {}, got {:?}", words.join(", "), self.reason_code))
        })
    }
}

/// An answer that no engine gives.
pub(crate) fn unexpected(what: &str) -> SdkError {
    EngineError::Transport { kind: TransportKind::Defect, detail: format!("the engine answered with {what}") }.into()
}

impl TaskCore {
    /// Suspends under this task's lease. Every repetition of one call carries the same request id, and so asks for the same
    /// waitpoints and tokens.
    pub(crate) async fn suspend(&self, options: SuspendOptions) -> Result<Suspended, SdkError> {
        let reason = options.check()?;
        self.settle_pending().await?;
        let suspending = Suspending {
            reason,
            wait: Some(options.name()),
            step: None,
            waitpoints: options.waitpoints,
            adopt: options.adopt,
            condition: options.condition,
            timeout_ms: options.timeout_ms,
            timeout_behavior: options.timeout_behavior,
            continuation: options.continuation,
            request_id: Uuid::now_v7(),
        };
        let reach = self.backend.reach();
        let mut answer = self.repeat(|| reach.suspend(self.lease.at, &suspending)).await?;
        match &mut answer {
            Suspended::Waiting(suspension) => {
                for waitpoint in &mut suspension.waitpoints {
                    if let Some(tokens) = self.pending.tokens(waitpoint.waitpoint_id) {
                        waitpoint.tokens = tokens;
                    }
                }
                self.set_aside();
            }
            // What was pending is closed: its signals are in the answer.
            Suspended::AlreadySatisfied { .. } | Suspended::Done(_) => self.pending.clear(),
        }
        Ok(answer)
    }
}

impl ClaimedTask {
    /// Gives the lease back until signals arrive: any signal without matchers, that one with one, all of them with more.
    ///
    /// Waits at the waitpoints of [`ClaimedTask::create_pending_waitpoint`], and opens one when there is none. Signals that came
    /// early count; when they are enough, the task comes back with its lease. `reason_code` is one of the engine's words
    /// (`waiting_for_signal`, `waiting_for_approval`, …); another is refused before anything is sent.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use ff_sdk::task::{ConditionMatcher, Signal, SignalOutcome, SuspendOutcome, TimeoutBehavior};
    /// # let engine = ff_sdk::testing::TestEngine::start().await?;
    /// # let id = engine.submit("order", b"{}").await?;
    /// # let worker = engine.worker("w-1").await?;
    ///
    /// let task = worker.claim_next().await?.expect("one execution waits");
    /// let paid = [ConditionMatcher { signal_name: "paid".to_owned() }];
    /// let outcome = task.suspend("waiting_for_signal", &paid, Some(60_000), TimeoutBehavior::Fail).await?;
    /// let SuspendOutcome::Suspended { waitpoint_id, waitpoint_token, .. } = outcome else { panic!("nothing came early") };
    ///
    /// let signal = Signal {
    ///     signal_name: "paid".to_owned(),
    ///     signal_category: String::new(),
    ///     payload: Some(b"100".to_vec()),
    ///     source_type: "bank".to_owned(),
    ///     source_identity: String::new(),
    ///     idempotency_key: None,
    ///     waitpoint_token,
    /// };
    /// let delivered = worker.deliver_signal(&id, &waitpoint_id, signal).await?;
    /// assert!(matches!(delivered, SignalOutcome::TriggeredResume { .. }));
    ///
    /// let task = worker.claim_next().await?.expect("it goes on");
    /// assert_eq!(task.resume_signals().await?[0].payload.as_deref(), Some(b"100".as_slice()));
    /// task.complete(None).await?;
    /// # Ok::<(), ff_sdk::SdkError>(())
    /// # }).unwrap();
    /// ```
    pub async fn suspend(
        self,
        reason_code: &str,
        matchers: &[ConditionMatcher],
        timeout_ms: Option<u64>,
        timeout_behavior: TimeoutBehavior,
    ) -> Result<SuspendOutcome, SdkError> {
        let condition = Condition::from_matchers(matchers.iter().map(|matcher| &matcher.signal_name));
        let options = SuspendOptions { timeout_ms, timeout_behavior, condition, ..SuspendOptions::new(reason_code) };
        match self.suspend_with(options).await? {
            SuspendWithOutcome::Suspended(suspension) => {
                let mut open = suspension.waitpoints.into_iter();
                let first = open.find_map(|waitpoint| {
                    let token = waitpoint.tokens.into_iter().next()?.token;
                    Some((waitpoint.waitpoint_id, waitpoint.key, token))
                });
                let (waitpoint_id, waitpoint_key, waitpoint_token) =
                    first.ok_or_else(|| unexpected("a suspension without a token"))?;
                let suspension_id = suspension.suspension_id;
                Ok(SuspendOutcome::Suspended { suspension_id, waitpoint_id, waitpoint_key, waitpoint_token })
            }
            SuspendWithOutcome::AlreadySatisfied { task, signals, suspension_id } => {
                Ok(SuspendOutcome::AlreadySatisfied { task, signals, suspension_id })
            }
        }
    }

    /// Like [`ClaimedTask::suspend`], with waitpoints, approvers, a tree of conditions, and a continuation.
    pub async fn suspend_with(self, options: SuspendOptions) -> Result<SuspendWithOutcome, SdkError> {
        match self.core().suspend(options).await {
            Ok(Suspended::Waiting(suspension)) => {
                self.abandon();
                Ok(SuspendWithOutcome::Suspended(suspension))
            }
            Ok(Suspended::AlreadySatisfied { suspension_id, signals }) => {
                Ok(SuspendWithOutcome::AlreadySatisfied { task: self, signals, suspension_id })
            }
            Ok(Suspended::Done(resume)) => Ok(SuspendWithOutcome::AlreadySatisfied {
                task: self,
                signals: resume.signals,
                suspension_id: resume.suspension_id,
            }),
            Err(error) => {
                // Nothing was sent: that the task is dropped is worth its warning.
                if !matches!(error, SdkError::Config { .. }) {
                    self.abandon();
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_would_refuse_is_refused_by_name_before_the_wire() {
        let field = |options: SuspendOptions| match options.check() {
            Err(SdkError::Config { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(field(SuspendOptions::new("bored")).as_deref(), Some("reason_code"));
        let empty = SuspendOptions::new("manual_pause").condition(Condition::AnyOf(Vec::new()));
        assert_eq!(field(empty).as_deref(), Some("condition"));
        for reason in SuspensionReason::ALL {
            assert_eq!(SuspendOptions::new(reason.as_str()).check().unwrap(), *reason);
        }
    }
}
