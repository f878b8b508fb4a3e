//! Usage: what a worker reports, the ledger that keeps it, and the effect of a hard limit on the running attempt.

use std::collections::BTreeMap;

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, LANE, LEASE_MS, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{BudgetId, ExecutionId};
use ff_script::generated::*;
use ff_script::{Error, Route};
use uuid::Uuid;

const BUDGETS: Route = Route::Budget(0);

fn amounts(n: i64) -> BTreeMap<String, i64> {
    [("tokens".to_owned(), n)].into()
}

async fn budget(store: &Store, hard: i64, on_hard: OnHard) -> BudgetId {
    store.install_default_lane().await;
    let scope = BudgetScope { r#type: ScopeType::Custom, id: None };
    let reset = BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None };
    let limits = vec![DimensionLimit { name: "tokens".into(), hard: Some(hard), soft: None }];
    let id = BudgetId::from_uuid(store.uuid(0));
    let budget = NewBudget::new(id, NAMESPACE.into(), scope, limits, reset, OnSoft::Notify, on_hard);
    store.call(BUDGETS, &CreateBudget { budget, actor: "ops".into() }).await.unwrap();
    id
}

async fn raise(store: &Store, budget_id: BudgetId, hard: i64) -> i64 {
    let call = ChangeBudget {
        actor: "ops".into(),
        budget_id,
        limits: vec![DimensionLimit { name: "tokens".into(), hard: Some(hard), soft: None }],
        on_hard: None,
        on_soft: None,
        version: None,
    };
    let ChangeBudgetReply::Changed { budget, .. } = store.call(BUDGETS, &call).await.unwrap();
    budget.rooms
}

async fn used(store: &Store, budget_id: BudgetId) -> i64 {
    let GetBudgetReply::Found { budget, .. } = store.call(BUDGETS, &GetBudget { budget_id }).await.unwrap();
    budget.dimensions[0].used
}

/// A running execution.
async fn running(store: &Store) -> Task {
    store.submit_kind("mail").await;
    store.claim_one("w1").await
}

fn usage(task: &Task, budget_id: BudgetId, n: i64, key: Option<&str>) -> NoteUsage {
    NoteUsage {
        execution_id: task.execution_id,
        fence: task.fence(),
        budget_id,
        dimensions: amounts(n),
        dedup_key: key.map(str::to_owned),
        reservation_id: None,
    }
}

async fn note(store: &Store, call: &NoteUsage) -> PendingUsage {
    let NoteUsageReply::Noted { report } = store.ask(call).await.unwrap();
    report
}

async fn apply(store: &Store, id: ExecutionId, report: &PendingUsage) -> ApplyUsageReply {
    let said = UsageReport {
        dedup_key: report.dedup_key.clone(),
        execution_id: Some(id),
        holder_id: report.holder_id,
        sequence: Some(report.sequence),
        dimensions: report.dimensions.clone(),
        reservation_id: report.reservation_id,
    };
    store.call(BUDGETS, &ApplyUsage { budget_id: report.budget_id, report: said }).await.unwrap()
}

fn settlement(id: ExecutionId, sequence: i64, answer: ApplyUsageReply) -> SettleUsage {
    let (outcome, counted, breach) = match answer {
        ApplyUsageReply::Ok => (UsageOutcome::Ok, None, None),
        ApplyUsageReply::AlreadyApplied { same } => (UsageOutcome::AlreadyApplied, Some(same), None),
        ApplyUsageReply::SoftBreach { .. } => (UsageOutcome::SoftBreach, None, None),
        ApplyUsageReply::HardBreach { action, budget_id, dimension, limit, rooms, used } => {
            let breach = UsageBreach { action, budget_id, dimension, limit, rooms, used };
            (UsageOutcome::HardBreach, None, Some(breach))
        }
    };
    SettleUsage { execution_id: id, sequence, outcome, counted, breach }
}

/// Notes, applies and settles. True if the lease is over.
async fn report(store: &Store, task: &Task, budget_id: BudgetId, n: i64) -> bool {
    let noted = note(store, &usage(task, budget_id, n, None)).await;
    let answer = apply(store, task.execution_id, &noted).await;
    match store.ask(&settlement(task.execution_id, noted.sequence, answer)).await.unwrap() {
        SettleUsageReply::Settled { ended, .. } => ended,
        SettleUsageReply::Already { .. } => panic!("settled before"),
    }
}

