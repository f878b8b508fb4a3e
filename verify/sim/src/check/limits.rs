//! The connection between executions and quotas and budgets: requests before a start, the effects of reports, and whose
//! holds exist.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::{BudgetId, ExecutionId, LeaseId, QuotaPolicyId};
use ff_script::Route;
use ff_script::generated::*;
use uuid::Uuid;

use super::budgets::member;
use super::judge::Judgement;
use super::quotas::set_of;
use super::shadow::End;
use super::verdict::Verdict::{self, Event as Emit, Many, Quiet, Refuse};
use super::verdict::{Standing, refused};
use super::{Check, Checker, Shadow, Step, Violation, require};
use crate::request::{Outcome as CallOutcome, Reply, Request};
use crate::store::Store;

/// The reports of an execution, as far as the checker knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// The sequence of the last report.
    last: i64,
    pending: BTreeMap<i64, Note>,
    /// Accepted and refused amounts, by attempt, budget and dimension.
    ledger: BTreeMap<(i64, BudgetId, String), (i64, i64)>,
    /// The report that suspended the latest lease. This amount must be free before the attempt goes on.
    pub refused: Option<Note>,
}

#[derive(Clone, Debug)]
pub(crate) struct Note {
    budget_id: BudgetId,
    attempt: i64,
    lease_id: LeaseId,
    dedup_key: Option<String>,
    dimensions: BTreeMap<String, i64>,
}

impl Usage {
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.last == 0
    }
}

