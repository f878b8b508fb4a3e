//! Calls about quotas, budgets and usage, which are not in the model. There are few ids and keys, so that the calls
//! interact.

use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_model::model::Model;
use ff_model::store::ROUTE;
use ff_script::generated as g;
use ff_script::{Invocation, Route};
use rand::Rng;
use rand::rngs::StdRng;
use uuid::Uuid;

use super::call;
use super::other::{SLOTS, holders, id, lane, maybe, some_execution};

/// Functions about quotas, budgets and usage. Each must succeed at least once, not only fail.
pub const FUNCTIONS: [&str; 38] = [
    "ff_list_quota_waiters",
    "ff_quota_holder",
    "ff_awaiting_budget",
    "ff_missing_quotas",
    "ff_unblock_quota",
    "ff_put_quota",
    "ff_get_quota",
    "ff_list_quotas",
    "ff_list_quota_keys",
    "ff_delete_quota",
    "ff_admit_quota",
    "ff_return_quota",
    "ff_settle_quota",
    "ff_throttle_quota",
    "ff_create_budget",
    "ff_change_budget",
    "ff_get_budget",
    "ff_list_budgets",
    "ff_delete_budget",
    "ff_reset_budget",
    "ff_approve_budget",
    "ff_correct_budget",
    "ff_admit_budget",
    "ff_release_budget",
    "ff_reserve_budget",
    "ff_settle_reservation",
    "ff_release_reservation",
    "ff_apply_usage",
    "ff_set_next_reset",
    "ff_cleared_budgets",
    "ff_acknowledge_cleared",
    "ff_note_usage",
    "ff_settle_usage",
    "ff_read_usage",
    "ff_hold_budget",
    "ff_unblock_budget",
    "ff_waiting_for_budgets",
    "ff_note_scope",
];

/// The initial state: three quotas, and four budgets, most of them below another one.
pub fn preamble(rng: &mut StdRng, now: i64) -> Vec<Invocation> {
    let mut calls = Vec::new();
    for number in 0..3 {
        let quota_id = QuotaPolicyId::from_uuid(Uuid::from_u64_pair(0, number));
        let mut quota = g::Quota { quota_id, ..quota(rng) };
        quota.concurrency = quota.concurrency.or(Some(2));
        calls.push(call(SLOTS, &g::PutQuota { actor: None, quota, version: None }, now));
    }
    for number in 0..4 {
        let above = |n| BudgetId::from_uuid(Uuid::from_u64_pair(7, n));
        let parent = (number > 0 && rng.random_ratio(2, 3)).then(|| above(number - 1));
        let budget = g::NewBudget { budget_id: above(number), parent, ..new_budget(rng, now) };
        calls.push(call(BUDGETS, &g::CreateBudget { actor: "ops".to_owned(), budget }, now));
    }
    calls
}

/// One call.
pub fn call_of(rng: &mut StdRng, model: &Model) -> Invocation {
    match rng.random_range(0..10) {
        0..=3 => quotas(rng, model),
        4..=7 => budgets(rng, model),
        _ => usage(rng, model),
    }
}

fn quota(rng: &mut StdRng) -> g::Quota {
    let mode = g::RateMode::ALL[rng.random_range(0..2)];
    g::Quota {
        concurrency: maybe(rng, |rng| rng.random_range(1..4)),
        rate: maybe(rng, |rng| g::QuotaRate {
            limit: rng.random_range(1..4),
            mode,
            window_ms: rng.random_range(1..4_000),
        }),
        weighted: maybe(rng, |rng| g::QuotaWeights {
            limit: rng.random_range(1..9),
            window_ms: rng.random_range(1..4_000),
        }),
        ..g::Quota::new(quota_id(rng), "default".to_owned(), rng.random())
    }
}

fn quota_id(rng: &mut StdRng) -> QuotaPolicyId {
    QuotaPolicyId::from_uuid(id(rng))
}

