//! A partition's counts of its events: each counts once, whichever server counts; and how long executions waited, ran
//! and took.

use std::collections::BTreeMap;

use ff_conformance::work::{Fenced, HOME, LANE, LEASE_MS, NAMESPACE, plain_lane};
use ff_conformance::{Store, for_each_host};
use ff_script::Route;
use ff_script::generated::*;

/// The counts, by lane and name.
type Counts = BTreeMap<(String, String), i64>;

struct Tallied {
    counts: Counts,
    lines: Vec<TallyLine>,
    bounds_ms: Vec<i64>,
    gaps: i64,
    more: bool,
    on_hand: OnHand,
}

async fn tally(store: &Store, route: Route, limit: i64) -> Tallied {
    let TallyEventsReply::Tally { names, bounds_ms, lines, gaps, more, on_hand, .. } =
        store.call(route, &TallyEvents { limit }).await.unwrap();
    let mut counts = Counts::new();
    for line in &lines {
        for (number, count) in line.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            counts.insert((format!("{}/{}", line.namespace, line.lane), names[number].clone()), *count);
        }
    }
    Tallied { counts, lines, bounds_ms, gaps, more, on_hand }
}

/// The same counts from reading the events.
async fn recount(store: &Store, route: Route) -> Counts {
    let mut counts = Counts::new();
    for event in store.events(route).await {
        let said = event.texts();
        let of = |name: &str| said.get(name).cloned();
        let apart = match event.r#type.as_str() {
            "execution.started" if of("continues").as_deref() == Some("true") => Some("continuation".to_owned()),
            "execution.started" => of("attempt_type"),
            "execution.reclaimed" | "execution.failed" => of("cause"),
            "execution.blocked" | "execution.suspended" => of("reason"),
            _ => None,
        };
        let name = apart.map_or(event.r#type.clone(), |apart| format!("{}:{apart}", event.r#type));
        let lane = format!("{}/{}", event.namespace.unwrap_or_default(), event.lane.unwrap_or_default());
        *counts.entry((lane, name)).or_insert(0) += 1;
    }
    counts
}

fn waited(line: &TallyLine) -> (i64, i64) {
    (line.waited[0], line.waited[1..].iter().sum())
}

