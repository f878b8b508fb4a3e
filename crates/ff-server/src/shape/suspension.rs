//! What an execution waits for: the suspension, its waitpoints, how far its condition is, and the signals that came.

use ff_core::types::{ExecutionId, SignalId, SuspensionId, WaitpointId};
use ff_engine::{IssuedToken, OpenedWaitpoint};
use ff_script::generated::{
    ApproverState, ConditionOp, ConditionProgress, OpenWaitpoint, Resume, ResumeCause, Signal, Suspension,
    SuspensionReason, TimeoutBehavior, Waitpoint, WaitpointState,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::child::ChildShape;
use crate::openapi::vocabulary;
use crate::payload::Encoding;
use crate::{continuation, payload};

/// A suspension that has not ended.
#[derive(Serialize, ToSchema)]
pub struct SuspensionShape {
    suspension_id: SuspensionId,
    #[schema(value_type = SuspensionReason)]
    reason: &'static str,
    suspended_at: i64,
    timeout_at: Option<i64>,
    #[schema(value_type = TimeoutBehavior)]
    timeout_behavior: &'static str,
    waitpoints: Vec<OpenWaitpoint>,
    /// The condition as it was given, with what counted so far.
    #[schema(value_type = Option<Object>)]
    condition: Value,
    /// The same in words.
    progress: String,
}

impl From<Suspension> for SuspensionShape {
    fn from(suspension: Suspension) -> Self {
        Self {
            suspension_id: suspension.suspension_id,
            reason: suspension.reason.as_str(),
            suspended_at: suspension.suspended_at,
            timeout_at: suspension.timeout_at,
            timeout_behavior: suspension.timeout_behavior.as_str(),
            condition: tree(&suspension.condition),
            progress: in_words(&suspension.condition),
            waitpoints: suspension.waitpoints.into_iter().collect(),
        }
    }
}

impl SuspensionShape {
    /// What the execution waits for, in a few words for whoever asks why it does not run.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let keys: Vec<&str> = self.waitpoints.iter().map(|waitpoint| waitpoint.key.as_str()).collect();
        let mut facts = vec![
            ("reason", self.reason.to_owned()),
            ("waitpoints", keys.join(", ")),
            ("progress", self.progress.clone()),
        ];
        facts.extend(self.timeout_at.map(|at| ("timeout_at", at.to_string())));
        facts
    }
}

/// A waitpoint as an operator sees it: who may answer, and how far the wait is.
#[derive(Serialize, ToSchema)]
pub struct WaitpointShape {
    waitpoint_id: WaitpointId,
    execution_id: ExecutionId,
    namespace: String,
    lane: String,
    kind: String,
    key: String,
    #[schema(value_type = WaitpointState)]
    state: &'static str,
    suspension_id: Option<SuspensionId>,
    #[schema(value_type = Option<SuspensionReason>)]
    reason: Option<&'static str>,
    created_at: i64,
    expires_at: Option<i64>,
    closed_at: Option<i64>,
    closed_reason: Option<String>,
    /// Any name when absent.
    allowed_signals: Option<Vec<String>>,
    approvers: Vec<ApproverState>,
    /// How many came.
    signals: i64,
    #[schema(value_type = Option<Object>)]
    condition: Value,
    progress: Option<String>,
}

