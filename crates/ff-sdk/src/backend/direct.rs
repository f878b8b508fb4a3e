//! The engine in reach: calls of the library through a host of this process, embedded or Valkey.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ff_api::executions::Reclaimed;
use ff_core::contracts::{ClaimGrant, ReclaimGrant};
use ff_core::types::{ExecutionId, LaneId, LeaseEpoch, Namespace, TimestampMs};
use ff_engine::dispatch::{Dispatcher, DispatcherOptions, Profile, StoreAdmission};
use ff_engine::fleet::{self, Ends, Fleet};
use ff_engine::{Engine, NewExecution, Operations, Service};
use ff_script::generated::{
    CancelAttempt, CompleteExecution, DelayExecution, FailExecution, FailExecutionReply, Fence, GrantReclaim,
    HeartbeatServer, HeartbeatServerReply, RegisterWorker, RegisterWorkerReply, RenewLeaseReply, SubmitExecutionReply,
    Task, UpdateProgress, YieldExecution,
};
use ff_script::{Bytes, Error, Kinds, Route};
use uuid::Uuid;

use super::keys::Places;
use super::{
    Backend, Claim, End, Failing, Finished, Identity, LeaseRef, Reach, Registered, Renewal, Standing, Take, Transport,
    is_json, ttl,
};
use crate::SdkError;
use crate::flows::Place;
use crate::snapshot::{WorkerSnapshot, attempt_index};
use crate::task::FailOutcome;

/// A backend over a running [`Engine`]; one per engine serves all workers of the process.
pub struct Direct {
    service: Arc<Service>,
    transport: Transport,
    pub(super) key_places: Arc<Places>,
}

impl Direct {
    /// A backend over this engine.
    #[must_use]
    pub fn new(engine: Arc<Engine>, transport: Transport) -> Arc<Self> {
        Self::with_options(engine, transport, DispatcherOptions::default())
    }

    /// A backend whose dispatcher behaves as told.
    #[must_use]
    pub fn with_options(engine: Arc<Engine>, transport: Transport, options: DispatcherOptions) -> Arc<Self> {
        let dispatcher = Dispatcher::start(
            engine.operations().clone(),
            Arc::new(StoreAdmission::new(engine.operations().clone())),
            options,
        );
        let key_places = Arc::new(Places::default());
        let places = Arc::clone(&key_places);
        let fleet = Arc::new(Fleet::here(engine.operations().clone(), dispatcher.clone()));
        let stop = engine.stopping();
        let service = Arc::new(Service::new(engine, dispatcher, fleet, stop, move || places.find()));
        Arc::new(Self { service, transport, key_places })
    }

    /// The engine beneath.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.service.engine
    }

    pub(super) fn service(&self) -> &Service {
        &self.service
    }

    /// How many servers live: they run the timers and reconcilers of a store.
    pub async fn live_servers(&self) -> Result<usize, SdkError> {
        Ok(self.servers().await?.0)
    }

    /// The live servers, and whether one of them wants events announced. Leaving is how to read without being one.
    async fn servers(&self) -> Result<(usize, bool), SdkError> {
        let call = HeartbeatServer { server_id: Uuid::now_v7(), listening: false, leave: Some(true) };
        let HeartbeatServerReply::Servers { items } = self.operations().client().call(Route::Fleet, &call).await?;
        Ok((items.len(), items.iter().any(|server| server.listening)))
    }

    fn operations(&self) -> &Operations {
        &self.service.operations
    }

    fn route(&self, id: ExecutionId) -> Route {
        self.operations().client().route_of(&id)
    }

    async fn call<C: ff_script::Call>(&self, id: ExecutionId, call: &C) -> Result<C::Reply, SdkError> {
        Ok(self.operations().client().call(self.route(id), call).await?)
    }
}

pub(super) fn fence(lease: LeaseRef) -> Fence {
    lease.fence()
}

fn profile(who: &Identity, lanes: Vec<String>) -> Profile {
    Profile {
        namespace: who.namespace.clone(),
        lanes,
        worker_id: who.worker_id.clone(),
        instance: who.instance.clone(),
        capabilities: who.capabilities.clone(),
        kinds: who.kinds.clone(),
        lease_ttl_ms: ttl(who),
    }
}

fn completion(end: &End) -> fleet::End {
    // Bytes that are no JSON are shown as base64 by everyone who shows results.
    let result_encoding = end.result.as_ref().filter(|bytes| !is_json(bytes)).map(|_| "base64".to_owned());
    fleet::End::Complete(CompleteExecution {
        execution_id: end.lease.execution_id,
        fence: end.lease.fence(),
        result: end.result.clone().map(Bytes),
        result_encoding,
    })
}

pub(super) fn millis(duration_ms: u64) -> i64 {
    i64::try_from(duration_ms).unwrap_or(i64::MAX)
}