for_each_host! {
    async fn every_event_counts_once_however_often_it_is_counted(store) {
        store.install_default_lane().await;
        store.install_lane(NAMESPACE, "other", plain_lane()).await;
        let task = store.start("mail", "w1").await;
        store.complete(&task).await;
        let task = store.start_with(Submission { max_reclaims: Some(1), ..store.submission("mail") }, "w1").await;
        let task = store.lose_and_reclaim(&task, "w1").await;
        store.go_to(task.lease_expires_at);
        store.fire_all().await;
        let retry = Retry { max_attempts: Some(2), ..Retry::default() };
        let task = store.start_with(Submission { retry: Some(retry), ..store.submission("mail") }, "w1").await;
        store.fail(&task, "x").await;
        store.submit(Submission { lane: "other".into(), delay_ms: Some(5), ..store.submission("mail") }).await;
        let held = store.submit_kind("mail").await;
        store.ask(&CancelExecution::new("ann".into(), held)).await.unwrap();

        let counted = tally(&store, HOME, 1_000).await;
        assert_eq!(counted.counts, recount(&store, HOME).await);
        assert_eq!(counted.counts[&(format!("{NAMESPACE}/{LANE}"), "execution.started:reclaim".to_owned())], 1);
        assert_eq!(counted.counts[&(format!("{NAMESPACE}/{LANE}"), "execution.failed:expired".to_owned())], 1);
        assert_eq!((counted.gaps, counted.more), (0, false));
        assert_eq!(tally(&store, HOME, 1_000).await.counts, counted.counts, "counting again changes nothing");

        // Later events are added, in steps of any size.
        for _ in 0..3 {
            let task = store.start("mail", "w1").await;
            store.complete(&task).await;
        }
        let mut steps = 0;
        while tally(&store, HOME, 2).await.more {
            steps += 1;
        }
        assert!((4..=5).contains(&steps), "nine events in steps of two took {steps}");
        assert_eq!(tally(&store, HOME, 1_000).await.counts, recount(&store, HOME).await);
    }

    async fn events_without_a_lane_are_counted_by_their_namespace(store) {
        store.call(Route::Fleet, &RegisterWorker::new(vec![], "w1".into(), vec![LANE.into()], NAMESPACE.into(), 1, "k".into())).await.unwrap();
        let counted = tally(&store, Route::Fleet, 10).await;
        assert_eq!(counted.counts, Counts::from([((format!("{NAMESPACE}/"), "worker.registered".to_owned()), 1)]));
    }

    async fn durations_are_those_in_line_under_a_lease_and_from_beginning_to_end(store) {
        store.install_default_lane().await;
        let created = store.now();
        let id = store.submit(Submission { delay_ms: Some(1_000), ..store.submission("mail") }).await;
        store.advance(1_000);
        store.fire_all().await;
        store.advance(40);
        let task = store.claim_one("w1").await;
        store.advance(300);
        store.ask(&DelayExecution { delay_ms: Some(50), ..DelayExecution::new(id, task.fence()) }).await.unwrap();
        store.advance(50);
        store.fire_all().await;
        store.advance(7);
        let task = store.claim_one("w1").await;
        store.advance(20);
        store.complete(&task).await;
        let of = |name: &'static str| {
            let store = &store;
            async move {
                let events = store.events(HOME).await;
                events.iter().filter_map(|event| event.data.get(name)).map(|ms| ms.as_i64().unwrap()).collect::<Vec<_>>()
            }
        };
        assert_eq!(of("waited_ms").await, [40, 7], "since it stood in line");
        assert_eq!(of("ran_ms").await, [300, 20], "under each lease");
        assert_eq!(of("took_ms").await, [store.now() - created]);

        let counted = tally(&store, HOME, 100).await;
        let bound = |ms: i64| 1 + counted.bounds_ms.iter().position(|bound| ms <= *bound).unwrap();
        let line = &counted.lines[0];
        assert_eq!(waited(line), (47, 2));
        assert_eq!((line.waited[bound(40)], line.waited[bound(7)]), (1, 1));
        assert_eq!((line.ran[0], line.ran[bound(300)], line.ran[bound(20)]), (320, 1, 1));
        assert_eq!((line.took[0], line.took[bound(1_417)]), (1_417, 1));
        assert_eq!(line.took.len(), counted.bounds_ms.len() + 2, "the sum, each bound, and what is beyond");
    }

    async fn a_place_in_line_is_kept_while_priorities_change_and_grants_come_and_go(store) {
        store.install_default_lane().await;
        let quotas = Some(vec![QuotaRef::new(store.uuid(0), "k".into())]);
        let id = store.submit(Submission { quotas, ..store.submission("mail") }).await;
        store.advance(10);
        store.ask(&ChangeExecution { priority: Some(3), ..ChangeExecution::new("ann".into(), id) }).await.unwrap();
        let issue = |grant_id| IssueGrants { namespace: NAMESPACE.into(), lane: LANE.into(), instance: "w1".into(), kinds: None, capabilities: vec![], max: 1, lease_ids: None, ttl_ms: 1_000, grant_ids: vec![grant_id] };
        store.ask(&issue(store.uuid(0))).await.unwrap();
        store.advance(1_000);
        store.fire_all().await;
        store.advance(5);
        let IssueGrantsReply::Granted { grants, .. } = store.ask(&issue(store.uuid(0))).await.unwrap() else { panic!("not granted") };
        let grant_id = grants[0].grant_id;
        let ff_conformance::work::LeaseIds { attempt_id, lease_id } = store.lease_ids();
        let consume = ConsumeGrant {
            keep: None, execution_id: id, grant_id, instance: "w1".into(), worker_id: "k".into(), kinds: None, capabilities: vec![], lease_ttl_ms: LEASE_MS, attempt_id, lease_id,
        };
        store.ask(&consume).await.unwrap();
        let events = store.events(HOME).await;
        assert_eq!(events.last().unwrap().data["waited_ms"], EventValue::Number(1_015));
        // A held execution leaves the line.
        let id = store.submit_kind("mail").await;
        store.ask(&HoldExecution::new("ann".into(), id)).await.unwrap();
        store.advance(500);
        store.ask(&ReleaseExecution::new("ann".into(), id)).await.unwrap();
        store.advance(2);
        store.claim_one("w1").await;
        assert_eq!(store.events(HOME).await.last().unwrap().data["waited_ms"], EventValue::Number(2));
    }

    async fn what_is_on_hand_is_said_with_the_oldest_of_it(store) {
        store.install_default_lane().await;
        let task = store.start("mail", "w1").await;
        let created = store.now();
        store.open_early(&task, &store.waitpoint("answer")).await;
        let hand = tally(&store, HOME, 1).await.on_hand;
        assert_eq!((hand.waitpoints, hand.oldest_waitpoint_at), (1, Some(created)));
        assert_eq!((hand.timers_due, hand.next_timer_at, hand.stuck), (0, Some(created + LEASE_MS), 0));
        assert_eq!((hand.outbox, hand.oldest_outbox_at), (0, None));
        store.advance(LEASE_MS);
        assert_eq!(tally(&store, HOME, 1).await.on_hand.timers_due, 1);
    }

    async fn a_stream_that_was_cut_before_it_was_counted_is_a_gap(store) {
        let store = Store::open_with_limits(store.kind(), &[("events_max", 100)]).await;
        store.install_default_lane().await;
        let mut tallied = tally(&store, HOME, 1_000).await;
        for round in 0..2 {
            for _ in 0..600 {
                store.submit_kind("mail").await;
            }
            loop {
                tallied = tally(&store, HOME, 1_000).await;
                if !tallied.more {
                    break;
                }
            }
            assert_eq!(tallied.gaps, round, "the first count begins with what there is");
        }
        assert!(tallied.counts.values().sum::<i64>() < 1_200);
    }

    async fn lanes_beyond_the_limit_are_counted_together(store) {
        let store = Store::open_with_limits(store.kind(), &[("tally_lines_max", 2)]).await;
        for lane in ["a", "b", "c", "d"] {
            store.install_lane(NAMESPACE, lane, plain_lane()).await;
            store.submit(Submission { lane: lane.into(), ..store.submission("mail") }).await;
        }
        let counted = tally(&store, HOME, 100).await;
        let lanes: Vec<_> = counted.counts.iter().map(|((lane, _), count)| (lane.as_str(), *count)).collect();
        assert_eq!(lanes, [("default/a", 1), ("default/b", 1), ("other/other", 2)]);
    }

    async fn a_quota_says_how_it_stands_over_its_keys(store) {
        let quota_id = ff_core::types::QuotaPolicyId::from_uuid(store.uuid(0));
        let quota = Quota { concurrency: Some(1), ..Quota::new(quota_id, NAMESPACE.into(), false) };
        let route = Route::Quota(0);
        store.call(route, &PutQuota { actor: None, quota, version: None }).await.unwrap();
        let candidates = (0..3).map(|n| QuotaCandidate {
            execution_id: store.execution_id(), expires_at: store.now() + 60_000, holder_id: store.uuid(0),
            key: if n == 2 { "b" } else { "a" }.into(), number: 1, score: n, weight: 1,
        }).collect();
        store.call(route, &AdmitQuota { candidates, quota_id }).await.unwrap();
        store.call(route, &ThrottleQuota { actor: None, key: "b".into(), quota_id, until: store.now() + 5_000 }).await.unwrap();
        let QuotaStatsReply::Stats { items, quotas } = store.call(route, &QuotaStats { keys_max: 10, limit: 10 }).await.unwrap();
        assert_eq!(quotas, 1);
        assert_eq!(items, [QuotaStanding { quota_id, namespace: NAMESPACE.into(), created_at: store.now(), keys: 2, looked: 2, held: 2, waiting: 1, throttled: 1 }]);
        let QuotaStatsReply::Stats { items, .. } = store.call(route, &QuotaStats { keys_max: 1, limit: 10 }).await.unwrap();
        assert_eq!((items[0].keys, items[0].looked, items[0].held), (2, 1, 1), "the first key only");
    }
}
