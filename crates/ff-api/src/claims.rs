//! How a worker gets its tasks: it claims them, or consumes what was granted to it.

use std::collections::BTreeMap;

use ff_core::contracts::ClaimGrant;
use ff_core::types::{AttemptId, ExecutionId, FlowId, LeaseId, SuspensionId};
use ff_script::generated::{self, AttemptType, Failure, Outcome, ResumeCause};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::access::WORK;
use crate::children::Child;
use crate::operation::operations;
use crate::parts::Instance;
use crate::payload::{Encoding, Payload};
use crate::steps::TaskStep;
#[cfg(feature = "openapi")]
use crate::vocabulary;
use crate::waitpoints::Signal;

/// A task as its worker gets it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Task {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The attempt's number, from 0.
    pub attempt_index: i64,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Why there is this attempt.
    pub attempt_type: AttemptType,
    /// The lease.
    pub lease_id: LeaseId,
    /// The lease's epoch.
    pub lease_epoch: i64,
    /// When the lease ends, unless it is renewed.
    pub lease_expires_at: i64,
    /// The execution's namespace.
    pub namespace: String,
    /// The execution's lane.
    pub lane: String,
    /// The execution's kind.
    pub kind: String,
    /// The execution's input.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload))]
    pub input: Option<Box<RawValue>>,
    /// Absent when there is no input.
    pub input_encoding: Option<Encoding>,
    /// The execution's tags.
    pub tags: BTreeMap<String, String>,
    /// The execution's priority.
    pub priority: i64,
    /// When the execution was submitted.
    pub created_at: i64,
    /// The fallback tier of this attempt, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_index: Option<i64>,
    /// What the tier says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    pub fallback: Option<Box<RawValue>>,
    /// The trace the submitter continues.
    pub trace_parent: Option<String>,
    /// When the whole execution expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<i64>,
    /// When the attempt times out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_deadline_at: Option<i64>,
    /// Why a waiting attempt goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
    /// How many frames the attempt wrote: the sequence of its next one.
    pub frames: i64,
    /// What upstream members pass to it, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<BTreeMap<String, Passed>>,
    /// The flow it is a member of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    /// The execution that spawned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<ExecutionId>,
    /// Its name in its flow, or for its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What earlier runs of the handler recorded, in the order in which it was recorded first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<TaskStep>,
    /// More is recorded than fits here: a step that is not among `steps` is asked for by its name before it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steps_more: bool,
}

impl From<generated::Task> for Task {
    fn from(task: generated::Task) -> Self {
        let (input, input_encoding) = Payload::input(task.input.0, &task.input_encoding);
        Self {
            execution_id: task.execution_id,
            attempt_index: task.attempt_index,
            attempt_id: task.attempt_id,
            attempt_type: task.attempt_type,
            lease_id: task.lease_id,
            lease_epoch: task.lease_epoch,
            lease_expires_at: task.lease_expires_at,
            namespace: task.namespace,
            lane: task.lane,
            kind: task.kind,
            input: Some(input),
            input_encoding,
            tags: task.tags,
            priority: task.priority,
            created_at: task.created_at,
            fallback_index: task.fallback_index,
            fallback: task.fallback.map(|tier| Payload::stored(tier.0, Encoding::Json.as_str()).written().0),
            trace_parent: task.trace_parent,
            deadline_at: task.deadline_at,
            attempt_deadline_at: task.attempt_deadline_at,
            resume: task.resume.map(Resume::from),
            frames: task.frames,
            passed: task.passed.map(|all| all.into_iter().map(|(name, one)| (name, one.into())).collect()),
            flow_id: task.flow_id,
            parent_id: task.parent_id,
            key: task.key,
            steps: task.steps.into_iter().map(TaskStep::from).collect(),
            steps_more: task.steps_more,
        }
    }
}

/// What an upstream member passes under a name: its result, or how it failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Passed {
    /// The upstream member's execution.
    pub execution_id: ExecutionId,
    /// How it ended.
    pub outcome: Outcome,
    /// Its result.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    pub value: Option<Box<RawValue>>,
    /// How `value` carries its bytes.
    pub encoding: Option<Encoding>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl From<generated::PassedValue> for Passed {
    fn from(passed: generated::PassedValue) -> Self {
        let encoding = passed.encoding.as_deref().unwrap_or("json");
        let (value, encoding) = passed.value.map(|bytes| Payload::stored(bytes.0, encoding).written()).unzip();
        Self { execution_id: passed.execution_id, outcome: passed.outcome, value, encoding, failure: passed.failure }
    }
}

