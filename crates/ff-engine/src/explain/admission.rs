//! The part of an explanation that is about admission: each quota and budget an execution names, as it stands, and what
//! would let the execution pass.

use ff_api::budgets::dimensions;
use ff_api::explain::{BudgetFacts, BudgetInTheWay, BudgetLevel, LimitKind, QuotaFacts};
use ff_core::ErrorCode;
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::Error;
use ff_script::generated::{
    Budget, BudgetRef, Execution, LifecyclePhase, OnSoft, QuotaKeyState, QuotaPart, QuotaRef, QuotaUse,
};

use crate::operations::{Operations, refused_with};

/// Refused earlier, and nothing that it names is in the way by now.
pub(super) const ROOM: &str = "there is room by now: it is asked again by itself";
/// Nothing starts that names it.
pub(super) const GONE: &str = "what it names was deleted: make one with the same id, or cancel it";
const NOT_FOUND: &str = "not found";

/// What was deleted, as a reason with its detail.
pub(super) type Gone = (&'static str, [(&'static str, String); 2]);

/// The quota, when it was deleted.
pub(super) fn quota_gone(facts: &QuotaFacts) -> Option<Gone> {
    facts
        .problem
        .as_ref()
        .map(|problem| ("waiting_for_quota", [("quota_id", facts.quota_id.to_string()), ("problem", problem.clone())]))
}

/// The budget, when it was deleted.
pub(super) fn budget_gone(facts: &BudgetFacts) -> Option<Gone> {
    facts.problem.as_ref().map(|problem| {
        ("waiting_for_budget", [("budget_id", facts.budget_id.to_string()), ("problem", problem.clone())])
    })
}

/// What would let an execution pass its budget.
pub(super) fn budget_remedy(facts: &BudgetFacts) -> Option<&str> {
    match (&facts.in_the_way, &facts.problem) {
        (Some(way), _) => Some(&way.remedy),
        (None, Some(_)) => Some(GONE),
        (None, None) => None,
    }
}

impl Operations {
    /// Each quota an execution names that has not ended.
    pub(super) async fn quota_facts(&self, execution: &Execution) -> Result<Vec<QuotaFacts>, Error> {
        let mut facts = Vec::new();
        for quota in execution.quotas.iter().filter(|_| execution.phase != LifecyclePhase::Terminal) {
            let found = self.key_state(quota).await?;
            let waits = execution.phase == LifecyclePhase::Runnable;
            let remedy = match &found {
                None => Some(GONE.to_owned()),
                Some(state) => quota_remedy(quota, state).or_else(|| turn(execution, quota, state)).filter(|_| waits),
            };
            facts.push(QuotaFacts {
                quota_id: QuotaPolicyId::from_uuid(quota.quota_id),
                weight: quota.weight.unwrap_or(1),
                problem: found.is_none().then(|| NOT_FOUND.to_owned()),
                remedy,
                state: found.unwrap_or_else(|| QuotaKeyState::new(quota.key.clone(), Vec::new(), 0, 0)),
            });
        }
        Ok(facts)
    }

    /// What would let work pass a key of a quota, and when it may; nothing while there is room.
    pub(super) async fn quota_now(&self, asks: &QuotaRef) -> Result<(Option<String>, Option<i64>), Error> {
        let Some(state) = self.key_state(asks).await? else { return Ok((Some(GONE.to_owned()), None)) };
        let next_at = state.parts.iter().filter_map(|part| part.next_at).chain(state.throttled_until).max();
        Ok((quota_remedy(asks, &state), next_at))
    }

