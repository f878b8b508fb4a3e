//! The engine in reach: calls of the library through a host of this process, embedded or Valkey.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ff_core::contracts::{ClaimGrant, ReclaimGrant};
use ff_core::error::ConflictKind;
use ff_core::types::{AttemptId, ExecutionId, LaneId, LeaseEpoch, Namespace, TimestampMs};
use ff_core::{EngineError, ErrorCode};
use ff_engine::dispatch::{Dispatcher, DispatcherOptions, Profile, StoreAdmission};
use ff_engine::news::{Listener, News};
use ff_engine::operations::LeaseRequest;
use ff_engine::{Engine, ExecutionFilter, ListCursor, NewExecution, Operations, Service};
use ff_script::generated::{
    AwaitResultReply, CancelAttempt, CompleteExecution, CompleteExecutionReply, ConsumeGrant, ConsumeGrantReply,
    DelayExecution, FailExecution, FailExecutionReply, Fence, GrantReclaim, HeartbeatServer, HeartbeatServerReply,
    RegisterWorker, RegisterWorkerReply, RenewLease, RenewLeaseReply, SubmitExecutionReply, Task, UpdateProgress,
    WorkerState, YieldExecution,
};
use ff_script::{Bytes, Error, List, Route, Wake};
use tokio::time::Instant;
use uuid::Uuid;

use super::direct_waits::Places;
use super::{
    Backend, Claim, End, Failing, Finished, Identity, LeaseRef, Reach, Registered, Renewal, Standing, Take, Transport,
    is_json, ttl,
};
use crate::SdkError;
use crate::flows::Place;
use crate::snapshot::{ExecutionPage, ExecutionResult, ExecutionSnapshot, Failure, WorkerSnapshot, attempt_index};
use crate::task::FailOutcome;

/// How long changes of the fleet are collected before a worker looks whether one concerns it.
const FLEET_PAUSE: Duration = Duration::from_millis(50);

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
        let service = Arc::new(Service::new(engine, dispatcher, move || places.find()));
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

    /// What the store says about the registration.
    async fn standing(&self, who: &Identity) -> Result<Standing, SdkError> {
        match self.operations().worker(&who.instance).await {
            Ok(worker) if worker.incarnation != Some(who.incarnation) => Ok(Standing::Replaced),
            Ok(worker) => Ok(Standing::Known { draining: worker.state == WorkerState::Draining }),
            Err(Error::Engine(EngineError::NotFound { .. })) => Ok(Standing::Unknown),
            Err(error) => Err(error.into()),
        }
    }

    /// Answers a challenge; true when this process turns out to be replaced.
    async fn answer(&self, who: &Identity, nonce: Uuid) -> bool {
        match self.operations().answer_challenge(&who.instance, who.incarnation, nonce).await {
            Ok(()) => false,
            Err(error) => {
                tracing::warn!(%error, instance = who.instance, "a challenge of this worker's instance id could not be answered");
                SdkError::from(error).is_instance_in_use()
            }
        }
    }
}

pub(super) fn fence(lease: LeaseRef) -> Fence {
    // Epochs are below 2^53 by contract.
    let lease_epoch = i64::try_from(lease.lease_epoch.get()).unwrap_or(i64::MAX);
    Fence { attempt_id: lease.attempt_id, lease_id: lease.lease_id, lease_epoch }
}

fn profile(who: &Identity, lanes: Vec<String>) -> Profile {
    Profile {
        namespace: who.namespace.clone(),
        lanes,
        worker_id: who.worker_id.clone(),
        instance: who.instance.clone(),
        capabilities: who.capabilities.clone(),
        lease_ttl_ms: ttl(who),
    }
}

