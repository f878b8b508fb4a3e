//! Many executions that wait for one budget: they cost one read of it per cycle, and all of them resume by priority after a
//! raise. The long tier makes them 50_000.

use std::collections::BTreeMap;

use ff_api::budgets::{ChangeBudgetBody, LimitPatchBody};
use ff_core::types::BudgetId;
use ff_engine::NewExecution;
use ff_engine::background::unblock;
use ff_script::Route;
use ff_script::generated::{
    BudgetRef, BudgetReset, BudgetScope, DimensionLimit, NewBudget, OnHard, OnSoft, PartitionStatsReply, ResetType,
    ScopeType,
};

use crate::kit::{Kit, LANE, claim, eventually, ms, worker};
use crate::on_both_hosts;

/// What one call takes at most.
const BATCH: usize = 64;

fn count() -> usize {
    ff_testkit::tier::rounds(500, 2_000, 50_000)
}

fn limit(hard: i64) -> Vec<DimensionLimit> {
    vec![DimensionLimit { name: "tokens".to_owned(), hard: Some(hard), soft: None }]
}

async fn create_budget(kit: &Kit, hard: i64) -> BudgetId {
    let new = NewBudget {
        budget_id: BudgetId::mint(),
        namespace: "default".to_owned(),
        parent: None,
        next_reset_at: None,
        scope: BudgetScope { r#type: ScopeType::Custom, id: None },
        dimensions: limit(hard),
        reset: BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None },
        on_soft: OnSoft::Notify,
        on_hard: OnHard::Suspend,
    };
    kit.operations().create_budget(new, "ops").await.unwrap().0.budget_id
}

/// Work of the lane that waits for a budget, and that could start.
async fn standing(kit: &Kit) -> (usize, usize) {
    let (mut blocked, mut eligible) = (0, 0);
    for counts in kit.operations().stats().await.unwrap() {
        let PartitionStatsReply::Stats { lanes, .. } = counts.stats;
        for lane in lanes.iter().filter(|counts| counts.lane == LANE) {
            blocked += lane.blocked_budget;
            eligible += lane.eligible;
        }
    }
    (usize::try_from(blocked).unwrap(), usize::try_from(eligible).unwrap())
}

/// The calls since then.
fn since(before: &BTreeMap<&'static str, usize>, kit: &Kit, function: &str) -> usize {
    kit.calls().get(function).copied().unwrap_or_default() - before.get(function).copied().unwrap_or_default()
}

on_both_hosts! {
    async fn many_that_wait_for_a_budget_cost_one_read_of_it_and_resume_by_priority(kit) {
        let count = count();
        let budget = create_budget(&kit, 10).await;
        for chunk in (0..count).collect::<Vec<_>>().chunks(1_000) {
            let new = chunk.iter().map(|n| {
                let mut new = NewExecution::new("default", LANE, "burn");
                new.fields.priority = Some(i64::try_from(n * 37 % 101).unwrap());
                let estimate = Some([("tokens".to_owned(), 11)].into());
                new.fields.budgets = Some(vec![BudgetRef { budget_id: *budget.as_uuid(), estimate }]);
                new
            });
            for answer in kit.operations().submit_many(new.collect()).await.unwrap() {
                answer.unwrap();
            }
        }

        // Each is refused once, a batch at a time.
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 600_000);
        let before = kit.calls();
        let refused = tokio::spawn({
            let (dispatcher, who) = (dispatcher.clone(), who.clone());
            async move { claim(&dispatcher, &who, 512, ms(600_000)).await }
        });
        eventually("all wait for the budget", async || {
            (standing(&kit).await == (count, 0)).then_some(())
        })
        .await;
        let partitions = kit.operations().client().execution_routes().count();
        for function in ["ff_issue_grants", "ff_admit_budget", "ff_block_executions"] {
            let calls = since(&before, &kit, function);
            assert!(calls <= 2 * (count / BATCH + 8 * partitions), "{calls} calls of {function}");
        }

        // A worker that waits for them costs nothing.
        let before = kit.calls();
        tokio::time::sleep(ms(1_000)).await;
        for function in ["ff_claim_executions", "ff_issue_grants", "ff_admit_budget", "ff_block_executions"] {
            assert_eq!(since(&before, &kit, function), 0, "{function}");
        }
        assert!(!refused.is_finished(), "nothing was admitted");
        refused.abort();

        // One cycle over all of them reads the budget once.
        let before = kit.calls();
        let mut cycles = 0;
        for route in kit.operations().client().execution_routes() {
            assert_eq!(unblock::sweep_once(kit.operations(), route).await.unwrap(), 0, "there is no room");
            cycles += 1;
        }
        // The engine's own cycles may come in between, one partition at a time.
        let reads = since(&before, &kit, "ff_get_budget");
        assert!((cycles..=cycles + 1 + count / 5_000).contains(&reads), "{reads} reads of the budget in {cycles} cycles");

        // A raise tells all of them, a page at a time.
        let before = kit.calls();
        let limit = LimitPatchBody { hard: Some(Some(1_000_000_000)), soft: None };
        let change = ChangeBudgetBody { dimensions: [("tokens".to_owned(), limit)].into(), ..ChangeBudgetBody::default() };
        kit.operations().change_budget(budget, &change, "ops").await.unwrap();
        eventually("all may start", async || {
            (standing(&kit).await == (0, count)).then_some(())
        })
        .await;
        let told = since(&before, &kit, "ff_unblock_budget");
        assert!(told <= 2 * (count / BATCH + 2 * partitions), "{told} calls tell {count}");
        let reads = since(&before, &kit, "ff_get_budget");
        assert!(reads <= 1 + count / 5_000, "{reads} reads of the budget");

        // All of them start, in each partition by priority.
        let mut order: BTreeMap<Route, Vec<i64>> = BTreeMap::new();
        let mut started = 0;
        while started < count {
            // A worker that holds thousands of leases is none; each of these takes its share and is busy.
            let tasks = claim(&dispatcher, &worker(&format!("w{started}"), &[], 600_000), 512, ms(20_000)).await;
            assert!(!tasks.is_empty(), "{started} of {count} started");
            for task in tasks {
                started += 1;
                order.entry(kit.operations().client().route_of(&task.execution_id)).or_default().push(task.priority);
            }
        }
        for (route, order) in order {
            assert!(order.is_sorted_by(|a, b| a >= b), "{route}: {order:?}");
        }
        let held = kit.operations().budget(budget).await.unwrap().budget.dimensions[0].held;
        assert_eq!(held, 11 * i64::try_from(count).unwrap());
    }
}
