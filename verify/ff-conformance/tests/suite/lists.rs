//! Lists: newest first, every filter applied, and over all pages nothing twice and nothing missing.

use std::collections::BTreeMap;

use ff_conformance::harness::refusal;
use ff_conformance::work::{Fenced, HOME, LANE, NAMESPACE, plain_lane};
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_core::types::{ExecutionId, LaneId, Namespace, TimestampMs};
use ff_script::generated::*;

/// All pages of a list, in order. Fails if a page repeats or the list does not end.
async fn all_pages(store: &Store, call: ListExecutions) -> Vec<ExecutionId> {
    let (mut found, mut after) = (Vec::new(), call.after.clone());
    for _ in 0..1_000 {
        let page = ListExecutions { after: after.clone(), ..call.clone() };
        let ListExecutionsReply::Page { items, last, more } = store.ask(&page).await.expect("a page");
        assert!(items.len() as i64 <= call.limit);
        found.extend(items.iter().map(|item| item.execution_id));
        if !more {
            return found;
        }
        assert!(last.is_some() && last != after, "a page that is not the last moves on, after {after:?} came {last:?}");
        after = last;
    }
    panic!("the list does not end");
}

/// Newest first. Within one millisecond, the higher id comes first.
fn newest_first(mut ids: Vec<(i64, ExecutionId)>) -> Vec<ExecutionId> {
    ids.sort();
    ids.into_iter().rev().map(|(_, id)| id).collect()
}

fn tagged(store: &Store, kind: &str, key: &str, value: &str) -> Submission {
    Submission { tags: Some(BTreeMap::from([(key.to_owned(), value.to_owned())])), ..store.submission(kind) }
}

