//! The owner of quotas and budgets: creates them, changes their limits, reports usage outside executions, and deletes
//! unused ones.

use std::collections::BTreeMap;

use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::Route;
use ff_script::generated::*;
use uuid::Uuid;

use super::{Actor, LANES, NAMESPACE, Scene, submitter};
use crate::check::set_of;
use crate::request::{Outcome, Reply, Request};
use crate::rng::Rng;

/// The keys that executions use in their quotas.
pub(crate) const KEYS: &[&str] = &["a", "b"];

const DIMENSIONS: &[&str] = &["tokens", "usd"];

/// Shared knowledge about quotas and budgets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// Whether this simulation has any.
    pub on: bool,
    /// Whether quotas are raised at the end; otherwise time alone must be enough.
    pub widened: bool,
    pub quotas: Vec<(Quota, i64)>,
    pub budgets: Vec<NewBudget>,
    /// All reservations: the budget and the id.
    pub reservations: Vec<(BudgetId, Uuid)>,
    /// Grants that an operator gave to a worker, until it takes them.
    pub reclaims: Vec<Grant>,
}

impl Limits {
    /// Every holder set that may have holders.
    pub fn sets(&self) -> Vec<String> {
        let quotas = self.quotas.iter().flat_map(|(quota, _)| KEYS.iter().map(|key| set_of(quota.quota_id, key)));
        quotas.chain(self.budgets.iter().map(|budget| format!("budget:{}", budget.budget_id))).collect()
    }

    /// The scopes whose budgets apply without being named, as in the fleet.
    pub fn scopes(&self) -> Vec<(String, BudgetId)> {
        let named = |budget: &NewBudget| match budget.scope.r#type {
            ScopeType::Namespace => Some((format!("namespace:{NAMESPACE}"), budget.budget_id)),
            ScopeType::Lane => {
                let lane = budget.scope.id.as_deref().unwrap_or_default();
                Some((format!("lane:{NAMESPACE}/{lane}"), budget.budget_id))
            }
            _ => None,
        };
        self.budgets.iter().filter_map(named).collect()
    }

    /// Budgets that apply in a scope without being named.
    fn scoped(&self, wanted: ScopeType, id: Option<&str>) -> impl Iterator<Item = BudgetId> {
        let applies = move |budget: &&NewBudget| budget.scope.r#type == wanted && budget.scope.id.as_deref() == id;
        self.budgets.iter().filter(applies).map(|budget| budget.budget_id)
    }
}

pub(crate) fn draw_amounts(rng: &mut Rng, max: i64) -> BTreeMap<String, i64> {
    let mut amounts = BTreeMap::from([(DIMENSIONS[0].to_owned(), rng.between(1, max))]);
    if rng.percent(30) {
        amounts.insert(DIMENSIONS[1].to_owned(), rng.between(1, max));
    }
    amounts
}

pub(crate) fn draw_quota(rng: &mut Rng) -> Quota {
    let mut quota = Quota::new(QuotaPolicyId::from_uuid(rng.uuid()), NAMESPACE.to_owned(), rng.percent(50));
    let parts = [1, 2, 4, 8, 5, 6, 12, 14][rng.below(8)];
    if parts & 3 != 0 {
        let mode = if parts & 1 != 0 { RateMode::Sliding } else { RateMode::Smooth };
        quota.rate = Some(QuotaRate { limit: rng.between(1, 3), window_ms: rng.between(500, 2_500), mode });
    }
    quota.concurrency = (parts & 4 != 0).then(|| rng.between(1, 2));
    quota.weighted =
        (parts & 8 != 0).then(|| QuotaWeights { limit: rng.between(4, 8), window_ms: rng.between(800, 2_500) });
    quota
}

fn draw_limits(rng: &mut Rng) -> Vec<DimensionLimit> {
    let one = |name: &&str| DimensionLimit {
        name: (**name).to_owned(),
        hard: rng.percent(85).then(|| rng.between(0, 45)),
        soft: rng.percent(35).then(|| rng.between(0, 30)),
    };
    DIMENSIONS.iter().map(one).collect()
}