impl From<Task> for Claim {
    fn from(task: Task) -> Self {
        Claim {
            lease: LeaseRef {
                execution_id: task.execution_id,
                attempt_id: task.attempt_id,
                lease_id: task.lease_id,
                lease_epoch: LeaseEpoch::new(task.lease_epoch.unsigned_abs()),
            },
            attempt_index: attempt_index(task.attempt_index),
            namespace: Namespace::new(task.namespace),
            lane: LaneId::new(task.lane),
            kind: task.kind,
            input: task.input.0,
            input_encoding: task.input_encoding,
            tags: task.tags.into_iter().collect(),
            fallback: task.fallback.map(|bytes| bytes.0),
            trace_parent: task.trace_parent,
            deadline_at: task.deadline_at.map(TimestampMs),
            resume: task.resume.map(Into::into),
            frames: Some(task.frames.unsigned_abs()),
            place: Place { flow_id: task.flow_id, parent_id: task.parent_id, key: task.key, ..Place::default() }
                .with_passed(task.passed),
            lease_expires_at: task.lease_expires_at,
            steps: task.steps.into_iter().map(Into::into).collect(),
            steps_more: task.steps_more,
        }
    }
}

fn renewal(reply: Result<RenewLeaseReply, Error>) -> Renewal {
    match reply {
        Ok(RenewLeaseReply::Renewed { cancel_requested, yield_requested, .. }) => {
            Renewal::Renewed { cancel_requested, yield_requested }
        }
        Err(Error::Engine(error)) => Renewal::Refused(error),
        Err(error) => Renewal::Unanswered(error.to_string()),
    }
}

#[async_trait]
impl Backend for Direct {
    fn reach(&self) -> Reach {
        Reach::in_process(Arc::clone(&self.service))
    }

