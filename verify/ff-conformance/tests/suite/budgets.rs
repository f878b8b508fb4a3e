//! Budgets: usage and holds up a tree, limits that are never exceeded, and the actions of operators.

use std::collections::BTreeMap;

use ff_conformance::harness::refusal;
use ff_conformance::work::NAMESPACE;
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{BudgetId, ExecutionId};
use ff_script::generated::*;
use ff_script::{Error, Route, Wake, WakeUp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rmpv::Value;
use uuid::Uuid;

const BUDGETS: Route = Route::Budget(0);
const MAX: i64 = 9_007_199_254_740_991;
const WEEK_MS: i64 = 604_800_000;

fn limit(name: &str, hard: impl Into<Option<i64>>, soft: impl Into<Option<i64>>) -> DimensionLimit {
    DimensionLimit { name: name.into(), hard: hard.into(), soft: soft.into() }
}

fn amounts(list: &[(&str, i64)]) -> BTreeMap<String, i64> {
    list.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
}

fn new_budget(store: &Store, dimensions: Vec<DimensionLimit>) -> NewBudget {
    let scope = BudgetScope { r#type: ScopeType::Custom, id: None };
    let reset = BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None };
    let id = BudgetId::from_uuid(store.uuid(0));
    NewBudget::new(id, NAMESPACE.into(), scope, dimensions, reset, OnSoft::Notify, OnHard::Suspend)
}

async fn try_create(store: &Store, budget: NewBudget) -> Result<CreateBudgetReply, Error> {
    store.call(BUDGETS, &CreateBudget { budget, actor: "ops".into() }).await
}

async fn create(store: &Store, budget: NewBudget) -> BudgetId {
    let CreateBudgetReply::Created { budget, .. } = try_create(store, budget).await.unwrap();
    budget.budget_id
}

async fn simple(store: &Store, hard: i64) -> BudgetId {
    create(store, new_budget(store, vec![limit("tokens", hard, None)])).await
}

async fn child(store: &Store, parent: BudgetId, hard: impl Into<Option<i64>>) -> BudgetId {
    let budget = NewBudget { parent: Some(parent), ..new_budget(store, vec![limit("tokens", hard, None)]) };
    create(store, budget).await
}

async fn get(store: &Store, budget_id: BudgetId) -> Budget {
    let GetBudgetReply::Found { budget, .. } = store.call(BUDGETS, &GetBudget { budget_id }).await.unwrap();
    budget
}

/// Used and held of the first dimension.
async fn spent(store: &Store, budget_id: BudgetId) -> (i64, i64) {
    let budget = get(store, budget_id).await;
    (budget.dimensions[0].used, budget.dimensions[0].held)
}

fn report(store: &Store, dimensions: &[(&str, i64)]) -> UsageReport {
    UsageReport::new(store.uuid(0).to_string(), amounts(dimensions))
}

async fn apply(store: &Store, budget_id: BudgetId, report: UsageReport) -> Result<ApplyUsageReply, Error> {
    store.call(BUDGETS, &ApplyUsage { budget_id, report }).await
}

async fn spend(store: &Store, budget_id: BudgetId, n: i64) -> ApplyUsageReply {
    apply(store, budget_id, report(store, &[("tokens", n)])).await.unwrap()
}

fn candidate(store: &Store, estimate: Option<i64>) -> BudgetCandidate {
    BudgetCandidate {
        execution_id: ExecutionId::from_uuid(store.uuid(0)),
        holder_id: store.uuid(0),
        expires_at: store.now() + 5_000,
        estimate: estimate.map(|n| amounts(&[("tokens", n)])),
    }
}

async fn admit(store: &Store, budget_id: BudgetId, candidates: Vec<BudgetCandidate>) -> Vec<BudgetVerdict> {
    let AdmitBudgetReply::Answered { items } =
        store.call(BUDGETS, &AdmitBudget { budget_id, candidates }).await.unwrap();
    items
}

async fn release(store: &Store, budget_id: BudgetId, who: &BudgetCandidate) -> i64 {
    let holder = Holder { execution_id: who.execution_id, holder_id: who.holder_id, expires_at: None };
    let ReleaseBudgetReply::Released { count } =
        store.call(BUDGETS, &ReleaseBudget { budget_id, holders: vec![holder] }).await.unwrap();
    count
}

fn reservation(store: &Store, budget_id: BudgetId, n: i64) -> ReserveBudget {
    ReserveBudget {
        budget_id,
        dimensions: amounts(&[("tokens", n)]),
        holder: None,
        reservation_id: store.uuid(0),
        ttl_ms: Some(60_000),
    }
}

async fn reserve(store: &Store, call: &ReserveBudget) -> ReserveBudgetReply {
    store.call(BUDGETS, call).await.unwrap()
}

async fn settle(store: &Store, budget_id: BudgetId, id: Uuid, n: i64) -> Result<SettleReservationReply, Error> {
    let call = SettleReservation { budget_id, reservation_id: id, dimensions: amounts(&[("tokens", n)]) };
    store.call(BUDGETS, &call).await
}

async fn raise(store: &Store, budget_id: BudgetId, hard: i64) -> Budget {
    let call = ChangeBudget {
        actor: "ops".into(),
        budget_id,
        limits: vec![limit("tokens", hard, None)],
        on_hard: None,
        on_soft: None,
        version: None,
    };
    let ChangeBudgetReply::Changed { budget, .. } = store.call(BUDGETS, &call).await.unwrap();
    budget
}

async fn cleared(store: &Store) -> Vec<BudgetId> {
    let ClearedBudgetsReply::Cleared { items, .. } = store.call(BUDGETS, &ClearedBudgets::new(10)).await.unwrap();
    items.into_iter().map(|item| item.budget_id).collect()
}

/// The partition's announcements until it is quiet for a moment.
async fn said(news: &mut ff_script::Watch) -> Vec<Wake> {
    let mut all = Vec::new();
    while let Ok(Ok(item)) = tokio::time::timeout(std::time::Duration::from_millis(200), news.recv()).await {
        if let WakeUp::Message { route: BUDGETS, payload } = item {
            all.extend(Wake::read_all(&payload).unwrap());
        }
    }
    all
}

/// Repairs the findings of fsck about budgets.
async fn repair(store: &Store) {
    let keys =
        store.dump().await.into_keys().filter(|key| key.contains("{b:0}")).map(|key| key.into_bytes().into()).collect();
    store.call(BUDGETS, &CheckKeys { keys, repair: true }).await.unwrap();
}

/// The field named in a refusal.
fn field_of(reply: &Value) -> String {
    let map = |value: &Value, name: &str| {
        let entries = value.as_map().unwrap();
        entries.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value.clone())
    };
    assert_eq!(map(reply, "err").as_ref().and_then(Value::as_str), Some("invalid_argument"), "{reply}");
    map(&map(reply, "detail").unwrap(), "field").unwrap().as_str().unwrap().to_owned()
}

