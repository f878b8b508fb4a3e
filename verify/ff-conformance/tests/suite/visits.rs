//! Claims that visit quotas and budgets, and ends that return holds in the same call. On a cluster these are on other
//! nodes, and the tests of grants and of the outbox cover them.

use std::collections::BTreeMap;

use ff_conformance::work::{Fenced, HOME, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_script::generated::*;
use ff_script::{Client, List, Route};

const QUOTAS: Route = Route::Quota(0);
const BUDGETS: Route = Route::Budget(0);
const K: &str = "13fbd79c3d390e5d6585";

async fn quota_of(store: &Store, concurrency: i64, hold_while_suspended: bool) -> QuotaPolicyId {
    let id = QuotaPolicyId::from_uuid(store.uuid(0));
    let quota = Quota { concurrency: Some(concurrency), ..Quota::new(id, NAMESPACE.into(), hold_while_suspended) };
    store.call(QUOTAS, &PutQuota { actor: None, quota, version: None }).await.unwrap();
    id
}

async fn budget_of(store: &Store, hard: i64) -> BudgetId {
    let id = BudgetId::from_uuid(store.uuid(0));
    let scope = BudgetScope { r#type: ScopeType::Custom, id: None };
    let reset = BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None };
    let dimensions = vec![DimensionLimit { name: "tokens".into(), hard: Some(hard), soft: None }];
    let budget = NewBudget::new(id, NAMESPACE.into(), scope, dimensions, reset, OnSoft::Notify, OnHard::Suspend);
    store.call(BUDGETS, &CreateBudget { budget, actor: "ops".into() }).await.unwrap();
    id
}

fn under(id: QuotaPolicyId) -> Option<Vec<QuotaRef>> {
    Some(vec![QuotaRef::new(*id.as_uuid(), "k".into())])
}

fn estimate(id: BudgetId, tokens: i64) -> Option<Vec<BudgetRef>> {
    let estimate = Some(BTreeMap::from([("tokens".to_owned(), tokens)]));
    Some(vec![BudgetRef { estimate, ..BudgetRef::new(*id.as_uuid()) }])
}

/// Submits in partition 0, one millisecond after the previous one.
async fn submit(store: &Store, quotas: Option<Vec<QuotaRef>>, budgets: Option<Vec<BudgetRef>>) -> ExecutionId {
    store.advance(1);
    store.submit(Submission { quotas, budgets, ..store.submission("mail") }).await
}

async fn claimed(client: &Client, call: &ClaimExecutions) -> Vec<Task> {
    match client.call(HOME, call).await.unwrap() {
        ClaimExecutionsReply::Claimed { tasks, admission_needed: None, .. } => tasks,
        other => panic!("not claimed: {other:?}"),
    }
}

fn ids(tasks: &[Task]) -> Vec<ExecutionId> {
    tasks.iter().map(|task| task.execution_id).collect()
}

/// The number of holders and of waiting executions under the quota's key.
async fn key_of(store: &Store, id: QuotaPolicyId) -> (i64, i64) {
    let call = GetQuota { key: Some("k".into()), quota_id: id };
    let GetQuotaReply::Quota { state, .. } = store.call(QUOTAS, &call).await.unwrap();
    state.map(|state| (state.held, state.waiting)).unwrap()
}

async fn held(store: &Store, id: BudgetId) -> i64 {
    let GetBudgetReply::Found { budget, .. } = store.call(BUDGETS, &GetBudget { budget_id: id }).await.unwrap();
    budget.dimensions[0].held
}

async fn complete(client: &Client, task: &Task) {
    let call = CompleteExecution::new(task.execution_id, task.fence());
    assert_eq!(client.call(HOME, &call).await, Ok(CompleteExecutionReply::Completed));
}

/// The effects that partitions owe each other.
async fn owed(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    for route in [HOME, QUOTAS, BUDGETS] {
        let ReadOutboxReply::Effects { items } = store.call(route, &ReadOutbox::new(100)).await.unwrap();
        all.extend(items.into_iter().map(|effect| effect.r#type));
    }
    all
}

for_each_host! {
    async fn a_claim_asks_on_its_way_and_an_end_gives_back(store) {
        store.install_default_lane().await;
        let (quota, budget) = (quota_of(&store, 2, false).await, budget_of(&store, 100).await);
        let mut all = Vec::new();
        for _ in 0..2 {
            all.push(submit(&store, under(quota), estimate(budget, 30)).await);
        }
        let Some(client) = store.visiting() else { return };
        let tasks = claimed(&client, &store.claim_call("w1", 9)).await;
        assert_eq!(ids(&tasks), all);
        assert_eq!((key_of(&store, quota).await, held(&store, budget).await), ((2, 0), 60));
        store.assert_sound().await;
        for task in &tasks {
            complete(&client, task).await;
        }
        assert_eq!((key_of(&store, quota).await, held(&store, budget).await), ((0, 0), 0));
        assert_eq!(owed(&store).await, [""; 0]);
    }

    async fn of_equal_estimates_as_many_are_let_in_as_fit(store) {
        store.install_default_lane().await;
        let budget = budget_of(&store, 100).await;
        let mut all = Vec::new();
        for _ in 0..4 {
            all.push(submit(&store, None, estimate(budget, 30)).await);
        }
        let Some(client) = store.visiting() else { return };
        // Two of four fit together, then one of the remaining two.
        let mut tasks = claimed(&client, &store.claim_call("w1", 2)).await;
        assert_eq!((ids(&tasks), held(&store, budget).await), (all[..2].to_vec(), 60));
        tasks.extend(claimed(&client, &store.claim_call("w1", 9)).await);
        assert_eq!((ids(&tasks), held(&store, budget).await), (all[..3].to_vec(), 90));
        store.assert_sound().await;
    }

    async fn holds_that_differ_are_given_back_in_one_list(store) {
        store.install_default_lane().await;
        let budget = budget_of(&store, 100).await;
        for tokens in [20, 20, 7, 20, 7] {
            submit(&store, None, estimate(budget, tokens)).await;
        }
        let Some(client) = store.visiting() else { return };
        let tasks = claimed(&client, &store.claim_call("w1", 9)).await;
        assert_eq!((tasks.len(), held(&store, budget).await), (5, 74));
        let end = |task: &Task| (HOME, CompleteExecution::new(task.execution_id, task.fence()));
        let ends: Vec<_> = tasks[1..].iter().map(end).collect();
        let ended = Ok(CompleteExecutionReply::Completed);
        assert_eq!(client.call_all(&ends).await, [&ended; 4].map(Clone::clone));
        assert_eq!(held(&store, budget).await, 20);
        store.assert_sound().await;
    }

    async fn a_repeated_claim_is_answered_with_its_leases(store) {
        store.install_default_lane().await;
        let quota = quota_of(&store, 2, false).await;
        let id = submit(&store, under(quota), None).await;
        let Some(client) = store.visiting() else { return };
        let call = store.claim_call("w1", 3);
        assert_eq!(ids(&claimed(&client, &call).await), [id]);
        match client.call(HOME, &call).await {
            Ok(ClaimExecutionsReply::Replayed { tasks }) => assert_eq!(ids(&tasks), [id]),
            other => panic!("not repeated: {other:?}"),
        }
        assert_eq!(key_of(&store, quota).await, (1, 0));
    }

    async fn the_best_come_first_whether_they_ask_or_not(store) {
        store.install_default_lane().await;
        let quota = quota_of(&store, 1, false).await;
        let first = submit(&store, None, None).await;
        let second = submit(&store, under(quota), None).await;
        let third = submit(&store, under(quota), None).await;
        let fourth = submit(&store, None, None).await;
        let Some(client) = store.visiting() else { return };
        // The third is refused, and the one behind it gets its place.
        assert_eq!(ids(&claimed(&client, &store.claim_call("w1", 3)).await), [first, second, fourth]);
        assert_eq!(key_of(&store, quota).await, (1, 1));
        let e = store.describe(third).await;
        assert_eq!((e.state, e.blocking_reason), (PublicState::RateLimited, Some(BlockingReason::WaitingForQuota)));
        let detail = e.blocking_detail.unwrap();
        assert_eq!((detail["part"].as_str(), detail["used"].as_str(), detail["limit"].as_str()), ("concurrency", "1", "1"));
    }

    async fn one_that_asks_is_not_taken_again_while_it_does(store) {
        store.install_default_lane().await;
        let (full, free) = (quota_of(&store, 1, false).await, quota_of(&store, 9, false).await);
        let holder = submit(&store, under(full), None).await;
        let Some(client) = store.visiting() else { return };
        assert_eq!(ids(&claimed(&client, &store.claim_call("w1", 1)).await), [holder]);
        let mut all = Vec::new();
        for quota in [full, full, free, free, free] {
            all.push(submit(&store, under(quota), None).await);
        }
        // Two are refused. The third is requested with the next page of candidates, and is still in its queue.
        assert_eq!(ids(&claimed(&store.visiting().unwrap(), &store.claim_call("w1", 2)).await), all[2..4]);
        assert_eq!(key_of(&store, free).await, (2, 0));
    }

    async fn the_end_of_one_calls_the_next(store) {
        store.install_default_lane().await;
        let quota = quota_of(&store, 1, false).await;
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(submit(&store, under(quota), None).await);
        }
        let Some(client) = store.visiting() else { return };
        let mut running = claimed(&client, &store.claim_call("w1", 9)).await;
        for (number, id) in all.iter().enumerate() {
            assert_eq!(ids(&running), [*id]);
            // An end and a claim in one list: the claim finds the room that the end has left.
            let mut list = List::default();
            let ended = list.add(&client, HOME, &CompleteExecution::new(running[0].execution_id, running[0].fence()));
            let asked = list.add(&client, HOME, &store.claim_call("w1", 9));
            let mut answers = client.run(list).await;
            assert_eq!(answers.take(ended), Ok(CompleteExecutionReply::Completed));
            let Ok(ClaimExecutionsReply::Claimed { tasks, .. }) = answers.take(asked) else { panic!("not claimed") };
            running = tasks;
            assert_eq!(running.is_empty(), number == 2);
            store.assert_sound().await;
        }
        assert_eq!((key_of(&store, quota).await, owed(&store).await), ((0, 0), vec![]));
    }

    async fn one_that_ended_is_called_in_vain_and_the_next_is_called(store) {
        store.install_default_lane().await;
        let quota = quota_of(&store, 1, false).await;
        let mut all = Vec::new();
        for _ in 0..3 {
            all.push(submit(&store, under(quota), None).await);
        }
        let Some(client) = store.visiting() else { return };
        let running = claimed(&client, &store.claim_call("w1", 9)).await;
        assert_eq!(ids(&running), all[..1]);
        client.call(HOME, &CancelExecution::new("ops".into(), all[1])).await.unwrap();
        complete(&client, &running[0]).await;
        assert_eq!(ids(&claimed(&client, &store.claim_call("w1", 9)).await), all[2..]);
        assert_eq!(owed(&store).await, [""; 0]);
    }

    async fn what_the_first_let_in_and_the_second_refused_is_given_back(store) {
        store.install_default_lane().await;
        let (quota, budget) = (quota_of(&store, 5, false).await, budget_of(&store, 10).await);
        let id = submit(&store, under(quota), estimate(budget, 11)).await;
        let Some(client) = store.visiting() else { return };
        assert_eq!(claimed(&client, &store.claim_call("w1", 9)).await, []);
        let e = store.describe(id).await;
        assert_eq!(e.blocking_reason, Some(BlockingReason::WaitingForBudget));
        assert_eq!(e.blocking_detail.unwrap()["refusal"], "hard");
        assert_eq!((key_of(&store, quota).await, held(&store, budget).await), ((0, 0), 0));
        assert_eq!(owed(&store).await, [""; 0]);
    }

    async fn a_quota_that_is_not_there_admits_nothing(store) {
        store.install_default_lane().await;
        let gone = QuotaPolicyId::from_uuid(store.uuid(0));
        let id = submit(&store, under(gone), None).await;
        let Some(client) = store.visiting() else { return };
        assert_eq!(claimed(&client, &store.claim_call("w1", 9)).await, []);
        let e = store.describe(id).await;
        assert_eq!(e.blocking_detail.unwrap()["problem"], "not found");
    }

    async fn a_slot_that_is_kept_stays_while_the_attempt_is_set_aside(store) {
        store.install_default_lane().await;
        let quota = quota_of(&store, 1, true).await;
        let id = submit(&store, under(quota), None).await;
        let Some(client) = store.visiting() else { return };
        let task = claimed(&client, &store.claim_call("w1", 9)).await.remove(0);
        let door = store.waitpoint("door");
        client.call(HOME, &store.suspend_call(&task, &[&door])).await.unwrap();
        assert_eq!(key_of(&store, quota).await, (1, 0));
        store.assert_sound().await;
        store.wake(id, &door, "go").await;
        let again = claimed(&client, &store.claim_call("w1", 9)).await.remove(0);
        assert_eq!(again.attempt_id, task.attempt_id);
        complete(&client, &again).await;
        assert_eq!((key_of(&store, quota).await, owed(&store).await), ((0, 0), vec![]));
    }

    async fn a_lost_lease_gives_back_and_is_admitted_again(store) {
        store.install_default_lane().await;
        let quota = quota_of(&store, 1, false).await;
        let id = submit(&store, under(quota), None).await;
        let Some(client) = store.visiting() else { return };
        let task = claimed(&client, &store.claim_call("w1", 9)).await.remove(0);
        store.advance(task.lease_expires_at - store.now());
        let client = store.visiting().unwrap();
        client.call(HOME, &FireDue { limit: 64, draw: 500 }).await.unwrap();
        assert_eq!((key_of(&store, quota).await, owed(&store).await), ((0, 0), vec![]));
        let again = claimed(&client, &store.claim_call("w2", 9)).await;
        assert_eq!((ids(&again), again[0].attempt_type), (vec![id], AttemptType::Reclaim));
        assert_eq!(key_of(&store, quota).await, (1, 0));
    }

    async fn a_quota_that_cannot_be_read_decides_nothing_and_is_owed(store) {
        let Some(server) = store.server() else { return };
        store.install_default_lane().await;
        let (good, bad) = (quota_of(&store, 5, false).await, quota_of(&store, 5, false).await);
        let started = submit(&store, under(bad), None).await;
        let Some(client) = store.visiting() else { return };
        let task = claimed(&client, &store.claim_call("w1", 1)).await.remove(0);
        assert_eq!(task.execution_id, started);
        let waits = submit(&store, Some([under(good), under(bad)].into_iter().flatten().flatten().collect()), None).await;
        let goes_on = submit(&store, under(good), None).await;

        let mut connection = server.connection().unwrap();
        let key = format!("ff:quota:{{q:0}}:{bad}:core");
        let sound: Vec<u8> = redis::cmd("GET").arg(&key).query(&mut connection).unwrap();
        redis::cmd("SET").arg(&key).arg("?").exec(&mut connection).unwrap();
        let client = store.visiting().unwrap();
        assert_eq!(ids(&claimed(&client, &store.claim_call("w1", 9)).await), [goes_on], "the others are not held up");
        assert_eq!(store.describe(waits).await.state, PublicState::Waiting, "nothing was decided about it");
        assert_eq!(key_of(&store, good).await, (1, 0), "what was let in first is given back");
        complete(&client, &task).await;
        assert_eq!(owed(&store).await, ["release_holder"], "it is paid when it can be");

        redis::cmd("SET").arg(&key).arg(sound).exec(&mut connection).unwrap();
        let item = QuotaReturn {
            execution_id: task.execution_id, holder_id: *task.lease_id.as_uuid(), key_digest: K.into(), unused: false,
        };
        store.call(QUOTAS, &ReturnQuota { items: vec![item], quota_id: bad }).await.unwrap();
        let client = store.visiting().unwrap();
        assert_eq!(ids(&claimed(&client, &store.claim_call("w1", 9)).await), [waits]);
    }
}
