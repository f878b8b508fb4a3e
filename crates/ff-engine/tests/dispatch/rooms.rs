//! Room again: who waits for a budget goes on in order, a small room wakes few, and what comes back under its name is found.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_engine::{Fsck, NewExecution};
use ff_script::generated::{
    BlockingReason, BudgetRef, BudgetReset, BudgetScope, DimensionLimit, Execution, NewBudget, OnHard, OnSoft, Quota,
    QuotaRef, QuotaReturn, ResetType, ReturnQuota, ScopeType,
};
use uuid::Uuid;

use crate::kit::{Kit, LANE, claim, eventually, ms, worker};
use crate::on_both_hosts;

fn tokens(n: i64) -> BTreeMap<String, i64> {
    [("tokens".to_owned(), n)].into()
}

fn budget(id: BudgetId, hard: i64) -> NewBudget {
    NewBudget {
        budget_id: id,
        namespace: "default".to_owned(),
        parent: None,
        next_reset_at: None,
        scope: BudgetScope { r#type: ScopeType::Custom, id: None },
        dimensions: vec![DimensionLimit { name: "tokens".to_owned(), hard: Some(hard), soft: None }],
        reset: BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None },
        on_soft: OnSoft::Notify,
        on_hard: OnHard::Suspend,
    }
}

async fn submit(kit: &Kit, budget: BudgetId, estimate: i64, priority: i64) -> ExecutionId {
    let mut new = NewExecution::new("default", LANE, "burn");
    new.fields.priority = Some(priority);
    new.fields.budgets =
        Some(vec![BudgetRef { budget_id: *budget.as_uuid(), estimate: (estimate > 0).then(|| tokens(estimate)) }]);
    kit.submit_new(new).await
}

async fn blocked(kit: &Kit, id: ExecutionId, reason: BlockingReason) -> Execution {
    eventually("it is blocked", async || {
        Some(kit.operations().describe(id).await.unwrap()).filter(|e| e.blocking_reason == Some(reason))
    })
    .await
}

