//! Waits behind `ff server`, which mints and verifies the tokens.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ff_core::condition::Condition;
use ff_core::types::{ExecutionId, SignalId, SuspensionId, TimestampMs, WaitpointId, WaitpointToken};
use ff_engine::{IssuedToken, OpenedWaitpoint, WaitpointSpec};
use ff_script::generated::SignalEffect;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::http::{Http, fence};
use super::http_flows::ChildShape;
use super::waits::invalid_token;
use super::{LeaseRef, Suspended, Suspending, Waits, is_json};
use crate::SdkError;
use crate::snapshot::{SuspensionSnapshot, WaitpointSnapshot};
use crate::waits::{Resume, ResumeCause, ResumeSignal, Signal, SignalOutcome, Suspension, unexpected};

/// Bytes as a field and its encoding. JSON keeps the text it has, anything else is base64.
pub(super) fn shown(bytes: &[u8]) -> (Box<RawValue>, &'static str) {
    let json = std::str::from_utf8(bytes).ok().filter(|_| is_json(bytes));
    if let Some(json) = json.and_then(|text| RawValue::from_string(text.to_owned()).ok()) {
        return (json, "json");
    }
    let text = format!("\"{}\"", STANDARD.encode(bytes));
    (RawValue::from_string(text).expect("base64 in quotes is JSON"), "base64")
}

/// The bytes of a field and its encoding. A field that is null and has an encoding is the JSON value null.
pub(super) fn taken(
    field: &str,
    value: Option<&RawValue>,
    encoding: Option<&str>,
) -> Result<Option<Vec<u8>>, SdkError> {
    match (value, encoding) {
        (None, encoding) => Ok(encoding.map(|_| b"null".to_vec())),
        (Some(value), Some("base64")) => {
            let decoded = serde_json::from_str::<String>(value.get()).ok().and_then(|text| STANDARD.decode(text).ok());
            decoded.map(Some).ok_or_else(|| unexpected(&format!("a {field} that is not base64")))
        }
        (Some(value), _) => Ok(Some(value.get().as_bytes().to_vec())),
    }
}

#[derive(Serialize)]
struct WaitpointBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    waitpoint_id: Option<WaitpointId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_ms: Option<i64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    allowed_signals: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    approvers: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    uses: Option<u32>,
}

impl<'a> WaitpointBody<'a> {
    fn open(spec: &'a WaitpointSpec) -> Self {
        Self {
            waitpoint_id: None,
            key: Some(&spec.key),
            expires_in_ms: spec.expires_in_ms,
            allowed_signals: &spec.allowed_signals,
            approvers: &spec.approvers,
            uses: spec.uses,
        }
    }

    fn pending(id: WaitpointId) -> Self {
        Self {
            waitpoint_id: Some(id),
            key: None,
            expires_in_ms: None,
            allowed_signals: &[],
            approvers: &[],
            uses: None,
        }
    }
}

#[derive(Serialize)]
struct SuspendBody<'a> {
    fence: Value,
    reason: &'static str,
    waitpoints: Vec<WaitpointBody<'a>>,
    condition: &'a Condition,
    timeout_ms: Option<u64>,
    timeout_behavior: &'static str,
    continuation: Option<Box<RawValue>>,
    continuation_encoding: Option<&'static str>,
    step: Option<&'a str>,
    request_id: Uuid,
}

#[derive(Serialize)]
struct CreateBody<'a> {
    fence: Value,
    #[serde(flatten)]
    waitpoint: WaitpointBody<'a>,
    request_id: Uuid,
}

#[derive(Serialize)]
struct SignalBody<'a> {
    execution_id: ExecutionId,
    signal_id: SignalId,
    name: &'a str,
    payload: Option<Box<RawValue>>,
    payload_encoding: Option<&'static str>,
    source: Option<&'a str>,
    source_identity: Option<&'a str>,
    category: Option<&'a str>,
    idempotency_key: Option<&'a str>,
    token: &'a str,
}

#[derive(Deserialize)]
struct TokenShape {
    approver: Option<String>,
    token: WaitpointToken,
}

#[derive(Deserialize)]
struct OpenedShape {
    waitpoint_id: WaitpointId,
    key: String,
    expires_at: Option<i64>,
    #[serde(default)]
    tokens: Vec<TokenShape>,
}