async fn ledger(store: &Store, id: ExecutionId) -> (Vec<(i64, i64, i64)>, usize) {
    let ReadUsageReply::Usage { ledger, pending } = store.ask(&ReadUsage { execution_id: id }).await.unwrap();
    (ledger.into_iter().map(|line| (line.attempt_index, line.accepted, line.refused)).collect(), pending.len())
}

async fn unblock(store: &Store, budget_id: BudgetId, rooms: i64, limit: i64) -> i64 {
    let (mut sum, mut after) = (0, None);
    loop {
        let call = UnblockBudget { after, ..UnblockBudget::new(budget_id, limit, rooms) };
        let UnblockBudgetReply::Unblocked { count, next, .. } = store.ask(&call).await.unwrap();
        sum += count;
        after = next;
        if after.is_none() {
            return sum;
        }
    }
}

fn after_the_lease<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    assert_eq!(refusal(outcome), ErrorCode::ExecutionNotActive);
}

for_each_host! {
    async fn a_report_is_noted_applied_and_kept_in_the_ledger(store) {
        let id = budget(&store, 100, OnHard::Suspend).await;
        let task = running(&store).await;
        assert!(!report(&store, &task, id, 30).await);
        assert!(!report(&store, &task, id, 20).await);
        assert_eq!(ledger(&store, task.execution_id).await, (vec![(0, 50, 0)], 0));
        assert_eq!(used(&store, id).await, 50);
        // A second attempt has its own lines.
        let yielded = YieldExecution { execution_id: task.execution_id, fence: task.fence() };
        store.ask(&yielded).await.unwrap();
        let again = store.claim_one("w1").await;
        assert!(!report(&store, &again, id, 7).await);
        assert_eq!(ledger(&store, task.execution_id).await, (vec![(0, 50, 0), (1, 7, 0)], 0));
        store.ask(&CompleteExecution::new(again.execution_id, again.fence())).await.unwrap();
        assert_eq!(ledger(&store, task.execution_id).await.0.len(), 2, "kept until it is retired");
    }

    async fn a_report_needs_the_fence(store) {
        let id = budget(&store, 100, OnHard::Suspend).await;
        let task = running(&store).await;
        let call = usage(&task, id, 1, None);
        let stale = NoteUsage { fence: Fence { lease_epoch: 1, ..task.fence() }, ..call.clone() };
        assert_eq!(refusal(store.ask(&stale).await), ErrorCode::StaleLease);
        let nothing = NoteUsage { dimensions: BTreeMap::new(), ..call.clone() };
        assert_eq!(refusal(store.ask(&nothing).await), ErrorCode::InvalidArgument);
        store.advance(LEASE_MS);
        assert_eq!(refusal(store.ask(&call).await), ErrorCode::LeaseExpired);
        assert_eq!(ledger(&store, task.execution_id).await, (vec![], 0));
    }

    async fn the_same_key_counts_once_however_often_it_is_said(store) {
        let id = budget(&store, 100, OnHard::Suspend).await;
        let task = running(&store).await;
        let call = usage(&task, id, 10, Some("step-1"));
        let first = note(&store, &call).await;
        // The reply was lost: the waiting report is found by its key.
        assert_eq!(note(&store, &call).await, first);
        let answer = apply(&store, task.execution_id, &first).await;
        assert_eq!(answer, ApplyUsageReply::Ok);
        // A repeated settlement learns that this very report was counted.
        let again = apply(&store, task.execution_id, &first).await;
        assert_eq!(again, ApplyUsageReply::AlreadyApplied { same: true });
        let settle = settlement(task.execution_id, first.sequence, again);
        assert!(matches!(store.ask(&settle).await.unwrap(), SettleUsageReply::Settled { ended: false, .. }));
        assert!(matches!(store.ask(&settle).await.unwrap(), SettleUsageReply::Already { .. }));
        assert_eq!(ledger(&store, task.execution_id).await, (vec![(0, 10, 0)], 0));
        // Repeated after that, it is another report with the same content.
        let second = note(&store, &call).await;
        assert_eq!(second.sequence, 2);
        let answer = apply(&store, task.execution_id, &second).await;
        assert_eq!(answer, ApplyUsageReply::AlreadyApplied { same: false });
        store.ask(&settlement(task.execution_id, 2, answer)).await.unwrap();
        assert_eq!(ledger(&store, task.execution_id).await, (vec![(0, 10, 0)], 0));
        assert_eq!(used(&store, id).await, 10);
    }

    async fn what_was_used_of_a_reservation_stands_in_the_ledger_and_the_rest_returns(store) {
        let id = budget(&store, 100, OnHard::Suspend).await;
        let task = running(&store).await;
        let hold = HoldBudget { budget_id: id, execution_id: task.execution_id, fence: task.fence() };
        let HoldBudgetReply::Held { holder_id } = store.ask(&hold).await.unwrap();
        let reservation_id = Uuid::now_v7();
        let holder = Some(BudgetHolder { execution_id: task.execution_id, holder_id });
        let reserve = ReserveBudget { holder, ..ReserveBudget::new(id, amounts(80), reservation_id) };
        store.call(BUDGETS, &reserve).await.unwrap();
        let call = NoteUsage { reservation_id: Some(reservation_id), ..usage(&task, id, 30, Some("settle")) };
        let noted = note(&store, &call).await;
        assert_eq!(noted.reservation_id, Some(reservation_id));
        let answer = apply(&store, task.execution_id, &noted).await;
        assert_eq!(answer, ApplyUsageReply::Ok);
        assert_eq!(apply(&store, task.execution_id, &noted).await, ApplyUsageReply::AlreadyApplied { same: true });
        store.ask(&settlement(task.execution_id, noted.sequence, answer)).await.unwrap();
        assert_eq!(ledger(&store, task.execution_id).await, (vec![(0, 30, 0)], 0));
        let GetBudgetReply::Found { budget: now, .. } = store.call(BUDGETS, &GetBudget { budget_id: id }).await.unwrap();
        assert_eq!((now.dimensions[0].used, now.dimensions[0].held), (30, 0));
        let gone = NoteUsage { reservation_id: Some(Uuid::now_v7()), ..usage(&task, id, 1, Some("gone")) };
        let gone = note(&store, &gone).await;
        let report = UsageReport { reservation_id: gone.reservation_id, ..UsageReport::new(gone.dedup_key, amounts(1)) };
        let answer = store.call(BUDGETS, &ApplyUsage { budget_id: id, report }).await;
        assert_eq!(refusal(answer), ErrorCode::ReservationNotFound);
    }

    async fn a_running_execution_is_known_to_its_quotas_by_the_grant_that_started_it(store) {
        store.install_default_lane().await;
        let task = running(&store).await;
        let quota_id = ff_core::types::QuotaPolicyId::mint();
        let ask = QuotaHolder { execution_id: task.execution_id, fence: task.fence(), key: "k".into(), quota_id };
        assert_eq!(store.ask(&ask).await.unwrap(), QuotaHolderReply::Free { now: store.now() });
        let stale = QuotaHolder { fence: Fence { lease_epoch: 1, ..task.fence() }, ..ask };
        assert_eq!(refusal(store.ask(&stale).await), ErrorCode::StaleLease);
    }

    async fn a_report_that_nobody_settled_is_owed_by_the_outbox(store) {
        let id = budget(&store, 100, OnHard::Suspend).await;
        let task = running(&store).await;
        let noted = note(&store, &usage(&task, id, 10, None)).await;
        store.advance(4_999);
        store.fire_due(store.route_of(task.execution_id)).await;
        let ReadOutboxReply::Effects { items } = store.ask(&ReadOutbox::new(10)).await.unwrap();
        assert!(items.is_empty());
        store.advance(1);
        store.fire_due(store.route_of(task.execution_id)).await;
        let ReadOutboxReply::Effects { items } = store.ask(&ReadOutbox::new(10)).await.unwrap();
        assert_eq!(items.len(), 1);
        assert_eq!((items[0].r#type.as_str(), items[0].data["sequence"].as_str()), ("apply_usage", "1"));
        let answer = apply(&store, task.execution_id, &noted).await;
        store.ask(&settlement(task.execution_id, 1, answer)).await.unwrap();
        store.advance(60_000);
        assert_eq!(ledger(&store, task.execution_id).await, (vec![(0, 10, 0)], 0));
    }

    async fn a_hard_breach_parks_the_attempt_and_room_resumes_it(store) {
        let id = budget(&store, 100, OnHard::Suspend).await;
        let task = running(&store).await;
        assert!(report(&store, &task, id, 101).await);
        assert_eq!(used(&store, id).await, 0);
        assert_eq!(ledger(&store, task.execution_id).await, (vec![(0, 0, 101)], 0));
        let parked = store.describe(task.execution_id).await;
        assert_eq!((parked.state, parked.blocking_reason), (PublicState::RateLimited, Some(BlockingReason::WaitingForBudget)));
        assert!(parked.continues && parked.lease.is_none());
        let detail = parked.blocking_detail.unwrap();
        assert_eq!((detail["budget_id"].as_str(), detail["limit"].as_str()), (id.to_string().as_str(), "100"));
        after_the_lease(store.ask(&CompleteExecution::new(task.execution_id, task.fence())).await);
        // The reply may have been lost, so a repeated report returns what happened.
        assert_eq!(refusal(store.ask(&usage(&task, id, 1, None)).await), ErrorCode::HardBreach);
        assert!(store.claim("w1", 1).await.is_empty());
        // An earlier room does not undo a later refusal.
        assert_eq!(unblock(&store, id, 0, 10).await, 0);
        let rooms = raise(&store, id, 200).await;
        assert_eq!(rooms, 1);
        assert_eq!(unblock(&store, BudgetId::from_uuid(store.uuid(0)), rooms, 10).await, 0);
        assert_eq!(unblock(&store, id, rooms, 10).await, 1);
        assert_eq!(store.state(task.execution_id).await, PublicState::Resumable);
        let again = store.claim_one("w2").await;
        assert_eq!((again.attempt_index, again.attempt_id), (0, task.attempt_id));
        assert_eq!(again.resume.as_ref().unwrap().cause, ResumeCause::Budget);
        assert!(!report(&store, &again, id, 101).await);
        assert_eq!(ledger(&store, task.execution_id).await, (vec![(0, 101, 101)], 0));
    }

    async fn block_ends_the_attempt_and_cancel_and_fail_end_the_execution(store) {
        for (on_hard, state) in [
            (OnHard::Block, PublicState::RateLimited),
            (OnHard::Cancel, PublicState::Cancelled),
            (OnHard::Fail, PublicState::Failed),
        ] {
            let id = budget(&store, 10, on_hard).await;
            let task = running(&store).await;
            assert!(report(&store, &task, id, 11).await);
            let seen = store.describe(task.execution_id).await;
            assert_eq!(seen.state, state);
            let ended = seen.attempts.last().unwrap();
            after_the_lease(store.ask(&CompleteExecution::new(task.execution_id, task.fence())).await);
            match on_hard {
                OnHard::Block => {
                    assert_eq!((ended.state, seen.continues), (AttemptState::Interrupted, false));
                    let rooms = raise(&store, id, 20).await;
                    assert_eq!(unblock(&store, id, rooms, 10).await, 1);
                    let again = store.claim_one("w1").await;
                    assert_eq!((again.attempt_index, again.attempt_type), (1, AttemptType::Reclaim));
                    store.ask(&CompleteExecution::new(again.execution_id, again.fence())).await.unwrap();
                }
                OnHard::Cancel => assert_eq!(ended.state, AttemptState::Cancelled),
                _ => assert_eq!(seen.failure.unwrap().category, "budget"),
            }
        }
    }

    async fn a_breach_that_comes_late_does_not_stop_another_lease(store) {
        let id = budget(&store, 10, OnHard::Fail).await;
        let task = running(&store).await;
        let noted = note(&store, &usage(&task, id, 11, None)).await;
        let answer = apply(&store, task.execution_id, &noted).await;
        store.ask(&YieldExecution { execution_id: task.execution_id, fence: task.fence() }).await.unwrap();
        let again = store.claim_one("w1").await;
        let settle = settlement(task.execution_id, noted.sequence, answer);
        assert!(matches!(store.ask(&settle).await.unwrap(), SettleUsageReply::Settled { ended: false, .. }));
        assert_eq!(store.state(task.execution_id).await, PublicState::Active);
        assert_eq!(ledger(&store, task.execution_id).await, (vec![(0, 0, 11)], 0));
        store.ask(&CompleteExecution::new(again.execution_id, again.fence())).await.unwrap();
    }

    async fn a_park_keeps_the_time_of_the_attempt_and_obeys_the_deadline(store) {
        let id = budget(&store, 10, OnHard::Suspend).await;
        let slow = Submission { attempt_timeout_ms: Some(60_000), deadline_ms: Some(500_000), ..store.submission("mail") };
        store.submit(slow).await;
        let task = store.claim_one("w1").await;
        store.advance(10_000);
        assert!(report(&store, &task, id, 11).await);
        store.advance(100_000);
        store.fire_all().await;
        let rooms = raise(&store, id, 20).await;
        unblock(&store, id, rooms, 10).await;
        let again = store.claim_one("w1").await;
        assert_eq!(again.attempt_deadline_at, Some(store.now() + 50_000));
        assert!(report(&store, &again, id, 21).await);
        store.advance(500_000);
        store.fire_all().await;
        assert_eq!(store.state(task.execution_id).await, PublicState::Expired);
    }

    async fn everything_that_waits_goes_on_by_priority_whatever_it_waited_for_first(store) {
        let id = budget(&store, 10, OnHard::Suspend).await;
        for priority in 0..20 {
            store.submit(Submission { priority: Some(priority * 7 % 20), ..store.submission("mail") }).await;
        }
        let tasks = store.claim("w1", 20).await;
        for task in &tasks {
            assert!(report(&store, task, id, 11).await);
            store.advance(1);
        }
        let call = WaitingForBudgets { namespace: NAMESPACE.into(), lane: LANE.into(), after: None, limit: 64 };
        let WaitingForBudgetsReply::Waiting { items, next } = store.ask(&call).await.unwrap();
        assert_eq!((items, next), (vec![AwaitedBudget { budget_id: id, rooms: 0 }], None));
        let rooms = raise(&store, id, 1_000).await;
        assert_eq!(unblock(&store, id, rooms, 3).await, 20);
        let order: Vec<i64> = store.claim("w1", 20).await.iter().map(|task| task.priority).collect();
        assert_eq!(order, (0..20).rev().collect::<Vec<_>>());
    }

    async fn what_is_reserved_under_a_lease_is_owed_back_at_its_end(store) {
        let id = budget(&store, 100, OnHard::Suspend).await;
        let task = running(&store).await;
        let hold = HoldBudget { execution_id: task.execution_id, fence: task.fence(), budget_id: id };
        let HoldBudgetReply::Held { holder_id } = store.ask(&hold).await.unwrap();
        assert_eq!(store.ask(&hold).await.unwrap(), HoldBudgetReply::Held { holder_id });
        let reserve = ReserveBudget {
            budget_id: id,
            dimensions: amounts(60),
            holder: Some(BudgetHolder { execution_id: task.execution_id, holder_id }),
            reservation_id: store.uuid(0),
            ttl_ms: None,
        };
        store.call(BUDGETS, &reserve).await.unwrap();
        // A report uses what its lease holds.
        assert!(!report(&store, &task, id, 50).await);
        let GetBudgetReply::Found { budget, holders, .. } =
            store.call(BUDGETS, &GetBudget { budget_id: id }).await.unwrap();
        assert_eq!((budget.dimensions[0].used, budget.dimensions[0].held, holders), (50, 10, 1));
        store.ask(&CompleteExecution::new(task.execution_id, task.fence())).await.unwrap();
        let ReadOutboxReply::Effects { items } = store.ask(&ReadOutbox::new(10)).await.unwrap();
        assert_eq!(items[0].data["set"], format!("budget:{id}"));
        let holder = Holder { execution_id: task.execution_id, holder_id, expires_at: None };
        store.call(BUDGETS, &ReleaseBudget { budget_id: id, holders: vec![holder] }).await.unwrap();
        assert_eq!(used(&store, id).await, 50);
        assert_eq!(refusal(store.ask(&hold).await), ErrorCode::ExecutionNotActive);
    }

    async fn scopes_name_their_budgets(store) {
        let ids: Vec<BudgetId> = (0..2).map(|_| BudgetId::from_uuid(store.uuid(0))).collect();
        for budget_id in [ids[1], ids[0], ids[1]] {
            store.call(Route::Fleet, &NoteScope { scope: "lane:a/b".into(), budget_id, gone: None }).await.unwrap();
        }
        let ask = BudgetsOfScopes { scopes: vec!["lane:a/b".into(), "namespace:a".into()] };
        let BudgetsOfScopesReply::Scopes { items } = store.call(Route::Fleet, &ask).await.unwrap();
        assert_eq!((&items[0].budget_ids, items[1].budget_ids.len()), (&ids, 0));
        for budget_id in ids {
            let gone = NoteScope { scope: "lane:a/b".into(), budget_id, gone: Some(true) };
            store.call(Route::Fleet, &gone).await.unwrap();
        }
        let BudgetsOfScopesReply::Scopes { items } = store.call(Route::Fleet, &ask).await.unwrap();
        assert!(items.iter().all(|item| item.budget_ids.is_empty()));
    }
}