/// Why an attempt goes on, for the worker that continues it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Resume {
    /// The suspension that ended.
    pub suspension_id: SuspensionId,
    /// What ended it.
    pub cause: ResumeCause,
    /// The signals that came, in order of arrival.
    pub signals: Vec<Signal>,
    /// What the attempt kept for itself when it was suspended.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Payload, required = false))]
    pub continuation: Option<Box<RawValue>>,
    /// How `continuation` carries its bytes.
    pub continuation_encoding: Option<Encoding>,
    /// What became of the children it waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Child>>,
    /// Their results are too much for one answer: the others are read with `GET /v1/executions/{id}/children`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_children: Option<bool>,
    /// The wait that ended, by the name it was suspended under.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::StepName>))]
    pub step: Option<String>,
    /// The operator who ended a step's wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

impl From<generated::Resume> for Resume {
    fn from(resume: generated::Resume) -> Self {
        let encoding = resume.continuation_encoding.as_deref();
        let continuation = resume.continuation.map(|kept| Payload::kept(kept.0, encoding).written());
        let (continuation, continuation_encoding) = continuation.unzip();
        Self {
            suspension_id: resume.suspension_id,
            cause: resume.cause,
            signals: resume.signals.into_iter().map(Signal::from).collect(),
            continuation,
            continuation_encoding,
            children: resume.children.map(|all| all.into_iter().map(Child::from).collect()),
            more_children: resume.more_children.filter(|more| *more),
            step: resume.step,
            actor: resume.actor,
        }
    }
}

/// What a claim asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ClaimBody {
    /// The lanes to claim from; the default is every lane the worker registered for.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::LaneName>>, max_items = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Vec<String>>,
    /// The kinds to claim, among those the worker registered for; the default is all of them.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::Kind>>, min_items = 1, max_items = 1_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// How many tasks; the default is 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u16>,
    /// How long to wait for the first one; the default is not at all.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::WaitMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// How long the leases hold without a renewal; the default is 30 s.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LeaseTtlMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ttl_ms: Option<i64>,
    /// The same id again brings the same tasks, as far as they are still leased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Uuid>,
    /// The process that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
}

/// The tasks a claim brought.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Claimed {
    /// The tasks; none when nothing came.
    pub tasks: Vec<Task>,
}

/// What to reserve.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantBody {
    /// The lanes to reserve from; the default is every lane the worker registered for.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::LaneName>>, max_items = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Vec<String>>,
    /// The kinds to reserve, among those the worker registered for; the default is all of them.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::Kind>>, min_items = 1, max_items = 1_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// How many executions; the default is 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u16>,
    /// How long each grant holds; the default is 5 s.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::GrantTtlMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_ttl_ms: Option<i64>,
    /// The process that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
    /// Taken and not used: grants that nobody consumes run out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What was reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Granted {
    /// The grants.
    pub grants: Vec<ClaimGrant>,
}

/// The grant to turn into a lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ConsumeBody {
    /// The reserved execution.
    pub execution_id: ExecutionId,
    /// The grant.
    pub grant_id: Uuid,
    /// How long the lease holds without a renewal; the default is 30 s.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LeaseTtlMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ttl_ms: Option<i64>,
    /// The same id again brings the same lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Uuid>,
    /// The process that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
}

/// The task a grant brought.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Consumed {
    /// The task.
    pub task: Task,
}

operations! {
    /// A long poll for tasks; it answers none when nothing came.
    ClaimTasks worker_claim: post "/v1/workers/{name}/claim", WORK;
    at (Instance);
    takes ClaimBody;
    returns Claimed: (status = 200, body = Claimed);
    fails &["worker_not_registered", "instance_in_use"];

    /// Reserves admitted work for a worker that consumes the grant directly on the store.
    GrantTasks worker_grant: post "/v1/workers/{name}/grant", WORK;
    at (Instance);
    takes GrantBody;
    returns Granted: (status = 200, body = Granted);
    fails &["worker_not_registered", "instance_in_use"];

    /// Turns a grant into a lease, for a worker that cannot reach the store itself.
    ConsumeTask worker_consume: post "/v1/workers/{name}/consume", WORK;
    at (Instance);
    takes ConsumeBody;
    returns Consumed: (status = 200, body = Consumed);
    fails &["worker_not_registered", "instance_in_use", "execution_not_found", "grant_not_found", "not_capable"];
}
