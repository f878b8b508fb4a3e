//! Suspensions: an attempt waits for signals and goes on with them.

use ff_core::condition::Condition;
use ff_core::types::{ExecutionId, SuspensionId, TimestampMs, WaitpointId};
use ff_script::generated::{self, OpenWaitpoint, PublicState, SuspensionReason, TimeoutBehavior};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::access::{STEER, WORK};
use crate::claims::Resume;
use crate::condition::{in_words, tree};
use crate::operation::{fenced, operations};
use crate::parts::Id;
use crate::payload::Encoding;
use crate::tasks::Fence;
#[cfg(feature = "openapi")]
use crate::vocabulary;
use crate::waitpoints::{OpenedWaitpoint, Signal};

/// A suspension that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Suspension {
    /// The suspension.
    pub suspension_id: SuspensionId,
    /// Why the execution waits.
    pub reason: SuspensionReason,
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = i64))]
    pub suspended_at: TimestampMs,
    /// When it takes too long.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>))]
    pub timeout_at: Option<TimestampMs>,
    /// What happens then.
    pub timeout_behavior: TimeoutBehavior,
    /// Where signals arrive.
    pub waitpoints: Vec<OpenWaitpoint>,
    /// The condition as it was given, with what counted so far.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub condition: Value,
    /// The same in words.
    pub progress: String,
}

impl From<generated::Suspension> for Suspension {
    fn from(suspension: generated::Suspension) -> Self {
        Self {
            suspension_id: suspension.suspension_id,
            reason: suspension.reason,
            suspended_at: TimestampMs(suspension.suspended_at),
            timeout_at: suspension.timeout_at.map(TimestampMs),
            timeout_behavior: suspension.timeout_behavior,
            condition: tree(&suspension.condition),
            progress: in_words(&suspension.condition),
            waitpoints: suspension.waitpoints.into_iter().collect(),
        }
    }
}

impl Suspension {
    /// What the execution waits for, in a few words.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let keys: Vec<&str> = self.waitpoints.iter().map(|waitpoint| waitpoint.key.as_str()).collect();
        let mut facts = vec![
            ("reason", self.reason.as_str().to_owned()),
            ("waitpoints", keys.join(", ")),
            ("progress", self.progress.clone()),
        ];
        facts.extend(self.timeout_at.map(|at| ("timeout_at", at.to_string())));
        facts
    }
}

/// A waitpoint to open, or a pending one to wait at.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WaitpointBody {
    /// The pending one; the other fields are absent then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waitpoint_id: Option<WaitpointId>,
    /// The name of a new one in the suspension.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::WaitpointKey>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
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
}

/// What happens when the time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeoutBehaviorWord {
    /// The execution fails.
    Fail,
    /// The execution is cancelled.
    Cancel,
    /// The execution expires.
    Expire,
    /// Short for the next one.
    AutoResume,
    /// The attempt goes on with a signal that says so.
    AutoResumeWithTimeoutSignal,
    /// The execution goes on waiting and shows that it takes too long.
    Escalate,
}

impl From<TimeoutBehaviorWord> for TimeoutBehavior {
    fn from(word: TimeoutBehaviorWord) -> Self {
        match word {
            TimeoutBehaviorWord::Fail => Self::Fail,
            TimeoutBehaviorWord::Cancel => Self::Cancel,
            TimeoutBehaviorWord::Expire => Self::Expire,
            TimeoutBehaviorWord::AutoResume | TimeoutBehaviorWord::AutoResumeWithTimeoutSignal => {
                Self::AutoResumeWithTimeoutSignal
            }
            TimeoutBehaviorWord::Escalate => Self::Escalate,
        }
    }
}

impl From<TimeoutBehavior> for TimeoutBehaviorWord {
    fn from(behavior: TimeoutBehavior) -> Self {
        match behavior {
            TimeoutBehavior::Fail => Self::Fail,
            TimeoutBehavior::Cancel => Self::Cancel,
            TimeoutBehavior::Expire => Self::Expire,
            TimeoutBehavior::AutoResumeWithTimeoutSignal => Self::AutoResumeWithTimeoutSignal,
            TimeoutBehavior::Escalate => Self::Escalate,
        }
    }
}

/// What a running attempt waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SuspendBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// Why it waits.
    pub reason: SuspensionReason,
    /// Where it waits; the default is at every waitpoint the attempt has opened.
    #[cfg_attr(feature = "openapi", schema(max_items = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waitpoints: Option<Vec<WaitpointBody>>,
    /// What must arrive; the default is any signal.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Condition>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// How long it may take.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// `auto_resume` is short for `auto_resume_with_timeout_signal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_behavior: Option<TimeoutBehaviorWord>,
    /// What the claim that continues the attempt carries.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Box<RawValue>>,
    /// How `continuation` carries its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_encoding: Option<Encoding>,
    /// Makes the wait a step: it outlives the attempt, and once it is over a later call with this name keeps the lease and
    /// answers what the wait came to.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::StepName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Only names the wait: the claim that continues the attempt carries the name as `resume.step`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::StepName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// The same id suspends once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What became of a suspend.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "outcome", rename_all = "snake_case", try_from = "SuspendFields")]
