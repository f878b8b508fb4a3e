//! What a worker says about itself: it registers, lives, renews its leases, and leaves.

use std::time::Duration;

use ff_api::operation::WAIT_MS_MAX;
use ff_api::workers::{
    AttendBody, AttendWorker, Attended, DeregisterWorker, Heartbeat, HeartbeatAnswer, LeaseAnswer, LeaseRefused,
    LeaseRenewed, LeaveBody, RegisterWorker, Registered,
};
use ff_api::{Ask, Nothing, Problem};
use ff_core::error_code::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::generated::{self, RenewLeaseReply, Role};

use crate::principal::Principal;
use crate::service::{Handle, Service};

impl Handle<RegisterWorker> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<RegisterWorker>) -> Result<Registered, Problem> {
        let Ask { at: instance, body, .. } = ask;
        let registration = generated::RegisterWorker {
            capabilities: body.capabilities.unwrap_or_default(),
            incarnation: body.incarnation,
            kinds: body.kinds,
            lanes: body.lanes,
            namespace: body.namespace.unwrap_or_else(|| "default".to_owned()),
            // A worker of this process has no principal of its own.
            owner: by.owner().filter(|_| !self.fleet.is_here()),
            slots: body.slots.unwrap_or(1),
            take_over: None,
            worker_id: body.worker_id,
            instance,
        };
        by.check(&registration.namespace, None)?;
        for lane in &registration.lanes {
            by.check(&registration.namespace, Some(lane))?;
        }
        by.check_capabilities(&registration.capabilities)?;
        let (heartbeat_ms, expires_at) = self.fleet.register(registration).await?;
        Ok(Registered { heartbeat_ms, expires_at, partitions: self.operations.client().partitions() })
    }
}

impl Handle<Heartbeat> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<Heartbeat>) -> Result<HeartbeatAnswer, Problem> {
        let Ask { at: instance, body, .. } = ask;
        let worker = self.fleet.heard(&instance, body.incarnation).await?;
        let renew = body.renew.unwrap_or_default();
        // A worker of this process says that it lives in a heartbeat of its own, so that renewals are one list of the store.
        let draining = match &worker {
            Some(worker) => worker.is_draining(),
            None if renew.is_empty() => {
                let draining = self.fleet.keep_alive(&instance, body.incarnation).await?;
                self.engine.follow_listeners().await?;
                draining
            }
            None => false,
        };
        let mut answers: Vec<Option<LeaseAnswer>> = Vec::with_capacity(renew.len());
        let (mut places, mut leases) = (Vec::new(), Vec::new());
        for (index, lease) in renew.into_iter().enumerate() {
            let execution_id = lease.execution_id;
            // One that is not the caller's to renew is refused alone.
            answers.push(match self.check_fence(by, execution_id, lease.lease_id).await {
                Ok(()) => {
                    places.push(index);
                    leases.push((execution_id, lease.fence()));
                    None
                }
                Err(problem) => Some(refused(execution_id, &problem)),
            });
        }
        let replies = self.fleet.renew(worker.as_ref(), &leases).await;
        for ((index, (execution_id, _)), reply) in places.into_iter().zip(leases).zip(replies) {
            answers[index] = Some(match reply {
                Ok(RenewLeaseReply::Renewed { lease_expires_at, cancel_requested, yield_requested }) => {
                    let renewed = LeaseRenewed { execution_id, lease_expires_at, cancel_requested, yield_requested };
                    LeaseAnswer::Renewed(renewed)
                }
                Err(problem) => refused(execution_id, &problem),
            });
        }
        Ok(HeartbeatAnswer { leases: answers.into_iter().flatten().collect(), draining })
    }
}

fn refused(execution_id: ExecutionId, problem: &Problem) -> LeaseAnswer {
    LeaseAnswer::Refused(LeaseRefused { execution_id, problem: problem.facts().clone() })
}

impl Handle<AttendWorker> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<AttendWorker>) -> Result<Attended, Problem> {
        let Ask { at: instance, body: AttendBody { incarnation, draining, wait_ms, .. }, .. } = ask;
        let wait_ms = wait_ms.unwrap_or(0);
        if wait_ms > WAIT_MS_MAX {
            return Err(Problem::invalid("wait_ms", format!("must be in 0..={WAIT_MS_MAX}, got {wait_ms}")));
        }
        let over = async {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
            }
        };
        let draining = self.fleet.attend(&instance, incarnation, draining.unwrap_or(false), over).await?;
        Ok(Attended { draining })
    }
}

impl Handle<DeregisterWorker> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<DeregisterWorker>) -> Result<Nothing, Problem> {
        let Ask { at: instance, body: LeaveBody { incarnation, force, .. }, .. } = ask;
        if force == Some(true) {
            if !by.has_any(&[Role::Operator]) {
                let detail = format!("{} may not use force; it takes one of the roles operator, admin", by.name());
                return Err(Problem::forbidden(detail));
            }
            self.fleet.send_away(&instance, by.name()).await?;
            return Ok(Nothing {});
        }
        if incarnation.is_none() && self.fleet.meet(&instance).await.is_ok_and(|worker| worker.incarnation().is_some())
        {
            let detail = format!("{instance} is alive and has an incarnation: name it, or, as an operator, say force");
            return Err(Problem::new(409, ErrorCode::InstanceInUse.as_str(), detail));
        }
        self.fleet.deregister(&instance, incarnation).await?;
        Ok(Nothing {})
    }
}