fn completion(end: &End) -> CompleteExecution {
    // Bytes that are no JSON are shown as base64 by everyone who shows results.
    let result_encoding = end.result.as_ref().filter(|bytes| !is_json(bytes)).map(|_| "base64".to_owned());
    CompleteExecution {
        execution_id: end.lease.execution_id,
        fence: fence(end.lease),
        result: end.result.clone().map(Bytes),
        result_encoding,
    }
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

    fn transport(&self) -> Transport {
        self.transport
    }

    async fn register(&self, who: &Identity) -> Result<Registered, SdkError> {
        let call = |take_over| RegisterWorker {
            capabilities: who.capabilities.clone(),
            incarnation: Some(who.incarnation),
            instance: who.instance.clone(),
            lanes: who.lanes.clone(),
            owner: None,
            namespace: who.namespace.clone(),
            slots: i64::try_from(who.slots).unwrap_or(i64::MAX),
            take_over,
            worker_id: who.worker_id.clone(),
        };
        let registered = match self.operations().register_worker(call(None)).await {
            Err(Error::Engine(EngineError::Conflict(ConflictKind::Refused(refused))))
                if refused.code == ErrorCode::InstanceInUse =>
            {
                if self.operations().holder_lives(&who.instance).await? {
                    return Err(EngineError::Conflict(ConflictKind::Refused(refused)).into());
                }
                tracing::info!(
                    instance = who.instance,
                    "the last holder of this instance id is gone; its registration is taken over"
                );
                self.operations().register_worker(call(Some(true))).await?
            }
            answer => answer?,
        };
        let RegisterWorkerReply::Registered { heartbeat_ms, .. } = registered;
        let heartbeat = Duration::from_millis(heartbeat_ms.unsigned_abs());
        Ok(Registered { heartbeat, partitions: self.operations().client().partitions() })
    }

    async fn attend(&self, who: &Identity, draining: bool) -> Standing {
        let mut news = Listener::new(self.operations().client().host().as_ref());
        // What was said before anyone listened is looked up once.
        let mut look_at = Some(Instant::now() + FLEET_PAUSE);
        loop {
            let pause = async {
                match look_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let heard = tokio::select! {
                heard = news.next() => heard,
                () = pause => {
                    look_at = None;
                    match self.standing(who).await {
                        // The next heartbeat registers again.
                        Ok(Standing::Unknown) | Err(_) => {}
                        Ok(Standing::Known { draining: now }) if now == draining => {}
                        Ok(standing) => return standing,
                    }
                    continue;
                }
            };
            let Some(heard) = heard else { return std::future::pending().await };
            for item in heard {
                let mut doubt =
                    |after| look_at = Some(look_at.unwrap_or(Instant::now() + after).min(Instant::now() + after));
                match item {
                    News::Said(Route::Fleet, Wake::Challenge { instance, nonce }) if instance == who.instance => {
                        let replaced = self.answer(who, nonce).await;
                        if replaced {
                            doubt(Duration::ZERO);
                        }
                    }
                    News::Said(Route::Fleet, Wake::Replaced { instance }) if instance == who.instance => {
                        doubt(Duration::ZERO);
                    }
                    News::Said(Route::Fleet, Wake::Fleet) => doubt(FLEET_PAUSE),
                    News::Lost(routes) if routes.contains(&Route::Fleet) => doubt(FLEET_PAUSE),
                    News::LostAny => doubt(FLEET_PAUSE),
                    _ => {}
                }
            }
        }
    }

    async fn heartbeat(&self, who: &Identity) -> Result<Standing, SdkError> {
        if self.standing(who).await? == Standing::Replaced {
            return Ok(Standing::Replaced);
        }
        if self.transport == Transport::Valkey {
            let (_, listening) = self.servers().await?;
            self.operations().client().host().set_listening(listening);
        }
        let beaten = self.operations().heartbeat(vec![who.instance.clone()]).await?;
        Ok(match beaten.first() {
            Some(item) if item.known => Standing::Known { draining: item.draining },
            _ => Standing::Unknown,
        })
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
        };
        Ok(self.service.dispatcher.grant_reclaim(&call).await?.into())
    }

    async fn consume_grant(
        &self,
        who: &Identity,
        execution_id: ExecutionId,
        grant_id: Uuid,
        request_id: Uuid,
    ) -> Result<Claim, SdkError> {
        let call = ConsumeGrant {
            // What is kept was noted with the grant.
            keep: None,
            attempt_id: AttemptId::mint(),
            capabilities: who.capabilities.clone(),
            execution_id,
            grant_id,
            instance: who.instance.clone(),
            lease_id: LeaseRequest(request_id).of_grant(&execution_id),
            lease_ttl_ms: ttl(who),
            worker_id: who.worker_id.clone(),
        };
        let (ConsumeGrantReply::Claimed { task } | ConsumeGrantReply::Replayed { task }) =
            self.call(execution_id, &call).await?;
        Ok(task.into())
    }

    async fn renew(&self, _who: &Identity, leases: &[LeaseRef]) -> Vec<Renewal> {
        let call =
            |lease: &LeaseRef| (self.route(lease.execution_id), RenewLease::new(lease.execution_id, fence(*lease)));
        let calls: Vec<_> = leases.iter().map(call).collect();
        self.operations().client().call_all(&calls).await.into_iter().map(renewal).collect()
    }

    async fn finish(&self, who: &Identity, ends: &[&End], take: Option<&Take>) -> Result<Finished, SdkError> {
        let calls: Vec<(Route, CompleteExecution)> =
            ends.iter().map(|end| (self.route(end.lease.execution_id), completion(end))).collect();
        let carried = self.service.engine.waiting().carry(ends.iter().map(|end| end.lease.execution_id));
        let client = self.operations().client();
        let mut list = List::default();
        let asked: Vec<_> = calls.iter().map(|(route, call)| list.add(client, *route, call)).collect();
        let (mut answers, claimed) = match take {
            None => (client.run(list).await, Ok(Vec::new())),
            Some(Take { lanes, max, request_id }) => {
                let (last, lane) = (calls.last().map(|(route, _)| *route), ends.last().map(|end| end.lane.as_str()));
                self.service
                    .dispatcher
                    .claim_after(list, last, lane, &profile(who, lanes.clone()), *max, *request_id)
                    .await
            }
        };
        let tasks = claimed.unwrap_or_else(|error| {
            tracing::debug!(%error, "a claim that went along with results failed");
            Vec::new()
        });
        let answers = calls.iter().zip(asked).map(|((_, call), one)| {
            let reply = answers.take(one);
            if let Ok(CompleteExecutionReply::Completed) = reply {
                carried.completed(call);
            }
            reply.map(|_| ()).map_err(SdkError::from)
        });
        Ok(Finished { ends: answers.collect(), tasks: tasks.into_iter().map(Claim::from).collect() })
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

    async fn describe(&self, id: ExecutionId) -> Result<ExecutionSnapshot, SdkError> {
        Ok(self.operations().describe(id).await?.into())
    }

    async fn list(
        &self,
        filter: &ExecutionFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<ExecutionPage, SdkError> {
        let page = self.operations().list(filter, after, limit).await?;
        Ok(ExecutionPage { items: page.items.into_iter().map(Into::into).collect(), next: page.next })
    }

    async fn workers(&self) -> Result<Vec<WorkerSnapshot>, SdkError> {
        Ok(self.operations().workers().await?.into_iter().map(Into::into).collect())
    }

    async fn result(&self, id: ExecutionId, wait: Duration) -> Result<Option<ExecutionResult>, SdkError> {
        Ok(match self.service.engine.waiting().result(id, wait).await? {
            AwaitResultReply::Ended { failure, outcome, result, .. } => Some(ExecutionResult {
                outcome,
                result: result.map(|bytes| bytes.0),
                failure: failure.map(Failure::from),
            }),
            AwaitResultReply::Waiting { .. } => None,
        })
    }

    async fn cancel(&self, id: ExecutionId, reason: &str, grace_ms: Option<u64>) -> Result<(), SdkError> {
        self.operations().cancel(id, "sdk", Some(reason), grace_ms.map(millis)).await?;
        Ok(())
    }

    async fn replay(&self, id: ExecutionId) -> Result<(), SdkError> {
        self.operations().replay(id, "sdk", None).await?;
        Ok(())
    }

    async fn revoke(&self, id: ExecutionId, grace: bool) -> Result<(), SdkError> {
        self.operations().revoke(id, "sdk", None, grace).await?;
        Ok(())
    }

    async fn drain_worker(&self, instance: &str) -> Result<(), SdkError> {
        self.operations().drain_worker(instance, "sdk").await?;
        Ok(())
    }
}
