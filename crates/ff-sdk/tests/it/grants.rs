//! Grants: reserved for one worker, consumed by it, and left alone when it has no room.

use std::time::Duration;

use ff_core::types::{LaneId, WorkerInstanceId};
use ff_script::generated::DefineLane;
use ff_sdk::backend::Transport;
use ff_sdk::task::{Signal, SuspendOutcome, TimeoutBehavior};
use ff_sdk::{QuotaSpec, SdkError};

use crate::world::{LANE, World, claim, until};

for_each_transport! {
    async fn a_limited_lane_runs_no_more_at_once(world: &World) {
        let define = DefineLane::new("test".to_owned(), LANE.to_owned(), "default".to_owned());
        world.operations.define_lane(DefineLane { max_active: Some(2), ..define }).await.unwrap();
        let lane = LaneId::new(LANE);
        for _ in 0..4 {
            world.submit("k", b"{}").await;
        }
        let (first, second, third) = (world.worker("w-1").await, world.worker("w-2").await, world.worker("w-3").await);
        let running = [claim(&first).await, claim(&second).await];
        assert!(third.claim_many(1, Duration::from_millis(300)).await.unwrap().is_empty());
        assert!(world.admin.grant_claim(&third, &lane, 5_000).await.unwrap().is_none(), "a grant needs a slot too");
        for task in running {
            task.complete(None).await.unwrap();
        }
        // Only now does the third get one: by a long poll, then by a grant.
        let task = claim(&third).await;
        task.complete(None).await.unwrap();
        let mut granted = None;
        while granted.is_none() {
            granted = world.admin.grant_claim(&first, &lane, 30_000).await.unwrap();
        }
        let task = first.claim_from_grant(&lane, granted.as_ref().unwrap()).await.unwrap();
        task.complete(None).await.unwrap();
    }

    async fn a_grant_becomes_a_task_and_waits_while_there_is_no_room(world: &World) {
        let worker = world.worker("w-1").await;
        let lane = LaneId::new(LANE);
        assert!(world.admin.grant_claim(&worker, &lane, 30_000).await.unwrap().is_none());
        let busy = world.submit("k", b"{}").await;
        let task = claim(&worker).await;
        assert_eq!(task.execution_id(), &busy);
        let id = world.submit("k", b"{}").await;
        let grant = world.admin.grant_claim(&worker, &lane, 30_000).await.unwrap().expect("one waits");
        assert_eq!(grant.execution_id, id);

        assert!(matches!(worker.claim_from_grant(&lane, &grant).await, Err(SdkError::WorkerAtCapacity)));
        task.complete(None).await.unwrap();
        let granted = worker.claim_from_grant(lane.clone(), grant.clone()).await.unwrap();
        assert_eq!(granted.execution_id(), &id);
        granted.complete(None).await.unwrap();

        let error = worker.claim_from_grant(&lane, &grant).await.unwrap_err();
        assert_eq!(error.engine().map(|error| error.code()), Some("grant_not_found"));
        let error = worker.claim_from_grant(LaneId::new("other"), &grant).await.unwrap_err();
        assert!(matches!(error, SdkError::Config { field: Some(field), .. } if field == "lane"));
    }

    async fn a_worker_claims_through_the_servers_admission(world: &World) {
        let worker = world.worker("w-1").await;
        let lane = LaneId::new(LANE);
        assert!(worker.claim_via_server(&world.admin, &lane, 5_000).await.unwrap().is_none());
        let id = world.submit("k", b"{}").await;
        let mut task = None;
        for _ in 0..100 {
            task = worker.claim_via_server(&world.admin, &lane, 5_000).await.unwrap();
            if task.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let task = task.expect("it was admitted");
        assert_eq!(task.execution_id(), &id);
        assert!(worker.claim_via_server(&world.admin, &lane, 5_000).await.unwrap().is_none(), "no permit");
        task.complete(None).await.unwrap();
    }

    async fn suspended_work_keeps_its_slot_where_its_quota_says_so_however_it_was_claimed(world: &World) {
        let worker = world.worker("w-1").await;
        let lane = LaneId::new(LANE);
        for hold in [true, false] {
            for granted in [true, false] {
                let mut spec = QuotaSpec::new("default").concurrency(1);
                spec.fields.hold_while_suspended = Some(hold);
                let quota = world.admin.create_quota(spec).await.unwrap().quota_id;
                let held = async || world.admin.describe_quota(&quota, Some("k")).await.unwrap().key("k").unwrap().held;
                world.admin.submit(world.new_execution("k").quota(&quota, "k")).await.unwrap();
                let task = if granted {
                    let mut task = None;
                    while task.is_none() {
                        task = worker.claim_via_server(&world.admin, &lane, 5_000).await.unwrap();
                    }
                    task.unwrap()
                } else {
                    claim(&worker).await
                };
                let id = *task.execution_id();
                let outcome = task.suspend("waiting_for_signal", &[], None, TimeoutBehavior::Fail).await.unwrap();
                let SuspendOutcome::Suspended { waitpoint_id, waitpoint_token, .. } = outcome else { panic!("{outcome:?}") };
                if hold {
                    // Whoever asks meanwhile is refused: the slot is taken.
                    let other = world.admin.submit(world.new_execution("k").quota(&quota, "k")).await.unwrap();
                    assert!(worker.claim_next().await.unwrap().is_none());
                    assert_eq!(held().await, 1, "by a grant: {granted}");
                    world.admin.cancel(&other, "not needed", None).await.unwrap();
                } else {
                    until("the slot is given back", async || held().await == 0).await;
                }
                let signal = Signal {
                    signal_name: "go".to_owned(),
                    signal_category: String::new(),
                    payload: None,
                    source_type: String::new(),
                    source_identity: String::new(),
                    idempotency_key: None,
                    waitpoint_token,
                };
                worker.deliver_signal(&id, &waitpoint_id, signal).await.unwrap();
                let task = claim(&worker).await;
                assert_eq!((task.execution_id(), held().await), (&id, 1));
                task.complete(None).await.unwrap();
                until("nothing holds the slot", async || held().await == 0).await;
            }
        }
    }

    async fn an_interrupted_execution_is_handed_to_a_chosen_worker(world: &World) {
        let first = world.worker("w-1").await;
        let id = world.submit("k", b"{}").await;
        let task = claim(&first).await;
        world.admin.revoke_lease(&id, false).await.unwrap();
        drop(task);
        let chosen = world.worker("w-2").await;
        let grant = world.admin.grant_reclaim(&id, &WorkerInstanceId::new("w-2"), 30_000).await.unwrap();
        let task = if world.transport == Transport::Http {
            // The server keeps the grant for the worker and leases it at its next claim.
            claim(&chosen).await
        } else {
            chosen.claim_from_reclaim_grant(&grant).await.unwrap()
        };
        assert_eq!(task.execution_id(), &id);
        assert_eq!(world.describe(&id).await.attempts[1].kind, "reclaim");
        task.complete(None).await.unwrap();
    }
}