async fn count_of(kit: &Kit, kind: &str) -> usize {
    let mut count = 0;
    for route in kit.operations().client().execution_routes() {
        let mut after: Option<String> = None;
        loop {
            let items = kit.operations().client().events(route, after.as_deref(), 1_000).await.unwrap();
            count += items.iter().filter(|event| event.r#type == kind).count();
            after = items.last().map(|event| event.id.clone());
            if after.is_none() {
                break;
            }
        }
    }
    count
}

on_both_hosts! {
    async fn a_small_room_wakes_few_and_all_get_their_turn(kit) {
        const WORK: usize = 60;
        let id = BudgetId::mint();
        kit.operations().create_budget(budget(id, 10), "ops").await.unwrap();
        for n in 0..WORK {
            submit(&kit, id, 8, i64::try_from(n % 3).unwrap()).await;
        }
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 30_000);
        let mut ended = BTreeSet::new();
        while ended.len() < WORK {
            let tasks = claim(&dispatcher, &who, 8, ms(20_000)).await;
            assert_eq!(tasks.len(), 1, "one fits at a time; {} have ended", ended.len());
            for task in tasks {
                kit.complete(&task).await;
                assert!(ended.insert(task.execution_id));
            }
        }
        // Each room is told to those who fit, not to everyone who waits.
        let refusals = count_of(&kit, "execution.blocked").await;
        assert!(refusals < WORK * 4, "{refusals} refusals for {WORK} executions");
    }

    async fn a_room_for_many_is_told_to_many(kit) {
        const WORK: usize = 150;
        let id = BudgetId::mint();
        kit.operations().create_budget(budget(id, 10), "ops").await.unwrap();
        let reservation = Uuid::now_v7();
        kit.operations().reserve(id, reservation, tokens(10), 60_000).await.unwrap();
        let mut ids = Vec::new();
        for n in 0..WORK {
            ids.push(submit(&kit, id, 0, i64::try_from(n % 3).unwrap()).await);
        }
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 30_000);
        assert!(claim(&dispatcher, &who, 64, ms(2_000)).await.is_empty());
        for id in &ids {
            blocked(&kit, *id, BlockingReason::WaitingForBudget).await;
        }
        let first = kit.operations().blocked_on_budget(id, None, 40).await.unwrap();
        assert_eq!((first.count, first.items.len()), (150, 40));
        let (mut seen, mut next) = (first.items, first.next_cursor);
        while let Some(after) = next {
            let page = kit.operations().blocked_on_budget(id, Some(after.parse().unwrap()), 40).await.unwrap();
            seen.extend(page.items);
            next = page.next_cursor;
        }
        let listed: BTreeSet<ExecutionId> = seen.iter().map(|one| one.execution_id).collect();
        assert_eq!((seen.len(), listed), (WORK, ids.iter().copied().collect()), "each once");
        // Without an estimate nothing is held, so what was given back is room for all of them.
        kit.operations().release_reservation(id, reservation).await.unwrap();
        let mut ended = 0;
        while ended < WORK {
            let tasks = claim(&dispatcher, &who, 64, ms(20_000)).await;
            assert!(!tasks.is_empty(), "{ended} of {WORK} started and nothing more does");
            for task in tasks {
                kit.complete(&task).await;
                ended += 1;
            }
        }
        assert_eq!(kit.operations().blocked_on_budget(id, None, 40).await.unwrap().count, 0);
    }

    async fn a_budget_that_is_made_again_admits_what_waited_for_it(kit) {
        let id = BudgetId::mint();
        kit.operations().create_budget(budget(id, 10), "ops").await.unwrap();
        let waits = submit(&kit, id, 5, 0).await;
        kit.operations().delete_budget(id, "ops").await.unwrap();
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 30_000);
        assert!(claim(&dispatcher, &who, 1, ms(500)).await.is_empty());
        let detail = blocked(&kit, waits, BlockingReason::WaitingForBudget).await.blocking_detail.unwrap();
        assert_eq!(detail.get("problem").map(String::as_str), Some("not found"));
        kit.operations().create_budget(budget(id, 10), "ops").await.unwrap();
        let task = claim(&dispatcher, &who, 1, ms(20_000)).await.remove(0);
        assert_eq!(task.execution_id, waits);
        kit.complete(&task).await;
    }

    async fn a_quota_that_is_made_again_admits_what_waited_for_it(kit) {
        let id = QuotaPolicyId::from_uuid(Uuid::now_v7());
        let quota = || Quota { concurrency: Some(1), ..Quota::new(id, "default".to_owned(), false) };
        kit.operations().create_quota(quota(), "ops").await.unwrap();
        let mut new = NewExecution::new("default", LANE, "mail");
        new.fields.quotas = Some(vec![QuotaRef::new(*id.as_uuid(), "k".to_owned())]);
        let waits = kit.submit_new(new).await;
        kit.operations().delete_quota(id, "ops").await.unwrap();
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 30_000);
        assert!(claim(&dispatcher, &who, 1, ms(500)).await.is_empty());
        blocked(&kit, waits, BlockingReason::WaitingForQuota).await;
        let made = eventually("the old one is taken apart", async || {
            kit.operations().create_quota(quota(), "ops").await.ok()
        })
        .await;
        assert!(made.1, "it is new");
        let task = claim(&dispatcher, &who, 1, ms(20_000)).await.remove(0);
        assert_eq!(task.execution_id, waits);
        kit.complete(&task).await;
    }

    async fn fsck_puts_back_who_runs_and_is_not_counted(kit) {
        let id = QuotaPolicyId::from_uuid(Uuid::now_v7());
        let quota = Quota { concurrency: Some(2), ..Quota::new(id, "default".to_owned(), false) };
        kit.operations().create_quota(quota, "ops").await.unwrap();
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 60_000);
        let mut tasks = Vec::new();
        for _ in 0..2 {
            let mut new = NewExecution::new("default", LANE, "mail");
            new.fields.quotas = Some(vec![QuotaRef::new(*id.as_uuid(), "k".to_owned())]);
            kit.submit_new(new).await;
            tasks.extend(claim(&dispatcher, &who, 1, ms(20_000)).await);
        }
        let client = kit.operations().client();
        assert!(Fsck::run(client, false).await.unwrap().is_clean());
        // Someone takes a holder out while its execution runs.
        let set = kit.operations().quota_keys(id, 1).await.unwrap().remove(0).set;
        let list = ff_script::generated::ListHolders { limit: 10, offset: 0, set: set.clone() };
        let ff_script::generated::ListHoldersReply::Holders { items, .. } =
            client.call(client.route_of_quota(&id), &list).await.unwrap();
        let holder = items.iter().find(|holder| holder.execution_id == tasks[0].execution_id).unwrap();
        let item = QuotaReturn {
            execution_id: holder.execution_id,
            holder_id: holder.holder_id,
            key_digest: set.rsplit(':').next().unwrap().to_owned(),
            unused: false,
        };
        client.call(client.route_of_quota(&id), &ReturnQuota { items: vec![item], quota_id: id }).await.unwrap();
        let held = async || kit.operations().quota(id, Some("k")).await.unwrap().1.unwrap().held;
        assert_eq!(held().await, 1);
        let found = Fsck::run(client, false).await.unwrap();
        let lines: Vec<_> = found.findings.iter().map(|f| (f.invariant, f.problem.clone(), f.repaired)).collect();
        assert_eq!(lines, [(32, format!("{} runs and is not counted", tasks[0].execution_id), false)]);
        assert!(Fsck::run(client, true).await.unwrap().findings.iter().all(|finding| finding.repaired));
        assert_eq!(held().await, 2);
        assert!(Fsck::run(client, false).await.unwrap().is_clean());
        for task in tasks {
            kit.complete(&task).await;
        }
        eventually("the slots come back", async || (held().await == 0).then_some(())).await;
    }
}
