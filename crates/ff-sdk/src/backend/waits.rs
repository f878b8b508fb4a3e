//! The part of the seam that waits: suspending, waitpoints, signals.

use async_trait::async_trait;
use ff_core::condition::Condition;
use ff_core::types::{ExecutionId, Namespace, SignalId, SuspensionId, WaitpointId};
use ff_engine::{OpenedWaitpoint, WaitpointSpec};
use ff_script::generated::SuspensionReason;
use uuid::Uuid;

use super::LeaseRef;
use crate::SdkError;
use crate::waits::{ResumeSignal, Signal, SignalOutcome, Suspension, TimeoutBehavior};

/// What a task asks to wait for.
#[derive(Clone, Debug)]
pub struct Suspending {
    /// The execution's namespace, which tokens are bound to.
    pub namespace: Namespace,
    /// Why.
    pub reason: SuspensionReason,
    /// Waitpoints to open.
    pub waitpoints: Vec<WaitpointSpec>,
    /// The pending waitpoints to wait at; all when empty.
    pub adopt: Vec<WaitpointId>,
    /// What must arrive.
    pub condition: Condition,
    /// How long it may take.
    pub timeout_ms: Option<u64>,
    /// What happens then.
    pub timeout_behavior: TimeoutBehavior,
    /// Names the wait.
    pub step: Option<String>,
    /// What whoever continues the attempt gets.
    pub continuation: Option<Vec<u8>>,
    /// The same in every repetition of one call.
    pub request_id: Uuid,
}

/// What became of a suspend.
#[derive(Clone, Debug)]
pub enum Suspended {
    /// The lease is given back.
    Waiting(Suspension),
    /// Signals that came early are enough; the lease is still held.
    AlreadySatisfied {
        /// The suspension that did not happen.
        suspension_id: SuspensionId,
        /// The signals.
        signals: Vec<ResumeSignal>,
    },
}

/// Suspensions, waitpoints and signals. Object safe; nothing has a default body.
#[async_trait]
pub trait Waits: Send + Sync + 'static {
    /// Sets a running attempt aside until its condition is met. The same request id answers the same waitpoints and tokens.
    async fn suspend(&self, lease: LeaseRef, suspending: &Suspending) -> Result<Suspended, SdkError>;

    /// Opens a waitpoint while the attempt runs. The same request id answers the same waitpoint and tokens.
    async fn create_waitpoint(
        &self,
        lease: LeaseRef,
        namespace: &str,
        spec: &WaitpointSpec,
        request_id: Uuid,
    ) -> Result<OpenedWaitpoint, SdkError>;

    /// The signals that let the leased attempt go on.
    async fn resume_signals(&self, lease: LeaseRef) -> Result<Vec<ResumeSignal>, SdkError>;

    /// Delivers a signal under a waitpoint token; the same signal id is answered with the first outcome.
    async fn deliver_signal(
        &self,
        execution_id: ExecutionId,
        waitpoint_id: WaitpointId,
        signal_id: SignalId,
        signal: &Signal,
    ) -> Result<SignalOutcome, SdkError>;
}

/// The refusal of a token that was not signed with one of the store's keys, the same on every transport.
pub(super) fn invalid_token() -> SdkError {
    ff_core::EngineError::Validation {
        kind: ff_core::error::ValidationKind::Refused(ff_core::ErrorCode::InvalidToken),
        detail: "the token was not signed with a key of this store".to_owned(),
    }
    .into()
}