impl From<OpenedShape> for OpenedWaitpoint {
    fn from(opened: OpenedShape) -> Self {
        let issued = |shape: TokenShape| IssuedToken { approver: shape.approver, token: shape.token };
        Self {
            waitpoint_id: opened.waitpoint_id,
            key: opened.key,
            expires_at: opened.expires_at,
            tokens: opened.tokens.into_iter().map(issued).collect(),
        }
    }
}

#[derive(Deserialize)]
struct SignalShape {
    signal_id: SignalId,
    name: String,
    payload: Option<Box<RawValue>>,
    payload_encoding: Option<String>,
    source: Option<String>,
    source_identity: Option<String>,
    category: Option<String>,
    correlation_id: Option<String>,
    waitpoint_id: Option<WaitpointId>,
    waitpoint_key: Option<String>,
    approver: Option<String>,
    received_at: i64,
}

impl SignalShape {
    fn signal(self) -> Result<ResumeSignal, SdkError> {
        Ok(ResumeSignal {
            signal_id: self.signal_id,
            signal_name: self.name,
            signal_category: self.category,
            payload: taken("payload", self.payload.as_deref(), self.payload_encoding.as_deref())?,
            source_type: self.source,
            source_identity: self.source_identity,
            correlation_id: self.correlation_id,
            waitpoint_id: self.waitpoint_id,
            waitpoint_key: self.waitpoint_key,
            approver: self.approver,
            received_at: TimestampMs(self.received_at),
        })
    }
}

fn signals(shapes: Vec<SignalShape>) -> Result<Vec<ResumeSignal>, SdkError> {
    shapes.into_iter().map(SignalShape::signal).collect()
}

/// Why a claimed attempt goes on.
#[derive(Deserialize)]
pub(super) struct ResumeShape {
    suspension_id: SuspensionId,
    cause: String,
    #[serde(default)]
    signals: Vec<SignalShape>,
    continuation: Option<Box<RawValue>>,
    continuation_encoding: Option<String>,
    #[serde(default)]
    children: Vec<ChildShape>,
    #[serde(default)]
    more_children: bool,
    step: Option<String>,
}

impl ResumeShape {
    pub(super) fn resume(self) -> Result<Resume, SdkError> {
        let cause = match self.cause.as_str() {
            "signal" => ResumeCause::Signal,
            "timeout" => ResumeCause::Timeout,
            "operator" => ResumeCause::Operator,
            "children" => ResumeCause::Children,
            "budget" => ResumeCause::Budget,
            other => return Err(unexpected(&format!("the unknown cause of a resume {other:?}"))),
        };
        let encoding = self.continuation_encoding.as_deref();
        Ok(Resume {
            suspension_id: self.suspension_id,
            cause,
            continuation: taken("continuation", self.continuation.as_deref(), encoding)?,
            signals: signals(self.signals)?,
            more: false,
            children: self.children.into_iter().map(ChildShape::child).collect::<Result<_, _>>()?,
            more_children: self.more_children,
            step: self.step,
        })
    }
}

/// What a suspended execution waits for.
#[derive(Deserialize)]
pub(super) struct SuspensionShape {
    suspension_id: SuspensionId,
    reason: String,
    suspended_at: TimestampMs,
    timeout_at: Option<TimestampMs>,
    waitpoints: Vec<OpenedShape>,
}