fn value(list: Vec<(&str, Value)>) -> Value {
    Value::Map(list.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

for_each_host! {
    async fn accepted_usage_never_passes_a_hard_limit(store) {
        let id = simple(&store, 100).await;
        assert_eq!(spend(&store, id, 60).await, ApplyUsageReply::Ok);
        let breach = spend(&store, id, 41).await;
        let wanted = ApplyUsageReply::HardBreach {
            action: OnHard::Suspend, budget_id: id, dimension: "tokens".into(), limit: 100, rooms: 0, used: 60,
        };
        assert_eq!(breach, wanted);
        assert_eq!(spent(&store, id).await, (60, 0));
        assert_eq!(spend(&store, id, 40).await, ApplyUsageReply::Ok);
        assert!(matches!(spend(&store, id, 1).await, ApplyUsageReply::HardBreach { .. }));
        assert_eq!(spent(&store, id).await, (100, 0));
    }

    async fn a_budget_without_a_hard_limit_only_counts(store) {
        let id = create(&store, new_budget(&store, vec![limit("tokens", None, None)])).await;
        assert_eq!(spend(&store, id, MAX - 1).await, ApplyUsageReply::Ok);
        assert_eq!(refusal(apply(&store, id, report(&store, &[("tokens", 2)])).await), ErrorCode::InvalidArgument);
        assert_eq!(spend(&store, id, 1).await, ApplyUsageReply::Ok);
        assert_eq!(spent(&store, id).await, (MAX, 0));
    }

    async fn a_limit_anywhere_up_the_tree_holds_for_everything_below(store) {
        let root = simple(&store, 100).await;
        let left = child(&store, root, 80).await;
        let right = child(&store, root, None).await;
        let leaf = child(&store, left, 1_000).await;
        assert_eq!(spend(&store, leaf, 50).await, ApplyUsageReply::Ok);
        for id in [leaf, left, root] {
            assert_eq!(spent(&store, id).await, (50, 0));
        }
        assert_eq!(spent(&store, right).await, (0, 0));
        // The middle budget refuses and is named. Nothing changes anywhere.
        match spend(&store, leaf, 31).await {
            ApplyUsageReply::HardBreach { budget_id, used: 50, limit: 80, .. } => assert_eq!(budget_id, left),
            other => panic!("{other:?}"),
        }
        assert_eq!(spend(&store, right, 50).await, ApplyUsageReply::Ok);
        match spend(&store, leaf, 1).await {
            ApplyUsageReply::HardBreach { budget_id, used: 100, limit: 100, .. } => assert_eq!(budget_id, root),
            other => panic!("{other:?}"),
        }
        for (id, used) in [(leaf, 50), (left, 50), (right, 50), (root, 100)] {
            assert_eq!(spent(&store, id).await, (used, 0));
        }
        // Holds of a child count in its parents.
        let wide = child(&store, right, None).await;
        raise(&store, root, 150).await;
        assert!(matches!(reserve(&store, &reservation(&store, wide, 50)).await, ReserveBudgetReply::Reserved { .. }));
        assert_eq!(spent(&store, root).await, (100, 50));
        assert!(matches!(spend(&store, leaf, 1).await, ApplyUsageReply::HardBreach { .. }));
    }

    async fn a_report_counts_once_and_a_refused_one_may_be_made_again(store) {
        let id = simple(&store, 100).await;
        let first = report(&store, &[("tokens", 70)]);
        assert_eq!(apply(&store, id, first.clone()).await.unwrap(), ApplyUsageReply::Ok);
        assert_eq!(apply(&store, id, first.clone()).await.unwrap(), ApplyUsageReply::AlreadyApplied { same: false });
        let second = report(&store, &[("tokens", 70)]);
        for _ in 0..2 {
            let answer = apply(&store, id, second.clone()).await.unwrap();
            assert!(matches!(answer, ApplyUsageReply::HardBreach { .. }));
        }
        raise(&store, id, 140).await;
        assert_eq!(apply(&store, id, second.clone()).await.unwrap(), ApplyUsageReply::Ok);
        assert_eq!(apply(&store, id, second).await.unwrap(), ApplyUsageReply::AlreadyApplied { same: false });
        assert_eq!(spent(&store, id).await, (140, 0));
        // Reports are kept for a week. Their usage stays counted afterwards.
        store.advance(WEEK_MS + 1);
        raise(&store, id, 1_000).await;
        spend(&store, id, 1).await;
        assert_eq!(apply(&store, id, first).await.unwrap(), ApplyUsageReply::Ok);
        assert_eq!(spent(&store, id).await, (211, 0));
    }

    async fn wrong_amounts_are_refused_by_name_and_change_nothing(store) {
        let id = create(&store, new_budget(&store, vec![limit("tokens", 100, None), limit("usd", None, None)])).await;
        spend(&store, id, 10).await;
        let before = store.dump().await;
        let usage = |dimensions: Vec<(&str, Value)>| {
            let report = value(vec![("dedup_key", "k".into()), ("dimensions", value(dimensions))]);
            value(vec![("budget_id", id.to_string().into()), ("report", report)])
        };
        for (dimensions, field) in [
            (vec![("tokens", Value::from(-1))], "report.dimensions.tokens"),
            (vec![("tokens", Value::from(0))], "report.dimensions.tokens"),
            (vec![("tokens", Value::from(1.5))], "report.dimensions.tokens"),
            (vec![("tokens", Value::from(1_i64 << 53))], "report.dimensions.tokens"),
            (vec![("tokens", Value::from("1"))], "report.dimensions.tokens"),
            (vec![("tokens", Value::from(1)), ("calls", Value::from(1))], "report.dimensions.calls"),
            (vec![("usd", Value::from(MAX)), ("tokens", Value::from(MAX))], "report.dimensions.tokens"),
            (vec![], "report.dimensions"),
        ] {
            let reply = store.raw(BUDGETS, "ff_apply_usage", false, &usage(dimensions)).await;
            assert_eq!(field_of(&reply), field);
        }
        let reserve = |name: &str, n: i64| {
            value(vec![
                ("budget_id", id.to_string().into()),
                ("reservation_id", Uuid::from_u128(7).to_string().into()),
                ("ttl_ms", Value::from(1_000)),
                ("dimensions", value(vec![(name, Value::from(n))])),
            ])
        };
        for (call, field) in [(reserve("tokens", -1), "dimensions.tokens"), (reserve("calls", 1), "dimensions.calls")] {
            assert_eq!(field_of(&store.raw(BUDGETS, "ff_reserve_budget", false, &call).await), field);
        }
        let twice = new_budget(&store, vec![limit("a", 1, None), limit("b", 1, None), limit("a", 2, None)]);
        let reply = try_create(&store, twice).await.unwrap_err().to_string();
        assert!(reply.contains("budget.dimensions[2].name"), "{reply}");
        let none = new_budget(&store, vec![]);
        assert_eq!(refusal(try_create(&store, none).await), ErrorCode::InvalidArgument);
        assert_eq!(store.dump().await, before);
    }

    async fn an_unknown_budget_is_refused(store) {
        let id = BudgetId::from_uuid(store.uuid(0));
        let call = GetBudget { budget_id: id };
        assert_eq!(refusal(store.call(BUDGETS, &call).await), ErrorCode::BudgetNotFound);
        assert_eq!(refusal(apply(&store, id, report(&store, &[("tokens", 1)])).await), ErrorCode::BudgetNotFound);
        assert_eq!(refusal(store.call(BUDGETS, &reservation(&store, id, 1)).await), ErrorCode::BudgetNotFound);
        let call = AdmitBudget { budget_id: id, candidates: vec![candidate(&store, None)] };
        assert_eq!(refusal(store.call(BUDGETS, &call).await), ErrorCode::BudgetNotFound);
        let orphan = NewBudget { parent: Some(id), ..new_budget(&store, vec![limit("tokens", 1, None)]) };
        assert_eq!(refusal(try_create(&store, orphan).await), ErrorCode::BudgetNotFound);
    }

    async fn the_same_budget_again_is_a_duplicate_and_another_is_refused(store) {
        let new = new_budget(&store, vec![limit("tokens", 5, None), limit("calls", 1, None)]);
        let CreateBudgetReply::Created { budget, duplicate } = try_create(&store, new.clone()).await.unwrap();
        assert!(!duplicate);
        assert_eq!(budget.dimensions.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["calls", "tokens"]);
        let CreateBudgetReply::Created { duplicate, .. } = try_create(&store, new.clone()).await.unwrap();
        assert!(duplicate);
        let other = NewBudget { dimensions: vec![limit("tokens", 6, None)], ..new };
        assert_eq!(refusal(try_create(&store, other).await), ErrorCode::IdempotencyConflict);
    }

    async fn admission_holds_the_estimate_until_the_holder_is_released(store) {
        let id = simple(&store, 100).await;
        let (a, b, c) = (candidate(&store, Some(60)), candidate(&store, Some(60)), candidate(&store, Some(40)));
        let items = admit(&store, id, vec![a.clone(), b.clone(), c.clone()]).await;
        assert_eq!(items.iter().map(|item| item.admitted).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!((items[1].refusal, items[1].dimension.as_deref()), (Some(BudgetRefusal::Hard), Some("tokens")));
        assert_eq!(spent(&store, id).await, (0, 100));
        // Repeating the request admits the same holders and holds nothing twice.
        assert!(admit(&store, id, vec![a.clone()]).await[0].admitted);
        assert_eq!(spent(&store, id).await, (0, 100));
        // Without an estimate, something must be left.
        assert!(!admit(&store, id, vec![candidate(&store, None)]).await[0].admitted);
        assert_eq!(release(&store, id, &a).await, 1);
        assert_eq!(release(&store, id, &a).await, 0);
        assert_eq!(spent(&store, id).await, (0, 40));
        assert!(admit(&store, id, vec![candidate(&store, None)]).await[0].admitted);
        assert!(admit(&store, id, vec![b.clone()]).await[0].admitted);
        let strange = BudgetCandidate { estimate: Some(amounts(&[("calls", 1)])), ..candidate(&store, None) };
        assert_eq!(admit(&store, id, vec![strange]).await[0].refusal, Some(BudgetRefusal::UnknownDimension));
    }

    async fn usage_first_takes_what_its_reporter_holds(store) {
        let id = simple(&store, 100).await;
        let who = candidate(&store, Some(30));
        admit(&store, id, vec![who.clone(), candidate(&store, Some(70))]).await;
        let own = |n: i64| UsageReport {
            execution_id: Some(who.execution_id),
            holder_id: Some(who.holder_id),
            ..report(&store, &[("tokens", n)])
        };
        // Nothing is free: another worker gets nothing, and the holder gets no more than it holds.
        assert!(matches!(spend(&store, id, 1).await, ApplyUsageReply::HardBreach { .. }));
        assert_eq!(apply(&store, id, own(20)).await.unwrap(), ApplyUsageReply::Ok);
        assert_eq!(spent(&store, id).await, (20, 80));
        assert!(matches!(apply(&store, id, own(11)).await.unwrap(), ApplyUsageReply::HardBreach { .. }));
        assert_eq!(apply(&store, id, own(10)).await.unwrap(), ApplyUsageReply::Ok);
        assert_eq!(spent(&store, id).await, (30, 70));
        assert_eq!(release(&store, id, &who).await, 1);
        assert_eq!(spent(&store, id).await, (30, 70));
    }

    async fn a_reservation_is_settled_once_and_the_difference_returns(store) {
        let id = simple(&store, 100).await;
        let call = reservation(&store, id, 80);
        assert!(matches!(reserve(&store, &call).await, ReserveBudgetReply::Reserved { duplicate: false, .. }));
        assert!(matches!(reserve(&store, &call).await, ReserveBudgetReply::Reserved { duplicate: true, .. }));
        let other = ReserveBudget { dimensions: amounts(&[("tokens", 7)]), ..call.clone() };
        assert_eq!(refusal(store.call(BUDGETS, &other).await), ErrorCode::IdempotencyConflict);
        let more = reserve(&store, &reservation(&store, id, 21)).await;
        assert!(matches!(more, ReserveBudgetReply::HardBreach { used: 0, limit: 100, .. }));
        assert_eq!(spent(&store, id).await, (0, 80));
        // More than the limit fails, and the reservation stays.
        let over = settle(&store, id, call.reservation_id, 101).await.unwrap();
        assert!(matches!(over, SettleReservationReply::HardBreach { .. }));
        assert_eq!(spent(&store, id).await, (0, 80));
        assert_eq!(settle(&store, id, call.reservation_id, 50).await.unwrap(), SettleReservationReply::Ok);
        assert_eq!(settle(&store, id, call.reservation_id, 50).await.unwrap(), SettleReservationReply::AlreadyApplied);
        assert_eq!(refusal(store.call(BUDGETS, &call).await), ErrorCode::IdempotencyConflict);
        assert_eq!(spent(&store, id).await, (50, 0));
        let second = reservation(&store, id, 50);
        reserve(&store, &second).await;
        let give_back = ReleaseReservation { budget_id: id, reservation_id: second.reservation_id };
        assert_eq!(store.call(BUDGETS, &give_back).await, Ok(ReleaseReservationReply::Released));
        assert_eq!(store.call(BUDGETS, &give_back).await, Ok(ReleaseReservationReply::Released), "asked again, it is as it is");
        let unknown = ReleaseReservation { reservation_id: store.uuid(0), ..give_back };
        assert_eq!(refusal(store.call(BUDGETS, &unknown).await), ErrorCode::ReservationNotFound);
        assert_eq!(refusal(settle(&store, id, second.reservation_id, 1).await), ErrorCode::ReservationNotFound);
        assert_eq!(spent(&store, id).await, (50, 0));
    }

    async fn a_reservation_ends_with_its_time_or_with_its_holder(store) {
        let id = simple(&store, 100).await;
        let timed = ReserveBudget { ttl_ms: Some(5_000), ..reservation(&store, id, 60) };
        reserve(&store, &timed).await;
        let who = candidate(&store, None);
        let holder = BudgetHolder { execution_id: who.execution_id, holder_id: who.holder_id };
        let held = ReserveBudget { ttl_ms: None, holder: Some(holder), ..reservation(&store, id, 40) };
        reserve(&store, &held).await;
        store.advance(4_999);
        store.fire_due(BUDGETS).await;
        assert_eq!(spent(&store, id).await, (0, 100));
        store.advance(1);
        store.fire_due(BUDGETS).await;
        assert_eq!(spent(&store, id).await, (0, 40));
        let mine = UsageReport {
            execution_id: Some(who.execution_id),
            holder_id: Some(who.holder_id),
            ..report(&store, &[("tokens", 30)])
        };
        assert_eq!(apply(&store, id, mine).await.unwrap(), ApplyUsageReply::Ok);
        assert_eq!(spent(&store, id).await, (30, 10));
        assert_eq!(release(&store, id, &who).await, 1);
        assert_eq!(spent(&store, id).await, (30, 0));
    }

    async fn an_interval_ends_by_itself_and_keeps_its_step(store) {
        let reset = BudgetReset { r#type: ResetType::Interval, interval_ms: Some(10_000), zone: None };
        let id = create(&store, NewBudget { reset, ..new_budget(&store, vec![limit("tokens", 10, None)]) }).await;
        let first_end = store.now() + 10_000;
        spend(&store, id, 10).await;
        let kept = reserve(&store, &reservation(&store, id, 1)).await;
        assert!(matches!(kept, ReserveBudgetReply::HardBreach { .. }));
        store.advance(10_000);
        store.fire_due(BUDGETS).await;
        let budget = get(&store, id).await;
        assert_eq!((budget.dimensions[0].used, budget.period, budget.next_reset_at), (0, 2, Some(first_end + 10_000)));
        // The period ends for the next call, with or without a timer. A period without calls does not shift the
        // interval.
        spend(&store, id, 10).await;
        store.advance(25_000);
        assert_eq!(spent(&store, id).await, (0, 0));
        assert_eq!(spend(&store, id, 4).await, ApplyUsageReply::Ok);
        assert_eq!(get(&store, id).await.next_reset_at, Some(first_end + 30_000));
        store.fire_due(BUDGETS).await;
        assert_eq!(spent(&store, id).await, (4, 0));
    }

    async fn a_calendar_asks_for_its_next_end(store) {
        let reset = BudgetReset { r#type: ResetType::Day, interval_ms: None, zone: Some("Europe/Berlin".into()) };
        let new = NewBudget { reset, ..new_budget(&store, vec![limit("tokens", 10, None)]) };
        assert_eq!(refusal(try_create(&store, new.clone()).await), ErrorCode::InvalidArgument);
        let id = create(&store, NewBudget { next_reset_at: Some(store.now() + 1_000), ..new }).await;
        spend(&store, id, 10).await;
        store.advance(1_000);
        store.fire_due(BUDGETS).await;
        assert_eq!(spent(&store, id).await, (0, 0));
        let ClearedBudgetsReply::Cleared { items, .. } =
            store.call(BUDGETS, &ClearedBudgets::new(10)).await.unwrap();
        assert!(items[0].next_reset_wanted);
        let done = AcknowledgeCleared { budget_id: id, rooms: items[0].rooms, told: items[0].rooms };
        assert_eq!(store.call(BUDGETS, &done).await, Ok(AcknowledgeClearedReply::Acknowledged { stays: true }));
        let next = SetNextReset { budget_id: id, period: 2, next_reset_at: store.now() + 86_400_000 };
        assert_eq!(store.call(BUDGETS, &next).await, Ok(SetNextResetReply::Set));
        assert_eq!(store.call(BUDGETS, &next).await, Ok(SetNextResetReply::Unchanged));
        assert_eq!(store.call(BUDGETS, &done).await, Ok(AcknowledgeClearedReply::Acknowledged { stays: false }));
        assert_eq!(get(&store, id).await.next_reset_at, Some(store.now() + 86_400_000));
    }

    async fn a_soft_limit_is_said_and_can_ask_for_approval(store) {
        let soft = |on_soft| NewBudget { on_soft, ..new_budget(&store, vec![limit("tokens", 100, 50)]) };
        let told = create(&store, soft(OnSoft::Notify)).await;
        assert_eq!(spend(&store, told, 49).await, ApplyUsageReply::Ok);
        let breach = spend(&store, told, 1).await;
        let wanted =
            ApplyUsageReply::SoftBreach { budget_id: told, dimension: "tokens".into(), limit: 50, used: 50 };
        assert_eq!(breach, wanted);
        assert!(admit(&store, told, vec![candidate(&store, Some(5))]).await[0].admitted);

        let asks = create(&store, soft(OnSoft::RequireApproval)).await;
        let running = candidate(&store, Some(60));
        assert!(admit(&store, asks, vec![running.clone()]).await[0].admitted);
        spend(&store, asks, 40).await;
        let late = UsageReport {
            execution_id: Some(running.execution_id),
            holder_id: Some(running.holder_id),
            ..report(&store, &[("tokens", 20)])
        };
        // Running work goes on. New work waits for an operator.
        assert!(matches!(apply(&store, asks, late).await.unwrap(), ApplyUsageReply::SoftBreach { .. }));
        release(&store, asks, &running).await;
        let waiting = admit(&store, asks, vec![candidate(&store, Some(5))]).await;
        assert_eq!((waiting[0].refusal, waiting[0].limit), (Some(BudgetRefusal::Soft), Some(50)));
        let ApproveBudgetReply::Approved { budget } =
            store.call(BUDGETS, &ApproveBudget { actor: "ops".into(), budget_id: asks }).await.unwrap();
        assert!(budget.approved);
        assert_eq!(cleared(&store).await, [asks]);
        assert!(admit(&store, asks, vec![candidate(&store, Some(5))]).await[0].admitted);
        // The approval ends with the period.
        let ResetBudgetReply::Reset { budget } =
            store.call(BUDGETS, &ResetBudget { actor: "ops".into(), budget_id: asks, request_id: None }).await.unwrap();
        assert!(!budget.approved);
        assert_eq!((budget.dimensions[0].used, budget.dimensions[0].held), (0, 5));
        let actions: Vec<_> = budget.actions.iter().map(|action| action.action.as_str()).collect();
        assert_eq!(actions, ["approve", "reset"]);
    }

    async fn what_an_operator_asked_for_once_is_done_once(store) {
        let id = simple(&store, 100).await;
        spend(&store, id, 40).await;
        let correct = CorrectBudget {
            actor: "eve".into(), budget_id: id, delta: -10, dimension: "tokens".into(), reason: "recounted".into(), request_id: Some(store.uuid(0)),
        };
        for _ in 0..2 {
            store.call(BUDGETS, &correct).await.unwrap();
            assert_eq!(spent(&store, id).await, (30, 0), "its answer was lost, it comes again");
        }
        let reset = ResetBudget { actor: "eve".into(), budget_id: id, request_id: Some(store.uuid(0)) };
        store.advance(1_000);
        store.call(BUDGETS, &reset).await.unwrap();
        spend(&store, id, 70).await;
        store.call(BUDGETS, &reset).await.unwrap();
        assert_eq!(spent(&store, id).await, (70, 0), "what was used since stays used");
        let budget = get(&store, id).await;
        assert_eq!(budget.actions.iter().map(|action| action.action.as_str()).collect::<Vec<_>>(), ["correct", "reset"]);
        assert_eq!(budget.past, [BudgetPeriod { since: budget.created_at, ended_at: store.now(), used: amounts(&[("tokens", 30)]) }], "what the period used can be read");
        let held = reservation(&store, id, 5);
        reserve(&store, &held).await;
        let give_back = ReleaseReservation { budget_id: id, reservation_id: held.reservation_id };
        for _ in 0..2 {
            store.call(BUDGETS, &give_back).await.unwrap();
            assert_eq!(spent(&store, id).await, (70, 0));
        }
        for _ in 0..2 {
            store.call(BUDGETS, &DeleteBudget { actor: "eve".into(), budget_id: id }).await.unwrap();
        }
        assert_eq!(refusal(store.call(BUDGETS, &GetBudget { budget_id: id }).await), ErrorCode::BudgetNotFound);
    }

    async fn the_last_periods_can_be_read(store) {
        let reset = BudgetReset { r#type: ResetType::Interval, interval_ms: Some(10_000), zone: None };
        let id = create(&store, NewBudget { reset, ..new_budget(&store, vec![limit("tokens", 1_000, None)]) }).await;
        for n in 1..=35 {
            spend(&store, id, n).await;
            store.advance(10_000);
        }
        let past = get(&store, id).await.past;
        assert_eq!(past.len(), 30, "the oldest are forgotten");
        assert_eq!(past.iter().map(|period| period.used["tokens"]).collect::<Vec<_>>(), (6..=35).collect::<Vec<_>>());
        assert!(past.windows(2).all(|two| two[0].ended_at == two[1].since), "one begins where the other ended");
    }

    async fn corrections_are_kept_with_actor_and_reason(store) {
        let root = simple(&store, 100).await;
        let id = child(&store, root, 100).await;
        spend(&store, id, 40).await;
        let correct = |delta: i64| CorrectBudget {
            actor: "eve".into(),
            budget_id: id,
            delta,
            dimension: "tokens".into(),
            reason: "billed twice".into(), request_id: None,
        };
        for delta in [0, -41] {
            assert_eq!(refusal(store.call(BUDGETS, &correct(delta)).await), ErrorCode::InvalidArgument);
        }
        let CorrectBudgetReply::Corrected { budget } = store.call(BUDGETS, &correct(-30)).await.unwrap();
        let action = budget.actions.last().unwrap();
        assert_eq!((action.action.as_str(), action.actor.as_str(), action.delta), ("correct", "eve", Some(-30)));
        assert_eq!((action.dimension.as_deref(), action.reason.as_deref()), (Some("tokens"), Some("billed twice")));
        assert_eq!((spent(&store, id).await, spent(&store, root).await), ((10, 0), (10, 0)));
        // An operator may correct the usage to more than the limit. Nothing is accepted then.
        store.call(BUDGETS, &correct(200)).await.unwrap();
        assert_eq!(spent(&store, root).await, (210, 0));
        assert!(matches!(spend(&store, id, 1).await, ApplyUsageReply::HardBreach { .. }));
    }

    async fn room_is_said_once_after_a_refusal_and_marked_until_acknowledged(store) {
        let mut news = store.host().watch();
        store.host().subscribe(&[BUDGETS]).await.unwrap();
        let id = simple(&store, 10).await;
        let who = candidate(&store, Some(10));
        admit(&store, id, vec![who.clone()]).await;
        raise(&store, id, 20).await;
        let quiet = candidate(&store, Some(10));
        admit(&store, id, vec![quiet.clone()]).await;
        release(&store, id, &quiet).await;
        // No execution was refused, so nothing is announced.
        assert_eq!(cleared(&store).await, []);
        admit(&store, id, vec![candidate(&store, Some(15))]).await;
        release(&store, id, &who).await;
        assert_eq!(cleared(&store).await, [id]);
        if store.kind() == ff_conformance::Kind::Embedded {
            let heard = said(&mut news).await;
            assert_eq!(heard.iter().filter(|wake| **wake == Wake::Budget { budget_id: id }).count(), 1, "{heard:?}");
        }
        let rooms = get(&store, id).await.rooms;
        let done = |rooms| AcknowledgeCleared { budget_id: id, rooms, told: rooms };
        assert_eq!(store.call(BUDGETS, &done(rooms - 1)).await, Ok(AcknowledgeClearedReply::Acknowledged { stays: true }));
        assert_eq!(store.call(BUDGETS, &done(rooms)).await, Ok(AcknowledgeClearedReply::Acknowledged { stays: false }));
        assert_eq!(cleared(&store).await, []);
    }

    async fn limits_change_by_version_and_dimensions_never(store) {
        let id = simple(&store, 10).await;
        let change = |limits, version| ChangeBudget {
            actor: "ops".into(), budget_id: id, limits, on_hard: Some(OnHard::Fail), on_soft: None, version,
        };
        let reply = store.call(BUDGETS, &change(vec![limit("tokens", 20, 15)], Some(1))).await.unwrap();
        let ChangeBudgetReply::Changed { budget, changed } = reply;
        assert!(changed);
        assert_eq!((budget.version, budget.on_hard), (2, OnHard::Fail));
        let stale = store.call(BUDGETS, &change(vec![], Some(1))).await;
        assert_eq!(refusal(stale), ErrorCode::BudgetVersionConflict);
        for wrong in [vec![limit("calls", 1, None)], vec![limit("tokens", 1, None), limit("tokens", 2, None)]] {
            let error = store.call(BUDGETS, &change(wrong, None)).await.unwrap_err().to_string();
            assert!(error.contains("limits["), "{error}");
        }
        // A limit may be set below the used amount. Nothing is accepted until there is room.
        spend(&store, id, 15).await;
        raise(&store, id, 5).await;
        assert!(matches!(spend(&store, id, 1).await, ApplyUsageReply::HardBreach { used: 15, limit: 5, .. }));
    }

    async fn a_budget_goes_when_nothing_needs_it(store) {
        let root = simple(&store, 10).await;
        let id = child(&store, root, 10).await;
        let who = candidate(&store, Some(1));
        admit(&store, id, vec![who.clone()]).await;
        spend(&store, id, 1).await;
        let delete = |budget_id| DeleteBudget { actor: "ops".into(), budget_id };
        assert_eq!(refusal(store.call(BUDGETS, &delete(root)).await), ErrorCode::BudgetInUse);
        assert_eq!(refusal(store.call(BUDGETS, &delete(id)).await), ErrorCode::BudgetInUse);
        release(&store, id, &who).await;
        assert_eq!(store.call(BUDGETS, &delete(id)).await, Ok(DeleteBudgetReply::Deleted));
        assert_eq!(store.call(BUDGETS, &delete(root)).await, Ok(DeleteBudgetReply::Deleted));
        assert_eq!(release(&store, id, &who).await, 0);
        let left: Vec<_> =
            store.dump().await.into_keys().filter(|key| key.starts_with("ff:budget:")).collect();
        assert_eq!(left, Vec::<String>::new());
    }

    async fn budgets_are_listed_newest_first(store) {
        let mut ids = Vec::new();
        for _ in 0..5 {
            ids.push(simple(&store, 1).await);
            store.advance(1);
        }
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let call = ListBudgets { after, limit: 2, namespace: Some(NAMESPACE.into()), scope: None };
            let ListBudgetsReply::Page { items, last, more } = store.call(BUDGETS, &call).await.unwrap();
            seen.extend(items.into_iter().map(|budget| budget.budget_id));
            after = last;
            if !more {
                break;
            }
        }
        ids.reverse();
        assert_eq!(seen, ids);
    }

    async fn damage_is_found_by_number_and_repaired_where_that_is_safe(store) {
        let Some(server) = store.server() else { return };
        let reset = BudgetReset { r#type: ResetType::Interval, interval_ms: Some(60_000), zone: None };
        let id = create(&store, NewBudget { reset, ..new_budget(&store, vec![limit("tokens", 100, None)]) }).await;
        spend(&store, id, 10).await;
        let call = reservation(&store, id, 20);
        reserve(&store, &call).await;
        store.assert_sound().await;
        let sound = store.dump_without_streams().await;
        let part = |part: &str| format!("ff:budget:{{b:0}}:{id}:{part}");
        let (timers, list) = ("ff:idx:{b:0}:timers", "ff:idx:{b:0}:budgets");
        let (timer, hold) = (format!("budget:{id}"), call.reservation_id.to_string());
        let (id_text, ghost) = (id.to_string(), Uuid::from_u128(9).to_string());
        let orphan = format!("ff:budget:{{b:0}}:{ghost}:holds");
        let damages: Vec<(&str, Vec<&str>, i64)> = vec![
            ("a lost timer", vec!["ZREM", timers, &timer], 11),
            ("a lost list entry", vec!["ZREM", list, &id_text], 10),
            ("a list entry for nothing", vec!["ZADD", list, "1", &ghost], 37),
            ("a part without a budget", vec!["HSET", &orphan, "a", "b"], 37),
        ];
        for (what, command, number) in damages {
            server.command::<redis::Value>(&command).unwrap();
            let numbers: Vec<i64> = store.fsck().await.iter().map(|finding| finding.invariant).collect();
            assert_eq!(numbers, [number], "{what}");
            repair(&store).await;
            assert_eq!(store.dump_without_streams().await, sound, "{what} is repaired");
        }
        // A lost hold no longer counts: the sum follows the holds.
        server.command::<redis::Value>(&["HDEL", &part("holds"), &hold]).unwrap();
        server.command::<redis::Value>(&["ZREM", timers, &format!("hold:{id}:{hold}")]).unwrap();
        assert_eq!(store.fsck().await.iter().map(|finding| finding.invariant).collect::<Vec<_>>(), [32]);
        repair(&store).await;
        assert_eq!(spent(&store, id).await, (10, 0));
        // An operator may set a limit below the used amount. Otherwise it is an overshoot.
        raise(&store, id, 5).await;
        store.assert_sound().await;
        let mut connection = server.connection().unwrap();
        let right: Vec<u8> = redis::cmd("GET").arg(part("core")).query(&mut connection).unwrap();
        let (damaged, _) = ff_conformance::stored::replaced(BudgetRecord::FIELDS, &right, "passed", false.into());
        redis::cmd("SET").arg(part("core")).arg(damaged).exec(&mut connection).unwrap();
        assert_eq!(store.fsck().await.iter().map(|finding| finding.invariant).collect::<Vec<_>>(), [31]);
        redis::cmd("SET").arg(part("core")).arg(right).exec(&mut connection).unwrap();
        // Usage without its report differs from the sum of the reports.
        server.command::<redis::Value>(&["DEL", &part("reports")]).unwrap();
        assert_eq!(store.fsck().await.iter().map(|finding| finding.invariant).collect::<Vec<_>>(), [30]);
        store.call(BUDGETS, &ResetBudget { actor: "ops".into(), budget_id: id, request_id: None }).await.unwrap();
    }

    async fn random_work_on_a_tree_agrees_with_a_naive_ledger(store) {
        for seed in 0..if store.kind() == ff_conformance::Kind::Embedded { 12 } else { 2 } {
            ledger::walk(&store, seed).await;
            store.assert_sound().await;
        }
    }
}

/// A second, slow and plain implementation of the same rules.
mod ledger {
    use super::*;

    #[derive(Default)]
    struct Naive {
        parent: BTreeMap<usize, usize>,
        hard: BTreeMap<usize, i64>,
        used: BTreeMap<usize, i64>,
        /// The holders, with their budget and amount.
        holds: BTreeMap<Uuid, (usize, i64)>,
    }

    impl Naive {
        fn path(&self, from: usize) -> Vec<usize> {
            std::iter::successors(Some(from), |at| self.parent.get(at).copied()).collect()
        }

        fn held(&self, at: usize) -> i64 {
            self.holds.values().filter(|(budget, _)| self.path(*budget).contains(&at)).map(|(_, n)| n).sum()
        }

        /// Whether this amount fits in every budget up the tree; `own` of it is already held.
        fn fits(&self, at: usize, n: i64, own: i64) -> bool {
            self.path(at).into_iter().all(|b| self.used[&b] + self.held(b) - own + n <= self.hard[&b])
        }

        fn spend(&mut self, at: usize, n: i64) {
            for b in self.path(at) {
                *self.used.get_mut(&b).unwrap() += n;
            }
        }
    }

    pub async fn walk(store: &Store, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut naive, mut ids) = (Naive::default(), Vec::<BudgetId>::new());
        for at in 0..6_usize {
            let hard = rng.random_range(50..400);
            let id = if at == 0 {
                simple(store, hard).await
            } else {
                let above = rng.random_range(0..at);
                naive.parent.insert(at, above);
                child(store, ids[above], hard).await
            };
            naive.hard.insert(at, hard);
            naive.used.insert(at, 0);
            ids.push(id);
        }
        let mut holders: BTreeMap<Uuid, BudgetCandidate> = BTreeMap::new();
        for _ in 0..150 {
            let at = rng.random_range(0..ids.len());
            let n = rng.random_range(1..60);
            let some_hold = naive.holds.keys().nth(rng.random_range(0..naive.holds.len().max(1))).copied();
            match (rng.random_range(0..8), some_hold) {
                (0..=2, _) => {
                    let fits = naive.fits(at, n, 0);
                    let answer = spend(store, ids[at], n).await;
                    assert_eq!(answer == ApplyUsageReply::Ok, fits, "seed {seed}: {answer:?}");
                    if fits {
                        naive.spend(at, n);
                    }
                }
                (3, _) => {
                    let who = candidate(store, Some(n));
                    let fits = naive.fits(at, n, 0);
                    assert_eq!(admit(store, ids[at], vec![who.clone()]).await[0].admitted, fits, "seed {seed}");
                    if fits {
                        naive.holds.insert(who.holder_id, (at, n));
                        holders.insert(who.holder_id, who);
                    }
                }
                (4, _) => {
                    let call = ReserveBudget { ttl_ms: Some(3_600_000), ..reservation(store, ids[at], n) };
                    let fits = naive.fits(at, n, 0);
                    let answer = reserve(store, &call).await;
                    assert_eq!(matches!(answer, ReserveBudgetReply::Reserved { .. }), fits, "seed {seed}: {answer:?}");
                    if fits {
                        naive.holds.insert(call.reservation_id, (at, n));
                    }
                }
                (5, Some(hold)) => {
                    let (at, held) = naive.holds[&hold];
                    if let Some(who) = holders.get(&hold) {
                        // A report first uses its holder's estimate.
                        let own = held.min(n);
                        let fits = naive.fits(at, n, own);
                        let mine = UsageReport {
                            execution_id: Some(who.execution_id),
                            holder_id: Some(who.holder_id),
                            ..report(store, &[("tokens", n)])
                        };
                        let answer = apply(store, ids[at], mine).await.unwrap();
                        assert_eq!(answer == ApplyUsageReply::Ok, fits, "seed {seed}: {answer:?}");
                        if fits {
                            naive.spend(at, n);
                            naive.holds.insert(hold, (at, held - own));
                        }
                    } else {
                        let fits = naive.fits(at, n, held);
                        let answer = settle(store, ids[at], hold, n).await.unwrap();
                        assert_eq!(answer == SettleReservationReply::Ok, fits, "seed {seed}: {answer:?}");
                        if fits {
                            naive.spend(at, n);
                            naive.holds.remove(&hold);
                        }
                    }
                }
                (6, Some(hold)) => {
                    let (at, _) = naive.holds.remove(&hold).unwrap();
                    match holders.remove(&hold) {
                        Some(who) => assert_eq!(release(store, ids[at], &who).await, 1),
                        None => {
                            let call = ReleaseReservation { budget_id: ids[at], reservation_id: hold };
                            store.call(BUDGETS, &call).await.unwrap();
                        }
                    }
                }
                _ if rng.random_ratio(1, 4) => {
                    let call = ResetBudget { actor: "ops".into(), budget_id: ids[at], request_id: None };
                    store.call(BUDGETS, &call).await.unwrap();
                    naive.used.insert(at, 0);
                }
                _ => store.advance(rng.random_range(0..1_000)),
            }
            for (at, id) in ids.iter().enumerate() {
                let (used, held) = spent(store, *id).await;
                assert_eq!((used, held), (naive.used[&at], naive.held(at)), "seed {seed}: budget {at}");
                assert!(used + held <= naive.hard[&at], "seed {seed}: budget {at} passes its limit");
            }
        }
    }
}
