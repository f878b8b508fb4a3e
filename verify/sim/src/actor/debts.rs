//! Pays the effects that partitions owe each other: releases of holders, calls to waiting executions, unfinished
//! reports.

use std::collections::BTreeMap;

use ff_core::types::{BudgetId, ExecutionId};
use ff_script::generated::*;
use ff_script::{HolderSet, Route};

use super::{Actor, Scene};
use crate::request::{Outcome, Reply, Request};

/// Holders that leave a set; true for a holder that never ran.
type Leaving = Vec<(Holder, bool)>;

/// A payment in flight: the call, the partition that owes, and the effects it acknowledges there.
type Payment = (Request, Route, Vec<String>);

#[derive(Default)]
pub(crate) struct Debts {
    under_way: Vec<Payment>,
    /// The key under which each execution was called last.
    called: BTreeMap<ExecutionId, String>,
}

/// Tells a quota that a called execution will not come; `None` if it may still come.
fn give_up(id: ExecutionId, set: &str, outcome: &Outcome) -> Option<GiveUpCalled> {
    let gone = match outcome {
        Outcome::Reply(Reply::UnblockExecution(UnblockExecutionReply::Already { state })) => {
            !matches!(state, PublicState::Waiting | PublicState::Resumable)
        }
        Outcome::Refused(_) => true,
        _ => false,
    };
    let Some(HolderSet::Quota { id: quota_id, digest }) = HolderSet::read(set).filter(|_| gone) else { return None };
    let items = vec![QuotaAbsence { execution_id: id, key_digest: digest.to_owned() }];
    Some(GiveUpCalled { items, quota_id })
}

