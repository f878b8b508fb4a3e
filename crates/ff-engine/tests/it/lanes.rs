//! Lanes: made on first use, changed everywhere before the answer, bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use ff_core::error::{ContentionKind, EngineError};
use ff_core::error_code::ErrorCode;
use ff_engine::{Claimant, NewExecution};
use ff_script::generated::{DefineLane, GetLane, GetLaneReply, InstallLane, InstallLaneReply, LaneState};
use ff_script::{Error, Wake, WakeUp};
use uuid::Uuid;

use crate::kit::*;
use crate::on_both_hosts;

fn at(lane: &str) -> Claimant {
    Claimant { lane: lane.to_owned(), ..worker("w", 30_000) }
}

fn define(lane: &str) -> DefineLane {
    DefineLane::new("ann".to_owned(), lane.to_owned(), "default".to_owned())
}

on_both_hosts! {
    async fn a_lane_never_seen_is_made_on_first_use(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        assert_eq!(refusal(operations.lane("default", "fresh").await), ErrorCode::LaneNotFound);
        let many = (0..20).map(|_| operations.submit(NewExecution::new("default", "fresh", "first")));
        for answer in futures::future::join_all(many).await {
            answer.expect("each is accepted");
        }
        let entry = operations.lane("default", "fresh").await.expect("the lane exists");
        assert_eq!((entry.version, entry.definition.state), (1, LaneState::Active));
        assert_eq!(operations.lanes().await.unwrap().len(), 1);
        assert_eq!(claim(operations, &at("fresh"), 64).await.len(), 20);
        engine.stop().await;
    }

    async fn nothing_is_claimed_once_a_pause_is_answered_and_resuming_wakes(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        for _ in 0..600 {
            submit(operations, work("busy")).await;
        }
        let (stop, claimed_by) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let claimers: Vec<_> = (0..4)
            .map(|n| {
                let (operations, stop, claimed_by) = (operations.clone(), Arc::clone(&stop), Arc::clone(&claimed_by));
                tokio::spawn(async move {
                    let mut last_success = None;
                    while !stop.load(Ordering::Relaxed) {
                        for route in operations.client().execution_routes() {
                            let begun = Instant::now();
                            let claimed = operations.claim(route, &worker(&format!("w{n}"), 60_000), 1, Uuid::now_v7()).await;
                            if !claimed.expect("a claim is answered").tasks.is_empty() {
                                claimed_by.fetch_add(1, Ordering::Relaxed);
                                last_success = last_success.max(Some(begun));
                            }
                        }
                    }
                    last_success
                })
            })
            .collect();
        eventually("some was claimed", async || (claimed_by.load(Ordering::Relaxed) >= 20).then_some(())).await;
        operations.set_lane_state("default", LANE, LaneState::Paused, "ann").await.expect("it is paused");
        let paused = Instant::now();
        tokio::time::sleep(ms(300)).await;
        stop.store(true, Ordering::Relaxed);
        for claimer in claimers {
            let last = claimer.await.unwrap();
            assert!(last.is_none_or(|last| last < paused), "a claim begun after the pause was answered got work");
        }
        let waiting = submit(operations, work("accepted while paused")).await;
        assert_eq!(claim(operations, &worker("w", 30_000), 64).await, []);

        let mut watch = kit.host().watch();
        operations.set_lane_state("default", LANE, LaneState::Active, "ann").await.expect("it is resumed");
        let woken = async {
            loop {
                if let Ok(WakeUp::Message { route, payload }) = watch.recv().await
                    && route == operations.client().route_of(&waiting)
                    && Wake::read_all(&payload).unwrap().iter().any(|wake| matches!(wake, Wake::Ready { .. }))
                {
                    return;
                }
            }
        };
        tokio::time::timeout(crate::kit::PATIENCE, woken).await.expect("the partition says that there is work");
        assert!(!claim(operations, &worker("w", 30_000), 64).await.is_empty());
        engine.stop().await;
    }

    async fn a_full_lane_says_how_full(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        operations.define_lane(DefineLane { max_depth: Some(10), ..define("narrow") }).await.unwrap();
        let mut accepted = 0;
        let error = eventually("the lane fills up", async || {
            match operations.submit(NewExecution::new("default", "narrow", "drop")).await {
                Ok(_) => {
                    accepted += 1;
                    None
                }
                Err(error) => Some(error),
            }
        })
        .await;
        let Error::Engine(EngineError::Contention(ContentionKind::Refused(refused))) = &error else { panic!("{error:?}") };
        assert_eq!(refused.code, ErrorCode::LaneFull);
        assert_eq!(refused.detail.get("max_depth"), Some("10"));
        let depth: i64 = refused.detail.get("depth").unwrap().parse().unwrap();
        assert!(depth >= 10 && depth <= accepted, "{depth} of {accepted}");
        assert!(error.is_retryable());
        let batch = operations.submit_many(vec![NewExecution::new("default", "narrow", "drop")]).await.unwrap();
        assert_eq!(refusal(batch.into_iter().next().unwrap()), ErrorCode::LaneFull);

        // Room comes back when work leaves; the depth is at most a second old.
        let tasks = claim(operations, &at("narrow"), 64).await;
        assert_eq!(i64::try_from(tasks.len()).unwrap(), accepted);
        eventually("there is room again", async || {
            operations.submit(NewExecution::new("default", "narrow", "drop")).await.ok()
        })
        .await;
        operations.define_lane(DefineLane { clear_max_depth: Some(true), ..define("narrow") }).await.unwrap();
        for _ in 0..20 {
            submit(operations, NewExecution::new("default", "narrow", "drop")).await;
        }
        engine.stop().await;
    }

    async fn every_partition_has_the_latest_definition_when_it_is_answered(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let first = operations.define_lane(DefineLane { weight: Some(3), ..define("defined") }).await.unwrap();
        let same = operations.define_lane(DefineLane { weight: Some(3), ..define("defined") }).await.unwrap();
        let second = operations.define_lane(DefineLane { retention_ms: Some(5), ..define("defined") }).await.unwrap();
        assert_eq!((first.version, same.version, second.version), (1, 1, 2));
        assert_eq!(second.definition.weight, 3, "what is not named stays");
        for route in operations.client().execution_routes() {
            let get = GetLane { namespace: "default".to_owned(), lane: "defined".to_owned() };
            let GetLaneReply::Lane { entry } = operations.client().call(route, &get).await.unwrap();
            assert_eq!(entry, second, "{route}");
            let older = operations.client().call(route, &InstallLane { entry: first.clone() }).await.unwrap();
            assert_eq!(older, InstallLaneReply::Newer { version: 2 });
        }
        engine.stop().await;
    }
}