    fn rests_in_place(&self) -> bool {
        true
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    async fn register(&self, who: &Identity) -> Result<Registered, SdkError> {
        let worker = RegisterWorker {
            capabilities: who.capabilities.clone(),
            kinds: who.kinds.as_ref().map(|kinds| kinds.names().to_vec()),
            incarnation: Some(who.incarnation),
            instance: who.instance.clone(),
            lanes: who.lanes.clone(),
            owner: None,
            namespace: who.namespace.clone(),
            slots: i64::try_from(who.slots).unwrap_or(i64::MAX),
            take_over: None,
            worker_id: who.worker_id.clone(),
        };
        let operations = self.operations();
        let is_gone = async { operations.holder_lives(&who.instance).await.map(|lives| !lives) };
        let RegisterWorkerReply::Registered { heartbeat_ms, .. } =
            operations.register_or_take_over(worker, is_gone).await?;
        let heartbeat = Duration::from_millis(heartbeat_ms.unsigned_abs());
        Ok(Registered { heartbeat, partitions: operations.client().partitions() })
    }

    async fn attend(&self, who: &Identity, draining: bool) -> Standing {
        self.operations().attend(&who.instance, who.incarnation, draining).await
    }

    async fn heartbeat(&self, who: &Identity) -> Result<Standing, SdkError> {
        let standing = self.operations().keep_alive(&who.instance, who.incarnation).await?;
        if standing != Standing::Replaced && self.transport == Transport::Valkey {
            let (_, listening) = self.servers().await?;
            self.operations().client().host().set_listening(listening);
        }
        Ok(standing)
    }

    async fn deregister(&self, who: &Identity) -> Result<(), SdkError> {
        self.operations().deregister_worker(&who.instance, Some(who.incarnation), None).await?;
        self.service.dispatcher.forget(&who.instance);
        Ok(())
    }

    async fn claim(
        &self,
        who: &Identity,
        lanes: &[String],
        max: u16,
        wait: Duration,
        request_id: Uuid,
    ) -> Result<Vec<Claim>, SdkError> {
        let profile = profile(who, lanes.to_vec());
        let tasks = self.service.dispatcher.claim(&profile, max, wait, request_id).await?;
        Ok(tasks.into_iter().map(Claim::from).collect())
    }

    async fn grant(&self, who: &Identity, lane: &str, ttl_ms: u64) -> Result<Option<ClaimGrant>, SdkError> {
        let profile = profile(who, vec![lane.to_owned()]);
        let grants = self.service.dispatcher.grant(&profile, 1, millis(ttl_ms)).await?;
        Ok(grants.into_iter().next().map(ClaimGrant::from))
    }

    async fn grant_reclaim(
        &self,
        execution_id: ExecutionId,
        instance: &str,
        ttl_ms: u64,
    ) -> Result<ReclaimGrant, SdkError> {
        let worker = self.operations().worker(instance).await?;
        let call = GrantReclaim {
            actor: "sdk".to_owned(),
            execution_id,
            grant_id: Uuid::now_v7(),
            instance: worker.instance,
            ttl_ms: millis(ttl_ms),
            namespace: worker.namespace,
            lanes: worker.lanes,
            capabilities: worker.capabilities,
            kinds: worker.kinds.map(|kinds| Kinds::of(kinds).packed()),
        };
        let grant = self.service.dispatcher.grant_reclaim(&call).await?;
        Ok(Reclaimed::from(grant).grant)
    }

    async fn consume_grant(
        &self,
        who: &Identity,
        execution_id: ExecutionId,
        grant_id: Uuid,
        request_id: Uuid,
    ) -> Result<Claim, SdkError> {
        let profile = profile(who, who.lanes.clone());
        Ok(self.operations().consume_grant(&profile, execution_id, grant_id, request_id).await?.into())
    }

    async fn renew(&self, _who: &Identity, leases: &[LeaseRef]) -> Vec<Renewal> {
        let leases: Vec<_> = leases.iter().map(|lease| (lease.execution_id, lease.fence())).collect();
        self.operations().renew_all(&leases).await.into_iter().map(renewal).collect()
    }

    async fn finish(&self, who: &Identity, ends: &[&End], take: Option<&Take>) -> Result<Finished, SdkError> {
        let lane = ends.last().map(|end| end.lane.as_str());
        let send = |along: Ends| async move {
            match take {
                None => (self.operations().client().run(along.list).await, Ok(Vec::new())),
                Some(Take { lanes, max, request_id }) => {
                    let profile = profile(who, lanes.clone());
                    self.service.dispatcher.claim_after(along.list, along.last, lane, &profile, *max, *request_id).await
                }
            }
        };
        let (ends, claimed) = self.service.engine.finish(ends.iter().map(|end| completion(end)).collect(), send).await;
        let tasks = claimed.unwrap_or_else(|error| {
            tracing::debug!(%error, "a claim that went along with results failed");
            Vec::new()
        });
        let ends = ends.into_iter().map(|end| end.map(|_| ()).map_err(SdkError::from)).collect();
        Ok(Finished { ends, tasks: tasks.into_iter().map(Claim::from).collect() })
    }

    async fn fail(&self, lease: LeaseRef, failing: &Failing) -> Result<FailOutcome, SdkError> {
        let call = FailExecution {
            category: failing.category.clone(),
            draw: rand::random_range(0..=1000),
            execution_id: lease.execution_id,
            fence: fence(lease),
            reason: failing.reason.clone(),
            retry_after_ms: failing.retry_after_ms.map(millis),
            retryable: failing.retryable,
        };
        Ok(match self.call(lease.execution_id, &call).await? {
            FailExecutionReply::Failed { .. } => FailOutcome::TerminalFailed,
            FailExecutionReply::RetryScheduled { delay_until, .. } => {
                FailOutcome::RetryScheduled { delay_until: TimestampMs(delay_until) }
            }
        })
    }

    async fn cancel_attempt(&self, lease: LeaseRef, reason: &str) -> Result<(), SdkError> {
        let call =
            CancelAttempt { execution_id: lease.execution_id, fence: fence(lease), reason: Some(reason.to_owned()) };
        self.call(lease.execution_id, &call).await.map(|_| ())
    }

    async fn delay(&self, lease: LeaseRef, until: TimestampMs) -> Result<(), SdkError> {
        let call = DelayExecution {
            delay_ms: None,
            delay_until: Some(until.as_millis()),
            execution_id: lease.execution_id,
            fence: fence(lease),
        };
        self.call(lease.execution_id, &call).await.map(|_| ())
    }

    async fn yield_back(&self, lease: LeaseRef) -> Result<(), SdkError> {
        let call = YieldExecution { execution_id: lease.execution_id, fence: fence(lease) };
        self.call(lease.execution_id, &call).await.map(|_| ())
    }

    async fn progress(&self, lease: LeaseRef, pct: u8, message: &str) -> Result<(), SdkError> {
        let call = UpdateProgress {
            execution_id: lease.execution_id,
            fence: fence(lease),
            message: Some(message.to_owned()),
            pct: i64::from(pct),
        };
        self.call(lease.execution_id, &call).await.map(|_| ())
    }

    async fn submit(&self, new: NewExecution) -> Result<(ExecutionId, bool), SdkError> {
        Ok(match self.service.dispatcher.submit(new).await? {
            SubmitExecutionReply::Created { execution_id, .. } => (execution_id, false),
            SubmitExecutionReply::Duplicate { execution_id, .. } => (execution_id, true),
        })
    }

    async fn workers(&self) -> Result<Vec<WorkerSnapshot>, SdkError> {
        Ok(self.operations().workers().await?.into_iter().map(Into::into).collect())
    }

    async fn drain_worker(&self, instance: &str) -> Result<(), SdkError> {
        self.operations().drain_worker(instance, "sdk").await?;
        Ok(())
    }
}
