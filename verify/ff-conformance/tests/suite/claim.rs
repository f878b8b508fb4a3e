//! Which work a claim takes: priority, age, requirements, preferences, fairness; and repeated requests.

use std::collections::BTreeMap;

use ff_conformance::work::{Fenced, HOME, LANE, NAMESPACE, plain_lane};
use ff_conformance::{Store, for_each_host};
use ff_core::types::ExecutionId;
use ff_script::generated::*;

async fn claimed_kinds(store: &Store, worker: &str, capabilities: &[&str], max: i64) -> Vec<String> {
    store.claim_as(worker, capabilities, max).await.into_iter().map(|task| task.kind).collect()
}

fn requiring(store: &Store, kind: &str, tokens: &[&str]) -> Submission {
    Submission { requires: Some(tokens.iter().map(|&t| t.to_owned()).collect()), ..store.submission(kind) }
}

fn preferring(store: &Store, kind: &str, tokens: &[&str]) -> Submission {
    Submission { prefers: Some(tokens.iter().map(|&t| t.to_owned()).collect()), ..store.submission(kind) }
}

async fn keyed(store: &Store, kind: &str, key: &str) -> ExecutionId {
    store.submit(Submission { fairness_key: Some(key.into()), ..store.submission(kind) }).await
}

for_each_host! {
    async fn a_strict_lane_goes_by_priority_then_age(store) {
        store.install_default_lane().await;
        for (kind, priority) in [("old-low", 0), ("old-high", 5), ("top", 9_000), ("new-high", 5), ("new-low", 0)] {
            store.submit(Submission { priority: Some(priority), ..store.submission(kind) }).await;
            store.advance(1_000);
        }
        assert_eq!(claimed_kinds(&store, "w1", &[], 10).await, ["top", "old-high", "new-high", "old-low", "new-low"]);
    }

    async fn in_an_aging_lane_a_point_of_priority_is_worth_a_span_of_age(store) {
        store.install_lane(NAMESPACE, LANE, LaneDefinition { priority_weight: 1_000, ..plain_lane() }).await;
        for (kind, at, priority) in [("old", 0, 0), ("urgent", 3_001, 3), ("more-urgent", 2_999, 3)] {
            store.go_to(ff_conformance::harness::START_MS + at);
            store.submit(Submission { priority: Some(priority), ..store.submission(kind) }).await;
        }
        assert_eq!(claimed_kinds(&store, "w1", &[], 10).await, ["more-urgent", "old", "urgent"]);
    }

    async fn a_lane_without_priority_weight_is_first_in_first_out(store) {
        store.install_lane(NAMESPACE, LANE, LaneDefinition { priority_weight: 0, ..plain_lane() }).await;
        for (kind, priority) in [("first", 0), ("second", 9_000)] {
            store.submit(Submission { priority: Some(priority), ..store.submission(kind) }).await;
            store.advance(1);
        }
        assert_eq!(claimed_kinds(&store, "w1", &[], 10).await, ["first", "second"]);
    }

    async fn a_claim_says_the_next_heads_score(store) {
        store.install_default_lane().await;
        let first = store.submit_kind("a").await;
        store.advance(5);
        let second = store.describe(store.submit_kind("a").await).await;
        let claim = store.claim_call("w1", 1);
        let ClaimExecutionsReply::Claimed { tasks, next_score, .. } = store.call(HOME, &claim).await.unwrap() else { panic!("not claimed") };
        assert_eq!((tasks[0].execution_id, next_score), (first, Some(second.score)));
        let claim = store.claim_call("w1", 1);
        let ClaimExecutionsReply::Claimed { next_score, .. } = store.call(HOME, &claim).await.unwrap() else { panic!("not claimed") };
        assert_eq!(next_score, None);
    }

    async fn a_worker_sees_its_task_whole(store) {
        store.install_default_lane().await;
        let submission = Submission {
            input: Some("in".into()), input_encoding: Some("raw".into()), tags: Some(BTreeMap::from([("a".into(), "b".into())])), priority: Some(3),
            deadline_ms: Some(99_000), attempt_timeout_ms: Some(4_000), trace_parent: Some("trace".into()), ..store.submission("mail")
        };
        let id = store.submit(submission).await;
        let created = store.now();
        store.advance(7);
        let claim = store.claim_call("w1", 1);
        let task = store.claim_with(HOME, &claim).await.remove(0);
        let expected = Task {
            steps: Vec::new(),
            steps_more: false,
            execution_id: id, attempt_index: 0, attempt_id: claim.attempt_ids[0], attempt_type: AttemptType::Initial, lease_id: claim.lease_ids[0],
            lease_epoch: store.now() * 1_000, lease_expires_at: store.now() + claim.lease_ttl_ms, namespace: NAMESPACE.into(), lane: LANE.into(), kind: "mail".into(),
            input: "in".into(), input_encoding: "raw".into(), tags: BTreeMap::from([("a".into(), "b".into())]), priority: 3, created_at: created,
            fallback_index: None, fallback: None, trace_parent: Some("trace".into()), deadline_at: Some(created + 99_000), attempt_deadline_at: Some(store.now() + 4_000),
            resume: None,
            frames: 0,
            passed: None,
            flow_id: None,
            parent_id: None,
            key: None,
        };
        assert_eq!(task, expected);
        let lease = store.describe(id).await.lease.unwrap();
        let expected = Lease {
            worker_id: "w1-kind".into(), worker_instance: "w1".into(), lease_id: task.lease_id, lease_epoch: task.lease_epoch, expires_at: task.lease_expires_at,
            cancel_requested: false, yield_requested: false,
        };
        assert_eq!(lease, expected);
    }

    async fn a_worker_must_have_everything_required(store) {
        store.install_default_lane().await;
        for (kind, tokens) in [("none", &[][..]), ("gpu", &["gpu"]), ("both", &["gpu", "eu"]), ("eu", &["eu"])] {
            store.submit(requiring(&store, kind, tokens)).await;
            store.advance(1);
        }
        assert_eq!(claimed_kinds(&store, "w1", &[], 10).await, ["none"]);
        assert!(claimed_kinds(&store, "w2", &["us"], 10).await.is_empty());
        assert_eq!(claimed_kinds(&store, "w3", &["eu", "us"], 10).await, ["eu"]);
        assert_eq!(claimed_kinds(&store, "w4", &["us", "gpu", "eu"], 10).await, ["gpu", "both"]);
    }

    async fn work_of_several_requirement_sets_is_taken_in_one_order(store) {
        store.install_default_lane().await;
        for (kind, tokens, priority) in [("a", &["gpu"][..], 1), ("b", &[], 2), ("c", &["eu"], 3), ("d", &["gpu"], 4), ("e", &[], 0)] {
            store.submit(Submission { priority: Some(priority), ..requiring(&store, kind, tokens) }).await;
        }
        assert_eq!(claimed_kinds(&store, "w1", &["gpu", "eu"], 3).await, ["d", "c", "b"]);
        assert_eq!(claimed_kinds(&store, "w1", &["gpu", "eu"], 3).await, ["a", "e"]);
    }

    async fn the_order_of_requirements_does_not_matter(store) {
        store.install_default_lane().await;
        store.submit(requiring(&store, "a", &["x", "y"])).await;
        store.submit(requiring(&store, "a", &["y", "x", "y"])).await;
        let PartitionStatsReply::Stats { lanes, .. } = store.ask(&PartitionStats::default()).await.unwrap();
        assert_eq!(lanes[0].queues.iter().map(|queue| (queue.requires.clone(), queue.eligible)).collect::<Vec<_>>(), [(vec!["x".to_owned(), "y".to_owned()], 2)]);
        assert_eq!(store.claim_as("w1", &["y", "x"], 10).await.len(), 2);
    }

    async fn preferences_order_the_candidates_of_one_priority(store) {
        store.install_default_lane().await;
        for (kind, tokens, priority) in [("plain", &[][..], 5), ("eu", &["eu"], 5), ("eu-gpu", &["eu", "gpu"], 5), ("low-eu-gpu", &["eu", "gpu"], 4)] {
            store.submit(Submission { priority: Some(priority), ..preferring(&store, kind, tokens) }).await;
            store.advance(1);
        }
        assert_eq!(claimed_kinds(&store, "w1", &["eu", "gpu"], 1).await, ["eu-gpu"]);
        assert_eq!(claimed_kinds(&store, "w2", &["eu", "gpu"], 1).await, ["eu"]);
        // Preference never overrides priority, and a worker without the token takes the oldest.
        assert_eq!(claimed_kinds(&store, "w3", &["eu", "gpu"], 2).await, ["plain", "low-eu-gpu"]);
    }

    async fn preferences_are_compared_among_the_first_sixteen(store) {
        store.install_default_lane().await;
        for number in 0..17 {
            let (kind, tokens) = if number == 15 { ("sixteenth", &["eu"][..]) } else if number == 16 { ("seventeenth", &["eu", "gpu"][..]) } else { ("plain", &[][..]) };
            store.submit(preferring(&store, kind, tokens)).await;
            store.advance(1);
        }
        assert_eq!(claimed_kinds(&store, "w1", &["eu", "gpu"], 1).await, ["sixteenth"]);
    }

    async fn preferences_never_keep_work_from_a_worker(store) {
        store.install_default_lane().await;
        store.submit(preferring(&store, "eu", &["eu"])).await;
        assert_eq!(claimed_kinds(&store, "w1", &[], 1).await, ["eu"]);
    }

    async fn a_fifo_lane_ignores_fairness_keys(store) {
        store.install_default_lane().await;
        for (kind, key) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
            keyed(&store, kind, key).await;
            store.advance(1);
        }
        assert_eq!(claimed_kinds(&store, "w1", &[], 3).await, ["a1", "a2", "b1"]);
    }

    async fn a_fair_lane_takes_turns_between_keys(store) {
        store.install_lane(NAMESPACE, LANE, LaneDefinition { fairness: Fairness::Fair, ..plain_lane() }).await;
        for number in 0..6 {
            keyed(&store, &format!("a{number}"), "a").await;
        }
        for number in 0..3 {
            keyed(&store, &format!("b{number}"), "b").await;
        }
        let mut order = Vec::new();
        for _ in 0..9 {
            order.extend(claimed_kinds(&store, "w1", &[], 1).await.into_iter().map(|kind| kind.chars().next().unwrap()));
        }
        let of_b: Vec<usize> = order.iter().enumerate().filter(|(_, key)| **key == 'b').map(|(i, _)| i).collect();
        assert_eq!(order.len(), 9);
        assert!(of_b.iter().enumerate().all(|(turn, at)| *at <= 2 * turn + 1), "b waits at most one turn: {order:?}");
    }

    async fn a_fair_lane_weighs_its_keys(store) {
        let weights = BTreeMap::from([("big".to_owned(), 3)]);
        store.install_lane(NAMESPACE, LANE, LaneDefinition { fairness: Fairness::Fair, fairness_weights: Some(weights), ..plain_lane() }).await;
        for _ in 0..12 {
            keyed(&store, "big", "big").await;
            keyed(&store, "small", "small").await;
        }
        let mut first = Vec::new();
        for _ in 0..12 {
            first.extend(claimed_kinds(&store, "w1", &[], 1).await);
        }
        let big = first.iter().filter(|kind| *kind == "big").count();
        assert!((8..=10).contains(&big), "three of four turns are the big key's: {first:?}");
    }

    async fn a_fair_key_that_rested_does_not_catch_up(store) {
        store.install_lane(NAMESPACE, LANE, LaneDefinition { fairness: Fairness::Fair, ..plain_lane() }).await;
        for number in 0..20 {
            keyed(&store, &format!("a{number}"), "a").await;
        }
        for _ in 0..10 {
            claimed_kinds(&store, "w1", &[], 1).await;
        }
        for number in 0..10 {
            keyed(&store, &format!("b{number}"), "b").await;
        }
        let mut next = Vec::new();
        for _ in 0..10 {
            next.extend(claimed_kinds(&store, "w1", &[], 1).await);
        }
        let of_b = next.iter().filter(|kind| kind.starts_with('b')).count();
        assert!((4..=6).contains(&of_b), "a late key shares, it does not take all: {next:?}");
    }

    async fn a_repeated_claim_answers_the_same_leases(store) {
        store.install_default_lane().await;
        for _ in 0..3 {
            store.submit_kind("mail").await;
        }
        let claim = store.claim_call("w1", 2);
        let mut tasks = store.claim_with(HOME, &claim).await;
        let before = store.dump().await;
        tasks.sort_by_key(|task| task.execution_id);
        // New attempt ids in the repetition change nothing, because the lease ids decide.
        let again = ClaimExecutions { attempt_ids: (0..2).map(|_| store.lease_ids().attempt_id).collect(), ..claim.clone() };
        assert_eq!(store.ask(&again).await, Ok(ClaimExecutionsReply::Replayed { tasks: tasks.clone() }));
        assert_eq!(store.dump().await, before, "a repetition writes nothing");
        // Only live leases are returned again.
        store.complete(&tasks[0]).await;
        assert_eq!(store.ask(&again).await, Ok(ClaimExecutionsReply::Replayed { tasks: vec![tasks[1].clone()] }));
        // The same request id from another instance is another request.
        let other = ClaimExecutions { instance: "w2".into(), ..again };
        assert_eq!(store.claim_with(HOME, &other).await.len(), 1);
    }

    async fn a_claim_is_no_repetition_once_its_leases_are_gone(store) {
        store.install_default_lane().await;
        let first = store.submit_kind("mail").await;
        let claim = store.claim_call("w1", 1);
        let task = store.claim_with(HOME, &claim).await.remove(0);
        store.advance(claim.lease_ttl_ms);
        // The lease is over although no timer has fired: nothing is claimed twice, and nothing is returned again.
        assert_eq!(store.ask(&claim).await, Ok(ClaimExecutionsReply::Claimed { tasks: vec![], next_score: None, admission_needed: None }));
        store.fire_all().await;
        let again = store.claim_with(HOME, &claim).await.remove(0);
        assert_eq!((again.execution_id, again.attempt_index), (first, 1));
        assert!(again.lease_epoch > task.lease_epoch);
        assert_ne!(again.fence(), task.fence());
    }

    async fn what_cannot_start_any_more_does_not_hide_what_can(store) {
        store.install_default_lane().await;
        for _ in 0..5 {
            store.submit(Submission { deadline_ms: Some(10), ..store.submission("late") }).await;
        }
        store.advance(10);
        let good = store.submit_kind("good").await;
        assert_eq!(store.claim_one("w1").await.execution_id, good);
    }

    async fn a_lane_and_a_namespace_see_their_own_work_only(store) {
        for (namespace, lane) in [("default", "default"), ("default", "other"), ("acme", "default")] {
            store.install_lane(namespace, lane, plain_lane()).await;
            store.submit(Submission { namespace: namespace.into(), lane: lane.into(), ..store.submission(&format!("{namespace}/{lane}")) }).await;
        }
        let claim = ClaimExecutions { namespace: "acme".into(), ..store.claim_call("w1", 10) };
        assert_eq!(store.claim_with(HOME, &claim).await.iter().map(|task| task.kind.as_str()).collect::<Vec<_>>(), ["acme/default"]);
        let claim = ClaimExecutions { lane: "other".into(), ..store.claim_call("w1", 10) };
        assert_eq!(store.claim_with(HOME, &claim).await.iter().map(|task| task.kind.as_str()).collect::<Vec<_>>(), ["default/other"]);
    }
}