for_each_host! {
    async fn a_summary_says_where_an_execution_stands(store) {
        store.install_default_lane().await;
        let task = store.start_with(Submission { priority: Some(4), ..store.submission("mail") }, "w1").await;
        let created = store.now();
        let list = || async {
            let ListExecutionsReply::Page { mut items, last, more } = store.ask(&ListExecutions::new(10)).await.unwrap();
            assert_eq!((more, last), (false, Some(Position { created_at: created, execution_id: task.execution_id })));
            items.remove(0)
        };
        let running = Summary {
            execution_id: task.execution_id, namespace: Namespace::new(NAMESPACE), lane: LaneId::new(LANE), kind: "mail".into(), state: PublicState::Active, lifecycle_phase: LifecyclePhase::Active,
            blocking_reason: None, outcome: None, priority: 4, created_at: TimestampMs(created), updated_at: TimestampMs(created), ended_at: None, attempt_index: Some(0), worker_instance: Some("w1".into()),
            flow_id: None, parent_id: None, key: None, failure: None,
        };
        assert_eq!(list().await, running);
        store.advance(9);
        store.complete(&task).await;
        let ended = Summary {
            state: PublicState::Completed, lifecycle_phase: LifecyclePhase::Terminal, outcome: Some(Outcome::Success), updated_at: TimestampMs(store.now()),
            ended_at: Some(TimestampMs(store.now())),
            worker_instance: None, ..running
        };
        assert_eq!(list().await, ended);
    }

    async fn every_filter_narrows_the_list(store) {
        store.install_default_lane().await;
        store.install_lane(NAMESPACE, "other", plain_lane()).await;
        store.install_lane("acme", LANE, plain_lane()).await;
        let base = store.now();
        let active = store.start_with(tagged(&store, "a", "customer", "1"), "w1").await;
        store.advance(10);
        let done = store.start("b", "w2").await;
        store.complete(&done).await;
        store.advance(10);
        let waiting = store.submit(tagged(&store, "b", "customer", "2")).await;
        let delayed = store.submit(Submission { delay_ms: Some(1_000), ..tagged(&store, "a", "customer", "1") }).await;
        let held = store.submit_kind("c").await;
        store.ask(&HoldExecution::new("ann".into(), held)).await.unwrap();
        store.advance(10);
        let other_lane = store.submit(Submission { lane: "other".into(), ..store.submission("a") }).await;
        let other_namespace = store.submit(Submission { namespace: "acme".into(), ..store.submission("a") }).await;
        let cancelled = store.submit_kind("c").await;
        store.ask(&CancelExecution::new("ann".into(), cancelled)).await.unwrap();
        let (active, done) = (active.execution_id, done.execution_id);

        let none = ListExecutions::new(100);
        let in_lane = ListExecutions { namespace: Some(NAMESPACE.into()), lane: Some(LANE.into()), ..none.clone() };
        let state = |call: &ListExecutions, state| ListExecutions { state: Some(state), ..call.clone() };
        let tag = |value: &str| ListExecutions { tag_key: Some("customer".into()), tag_value: Some(value.into()), ..none.clone() };
        let table: Vec<(&str, ListExecutions, Vec<ExecutionId>)> = vec![
            ("nothing", none.clone(), vec![active, done, waiting, delayed, held, other_lane, other_namespace, cancelled]),
            ("namespace", ListExecutions { namespace: Some("acme".into()), ..none.clone() }, vec![other_namespace]),
            ("lane", ListExecutions { lane: Some("other".into()), ..none.clone() }, vec![other_lane]),
            ("kind", ListExecutions { kind: Some("b".into()), ..none.clone() }, vec![done, waiting]),
            ("no such kind", ListExecutions { kind: Some("zzz".into()), ..none.clone() }, vec![]),
            ("active", state(&none, PublicState::Active), vec![active]),
            ("active in lane", state(&in_lane, PublicState::Active), vec![active]),
            ("completed", state(&none, PublicState::Completed), vec![done]),
            ("completed in lane", state(&in_lane, PublicState::Completed), vec![done]),
            ("cancelled in lane", state(&in_lane, PublicState::Cancelled), vec![cancelled]),
            ("delayed in lane", state(&in_lane, PublicState::Delayed), vec![delayed]),
            ("waiting in lane", state(&in_lane, PublicState::Waiting), vec![waiting, held]),
            ("failed", state(&none, PublicState::Failed), vec![]),
            ("tag", tag("1"), vec![active, delayed]),
            ("tag and state", state(&tag("1"), PublicState::Delayed), vec![delayed]),
            ("tag and kind", ListExecutions { kind: Some("b".into()), ..tag("2") }, vec![waiting]),
            ("another value of the tag", tag("3"), vec![]),
            ("worker", ListExecutions { worker: Some("w1".into()), ..none.clone() }, vec![active]),
            ("worker and state", ListExecutions { worker: Some("w1".into()), ..state(&none, PublicState::Completed) }, vec![]),
            ("worker and tag", ListExecutions { worker: Some("w1".into()), ..tag("1") }, vec![active]),
            ("idle worker", ListExecutions { worker: Some("w2".into()), ..none.clone() }, vec![]),
            ("created after", ListExecutions { created_after: Some(base + 30), ..none.clone() }, vec![other_lane, other_namespace, cancelled]),
            ("created before", ListExecutions { created_before: Some(base + 10), ..none.clone() }, vec![active, done]),
            ("created between", ListExecutions { created_after: Some(base + 1), created_before: Some(base + 20), ..none.clone() }, vec![done, waiting, delayed, held]),
            ("created between, active in lane", ListExecutions { created_after: Some(base + 1), ..state(&in_lane, PublicState::Active) }, vec![]),
            ("worker, created before", ListExecutions { worker: Some("w1".into()), created_before: Some(base - 1), ..none.clone() }, vec![]),
        ];
        for (what, call, mut expected) in table {
            let mut found = all_pages(&store, call.clone()).await;
            let small = all_pages(&store, ListExecutions { limit: 1, ..call }).await;
            assert_eq!(small, found, "{what}: the size of a page does not matter");
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{what}");
        }
        let half = ListExecutions { tag_key: Some("customer".into()), ..none };
        assert_eq!(refusal(store.ask(&half).await), ErrorCode::InvalidArgument);
    }

    async fn pages_cover_everything_once_newest_first(store) {
        store.install_default_lane().await;
        let mut ids = Vec::new();
        for number in 0..150 {
            // Many in one millisecond, as a batch creates them.
            if number % 40 == 0 {
                store.advance(1);
            }
            ids.push((store.now(), store.submit(tagged(&store, "mail", "t", "v")).await));
        }
        let expected = newest_first(ids);
        for limit in [1, 7, 64, 1_000] {
            assert_eq!(all_pages(&store, ListExecutions::new(limit)).await, expected, "pages of {limit}");
            let by_kind = ListExecutions { kind: Some("mail".into()), ..ListExecutions::new(limit) };
            assert_eq!(all_pages(&store, by_kind).await, expected, "by kind, pages of {limit}");
            let by_tag = ListExecutions { tag_key: Some("t".into()), tag_value: Some("v".into()), ..ListExecutions::new(limit) };
            assert_eq!(all_pages(&store, by_tag).await, expected, "by tag, pages of {limit}");
        }
    }

    async fn running_work_of_several_requirement_sets_is_one_list(store) {
        store.install_default_lane().await;
        let mut ids = Vec::new();
        for number in 0..90_usize {
            let requires = [vec![], vec!["gpu".to_owned()], vec!["eu".to_owned()]][number % 3].clone();
            ids.push((store.now(), store.submit(Submission { requires: Some(requires), ..store.submission("mail") }).await));
            store.advance(i64::from(number % 4 == 0));
        }
        for _ in 0..2 {
            store.claim_as("w1", &["gpu", "eu"], 64).await;
        }
        let active = ListExecutions { namespace: Some(NAMESPACE.into()), lane: Some(LANE.into()), state: Some(PublicState::Active), ..ListExecutions::new(7) };
        assert_eq!(all_pages(&store, active).await, newest_first(ids));
    }

    async fn a_list_goes_on_after_the_entry_it_stopped_at_is_gone(store) {
        store.install_default_lane().await;
        let mut ids = Vec::new();
        for _ in 0..100 {
            ids.push((store.now(), store.submit(Submission { delay_ms: Some(60_000), retention_ms: Some(0), ..store.submission("mail") }).await));
        }
        let expected = newest_first(ids);
        let delayed = ListExecutions { namespace: Some(NAMESPACE.into()), lane: Some(LANE.into()), state: Some(PublicState::Delayed), ..ListExecutions::new(5) };
        let (mut found, mut after) = (Vec::new(), None);
        for _ in 0..100 {
            let ListExecutionsReply::Page { items, last, more } = store.ask(&ListExecutions { after, ..delayed.clone() }).await.unwrap();
            found.extend(items.iter().map(|item| item.execution_id));
            if !more {
                break;
            }
            assert!(last.is_some(), "a page that is not the last says where to go on, after {} entries", found.len());
            // All have the same millisecond, and the last one of the page is removed before the next page is read.
            let gone = last.as_ref().unwrap().execution_id;
            store.ask(&CancelExecution::new("ann".into(), gone)).await.unwrap();
            store.fire_all().await;
            after = last;
        }
        assert_eq!(found, expected);
    }

    async fn a_tag_is_its_key_and_its_value(store) {
        store.install_default_lane().await;
        // Keys and values that would collide if they were only concatenated.
        let pairs = [("a", "b"), ("ab", ""), ("a:b", "c"), ("a", ":bc"), ("A", "b")];
        let mut ids = Vec::new();
        for (key, value) in pairs {
            ids.push(store.submit(tagged(&store, "mail", key, value)).await);
        }
        for (index, (key, value)) in pairs.into_iter().enumerate() {
            let call = ListExecutions { tag_key: Some(key.into()), tag_value: Some(value.into()), ..ListExecutions::new(10) };
            assert_eq!(all_pages(&store, call).await, [ids[index]], "{key:?} {value:?}");
        }
    }

    async fn counts_follow_every_state(store) {
        store.install_default_lane().await;
        let counts = || async {
            let PartitionStatsReply::Stats { mut lanes, executions, timers, next_timer_at, stuck, outbox, .. } = store.ask(&PartitionStats::default()).await.unwrap();
            assert_eq!((stuck, outbox, lanes.len()), (0, 0, 1));
            (lanes.remove(0), executions, timers, next_timer_at)
        };
        let (empty, executions, timers, next) = counts().await;
        assert_eq!((executions, timers, next, empty.eligible, empty.head_score, empty.oldest_eligible_at), (0, 0, None, 0, None, None));
        assert_eq!((empty.namespace.as_str(), empty.lane.as_str(), empty.state), (NAMESPACE, LANE, LaneState::Active));
        let created = store.now();
        let task = store.start("running", "w1").await;
        let failed = store.start("failed", "w1").await;
        store.ask(&FailExecution { retryable: Some(false), ..FailExecution::new("x".into(), 0, failed.execution_id, failed.fence(), "r".into()) }).await.unwrap();
        store.submit(Submission { delay_ms: Some(5), ..store.submission("delayed") }).await;
        let held = store.submit_kind("held").await;
        store.ask(&HoldExecution::new("ann".into(), held)).await.unwrap();
        store.submit_kind("waiting").await;
        store.advance(3);
        store.submit(Submission { requires: Some(vec!["gpu".into()]), ..store.submission("gpu") }).await;
        let (lane, executions, timers, next) = counts().await;
        assert_eq!((executions, timers, next), (6, 3, Some(created + 5)), "a lease, a retention, a delay");
        assert_eq!((lane.eligible, lane.granted, lane.active, lane.delayed, lane.terminal, lane.blocked_operator, lane.suspended), (2, 0, 1, 1, 1, 1, 0));
        assert_eq!((lane.head_score, lane.oldest_eligible_at), (Some(created), Some(created)));
        assert_eq!(lane.queues.iter().map(|queue| (queue.requires.join(","), queue.eligible, queue.admission, queue.uncovered)).collect::<Vec<_>>(),
            [("gpu".to_owned(), 1, false, false), (String::new(), 1, false, false)]);
        store.complete(&task).await;
        assert_eq!(counts().await.0.active, 0);
        let none = PartitionStats { namespace: Some("acme".into()), lane: None, offset: None };
        assert!(matches!(store.ask(&none).await, Ok(PartitionStatsReply::Stats { lanes, .. }) if lanes.is_empty()));
    }

    async fn lanes_are_counted_some_at_a_time(store) {
        for n in 0..70 {
            store.install_lane(NAMESPACE, &format!("lane-{n:02}"), plain_lane()).await;
        }
        let mut offset = 0;
        let mut seen = Vec::new();
        for (size, last) in [(32, false), (32, false), (6, true)] {
            let PartitionStatsReply::Stats { lanes, more, .. } = store.ask(&PartitionStats { offset: Some(offset), ..PartitionStats::default() }).await.unwrap();
            assert_eq!((lanes.len(), more), (size, !last));
            offset += size as i64;
            seen.extend(lanes.into_iter().map(|lane| lane.lane));
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 70);
        let one = PartitionStats { namespace: Some(NAMESPACE.into()), lane: Some("lane-69".into()), offset: None };
        let counted = store.counted(HOME, &one).await.unwrap();
        assert!(matches!(counted.reply, PartitionStatsReply::Stats { ref lanes, .. } if lanes.len() == 1));
        assert!(counted.calls < 40, "one lane costs what one lane costs: {}", counted.calls);
    }

    async fn the_oldest_is_found_behind_those_with_priority(store) {
        store.install_default_lane().await;
        let oldest = || async {
            let PartitionStatsReply::Stats { lanes, .. } = store.ask(&PartitionStats::default()).await.unwrap();
            lanes[0].oldest_eligible_at
        };
        let created = store.now();
        store.submit_kind("old").await;
        store.advance(5);
        for priority in [1, 7, 7, 9_000] {
            store.submit(Submission { priority: Some(priority), ..store.submission("urgent") }).await;
        }
        assert_eq!(oldest().await, Some(created), "it is behind all others");
        store.claim("w1", 4).await;
        assert_eq!(oldest().await, Some(created));
        store.claim_one("w1").await;
        assert_eq!(oldest().await, None);
        // In a fair lane a position says nothing about age, so the next ones in line are checked.
        store.install_lane(NAMESPACE, LANE, LaneDefinition { fairness: Fairness::Fair, ..ff_conformance::work::plain_lane() }).await;
        let created = store.now();
        for key in ["a", "b"] {
            store.submit(Submission { fairness_key: Some(key.into()), ..store.submission("fair") }).await;
            store.advance(5);
        }
        assert_eq!(oldest().await, Some(created));
    }
}
