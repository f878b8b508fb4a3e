//! Grants: work reserved for one worker while admission decides, and the blocks that follow a refusal.

use ff_core::types::ExecutionId;
use ff_script::generated::{
    AdmissionReason, AttemptType, BlockExecution, BlockExecutionReply, BlockingReason, ConsumeGrant, ConsumeGrantReply,
    Grant, GrantReclaim, GrantReclaimReply, IssueGrants, IssueGrantsReply, ReleaseGrant, ReleaseGrantReply,
    UnblockExecution, UnblockExecutionReply,
};
use sha1::{Digest, Sha1};
use uuid::Uuid;

use super::claim::{Holder, LOOKS_MAX};
use super::execution::{Block, Execution, Granted};
use super::lane::Taker;
use super::{Answer, Lane, Model, Refusal, invalid, queue_of, refused};

impl Model {
    pub fn issue_grants(&mut self, call: &IssueGrants) -> Answer<IssueGrantsReply> {
        if (call.grant_ids.len() as i64) < call.max {
            return Err(invalid("grant_ids", "must hold max items"));
        }
        let path = format!("{}/{}", call.namespace, call.lane);
        let Some(lane) = self.lanes.get(&path) else {
            return Ok(IssueGrantsReply::Granted { grants: Vec::new(), next_score: None });
        };
        if !lane.starts() {
            return Ok(IssueGrantsReply::Paused { state: lane.definition.state });
        }
        let queues = self.queues_for(&path, &Taker::of(&call.capabilities, call.kinds.as_ref()), true);
        let mut open: Vec<&Execution> = self
            .executions
            .values()
            .filter(|e| e.path() == path && queues.contains(&queue_of(e)))
            .filter(|e| {
                e.waiting()
                    .and_then(|w| w.grant.as_ref())
                    .is_some_and(|g| call.grant_ids.contains(&g.asked_as) && self.now < g.until)
            })
            .collect();
        if !open.is_empty() {
            open.sort_by_key(|e| (e.score, e.id.to_string()));
            return Ok(IssueGrantsReply::Granted { grants: open.into_iter().map(typed).collect(), next_score: None });
        }
        let mut rest = self.eligible(&path, &queues);
        let (mut grants, mut looks) = (Vec::new(), 0);
        while (grants.len() as i64) < call.max && looks < LOOKS_MAX && !rest.is_empty() {
            let id = self.take_best(&mut rest, &call.capabilities);
            looks += 1;
            if self.executions[&id].may_start(self.now) {
                grants.push(self.reserve(id, call.grant_ids[grants.len()], &call.instance, call.ttl_ms));
            }
        }
        let next_score = rest.iter().map(|id| self.executions[id].score).min();
        Ok(IssueGrantsReply::Granted { grants, next_score })
    }

    fn reserve(&mut self, id: ExecutionId, asked_as: Uuid, instance: &str, ttl_ms: i64) -> Grant {
        let until = self.now + ttl_ms;
        let holder_sets = self.holder_sets(id);
        self.edit(id, |execution| {
            let grant_id = counted(asked_as, execution.grants);
            execution.grants = execution.grants.wrapping_add(1);
            let waiting = execution.waiting_mut().expect("only waiting work is granted");
            waiting.grant = Some(Granted { id: grant_id, asked_as, instance: instance.to_owned(), until, holder_sets });
            typed(execution)
        })
    }

    /// The holder sets that an execution must enter before it starts: its lane's slots, its quotas, its budgets.
    fn holder_sets(&self, id: ExecutionId) -> Option<Vec<String>> {
        let execution = &self.executions[&id];
        let mut sets: Vec<String> =
            self.lane_of(execution).and_then(|lane| slots_of(execution, lane)).into_iter().collect();
        for quota in &execution.said.quotas {
            sets.push(format!("quota:{}:{}", quota.quota_id, &hex::encode(Sha1::digest(&quota.key))[..20]));
        }
        sets.extend(execution.said.budgets.iter().map(|budget| format!("budget:{}", budget.budget_id)));
        (!sets.is_empty()).then_some(sets)
    }

    fn open_grant(&self, id: ExecutionId, grant_id: Uuid) -> Answer<&Granted> {
        let execution = self.get(id)?;
        let grant = execution.waiting().and_then(|w| w.grant.as_ref());
        grant.filter(|grant| grant.id == grant_id && self.now < grant.until).ok_or_else(|| no_grant(grant_id))
    }

    pub fn consume_grant(&mut self, call: &ConsumeGrant) -> Answer<ConsumeGrantReply> {
        let id = call.execution_id;
        let execution = self.get(id)?;
        if execution
            .running()
            .is_some_and(|r| r.fence.lease_id == call.lease_id && r.instance == call.instance && self.now < r.until)
        {
            return Ok(ConsumeGrantReply::Replayed { task: execution.task() });
        }
        if self.open_grant(id, call.grant_id)?.instance != call.instance || !execution.may_start(self.now) {
            return Err(no_grant(call.grant_id));
        }
        if self.held_by(&call.instance, call.lease_id).is_some() {
            return Err(invalid("lease_id", "is that of another lease"));
        }
        incapable(execution, &Taker::of(&call.capabilities, call.kinds.as_ref()))?;
        if let Some(needed) = self.lane_of(execution).and_then(|lane| slots_of(execution, lane))
            && !self.open_grant(id, call.grant_id)?.holder_sets.iter().flatten().any(|set| *set == needed)
        {
            return Err(no_grant(call.grant_id));
        }
        let holder = Holder {
            instance: &call.instance,
            worker_id: &call.worker_id,
            ttl_ms: call.lease_ttl_ms,
            attempt_id: call.attempt_id,
            lease_id: call.lease_id,
        };
        Ok(ConsumeGrantReply::Claimed { task: self.start(id, holder) })
    }

