//! Slots: the work of a limited lane starts through a holder set, and every way to end returns the slot.

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, LANE, LEASE_MS, NAMESPACE, plain_lane};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::generated::*;
use ff_script::{Route, Wake, WakeUp};
use uuid::Uuid;

const SET: &str = "lane:default/default";
const GRANT_MS: i64 = 5_000;

fn slots(store: &Store) -> Route {
    store.client().route_of_holder_set(SET)
}

fn limited(max_active: i64) -> LaneDefinition {
    LaneDefinition { max_active: Some(max_active), ..plain_lane() }
}

async fn limit(store: &Store, limit: Option<i64>) -> i64 {
    let call = SetCapacity { limit, set: SET.into(), version: store.next_number() as i64 };
    match store.call(slots(store), &call).await {
        Ok(SetCapacityReply::Set { held }) => held,
        other => panic!("not set: {other:?}"),
    }
}

/// The default lane, limited everywhere.
async fn limited_lane(store: &Store, max_active: i64) {
    store.install_lane(NAMESPACE, LANE, limited(max_active)).await;
    limit(store, Some(max_active)).await;
}

async fn grants(store: &Store, worker: &str, max: i64) -> Vec<Grant> {
    let grant_ids = (0..max).map(|_| store.uuid(0)).collect();
    let call = IssueGrants {
        namespace: NAMESPACE.into(),
        lane: LANE.into(),
        instance: worker.into(),
        kinds: None,
        capabilities: vec![],
        max,
        lease_ids: None,
        ttl_ms: GRANT_MS,
        grant_ids,
    };
    match store.ask(&call).await {
        Ok(IssueGrantsReply::Granted { grants, .. }) => grants,
        other => panic!("not granted: {other:?}"),
    }
}

fn candidate(grant: &Grant) -> Candidate {
    Candidate { execution_id: grant.execution_id, holder_id: grant.grant_id, expires_at: grant.expires_at }
}

fn forever(candidate: &Candidate) -> Holder {
    Holder { execution_id: candidate.execution_id, holder_id: candidate.holder_id, expires_at: None }
}

async fn try_admit(store: &Store, holders: Vec<Candidate>) -> Result<AdmitHoldersReply, ff_script::Error> {
    store.call(slots(store), &AdmitHolders { set: SET.into(), holders, counted: None }).await
}

async fn admit(store: &Store, grants: &[Grant]) -> Vec<Uuid> {
    let AdmitHoldersReply::Admitted { holder_ids, .. } =
        try_admit(store, grants.iter().map(candidate).collect()).await.unwrap();
    holder_ids
}

fn consume(store: &Store, grant: &Grant, worker: &str, lease_ttl_ms: i64) -> ConsumeGrant {
    let ids = store.lease_ids();
    ConsumeGrant {
        keep: None,
        execution_id: grant.execution_id,
        grant_id: grant.grant_id,
        instance: worker.into(),
        worker_id: "k".into(),
        kinds: None,
        capabilities: vec![],
        lease_ttl_ms,
        attempt_id: ids.attempt_id,
        lease_id: ids.lease_id,
    }
}

/// Grants, admits and starts the best execution.
async fn start(store: &Store, lease_ttl_ms: i64) -> Task {
    let granted = grants(store, "w1", 1).await;
    assert_eq!(admit(store, &granted).await, [granted[0].grant_id]);
    match store.ask(&consume(store, &granted[0], "w1", lease_ttl_ms)).await {
        Ok(ConsumeGrantReply::Claimed { task }) => task,
        other => panic!("not claimed: {other:?}"),
    }
}

async fn held(store: &Store) -> Vec<Holder> {
    let ListHoldersReply::Holders { items, held, .. } =
        store.call(slots(store), &ListHolders { set: SET.into(), offset: 0, limit: 100 }).await.unwrap();
    assert_eq!(items.len() as i64, held);
    items
}