/// Calls about quotas. There are few ids and keys, so that the calls interact.
fn quotas(rng: &mut StdRng, model: &Model) -> Invocation {
    const DIGESTS: [&str; 2] = ["86f7e437faa5a7fce15d", "e9d71f5ee7c92d6dc9e9"];
    let now = model.now;
    let key = |rng: &mut StdRng| ["a", "b"][rng.random_range(0..2)].to_owned();
    let quota_id = quota_id(rng);
    match rng.random_range(0..14) {
        0 => {
            let version = maybe(rng, |rng| rng.random_range(1..4));
            call(SLOTS, &g::PutQuota { actor: None, quota: quota(rng), version }, now)
        }
        2 => call(SLOTS, &g::GetQuota { key: maybe(rng, key), quota_id }, now),
        3 if rng.random() => {
            let (after, limit) = (rng.random_range(0..2), rng.random_range(1..3));
            call(SLOTS, &g::ListQuotaKeys { after, limit, quota_id }, now)
        }
        3 if rng.random() => {
            let limit = rng.random_range(1..3);
            call(SLOTS, &g::ListQuotaWaiters::new(key(rng), limit, quota_id), now)
        }
        3 if rng.random() => {
            let (limit, keys_max) = (rng.random_range(1..4), rng.random_range(1..3));
            call(SLOTS, &g::QuotaStats { keys_max, limit }, now)
        }
        3 => call(SLOTS, &g::ListQuotas::new(rng.random_range(1..4)), now),
        1 => call(SLOTS, &g::FireDue { draw: 1, limit: 5 }, now),
        4 if rng.random_ratio(1, 8) => call(SLOTS, &g::DeleteQuota { actor: None, quota_id }, now),
        4 if rng.random() => {
            let absent = |holder: g::Holder, rng: &mut StdRng| g::QuotaAbsence {
                execution_id: holder.execution_id,
                key_digest: DIGESTS[rng.random_range(0..2)].to_owned(),
            };
            let items = holders(rng, model).into_iter().map(|holder| absent(holder, rng)).collect();
            call(SLOTS, &g::GiveUpCalled { items, quota_id }, now)
        }
        5..=8 => {
            let one = |holder: g::Holder, rng: &mut StdRng| g::QuotaCandidate {
                execution_id: holder.execution_id,
                expires_at: holder.expires_at.unwrap_or(now + 5_000),
                holder_id: holder.holder_id,
                key: key(rng),
                number: rng.random_range(0..3),
                score: rng.random_range(-5..5),
                weight: rng.random_range(1..9),
            };
            let candidates = holders(rng, model).into_iter().map(|holder| one(holder, rng)).collect();
            call(SLOTS, &g::AdmitQuota { candidates, quota_id }, now)
        }
        9 | 10 => {
            let one = |holder: g::Holder, rng: &mut StdRng| g::QuotaReturn {
                execution_id: holder.execution_id,
                holder_id: holder.holder_id,
                key_digest: DIGESTS[rng.random_range(0..2)].to_owned(),
                unused: rng.random(),
            };
            let items = holders(rng, model).into_iter().map(|holder| one(holder, rng)).collect();
            call(SLOTS, &g::ReturnQuota { items, quota_id }, now)
        }
        11 | 12 => {
            let (execution_id, holder_id) = (some_execution(rng, model), id(rng));
            let weight = rng.random_range(0..12);
            call(SLOTS, &g::SettleQuota { execution_id, holder_id, key: key(rng), quota_id, weight }, now)
        }
        _ => {
            let until = now + rng.random_range(-500..2_000);
            call(SLOTS, &g::ThrottleQuota { actor: None, key: key(rng), quota_id, until }, now)
        }
    }
}

/// The partition of budgets.
pub(super) const BUDGETS: Route = Route::Budget(0);

fn budget_id(rng: &mut StdRng) -> BudgetId {
    BudgetId::from_uuid(Uuid::from_u64_pair(7, rng.random_range(0..4)))
}

fn amounts(rng: &mut StdRng) -> std::collections::BTreeMap<String, i64> {
    let names = ["tokens", "usd"];
    (0..rng.random_range(1..3)).map(|at| (names[at].to_owned(), rng.random_range(1..60))).collect()
}

fn limits(rng: &mut StdRng) -> Vec<g::DimensionLimit> {
    ["tokens", "usd"]
        .map(|name| g::DimensionLimit {
            name: name.to_owned(),
            hard: maybe(rng, |rng| rng.random_range(0..500)),
            soft: maybe(rng, |rng| rng.random_range(0..300)),
        })
        .into()
}

