//! Waitpoints and the signals that arrive at them.

use ff_core::types::{ExecutionId, SignalId, SuspensionId, WaitpointId, WaitpointToken};
use ff_script::generated::{self, ApproverState, SignalEffect, SuspensionReason, WaitpointState};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::access::{Access, FOLLOW, LOOK, STEER, WORK};
use crate::condition::{in_words, tree};
use crate::operation::{fenced, operations};
use crate::page::Listed;
use crate::parts::{self, Id};
use crate::payload::{Encoding, with_payloads};
use crate::tasks::Fence;
#[cfg(feature = "openapi")]
use crate::{parts::IdempotencyKey, vocabulary};

/// A waitpoint as an operator sees it: its approvers, and how far the wait is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Waitpoint {
    /// The waitpoint.
    pub waitpoint_id: WaitpointId,
    /// The execution that opened it.
    pub execution_id: ExecutionId,
    /// The execution's namespace.
    pub namespace: String,
    /// The execution's lane.
    pub lane: String,
    /// The execution's kind.
    pub kind: String,
    /// Its name in the suspension.
    pub key: String,
    /// Whether the execution waits at it.
    pub state: WaitpointState,
    /// The suspension that waits at it.
    pub suspension_id: Option<SuspensionId>,
    /// Why the execution waits.
    pub reason: Option<SuspensionReason>,
    /// When it was opened.
    pub created_at: i64,
    /// When it closes by itself.
    pub expires_at: Option<i64>,
    /// When it was closed.
    pub closed_at: Option<i64>,
    /// Why it was closed.
    pub closed_reason: Option<String>,
    /// The names of signals it takes; any name when absent.
    pub allowed_signals: Option<Vec<String>>,
    /// Its approvers.
    pub approvers: Vec<ApproverState>,
    /// How many came.
    pub signals: i64,
    /// The condition as it was given, with what counted so far.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub condition: Value,
    /// The same in words.
    pub progress: Option<String>,
}

impl From<generated::Waitpoint> for Waitpoint {
    fn from(waitpoint: generated::Waitpoint) -> Self {
        let waits = !waitpoint.condition.is_empty();
        Self {
            waitpoint_id: waitpoint.waitpoint_id,
            execution_id: waitpoint.execution_id,
            namespace: waitpoint.namespace,
            lane: waitpoint.lane,
            kind: waitpoint.kind,
            key: waitpoint.key,
            state: waitpoint.state,
            suspension_id: waitpoint.suspension_id,
            reason: waitpoint.reason,
            created_at: waitpoint.created_at,
            expires_at: waitpoint.expires_at,
            closed_at: waitpoint.closed_at,
            closed_reason: waitpoint.closed_reason,
            allowed_signals: waitpoint.allowed_signals,
            approvers: waitpoint.approvers.into_iter().collect(),
            signals: waitpoint.signals,
            progress: waits.then(|| in_words(&waitpoint.condition)),
            condition: tree(&waitpoint.condition),
        }
    }
}

/// A waitpoint that was opened now, with the tokens that are shown this once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OpenedWaitpoint {
    /// The waitpoint.
    pub waitpoint_id: WaitpointId,
    /// Its name in the suspension.
    pub key: String,
    /// When it closes by itself.
    pub expires_at: Option<i64>,
    /// Its tokens; none when it was opened earlier.
    pub tokens: Vec<IssuedToken>,
    /// The wait of its step is over: nothing was opened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
}

/// A token and its approver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IssuedToken {
    /// The approver it was made for.
    pub approver: Option<String>,
    /// The token.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    #[serde(serialize_with = "reveal")]
    pub token: WaitpointToken,
}

/// A new token of a waitpoint, and its approver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReissuedToken {
    /// The waitpoint.
    pub waitpoint_id: WaitpointId,
    /// The approver it was made for.
    pub approver: Option<String>,
    /// The token.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    #[serde(serialize_with = "reveal")]
    pub token: WaitpointToken,
}

fn reveal<S: Serializer>(token: &WaitpointToken, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(token.as_str())
}

fn reveal_some<S: Serializer>(token: &Option<WaitpointToken>, serializer: S) -> Result<S::Ok, S::Error> {
    token.as_ref().map(WaitpointToken::as_str).serialize(serializer)
}