/// One or two trees, and budgets of scopes.
pub(crate) fn draw_budgets(rng: &mut Rng) -> Vec<NewBudget> {
    let seed = rng.next() as u16;
    let mut all: Vec<NewBudget> = Vec::new();
    for number in 0..rng.between(2, 4) {
        // All budgets of a tree share its partition.
        let id = BudgetId::from_uuid(*submitter::with_seed(rng.uuid(), seed).as_uuid());
        let scope = match rng.weighted(&[60, 20, 5, 15]) {
            0 => BudgetScope { r#type: ScopeType::Custom, id: Some(format!("team-{number}")) },
            1 => BudgetScope { r#type: ScopeType::Lane, id: Some(rng.pick(LANES).0.to_owned()) },
            2 => BudgetScope { r#type: ScopeType::Namespace, id: None },
            _ => BudgetScope { r#type: ScopeType::Flow, id: None },
        };
        let reset = if rng.percent(40) {
            BudgetReset { r#type: ResetType::Interval, interval_ms: Some(rng.between(1_500, 6_000)), zone: None }
        } else {
            BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None }
        };
        let on_soft = OnSoft::ALL[rng.below(OnSoft::ALL.len())];
        let on_hard = OnHard::ALL[rng.weighted(&[45, 25, 15, 15])];
        let parent = all.last().map(|above| above.budget_id).filter(|_| rng.percent(70));
        let dimensions = draw_limits(rng);
        let new = NewBudget::new(id, NAMESPACE.to_owned(), scope, dimensions, reset, on_soft, on_hard);
        all.push(NewBudget { parent, ..new });
    }
    all
}

/// Adds quotas and budgets to a submission, and notes the budgets of its scopes.
pub(super) fn attach(submission: &mut Submission, scene: &mut Scene<'_>) {
    if !scene.board.limits.on {
        return;
    }
    let limits = scene.board.limits.clone();
    submission.quotas = None;
    if !limits.quotas.is_empty() && scene.rng.percent(45) {
        let count = scene.rng.between(1, 2);
        let one = |_| {
            let (quota, _) = scene.rng.pick(&limits.quotas);
            let heaviest = if limits.widened && scene.rng.percent(4) { 12 } else { 4 };
            let weight = scene.rng.percent(50).then(|| scene.rng.between(1, heaviest));
            QuotaRef { weight, ..QuotaRef::new(*quota.quota_id.as_uuid(), (*scene.rng.pick(KEYS)).to_owned()) }
        };
        submission.quotas = Some((0..count).map(one).collect());
    }
    let mut budgets: Vec<BudgetRef> = Vec::new();
    let custom: Vec<BudgetId> = limits
        .budgets
        .iter()
        .filter(|budget| budget.scope.r#type == ScopeType::Custom)
        .map(|budget| budget.budget_id)
        .collect();
    if !custom.is_empty() && scene.rng.percent(45) {
        let id = *scene.rng.pick(&custom);
        let estimate = scene.rng.percent(65).then(|| draw_amounts(scene.rng, 8));
        budgets.push(BudgetRef { estimate, ..BudgetRef::new(*id.as_uuid()) });
    }
    let lane = limits.scoped(ScopeType::Lane, Some(&submission.lane));
    for id in limits.scoped(ScopeType::Namespace, None).chain(lane) {
        budgets.push(BudgetRef::new(*id.as_uuid()));
    }
    submission.budgets = (!budgets.is_empty()).then_some(budgets);
    submission.body_digest = submitter::digest(submission);
}

/// The budgets that a flow shares with its members.
pub(super) fn of_flow(scene: &mut Scene<'_>) -> Option<Vec<BudgetRef>> {
    let ids: Vec<BudgetId> = scene.board.limits.scoped(ScopeType::Flow, None).collect();
    let refs: Vec<BudgetRef> = ids.iter().map(|id| BudgetRef::new(*id.as_uuid())).collect();
    (!refs.is_empty()).then_some(refs)
}

pub(crate) struct Treasurer;

fn me() -> String {
    "ada".to_owned()
}

const BUDGETS: Route = Route::Budget(0);
const QUOTAS: Route = Route::Quota(0);

impl Actor for Treasurer {
    fn name(&self) -> String {
        "treasurer".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        let budget_id = scene.rng.pick(&scene.board.limits.budgets).budget_id;
        let (quota, version) = scene.rng.pick(&scene.board.limits.quotas).clone();
        let (quota_id, key) = (quota.quota_id, (*scene.rng.pick(KEYS)).to_owned());
        match scene.rng.weighted(&[14, 5, 6, 8, 1, 9, 9, 2, 16, 14, 12]) {
            0 => {
                let mut call = ChangeBudget::new(me(), budget_id, draw_limits(scene.rng));
                call.on_hard = scene.rng.percent(10).then(|| OnHard::ALL[scene.rng.below(4)]);
                scene.say(BUDGETS, call);
            }
            1 => {
                let request_id = Some(scene.rng.uuid());
                scene.say(BUDGETS, ResetBudget { actor: me(), budget_id, request_id });
            }
            2 => scene.say(BUDGETS, ApproveBudget { actor: me(), budget_id }),
            3 => {
                let mut delta = scene.rng.between(-8, 8);
                delta += i64::from(delta == 0);
                let (dimension, reason) = (DIMENSIONS[0].to_owned(), "recounted".to_owned());
                let request_id = Some(scene.rng.uuid());
                scene.say(BUDGETS, CorrectBudget { actor: me(), budget_id, delta, dimension, reason, request_id });
            }
            4 => scene.say(BUDGETS, DeleteBudget { actor: me(), budget_id }),
            5 => {
                let mut quota = quota;
                let more = scene.rng.between(1, 4);
                quota.concurrency = quota.concurrency.map(|_| more);
                if let Some(rate) = quota.rate.as_mut().filter(|rate| rate.mode == RateMode::Sliding) {
                    rate.limit = more;
                }
                scene.say(QUOTAS, PutQuota { actor: None, quota, version: Some(version) });
            }
            6 => {
                let until = scene.now + scene.rng.between(-500, 2_500);
                scene.say(QUOTAS, ThrottleQuota { actor: None, key, quota_id, until });
            }
            7 if scene.rng.percent(50) => scene.say(QUOTAS, DeleteQuota { actor: None, quota_id }),
            8 => {
                // Usage outside of any execution.
                let key = format!("k{}", scene.rng.below(12));
                let report = UsageReport::new(key, draw_amounts(scene.rng, 6));
                scene.say(BUDGETS, ApplyUsage { budget_id, report });
            }
            9 => {
                let reservation_id = scene.rng.uuid();
                let mut call = ReserveBudget::new(budget_id, draw_amounts(scene.rng, 8), reservation_id);
                call.ttl_ms = Some(scene.rng.between(200, 4_000));
                scene.board.limits.reservations.push((budget_id, reservation_id));
                scene.say(BUDGETS, call);
            }
            _ => end_reservation(scene),
        }
        scene.rng.between(200, 700)
    }

    fn answer(&mut self, _: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        if let Outcome::Reply(Reply::PutQuota(PutQuotaReply::Replaced { entry } | PutQuotaReply::Duplicate { entry })) =
            outcome
        {
            for (quota, version) in &mut scene.board.limits.quotas {
                if quota.quota_id == entry.quota.quota_id && *version < entry.version {
                    (*quota, *version) = (entry.quota.clone(), entry.version);
                }
            }
        }
    }
}

/// Settles or releases any known reservation.
pub(super) fn end_reservation(scene: &mut Scene<'_>) {
    let lately = scene.board.limits.reservations.len().saturating_sub(6);
    if scene.board.limits.reservations.is_empty() {
        return;
    }
    let (budget_id, reservation_id) = *scene.rng.pick(&scene.board.limits.reservations[lately..]);
    if scene.rng.percent(65) {
        let dimensions = draw_amounts(scene.rng, 10);
        scene.say(BUDGETS, SettleReservation { budget_id, dimensions, reservation_id });
    } else {
        scene.say(BUDGETS, ReleaseReservation { budget_id, reservation_id });
    }
}