impl Checker {
    /// Calls to the partitions of quotas and budgets.
    pub(super) fn observe_limits(&mut self, step: &Step<'_>, store: &Store) -> Check {
        for event in step.events {
            let family = if matches!(step.route, Route::Budget(_)) { "budget." } else { "quota." };
            let fits = event.r#type.starts_with(family);
            require!(41, fits, "{} emitted {}", step.request.name(), event.r#type);
        }
        let now = step.now;
        if matches!(step.route, Route::Budget(_)) {
            self.budgets.observe(step.request, step.outcome, now)?;
            if let (Request::ApplyUsage(_), CallOutcome::Reply(Reply::ApplyUsage(reply))) = (step.request, step.outcome)
                && let ApplyUsageReply::HardBreach { action, budget_id, .. } = reply
            {
                let expected = self.budgets.on_hard(*budget_id);
                require!(31, expected == Some(*action), "a breach of {budget_id} means {action}, not {expected:?}");
            }
        } else {
            let entered = entered(step, store)?;
            self.quotas.observe(step.request, step.outcome, now, &entered)?;
        }
        let reads = matches!(
            step.request,
            Request::ListHolders(_)
                | Request::ReadOutbox(_)
                | Request::AckOutbox(_)
                | Request::ClearedBudgets(_)
                | Request::GetBudget(_)
                | Request::ConfirmHolders(_)
        );
        if step.outcome.committed() && !reads { self.check_limits(store, now) } else { Ok(()) }
    }

    /// Compares the state of all quotas and budgets with the counts.
    pub fn check_limits(&self, store: &Store, now: i64) -> Check {
        for id in self.budgets.ids() {
            self.budgets.check(id, store.budget(id)?.as_ref(), now)?;
        }
        for (id, key) in self.quotas.keys() {
            if let Some(state) = store.quota_key(id, &key)? {
                self.quotas.check(id, &key, &state, now)?;
            }
        }
        Ok(())
    }

    /// The expected replies to reports and reservations.
    pub(super) fn usage_verdict(&self, step: &Step<'_>) -> Option<Verdict> {
        let now = step.now;
        Some(match step.request {
            Request::NoteUsage(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => Quiet("Noted"),
                Standing::Ended(End::Breach) => Refuse("hard_breach"),
                other => refused(other),
            },
            Request::HoldBudget(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => Quiet("Held"),
                other => refused(other),
            },
            Request::ReadUsage(call) if self.seen(&call.execution_id).is_some() => Quiet("Usage"),
            Request::SettleUsage(call) => {
                let shadow = self.executions.get(&call.execution_id).filter(|shadow| shadow.seen.is_some());
                let Some(shadow) = shadow else { return Some(Refuse("execution_not_found")) };
                let Some(note) = shadow.usage.pending.get(&call.sequence) else { return Some(Quiet("Already")) };
                // A later lease did not report this.
                let lease = shadow.seen.as_ref().and_then(|seen| seen.lease.as_ref());
                let ends = call.breach.as_ref().filter(|_| lease.is_some_and(|lease| lease.lease_id == note.lease_id));
                match ends.map(|breach| breach.action) {
                    Some(OnHard::Suspend | OnHard::Block) => Emit("Settled", &["execution.blocked"]),
                    Some(OnHard::Cancel) => Emit("Settled", &["execution.cancelled"]),
                    Some(OnHard::Fail) => Emit("Settled", &["execution.failed"]),
                    None => Quiet("Settled"),
                }
            }
            Request::CheckHolders(_) | Request::UnblockBudget(_) | Request::WaitingForBudgets(_) => Many,
            _ => return None,
        })
    }

    /// Checks the content of replies about usage and grants.
    pub(super) fn check_limits_reply(&self, step: &Step<'_>, reply: &Reply) -> Check {
        match (step.request, reply) {
            (Request::IssueGrants(_), Reply::IssueGrants(IssueGrantsReply::Granted { grants, .. })) => {
                grants.iter().try_for_each(|grant| self.check_grant(grant))
            }
            (Request::GrantReclaim(_), Reply::GrantReclaim(GrantReclaimReply::Granted { grant })) => {
                self.check_grant(grant)
            }
            (Request::ReadUsage(call), Reply::ReadUsage(ReadUsageReply::Usage { ledger, pending })) => {
                self.check_ledger(call.execution_id, ledger, pending)
            }
            _ => Ok(()),
        }
    }

    /// A grant requests everything named at submission, except what the execution still holds.
    fn check_grant(&self, grant: &Grant) -> Check {
        let id = grant.execution_id;
        let Some(shadow) = self.executions.get(&id) else { return Ok(()) };
        let Some(seen) = &shadow.seen else { return Ok(()) };
        let budgets = grant.budgets.clone().unwrap_or_default();
        let attached = shadow.asks();
        require!(34, budgets == attached, "{id} is to ask {budgets:?}, attached are {attached:?}");
        let asked = grant.quotas.clone().unwrap_or_default();
        for quota in &seen.quotas {
            let policy = QuotaPolicyId::from_uuid(quota.quota_id);
            let kept = || {
                seen.continues && self.quotas.holds_aside(policy) && self.quotas.is_inside(policy, &quota.key, id, None)
            };
            require!(34, asked.contains(quota) || kept(), "{id} does not ask {} for {}", quota.quota_id, quota.key);
        }
        require!(34, asked.iter().all(|quota| seen.quotas.contains(quota)), "{id} asks for what it does not name");
        Ok(())
    }

    pub fn check_ledger(&self, id: ExecutionId, ledger: &[LedgerLine], pending: &[PendingUsage]) -> Check {
        let Some(shadow) = self.executions.get(&id) else { return Ok(()) };
        let wanted: Vec<i64> = shadow.usage.pending.keys().copied().collect();
        let found: Vec<i64> = pending.iter().map(|report| report.sequence).collect();
        require!(30, found == wanted, "the reports {found:?} of {id} wait, noted were {wanted:?}");
        let found: BTreeMap<(i64, BudgetId, String), (i64, i64)> = ledger
            .iter()
            .map(|line| {
                let key = (line.attempt_index, line.budget_id, line.dimension.clone());
                (key, (line.accepted, line.refused))
            })
            .collect();
        require!(
            30,
            found == shadow.usage.ledger,
            "{id} used {found:?}, but the replies were {:?}",
            shadow.usage.ledger
        );
        Ok(())
    }

    /// Records reports and their replies, after the call was checked.
    pub(super) fn note_usage(&mut self, step: &Step<'_>, verdicts: &[(Option<ExecutionId>, Verdict)]) {
        if !step.outcome.committed() {
            return;
        }
        match (step.request, verdicts.first()) {
            (Request::NoteUsage(call), Some((_, Quiet("Noted")))) => {
                let shadow = self.executions.get_mut(&call.execution_id).expect("its fence is current");
                let again = shadow.usage.pending.values().any(|note| {
                    note.dedup_key.is_some() && note.dedup_key == call.dedup_key && note.budget_id == call.budget_id
                });
                if !again {
                    shadow.usage.last += 1;
                    let note = Note {
                        budget_id: call.budget_id,
                        attempt: shadow.attempts - 1,
                        lease_id: call.fence.lease_id,
                        dedup_key: call.dedup_key.clone(),
                        dimensions: call.dimensions.clone(),
                    };
                    shadow.usage.pending.insert(shadow.usage.last, note);
                }
            }
            (Request::SettleUsage(call), Some((_, Quiet("Settled") | Emit(..)))) => {
                let shadow = self.executions.get_mut(&call.execution_id).expect("it was found");
                let Some(note) = shadow.usage.pending.remove(&call.sequence) else { return };
                let accepted = match call.outcome {
                    UsageOutcome::Ok | UsageOutcome::SoftBreach => true,
                    UsageOutcome::AlreadyApplied if call.counted == Some(true) => true,
                    UsageOutcome::HardBreach => false,
                    UsageOutcome::AlreadyApplied | UsageOutcome::Invalid => return,
                };
                let aside = [OnHard::Suspend, OnHard::Block];
                if matches!(verdicts.first(), Some((_, Emit(..))))
                    && call.breach.as_ref().is_some_and(|breach| aside.contains(&breach.action))
                {
                    shadow.usage.refused = Some(note.clone());
                }
                for (name, n) in note.dimensions {
                    let line = shadow.usage.ledger.entry((note.attempt, note.budget_id, name)).or_default();
                    *(if accepted { &mut line.0 } else { &mut line.1 }) += n;
                }
            }
            _ => {}
        }
    }

    /// The budgets shared with its flow or parent are added to its own.
    pub(super) fn attached(&self, submission: &Submission, after: &Execution) -> Vec<BudgetRef> {
        let mut budgets = submission.budgets.clone().unwrap_or_default();
        let shared = match (self.book_of(after), after.parent_id.and_then(|parent| self.seen(&parent))) {
            (Some(book), _) => book.budgets.clone(),
            (None, parent) => parent.map(|parent| parent.budgets.clone()).unwrap_or_default(),
        };
        for budget in shared {
            if budgets.iter().all(|own| own.budget_id != budget.budget_id) {
                budgets.push(budget);
            }
        }
        budgets
    }

    /// Every holder of a quota or budget runs, is about to run, or was suspended with its holds.
    pub fn check_holders(&self) -> Check {
        let lives = |who: &str, keeps: bool| {
            let seen = who.get(..36).and_then(|id| id.parse().ok()).and_then(|id: ExecutionId| self.seen(&id));
            seen.is_some_and(|seen| match seen.phase {
                LifecyclePhase::Active => true,
                LifecyclePhase::Suspended => keeps,
                LifecyclePhase::Runnable => seen.granted_until.is_some() || (keeps && seen.continues),
                LifecyclePhase::Terminal => false,
            })
        };
        for (id, key, who) in self.quotas.inside() {
            let keeps = self.quotas.holds_aside(id);
            require!(32, lives(who, keeps), "{who} is inside {id} {key} and does not run");
        }
        for id in self.budgets.ids() {
            for who in self.budgets.holders(id) {
                require!(31, lives(who, false), "{who} holds against {id} and does not run");
            }
        }
        Ok(())
    }

    /// Every running execution is in each quota it names, and holds something of each budget.
    pub fn check_admitted(&self) -> Check {
        for (id, _, seen) in self.live().filter(|(.., seen)| seen.phase == LifecyclePhase::Active) {
            for quota in &seen.quotas {
                let policy = QuotaPolicyId::from_uuid(quota.quota_id);
                let inside = !self.quotas.exists(policy) || self.quotas.is_inside(policy, &quota.key, *id, None);
                require!(32, inside, "{id} runs and is not inside {policy} {}", quota.key);
            }
            for budget in &seen.budgets {
                let budget = BudgetId::from_uuid(budget.budget_id);
                let holds = self.budgets.holders(budget).any(|who| who.starts_with(&id.to_string()));
                require!(31, holds || !self.budgets.exists(budget), "{id} runs and holds nothing against {budget}");
            }
        }
        Ok(())
    }

    /// True if a quota or budget it names was deleted: it is never admitted again.
    pub fn is_hopeless(&self, seen: &Execution) -> bool {
        let quota = |quota: &QuotaRef| !self.quotas.exists(QuotaPolicyId::from_uuid(quota.quota_id));
        let budget = |budget: &BudgetRef| !self.budgets.exists(BudgetId::from_uuid(budget.budget_id));
        seen.quotas.iter().any(quota) || seen.budgets.iter().any(budget)
    }

    /// Partitions with a report that waits for its budget, and so with a timer for it.
    pub(super) fn awaits_answers(&self, partition: u16) -> bool {
        self.live_in(partition).any(|(_, shadow, _)| shadow.usage.is_pending())
    }
}

impl Shadow {
    /// Its budgets, with the amounts to admit.
    fn asks(&self) -> Vec<BudgetRef> {
        let mut budgets = self.seen.as_ref().map(|seen| seen.budgets.clone()).unwrap_or_default();
        let lease_id = self.lease.as_ref().map(|lease| lease.fence.lease_id);
        let Some(note) = self.usage.refused.as_ref().filter(|note| Some(note.lease_id) == lease_id) else {
            return budgets;
        };
        for budget in budgets.iter_mut().filter(|budget| BudgetId::from_uuid(budget.budget_id) == note.budget_id) {
            let estimate = budget.estimate.get_or_insert_default();
            for (name, n) in &note.dimensions {
                let most = estimate.entry(name.clone()).or_default();
                *most = (*most).max(*n);
            }
        }
        budgets
    }
}

/// The candidates of a call that are now in their quota.
fn entered(step: &Step<'_>, store: &Store) -> Result<BTreeSet<String>, Violation> {
    let Request::AdmitQuota(call) = step.request else { return Ok(BTreeSet::new()) };
    let sets: BTreeSet<String> = call.candidates.iter().map(|c| set_of(call.quota_id, &c.key)).collect();
    let mut inside = BTreeSet::new();
    for set in sets {
        let holders = store.holders(Route::Quota(0), set.clone())?;
        inside.extend(holders.iter().map(|holder| format!("{set} {}", member(holder.execution_id, holder.holder_id))));
    }
    Ok(inside)
}

impl Judgement<'_> {
    /// A starting execution was admitted by everything it names, under the grant that started it.
    pub(super) fn admitted(&self, before: &Execution, grant_id: Uuid) -> Check {
        let id = self.id;
        for quota in &before.quotas {
            let policy = QuotaPolicyId::from_uuid(quota.quota_id);
            if !self.checker.quotas.exists(policy) {
                continue;
            }
            let kept = before.continues && self.checker.quotas.holds_aside(policy);
            let holder = (!kept).then_some(grant_id);
            let inside = self.checker.quotas.is_inside(policy, &quota.key, id, holder);
            require!(34, inside, "{id} started and {policy} did not let it in under {}", quota.key);
        }
        let who = member(id, grant_id);
        for budget in &before.budgets {
            let budget = BudgetId::from_uuid(budget.budget_id);
            let holds = self.checker.budgets.holders(budget).any(|holder| holder == who);
            require!(34, holds || !self.checker.budgets.exists(budget), "{id} started without asking {budget}");
        }
        Ok(())
    }

