//! Operations under a lease. The lease must be the caller's, and one that is over frees its worker's slot.

use std::fmt::Display;

use ff_api::Problem;
use ff_api::tasks::Fence;
use ff_core::types::{ExecutionId, LeaseId};

use crate::principal::Principal;
use crate::service::Service;

impl Service {
    /// Refuses a lease that another principal's worker holds. One that nobody holds is the library's to refuse.
    pub async fn check_fence(&self, by: &Principal, id: ExecutionId, lease: LeaseId) -> Result<(), Problem> {
        if by.is_admin() {
            return Ok(());
        }
        let owner = match self.fleet.holder(lease) {
            Some(worker) => worker.owner(),
            None => {
                // Claimed through another server, or before this one started.
                let Some(lease) = self.operations.describe(id).await?.lease else { return Ok(()) };
                match self.fleet.meet(&lease.worker_instance).await {
                    Ok(worker) => worker.owner(),
                    Err(_) => return Ok(()),
                }
            }
        };
        if by.owns(owner.as_deref()) { Ok(()) } else { Err(another_owner(format_args!("the lease of {id}"))) }
    }

    /// Runs an operation under a lease of the caller's. `ends` says whether the lease is over with an answer; a problem may end it too.
    pub async fn fenced<T>(
        &self,
        by: &Principal,
        id: ExecutionId,
        fence: Fence,
        ends: impl FnOnce(&T) -> bool,
        call: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        self.check_fence(by, id, fence.lease_id).await?;
        let answer = call.await;
        self.note_end(fence.lease_id, &answer, ends);
        answer
    }

    /// Frees the slot of a lease that is over after this answer.
    pub(crate) fn note_end<T>(&self, lease: LeaseId, answer: &Result<T, Problem>, ends: impl FnOnce(&T) -> bool) {
        let over = match answer {
            Ok(answer) => ends(answer),
            Err(problem) => problem.ends_lease(),
        };
        if over {
            self.fleet.ended(lease);
        }
    }
}

/// Refuses what belongs to another principal.
pub fn another_owner(what: impl Display) -> Problem {
    Problem::forbidden(format!("{what} belongs to another principal"))
}
