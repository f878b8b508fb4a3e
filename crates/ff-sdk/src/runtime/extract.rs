//! What a handler can take: each argument is made from the task.

use std::any::{TypeId, type_name};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use ff_core::types::{
    AttemptId, AttemptIndex, ExecutionId, FlowId, LaneId, LeaseEpoch, LeaseId, Namespace, TimestampMs,
};
use serde::de::DeserializeOwned;

use crate::SdkError;
use crate::cancellation::TaskCancellation;
use crate::middleware::{TaskError, TaskRequest};
use crate::task::TaskCore;

/// Something a handler can take as an argument.
///
/// ```
/// use ff_sdk::middleware::{TaskError, TaskRequest};
/// use ff_sdk::runtime::FromTask;
///
/// struct Tenant(String);
///
/// impl FromTask for Tenant {
///     fn from_task(request: &TaskRequest) -> Result<Self, TaskError> {
///         let tenant = request.ctx().info().tags.get("tenant").cloned();
///         tenant.map(Tenant).ok_or_else(|| TaskError::new("the tag tenant is missing", "no_tenant"))
///     }
/// }
/// ```
pub trait FromTask: Sized + Send {
    /// Takes it from the task, or says how the task fails.
    fn from_task(request: &TaskRequest) -> Result<Self, TaskError>;
}

/// The input, decoded from JSON. An empty input reads as `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<T>(pub T);

impl<T> Payload<T> {
    /// The decoded input.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Payload<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: DeserializeOwned + Send> FromTask for Payload<T> {
    fn from_task(request: &TaskRequest) -> Result<Self, TaskError> {
        let input: &[u8] = request.ctx().payload();
        let input = if input.is_empty() { b"null" } else { input };
        serde_json::from_slice(input).map(Payload).map_err(|error| {
            // The same input would be refused again.
            let reason = format!("the input is not {}: {error}", type_name::<T>());
            TaskError::new(reason, TaskError::PAYLOAD_DECODE).fatal()
        })
    }
}

/// The input, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadBytes(pub Vec<u8>);

impl PayloadBytes {
    /// The bytes.
    #[must_use]
    pub fn into_inner(self) -> Vec<u8> {
        self.0
    }
}

impl Deref for PayloadBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl FromTask for PayloadBytes {
    fn from_task(request: &TaskRequest) -> Result<Self, TaskError> {
        Ok(PayloadBytes(request.ctx().payload().to_vec()))
    }
}

/// State given to [`crate::runtime::WorkerRuntime::data`], shared by all handlers.
#[derive(Debug)]
pub struct Data<T>(pub Arc<T>);

impl<T> Clone for Data<T> {
    fn clone(&self) -> Self {
        Data(Arc::clone(&self.0))
    }
}

impl<T> Deref for Data<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync + 'static> FromTask for Data<T> {
    fn from_task(request: &TaskRequest) -> Result<Self, TaskError> {
        let state = request.state().get(&TypeId::of::<T>()).cloned();
        let state = state.and_then(|state| state.downcast::<T>().ok());
        state.map(Data).ok_or_else(|| {
            TaskError::new(
                format!("no state of type {} was given to the runtime", type_name::<T>()),
                TaskError::MISSING_STATE,
            )
        })
    }
}

/// What a task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Which attempt this is.
    pub attempt_index: AttemptIndex,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The lease.
    pub lease_id: LeaseId,
    /// The lease's epoch: higher than that of any earlier lease, so it fences writes elsewhere too.
    pub lease_epoch: LeaseEpoch,
    /// The namespace.
    pub namespace: Namespace,
    /// The lane.
    pub lane_id: LaneId,
    /// The kind.
    pub kind: String,
    /// The tags.
    pub tags: HashMap<String, String>,
    /// The trace the submitter continues.
    pub trace_parent: Option<String>,
    /// When the whole execution ends, at the latest.
    pub deadline_at: Option<TimestampMs>,
    /// The flow it is a member of.
    pub flow_id: Option<FlowId>,
    /// The execution that spawned it.
    pub parent_id: Option<ExecutionId>,
    /// Its key among the flow's members or the parent's children.
    pub key: Option<String>,
}

impl FromTask for TaskInfo {
    fn from_task(request: &TaskRequest) -> Result<Self, TaskError> {
        Ok(request.ctx().info())
    }
}

/// A handler's side of its task: progress, cancellation, facts. Cheap to clone.
///
/// ```
/// use ff_sdk::runtime::{Ctx, HandlerResult};
///
/// async fn count(ctx: Ctx) -> HandlerResult {
///     for done in 0..100 {
///         if ctx.is_cancelled() {
///             return Err("stopped".into());
///         }
///         ctx.progress(done, "counting").await?;
///     }
///     Ok(None)
/// }
/// ```
#[derive(Clone)]
pub struct Ctx(pub(crate) Arc<TaskCore>);

impl Ctx {
    /// What the task is.
    #[must_use]
    pub fn info(&self) -> TaskInfo {
        let claim = &self.0.claim;
        TaskInfo {
            execution_id: claim.lease.execution_id,
            attempt_index: claim.attempt_index,
            attempt_id: claim.lease.attempt_id,
            lease_id: claim.lease.lease_id,
            lease_epoch: claim.lease.lease_epoch,
            namespace: claim.namespace.clone(),
            lane_id: claim.lane.clone(),
            kind: claim.kind.clone(),
            tags: claim.tags.clone(),
            trace_parent: claim.trace_parent.clone(),
            deadline_at: claim.deadline_at,
            flow_id: claim.place.flow_id,
            parent_id: claim.place.parent_id,
            key: claim.place.key.clone(),
        }
    }

    /// The execution.
    #[must_use]
    pub fn execution_id(&self) -> &ExecutionId {
        &self.0.claim.lease.execution_id
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.0.claim.kind
    }

    /// The input.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.0.claim.input
    }

    /// Notes how far the work is, 0 to 100.
    pub async fn progress(&self, pct: u8, message: &str) -> Result<(), SdkError> {
        self.0.update_progress(pct, message).await
    }

    /// Fires when the handler should stop, with the reason.
    #[must_use]
    pub fn cancellation(&self) -> &TaskCancellation {
        &self.0.lease.cancellation
    }

    /// True once the handler should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation().is_cancelled()
    }
}

impl FromTask for Ctx {
    fn from_task(request: &TaskRequest) -> Result<Self, TaskError> {
        Ok(request.ctx().clone())
    }
}
