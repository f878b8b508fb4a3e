//! The most common calls of tests: submit, claim, read.

use ff_core::types::{AttemptId, ExecutionId, LeaseId};
use ff_script::generated::{
    ClaimExecutions, ClaimExecutionsReply, CompleteExecution, CompleteExecutionReply, DescribeExecution,
    DescribeExecutionReply, Event, Execution, FailExecution, FailExecutionReply, Fairness, Fence, InstallLane,
    InstallLaneReply, LaneDefinition, LaneEntry, LaneState, PublicState, ReadEvents, ReadEventsReply, Submission,
    SubmitExecution, SubmitExecutionReply, Task,
};
use ff_script::{Call, Error, Route};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::harness::Store;

/// The default namespace of tests.
pub const NAMESPACE: &str = "default";
/// The default lane of tests.
pub const LANE: &str = "default";
/// The partition in which [`Store::submission`] puts executions, so that order and capacity are visible.
pub const HOME: Route = Route::Execution(0);
/// A lease long enough for every test that does not test leases.
pub const LEASE_MS: i64 = 30_000;
/// One point of priority outweighs any age.
pub const STRICT: i64 = 1_000_000_000_000;

/// Proof of a task's lease.
pub trait Fenced {
    /// The fence that this task's worker sends with every write.
    fn fence(&self) -> Fence;
}

impl Fenced for Task {
    fn fence(&self) -> Fence {
        Fence { attempt_id: self.attempt_id, lease_id: self.lease_id, lease_epoch: self.lease_epoch }
    }
}

/// A lane that is active, strict, and first in, first out.
pub fn plain_lane() -> LaneDefinition {
    LaneDefinition::new(LaneState::Active, STRICT, Fairness::Fifo, 1)
}

/// A digest of the text, different for each text.
pub fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text)[..16])
}

/// Ids for one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseIds {
    /// The attempt that this lease begins.
    pub attempt_id: AttemptId,
    pub lease_id: LeaseId,
}

impl Store {
    /// A fresh UUID with this partition seed. Two stores create the same ones in the same order.
    pub fn uuid(&self, seed: u16) -> Uuid {
        let number = self.next_number().to_be_bytes();
        let mut bytes = [0_u8; 16];
        bytes[..8].copy_from_slice(&number);
        bytes[6] = 0x70;
        bytes[8] = 0x80;
        bytes[9..14].copy_from_slice(&number[3..]);
        bytes[14..].copy_from_slice(&seed.to_be_bytes());
        Uuid::from_bytes(bytes)
    }

    /// A fresh execution id in partition 0.
    pub fn execution_id(&self) -> ExecutionId {
        ExecutionId::from_uuid(self.uuid(0))
    }

    /// A plain submission of this kind to the default lane, in partition 0.
    pub fn submission(&self, kind: &str) -> Submission {
        Submission::new(self.execution_id(), NAMESPACE.into(), LANE.into(), kind.into(), digest(kind))
    }

    /// The partition of an execution.
    pub fn route_of(&self, id: ExecutionId) -> Route {
        self.client().route_of(&id)
    }

    /// Runs one function in partition 0, where [`Store::submission`] puts everything.
    pub async fn ask<C: Call>(&self, call: &C) -> Result<C::Reply, Error> {
        self.call(HOME, call).await
    }

    /// Runs one function many times, in one list on the first partition.
    pub async fn ask_all<C: Call + Clone>(&self, calls: &[C]) -> Vec<Result<C::Reply, Error>> {
        let calls: Vec<_> = calls.iter().map(|call| (HOME, call.clone())).collect();
        self.client().call_all(&calls).await
    }

    /// The state of an execution as users see it.
    pub async fn state(&self, id: ExecutionId) -> PublicState {
        self.describe(id).await.state
    }

    /// Sets this definition of a lane in every partition.
    pub async fn install_lane(&self, namespace: &str, lane: &str, definition: LaneDefinition) {
        let version = self.next_number() as i64;
        let entry = LaneEntry { namespace: namespace.into(), lane: lane.into(), version, definition };
        for route in self.routes() {
            let reply = self.call(route, &InstallLane { entry: entry.clone() }).await;
            assert_eq!(reply, Ok(InstallLaneReply::Installed), "{namespace}/{lane} on {route}");
        }
    }

    /// Sets the default definition of the default lane in every partition.
    pub async fn install_default_lane(&self) {
        self.install_lane(NAMESPACE, LANE, plain_lane()).await;
    }

    /// Submits to the partition of the id, and returns the library's reply.
    pub async fn try_submit(&self, submission: Submission) -> Result<SubmitExecutionReply, Error> {
        let route = self.route_of(submission.execution_id);
        self.call(route, &SubmitExecution { submission }).await
    }

    /// Submits an execution that must be accepted as new.
    pub async fn submit(&self, submission: Submission) -> ExecutionId {
        match self.try_submit(submission).await {
            Ok(SubmitExecutionReply::Created { execution_id, .. }) => execution_id,
            other => panic!("not created: {other:?}"),
        }
    }

    /// Submits a plain execution of this kind.
    pub async fn submit_kind(&self, kind: &str) -> ExecutionId {
        self.submit(self.submission(kind)).await
    }