/// A wrong value is not repeated in the error: it may be a token of another type.
fn secret<'de, D: Deserializer<'de>>(value: D) -> Result<Option<WaitpointToken>, D::Error> {
    Option::<String>::deserialize(value)
        .map(|text| text.map(WaitpointToken::new))
        .map_err(|_| serde::de::Error::custom("must be text"))
}

with_payloads! {
    /// A signal that came.
    pub struct Signal {
        /// The signal.
        signal_id: SignalId,
        /// What it says.
        name: String,
    }
    payloads {
        /// What it carries.
        payload: Option<Vec<u8>> as payload_encoding (required = false),
    }
    then {
        /// Where it came from.
        source: Option<String>,
        /// Its sender there.
        source_identity: Option<String>,
        /// What kind of signal it is.
        category: Option<String>,
        /// What it belongs to.
        correlation_id: Option<String>,
        /// The waitpoint at which it arrived.
        waitpoint_id: Option<WaitpointId>,
        /// The waitpoint's name.
        waitpoint_key: Option<String>,
        /// The approver whose token it came with.
        approver: Option<String>,
        /// When it arrived.
        received_at: i64,
    }
}

impl From<generated::Signal> for Signal {
    fn from(signal: generated::Signal) -> Self {
        let encoding = Encoding::of_stored(signal.payload_encoding.as_deref());
        Self {
            signal_id: signal.signal_id,
            name: signal.name,
            payload_encoding: signal.payload.is_some().then_some(encoding),
            payload: signal.payload.map(|bytes| bytes.0),
            source: signal.source,
            source_identity: signal.source_identity,
            category: signal.category,
            correlation_id: signal.correlation_id,
            waitpoint_id: signal.waitpoint_id,
            waitpoint_key: signal.waitpoint_key,
            approver: signal.approver,
            received_at: signal.received_at,
        }
    }
}

/// A waitpoint to open.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWaitpointBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// Its name in the suspension.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::WaitpointKey))]
    pub key: String,
    /// It closes by itself so long from now.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<i64>,
    /// The names of signals it takes; the default is any.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::SignalName>>, max_items = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_signals: Option<Vec<String>>,
    /// Each gets a token of its own; by default there is one token.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::Approver>>, max_items = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Vec<String>>,
    /// How many signals a token delivers.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
    /// The step whose wait it belongs to: it outlives the attempt. One that is open already is answered without tokens.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::StepName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The step's open waitpoint: it gets new tokens, and those it had stop working.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waitpoint_id: Option<WaitpointId>,
    /// The same id opens the same waitpoint once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A pending waitpoint that is given up.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CloseWaitpointBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// Taken and not used: a repetition closes the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A waitpoint was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WaitpointClosed {
    /// The task's execution.
    pub execution_id: ExecutionId,
    /// The waitpoint.
    pub waitpoint_id: WaitpointId,
    /// What happened.
    pub outcome: CloseOutcome,
    /// The same call had been made before; nothing happened twice.
    pub replayed: bool,
}

/// What became of a waitpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CloseOutcome {
    /// It takes no signals any more.
    Closed,
}

/// The signals of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskSignals {
    /// The task's execution.
    pub execution_id: ExecutionId,
    /// The signals, in order of arrival.
    pub signals: Vec<Signal>,
}

/// Which waitpoints: closed ones are listed with their execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum InboxState {
    /// Those that take signals.
    Open,
}

/// Which waitpoints to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct InboxQuery {
    /// Only open ones can be asked for, which is the default.
    #[cfg_attr(feature = "openapi", param(inline))]
    pub state: Option<InboxState>,
    /// Those of a namespace.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Namespace>))]
    pub namespace: Option<String>,
    /// How many; the default is 100.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Which token to make anew.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReissueBody {
    /// The approver whose token it is; absent for the one token of a waitpoint without approvers.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Approver>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
}

