//! The changes that a call may make to a record without an event: a longer lease, progress, the mark of a waiter.

use ff_core::types::ExecutionId;
use ff_script::generated::*;

use super::flows::{is_kin, quietly_same};
use super::shadow::diff;
use super::{Check, Checker, Step, require};
use crate::request::Request;

impl Checker {
    /// The call named this execution and emitted no event for it.
    pub(super) fn stay_quiet(&mut self, step: &Step<'_>, id: ExecutionId, after: Option<Execution>) -> Check {
        let mut expected = self.seen(&id).cloned();
        let mut renewed = None;
        if let Some(expected) = &mut expected
            && step.outcome.committed()
        {
            let current =
                step.request.fences().iter().any(|(named, fence)| *named == id && self.is_current(id, fence, step.now));
            match step.request {
                Request::RenewLease(call) if current => renewed = Some(call.lease_ttl_ms),
                Request::UpdateProgress(call) if current => {
                    expected.progress = Some(Progress { pct: call.pct, message: call.message.clone() });
                    expected.updated_at = step.now;
                }
                Request::AppendFrames(call) if current => {
                    let shadow = &self.executions[&id];
                    let next = shadow.waits.frame_count(shadow.attempts - 1);
                    let first = call.first_sequence.unwrap_or(next);
                    let after = first + call.frames.len() as i64;
                    if first <= next && after > next {
                        expected.attempts.last_mut().expect("it runs").frames = after;
                        expected.updated_at = step.now;
                    }
                }
                // Its content is checked with the ledger.
                Request::NoteUsage(_) | Request::SettleUsage(_) => {
                    expected.usage = after.as_ref().and_then(|after| after.usage.clone());
                }
                Request::CloseWaitpoint(_) | Request::AwaitResult(_) | Request::HoldBudget(_)
                    if after.as_ref().is_some_and(|after| after.updated_at == step.now) =>
                {
                    expected.updated_at = step.now;
                }
                _ => {}
            }
        }
        if let (Some(ttl_ms), Some(expected)) = (renewed, &mut expected) {
            let lease =
                self.executions.get_mut(&id).and_then(|shadow| shadow.lease.as_mut()).expect("its fence is current");
            lease.ttl_ms = ttl_ms.unwrap_or(lease.ttl_ms);
            lease.renewals += 1;
            expected.updated_at = step.now;
            expected.lease.as_mut().expect("it is active").expires_at = step.now + lease.ttl_ms;
        }
        // Other calls may have changed fields that count other executions.
        let related = match (&expected, &after) {
            (Some(expected), Some(after)) => is_kin(after) && quietly_same(expected, after),
            _ => false,
        };
        require!(
            41,
            expected == after || (related && step.outcome.committed()),
            "{} changed {id} without an event: {}",
            step.request.name(),
            diff(expected.as_ref(), after.as_ref())
        );
        if let Some(shadow) = self.executions.get_mut(&id) {
            shadow.seen = after;
        }
        Ok(())
    }
}
