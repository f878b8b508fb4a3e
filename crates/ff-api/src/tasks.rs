//! What a worker does with a task it holds. Every operation presents the fence of the lease and is safe to repeat.

use ff_core::types::ExecutionId;
use ff_script::generated;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Invalid;
use crate::access::WORK;
use crate::operation::{FENCE, PAYLOAD_BODY, operations};
use crate::parts::Id;
use crate::payload::{Encoding, Payload};
use crate::submission::submission;
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// Proof of the current lease.
pub use ff_script::generated::Fence;

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskDone {
    /// The task's execution.
    pub execution_id: ExecutionId,
    /// What happened.
    pub outcome: TaskOutcome,
    /// When the execution is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_until: Option<i64>,
    /// The same call had been made before; nothing happened twice.
    pub replayed: bool,
}

/// What a worker's call did to its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    /// The execution has ended with a result.
    Completed,
    /// The execution has failed for good.
    Failed,
    /// The attempt has failed, and another follows.
    RetryScheduled,
    /// The execution is cancelled.
    Cancelled,
    /// The execution waits until a time.
    Delayed,
    /// The execution is eligible again.
    Yielded,
    /// The progress is noted.
    Noted,
}

impl TaskDone {
    /// A task with this outcome.
    #[must_use]
    pub fn new(execution_id: ExecutionId, outcome: TaskOutcome, replayed: bool) -> Self {
        Self { execution_id, outcome, delay_until: None, replayed }
    }

    /// What the retry policy decided after a failure.
    #[must_use]
    pub fn failed(id: ExecutionId, reply: generated::FailExecutionReply) -> Self {
        match reply {
            generated::FailExecutionReply::Failed { replayed } => Self::new(id, TaskOutcome::Failed, replayed),
            generated::FailExecutionReply::RetryScheduled { delay_until, replayed } => {
                Self { delay_until: Some(delay_until), ..Self::new(id, TaskOutcome::RetryScheduled, replayed) }
            }
        }
    }
}

/// A result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CompleteBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// The result; absent for none.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// How `result` carries its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_encoding: Option<Encoding>,
    /// Taken and not used: the fence makes a repetition safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl CompleteBody {
    /// The result as bytes, when there is one.
    pub fn payload(&self) -> Result<Option<Payload>, Invalid> {
        Payload::read("result", self.result.as_deref(), self.result_encoding)
    }
}

/// A failure of an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = FailTaskBody))]
pub struct FailBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Reason))]
    pub reason: String,
    /// What kind of failure it is; retry policies go by it.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Category))]
    pub category: String,
    /// `false` ends the execution, whatever its policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// How long to wait before the next attempt, in place of the policy's backoff.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<i64>,
    /// Taken and not used: the fence makes a repetition safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A cancellation by the worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = CancelTaskBody))]
pub struct CancelBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Reason>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Taken and not used: the fence makes a repetition safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A task that is handed back until a time. One of `delay_ms` and `delay_until` is given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DelayBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// How long from now.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<i64>,
    /// Until when.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_until: Option<i64>,
    /// Taken and not used: the fence makes a repetition safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A task that is handed back at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct YieldBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// Taken and not used: the fence makes a repetition safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// How far an attempt is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ProgressBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// Percent.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 100))]
    pub pct: i64,
    /// What the attempt is doing.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::ProgressMessage>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Taken and not used: a repetition notes the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

submission! {
    /// A child to spawn.
    pub struct ChildBody {
        /// What it is.
        #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Kind))]
        kind: String,
        /// A name its parent knows it by.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::MemberKey>))]
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// What the parent's end means for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_close: Option<generated::ParentClose>,
    }
}

/// Children to spawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SpawnBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// The children.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1_000))]
    pub children: Vec<ChildBody>,
    /// Makes it a step: once it is done, a later call with this name answers the same children.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::StepName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The same id with the same children spawns them once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

operations! {
    /// Ends the attempt with a result.
    CompleteTask task_complete: post "/v1/tasks/{id}/complete", WORK;
    at (Id);
    takes CompleteBody, up to PAYLOAD_BODY;
    returns TaskDone: (status = 200, body = TaskDone);
    fails FENCE;

    /// Ends the attempt with a failure; the retry policy decides what follows.
    FailTask task_fail: post "/v1/tasks/{id}/fail", WORK;
    at (Id);
    takes FailBody;
    returns TaskDone: (status = 200, body = TaskDone);
    fails FENCE;

    /// The worker cancels the execution.
    CancelTask task_cancel: post "/v1/tasks/{id}/cancel", WORK;
    at (Id);
    takes CancelBody;
    returns TaskDone: (status = 200, body = TaskDone);
    fails FENCE;

    /// Hands the execution back until a time; counted against neither attempts nor reclaims.
    DelayTask task_delay: post "/v1/tasks/{id}/delay", WORK;
    at (Id);
    takes DelayBody;
    returns TaskDone: (status = 200, body = TaskDone);
    fails FENCE;

    /// Hands the execution back: eligible at once, counted nowhere.
    YieldTask task_yield: post "/v1/tasks/{id}/yield", WORK;
    at (Id);
    takes YieldBody;
    returns TaskDone: (status = 200, body = TaskDone);
    fails FENCE;

    /// Notes how far the attempt is.
    ReportProgress task_report_progress: post "/v1/tasks/{id}/progress", WORK;
    at (Id);
    takes ProgressBody;
    returns TaskDone: (status = 200, body = TaskDone);
    fails FENCE;
}