impl From<SuspensionShape> for SuspensionSnapshot {
    fn from(suspension: SuspensionShape) -> Self {
        let open = |open: OpenedShape| WaitpointSnapshot {
            waitpoint_id: open.waitpoint_id,
            key: open.key,
            expires_at: open.expires_at.map(TimestampMs),
        };
        Self {
            suspension_id: suspension.suspension_id,
            reason: suspension.reason,
            suspended_at: suspension.suspended_at,
            timeout_at: suspension.timeout_at,
            waitpoints: suspension.waitpoints.into_iter().map(open).collect(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum SuspendResult {
    Suspended,
    AlreadySatisfied,
}

/// Not an enum with a tag: the payload of a signal would lose its text on the way through one.
#[derive(Deserialize)]
struct SuspendAnswer {
    outcome: SuspendResult,
    suspension_id: SuspensionId,
    #[serde(default)]
    waitpoints: Vec<OpenedShape>,
    timeout_at: Option<i64>,
    #[serde(default)]
    signals: Vec<SignalShape>,
}

#[derive(Deserialize)]
struct Signals {
    signals: Vec<SignalShape>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Accepted,
    TriggeredResume,
    Duplicate,
}

#[derive(Deserialize)]
struct Delivered {
    outcome: Outcome,
    signal_id: SignalId,
    effect: Option<String>,
}

fn said(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[async_trait]
impl Waits for Http {
    async fn suspend(&self, lease: LeaseRef, suspending: &Suspending) -> Result<Suspended, SdkError> {
        let (continuation, continuation_encoding) = suspending.continuation.as_deref().map(shown).unzip();
        let adopted = suspending.adopt.iter().copied().map(WaitpointBody::pending);
        let body = SuspendBody {
            fence: fence(lease),
            reason: suspending.reason.as_str(),
            waitpoints: suspending.waitpoints.iter().map(WaitpointBody::open).chain(adopted).collect(),
            condition: &suspending.condition,
            timeout_ms: suspending.timeout_ms,
            timeout_behavior: suspending.timeout_behavior.as_str(),
            continuation,
            continuation_encoding,
            step: suspending.step.as_deref(),
            request_id: suspending.request_id,
        };
        let answer: SuspendAnswer = self.post_as(&format!("/v1/tasks/{}/suspend", lease.execution_id), &body).await?;
        let suspension_id = answer.suspension_id;
        Ok(match answer.outcome {
            SuspendResult::Suspended => Suspended::Waiting(Suspension {
                suspension_id,
                waitpoints: answer.waitpoints.into_iter().map(Into::into).collect(),
                timeout_at: answer.timeout_at.map(TimestampMs),
            }),
            SuspendResult::AlreadySatisfied => {
                Suspended::AlreadySatisfied { suspension_id, signals: signals(answer.signals)? }
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
        let body = CreateBody { fence: fence(lease), waitpoint: WaitpointBody::open(spec), request_id };
        let path = format!("/v1/tasks/{}/waitpoints", lease.execution_id);
        Ok(self.post_as::<OpenedShape>(&path, &body).await?.into())
    }

    async fn resume_signals(&self, lease: LeaseRef) -> Result<Vec<ResumeSignal>, SdkError> {
        let answer: Signals = self.get(&format!("/v1/tasks/{}/signals", lease.execution_id)).await?;
        signals(answer.signals)
    }

    async fn deliver_signal(
        &self,
        execution_id: ExecutionId,
        waitpoint_id: WaitpointId,
        signal_id: SignalId,
        signal: &Signal,
    ) -> Result<SignalOutcome, SdkError> {
        let (payload, payload_encoding) = signal.payload.as_deref().map(shown).unzip();
        let body = SignalBody {
            execution_id,
            signal_id,
            name: &signal.signal_name,
            payload,
            payload_encoding,
            source: said(&signal.source_type),
            source_identity: said(&signal.source_identity),
            category: said(&signal.signal_category),
            idempotency_key: signal.idempotency_key.as_deref(),
            token: signal.waitpoint_token.as_str(),
        };
        let delivered: Delivered = match self.post_as(&format!("/v1/waitpoints/{waitpoint_id}/signals"), &body).await {
            Err(error) if is_invalid_token(&error) => return Err(invalid_token()),
            answer => answer?,
        };
        let signal_id = delivered.signal_id;
        Ok(match delivered.outcome {
            Outcome::TriggeredResume => SignalOutcome::TriggeredResume { signal_id },
            Outcome::Duplicate => SignalOutcome::Duplicate { existing_signal_id: signal_id },
            Outcome::Accepted => {
                let effect = delivered.effect.as_deref().and_then(|word| word.parse::<SignalEffect>().ok());
                let effect = effect.ok_or_else(|| unexpected("an accepted signal without a known effect"))?;
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
            let (value, encoding) = shown(bytes);
            assert_eq!(encoding, *expected, "{bytes:?}");
            // A reader takes null for nothing and goes by the encoding.
            let value = Some(value).filter(|value| value.get() != "null");
            assert_eq!(taken("payload", value.as_deref(), Some(encoding)).unwrap().as_deref(), Some(*bytes));
        }
        assert_eq!(taken("payload", None, None).unwrap(), None);
    }
}
