//! Workers: what one says about itself, and what operators see of it.

use ff_core::PartitionConfig;
use ff_core::types::{AttemptId, ExecutionId, LeaseId};
use ff_script::generated::{self, Role, WorkerState};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::access::{Access, LOOK, STEER, WORK};
use crate::operation::{Nothing, operations};
use crate::page::{Listed, PageQuery};
use crate::parts::Instance;
use crate::problem::Facts;
use crate::tasks::Fence;
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// A worker, without what would let someone else speak for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Worker {
    /// The process.
    pub instance: String,
    /// The program.
    pub worker_id: String,
    /// The namespace of its lanes.
    pub namespace: String,
    /// The lanes it serves.
    pub lanes: Vec<String>,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// The kinds it takes; absent when it takes every kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// How many leases it may hold.
    pub slots: i64,
    /// Whether it takes new tasks.
    pub state: WorkerState,
    /// When it registered.
    pub registered_at: i64,
    /// When its registration ends, unless it says something.
    pub expires_at: i64,
}

impl From<generated::Worker> for Worker {
    fn from(worker: generated::Worker) -> Self {
        Self {
            instance: worker.instance,
            worker_id: worker.worker_id,
            namespace: worker.namespace,
            lanes: worker.lanes,
            capabilities: worker.capabilities,
            kinds: worker.kinds,
            slots: worker.slots,
            state: worker.state,
            registered_at: worker.registered_at,
            expires_at: worker.expires_at,
        }
    }
}

/// A worker that was asked to stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Drained {
    /// The worker.
    pub instance: String,
    /// What happened.
    pub outcome: DrainOutcome,
}

/// What asking a worker to stop did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DrainOutcome {
    /// It takes nothing new from now on.
    Draining,
    /// It had been asked before.
    Already,
}

/// What a worker serves.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterBody {
    /// The program.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::WorkerId))]
    pub worker_id: String,
    /// The namespace of its lanes; the default is `default`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Namespace>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The lanes it serves.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<vocabulary::LaneName>, min_items = 1, max_items = 64))]
    pub lanes: Vec<String>,
    /// What it can do.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::Capability>>, max_items = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// The kinds it takes; the default is every kind.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<vocabulary::Kind>>, min_items = 1, max_items = 1_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// How many leases it may hold; the default is 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 4_096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<i64>,
    /// Random per process: tells two processes with one instance apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
    /// Taken and not used: a repetition registers the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A registration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Registered {
    /// How often the worker has to say something.
    pub heartbeat_ms: i64,
    /// When the registration ends, unless the worker says something.
    pub expires_at: i64,
    /// Of the store; they never change.
    pub partitions: PartitionConfig,
}

/// A worker that waits for its standing to change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AttendBody {
    /// The process that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
    /// What the worker knows: it gets an answer as soon as this is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draining: Option<bool>,
    /// How long to wait for that; the default is not at all.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::WaitMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Taken and not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The standing of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Attended {
    /// The worker takes nothing new.
    pub draining: bool,
}

/// Which process leaves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LeaveBody {
    /// The process that leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
    /// An operator ends it whichever process it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
    /// Taken and not used: a repetition changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The leases to renew.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HeartbeatBody {
    /// The leases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew: Option<Vec<RenewBody>>,
    /// The process that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Uuid>,
    /// Taken and not used: a repetition renews again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A lease to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RenewBody {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The lease.
    pub lease_id: LeaseId,
    /// The lease's epoch.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Count))]
    pub lease_epoch: i64,
}

impl RenewBody {
    /// The lease of an execution.
    #[must_use]
    pub fn of(execution_id: ExecutionId, fence: Fence) -> Self {
        let Fence { attempt_id, lease_id, lease_epoch } = fence;
        Self { execution_id, attempt_id, lease_id, lease_epoch }
    }

    /// Proof of the lease.
    #[must_use]
    pub fn fence(&self) -> Fence {
        Fence { attempt_id: self.attempt_id, lease_id: self.lease_id, lease_epoch: self.lease_epoch }
    }
}

/// What became of a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeartbeatAnswer {
    /// What became of each lease, in their order.
    pub leases: Vec<LeaseAnswer>,
    /// The worker takes nothing new.
    pub draining: bool,
}

/// What became of the renewal of one lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum LeaseAnswer {
    /// The lease goes on.
    Renewed(LeaseRenewed),
    /// It does not.
    Refused(LeaseRefused),
}

/// A lease that goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseRenewed {
    /// The execution.
    pub execution_id: ExecutionId,
    /// When the lease ends, unless it is renewed again.
    pub lease_expires_at: i64,
    /// Somebody asks the attempt to end.
    pub cancel_requested: bool,
    /// An operator asks the worker to hand the execution back.
    pub yield_requested: bool,
}

/// A lease that was not renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseRefused {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Why.
    #[serde(flatten)]
    pub problem: Facts,
}

operations! {
    /// One page of registered workers.
    ListWorkers worker_list: get "/v1/workers", LOOK;
    asks PageQuery;
    returns Listed<Worker>: (status = 200, body = Listed<Worker>);

    /// One registered worker.
    GetWorker worker_get: get "/v1/workers/{name}", Access::Roles(&[Role::Read, Role::Operator, Role::Worker]);
    at (Instance);
    returns Worker: (status = 200, body = Worker);
    fails &["worker_not_registered"];

    /// The worker takes nothing new and is asked to yield what it holds.
    DrainWorker worker_drain: post "/v1/workers/{name}/drain", STEER;
    at (Instance);
    returns Drained: (status = 200, body = Drained);
    fails &["worker_not_registered"];

    /// An upsert: the same instance replaces its lanes, capabilities, kinds and slots.
    RegisterWorker worker_register: post "/v1/workers/{name}/register", WORK;
    at (Instance);
    takes RegisterBody;
    returns Registered: (status = 200, body = Registered);
    fails &["instance_in_use", "capability_invalid", "worker_not_registered"];

    /// Keeps the worker registered and renews all its leases: one call per partition that holds some.
    Heartbeat worker_heartbeat: post "/v1/workers/{name}/heartbeat", WORK;
    at (Instance);
    takes HeartbeatBody;
    returns HeartbeatAnswer: (status = 200, body = HeartbeatAnswer);
    fails &["worker_not_registered", "instance_in_use"];

    /// A long poll that says two things at once: the worker is there for as long as it is held, and whether it is to drain.
    AttendWorker worker_attend: post "/v1/workers/{name}/attend", WORK;
    at (Instance);
    takes AttendBody;
    returns Attended: (status = 200, body = Attended);
    fails &["worker_not_registered", "instance_in_use"];

    /// Ends the registration; its leases run out by themselves unless they are given back first.
    ///
    /// A process that named its incarnation is not sent away by one that does not know it.
    DeregisterWorker worker_deregister: delete "/v1/workers/{name}", Access::Roles(&[Role::Worker, Role::Operator]);
    at (Instance);
    takes LeaveBody;
    returns Nothing: (status = 204, description = "It is not registered any more.");
    fails &["worker_not_registered", "instance_in_use"];
}