async fn check(store: &Store, holders: Vec<Holder>) -> Vec<HolderState> {
    let CheckHoldersReply::Checked { items } = store.ask(&CheckHolders { set: SET.into(), holders }).await.unwrap();
    items.into_iter().map(|item| item.state).collect()
}

/// The effects that the home partition owes the holder set.
async fn owed(store: &Store) -> Vec<Effect> {
    let ReadOutboxReply::Effects { items } = store.ask(&ReadOutbox::new(100)).await.unwrap();
    assert!(items.iter().all(|effect| effect.r#type == "release_holder" && effect.data["set"] == SET), "{items:?}");
    items
}

fn released(effects: &[Effect]) -> Vec<ExecutionId> {
    effects.iter().map(|effect| effect.data["execution_id"].parse().unwrap()).collect()
}

/// Applies and removes the owed effects, as the outbox does.
async fn pay(store: &Store) -> usize {
    let effects = owed(store).await;
    let holders = effects.iter().map(|effect| Holder {
        execution_id: effect.data["execution_id"].parse().unwrap(),
        holder_id: effect.data["holder_id"].parse().unwrap(),
        expires_at: None,
    });
    let call = ReleaseHolders { set: SET.into(), holders: holders.collect() };
    store.call(slots(store), &call).await.unwrap();
    store.ask(&AckOutbox { ids: effects.iter().map(|effect| effect.id.clone()).collect() }).await.unwrap();
    effects.len()
}

async fn again(store: &Store, id: ExecutionId) -> i64 {
    let ReplayExecutionReply::Replayed { .. } = store.ask(&ReplayExecution::new("ann".into(), id)).await.unwrap();
    1
}

for_each_host! {
    async fn a_limited_lane_is_not_claimed_from_directly(store) {
        limited_lane(&store, 2).await;
        store.submit_kind("mail").await;
        let asked = store.ask(&store.claim_call("w1", 5)).await;
        assert_eq!(asked, Ok(ClaimExecutionsReply::Claimed { tasks: vec![], next_score: None, admission_needed: Some(true) }));
        let granted = grants(&store, "w1", 5).await;
        assert_eq!(granted.len(), 1, "a grant reaches plain work as well");
        assert_eq!(granted[0].holder_sets, Some(vec![SET.to_owned()]));
    }

    async fn max_active_is_refused_by_name_when_out_of_bounds(store) {
        for wrong in [0, 1_000_001] {
            let call = DefineLane { max_active: Some(wrong), ..DefineLane::new("ann".into(), LANE.into(), NAMESPACE.into()) };
            let error = store.call(Route::Fleet, &call).await.unwrap_err();
            assert!(error.to_string().contains("max_active"), "{error}");
            assert_eq!(refusal::<()>(Err(error)), ErrorCode::InvalidArgument);
        }
    }

    async fn no_more_are_admitted_than_there_is_room_for(store) {
        limited_lane(&store, 2).await;
        for _ in 0..3 {
            store.submit_kind("mail").await;
        }
        let granted = grants(&store, "w1", 3).await;
        assert_eq!(admit(&store, &granted).await, [granted[0].grant_id, granted[1].grant_id]);
        let before = store.dump().await;
        let reply = try_admit(&store, granted.iter().map(candidate).collect()).await;
        assert_eq!(reply, Ok(AdmitHoldersReply::Admitted { holder_ids: vec![granted[0].grant_id, granted[1].grant_id], held: 2, limit: Some(2) }), "asking again changes nothing");
        assert_eq!(store.dump().await, before);
        assert_eq!(check(&store, held(&store).await).await, [HolderState::Granted, HolderState::Granted]);
        let back = ReleaseGrant { unheld: Some(true), ..ReleaseGrant::new(granted[2].execution_id, granted[2].grant_id) };
        assert_eq!(store.ask(&back).await, Ok(ReleaseGrantReply::Released));
        assert_eq!(owed(&store).await, [], "who was not admitted owes nothing");
        store.assert_sound().await;
    }

    async fn a_set_without_a_capacity_admits_nobody(store) {
        store.install_lane(NAMESPACE, LANE, limited(2)).await;
        store.submit_kind("mail").await;
        let granted = grants(&store, "w1", 1).await;
        assert_eq!(refusal(try_admit(&store, vec![candidate(&granted[0])]).await), ErrorCode::CapacityUnknown);
        limit(&store, None).await;
        assert_eq!(admit(&store, &granted).await, [granted[0].grant_id], "without a limit every execution fits");
    }

    async fn an_older_capacity_never_replaces_a_newer_one(store) {
        let set = |version, limit| SetCapacity { limit, set: SET.into(), version };
        store.call(slots(&store), &set(5, Some(3))).await.unwrap();
        assert_eq!(store.call(slots(&store), &set(4, None)).await, Ok(SetCapacityReply::Newer { version: 5 }));
        let ListHoldersReply::Holders { capacity, version, .. } = store.call(slots(&store), &ListHolders { set: SET.into(), offset: 0, limit: 1 }).await.unwrap();
        assert_eq!((capacity, version), (Some(3), Some(5)));
    }

    async fn every_way_out_of_running_gives_the_slot_back_once(store) {
        limited_lane(&store, 1).await;
        let id = store.submit(Submission { max_replays: Some(100), max_reclaims: Some(0), attempt_timeout_ms: Some(2_000), retry: Some(Retry { max_attempts: Some(1), ..Retry::default() }), ..store.submission("mail") }).await;
        let mut rounds = 0;
        for way in 0..9 {
            let task = start(&store, 1_500).await;
            assert_eq!(task.execution_id, id);
            let (execution_id, fence) = (id, task.fence());
            match way {
                0 => store.complete(&task).await,
                1 => {
                    store.fail(&task, "net").await;
                }
                2 => drop(store.ask(&CancelAttempt::new(id, fence)).await.unwrap()),
                3 => drop(store.ask(&CancelExecution::new("ann".into(), id)).await.unwrap()),
                4 => drop(store.ask(&YieldExecution { execution_id, fence }).await.unwrap()),
                5 => drop(store.ask(&DelayExecution { delay_ms: Some(1), ..DelayExecution::new(id, fence) }).await.unwrap()),
                6 => {
                    store.ask(&RevokeLease::new("ann".into(), id)).await.unwrap();
                }
                7 => {
                    store.advance(1_500);
                    store.fire_all().await;
                }
                _ => {
                    store.advance(1_000);
                    store.ask(&RenewLease::new(id, task.fence())).await.unwrap();
                    store.advance(1_000);
                    store.fire_all().await;
                }
            }
            let effects = owed(&store).await;
            assert_eq!(released(&effects), [id], "way {way}");
            assert_eq!(check(&store, held(&store).await).await, [HolderState::Owed]);
            assert_eq!(pay(&store).await, 1);
            assert_eq!(held(&store).await, [], "way {way}");
            store.assert_sound().await;
            if way == 5 {
                store.advance(1);
                store.fire_all().await;
            }
            if store.describe(id).await.outcome.is_some() {
                rounds += again(&store, id).await;
            }
        }
        assert!(rounds >= 5, "{rounds} ways ended it");
        assert_eq!(owed(&store).await, []);
    }

    async fn every_end_of_a_grant_gives_the_slot_back(store) {
        limited_lane(&store, 1).await;
        for way in 0..5 {
            let id = store.submit_kind("mail").await;
            let granted = grants(&store, "w1", 1).await;
            assert_eq!(admit(&store, &granted).await.len(), 1);
            match way {
                0 => drop(store.ask(&ReleaseGrant::new(id, granted[0].grant_id)).await.unwrap()),
                1 => {
                    store.advance(GRANT_MS);
                    store.fire_all().await;
                }
                2 => drop(store.ask(&CancelExecution::new("ann".into(), id)).await.unwrap()),
                3 => drop(store.ask(&HoldExecution::new("ann".into(), id)).await.unwrap()),
                _ => drop(store.ask(&ChangeExecution { priority: Some(3), ..ChangeExecution::new("ann".into(), id) }).await.unwrap()),
            }
            assert_eq!(released(&owed(&store).await), [id], "way {way}");
            pay(&store).await;
            assert_eq!(held(&store).await, [], "way {way}");
            store.ask(&CancelExecution::new("ann".into(), id)).await.unwrap();
            assert_eq!(owed(&store).await, []);
            store.assert_sound().await;
        }
    }

    async fn a_deadline_alone_frees_nothing(store) {
        limited_lane(&store, 2).await;
        let running = store.submit_kind("runs").await;
        let task = start(&store, LEASE_MS).await;
        assert_eq!(task.execution_id, running);
        // A late admission of a grant that has ended: no partition owes its release any more.
        let ghost = Candidate { execution_id: store.execution_id(), holder_id: store.uuid(0), expires_at: store.now() + GRANT_MS };
        try_admit(&store, vec![ghost.clone()]).await.unwrap();
        store.advance(GRANT_MS);

        let mut watch = store.host().watch();
        store.host().subscribe(&[slots(&store)]).await.unwrap();
        let overdue = Wake::Overdue { set: SET.into() };
        for _ in 0..100 {
            store.fire_due(slots(&store)).await;
            store.advance(1_000);
            let heard = tokio::time::timeout(std::time::Duration::from_millis(100), async {
                loop {
                    if let Ok(WakeUp::Message { payload, .. }) = watch.recv().await {
                        return Wake::read_all(&payload).unwrap();
                    }
                }
            });
            // On a server the subscription starts a moment later, and the announcement repeats every second.
            if heard.await.is_ok_and(|heard| heard.contains(&overdue)) {
                break;
            }
        }
        let before = held(&store).await;
        assert_eq!(before.len(), 2, "both count until the reconciler has asked");
        assert_eq!(refusal(store.ask(&consume(&store, &Grant { execution_id: running, ..typed(&ghost) }, "w1", LEASE_MS)).await), ErrorCode::GrantNotFound);
        let states = check(&store, before.clone()).await;
        let of = |id| states[before.iter().position(|holder| holder.execution_id == id).unwrap()];
        assert_eq!((of(running), of(ghost.execution_id)), (HolderState::Running, HolderState::Gone));

        let kept: Vec<Holder> = before.iter().filter(|h| h.execution_id == running).map(|h| Holder { expires_at: None, ..h.clone() }).collect();
        assert_eq!(store.call(slots(&store), &ConfirmHolders { set: SET.into(), holders: kept.clone() }).await, Ok(ConfirmHoldersReply::Confirmed { count: 1 }));
        assert_eq!(store.call(slots(&store), &ReleaseHolders { set: SET.into(), holders: vec![forever(&ghost)] }).await, Ok(ReleaseHoldersReply::Released { count: 1, held: 1 }));
        assert_eq!(store.call(slots(&store), &ConfirmHolders { set: SET.into(), holders: vec![forever(&ghost)] }).await, Ok(ConfirmHoldersReply::Confirmed { count: 0 }), "who has left does not come back");
        assert_eq!(held(&store).await, kept);
        store.advance(1_000);
        store.fire_all().await;
        store.assert_sound().await;
        store.complete(&task).await;
        pay(&store).await;
        assert_eq!(held(&store).await, []);
    }

    async fn a_full_set_says_when_it_has_room_again(store) {
        limited_lane(&store, 2).await;
        let mut tasks = Vec::new();
        for _ in 0..2 {
            store.submit_kind("mail").await;
            tasks.push(start(&store, LEASE_MS).await);
        }
        let mut watch = store.host().watch();
        store.host().subscribe(&[slots(&store)]).await.unwrap();
        async fn heard(watch: &mut ff_script::Watch, ms: u64) -> Vec<Wake> {
            let next = async {
                loop {
                    if let Ok(WakeUp::Message { payload, .. }) = watch.recv().await {
                        let mut wakes = Wake::read_all(&payload).unwrap();
                        wakes.retain(|wake| matches!(wake, Wake::Slot { .. }));
                        if !wakes.is_empty() {
                            return wakes;
                        }
                    }
                }
            };
            tokio::time::timeout(std::time::Duration::from_millis(ms), next).await.unwrap_or_default()
        }
        // A probe proves that the subscription has started.
        for number in 0..100 {
            let probe = |limit| SetCapacity { limit, set: "probe".into(), version: number };
            let route = slots(&store);
            store.call(route, &probe(Some(1))).await.unwrap();
            let probed = Candidate { execution_id: store.execution_id(), holder_id: store.uuid(0), expires_at: store.now() + 60_000 };
            store.call(route, &AdmitHolders { set: "probe".into(), holders: vec![probed.clone()], counted: Some(true) }).await.unwrap();
            store.call(route, &probe(None)).await.unwrap();
            store.call(route, &ReleaseHolders { set: "probe".into(), holders: vec![forever(&probed)] }).await.unwrap();
            if !heard(&mut watch, 100).await.is_empty() {
                break;
            }
        }
        while !heard(&mut watch, 100).await.is_empty() {}

        let slot = |free| vec![Wake::Slot { set: SET.into(), free }];
        store.complete(&tasks[0]).await;
        pay(&store).await;
        assert_eq!(heard(&mut watch, 10_000).await, slot(1));
        store.complete(&tasks[1]).await;
        pay(&store).await;
        assert_eq!(heard(&mut watch, 100).await, [], "it had room already");
        store.submit_kind("mail").await;
        start(&store, LEASE_MS).await;
        limit(&store, Some(1)).await;
        assert_eq!(heard(&mut watch, 100).await, [], "it has become full");
        limit(&store, Some(3)).await;
        assert_eq!(heard(&mut watch, 10_000).await, slot(2));
        limit(&store, Some(1)).await;
        limit(&store, None).await;
        assert_eq!(heard(&mut watch, 10_000).await.len(), 1);
    }

    async fn lowering_the_limit_lets_running_work_finish(store) {
        limited_lane(&store, 3).await;
        let mut tasks = Vec::new();
        for _ in 0..3 {
            store.submit_kind("mail").await;
            tasks.push(start(&store, LEASE_MS).await);
        }
        limited_lane(&store, 1).await;
        store.submit_kind("mail").await;
        let granted = grants(&store, "w1", 1).await;
        for task in tasks {
            assert_eq!(admit(&store, &granted).await, Vec::<Uuid>::new());
            store.complete(&task).await;
            pay(&store).await;
        }
        assert_eq!(admit(&store, &granted).await.len(), 1);
    }

    async fn what_ran_before_the_limit_is_counted(store) {
        store.install_default_lane().await;
        for n in 0..5 {
            store.submit(Submission { requires: (n % 2 == 0).then(|| vec!["x".into()]), ..store.submission("mail") }).await;
        }
        let tasks = store.claim_as("w1", &["x"], 5).await;
        store.submit_kind("granted before").await;
        let early = grants(&store, "w1", 1).await;
        assert_eq!((tasks.len(), early[0].holder_sets.clone()), (5, None));
        limited_lane(&store, 2).await;
        assert_eq!(refusal(store.ask(&consume(&store, &early[0], "w1", LEASE_MS)).await), ErrorCode::GrantNotFound, "it was not admitted");

        let walk = async |note| {
            let (mut found, mut count, mut after) = (Vec::new(), 0, None);
            loop {
                let call = AdoptHolders { after, ..AdoptHolders::new(LANE.into(), 2, NAMESPACE.into(), note) };
                let AdoptHoldersReply::Adopted { holders, unnoted, next } = store.ask(&call).await.unwrap();
                assert!(holders.len() <= 2);
                found.extend(holders);
                count += unnoted;
                after = next;
                if after.is_none() {
                    return (found, count);
                }
            }
        };
        assert_eq!(walk(false).await, (vec![], 5));
        let (found, _) = walk(true).await;
        let mut ids: Vec<ExecutionId> = found.iter().map(|holder| holder.execution_id).collect();
        let mut expected: Vec<ExecutionId> = tasks.iter().map(|task| task.execution_id).collect();
        ids.sort();
        expected.sort();
        assert_eq!(ids, expected);
        let before = store.dump().await;
        assert_eq!(walk(true).await, (found.clone(), 0), "a second walk finds the same");
        assert_eq!(store.dump().await, before);

        let holders = found.into_iter().map(|holder| Candidate { execution_id: holder.execution_id, holder_id: holder.holder_id, expires_at: store.now() + 1 }).collect();
        let AdmitHoldersReply::Admitted { held: count, .. } =
            store.call(slots(&store), &AdmitHolders { set: SET.into(), holders, counted: Some(true) }).await.unwrap();
        assert_eq!(count, 5, "they count, room or not");
        for task in &tasks {
            store.complete(task).await;
        }
        assert_eq!(pay(&store).await, 5);
        assert_eq!(held(&store).await, []);
        store.assert_sound().await;
    }

    async fn a_reclaim_handed_to_a_worker_needs_a_slot_too(store) {
        limited_lane(&store, 1).await;
        let id = store.submit_kind("mail").await;
        let task = start(&store, LEASE_MS).await;
        store.ask(&YieldExecution { execution_id: id, fence: task.fence() }).await.unwrap();
        pay(&store).await;
        let call = GrantReclaim { actor: "ann".into(), execution_id: id, grant_id: store.uuid(0), instance: "w2".into(), ttl_ms: GRANT_MS, namespace: "default".into(), lanes: vec!["default".into()], kinds: None, capabilities: vec![] };
        let GrantReclaimReply::Granted { grant } = store.ask(&call).await.unwrap();
        assert_eq!(grant.holder_sets, Some(vec![SET.to_owned()]));
    }

    async fn explain_tells_the_limit_of_the_lane(store) {
        limited_lane(&store, 7).await;
        let id = store.submit_kind("mail").await;
        let ExplainExecutionReply::Facts { max_active, .. } = store.ask(&ExplainExecution { execution_id: id }).await.unwrap();
        assert_eq!(max_active, Some(7));
    }

    async fn fsck_knows_the_keys_of_slots_and_no_others(store) {
        limited_lane(&store, 1).await;
        store.submit_kind("mail").await;
        let granted = grants(&store, "w1", 1).await;
        admit(&store, &granted).await;
        store.assert_sound().await;
        let page = store.host().scan(ff_script::ScanCursor::Start, 1_000).await.unwrap();
        let tag = slots(&store).tag().unwrap();
        let mut keys: Vec<ff_script::Bytes> =
            page.keys.into_iter().filter(|key| String::from_utf8_lossy(key).contains(&tag)).map(Into::into).collect();
        keys.push(format!("ff:quota:{tag}:what:ever").as_str().into());
        let CheckKeysReply::Checked { findings, .. } = store.call(slots(&store), &CheckKeys { keys, repair: false }).await.unwrap();
        assert_eq!(findings.iter().map(|finding| finding.invariant).collect::<Vec<_>>(), [37], "{findings:?}");
    }
}

fn typed(holder: &Candidate) -> Grant {
    Grant {
        execution_id: holder.execution_id,
        grant_id: holder.holder_id,
        expires_at: 0,
        lane: LANE.into(),
        kind: "k".into(),
        score: 0,
        number: 1,
        budgets: None,
        quotas: None,
        keep: None,
        holder_sets: None,
    }
}