    pub fn release_grant(&mut self, call: &ReleaseGrant) -> Answer<ReleaseGrantReply> {
        self.open_grant(call.execution_id, call.grant_id)?;
        self.settle(call.execution_id);
        Ok(ReleaseGrantReply::Released)
    }

    pub fn block(&mut self, call: &BlockExecution) -> Answer<BlockExecutionReply> {
        let reason = blocking(call.reason);
        if self.get(call.execution_id)?.blocked_by() == Some(reason) {
            return Ok(BlockExecutionReply::Already);
        }
        self.open_grant(call.execution_id, call.grant_id)?;
        let now = self.now;
        self.edit(call.execution_id, |execution| {
            let waiting = execution.waiting_mut().expect("a granted execution waits");
            waiting.grant = None;
            waiting.block = Some(Block { reason, detail: call.detail.clone(), since: now });
        });
        Ok(BlockExecutionReply::Blocked)
    }

    pub fn unblock(&mut self, call: &UnblockExecution) -> Answer<UnblockExecutionReply> {
        let execution = self.get(call.execution_id)?;
        let refused = call.holder_id.is_some_and(|grant| self.open_grant(call.execution_id, grant).is_ok());
        if execution.blocked_by() != Some(blocking(call.reason)) && !refused {
            return Ok(UnblockExecutionReply::Already { state: execution.state() });
        }
        self.settle(call.execution_id);
        Ok(UnblockExecutionReply::Unblocked { state: self.executions[&call.execution_id].state() })
    }

    pub fn grant_reclaim(&mut self, call: &GrantReclaim) -> Answer<GrantReclaimReply> {
        let execution = self.get(call.execution_id)?;
        let given = execution.waiting().and_then(|w| w.grant.as_ref());
        if given.is_some_and(|grant| grant.asked_as == call.grant_id && self.now < grant.until) {
            return Ok(GrantReclaimReply::Granted { grant: typed(execution) });
        }
        let interrupted = execution.waiting().is_some_and(|w| w.next == AttemptType::Reclaim);
        if !execution.is_eligible() || !interrupted || !execution.may_start(self.now) {
            return Err(refused(
                "execution_not_runnable",
                &[
                    ("lifecycle_phase", Some(execution.phase().to_string())),
                    ("blocking_reason", execution.blocked_by().map(|reason| reason.to_string())),
                ],
            ));
        }
        if execution.said.namespace != call.namespace || !call.lanes.contains(&execution.lane) {
            let problem = format!("{} does not serve the lane {}", call.instance, execution.path());
            return Err(refused(
                "invalid_argument",
                &[("field", Some("instance".to_owned())), ("problem", Some(problem))],
            ));
        }
        incapable(execution, &Taker::of(&call.capabilities, call.kinds.as_ref()))?;
        let now = self.now;
        self.edit(call.execution_id, |execution| execution.note("grant_reclaim", &call.actor, None, now));
        Ok(GrantReclaimReply::Granted {
            grant: self.reserve(call.execution_id, call.grant_id, &call.instance, call.ttl_ms),
        })
    }
}

/// Refuses a worker that lacks something.
fn incapable(execution: &Execution, worker: &Taker<'_>) -> Answer<()> {
    if !worker.takes_kind(&execution.said.kind) {
        return Err(refused("not_capable", &[("kind", Some(execution.said.kind.clone()))]));
    }
    let missing: Vec<String> =
        execution.said.requires.iter().filter(|token| !worker.capabilities.contains(token)).cloned().collect();
    if missing.is_empty() { Ok(()) } else { Err(refused("not_capable", &[("missing", Some(missing.join(",")))])) }
}

/// The id with this number added to its last four digits.
pub(super) fn counted(id: Uuid, count: u16) -> Uuid {
    let (high, low) = id.as_u64_pair();
    let last = (low as u16).wrapping_add(count);
    Uuid::from_u64_pair(high, low & !0xffff | u64::from(last))
}

/// The slots of a limited lane.
fn slots_of(execution: &Execution, lane: &Lane) -> Option<String> {
    lane.definition.max_active.map(|_| format!("lane:{}", execution.path()))
}

fn typed(execution: &Execution) -> Grant {
    let grant = execution.waiting().and_then(|w| w.grant.as_ref()).expect("it is granted");
    Grant {
        execution_id: execution.id,
        grant_id: grant.id,
        expires_at: grant.until,
        lane: execution.lane.clone(),
        kind: execution.said.kind.clone(),
        score: execution.score,
        number: execution.grants.into(),
        budgets: Some(execution.said.budgets.clone()).filter(|refs| !refs.is_empty()),
        quotas: Some(execution.said.quotas.clone()).filter(|refs| !refs.is_empty()),
        holder_sets: grant.holder_sets.clone(),
        keep: None,
    }
}

fn no_grant(id: Uuid) -> Refusal {
    refused("grant_not_found", &[("grant_id", Some(id.to_string()))])
}

fn blocking(reason: AdmissionReason) -> BlockingReason {
    match reason {
        AdmissionReason::WaitingForQuota => BlockingReason::WaitingForQuota,
        AdmissionReason::WaitingForBudget => BlockingReason::WaitingForBudget,
    }
}
