//! Lines: an execution that waits for a budget or a quota is in its line, is listed there, and is unblocked when there
//! is room.

use std::collections::BTreeMap;

use ff_conformance::work::{HOME, LANE, NAMESPACE};
use ff_conformance::{Store, for_each_host};
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_script::Route;
use ff_script::generated::*;
use uuid::Uuid;

const BUDGETS: Route = Route::Budget(0);

fn tokens(n: i64) -> BTreeMap<String, i64> {
    [("tokens".to_owned(), n)].into()
}

fn new_budget(id: BudgetId, hard: i64) -> CreateBudget {
    let scope = BudgetScope { r#type: ScopeType::Custom, id: None };
    let reset = BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None };
    let dimensions = vec![DimensionLimit { name: "tokens".into(), hard: Some(hard), soft: None }];
    let budget = NewBudget::new(id, NAMESPACE.into(), scope, dimensions, reset, OnSoft::Notify, OnHard::Suspend);
    CreateBudget { actor: "ops".into(), budget }
}

async fn budget(store: &Store, hard: i64) -> BudgetId {
    let id = BudgetId::from_uuid(store.uuid(0));
    store.call(BUDGETS, &new_budget(id, hard)).await.unwrap();
    id
}

async fn raise(store: &Store, budget_id: BudgetId, hard: i64) {
    let limits = vec![DimensionLimit { name: "tokens".into(), hard: Some(hard), soft: None }];
    let call = ChangeBudget { limits, ..ChangeBudget::new("ops".into(), budget_id, vec![]) };
    store.call(BUDGETS, &call).await.unwrap();
}

/// Requests admission of an execution under a holder, and returns the reply.
async fn admit(store: &Store, budget_id: BudgetId, id: ExecutionId, n: Option<i64>) -> (Uuid, BudgetVerdict) {
    let holder_id = store.uuid(0);
    let candidate =
        BudgetCandidate { estimate: n.map(tokens), ..BudgetCandidate::new(id, holder_id, store.now() + 5_000) };
    let call = AdmitBudget { budget_id, candidates: vec![candidate] };
    let AdmitBudgetReply::Answered { items } = store.call(BUDGETS, &call).await.unwrap();
    (holder_id, items.into_iter().next().unwrap())
}

async fn give_back(store: &Store, budget_id: BudgetId, id: ExecutionId, holder_id: Uuid) {
    let holders = vec![Holder { execution_id: id, expires_at: None, holder_id }];
    store.call(BUDGETS, &ReleaseBudget { budget_id, holders }).await.unwrap();
}

/// Grants everything possible, and blocks it as admission does.
async fn block_all(store: &Store, reason: AdmissionReason, detail: &[(&str, String)]) {
    let grant_ids = (0..64).map(|_| store.uuid(0)).collect();
    let call = IssueGrants {
        namespace: NAMESPACE.into(),
        lane: LANE.into(),
        instance: "w1".into(),
        kinds: None,
        capabilities: vec![],
        max: 64,
        lease_ids: None,
        ttl_ms: 5_000,
        grant_ids,
    };
    let Ok(IssueGrantsReply::Granted { grants, .. }) = store.ask(&call).await else { panic!("not granted") };
    for grant in grants {
        let detail = detail.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect();
        let call = BlockExecution {
            unheld: Some(true),
            ..BlockExecution::new(detail, grant.execution_id, grant.grant_id, reason)
        };
        store.ask(&call).await.unwrap();
    }
}

/// Submits work that names the budget, with its estimates, by priority.
async fn submit(store: &Store, budget_id: BudgetId, work: &[(i64, Option<i64>)]) -> Vec<ExecutionId> {
    let mut ids = Vec::new();
    for (priority, estimate) in work {
        let named = BudgetRef { budget_id: *budget_id.as_uuid(), estimate: estimate.map(tokens) };
        let submission =
            Submission { budgets: Some(vec![named]), priority: Some(*priority), ..store.submission("burn") };
        ids.push(store.submit(submission).await);
        store.advance(1);
    }
    ids
}

async fn refused(store: &Store, budget_id: BudgetId, rooms: i64) {
    let facts = [
        ("budget_id", budget_id.to_string()),
        ("dimension", "tokens".to_owned()),
        ("refusal", "hard".to_owned()),
        ("rooms", rooms.to_string()),
    ];
    block_all(store, AdmissionReason::WaitingForBudget, &facts).await;
}

