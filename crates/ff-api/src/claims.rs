//! How a worker gets its tasks: it claims them, or consumes what was granted to it.

use std::collections::BTreeMap;

use ff_core::contracts::ClaimGrant;
use ff_core::types::{AttemptId, ExecutionId, FlowId, LeaseId, SuspensionId};
use ff_script::generated::{self, AttemptType, Failure, Outcome, ResumeCause};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::access::WORK;
use crate::children::Child;
use crate::operation::operations;
use crate::parts::Instance;
use crate::payload::{Encoding, Payload, with_payloads};
use crate::steps::TaskStep;
use crate::tasks::Fence;
#[cfg(feature = "openapi")]
use crate::vocabulary;
use crate::waitpoints::Signal;

with_payloads! {
    /// A task as its worker gets it.
    pub struct Task {
        /// The execution.
        execution_id: ExecutionId,
        /// The attempt's number, from 0.
        attempt_index: i64,
        /// The attempt.
        attempt_id: AttemptId,
        /// Why there is this attempt.
        attempt_type: AttemptType,
        /// The lease.
        lease_id: LeaseId,
        /// The lease's epoch.
        lease_epoch: i64,
        /// When the lease ends, unless it is renewed.
        lease_expires_at: i64,
        /// The execution's namespace.
        namespace: String,
        /// The execution's lane.
        lane: String,
        /// The execution's kind.
        kind: String,
    }
    payloads {
        /// The execution's input.
        input: Vec<u8> as input_encoding (required = true),
    }
    then {
        /// The execution's tags.
        tags: BTreeMap<String, String>,
        /// The execution's priority.
        priority: i64,
        /// When the execution was submitted.
        created_at: i64,
        /// The fallback tier of this attempt, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        fallback_index: Option<i64>,
        /// What the tier says.
        #[schema(value_type = vocabulary::Payload, required = false)]
        #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::payload::json")]
        fallback: Option<Vec<u8>>,
        /// The trace the submitter continues.
        trace_parent: Option<String>,
        /// When the whole execution expires.
        #[serde(skip_serializing_if = "Option::is_none")]
        deadline_at: Option<i64>,
        /// When the attempt times out.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt_deadline_at: Option<i64>,
        /// Why a waiting attempt goes on.
        #[serde(skip_serializing_if = "Option::is_none")]
        resume: Option<Resume>,
        /// How many frames the attempt wrote: the sequence of its next one.
        frames: i64,
        /// What upstream members pass to it, by name.
        #[serde(skip_serializing_if = "Option::is_none")]
        passed: Option<BTreeMap<String, Passed>>,
        /// The flow it is a member of.
        #[serde(skip_serializing_if = "Option::is_none")]
        flow_id: Option<FlowId>,
        /// The execution that spawned it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_id: Option<ExecutionId>,
        /// Its name in its flow, or for its parent.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// What earlier runs of the handler recorded, in the order in which it was recorded first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<TaskStep>,
        /// More is recorded than fits here: a step that is not among `steps` is asked for by its name before it runs.
        #[serde(default, skip_serializing_if = "crate::claims::is_false")]
        steps_more: bool,
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Task {
    /// Proof of its lease.
    #[must_use]
    pub fn fence(&self) -> Fence {
        Fence { attempt_id: self.attempt_id, lease_id: self.lease_id, lease_epoch: self.lease_epoch }
    }
}

impl From<generated::Task> for Task {
    fn from(task: generated::Task) -> Self {
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
            input_encoding: Payload::of_input(&task.input.0, &task.input_encoding),
            input: task.input.0,
            tags: task.tags,
            priority: task.priority,
            created_at: task.created_at,
            fallback_index: task.fallback_index,
            fallback: task.fallback.map(|tier| tier.0),
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

with_payloads! {
    /// What an upstream member passes under a name: its result, or how it failed.
    pub struct Passed {
        /// The upstream member's execution.
        execution_id: ExecutionId,
        /// How it ended.
        outcome: Outcome,
    }
    payloads {
        /// Its result.
        value: Option<Vec<u8>> as encoding (required = false),
    }
    then {
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    }
}

impl From<generated::PassedValue> for Passed {
    fn from(passed: generated::PassedValue) -> Self {
        let encoding = Encoding::of_stored(passed.encoding.as_deref());
        let (value, encoding) = passed.value.map(|bytes| (bytes.0, encoding)).unzip();
        Self { execution_id: passed.execution_id, outcome: passed.outcome, value, encoding, failure: passed.failure }
    }
}

with_payloads! {
    /// Why an attempt goes on, for the worker that continues it.
    pub struct Resume {
        /// The suspension that ended.
        suspension_id: SuspensionId,
        /// What ended it.
        cause: ResumeCause,
        /// The signals that came, in order of arrival.
        signals: Vec<Signal>,
    }
    payloads {
        /// What the attempt kept for itself when it was suspended.
        continuation: Option<Vec<u8>> as continuation_encoding (required = false),
    }
    then {
        /// What became of the children it waited for.
        #[serde(skip_serializing_if = "Option::is_none")]
        children: Option<Vec<Child>>,
        /// Their results are too much for one answer: the others are read with `GET /v1/executions/{id}/children`.
        #[serde(skip_serializing_if = "Option::is_none")]
        more_children: Option<bool>,
        /// The wait that ended, by the name it was suspended under.
        #[schema(value_type = Option<vocabulary::StepName>)]
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        /// The operator who ended a step's wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    }
}

impl From<generated::Resume> for Resume {
    fn from(resume: generated::Resume) -> Self {
        let encoding = resume.continuation_encoding.as_deref();
        let kept = resume.continuation.map(|kept| Payload::kept(kept.0, encoding));
        let (continuation, continuation_encoding) = kept.map(|kept| (kept.bytes, kept.encoding)).unzip();
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