fn new_budget(rng: &mut StdRng, now: i64) -> g::NewBudget {
    use g::ResetType::{Day, Interval, Month, None as Never};
    let kind = [Never, Interval, Day, Month][rng.random_range(0..4)];
    let reset = g::BudgetReset {
        r#type: kind,
        interval_ms: (kind == Interval).then(|| rng.random_range(1_000..20_000)),
        zone: (kind == Day).then(|| "Asia/Tokyo".to_owned()),
    };
    let scope = g::BudgetScope { r#type: g::ScopeType::ALL[rng.random_range(0..5)], id: None };
    let (on_soft, on_hard) = (g::OnSoft::ALL[rng.random_range(0..2)], g::OnHard::ALL[rng.random_range(0..4)]);
    g::NewBudget {
        parent: maybe(rng, budget_id).filter(|_| rng.random()),
        next_reset_at: (kind == Day || kind == Month).then(|| now + rng.random_range(0..9_000)),
        ..g::NewBudget::new(budget_id(rng), "default".to_owned(), scope, limits(rng), reset, on_soft, on_hard)
    }
}

/// Calls about budgets in their own partition.
fn budgets(rng: &mut StdRng, model: &Model) -> Invocation {
    let now = model.now;
    let budget_id = budget_id(rng);
    let (actor, reservation_id) = ("ops".to_owned(), id(rng));
    match rng.random_range(0..22) {
        0 => call(BUDGETS, &g::CreateBudget { actor, budget: new_budget(rng, now) }, now),
        4 => {
            let change = g::ChangeBudget {
                version: maybe(rng, |rng| rng.random_range(1..4)).filter(|_| rng.random()),
                ..g::ChangeBudget::new(actor, budget_id, limits(rng))
            };
            call(BUDGETS, &change, now)
        }
        5 => call(BUDGETS, &g::GetBudget { budget_id }, now),
        6 if rng.random() => call(BUDGETS, &g::BudgetStats { limit: rng.random_range(1..4) }, now),
        6 => call(BUDGETS, &g::ListBudgets::new(rng.random_range(1..4)), now),
        7 if rng.random_ratio(1, 4) => call(BUDGETS, &g::DeleteBudget { actor, budget_id }, now),
        8 => call(BUDGETS, &g::ResetBudget { actor, budget_id, request_id: maybe(rng, id) }, now),
        9 => call(BUDGETS, &g::ApproveBudget { actor, budget_id }, now),
        10 => {
            let (delta, dimension, reason) = (rng.random_range(-20..20), "tokens".to_owned(), String::new());
            call(
                BUDGETS,
                &g::CorrectBudget { actor, budget_id, delta, dimension, reason, request_id: maybe(rng, id) },
                now,
            )
        }
        1 | 7 | 11 | 12 => {
            let candidate = |rng: &mut StdRng, holder: g::Holder| g::BudgetCandidate {
                estimate: maybe(rng, amounts),
                ..g::BudgetCandidate::new(holder.execution_id, holder.holder_id, now + 1_000)
            };
            let candidates = holders(rng, model).into_iter().map(|holder| candidate(rng, holder)).collect();
            call(BUDGETS, &g::AdmitBudget { budget_id, candidates }, now)
        }
        13 => call(BUDGETS, &g::ReleaseBudget { budget_id, holders: holders(rng, model) }, now),
        2 | 14 => {
            let holder =
                maybe(rng, |rng| g::BudgetHolder { execution_id: some_execution(rng, model), holder_id: id(rng) });
            let ttl_ms = holder.is_none().then(|| rng.random_range(1..5_000));
            let reserve = g::ReserveBudget::new(budget_id, amounts(rng), reservation_id);
            call(BUDGETS, &g::ReserveBudget { holder, ttl_ms, ..reserve }, now)
        }
        15 => {
            let settle = g::SettleReservation { budget_id, dimensions: amounts(rng), reservation_id };
            call(BUDGETS, &settle, now)
        }
        16 => call(BUDGETS, &g::ReleaseReservation { budget_id, reservation_id }, now),
        3 | 17 | 18 => {
            let report = g::UsageReport {
                execution_id: maybe(rng, |rng| some_execution(rng, model)),
                holder_id: maybe(rng, id),
                sequence: maybe(rng, |rng| rng.random_range(1..4)),
                reservation_id: rng.random_ratio(1, 4).then_some(reservation_id),
                ..g::UsageReport::new(format!("k{}", rng.random_range(0..40)), amounts(rng))
            };
            call(BUDGETS, &g::ApplyUsage { budget_id, report }, now)
        }
        19 => {
            let period = rng.random_range(1..4);
            call(BUDGETS, &g::SetNextReset { budget_id, next_reset_at: now + 5_000, period }, now)
        }
        20 => call(BUDGETS, &g::ClearedBudgets::new(3), now),
        _ if rng.random() => call(BUDGETS, &g::FireDue { draw: 1, limit: 5 }, now),
        _ => call(
            BUDGETS,
            &g::AcknowledgeCleared { budget_id, rooms: rng.random_range(0..5), told: rng.random_range(0..5) },
            now,
        ),
    }
}

/// Calls about usage of executions, and about scopes.
fn usage(rng: &mut StdRng, model: &Model) -> Invocation {
    let now = model.now;
    let budget_id = budget_id(rng);
    let running: Vec<ExecutionId> =
        model.executions.iter().filter(|(_, e)| e.fence().is_some()).map(|(id, _)| *id).collect();
    let execution_id = match running.len() {
        0 => some_execution(rng, model),
        count => running[rng.random_range(0..count)],
    };
    let fence = model.executions.get(&execution_id).and_then(|e| e.fence().cloned());
    let default = || "default".to_owned();
    let scope = || "namespace:default".to_owned();
    match (rng.random_range(0..12), fence) {
        (0 | 7 | 8, Some(fence)) => {
            let dedup_key = maybe(rng, |rng| format!("k{}", rng.random_range(0..4)));
            let note = g::NoteUsage::new(budget_id, amounts(rng), execution_id, fence);
            let reservation_id = maybe(rng, id).filter(|_| rng.random());
            call(ROUTE, &g::NoteUsage { dedup_key, reservation_id, ..note }, now)
        }
        (9, _) => {
            // A grant that the execution may have; its kept holds go with it.
            let sets = vec![format!("lane:default/{}", lane(rng))];
            call(ROUTE, &g::KeepGrant { execution_id, grant_id: id(rng), sets }, now)
        }
        (6, Some(fence)) => {
            let quota_id = quota_id(rng);
            let key = ["a", "b"][rng.random_range(0..2)].to_owned();
            call(ROUTE, &g::QuotaHolder { execution_id, fence, key, quota_id }, now)
        }
        (1, Some(fence)) => call(ROUTE, &g::HoldBudget { budget_id, execution_id, fence }, now),
        (2, _) => call(ROUTE, &g::ReadUsage { execution_id }, now),
        (3, _) => {
            let outcome = g::UsageOutcome::ALL[rng.random_range(0..g::UsageOutcome::ALL.len())];
            // A breach may end a lease without the model. Both hosts must still do the same.
            let breach = (outcome == g::UsageOutcome::HardBreach).then(|| g::UsageBreach {
                action: g::OnHard::ALL[rng.random_range(0..4)],
                budget_id,
                dimension: "tokens".to_owned(),
                limit: 5,
                rooms: 0,
                used: 5,
            });
            let settle = g::SettleUsage::new(execution_id, outcome, rng.random_range(1..4));
            let settle = g::SettleUsage { counted: maybe(rng, |rng| rng.random()), breach, ..settle };
            call(ROUTE, &settle, now)
        }
        (4, _) => {
            let free = maybe(rng, |rng| [("tokens".to_owned(), rng.random_range(0..50))].into());
            let most = maybe(rng, |rng| rng.random_range(1..3));
            let unblock = g::UnblockBudget::new(budget_id, rng.random_range(1..4), 3);
            call(ROUTE, &g::UnblockBudget { free, most, ..unblock }, now)
        }
        (5, _) if rng.random() => call(ROUTE, &g::AwaitingBudget::new(budget_id, rng.random_range(1..4)), now),
        (5, _) if rng.random() => call(ROUTE, &g::MissingQuotas::new(rng.random_range(1..4)), now),
        (5, _) if rng.random() => call(ROUTE, &g::UnblockQuota::new(rng.random_range(1..4), quota_id(rng)), now),
        (5, _) => call(ROUTE, &g::WaitingForBudgets::new(lane(rng), rng.random_range(1..4), default()), now),
        _ if rng.random() => call(Route::Fleet, &g::BudgetsOfScopes { scopes: vec![scope()] }, now),
        _ => {
            let gone = maybe(rng, |rng| rng.random());
            call(Route::Fleet, &g::NoteScope { gone, ..g::NoteScope::new(budget_id, scope()) }, now)
        }
    }
}