    /// A claim of the default lane. Tests change the fields they need.
    pub fn claim_call(&self, worker: &str, max: i64) -> ClaimExecutions {
        ClaimExecutions {
            namespace: NAMESPACE.into(),
            lane: LANE.into(),
            instance: worker.into(),
            worker_id: format!("{worker}-kind"),
            capabilities: Vec::new(),
            kinds: None,
            max,
            lease_ttl_ms: LEASE_MS,
            lease_ids: self.request(max),
            attempt_ids: (0..max).map(|_| self.lease_ids().attempt_id).collect(),
        }
    }

    /// Ids for the leases of a new request. They have a common prefix.
    pub fn request(&self, max: i64) -> Vec<LeaseId> {
        let base = self.uuid(0).as_u128() & !0xff;
        (0..max)
            .map(|at| LeaseId::from_uuid(Uuid::from_u128(base + u128::try_from(at).expect("not negative"))))
            .collect()
    }

    /// Fresh ids for one lease.
    pub fn lease_ids(&self) -> LeaseIds {
        LeaseIds { attempt_id: AttemptId::from_uuid(self.uuid(0)), lease_id: LeaseId::from_uuid(self.uuid(0)) }
    }

    /// Claims up to `max` executions of the default lane in partition 0, for a worker without capabilities.
    pub async fn claim(&self, worker: &str, max: i64) -> Vec<Task> {
        self.claim_with(HOME, &self.claim_call(worker, max)).await
    }

    /// Claims for a worker with capabilities.
    pub async fn claim_as(&self, worker: &str, capabilities: &[&str], max: i64) -> Vec<Task> {
        let mut call = self.claim_call(worker, max);
        call.capabilities = capabilities.iter().map(|&token| token.to_owned()).collect();
        self.claim_with(HOME, &call).await
    }

    /// Makes this claim, which must not be a repetition or meet a paused lane.
    pub async fn claim_with(&self, route: Route, call: &ClaimExecutions) -> Vec<Task> {
        match self.call(route, call).await {
            Ok(ClaimExecutionsReply::Claimed { tasks, .. }) => tasks,
            other => panic!("not claimed: {other:?}"),
        }
    }

    /// Claims exactly one execution.
    pub async fn claim_one(&self, worker: &str) -> Task {
        let mut tasks = self.claim(worker, 1).await;
        assert_eq!(tasks.len(), 1, "nothing to claim");
        tasks.remove(0)
    }

    /// Submits an execution of this kind and claims it.
    pub async fn start(&self, kind: &str, worker: &str) -> Task {
        let id = self.submit_kind(kind).await;
        let task = self.claim_one(worker).await;
        assert_eq!(task.execution_id, id);
        task
    }

    /// Submits this execution and claims it.
    pub async fn start_with(&self, submission: Submission, worker: &str) -> Task {
        let id = self.submit(submission).await;
        let task = self.claim_one(worker).await;
        assert_eq!(task.execution_id, id);
        task
    }

    /// Completes a task without a result.
    pub async fn complete(&self, task: &Task) {
        let call = CompleteExecution::new(task.execution_id, task.fence());
        let reply = self.call(self.route_of(task.execution_id), &call).await;
        assert_eq!(reply, Ok(CompleteExecutionReply::Completed));
    }

    /// Fails a task with a category; the jitter draw is one half.
    pub async fn fail(&self, task: &Task, category: &str) -> FailExecutionReply {
        let call =
            FailExecution::new(category.into(), 500, task.execution_id, task.fence(), format!("{category} happened"));
        self.call(self.route_of(task.execution_id), &call).await.expect("the failure is taken")
    }

    /// Lets the lease of a task expire, and claims the execution again.
    pub async fn lose_and_reclaim(&self, task: &Task, worker: &str) -> Task {
        self.go_to(self.describe(task.execution_id).await.lease.expect("a lease").expires_at);
        self.fire_all().await;
        let again = self.claim_one(worker).await;
        assert_eq!(again.execution_id, task.execution_id);
        again
    }

    /// The full state of an execution, which must exist.
    pub async fn describe(&self, id: ExecutionId) -> Execution {
        self.find(id).await.unwrap_or_else(|error| panic!("{id}: {error}"))
    }

    /// The full state of an execution.
    pub async fn find(&self, execution_id: ExecutionId) -> Result<Execution, Error> {
        let DescribeExecutionReply::Found { execution } =
            self.call(self.route_of(execution_id), &DescribeExecution { execution_id }).await?;
        Ok(execution)
    }

    /// Every event of a partition, oldest first.
    pub async fn events(&self, route: Route) -> Vec<Event> {
        let mut all: Vec<Event> = Vec::new();
        loop {
            let call = ReadEvents { after: all.last().map(|event| event.id.clone()), ..ReadEvents::new(1_000) };
            let ReadEventsReply::Events { entries, .. } = self.call(route, &call).await.expect("events are read");
            let events = Event::read_all(&entries, call.after.as_deref(), 1_000).expect("events can be read");
            if events.is_empty() {
                return all;
            }
            all.extend(events);
        }
    }

    /// The types of an execution's events, oldest first.
    pub async fn story(&self, id: ExecutionId) -> Vec<String> {
        let events = self.events(self.route_of(id)).await;
        events.into_iter().filter(|event| event.execution_id == Some(id)).map(|event| event.r#type).collect()
    }
}
