//! Lanes: definitions and their versions, states, depth.

use std::collections::BTreeMap;

use ff_conformance::for_each_host;
use ff_conformance::harness::refusal;
use ff_conformance::work::{HOME, LANE, NAMESPACE, STRICT, plain_lane};
use ff_core::ErrorCode;
use ff_script::Route;
use ff_script::generated::*;

fn in_state(state: LaneState) -> LaneDefinition {
    LaneDefinition { state, ..plain_lane() }
}

for_each_host! {
    async fn a_lanes_state_says_whether_it_accepts_and_whether_it_starts(store) {
        store.install_default_lane().await;
        for (state, accepts, starts) in [
            (LaneState::Active, true, true), (LaneState::Paused, true, false), (LaneState::Draining, false, true), (LaneState::Disabled, false, false),
        ] {
            store.install_lane(NAMESPACE, LANE, in_state(LaneState::Active)).await;
            let waiting = store.submit_kind("mail").await;
            store.install_lane(NAMESPACE, LANE, in_state(state)).await;
            let submitted = store.try_submit(store.submission("mail")).await;
            if accepts {
                assert!(matches!(submitted, Ok(SubmitExecutionReply::Created { .. })), "{state:?}: {submitted:?}");
            } else {
                assert_eq!(refusal(submitted), ErrorCode::LaneDisabled, "{state:?}");
            }
            let claim = store.claim_call("w1", 1);
            let claimed = store.ask(&claim).await.unwrap();
            let grants = IssueGrants { namespace: NAMESPACE.into(), lane: LANE.into(), instance: "w1".into(), kinds: None, capabilities: vec![], max: 1, lease_ids: None, ttl_ms: 100, grant_ids: vec![store.uuid(0)] };
            let granted = store.ask(&grants).await.unwrap();
            if starts {
                assert!(matches!(&claimed, ClaimExecutionsReply::Claimed { tasks, .. } if tasks[0].execution_id == waiting), "{state:?}: {claimed:?}");
            } else {
                assert_eq!(claimed, ClaimExecutionsReply::Paused { state });
                assert_eq!(granted, IssueGrantsReply::Paused { state });
            }
            // Start the next round from an empty lane.
            store.install_lane(NAMESPACE, LANE, in_state(LaneState::Active)).await;
            store.advance(100);
            store.fire_all().await;
            for task in store.claim("w1", 64).await {
                store.complete(&task).await;
            }
        }
    }

    async fn a_paused_lane_keeps_what_runs_running(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        store.install_lane(NAMESPACE, LANE, in_state(LaneState::Paused)).await;
        store.complete(&task).await;
        assert_eq!(store.state(task.execution_id).await, PublicState::Completed);
    }

    async fn max_depth_refuses_what_is_beyond_it(store) {
        store.install_lane(NAMESPACE, LANE, LaneDefinition { max_depth: Some(2), ..plain_lane() }).await;
        let submission = || Submission { lane_depth: Some(1), ..store.submission("mail") };
        store.submit(submission()).await;
        let before = store.dump().await;
        assert_eq!(refusal(store.try_submit(Submission { lane_depth: None, ..submission() }).await), ErrorCode::LaneDepthNeeded);
        for depth in [2, 3] {
            assert_eq!(refusal(store.try_submit(Submission { lane_depth: Some(depth), ..submission() }).await), ErrorCode::LaneFull, "{depth}");
        }
        assert_eq!(store.dump().await, before);
    }

    async fn a_repetition_is_answered_even_when_the_lane_takes_nothing(store) {
        store.install_default_lane().await;
        let first = store.submission("mail");
        let id = store.submit(first.clone()).await;
        for definition in [in_state(LaneState::Disabled), LaneDefinition { max_depth: Some(0), ..plain_lane() }] {
            store.install_lane(NAMESPACE, LANE, definition).await;
            let again = store.try_submit(first.clone()).await;
            assert_eq!(again, Ok(SubmitExecutionReply::Duplicate { execution_id: id, state: Some(PublicState::Waiting) }));
        }
    }

    async fn depth_counts_what_waits_and_not_what_runs_or_ended(store) {
        store.install_default_lane().await;
        let depth = || async {
            let LaneDepthReply::Depth { depth } = store.ask(&LaneDepth { namespace: NAMESPACE.into(), lane: LANE.into() }).await.unwrap();
            depth
        };
        assert_eq!(depth().await, 0);
        let task = store.start("running", "w1").await;
        assert_eq!(depth().await, 0);
        store.submit_kind("waiting").await;
        store.submit(Submission { delay_ms: Some(10), ..store.submission("delayed") }).await;
        store.submit(Submission { requires: Some(vec!["gpu".into()]), ..store.submission("gpu") }).await;
        let held = store.submit_kind("held").await;
        store.ask(&HoldExecution::new("ann".into(), held)).await.unwrap();
        assert_eq!(depth().await, 4);
        store.complete(&task).await;
        assert_eq!(depth().await, 4);
    }

    async fn a_definition_is_created_with_defaults_and_changed_field_by_field(store) {
        let get = GetLane { namespace: NAMESPACE.into(), lane: "mail".into() };
        assert_eq!(refusal(store.call(Route::Fleet, &get).await), ErrorCode::LaneNotFound);
        let define = DefineLane::new("ann".into(), "mail".into(), NAMESPACE.into());
        let DefineLaneReply::Defined { entry, changed } = store.call(Route::Fleet, &define).await.unwrap();
        assert_eq!((entry.version, changed), (1, true));
        assert_eq!(entry.definition, LaneDefinition::new(LaneState::Active, STRICT, Fairness::Fifo, 1));

        let retry = Retry { max_attempts: Some(4), backoff: Some(Backoff { delay_ms: Some(9), ..Backoff::new(BackoffType::Fixed) }), jitter: Some(Jitter::None), retry_on: Some(vec!["a".into()]), never_on: None };
        let whole = DefineLane {
            state: Some(LaneState::Paused), priority_weight: Some(5), fairness: Some(Fairness::Fair), fairness_weights: Some(BTreeMap::from([("t".into(), 7)])),
            max_depth: Some(100), max_active: Some(8), weight: Some(3), retry: Some(retry.clone()), attempt_timeout_ms: Some(1), retention_ms: Some(2), lease_ttl_ms: Some(1_000), ..define.clone()
        };
        let DefineLaneReply::Defined { entry, changed } = store.call(Route::Fleet, &whole).await.unwrap();
        let expected = LaneDefinition {
            state: LaneState::Paused, priority_weight: 5, fairness: Fairness::Fair, fairness_weights: Some(BTreeMap::from([("t".into(), 7)])), max_depth: Some(100), weight: 3,
            retry: Some(retry), attempt_timeout_ms: Some(1), retention_ms: Some(2), lease_ttl_ms: Some(1_000), max_active: Some(8),
        };
        assert_eq!((entry.version, changed, &entry.definition), (2, true, &expected));

        let DefineLaneReply::Defined { entry, changed } = store.call(Route::Fleet, &whole).await.unwrap();
        assert_eq!((entry.version, changed), (2, false), "saying the same again changes nothing");
        let DefineLaneReply::Defined { entry, .. } = store.call(Route::Fleet, &DefineLane { clear_max_depth: Some(true), ..define.clone() }).await.unwrap();
        assert_eq!((entry.version, &entry.definition), (3, &LaneDefinition { max_depth: None, ..expected.clone() }));
        let DefineLaneReply::Defined { entry, .. } = store.call(Route::Fleet, &DefineLane { clear_max_active: Some(true), ..define }).await.unwrap();
        assert_eq!((entry.version, &entry.definition), (4, &LaneDefinition { max_depth: None, max_active: None, ..expected }));
        assert_eq!(store.call(Route::Fleet, &get).await, Ok(GetLaneReply::Lane { entry }));
    }

    async fn a_partition_keeps_the_newest_version(store) {
        let entry = |version, state| LaneEntry { namespace: NAMESPACE.into(), lane: LANE.into(), version, definition: in_state(state) };
        assert_eq!(store.ask(&InstallLane { entry: entry(5, LaneState::Active) }).await, Ok(InstallLaneReply::Installed));
        for version in [4, 5] {
            assert_eq!(store.ask(&InstallLane { entry: entry(version, LaneState::Disabled) }).await, Ok(InstallLaneReply::Newer { version: 5 }));
        }
        assert_eq!(store.ask(&InstallLane { entry: entry(6, LaneState::Paused) }).await, Ok(InstallLaneReply::Installed));
        let GetLaneReply::Lane { entry: installed } = store.ask(&GetLane { namespace: NAMESPACE.into(), lane: LANE.into() }).await.unwrap();
        assert_eq!(installed, entry(6, LaneState::Paused));
    }

    async fn the_fleets_lanes_are_listed_in_pages(store) {
        for number in 0..5 {
            let define = DefineLane::new("ann".into(), format!("lane{number}"), NAMESPACE.into());
            store.call(Route::Fleet, &define).await.unwrap();
            store.advance(1);
        }
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            let ListLanesReply::Lanes { entries, more } = store.call(Route::Fleet, &ListLanes { offset, limit: 2 }).await.unwrap();
            offset += entries.len() as i64;
            names.extend(entries.into_iter().map(|entry| entry.lane));
            if !more {
                break;
            }
        }
        assert_eq!(names, ["lane0", "lane1", "lane2", "lane3", "lane4"]);
    }

    async fn the_number_of_partitions_is_fixed_once(store) {
        let defaults = PartitionDefaults { executions: 99, budgets: 99, quotas: 99, schedules: 99 };
        let FixPartitionsReply::Partitions { executions, budgets, quotas, schedules } = store.call(Route::Config, &FixPartitions::new(defaults.clone())).await.unwrap();
        assert_eq!((executions, budgets, quotas, schedules), (4, 2, 2, 2), "defaults do not matter later");
        let same = FixPartitions { executions: Some(4), ..FixPartitions::new(defaults.clone()) };
        assert!(store.call(Route::Config, &same).await.is_ok());
        let other = FixPartitions { quotas: Some(3), ..FixPartitions::new(defaults) };
        assert_eq!(refusal(store.call(Route::Config, &other).await), ErrorCode::PartitionMismatch);
    }

    async fn a_store_that_holds_anything_takes_no_import(store) {
        let defaults = PartitionDefaults { executions: 9, budgets: 9, quotas: 9, schedules: 9 };
        let begin = FixPartitions { importing: Some(true), ..FixPartitions::new(defaults.clone()) };
        assert_eq!(refusal(store.call(Route::Config, &begin).await), ErrorCode::InvalidArgument);
        // The end of an import may be recorded twice.
        let end = FixPartitions { importing: Some(false), ..FixPartitions::new(defaults) };
        let FixPartitionsReply::Partitions { executions, .. } = store.call(Route::Config, &end).await.unwrap();
        assert_eq!(executions, 4);
    }

    async fn work_waits_for_a_paused_lane_to_go_on(store) {
        store.install_lane(NAMESPACE, LANE, in_state(LaneState::Paused)).await;
        let id = store.submit_kind("mail").await;
        assert_eq!(store.ask(&store.claim_call("w1", 1)).await, Ok(ClaimExecutionsReply::Paused { state: LaneState::Paused }));
        store.install_lane(NAMESPACE, LANE, in_state(LaneState::Active)).await;
        assert_eq!(store.claim_with(HOME, &store.claim_call("w1", 1)).await[0].execution_id, id);
    }
}