pub enum SuspendAnswer {
    /// The lease is released, and the execution waits.
    Suspended {
        /// The task's execution.
        execution_id: ExecutionId,
        /// The suspension.
        suspension_id: SuspensionId,
        /// Where it waits.
        waitpoints: Vec<OpenedWaitpoint>,
        /// When it takes too long.
        timeout_at: Option<i64>,
        /// The same call had been made before; nothing happened twice.
        replayed: bool,
    },
    /// What it waits for had come: the worker keeps the lease.
    AlreadySatisfied {
        /// The task's execution.
        execution_id: ExecutionId,
        /// The suspension.
        suspension_id: SuspensionId,
        /// None.
        #[cfg_attr(feature = "openapi", schema(value_type = Vec<OpenedWaitpoint>, max_items = 0))]
        waitpoints: [OpenedWaitpoint; 0],
        /// The signals that came, in order of arrival.
        signals: Vec<Signal>,
    },
    /// The wait of this step was over before: the worker keeps the lease.
    Done {
        /// The task's execution.
        execution_id: ExecutionId,
        /// What the wait came to.
        resume: Box<Resume>,
    },
}

/// The fields of both answers. An enum with a tag cannot be read directly: serde would lose the text of payloads.
#[derive(Deserialize)]
struct SuspendFields {
    outcome: SuspendOutcome,
    execution_id: ExecutionId,
    suspension_id: Option<SuspensionId>,
    #[serde(default)]
    waitpoints: Vec<OpenedWaitpoint>,
    timeout_at: Option<i64>,
    replayed: Option<bool>,
    signals: Option<Vec<Signal>>,
    resume: Option<Box<Resume>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum SuspendOutcome {
    Suspended,
    AlreadySatisfied,
    Done,
}

impl TryFrom<SuspendFields> for SuspendAnswer {
    type Error = &'static str;

    fn try_from(fields: SuspendFields) -> Result<Self, Self::Error> {
        let SuspendFields { outcome, execution_id, suspension_id, waitpoints, timeout_at, replayed, .. } = fields;
        let suspension_id = suspension_id.ok_or("missing field `suspension_id`");
        Ok(match outcome {
            SuspendOutcome::Done => Self::Done { execution_id, resume: fields.resume.ok_or("missing field `resume`")? },
            SuspendOutcome::Suspended => {
                let (suspension_id, replayed) = (suspension_id?, replayed.ok_or("missing field `replayed`")?);
                Self::Suspended { execution_id, suspension_id, waitpoints, timeout_at, replayed }
            }
            SuspendOutcome::AlreadySatisfied => {
                let (suspension_id, signals) = (suspension_id?, fields.signals.ok_or("missing field `signals`")?);
                Self::AlreadySatisfied { execution_id, suspension_id, waitpoints: [], signals }
            }
        })
    }
}

/// Why an operator lets an attempt go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ResumeBody {
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Reason>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why an operator ends a suspended execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FailSuspensionBody {
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Reason))]
    pub reason: String,
    /// What kind of failure it is; the default is `operator`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Category>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
}

/// What an operator did to a suspended execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SuspensionEnded {
    /// The execution.
    pub execution_id: ExecutionId,
    /// What happened.
    pub outcome: SuspensionOutcome,
    /// Its state now.
    pub state: PublicState,
}

/// How a suspension ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SuspensionOutcome {
    /// The attempt goes on.
    Resumed,
    /// The execution has failed.
    Failed,
}

operations! {
    /// Releases the lease until the condition is met; early signals that are enough leave it with the worker.
    SuspendTask task_suspend: post "/v1/tasks/{id}/suspend", WORK;
    at (Id);
    takes SuspendBody;
    returns SuspendAnswer: (status = 200, body = SuspendAnswer);
    fails fenced!["waitpoint_not_found", "keys_unavailable", "step_changed", "steps_full"];

    /// The attempt goes on without the signals it waited for.
    ResumeExecution execution_resume: post "/v1/executions/{id}/resume", STEER;
    at (Id);
    takes ResumeBody;
    returns SuspensionEnded: (status = 200, body = SuspensionEnded);
    fails &["execution_not_found", "execution_not_suspended"];

    /// Ends a suspended execution as failed; its policy does not retry what an operator ended.
    FailSuspension execution_fail_suspension: post "/v1/executions/{id}/fail-suspension", STEER;
    at (Id);
    takes FailSuspensionBody;
    returns SuspensionEnded: (status = 200, body = SuspensionEnded);
    fails &["execution_not_found", "execution_not_suspended"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_in_an_answer_keeps_its_text() {
        let signal = r#"{"signal_id":"0192f3a0-0000-7000-8000-000000000001","name":"go","payload":{"z":1.0,"a":12345678901234567890},"payload_encoding":"json","source":null,"source_identity":null,"category":null,"correlation_id":null,"waitpoint_id":null,"waitpoint_key":null,"approver":null,"received_at":7}"#;
        let satisfied = format!(
            r#"{{"outcome":"already_satisfied","execution_id":"0192f3a0-0000-7000-8000-000000000002","suspension_id":"0192f3a0-0000-7000-8000-000000000003","waitpoints":[],"signals":[{signal}]}}"#
        );
        let suspended = r#"{"outcome":"suspended","execution_id":"0192f3a0-0000-7000-8000-000000000002","suspension_id":"0192f3a0-0000-7000-8000-000000000003","waitpoints":[],"timeout_at":null,"replayed":false}"#;
        for text in [satisfied.as_str(), suspended] {
            let answer: SuspendAnswer = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&answer).unwrap(), text);
        }
    }
}
