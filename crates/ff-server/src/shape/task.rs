//! A claimed task, and the fence a worker presents.

use std::collections::BTreeMap;

use ff_core::types::{AttemptId, ExecutionId, FlowId, LeaseId};
use ff_script::generated::{AttemptType, Grant, Task};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::child::PassedShape;
use super::suspension::ResumeShape;
use crate::openapi::vocabulary;
use crate::payload::{self, Encoding};

/// A task as its worker gets it.
#[derive(Serialize, ToSchema)]
pub struct TaskShape {
    execution_id: ExecutionId,
    attempt_index: i64,
    attempt_id: AttemptId,
    #[schema(value_type = AttemptType)]
    attempt_type: &'static str,
    lease_id: LeaseId,
    lease_epoch: i64,
    lease_expires_at: i64,
    namespace: String,
    lane: String,
    kind: String,
    #[schema(value_type = vocabulary::Payload)]
    input: Box<RawValue>,
    /// Absent when there is no input.
    #[schema(value_type = Option<Encoding>)]
    input_encoding: Option<&'static str>,
    tags: BTreeMap<String, String>,
    priority: i64,
    created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback_index: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = vocabulary::Payload, required = false)]
    fallback: Option<Box<RawValue>>,
    trace_parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_deadline_at: Option<i64>,
    /// Why a waiting attempt goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<ResumeShape>,
    /// How many frames the attempt wrote: the sequence of its next one.
    frames: i64,
    /// What upstream members pass to it, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<BTreeMap<String, PassedShape>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_id: Option<FlowId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<ExecutionId>,
    /// Its name in its flow, or for its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl From<Task> for TaskShape {
    fn from(task: Task) -> Self {
        let (input, input_encoding) = payload::shown_input(&task.input.0, &task.input_encoding);
        Self {
            execution_id: task.execution_id,
            attempt_index: task.attempt_index,
            attempt_id: task.attempt_id,
            attempt_type: task.attempt_type.as_str(),
            lease_id: task.lease_id,
            lease_epoch: task.lease_epoch,
            lease_expires_at: task.lease_expires_at,
            namespace: task.namespace,
            lane: task.lane,
            kind: task.kind,
            input,
            input_encoding,
            tags: task.tags,
            priority: task.priority,
            created_at: task.created_at,
            fallback_index: task.fallback_index,
            fallback: task.fallback.map(|fallback| payload::shown(&fallback.0, "json").0),
            trace_parent: task.trace_parent,
            deadline_at: task.deadline_at,
            attempt_deadline_at: task.attempt_deadline_at,
            resume: task.resume.map(ResumeShape::from),
            frames: task.frames,
            passed: task.passed.map(|all| all.into_iter().map(|(name, one)| (name, one.into())).collect()),
            flow_id: task.flow_id,
            parent_id: task.parent_id,
            key: task.key,
        }
    }
}

/// A reserved execution.
#[derive(Serialize, ToSchema)]
pub struct GrantShape {
    execution_id: ExecutionId,
    grant_id: Uuid,
    expires_at: i64,
    lane: String,
    kind: String,
}

impl From<Grant> for GrantShape {
    fn from(grant: Grant) -> Self {
        Self {
            execution_id: grant.execution_id,
            grant_id: grant.grant_id,
            expires_at: grant.expires_at,
            lane: grant.lane,
            kind: grant.kind,
        }
    }
}