    /// A key of a quota as it stands; nothing when the quota is gone.
    async fn key_state(&self, quota: &QuotaRef) -> Result<Option<QuotaKeyState>, Error> {
        match self.quota(QuotaPolicyId::from_uuid(quota.quota_id), Some(&quota.key)).await {
            Ok((_, state)) => Ok(state),
            Err(error) if refused_with(&error) == Some(ErrorCode::QuotaNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Each budget an execution names that has not ended.
    pub(super) async fn budget_facts(&self, execution: &Execution) -> Result<Vec<BudgetFacts>, Error> {
        let mut facts = Vec::new();
        let refused =
            refused(execution).filter(|one| execution.budgets.iter().all(|named| named.budget_id != one.budget_id));
        let asked = execution.budgets.iter().chain(&refused);
        for named in asked.filter(|_| execution.phase != LifecyclePhase::Terminal) {
            let path = self.budget_path(BudgetId::from_uuid(named.budget_id)).await?;
            // What runs has passed already, and counts in what is held.
            let waits = execution.phase == LifecyclePhase::Runnable && execution.granted_until.is_none();
            facts.push(BudgetFacts {
                budget_id: BudgetId::from_uuid(named.budget_id),
                estimate: named.estimate.clone(),
                problem: path.is_empty().then(|| NOT_FOUND.to_owned()),
                in_the_way: waits.then(|| in_the_way(named, &path)).flatten(),
                path: path.into_iter().map(level).collect(),
            });
        }
        Ok(facts)
    }

    /// What would let work pass a budget and those above it, and when the first of them that is spent begins anew; nothing
    /// while there is room.
    pub(super) async fn budget_now(&self, asks: &BudgetRef) -> Result<(Option<String>, Option<i64>), Error> {
        let path = self.budget_path(BudgetId::from_uuid(asks.budget_id)).await?;
        if path.is_empty() {
            return Ok((Some(GONE.to_owned()), None));
        }
        let Some(way) = in_the_way(asks, &path) else { return Ok((None, None)) };
        let next_at =
            path.iter().find(|budget| budget.budget_id == way.budget_id).and_then(|budget| budget.next_reset_at);
        Ok((Some(way.remedy), next_at))
    }

    /// A budget and those above it; nothing when it is gone.
    async fn budget_path(&self, id: BudgetId) -> Result<Vec<Budget>, Error> {
        let (mut path, mut next) = (Vec::new(), Some(id));
        while let Some(id) = next {
            match self.budget(id).await {
                Ok(status) => {
                    next = status.budget.parent;
                    path.push(status.budget);
                }
                Err(error) if refused_with(&error) == Some(ErrorCode::BudgetNotFound) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(path)
    }
}

/// There was room for it, and others stood in line before it.
fn turn(execution: &Execution, quota: &QuotaRef, state: &QuotaKeyState) -> Option<String> {
    let detail = execution.blocking_detail.as_ref()?;
    let said = |name: &str, word: &str| detail.get(name).is_some_and(|fact| fact == word);
    let here = said("quota_id", &quota.quota_id.to_string()) && said("key", &quota.key);
    (here && said("part", &QuotaPart::Line.to_string())).then(|| {
        let (key, waiting, id) = (&quota.key, state.waiting, quota.quota_id);
        format!("it is called when its turn has come: {waiting} wait under {key} of quota {id}; a higher priority moves it forward")
    })
}

fn quota_remedy(quota: &QuotaRef, state: &QuotaKeyState) -> Option<String> {
    let (id, key, weight) = (quota.quota_id, &quota.key, quota.weight.unwrap_or(1));
    if let Some(until) = state.throttled_until {
        return Some(format!("{key} of quota {id} is throttled until {until}; end that to start it now"));
    }
    state.parts.iter().find_map(|QuotaUse { part, used, limit, next_at }| {
        let full = next_at.is_some() || used >= limit;
        match part {
            QuotaPart::Weighted if weight > *limit => {
                Some(format!("it weighs {weight}: raise the weighted limit {limit} of quota {id}"))
            }
            QuotaPart::Weighted if used + weight > *limit => Some(format!(
                "{used} of {limit} weigh on {key}: it is called when enough has left the window of quota {id}"
            )),
            QuotaPart::Concurrency if full => Some(format!(
                "it is called when one of the {used} that hold {key} ends; raise the concurrency {limit} of quota {id} to start it now"
            )),
            QuotaPart::Rate if full => {
                let at = next_at.map(|at| format!(" at {at}")).unwrap_or_default();
                Some(format!("it may start{at}; raise the rate {limit} of quota {id} to start it now"))
            }
            _ => None,
        }
    })
}

/// What a budget refused that it reported to without naming it.
fn refused(execution: &Execution) -> Option<BudgetRef> {
    let detail = execution.blocking_detail.as_ref()?;
    let (budget, asks) = (detail.get("reported_to")?.parse::<BudgetId>().ok()?, detail.get("asks")?.parse().ok()?);
    Some(BudgetRef { budget_id: *budget.as_uuid(), estimate: Some([(detail.get("dimension")?.clone(), asks)].into()) })
}

/// The first limit that does not let it pass, hard ones first, as admission looks at them.
fn in_the_way(named: &BudgetRef, path: &[Budget]) -> Option<BudgetInTheWay> {
    let estimate = named.estimate.as_ref().filter(|estimate| !estimate.is_empty());
    // Without an estimate something must be left in every dimension.
    let asks = |name: &str| estimate.map_or(Some(1), |estimate| estimate.get(name).copied());
    for budget in path {
        for d in &budget.dimensions {
            if let (Some(hard), Some(n)) = (d.hard, asks(&d.name))
                && d.used + d.held + n > hard
            {
                let mut ways = vec![format!(
                    "raise the hard limit of {} of budget {} to {} or more",
                    d.name,
                    budget.budget_id,
                    d.used + d.held + n
                )];
                ways.extend((d.held > 0).then(|| format!("wait until some of the {} held is given back", d.held)));
                ways.extend(budget.next_reset_at.map(|at| format!("wait for its reset at {at}")));
                return Some(BudgetInTheWay {
                    budget_id: budget.budget_id,
                    limit: LimitKind::Hard,
                    dimension: d.name.clone(),
                    remedy: ways.join(", or "),
                });
            }
        }
    }
    for budget in path.iter().filter(|budget| budget.on_soft == OnSoft::RequireApproval && !budget.approved) {
        for d in &budget.dimensions {
            if d.soft.is_some_and(|soft| d.used >= soft) {
                let reset = budget.next_reset_at.map(|at| format!(", or wait for its reset at {at}"));
                let id = budget.budget_id;
                return Some(BudgetInTheWay {
                    budget_id: id,
                    limit: LimitKind::Soft,
                    dimension: d.name.clone(),
                    remedy: format!("approve budget {id}, or raise its soft limit{}", reset.unwrap_or_default()),
                });
            }
        }
    }
    None
}

fn level(budget: Budget) -> BudgetLevel {
    BudgetLevel {
        budget_id: budget.budget_id,
        dimensions: dimensions(budget.dimensions),
        approved: budget.approved,
        next_reset_at: budget.next_reset_at,
    }
}
