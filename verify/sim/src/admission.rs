//! Admission of a batch of grants: quotas, then budgets, with the order and the calls of the engine's dispatch.

use std::collections::{BTreeMap, VecDeque};

use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::Route;
use ff_script::generated::*;
use uuid::Uuid;

use crate::request::{Outcome, Reply, Request};

/// The decision about a grant.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    /// It may start. It keeps these sets while its attempt is suspended.
    Start { keep: Vec<String> },
    /// It waits.
    Block(BlockExecution),
    /// The decision is unknown, so the grant is returned.
    GiveBack,
}

enum Ask {
    Quota(QuotaPolicyId, Vec<(usize, QuotaCandidate)>),
    Budget(BudgetId, Vec<(usize, BudgetCandidate)>),
}

#[derive(Default)]
struct Verdict {
    keep: Vec<String>,
    held: bool,
    failed: bool,
    refused: Option<(AdmissionReason, BTreeMap<String, String>)>,
}

impl Verdict {
    fn is_open(&self) -> bool {
        self.refused.is_none() && !self.failed
    }
}

/// Grants in admission, and the remaining requests for them.
pub(crate) struct Batch {
    grants: Vec<(Grant, Verdict)>,
    plan: VecDeque<Ask>,
    /// The grants in the open request.
    asked: Vec<usize>,
}

pub(crate) fn needs_admission(grant: &Grant) -> bool {
    let some = |sets: &Option<Vec<String>>| sets.as_ref().is_some_and(|sets| !sets.is_empty());
    some(&grant.holder_sets)
}

impl Batch {
    pub fn new(grants: Vec<Grant>) -> Self {
        let mut quotas: BTreeMap<Uuid, Vec<(usize, QuotaCandidate)>> = BTreeMap::new();
        let mut budgets: BTreeMap<Uuid, Vec<(usize, BudgetCandidate)>> = BTreeMap::new();
        for (index, grant) in grants.iter().enumerate() {
            for quota in grant.quotas.iter().flatten() {
                let asked = quotas.entry(quota.quota_id).or_default();
                if !asked.iter().any(|(other, candidate)| *other == index && candidate.key == quota.key) {
                    let candidate = QuotaCandidate {
                        execution_id: grant.execution_id,
                        expires_at: grant.expires_at,
                        holder_id: grant.grant_id,
                        key: quota.key.clone(),
                        number: grant.number,
                        score: grant.score,
                        weight: quota.weight.unwrap_or(1),
                    };
                    asked.push((index, candidate));
                }
            }
            for budget in grant.budgets.iter().flatten() {
                let candidate = BudgetCandidate {
                    estimate: budget.estimate.clone(),
                    ..BudgetCandidate::new(grant.execution_id, grant.grant_id, grant.expires_at)
                };
                budgets.entry(budget.budget_id).or_default().push((index, candidate));
            }
        }
        let quotas = quotas.into_iter().map(|(id, asked)| Ask::Quota(QuotaPolicyId::from_uuid(id), asked));
        let budgets = budgets.into_iter().map(|(id, asked)| Ask::Budget(BudgetId::from_uuid(id), asked));
        Batch {
            plan: quotas.chain(budgets).collect(),
            grants: grants.into_iter().map(|grant| (grant, Verdict::default())).collect(),
            asked: Vec::new(),
        }
    }

    /// The next request; `None` if there are no more.
    pub fn next(&mut self) -> Option<(Route, Request)> {
        while let Some(ask) = self.plan.pop_front() {
            let open = |index: &usize| self.grants[*index].1.is_open();
            match ask {
                Ask::Quota(quota_id, asked) => {
                    let asked: Vec<_> = asked.into_iter().filter(|(index, _)| open(index)).collect();
                    if asked.is_empty() {
                        continue;
                    }
                    self.asked = asked.iter().map(|(index, _)| *index).collect();
                    let candidates = asked.into_iter().map(|(_, candidate)| candidate).collect();
                    return Some((Route::Quota(0), AdmitQuota { candidates, quota_id }.into()));
                }
                Ask::Budget(budget_id, asked) => {
                    let asked: Vec<_> = asked.into_iter().filter(|(index, _)| open(index)).collect();
                    if asked.is_empty() {
                        continue;
                    }
                    self.asked = asked.iter().map(|(index, _)| *index).collect();
                    let candidates = asked.into_iter().map(|(_, candidate)| candidate).collect();
                    return Some((Route::Budget(0), AdmitBudget { budget_id, candidates }.into()));
                }
            }
        }
        None
    }

    /// Records the reply to the last request.
    pub fn note(&mut self, request: &Request, outcome: &Outcome) {
        for (at, index) in std::mem::take(&mut self.asked).into_iter().enumerate() {
            let verdict = &mut self.grants[index].1;
            match (request, outcome) {
                (Request::AdmitQuota(call), Outcome::Reply(Reply::AdmitQuota(AdmitQuotaReply::Answered { items }))) => {
                    match &items[at] {
                        QuotaAnswer { admitted: true, keep, .. } => {
                            verdict.held = true;
                            verdict.keep.extend(keep.clone());
                        }
                        QuotaAnswer { part: Some(part), .. } => {
                            let facts = [("quota_id", call.quota_id.to_string()), ("part", part.to_string())];
                            verdict.refused = Some((AdmissionReason::WaitingForQuota, detail(facts)));
                        }
                        _ => verdict.failed = true,
                    }
                }
                (
                    Request::AdmitBudget(call),
                    Outcome::Reply(Reply::AdmitBudget(AdmitBudgetReply::Answered { items })),
                ) => {
                    let item = &items[at];
                    if item.admitted {
                        verdict.held = true;
                    } else {
                        let id = item.budget_id.unwrap_or(call.budget_id).to_string();
                        let rooms = item.rooms.unwrap_or(0).to_string();
                        let refusal = item.refusal.map(|refusal| refusal.to_string()).unwrap_or_default();
                        let dimension = item.dimension.clone().unwrap_or_default();
                        let facts =
                            [("budget_id", id), ("rooms", rooms), ("refusal", refusal), ("dimension", dimension)];
                        verdict.refused = Some((AdmissionReason::WaitingForBudget, detail(facts)));
                    }
                }
                (Request::AdmitQuota(call), Outcome::Refused(error)) if error.code() == "quota_not_found" => {
                    let facts = [("quota_id", call.quota_id.to_string()), ("problem", "not found".to_owned())];
                    verdict.refused = Some((AdmissionReason::WaitingForQuota, detail(facts)));
                }
                (Request::AdmitBudget(call), Outcome::Refused(error)) if error.code() == "budget_not_found" => {
                    let facts = [("budget_id", call.budget_id.to_string()), ("problem", "not found".to_owned())];
                    verdict.refused = Some((AdmissionReason::WaitingForBudget, detail(facts)));
                }
                _ => verdict.failed = true,
            }
        }
    }

    /// The decision about each grant, after the last request.
    pub fn conclude(self) -> Vec<(Grant, Decision)> {
        let decide = |(grant, verdict): (Grant, Verdict)| {
            let decision = match verdict.refused {
                _ if verdict.failed => Decision::GiveBack,
                Some((reason, detail)) => Decision::Block(BlockExecution {
                    detail,
                    execution_id: grant.execution_id,
                    grant_id: grant.grant_id,
                    reason,
                    unheld: Some(!verdict.held),
                }),
                None => Decision::Start { keep: verdict.keep },
            };
            (grant, decision)
        };
        self.grants.into_iter().map(decide).collect()
    }
}

fn detail<const N: usize>(facts: [(&str, String); N]) -> BTreeMap<String, String> {
    facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
}
