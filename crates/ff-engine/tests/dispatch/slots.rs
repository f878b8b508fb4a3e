//! A lane with `max_active`: never more at once, whoever claims and whatever fails, and no slot is lost or slept through.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ff_core::state::PublicState;
use ff_core::types::ExecutionId;
use ff_engine::dispatch::Dispatcher;
use ff_engine::operations::set_of_lane;
use ff_engine::{Fsck, NewExecution, Operations, fence_of};
use ff_script::Route;
use ff_script::generated::{
    AdmitHolders, Candidate, ConfirmHolders, DefineLane, GetLane, GetLaneReply, Holder, InstallLane, RegisterWorker,
    ReleaseHolders,
};
use uuid::Uuid;

use crate::flaky::Flaky;
use crate::kit::*;
use crate::on_both_hosts;
use ff_testkit::Tasks;

fn set() -> String {
    set_of_lane("default", LANE)
}

async fn free(kit: &Kit) -> i64 {
    kit.operations().room(&set()).await.unwrap().free()
}

/// What a worker does with its n-th task.
async fn work_off(
    operations: &Operations,
    task: &ff_script::generated::Task,
    n: usize,
) -> Result<bool, ff_script::Error> {
    let (id, fence) = (task.execution_id, fence_of(task));
    tokio::time::sleep(ms(n as u64 % 7)).await;
    match n % 11 {
        3 => operations.yield_back(id, fence).await.map(|_| false),
        7 => operations.client().delay(id, fence, 0).await.map(|_| false),
        _ => operations.client().complete(id, fence, None).await.map(|_| true),
    }
}