/// The whole line, in pages of two.
async fn line(store: &Store, budget_id: BudgetId) -> Vec<ExecutionId> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let call = AwaitingBudget { after, ..AwaitingBudget::new(budget_id, 2) };
        let AwaitingBudgetReply::Waiting { items, next, .. } = store.ask(&call).await.unwrap();
        ids.extend(items.into_iter().map(|item| item.execution_id));
        after = next;
        if after.is_none() {
            return ids;
        }
    }
}

async fn cleared(store: &Store) -> Vec<ClearedBudget> {
    let ClearedBudgetsReply::Cleared { items, .. } = store.call(BUDGETS, &ClearedBudgets::new(10)).await.unwrap();
    items
}

async fn acknowledge(store: &Store, budget_id: BudgetId, rooms: i64, told: i64) -> bool {
    let call = AcknowledgeCleared { budget_id, rooms, told };
    let AcknowledgeClearedReply::Acknowledged { stays } = store.call(BUDGETS, &call).await.unwrap();
    stays
}

/// The event types of a route with their data, without the budget or quota itself.
async fn told(store: &Store, route: Route) -> Vec<(String, BTreeMap<String, String>)> {
    let events = store.events(route).await;
    events
        .into_iter()
        .map(|mut event| {
            assert_eq!(event.namespace.as_deref(), Some(NAMESPACE));
            assert!(event.data.remove("budget_id").or_else(|| event.data.remove("quota_id")).is_some());
            let said = event.texts();
            (event.r#type, said)
        })
        .collect()
}

fn facts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, fact)| ((*name).to_owned(), (*fact).to_owned())).collect()
}

