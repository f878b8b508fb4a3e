//! Waits behind `ff server`, which mints and verifies the tokens.

use std::time::Duration;

use async_trait::async_trait;
use ff_api::Ask;
use ff_api::suspensions::{SuspendAnswer, SuspendBody, SuspendTask, WaitpointBody};
use ff_api::waitpoints::{
    CreateWaitpoint, CreateWaitpointBody, DeliverSignal, DeliveryOutcome, ListSignals, SignalBody,
};
use ff_api::{Encoding, Payload};
use ff_core::types::{ExecutionId, SignalId, TimestampMs, WaitpointId};
use ff_engine::{IssuedToken, OpenedWaitpoint, WaitpointSpec};
use ff_script::generated::TimeoutBehavior;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::http::Http;
use super::waits::invalid_token;
use super::{LeaseRef, Suspended, Suspending, Waits};
use crate::SdkError;
use crate::waits::{ResumeSignal, Signal, SignalOutcome, Suspension, unexpected};

/// The bytes of a field and its encoding.
pub(super) fn bytes(
    field: &str,
    value: Option<&RawValue>,
    encoding: Option<Encoding>,
) -> Result<Option<Vec<u8>>, SdkError> {
    let read = Payload::read(field, value, encoding);
    Ok(read.map_err(|error| unexpected(&format!("a payload: {error}")))?.map(|payload| payload.bytes))
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

fn some(names: &[String]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.to_vec())
}

fn opened(opened: ff_api::waitpoints::OpenedWaitpoint) -> OpenedWaitpoint {
    let issued = |one: ff_api::waitpoints::IssuedToken| IssuedToken { approver: one.approver, token: one.token };
    OpenedWaitpoint {
        waitpoint_id: opened.waitpoint_id,
        key: opened.key,
        expires_at: opened.expires_at,
        tokens: opened.tokens.into_iter().map(issued).collect(),
    }
}

fn signal(signal: ff_api::waitpoints::Signal) -> Result<ResumeSignal, SdkError> {
    Ok(ResumeSignal {
        signal_id: signal.signal_id,
        signal_name: signal.name,
        signal_category: signal.category,
        payload: bytes("payload", signal.payload.as_deref(), signal.payload_encoding)?,
        source_type: signal.source,
        source_identity: signal.source_identity,
        correlation_id: signal.correlation_id,
        waitpoint_id: signal.waitpoint_id,
        waitpoint_key: signal.waitpoint_key,
        approver: signal.approver,
        received_at: TimestampMs(signal.received_at),
    })
}

pub(super) fn signals(all: Vec<ff_api::waitpoints::Signal>) -> Result<Vec<ResumeSignal>, SdkError> {
    all.into_iter().map(signal).collect()
}

fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[async_trait]
impl Waits for Http {
    async fn suspend(&self, lease: LeaseRef, suspending: &Suspending) -> Result<Suspended, SdkError> {
        let continuation = suspending.continuation.clone().map(|bytes| Payload::of(bytes).written());
        let (continuation, continuation_encoding) = continuation.unzip();
        let pending = |id: &WaitpointId| WaitpointBody { waitpoint_id: Some(*id), ..WaitpointBody::default() };
        let body = SuspendBody {
            fence: lease.fence(),
            reason: suspending.reason,
            waitpoints: Some(
                suspending.waitpoints.iter().map(open).chain(suspending.adopt.iter().map(pending)).collect(),
            ),
            condition: Some(suspending.condition.clone()),
            timeout_ms: suspending.timeout_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
            timeout_behavior: Some(TimeoutBehavior::from(suspending.timeout_behavior).into()),
            continuation,
            continuation_encoding,
            step: suspending.step.clone(),
            request_id: Some(suspending.request_id.to_string()),
        };
        Ok(match self.ask(&Ask::<SuspendTask>::with(lease.execution_id, body), Duration::ZERO).await? {
            SuspendAnswer::Suspended { suspension_id, waitpoints, timeout_at, .. } => Suspended::Waiting(Suspension {
                suspension_id,
                waitpoints: waitpoints.into_iter().map(opened).collect(),
                timeout_at: timeout_at.map(TimestampMs),
            }),
            SuspendAnswer::AlreadySatisfied { suspension_id, signals: came, .. } => {
                Suspended::AlreadySatisfied { suspension_id, signals: signals(came)? }
            }
        })
    }

    async fn create_waitpoint(
        &self,
        lease: LeaseRef,
        _namespace: &str,
        spec: &WaitpointSpec,
        request_id: Uuid,
    ) -> Result<OpenedWaitpoint, SdkError> {
        let body = CreateWaitpointBody {
            fence: lease.fence(),
            key: spec.key.clone(),
            expires_in_ms: spec.expires_in_ms,
            allowed_signals: some(&spec.allowed_signals),
            approvers: some(&spec.approvers),
            uses: spec.uses,
            request_id: Some(request_id.to_string()),
        };
        self.ask(&Ask::<CreateWaitpoint>::with(lease.execution_id, body), Duration::ZERO).await.map(opened)
    }

    async fn resume_signals(&self, lease: LeaseRef) -> Result<Vec<ResumeSignal>, SdkError> {
        signals(self.ask(&Ask::<ListSignals>::at(lease.execution_id), Duration::ZERO).await?.signals)
    }

    async fn deliver_signal(
        &self,
        execution_id: ExecutionId,
        waitpoint_id: WaitpointId,
        signal_id: SignalId,
        signal: &Signal,
    ) -> Result<SignalOutcome, SdkError> {
        let payload = signal.payload.clone().map(|bytes| Payload::of(bytes).written());
        let (payload, payload_encoding) = payload.unzip();
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
        let delivered = match self.ask(&Ask::<DeliverSignal>::with(waitpoint_id, body), Duration::ZERO).await {
            Err(error) if is_invalid_token(&error) => return Err(invalid_token()),
            answer => answer?,
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
}

/// The server says so, as a code of its own or as one of the engine's.
fn is_invalid_token(error: &SdkError) -> bool {
    match error {
        SdkError::Http { code: Some(code), .. } => code == "invalid_token",
        SdkError::Engine(error) => error.error_code() == Some(ff_core::ErrorCode::InvalidToken),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_and_taken_as_they_are() {
        let table: &[(&[u8], &str)] = &[
            (b"{}", "json"),
            (br#"{"b":12345678901234567890123,"a":1.0}"#, "json"),
            (b"null", "json"),
            (b"", "base64"),
            (b" {}", "base64"),
            (b"hello", "base64"),
            (&[0, 159], "base64"),
        ];
        for (bytes, expected) in table {
            let (value, encoding) = Payload::of(bytes.to_vec()).written();
            assert_eq!(encoding.as_str(), *expected, "{bytes:?}");
            // A reader takes null for nothing and goes by the encoding.
            let value = Some(value).filter(|value| value.get() != "null");
            assert_eq!(super::bytes("payload", value.as_deref(), Some(encoding)).unwrap().as_deref(), Some(*bytes));
        }
        assert_eq!(super::bytes("payload", None, None).unwrap(), None);
    }
}