/// The execution that an effect calls, and the key.
fn called(effect: &Effect) -> Option<(ExecutionId, String)> {
    let id = effect.data.get("execution_id")?.parse().ok()?;
    Some((id, effect.data.get("set")?.clone())).filter(|_| effect.r#type == "unblock")
}

/// The call that releases holders of a set, and its route.
pub(crate) fn release(set: &str, leaving: Leaving) -> Option<(Route, Request)> {
    match HolderSet::read(set)? {
        HolderSet::Quota { id, digest } => {
            let one = |(holder, unused): (Holder, bool)| QuotaReturn {
                execution_id: holder.execution_id,
                holder_id: holder.holder_id,
                key_digest: digest.to_owned(),
                unused,
            };
            let items = leaving.into_iter().map(one).collect();
            Some((Route::Quota(0), ReturnQuota { items, quota_id: id }.into()))
        }
        HolderSet::Budget { id } => {
            let holders = leaving.into_iter().map(|(holder, _)| holder).collect();
            Some((Route::Budget(0), ReleaseBudget { budget_id: id, holders }.into()))
        }
        HolderSet::Lane { .. } => None,
    }
}

/// The calls that pay effects, each with its effects. Calls about executions have no route, because their ids imply it.
pub(crate) fn payments(effects: &[Effect]) -> Vec<(Option<Route>, Request, Vec<String>)> {
    let mut releases: BTreeMap<String, (Leaving, Vec<String>)> = BTreeMap::new();
    let mut out = Vec::new();
    for effect in effects {
        let execution_id: Option<ExecutionId> = effect.data.get("execution_id").and_then(|id| id.parse().ok());
        let holder_id = effect.data.get("holder_id").and_then(|id| id.parse().ok());
        match (effect.r#type.as_str(), execution_id) {
            ("release_holder", Some(execution_id)) => {
                let holder = Holder { execution_id, expires_at: None, holder_id: holder_id.expect("it names one") };
                let (leaving, ids) = releases.entry(effect.data["set"].clone()).or_default();
                leaving.push((holder, effect.data.contains_key("unused")));
                ids.push(effect.id.clone());
            }
            ("unblock", Some(execution_id)) => {
                let reason = effect.data["reason"].parse().expect("a reason of admission");
                let call = UnblockExecution { execution_id, holder_id, reason };
                out.push((None, call.into(), vec![effect.id.clone()]));
            }
            // First asks whether it still exists.
            ("note_scope", None) => {
                let budget_id = effect.data["budget_id"].parse().expect("the id of a budget");
                out.push((Some(Route::Budget(0)), GetBudget { budget_id }.into(), vec![effect.id.clone()]));
            }
            ("apply_usage", Some(execution_id)) => {
                out.push((None, ReadUsage { execution_id }.into(), vec![effect.id.clone()]));
            }
            _ => {}
        }
    }
    for (set, (leaving, ids)) in releases {
        if let Some((route, call)) = release(&set, leaving) {
            out.push((Some(route), call, ids));
        }
    }
    out
}

/// The note to a budget's scope after the budget was read.
pub(crate) fn scope_note(
    call: &GetBudget,
    outcome: &Outcome,
    scopes: &BTreeMap<BudgetId, String>,
) -> Option<NoteScope> {
    let scope = scopes.get(&call.budget_id)?.clone();
    let gone = match outcome {
        Outcome::Refused(_) => Some(true),
        Outcome::Reply(_) => None,
        Outcome::Failed(_) => return None,
    };
    Some(NoteScope { gone, ..NoteScope::new(call.budget_id, scope) })
}

/// The call of the budget for a report.
pub(crate) fn apply(execution_id: ExecutionId, report: &PendingUsage) -> ApplyUsage {
    let usage = UsageReport {
        execution_id: Some(execution_id),
        holder_id: report.holder_id,
        sequence: Some(report.sequence),
        ..UsageReport::new(report.dedup_key.clone(), report.dimensions.clone())
    };
    ApplyUsage { budget_id: report.budget_id, report: usage }
}

/// The note of a budget's reply to a report of an execution; `None` if there was no reply.
pub(crate) fn settle(call: &ApplyUsage, outcome: &Outcome) -> Option<SettleUsage> {
    let mut settle = SettleUsage::new(call.report.execution_id?, UsageOutcome::Ok, call.report.sequence?);
    match outcome {
        Outcome::Reply(Reply::ApplyUsage(reply)) => match reply {
            ApplyUsageReply::Ok => {}
            ApplyUsageReply::AlreadyApplied { same } => {
                settle.outcome = UsageOutcome::AlreadyApplied;
                settle.counted = Some(*same);
            }
            ApplyUsageReply::SoftBreach { .. } => settle.outcome = UsageOutcome::SoftBreach,
            ApplyUsageReply::HardBreach { action, budget_id, dimension, limit, rooms, used } => {
                settle.outcome = UsageOutcome::HardBreach;
                settle.breach = Some(UsageBreach {
                    action: *action,
                    budget_id: *budget_id,
                    dimension: dimension.clone(),
                    limit: *limit,
                    rooms: *rooms,
                    used: *used,
                });
            }
        },
        Outcome::Refused(_) => settle.outcome = UsageOutcome::Invalid,
        _ => return None,
    }
    Some(settle)
}

impl Debts {
    fn pay(&mut self, route: Route, request: Request, owner: Route, ids: Vec<String>, scene: &mut Scene<'_>) {
        self.under_way.push((request.clone(), owner, ids));
        scene.say(route, request);
    }
}

impl Actor for Debts {
    fn name(&self) -> String {
        "debts".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        // Effects that are still unpaid are read again.
        self.under_way.clear();
        let routes: Vec<Route> = scene.board.routes().chain([Route::Quota(0), Route::Budget(0)]).collect();
        for route in routes {
            scene.say(route, ReadOutbox::new(16));
        }
        scene.rng.between(500, 2_000)
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        if let (Request::ReadOutbox(_), Outcome::Reply(Reply::ReadOutbox(ReadOutboxReply::Effects { items }))) =
            (request, outcome)
        {
            let owner = scene.from.expect("it was answered");
            self.called.extend(items.iter().filter_map(called));
            for (route, call, ids) in payments(items) {
                let route = route.unwrap_or_else(|| scene.board.route_of(&call.targets()[0]));
                self.pay(route, call, owner, ids, scene);
            }
            return;
        }
        let (paid, rest): (Vec<Payment>, Vec<Payment>) =
            std::mem::take(&mut self.under_way).into_iter().partition(|(call, ..)| call == request);
        self.under_way = rest;
        for (_, owner, ids) in paid {
            match (request, outcome) {
                (_, Outcome::Failed(_)) => {}
                (Request::ReadUsage(call), Outcome::Reply(Reply::ReadUsage(ReadUsageReply::Usage { pending, .. })))
                    if !pending.is_empty() =>
                {
                    // The oldest report serves as well as the named one.
                    let apply = apply(call.execution_id, &pending[0]);
                    self.pay(Route::Budget(0), apply.into(), owner, ids, scene);
                }
                (Request::GetBudget(call), _) => {
                    let scopes = scene.board.limits.scopes().into_iter().map(|(scope, id)| (id, scope)).collect();
                    match scope_note(call, outcome, &scopes) {
                        Some(note) => self.pay(Route::Fleet, note.into(), owner, ids, scene),
                        None => scene.say(owner, AckOutbox { ids }),
                    }
                }
                (Request::ApplyUsage(call), _) => {
                    if let Some(settle) = settle(call, outcome) {
                        let route = scene.board.route_of(&settle.execution_id);
                        self.pay(route, settle.into(), owner, ids, scene);
                    }
                }
                _ => {
                    if let Request::UnblockExecution(call) = request
                        && let Some(set) = self.called.remove(&call.execution_id)
                        && let Some(absent) = give_up(call.execution_id, &set, outcome)
                    {
                        scene.say(Route::Quota(0), absent);
                    }
                    scene.say(owner, AckOutbox { ids });
                }
            }
        }
    }
}