for_each_host! {
    async fn who_waits_for_a_budget_is_shown_in_the_order_of_going_on(store) {
        store.install_default_lane().await;
        let (one, other) = (budget(&store, 10).await, budget(&store, 10).await);
        let ids = submit(&store, one, &[(0, None), (2, None), (1, Some(3)), (2, None)]).await;
        refused(&store, one, 0).await;
        let apart = submit(&store, other, &[(9, None)]).await;
        refused(&store, other, 0).await;
        assert_eq!(line(&store, one).await, [ids[1], ids[3], ids[2], ids[0]]);
        assert_eq!(line(&store, other).await, apart);
        let AwaitingBudgetReply::Waiting { items, count, .. } = store.ask(&AwaitingBudget::new(one, 1)).await.unwrap();
        assert_eq!((count, items[0].lane.as_str(), items[0].kind.as_str(), items[0].continues), (4, LANE, "burn", false));
        let shown = store.describe(ids[1]).await;
        assert_eq!((Some(items[0].blocked_since), items[0].detail.clone()), (shown.blocked_since, shown.blocking_detail));

        // The line follows changes to its executions.
        store.ask(&ChangeExecution { priority: Some(9), ..ChangeExecution::new("ann".into(), ids[0]) }).await.unwrap();
        store.ask(&CancelExecution::new("ann".into(), ids[1])).await.unwrap();
        assert_eq!(line(&store, one).await, [ids[0], ids[3], ids[2]]);
        store.assert_sound().await;
        let unblock = UnblockBudget::new(one, 64, 1);
        store.ask(&unblock).await.unwrap();
        assert_eq!(line(&store, one).await, []);
        assert_eq!(line(&store, other).await, apart);
        store.assert_sound().await;
    }

    async fn of_a_room_that_was_given_back_as_many_are_told_as_fit(store) {
        store.install_default_lane().await;
        let id = budget(&store, 100).await;
        let ids = submit(&store, id, &[(9, Some(50)), (8, Some(10)), (7, Some(20)), (6, Some(10)), (5, None), (4, Some(5))]).await;
        refused(&store, id, 0).await;
        let free = |n| Some(BTreeMap::from([("tokens".to_owned(), n)]));
        let tell = async |free, most| {
            let call = UnblockBudget { free, most, ..UnblockBudget::new(id, 64, 1) };
            let UnblockBudgetReply::Unblocked { count, passed_over, next, .. } = store.ask(&call).await.unwrap();
            (count, passed_over, next.map(|next| next.execution_id))
        };
        assert_eq!(tell(free(0), None).await, (0, 6, None), "nothing is left");
        assert_eq!(tell(free(25), Some(1)).await, (1, 1, Some(ids[1])), "the first that fits, and no more than requested");
        assert_eq!(line(&store, id).await, [ids[0], ids[2], ids[3], ids[4], ids[5]]);
        // The next two that fit take 30 of 35. Without an estimate, any room is enough.
        assert_eq!(tell(free(35), None).await, (4, 1, None));
        assert_eq!(line(&store, id).await, [ids[0]]);
        assert_eq!(tell(None, None).await, (1, 0, None), "a room that unblocks everything");
    }

    async fn who_was_not_told_yet_is_told_of_the_next_room(store) {
        let id = budget(&store, 10).await;
        let [first, second, third] = [store.execution_id(), store.execution_id(), store.execution_id()];
        let (held, _) = admit(&store, id, first, Some(6)).await;
        let (other, _) = admit(&store, id, second, Some(4)).await;
        let (_, verdict) = admit(&store, id, third, Some(6)).await;
        assert_eq!((verdict.admitted, verdict.rooms), (false, Some(0)));
        give_back(&store, id, second, other).await;
        let room = cleared(&store).await.remove(0);
        assert_eq!((room.rooms, room.wide, room.told, room.free), (1, 0, 0, tokens(4)), "as large as what was given back");
        // Nothing fitted, so the mark goes and nothing was unblocked.
        assert!(!acknowledge(&store, id, 1, 0).await);
        assert_eq!(cleared(&store).await, []);
        give_back(&store, id, first, held).await;
        let room = cleared(&store).await.remove(0);
        assert_eq!((room.rooms, room.told, room.free), (2, 0, tokens(10)), "although nothing was refused since");
        assert!(acknowledge(&store, id, 1, 1).await, "there was one more room since");
        assert!(!acknowledge(&store, id, 2, 2).await);

        // Everything was unblocked: room without a refusal concerns no execution.
        let (held, verdict) = admit(&store, id, third, Some(6)).await;
        assert!(verdict.admitted);
        give_back(&store, id, third, held).await;
        assert_eq!(cleared(&store).await, []);
        let (held, _) = admit(&store, id, first, Some(10)).await;
        assert!(!admit(&store, id, second, None).await.1.admitted);
        raise(&store, id, 20).await;
        let room = cleared(&store).await.remove(0);
        assert_eq!((room.rooms, room.wide, room.told), (3, 3, 2), "a changed limit unblocks everything");
        give_back(&store, id, first, held).await;
        assert_eq!(cleared(&store).await[0].wide, 3);
    }

    async fn a_budget_that_comes_back_calls_those_who_waited_for_its_name(store) {
        store.install_default_lane().await;
        let id = budget(&store, 10).await;
        let ids = submit(&store, id, &[(0, None)]).await;
        store.call(BUDGETS, &DeleteBudget { actor: "ops".into(), budget_id: id }).await.unwrap();
        let gone = cleared(&store).await.remove(0);
        assert!(!acknowledge(&store, id, gone.rooms, gone.rooms).await);
        block_all(&store, AdmissionReason::WaitingForBudget, &[("budget_id", id.to_string()), ("problem", "not found".into())]).await;
        assert_eq!(line(&store, id).await, ids);
        let waiting = WaitingForBudgets::new(LANE.into(), 10, NAMESPACE.into());
        let WaitingForBudgetsReply::Waiting { items, .. } = store.ask(&waiting).await.unwrap();
        assert_eq!(items, [AwaitedBudget { budget_id: id, rooms: -1 }]);
        store.call(BUDGETS, &new_budget(id, 10)).await.unwrap();
        let back = cleared(&store).await.remove(0);
        assert!(back.wide == back.rooms && back.rooms > 1_000_000, "more rooms than any execution has seen: {back:?}");
        let unblock = UnblockBudget::new(id, 64, back.wide);
        assert!(matches!(store.ask(&unblock).await, Ok(UnblockBudgetReply::Unblocked { count: 1, .. })));
        assert!(!acknowledge(&store, id, back.rooms, back.wide).await);
        // A new budget has no waiting executions to call.
        budget(&store, 10).await;
        assert_eq!(cleared(&store).await, []);
    }

    async fn a_quota_that_comes_back_calls_those_who_were_refused_for_want_of_it(store) {
        store.install_default_lane().await;
        let id = QuotaPolicyId::from_uuid(store.uuid(0));
        let route = store.client().route_of_quota(&id);
        let put = || PutQuota {
            actor: Some("ops".into()),
            quota: Quota { concurrency: Some(1), ..Quota::new(id, NAMESPACE.into(), false) },
            version: None,
        };
        let owed = async || {
            let ReadOutboxReply::Effects { items } = store.call(route, &ReadOutbox::new(10)).await.unwrap();
            items.into_iter().map(|effect| (effect.r#type, effect.data)).collect::<Vec<_>>()
        };
        store.call(route, &put()).await.unwrap();
        assert_eq!(owed().await, [], "no waiting work named it");
        store.call(route, &DeleteQuota { actor: Some("ops".into()), quota_id: id }).await.unwrap();
        store.fire_due(route).await;
        let quotas = Some(vec![QuotaRef::new(*id.as_uuid(), "k".into())]);
        let waits = store.submit(Submission { quotas, ..store.submission("mail") }).await;
        block_all(&store, AdmissionReason::WaitingForQuota, &[("quota_id", id.to_string()), ("problem", "not found".into())]).await;
        let MissingQuotasReply::Missing { quota_ids, next } = store.ask(&MissingQuotas::new(10)).await.unwrap();
        assert_eq!((quota_ids, next), (vec![id], None));
        store.assert_sound().await;
        store.call(route, &put()).await.unwrap();
        assert_eq!(owed().await, [("quota_returned".to_owned(), facts(&[("quota_id", &id.to_string())]))]);
        let other = UnblockQuota::new(10, QuotaPolicyId::from_uuid(store.uuid(0)));
        assert_eq!(store.ask(&other).await, Ok(UnblockQuotaReply::Unblocked { count: 0, next: None }));
        let call = UnblockQuota::new(10, id);
        assert_eq!(store.ask(&call).await, Ok(UnblockQuotaReply::Unblocked { count: 1, next: None }));
        assert_eq!(store.ask(&call).await, Ok(UnblockQuotaReply::Unblocked { count: 0, next: None }));
        assert_eq!(store.state(waits).await, PublicState::Waiting);
        store.assert_sound().await;
    }

    async fn who_waits_under_a_key_is_shown_in_the_order_of_the_calls(store) {
        let id = QuotaPolicyId::from_uuid(store.uuid(0));
        let route = store.client().route_of_quota(&id);
        let quota = Quota {
            concurrency: Some(1),
            weighted: Some(QuotaWeights { limit: 10, window_ms: 60_000 }),
            ..Quota::new(id, NAMESPACE.into(), false)
        };
        store.call(route, &PutQuota { actor: None, quota, version: None }).await.unwrap();
        let ask = |score, weight| QuotaCandidate {
            execution_id: store.execution_id(), expires_at: store.now() + 5_000, holder_id: store.uuid(0), key: "k".into(), number: 1, score, weight,
        };
        let asked = [ask(0, 1), ask(5, 1), ask(3, 1), ask(1, 11), ask(4, 1)];
        store.call(route, &AdmitQuota { candidates: asked.to_vec(), quota_id: id }).await.unwrap();
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let call = ListQuotaWaiters { after, ..ListQuotaWaiters::new("k".into(), 2, id) };
            let ListQuotaWaitersReply::Waiting { items, count, next } = store.call(route, &call).await.unwrap();
            assert_eq!(count, 3 + 1);
            seen.extend(items.into_iter().map(|item| (item.execution_id, item.never)));
            after = next;
            if after.is_none() {
                break;
            }
        }
        // Work that can never pass blocks no other work, whatever refused it first.
        let expected = [(2, false), (4, false), (1, false), (3, true)].map(|(n, never): (usize, bool)| (asked[n].execution_id, never));
        assert_eq!(seen, expected);
    }

    async fn a_budget_that_runs_out_says_so_once(store) {
        let id = budget(&store, 10).await;
        let first = store.execution_id();
        let (held, _) = admit(&store, id, first, Some(10)).await;
        for _ in 0..3 {
            admit(&store, id, store.execution_id(), Some(1)).await;
        }
        let report = ApplyUsage { budget_id: id, report: UsageReport::new("a".into(), tokens(1)) };
        assert!(matches!(store.call(BUDGETS, &report).await, Ok(ApplyUsageReply::HardBreach { .. })));
        let breach = |used: &str, held: &str, limit: &str| {
            let said = facts(&[("dimension", "tokens"), ("used", used), ("held", held), ("limit", limit), ("on_hard", "suspend")]);
            ("budget.hard_breach".to_owned(), said)
        };
        let created = ("budget.created".to_owned(), facts(&[("actor", "ops")]));
        assert_eq!(told(&store, BUDGETS).await, [created.clone(), breach("0", "10", "10")]);
        give_back(&store, id, first, held).await;
        assert!(matches!(store.call(BUDGETS, &report).await, Ok(ApplyUsageReply::Ok)));
        let reserve = ReserveBudget { ttl_ms: Some(1_000), ..ReserveBudget::new(id, tokens(10), store.uuid(0)) };
        assert!(matches!(store.call(BUDGETS, &reserve).await, Ok(ReserveBudgetReply::HardBreach { .. })));
        assert_eq!(told(&store, BUDGETS).await, [created, breach("0", "10", "10"), breach("1", "0", "10")]);
    }

    async fn what_is_done_to_a_quota_is_said_with_its_actor(store) {
        let id = QuotaPolicyId::from_uuid(store.uuid(0));
        let route = store.client().route_of_quota(&id);
        let actor = || Some("ops".to_owned());
        let quota = |n| Quota { concurrency: Some(n), ..Quota::new(id, NAMESPACE.into(), false) };
        store.call(route, &PutQuota { actor: actor(), quota: quota(1), version: None }).await.unwrap();
        store.call(route, &PutQuota { actor: actor(), quota: quota(1), version: None }).await.unwrap();
        store.call(route, &PutQuota { actor: actor(), quota: quota(2), version: Some(1) }).await.unwrap();
        let until = store.now() + 1_000;
        for until in [until, until - 500, store.now(), 0, 0] {
            let call = ThrottleQuota { actor: actor(), key: "k".into(), quota_id: id, until };
            store.call(route, &call).await.unwrap();
        }
        store.call(route, &DeleteQuota { actor: actor(), quota_id: id }).await.unwrap();
        let until = until.to_string();
        assert_eq!(told(&store, route).await, [
            ("quota.created".to_owned(), facts(&[("actor", "ops")])),
            ("quota.changed".to_owned(), facts(&[("actor", "ops")])),
            ("quota.throttled".to_owned(), facts(&[("actor", "ops"), ("key", "k"), ("until", &until)])),
            ("quota.unthrottled".to_owned(), facts(&[("actor", "ops"), ("key", "k")])),
            ("quota.deleted".to_owned(), facts(&[("actor", "ops")])),
        ]);
    }

    async fn damage_to_a_line_is_found_and_repaired(store) {
        let Some(server) = store.server() else { return };
        store.install_default_lane().await;
        let id = budget(&store, 10).await;
        let waits = submit(&store, id, &[(0, None)]).await[0];
        refused(&store, id, 0).await;
        store.assert_sound().await;
        let key = format!("ff:idx:{{p:0}}:awaits:{id}");
        let (waits, ghost) = (waits.to_string(), "00000000-0000-7000-8000-00000000ff00");
        for command in [vec!["ZREM", &key, &waits], vec!["ZADD", &key, "1", &waits], vec!["ZADD", &key, "1", ghost]] {
            server.command::<redis::Value>(&command).unwrap();
            assert!(!store.fsck().await.is_empty(), "{command:?}");
            store.ask(&CheckExecutions { offset: 0, limit: 64, repair: true }).await.unwrap();
            let keys = vec![key.clone().into_bytes().into()];
            store.call(HOME, &CheckKeys { keys, repair: true }).await.unwrap();
            store.assert_sound().await;
        }
    }

    async fn who_runs_without_having_been_admitted_is_found(store) {
        let Some(server) = store.server() else { return };
        store.install_default_lane().await;
        let id = budget(&store, 10).await;
        let runs = submit(&store, id, &[(0, None)]).await[0];
        let call = IssueGrants {
            namespace: NAMESPACE.into(), lane: LANE.into(), instance: "w1".into(), kinds: None, capabilities: vec![], max: 1, lease_ids: None, ttl_ms: 5_000, grant_ids: vec![store.uuid(0)],
        };
        let Ok(IssueGrantsReply::Granted { grants, .. }) = store.ask(&call).await else { panic!("not granted") };
        let ids = store.lease_ids();
        let consume = ConsumeGrant {
            keep: None, execution_id: runs, grant_id: grants[0].grant_id, instance: "w1".into(), worker_id: "k".into(), kinds: None, capabilities: vec![],
            lease_ttl_ms: 60_000, attempt_id: ids.attempt_id, lease_id: ids.lease_id,
        };
        store.ask(&consume).await.unwrap();
        store.assert_sound().await;
        let key = format!("ff:exec:{{p:0}}:{runs}");
        let mut connection = server.connection().unwrap();
        let right: Vec<u8> = redis::cmd("GET").arg(&key).query(&mut connection).unwrap();
        let (damaged, _) = ff_conformance::stored::replaced(ExecutionRecord::FIELDS, &right, "holds", false.into());
        redis::cmd("SET").arg(&key).arg(damaged).exec(&mut connection).unwrap();
        let found: Vec<i64> = store.fsck().await.iter().map(|finding| finding.invariant).collect();
        assert_eq!(found, [34]);
        redis::cmd("SET").arg(&key).arg(right).exec(&mut connection).unwrap();
    }
}