impl From<Waitpoint> for WaitpointShape {
    fn from(waitpoint: Waitpoint) -> Self {
        let waits = !waitpoint.condition.is_empty();
        Self {
            waitpoint_id: waitpoint.waitpoint_id,
            execution_id: waitpoint.execution_id,
            namespace: waitpoint.namespace,
            lane: waitpoint.lane,
            kind: waitpoint.kind,
            key: waitpoint.key,
            state: waitpoint.state.as_str(),
            suspension_id: waitpoint.suspension_id,
            reason: waitpoint.reason.map(|reason| reason.as_str()),
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
#[derive(Serialize, ToSchema)]
#[schema(as = OpenedWaitpoint)]
pub struct OpenedShape {
    waitpoint_id: WaitpointId,
    key: String,
    expires_at: Option<i64>,
    tokens: Vec<TokenShape>,
}

impl From<OpenedWaitpoint> for OpenedShape {
    fn from(opened: OpenedWaitpoint) -> Self {
        Self {
            waitpoint_id: opened.waitpoint_id,
            key: opened.key,
            expires_at: opened.expires_at,
            tokens: opened.tokens.into_iter().map(TokenShape::from).collect(),
        }
    }
}

/// A token and whom it was made for.
#[derive(Serialize, ToSchema)]
#[schema(as = IssuedToken)]
pub struct TokenShape {
    approver: Option<String>,
    token: String,
}

impl From<IssuedToken> for TokenShape {
    fn from(issued: IssuedToken) -> Self {
        Self { approver: issued.approver, token: issued.token.as_str().to_owned() }
    }
}

/// A signal that came.
#[derive(Serialize, ToSchema)]
pub struct SignalShape {
    signal_id: SignalId,
    name: String,
    #[schema(value_type = vocabulary::Payload, required = false)]
    payload: Option<Box<RawValue>>,
    #[schema(value_type = Option<Encoding>)]
    payload_encoding: Option<&'static str>,
    source: Option<String>,
    source_identity: Option<String>,
    category: Option<String>,
    correlation_id: Option<String>,
    waitpoint_id: Option<WaitpointId>,
    waitpoint_key: Option<String>,
    approver: Option<String>,
    received_at: i64,
}

impl From<Signal> for SignalShape {
    fn from(signal: Signal) -> Self {
        let encoding = signal.payload_encoding.as_deref().unwrap_or("json");
        let (payload, payload_encoding) = signal.payload.map(|bytes| payload::shown(&bytes.0, encoding)).unzip();
        Self {
            signal_id: signal.signal_id,
            name: signal.name,
            payload,
            payload_encoding,
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

/// Why an attempt goes on, for the worker that continues it.
#[derive(Serialize, ToSchema)]
pub struct ResumeShape {
    suspension_id: SuspensionId,
    #[schema(value_type = ResumeCause)]
    cause: &'static str,
    signals: Vec<SignalShape>,
    #[schema(value_type = vocabulary::Payload, required = false)]
    continuation: Option<Box<RawValue>>,
    #[schema(value_type = Option<Encoding>)]
    continuation_encoding: Option<&'static str>,
    /// What became of the children it waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<ChildShape>>,
    /// Their results are too much for one answer: the others are read with `GET /v1/executions/{id}/children`.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_children: Option<bool>,
    /// The wait that ended, by the name it was suspended under.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<vocabulary::StepName>)]
    step: Option<String>,
}

impl From<Resume> for ResumeShape {
    fn from(resume: Resume) -> Self {
        let encoding = resume.continuation_encoding.as_deref();
        let (continuation, continuation_encoding) =
            resume.continuation.map(|kept| continuation::shown(&kept.0, encoding)).unzip();
        Self {
            suspension_id: resume.suspension_id,
            cause: resume.cause.as_str(),
            signals: resume.signals.into_iter().map(SignalShape::from).collect(),
            continuation,
            continuation_encoding,
            children: resume.children.map(|all| all.into_iter().map(ChildShape::from).collect()),
            more_children: resume.more_children.filter(|more| *more),
            step: resume.step,
        }
    }
}

/// The condition as the API writes conditions, each with `satisfied`, and with `counted` where signals count.
fn tree(nodes: &[ConditionProgress]) -> Value {
    if nodes.is_empty() { Value::Null } else { branch(nodes, 0) }
}

fn children(nodes: &[ConditionProgress], of: usize) -> impl Iterator<Item = usize> {
    let is_child =
        move |node: &ConditionProgress| node.parent.and_then(|parent| usize::try_from(parent).ok()) == Some(of);
    nodes.iter().enumerate().filter(move |(_, node)| is_child(node)).map(|(at, _)| at)
}

fn branch(nodes: &[ConditionProgress], at: usize) -> Value {
    let node = &nodes[at];
    let mut shown = Map::new();
    // Parents are listed before their children, so this ends.
    let below =
        || Value::Array(children(nodes, at).filter(|child| *child > at).map(|child| branch(nodes, child)).collect());
    match node.op {
        ConditionOp::AnyOf => drop(shown.insert("any_of".to_owned(), below())),
        ConditionOp::AllOf => drop(shown.insert("all_of".to_owned(), below())),
        ConditionOp::Signal => {
            shown.insert("signal".to_owned(), json!(node.name));
            shown.extend(node.waitpoint.as_ref().map(|key| ("waitpoint".to_owned(), json!(key))));
        }
        ConditionOp::Count => {
            shown.insert("count".to_owned(), json!(node.n));
            shown.insert("over".to_owned(), json!(node.over.map(|over| over.as_str())));
            let mut of = Map::new();
            of.extend(node.name.as_ref().map(|name| ("signal".to_owned(), json!(name))));
            of.extend(node.waitpoint.as_ref().map(|key| ("waitpoint".to_owned(), json!(key))));
            if !of.is_empty() {
                shown.insert("of".to_owned(), Value::Object(of));
            }
            shown.insert("counted".to_owned(), json!(node.counted));
        }
    }
    shown.insert("satisfied".to_owned(), json!(node.satisfied));
    Value::Object(shown)
}

/// How far the condition is, in words: `1 of 2 approvers with approved`.
fn in_words(nodes: &[ConditionProgress]) -> String {
    let done = |node: &ConditionProgress| if node.satisfied { " (came)" } else { "" };
    let leaves: Vec<String> = nodes
        .iter()
        .filter_map(|node| {
            let name = node.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            let at = node.waitpoint.as_ref().map(|key| format!(" at {key}")).unwrap_or_default();
            match node.op {
                ConditionOp::AnyOf | ConditionOp::AllOf => None,
                ConditionOp::Signal if name.is_empty() => Some(format!("any signal{at}{}", done(node))),
                ConditionOp::Signal => Some(format!("signal{name}{at}{}", done(node))),
                ConditionOp::Count => {
                    let over = node.over.map_or("signals", |over| over.as_str());
                    let with = if name.is_empty() { String::new() } else { format!(" with{name}") };
                    Some(format!("{} of {} {over}{with}{at}", node.counted, node.n.unwrap_or(1)))
                }
            }
        })
        .collect();
    match nodes.first().map(|node| node.op) {
        None => "any signal".to_owned(),
        Some(ConditionOp::AnyOf) => format!("one of: {}", leaves.join("; ")),
        Some(ConditionOp::AllOf) => format!("all of: {}", leaves.join("; ")),
        Some(ConditionOp::Signal | ConditionOp::Count) => leaves.join("; "),
    }
}
