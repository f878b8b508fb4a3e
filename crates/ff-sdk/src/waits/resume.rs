//! Why an attempt goes on, and the signals that let it.

use ff_core::types::{SignalId, SuspensionId, TimestampMs, WaitpointId};
use ff_script::generated;

use crate::snapshot::ChildSnapshot;
use crate::task::TaskCore;
use crate::{ClaimedTask, SdkError};

/// What let a suspended attempt go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResumeCause {
    /// The signals it waited for.
    Signal,
    /// Its timeout, under [`crate::task::TimeoutBehavior::AutoResume`].
    Timeout,
    /// An operator.
    Operator,
    /// Its children have ended.
    Children,
    /// The budget it was parked for has room again.
    Budget,
    /// It rested, and its time has come.
    Timer,
}

impl From<generated::ResumeCause> for ResumeCause {
    fn from(cause: generated::ResumeCause) -> Self {
        match cause {
            generated::ResumeCause::Signal => Self::Signal,
            generated::ResumeCause::Timeout => Self::Timeout,
            generated::ResumeCause::Operator => Self::Operator,
            generated::ResumeCause::Children => Self::Children,
            generated::ResumeCause::Budget => Self::Budget,
            generated::ResumeCause::Timer => Self::Timer,
        }
    }
}

/// Why a claimed attempt goes on after it was suspended; [`ClaimedTask::resume_signals`] has the signals,
/// [`ClaimedTask::resume_children`] the children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The suspension that ended.
    pub suspension_id: SuspensionId,
    /// What ended it.
    pub cause: ResumeCause,
    /// What the attempt left for whoever continues it.
    pub continuation: Option<Vec<u8>>,
    /// The wait that ended, by the name it was suspended under.
    pub step: Option<String>,
    /// The operator who ended the wait of a step.
    pub actor: Option<String>,
    /// The signals that let it go on.
    pub(crate) signals: Vec<ResumeSignal>,
    /// The children that came with the claim.
    pub(crate) children: Vec<ChildSnapshot>,
    /// There are more of them.
    pub(crate) more_children: bool,
}

/// A signal that let an attempt go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeSignal {
    /// Its id.
    pub signal_id: SignalId,
    /// What it says; `timeout` for the one a timeout sends.
    pub signal_name: String,
    /// The kind of signal, as its sender called it.
    pub signal_category: Option<String>,
    /// What it brings.
    pub payload: Option<Vec<u8>>,
    /// Where it comes from, by its sender's account.
    pub source_type: Option<String>,
    /// Who sent it, by their own account. Whom to believe is [`ResumeSignal::approver`].
    pub source_identity: Option<String>,
    /// What it belongs to elsewhere.
    pub correlation_id: Option<String>,
    /// Where it arrived; none for a timeout.
    pub waitpoint_id: Option<WaitpointId>,
    /// The key of that waitpoint.
    pub waitpoint_key: Option<String>,
    /// Whose token it came with, when the waitpoint has approvers.
    pub approver: Option<String>,
    /// When it arrived.
    pub received_at: TimestampMs,
}

impl From<ff_api::waitpoints::Signal> for ResumeSignal {
    fn from(signal: ff_api::waitpoints::Signal) -> Self {
        Self {
            signal_id: signal.signal_id,
            signal_name: signal.name,
            signal_category: signal.category,
            payload: signal.payload,
            source_type: signal.source,
            source_identity: signal.source_identity,
            correlation_id: signal.correlation_id,
            waitpoint_id: signal.waitpoint_id,
            waitpoint_key: signal.waitpoint_key,
            approver: signal.approver,
            received_at: TimestampMs(signal.received_at),
        }
    }
}

impl TaskCore {
    pub(crate) fn resume_signals(&self) -> Vec<ResumeSignal> {
        self.claim.resume.as_ref().map(|resume| resume.signals.clone()).unwrap_or_default()
    }
}

impl ClaimedTask {
    /// Why this attempt goes on; nothing unless it was suspended before this claim.
    #[must_use]
    pub fn resume(&self) -> Option<&Resume> {
        self.core().claim.resume.as_ref()
    }

    /// The signals that let this very attempt go on, in order of arrival; none unless this claim resumes it.
    ///
    /// An attempt that goes on by its timeout finds one signal named `timeout`; by an operator, none.
    pub async fn resume_signals(&self) -> Result<Vec<ResumeSignal>, SdkError> {
        Ok(self.core().resume_signals())
    }
}
