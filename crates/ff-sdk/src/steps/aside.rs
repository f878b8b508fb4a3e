//! How an attempt is set aside for a step: the handler says so and returns, then the lease is given back.
//!
//! The handler returns first. A handler that passes over what it was told still holds its lease then, and fails clearly.

use ff_api::Ask;
use ff_api::steps::{SleepBody, SleepOutcome, SleepTask};
use ff_script::generated::{StepKind, SuspensionReason};
use uuid::Uuid;

use super::Came;
use crate::SdkError;
use crate::backend::{Suspended, Suspending};
use crate::task::TaskCore;
use crate::waits::{Condition, ResumeCause, TimeoutBehavior, WaitpointSpec};

/// Why the attempt is set aside.
#[derive(Clone, Debug)]
pub(crate) enum Aside {
    /// A sleep begins.
    Sleep { step: String, until: Option<i64>, ms: Option<i64> },
    /// A failed step is tried again so much later.
    Retry { step: String, ms: i64 },
    /// A step waits for signals.
    Wait { step: String, wait: Box<Wait> },
}

/// What a step waits for.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) reason: SuspensionReason,
    pub(crate) spec: WaitpointSpec,
    pub(crate) condition: Condition,
    pub(crate) timeout_ms: Option<u64>,
}

impl Aside {
    /// The step it is for.
    pub(super) fn step(&self) -> &str {
        match self {
            Self::Sleep { step, .. } | Self::Retry { step, .. } | Self::Wait { step, .. } => step,
        }
    }
}

impl TaskCore {
    /// Gives the lease back for a step; false when that is not needed any more, and the handler can go on.
    pub(crate) async fn go_aside(&self, aside: Aside) -> Result<bool, SdkError> {
        match aside {
            Aside::Sleep { step, until, ms } => self.rest(Some(&step), until, ms).await,
            Aside::Retry { ms, .. } => self.rest(None, None, Some(ms)).await,
            Aside::Wait { step, wait } => self.wait_aside(&step, *wait).await,
        }
    }

    /// Rests until a time. The first rest under a step's name sets its time.
    pub(crate) async fn rest(&self, step: Option<&str>, until: Option<i64>, ms: Option<i64>) -> Result<bool, SdkError> {
        let body = SleepBody {
            fence: self.lease.at.fence(),
            until,
            ms,
            step: step.map(str::to_owned),
            continuation: None,
            continuation_encoding: None,
            request_id: None,
        };
        let (reach, ask) = (self.backend.reach(), Ask::<SleepTask>::with(self.lease.at.execution_id, body));
        let slept = self.repeat(|| reach.ask(ask.clone())).await?;
        if slept.outcome == SleepOutcome::Resting {
            self.set_aside();
            return Ok(true);
        }
        self.steps.not_before(slept.until);
        if let Some(step) = step {
            self.note_over(step, StepKind::Sleep, Some(slept.until), None);
        }
        Ok(false)
    }

    async fn wait_aside(&self, step: &str, wait: Wait) -> Result<bool, SdkError> {
        let suspending = Suspending {
            reason: wait.reason,
            waitpoints: vec![wait.spec],
            adopt: Vec::new(),
            condition: wait.condition,
            timeout_ms: wait.timeout_ms,
            timeout_behavior: TimeoutBehavior::AutoResume,
            wait: None,
            step: Some(step.to_owned()),
            continuation: None,
            request_id: Uuid::now_v7(),
        };
        let reach = self.backend.reach();
        let came = match self.repeat(|| reach.suspend(self.lease.at, &suspending)).await? {
            Suspended::Waiting(_) => {
                self.set_aside();
                return Ok(true);
            }
            Suspended::AlreadySatisfied { signals, .. } => Came { cause: ResumeCause::Signal, signals, actor: None },
            Suspended::Done(resume) => Came::from(*resume),
        };
        self.note_over(step, StepKind::Signal, None, Some(came));
        Ok(false)
    }
}
