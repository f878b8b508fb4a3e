//! What a worker does with a partition: claim, renew, and end attempts.

use ff_core::types::{AttemptId, ExecutionId, LeaseId};
use ff_script::generated::{
    ClaimExecutions, ClaimExecutionsReply, Fence, RenewLease, RenewLeaseReply, Task, YieldExecution,
    YieldExecutionReply,
};
use ff_script::{Error, Kinds, Route};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Operations;

/// Who claims, and how.
#[derive(Clone, Debug)]
pub struct Claimant {
    /// The namespace of the lane.
    pub namespace: String,
    /// The lane.
    pub lane: String,
    /// The worker's name.
    pub worker_id: String,
    /// The process that holds the leases.
    pub instance: String,
    /// What the worker can do.
    pub capabilities: Vec<String>,
    /// The kinds it takes; `None` is all.
    pub kinds: Option<Kinds>,
    /// How long a lease lasts without renewal.
    pub lease_ttl_ms: i64,
}

/// What a claim brought, with the score of what waits next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The leased executions.
    pub tasks: Vec<Task>,
    /// The best score left in the partition, when something is.
    pub next_score: Option<i64>,
    /// The lane is limited: nothing of it is claimed without admission.
    pub admission_needed: bool,
}

impl Claimant {
    /// The claim of up to `max` executions in a partition.
    #[must_use]
    pub fn claim(&self, route: Route, max: u16, request_id: Uuid) -> ClaimExecutions {
        ClaimExecutions {
            capabilities: self.capabilities.clone(),
            kinds: self.kinds.as_ref().map(Kinds::packed),
            attempt_ids: (0..max).map(|_| AttemptId::mint()).collect(),
            instance: self.instance.clone(),
            lane: self.lane.clone(),
            lease_ids: LeaseRequest(request_id).ids(route, &self.lane, max),
            lease_ttl_ms: self.lease_ttl_ms,
            max: i64::from(max),
            namespace: self.namespace.clone(),
            worker_id: self.worker_id.clone(),
        }
    }
}

impl From<ClaimExecutionsReply> for Claimed {
    fn from(reply: ClaimExecutionsReply) -> Self {
        match reply {
            ClaimExecutionsReply::Claimed { tasks, next_score, admission_needed } => {
                Claimed { tasks, next_score, admission_needed: admission_needed == Some(true) }
            }
            ClaimExecutionsReply::Replayed { tasks } => Claimed { tasks, ..Claimed::default() },
            ClaimExecutionsReply::Paused { .. } => Claimed::default(),
        }
    }
}

/// A request for leases, by the id its caller gave it. The ids of its leases are made of it, so that a repetition of the request, here
/// or at another server, asks for the same ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRequest(pub Uuid);

impl LeaseRequest {
    /// The part of a lease's id that all leases of the request share, and a part of its own.
    fn id(self, own: u32) -> LeaseId {
        lease_id(&Sha256::digest(self.0.as_bytes()), own)
    }

    /// The ids of `count` leases that the request may take of a lane in a partition.
    #[must_use]
    pub fn ids(self, route: Route, lane: &str, count: u16) -> Vec<LeaseId> {
        let place = Sha256::digest(format!("{route}/{lane}"));
        let place = u32::from_be_bytes([place[0], place[1], place[2], 0]);
        let shared = Sha256::digest(self.0.as_bytes());
        (0..count).map(|at| lease_id(&shared, place.wrapping_add(u32::from(at)))).collect()
    }

    /// The id of the lease that it takes by the grant of an execution.
    #[must_use]
    pub fn of_grant(self, execution: &ExecutionId) -> LeaseId {
        let own = Sha256::digest(execution.as_uuid().as_bytes());
        self.id(u32::from_be_bytes([own[0], own[1], own[2], own[3]]))
    }

    /// What the ids of all its leases begin with.
    #[must_use]
    pub fn prefix(self) -> String {
        self.id(0).to_string()[..23].to_owned()
    }
}

/// A lease's id: twelve bytes that the leases of a request share, and four of its own.
fn lease_id(shared: &[u8], own: u32) -> LeaseId {
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(&shared[..12]);
    bytes[12..].copy_from_slice(&own.to_be_bytes());
    LeaseId::from_uuid(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// The fence of a claimed task.
#[must_use]
pub fn fence_of(task: &Task) -> Fence {
    Fence { attempt_id: task.attempt_id, lease_id: task.lease_id, lease_epoch: task.lease_epoch }
}

impl Operations {
    /// Claims up to `max` executions of one partition; repeat with the same `request_id` after a lost reply.
    pub async fn claim(&self, route: Route, who: &Claimant, max: u16, request_id: Uuid) -> Result<Claimed, Error> {
        Ok(self.client.call(route, &who.claim(route, max, request_id)).await?.into())
    }

    /// Moves the ends of many leases, in one call per partition; one answer for each, in order.
    pub async fn renew_all(&self, leases: &[(ExecutionId, Fence)]) -> Vec<Result<RenewLeaseReply, Error>> {
        let call = |(id, fence): &(ExecutionId, Fence)| (self.client.route_of(id), RenewLease::new(*id, *fence));
        let calls: Vec<_> = leases.iter().map(call).collect();
        self.client.call_all(&calls).await
    }

    /// Hands the execution back at once, counted nowhere.
    pub async fn yield_back(&self, id: ExecutionId, fence: Fence) -> Result<YieldExecutionReply, Error> {
        self.client.call(self.client.route_of(&id), &YieldExecution { execution_id: id, fence }).await
    }
}