/// Workers of these dispatchers go on until everything has ended; answers how many tasks were taken.
async fn work_all(kit: &Arc<Kit>, dispatchers: &[Dispatcher], ids: &[ExecutionId], lease_ms: i64) -> usize {
    let (left, taken) = (Arc::new(AtomicUsize::new(ids.len())), Arc::new(AtomicUsize::new(0)));
    let mut workers = tokio::task::JoinSet::new();
    for (d, dispatcher) in dispatchers.iter().enumerate() {
        for w in 0..4_u16 {
            let (kit, dispatcher) = (Arc::clone(kit), dispatcher.clone());
            let (left, taken) = (Arc::clone(&left), Arc::clone(&taken));
            let capabilities: &[&str] = if w % 2 == 0 { &["x"] } else { &[] };
            let who = worker(&format!("w-{d}-{w}"), capabilities, lease_ms);
            // Work nobody registered could do would be set aside.
            let register = RegisterWorker::new(
                who.capabilities.clone(),
                who.instance.clone(),
                who.lanes.clone(),
                who.namespace.clone(),
                4,
                who.worker_id.clone(),
            );
            kit.operations().register_worker(register).await.unwrap();
            workers.spawn(async move {
                while left.load(Ordering::SeqCst) > 0 {
                    let Ok(tasks) = dispatcher.claim(&who, 1 + w, ms(300), Uuid::now_v7()).await else { continue };
                    for task in tasks {
                        let n = taken.fetch_add(1, Ordering::SeqCst);
                        // A task whose lease was lost meanwhile is someone else's.
                        if let Ok(true) = work_off(kit.operations(), &task, n).await {
                            left.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                }
            });
        }
    }
    if tokio::time::timeout(crate::kit::PATIENCE, async { while workers.join_next().await.is_some() {} }).await.is_err()
    {
        panic!("work is left: {}", left_over(kit, ids).await);
    }
    for id in ids {
        assert_eq!(kit.operations().describe(*id).await.unwrap().state, PublicState::Completed);
    }
    taken.load(Ordering::SeqCst)
}

/// What a run that does not end looks like.
async fn left_over(kit: &Kit, ids: &[ExecutionId]) -> String {
    let mut lines = vec![format!("{:?}", kit.operations().room(&set()).await)];
    for id in ids {
        let e = kit.operations().describe(*id).await.unwrap();
        if e.outcome.is_none() {
            let until = e.lease.map(|lease| lease.expires_at);
            lines.push(format!(
                "{id} {} {:?} granted {:?} leased {until:?} requires {:?}",
                e.state, e.blocking_reason, e.granted_until, e.requires
            ));
        }
    }
    lines.join("\n")
}

async fn submit_many(kit: &Kit, count: usize) -> Vec<ExecutionId> {
    let mut ids = Vec::new();
    for n in 0..count {
        let mut new = NewExecution::new("default", LANE, "mixed");
        new.fields.requires = (n % 3 == 0).then(|| vec!["x".to_owned()]);
        new.fields.priority = Some(n as i64 % 4);
        new.fields.delay_ms = (n % 5 == 0).then_some(n as i64);
        new.fields.max_reclaims = Some(1_000);
        ids.push(kit.submit_new(new).await);
    }
    ids
}

on_both_hosts! {
    async fn several_dispatchers_never_exceed_the_limit_and_finish_everything(kit) {
        kit.limit(Some(3)).await;
        let others = [kit.another().await, kit.another().await];
        let dispatchers = [kit.dispatcher(), dispatcher_of(&others[0]), dispatcher_of(&others[1])];
        let ids = submit_many(&kit, 90).await;
        let started = Instant::now();
        let taken = work_all(&kit, &dispatchers, &ids, 30_000).await;
        let most = kit.most_at_once().await;
        eprintln!("{taken} tasks in {:?}, {most} at once", started.elapsed());
        assert_eq!(most, 3);
        eventually("every slot is free", async || (free(&kit).await == 3).then_some(())).await;
        for other in others {
            other.stop().await;
        }
    }

    async fn failing_calls_neither_exceed_the_limit_nor_lose_a_slot(kit) {
        kit.limit(Some(3)).await;
        let flaky = || Arc::new(Flaky { inner: kit.host(), one_in: 40 });
        let dispatchers = [kit.dispatcher_over(flaky()), kit.dispatcher_over(flaky())];
        let ids = submit_many(&kit, 40).await;
        let started = Instant::now();
        let taken = work_all(&kit, &dispatchers, &ids, 1_000).await;
        let most = kit.most_at_once().await;
        eprintln!("{taken} tasks in {:?}, {most} at once", started.elapsed());
        assert!(most <= 3, "{most} at once");
        eventually("every slot is free", async || (free(&kit).await == 3).then_some(())).await;
    }

    async fn an_admission_that_is_not_used_gives_its_slot_back(kit) {
        kit.limit(Some(1)).await;
        let first = kit.submit("first").await;
        let second = kit.submit("second").await;
        let dispatcher = kit.dispatcher();
        let grants = dispatcher.grant(&worker("gone", &[], 30_000), 5, 2_000).await.unwrap();
        assert_eq!(grants.len(), 1, "one slot, one grant");
        assert!([first, second].contains(&grants[0].execution_id));
        assert_eq!(free(&kit).await, 0);
        let tasks = claim(&dispatcher, &worker("w", &[], 30_000), 5, ms(10_000)).await;
        assert_eq!(tasks.len(), 1);
        kit.complete(&tasks[0]).await;
        let tasks = claim(&dispatcher, &worker("w", &[], 30_000), 5, ms(5_000)).await;
        kit.complete(&tasks[0]).await;
        assert!(kit.most_at_once().await <= 1);
    }

    async fn an_admission_nobody_knows_of_gives_its_slot_back(kit) {
        kit.limit(Some(1)).await;
        let client = kit.operations().client();
        // It arrived after its grant had ended, or its server died before it saw the answer.
        let expires_at = ff_core::types::TimestampMs::now().as_millis() + 2_000;
        let ghost = Candidate { execution_id: ExecutionId::mint(), holder_id: Uuid::now_v7(), expires_at };
        let call = AdmitHolders { counted: None, holders: vec![ghost], set: set() };
        client.call(client.route_of_holder_set(&set()), &call).await.unwrap();
        kit.submit("waits").await;
        let dispatcher = kit.dispatcher();
        let tasks = claim(&dispatcher, &worker("w", &[], 30_000), 1, ms(10_000)).await;
        assert_eq!(tasks.len(), 1);
        kit.complete(&tasks[0]).await;
    }

    async fn a_crashed_workers_slot_returns_when_its_lease_has_ended(kit) {
        kit.limit(Some(1)).await;
        kit.submit("first").await;
        let dispatcher = kit.dispatcher();
        let lost = claim(&dispatcher, &worker("crashed", &[], 1_000), 1, ms(1_000)).await;
        assert_eq!(lost.len(), 1);
        let tasks = claim(&dispatcher, &worker("w", &[], 30_000), 1, ms(10_000)).await;
        assert_eq!(tasks.len(), 1);
        kit.complete(&tasks[0]).await;
        assert!(kit.most_at_once().await <= 1);
    }

    async fn a_running_holder_outlives_the_deadline_of_its_grant(kit) {
        kit.limit(Some(1)).await;
        kit.submit("long").await;
        let dispatcher = kit.dispatcher();
        let task = claim(&dispatcher, &worker("w", &[], 60_000), 1, ms(1_000)).await.remove(0);
        // Grants of a claim last five seconds.
        let client = kit.operations().client().clone();
        eventually("its deadline is gone", async || {
            let call = ff_script::generated::ListHolders { limit: 9, offset: 0, set: set() };
            let ff_script::generated::ListHoldersReply::Holders { items, .. } =
                client.call(client.route_of_holder_set(&set()), &call).await.unwrap();
            assert_eq!(items.len(), 1);
            items[0].expires_at.is_none().then_some(())
        })
        .await;
        kit.submit("waits").await;
        assert_eq!(claim(&dispatcher, &worker("w", &[], 60_000), 1, ms(300)).await, []);
        kit.complete(&task).await;
        let tasks = claim(&dispatcher, &worker("w", &[], 60_000), 1, ms(1_000)).await;
        kit.complete(&tasks[0]).await;
    }

    async fn raising_and_removing_the_limit_wakes_at_once_and_lowering_lets_work_finish(kit) {
        kit.limit(Some(1)).await;
        for _ in 0..8 {
            kit.submit("mail").await;
        }
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 30_000);
        let mut running = claim(&dispatcher, &who, 9, ms(1_000)).await;
        assert_eq!(running.len(), 1);
        assert_eq!(claim(&dispatcher, &who, 9, ms(200)).await, []);

        let (waiting, waiter) = (dispatcher.clone(), who.clone());
        let waits = tokio::spawn(async move { claim(&waiting, &waiter, 9, ms(10_000)).await });
        tokio::time::sleep(ms(100)).await;
        kit.limit(Some(2)).await;
        running.extend(waits.await.unwrap());
        assert_eq!(running.len(), 2);

        kit.limit(Some(1)).await;
        kit.complete(&running.remove(0)).await;
        assert_eq!(claim(&dispatcher, &who, 9, ms(300)).await, [], "one still runs");
        kit.complete(&running.remove(0)).await;
        running.extend(claim(&dispatcher, &who, 9, ms(2_000)).await);
        assert_eq!(running.len(), 1);

        let (waiting, waiter) = (dispatcher.clone(), who.clone());
        let waits = tokio::spawn(async move { claim(&waiting, &waiter, 1, ms(10_000)).await });
        tokio::time::sleep(ms(100)).await;
        kit.limit(None).await;
        running.extend(waits.await.unwrap());
        loop {
            let more = claim(&dispatcher, &who, 9, ms(200)).await;
            if more.is_empty() {
                break;
            }
            running.extend(more);
        }
        assert_eq!(running.len(), 6, "without a limit all of them run");
        for task in running {
            kit.complete(&task).await;
        }
    }

    async fn what_runs_when_a_lane_is_limited_counts(kit) {
        for _ in 0..4 {
            kit.submit("mail").await;
        }
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 30_000);
        let mut running = Vec::new();
        while running.len() < 2 {
            running.extend(claim(&dispatcher, &who, 1, ms(1_000)).await);
        }
        kit.limit(Some(2)).await;
        assert_eq!(free(&kit).await, 0);
        assert_eq!(claim(&dispatcher, &who, 9, ms(300)).await, []);
        while let Some(task) = running.pop() {
            kit.complete(&task).await;
            running.extend(claim(&dispatcher, &who, 9, ms(1_000)).await);
        }
        assert!(kit.most_at_once().await <= 2);
    }

    async fn a_limit_nobody_finished_setting_is_finished_by_the_first_claim(kit) {
        let client = kit.operations().client();
        let define = DefineLane::new("test".to_owned(), LANE.to_owned(), "default".to_owned());
        client.call(Route::Fleet, &DefineLane { max_active: Some(1), ..define }).await.unwrap();
        let get = GetLane { namespace: "default".to_owned(), lane: LANE.to_owned() };
        let GetLaneReply::Lane { entry } = client.call(Route::Fleet, &get).await.unwrap();
        for route in client.execution_routes() {
            client.call(route, &InstallLane { entry: entry.clone() }).await.unwrap();
        }
        for _ in 0..2 {
            kit.submit("mail").await;
        }
        let dispatcher = kit.dispatcher();
        let who = worker("w", &[], 30_000);
        for _ in 0..2 {
            let tasks = claim(&dispatcher, &who, 9, ms(2_000)).await;
            assert_eq!(tasks.len(), 1);
            assert_eq!(claim(&dispatcher, &who, 9, ms(100)).await, []);
            kit.complete(&tasks[0]).await;
        }
    }

    async fn waiting_for_a_slot_costs_nothing(kit) {
        kit.limit(Some(1)).await;
        for _ in 0..20 {
            kit.submit("mail").await;
        }
        let dispatcher = kit.dispatcher();
        let task = claim(&dispatcher, &worker("w", &[], 60_000), 1, ms(1_000)).await.remove(0);
        let waits: Vec<_> = (0..8)
            .map(|n| {
                let (dispatcher, who) = (dispatcher.clone(), worker(&format!("w-{n}"), &[], 60_000));
                tokio::spawn(async move { claim(&dispatcher, &who, 1, ms(4_000)).await })
            })
            .collect();
        tokio::time::sleep(ms(500)).await;
        let before = kit.host().store_commands().await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let commands = kit.host().store_commands().await.unwrap() - before;
        assert!(commands < 40, "{commands} commands in two seconds");
        kit.complete(&task).await;
        let mut started = 0;
        for wait in waits {
            for task in wait.await.unwrap() {
                started += 1;
                kit.complete(&task).await;
            }
        }
        assert!(started >= 1);
        assert!(kit.most_at_once().await <= 1);
    }

    async fn fsck_compares_slots_with_what_runs_and_repairs_them(kit) {
        kit.limit(Some(5)).await;
        kit.submit("uncounted").await;
        let dispatcher = kit.dispatcher();
        let task = claim(&dispatcher, &worker("w", &[], 60_000), 1, ms(1_000)).await.remove(0);
        let client = kit.operations().client().clone();
        let route = client.route_of_holder_set(&set());
        let call = ff_script::generated::ListHolders { limit: 9, offset: 0, set: set() };
        let ff_script::generated::ListHoldersReply::Holders { items, now, .. } = client.call(route, &call).await.unwrap();
        assert!(Fsck::run(&client, false).await.unwrap().is_clean());

        client.call(route, &ReleaseHolders { holders: items, set: set() }).await.unwrap();
        let ghost = Candidate { execution_id: ExecutionId::mint(), holder_id: Uuid::now_v7(), expires_at: now + 60_000 };
        client.call(route, &AdmitHolders { counted: None, holders: vec![ghost.clone()], set: set() }).await.unwrap();
        let forever = Holder { execution_id: ghost.execution_id, holder_id: ghost.holder_id, expires_at: None };
        client.call(route, &ConfirmHolders { holders: vec![forever], set: set() }).await.unwrap();

        let mut problems: Vec<String> =
            Fsck::run(&client, true).await.unwrap().findings.into_iter().map(|finding| finding.problem).collect();
        problems.sort();
        let mut expected = [
            format!("{} holds a slot and does not run", ghost.execution_id),
            format!("{} runs and is not counted", task.execution_id),
        ];
        expected.sort();
        assert_eq!(problems, expected);
        assert!(Fsck::run(&client, false).await.unwrap().is_clean());
        assert_eq!(free(&kit).await, 4);
        kit.complete(&task).await;
        eventually("every slot is free", async || (free(&kit).await == 5).then_some(())).await;
    }
}