/// A signal to deliver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SignalBody {
    /// The execution that waits.
    pub execution_id: ExecutionId,
    /// What it says.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::SignalName))]
    pub name: String,
    /// What it carries.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
    /// How `payload` carries its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_encoding: Option<Encoding>,
    /// Where it comes from.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Source>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its sender there.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Source>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_identity: Option<String>,
    /// What kind of signal it is.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Source>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// What it belongs to.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::CorrelationId>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The same key with the same body is the same signal.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::IdempotencyKey>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The same in every repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_id: Option<SignalId>,
    /// The waitpoint's token; `Authorization: Waitpoint <token>` says the same.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    #[serde(
        default,
        deserialize_with = "secret",
        serialize_with = "reveal_some",
        skip_serializing_if = "Option::is_none"
    )]
    pub token: Option<WaitpointToken>,
}

/// What became of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignalDelivered {
    /// What happened.
    pub outcome: DeliveryOutcome,
    /// The signal; the first one's when it is a duplicate.
    pub signal_id: SignalId,
    /// What it did to the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<SignalEffect>,
}

/// How a signal was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryOutcome {
    /// It is kept.
    Accepted,
    /// It was what the execution waited for.
    TriggeredResume,
    /// It had come before.
    Duplicate,
}

operations! {
    /// Opens a waitpoint while the attempt runs; signals that come before the suspend are kept.
    CreateWaitpoint waitpoint_create: post "/v1/tasks/{id}/waitpoints", WORK;
    at (Id);
    takes CreateWaitpointBody;
    returns OpenedWaitpoint: (status = 200, body = OpenedWaitpoint);
    fails fenced!["keys_unavailable", "step_changed", "steps_full"];

    /// The worker gives up a pending waitpoint.
    CloseWaitpoint waitpoint_close: post "/v1/tasks/{id}/waitpoints/{waitpoint}/close", WORK;
    at (Id, parts::Waitpoint);
    takes CloseWaitpointBody;
    returns WaitpointClosed: (status = 200, body = WaitpointClosed);
    fails fenced!["waitpoint_not_found"];

    /// The signals that let the attempt go on, in order of arrival.
    ListSignals signal_list: get "/v1/tasks/{id}/signals", WORK;
    at (Id);
    returns TaskSignals: (status = 200, body = TaskSignals);
    fails &["execution_not_found"];

    /// Open waitpoints, oldest first.
    ListWaitpoints waitpoint_list: get "/v1/waitpoints", LOOK;
    asks InboxQuery;
    returns Listed<Waitpoint>: (status = 200, body = Listed<Waitpoint>);

    /// One waitpoint, open or closed.
    GetWaitpoint waitpoint_get: get "/v1/waitpoints/{waitpoint}", LOOK;
    at (parts::Waitpoint);
    returns Waitpoint: (status = 200, body = Waitpoint);
    fails &["waitpoint_not_found"];

    /// The waitpoints of an execution: open ones, and those kept after they closed.
    ListExecutionWaitpoints execution_list_waitpoints: get "/v1/executions/{id}/waitpoints", FOLLOW;
    at (Id);
    returns Listed<Waitpoint>: (status = 200, body = Listed<Waitpoint>);
    fails &["execution_not_found"];

    /// Makes a new token for one approver, or the one token of a waitpoint without approvers; the old one stops working.
    ReissueToken waitpoint_reissue_token: post "/v1/waitpoints/{waitpoint}/tokens", STEER;
    at (parts::Waitpoint);
    takes ReissueBody;
    returns ReissuedToken: (status = 201, description = "The new token, told this once.", body = ReissuedToken);
    fails &["waitpoint_not_found", "waitpoint_not_open", "keys_unavailable"];

    /// Delivers a signal under the token of a waitpoint.
    DeliverSignal signal_deliver: post "/v1/waitpoints/{waitpoint}/signals", Access::WaitpointToken;
    at (parts::Waitpoint);
    takes SignalBody;
    reads (IdempotencyKey);
    returns SignalDelivered: (status = 200, body = SignalDelivered);
    fails &["waitpoint_not_open", "invalid_token", "signal_not_allowed", "signals_full", "keys_unavailable"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_and_never_shown() {
        let issued = IssuedToken { approver: None, token: WaitpointToken::new("secret-text") };
        assert!(!format!("{issued:?}").contains("secret-text"));
        assert_eq!(serde_json::to_string(&issued).unwrap(), r#"{"approver":null,"token":"secret-text"}"#);
    }
}