    /// A hard limit ended the lease: the attempt is suspended or over.
    pub(super) fn parked(
        &self,
        shadow: &mut Shadow,
        before: &Execution,
        after: &Execution,
        call: &SettleUsage,
    ) -> Check {
        let (id, now) = (self.id, self.step.now);
        let Some(breach) = &call.breach else {
            return Err(Violation::new(31, format!("{id} was parked without a breach")));
        };
        let waits = before.phase == LifecyclePhase::Active
            && after.phase == LifecyclePhase::Runnable
            && after.blocking_reason == Some(BlockingReason::WaitingForBudget)
            && after.lease.is_none()
            && after.attempt_deadline_at.is_none();
        require!(31, waits, "{id} met a hard limit and is {} {:?}", after.state, after.blocking_reason);
        let lease_id = before.lease.as_ref().map(|lease| lease.lease_id);
        if breach.action == OnHard::Suspend {
            if let Some(lease) = &mut shadow.lease {
                lease.ended = Some(End::Breach);
            }
            require!(9, after.continues, "{id} was parked and would start a new attempt");
            let lease_id = lease_id.expect("it was active");
            shadow.waits.parks(lease_id, before.attempt_deadline_at.map(|at| (at - now).max(1)));
            return self.same_attempt(before, after, AttemptState::Suspended);
        }
        shadow.next = Some(AttemptType::Reclaim);
        self.lease_over(shadow, before, after, End::Breach, &[AttemptState::Interrupted])
    }

    /// An execution that waited for a budget goes on because the budget had room after the refusal.
    pub(super) fn had_room(&self, before: &Execution, call: &UnblockBudget) -> Check {
        let id = self.id;
        let detail = before.blocking_detail.clone().unwrap_or_default();
        let waited = before.blocking_reason == Some(BlockingReason::WaitingForBudget)
            && detail.get("budget_id") == Some(&call.budget_id.to_string());
        require!(10, waited, "{id} was unblocked for {} but waits for {detail:?}", call.budget_id);
        let rooms = detail.get("rooms").and_then(|rooms| rooms.parse().ok()).unwrap_or(-1);
        require!(10, rooms < call.rooms, "{id} was refused at room {rooms} and unblocked for room {}", call.rooms);
        Ok(())
    }
}
