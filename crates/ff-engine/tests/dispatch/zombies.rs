//! A worker that lost its lease and does not know it: whatever it says about usage, reservations, slots and its end is refused
//! and changes nothing, and what it held is gone.

use std::collections::BTreeMap;

use ff_api::usage::Reserved;
use ff_core::contracts::ReportUsageResult;
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_engine::{NewExecution, fence_of};
use ff_script::Error;
use ff_script::generated::{
    BudgetRef, BudgetReset, BudgetScope, DimensionLimit, NewBudget, OnHard, OnSoft, Quota, QuotaRef, ResetType,
    ScopeType,
};
use uuid::Uuid;

use crate::kit::{Kit, LANE, claim, eventually, ms, worker};
use crate::on_both_hosts;
use ff_testkit::Tasks;

fn tokens(n: i64) -> BTreeMap<String, i64> {
    [("tokens".to_owned(), n)].into()
}

async fn create_budget(kit: &Kit) -> BudgetId {
    let new = NewBudget {
        budget_id: BudgetId::mint(),
        namespace: "default".to_owned(),
        parent: None,
        next_reset_at: None,
        scope: BudgetScope { r#type: ScopeType::Custom, id: None },
        dimensions: vec![DimensionLimit { name: "tokens".to_owned(), hard: Some(100), soft: None }],
        reset: BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None },
        on_soft: OnSoft::Notify,
        on_hard: OnHard::Suspend,
    };
    kit.operations().create_budget(new, "ops").await.unwrap().0.budget_id
}

/// Used, held and the number of holders.
async fn stands(kit: &Kit, budget: BudgetId) -> (i64, i64, i64) {
    let status = kit.operations().budget(budget).await.unwrap();
    let tokens = &status.budget.dimensions[0];
    (tokens.used, tokens.held, status.holders)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> ErrorCode {
    match answer {
        Err(Error::Engine(error)) => error.error_code().unwrap(),
        other => panic!("a zombie was answered {other:?}"),
    }
}

on_both_hosts! {
    async fn a_worker_that_lost_its_lease_changes_no_budget_and_no_quota(kit) {
        let operations = kit.operations();
        let budget = create_budget(&kit).await;
        let quota = QuotaPolicyId::from_uuid(Uuid::now_v7());
        operations.create_quota(Quota { concurrency: Some(1), ..Quota::new(quota, "default".to_owned(), false) }, "ops").await.unwrap();
        let mut new = NewExecution::new("default", LANE, "burn");
        new.fields.budgets = Some(vec![BudgetRef { budget_id: *budget.as_uuid(), estimate: Some(tokens(20)) }]);
        new.fields.quotas = Some(vec![QuotaRef::new(*quota.as_uuid(), "k".to_owned())]);
        let id = kit.submit_new(new).await;

        let dispatcher = kit.dispatcher();
        let zombie = claim(&dispatcher, &worker("zombie", &[], 1_000), 1, ms(10_000)).await.remove(0);
        let (fence, reservation) = (fence_of(&zombie), Uuid::now_v7());
        let held = operations.reserve_under_lease(id, &fence, budget, reservation, tokens(30)).await.unwrap();
        assert!(matches!(held, Reserved::Ok { .. }));
        assert_eq!(operations.report_usage(id, &fence, budget, tokens(5), None).await.unwrap(), ReportUsageResult::Ok);
        let (used, held, holders) = stands(&kit, budget).await;
        assert_eq!((used, held, holders), (5, 45, 1), "the report came out of what was held");

        // Its lease runs out; the next worker is admitted with a hold and a slot of its own.
        let heir = claim(&dispatcher, &worker("heir", &[], 60_000), 1, ms(10_000)).await.remove(0);
        assert_eq!(heir.execution_id, id);
        eventually("what the zombie held is gone", async || {
            (stands(&kit, budget).await == (5, 20, 1)).then_some(())
        })
        .await;
        let ledger = operations.usage(id).await.unwrap();

        let late = [ErrorCode::StaleLease, ErrorCode::LeaseExpired];
        let code = refused(operations.report_usage(id, &fence, budget, tokens(1), None).await);
        assert!(late.contains(&code), "{code:?}");
        let code = refused(operations.reserve_under_lease(id, &fence, budget, Uuid::now_v7(), tokens(1)).await);
        assert!(late.contains(&code), "{code:?}");
        // The same reservation again is no way back either.
        let code = refused(operations.reserve_under_lease(id, &fence, budget, reservation, tokens(30)).await);
        assert!(late.contains(&code), "{code:?}");
        let code = refused(operations.settle_reservation(budget, reservation, tokens(30)).await);
        assert_eq!(code, ErrorCode::ReservationNotFound);
        let code = refused(operations.client().complete(id, fence, None).await);
        assert!(late.contains(&code), "{code:?}");

        assert_eq!(stands(&kit, budget).await, (5, 20, 1));
        assert_eq!(operations.usage(id).await.unwrap(), ledger);
        assert_eq!(operations.quota(quota, Some("k")).await.unwrap().1.unwrap().held, 1, "the slot is the heir's");

        let answer = operations.report_usage(id, &fence_of(&heir), budget, tokens(15), None).await;
        assert_eq!(answer.unwrap(), ReportUsageResult::Ok);
        kit.complete(&heir).await;
        eventually("nothing is held any more", async || {
            let slots = operations.quota(quota, Some("k")).await.unwrap().1;
            (stands(&kit, budget).await == (20, 0, 0) && slots.is_none_or(|state| state.held == 0)).then_some(())
        })
        .await;
    }
}
