//! Suspensions, waitpoints and signals, whichever way the engine is reached.

use ff_api::suspensions::{SuspendAnswer, SuspendBody, SuspendTask, WaitpointBody};
use ff_api::waitpoints::{CreateWaitpoint, CreateWaitpointBody, DeliverSignal, DeliveryOutcome, SignalBody};
use ff_api::{Ask, Encoding, Payload};
use ff_core::condition::Condition;
use ff_core::types::{ExecutionId, SignalId, SuspensionId, TimestampMs, WaitpointId};
use ff_engine::{OpenedWaitpoint, WaitpointSpec};
use ff_script::generated::{self, SuspensionReason};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{LeaseRef, Reach};
use crate::SdkError;
use crate::waits::{Resume, ResumeSignal, Signal, SignalOutcome, Suspension, TimeoutBehavior, unexpected};

/// What a task asks to wait for.
#[derive(Clone, Debug)]
pub struct Suspending {
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
    pub wait: Option<String>,
    /// Makes it a step, which outlives the attempt.
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
    /// The wait of this step was over before; the lease is still held.
    Done(Box<Resume>),
}

/// The two fields that carry these bytes.
fn written(bytes: Option<&[u8]>) -> (Option<Box<RawValue>>, Option<Encoding>) {
    bytes.map(|bytes| Payload::of(bytes.to_vec()).written()).unzip()
}

/// A waitpoint to open.
fn open(spec: &WaitpointSpec) -> WaitpointBody {
    WaitpointBody {
        key: Some(spec.key.clone()),
        expires_in_ms: spec.expires_in_ms,
        allowed_signals: some(&spec.allowed_signals),
        approvers: some(&spec.approvers),
        uses: spec.uses,
        ..WaitpointBody::default()
    }
}

fn create_body(lease: LeaseRef, spec: &WaitpointSpec, request_id: Uuid) -> CreateWaitpointBody {
    CreateWaitpointBody {
        fence: lease.fence(),
        key: spec.key.clone(),
        expires_in_ms: spec.expires_in_ms,
        allowed_signals: some(&spec.allowed_signals),
        approvers: some(&spec.approvers),
        uses: spec.uses,
        step: None,
        waitpoint_id: None,
        request_id: Some(request_id.to_string()),
    }
}

fn some(names: &[String]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.to_vec())
}

fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl Reach {
    /// Sets a running attempt aside until its condition is met. The same request id answers the same waitpoints and tokens.
    pub(crate) async fn suspend(&self, lease: LeaseRef, suspending: &Suspending) -> Result<Suspended, SdkError> {
        let (continuation, continuation_encoding) = written(suspending.continuation.as_deref());
        let pending = |id: &WaitpointId| WaitpointBody { waitpoint_id: Some(*id), ..WaitpointBody::default() };
        let waitpoints = suspending.waitpoints.iter().map(open).chain(suspending.adopt.iter().map(pending));
        let body = SuspendBody {
            fence: lease.fence(),
            reason: suspending.reason,
            waitpoints: Some(waitpoints.collect()),
            condition: Some(suspending.condition.clone()),
            timeout_ms: suspending.timeout_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
            timeout_behavior: Some(generated::TimeoutBehavior::from(suspending.timeout_behavior).into()),
            continuation,
            continuation_encoding,
            wait: suspending.wait.clone(),
            step: suspending.step.clone(),
            request_id: Some(suspending.request_id.to_string()),
        };
        let answer = self.ask(Ask::<SuspendTask>::with(lease.execution_id, body)).await;
        Ok(match answer.map_err(|error| self.of_keys("suspend", error))? {
            SuspendAnswer::Suspended { suspension_id, waitpoints, timeout_at, .. } => {
                let timeout_at = timeout_at.map(TimestampMs);
                Suspended::Waiting(Suspension { suspension_id, waitpoints, timeout_at })
            }
            SuspendAnswer::AlreadySatisfied { suspension_id, signals, .. } => {
                let signals = signals.into_iter().map(ResumeSignal::from).collect();
                Suspended::AlreadySatisfied { suspension_id, signals }
            }
            SuspendAnswer::Done { resume, .. } => Suspended::Done(Box::new(Resume::try_from(*resume)?)),
        })
    }

    /// Opens a waitpoint while the attempt runs. The same request id answers the same waitpoint and tokens.
    pub(crate) async fn create_waitpoint(
        &self,
        lease: LeaseRef,
        spec: &WaitpointSpec,
        request_id: Uuid,
    ) -> Result<OpenedWaitpoint, SdkError> {
        let body = create_body(lease, spec, request_id);
        let opened = self.ask(Ask::<CreateWaitpoint>::with(lease.execution_id, body)).await;
        opened.map_err(|error| self.of_keys("create_pending_waitpoint", error))
    }

    /// Opens a waitpoint for the wait of a step. One that is open already has no tokens in the answer, unless it is named by
    /// `anew`: then it gets new ones. Nothing is answered when the wait is over.
    pub(crate) async fn create_step_waitpoint(
        &self,
        lease: LeaseRef,
        spec: &WaitpointSpec,
        step: &str,
        anew: Option<WaitpointId>,
        request_id: Uuid,
    ) -> Result<Option<OpenedWaitpoint>, SdkError> {
        let body = CreateWaitpointBody {
            step: Some(step.to_owned()),
            waitpoint_id: anew,
            ..create_body(lease, spec, request_id)
        };
        let opened = self.ask(Ask::<CreateWaitpoint>::with(lease.execution_id, body)).await;
        let opened = opened.map_err(|error| self.of_keys("create_waitpoint", error))?;
        Ok((!opened.done).then_some(opened))
    }

    /// Delivers a signal under a waitpoint token; the same signal id is answered with the first outcome.
    pub(crate) async fn deliver_signal(
        &self,
        execution_id: ExecutionId,
        waitpoint_id: WaitpointId,
        signal_id: SignalId,
        signal: &Signal,
    ) -> Result<SignalOutcome, SdkError> {
        let (payload, payload_encoding) = written(signal.payload.as_deref());
        let body = SignalBody {
            execution_id,
            signal_id: Some(signal_id),
            name: signal.signal_name.clone(),
            payload,
            payload_encoding,
            source: said(&signal.source_type),
            source_identity: said(&signal.source_identity),
            category: said(&signal.signal_category),
            correlation_id: None,
            idempotency_key: signal.idempotency_key.clone(),
            token: Some(signal.waitpoint_token.clone()),
        };
        let delivered = match self.ask(Ask::<DeliverSignal>::with(waitpoint_id, body)).await {
            Err(error) if is_invalid_token(&error) => return Err(invalid_token()),
            answer => answer.map_err(|error| self.of_keys("deliver_signal", error))?,
        };
        let signal_id = delivered.signal_id;
        Ok(match delivered.outcome {
            DeliveryOutcome::TriggeredResume => SignalOutcome::TriggeredResume { signal_id },
            DeliveryOutcome::Duplicate => SignalOutcome::Duplicate { existing_signal_id: signal_id },
            DeliveryOutcome::Accepted => {
                let effect = delivered.effect.ok_or_else(|| unexpected("an accepted signal without an effect"))?;
                SignalOutcome::Accepted { signal_id, effect }
            }
        })
    }

    /// Keys of this process that cannot be used are a problem of its settings; the text names the file and what to do with it.
    fn of_keys(&self, context: &str, error: SdkError) -> SdkError {
        match error {
            SdkError::Http { code: Some(code), detail, .. } if code == "keys_unavailable" && self.is_in_process() => {
                SdkError::config(context, "keys", detail)
            }
            error => error,
        }
    }
}

/// The refusal of a token that was not signed with one of the store's keys.
fn invalid_token() -> SdkError {
    ff_core::EngineError::Validation {
        kind: ff_core::error::ValidationKind::Refused(ff_core::ErrorCode::InvalidToken),
        detail: "the token was not signed with a key of this store".to_owned(),
    }
    .into()
}

/// The engine says so, as a code of its own or as one of the API.
fn is_invalid_token(error: &SdkError) -> bool {
    match error {
        SdkError::Http { code: Some(code), .. } => code == "invalid_token",
        SdkError::Engine(error) => error.error_code() == Some(ff_core::ErrorCode::InvalidToken),
        _ => false,
    }
}
