//! The event feed: every transition once, in order, from any cursor on, filtered.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_engine::{Cursor, Delivered, Engine, FeedFilter, NewExecution, Operations};
use ff_script::generated::{
    BudgetReset, BudgetScope, DefineLane, DimensionLimit, LaneState, NewBudget, OnHard, OnSoft, Quota, RegisterWorker,
    ResetType, ScopeType,
};

use crate::kit::*;
use crate::on_both_hosts;

const LIFE: [&str; 3] = ["execution.submitted", "execution.started", "execution.completed"];

/// The types of each execution's events, in the order they came.
fn stories(delivered: &[Delivered]) -> BTreeMap<ExecutionId, Vec<String>> {
    let mut stories: BTreeMap<ExecutionId, Vec<String>> = BTreeMap::new();
    for item in delivered {
        if let Some(id) = item.event.execution_id {
            stories.entry(id).or_default().push(item.event.r#type.clone());
        }
    }
    stories
}

async fn live(operations: &Operations, new: NewExecution) -> ExecutionId {
    let lane = new.fields.lane.clone();
    let id = submit(operations, new).await;
    let who = ff_engine::Claimant { lane, ..worker("w", 60_000) };
    let task = claim_one(operations, &who, id).await;
    complete(operations, &task, b"").await;
    id
}

async fn events_of(engine: &Engine, filter: FeedFilter) -> Vec<Delivered> {
    drain_quiet(&mut engine.feed(filter, Cursor::start()), ms(300)).await
}

on_both_hosts! {
    async fn from_the_start_every_transition_is_seen_once_in_order(kit) {
        let engine = kit.engine().await;
        let mut ids = BTreeSet::new();
        for _ in 0..40 {
            ids.insert(live(engine.operations(), work("before")).await);
        }
        let mut feed = all_events(&engine);
        for _ in 0..40 {
            ids.insert(live(engine.operations(), work("after")).await);
        }
        let delivered = drain(&mut feed, |all| stories(all).values().map(Vec::len).sum::<usize>() >= 240).await;
        let stories = stories(&delivered);
        assert_eq!(stories.keys().copied().collect::<BTreeSet<_>>(), ids);
        for (id, story) in stories {
            assert_eq!(story, LIFE, "{id}");
        }
        // A feed that is open hears of the next one promptly.
        let id = live(engine.operations(), work("prompt")).await;
        let more = drain(&mut feed, |all| all.len() >= 3).await;
        assert_eq!(stories_of(&more, id), LIFE);
        engine.stop().await;
    }

    async fn what_happens_to_budgets_and_quotas_is_told(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let mut feed = engine.feed(FeedFilter { types: vec!["budget.".into(), "quota.".into()], ..Default::default() }, Cursor::start());
        let new = NewBudget {
            budget_id: BudgetId::mint(),
            namespace: "default".to_owned(),
            parent: None,
            next_reset_at: None,
            scope: BudgetScope { r#type: ScopeType::Custom, id: None },
            dimensions: vec![DimensionLimit { name: "tokens".to_owned(), hard: Some(10), soft: Some(5) }],
            reset: BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None },
            on_soft: OnSoft::Notify,
            on_hard: OnHard::Suspend,
        };
        let (budget, _) = operations.create_budget(new, "ann").await.unwrap();
        let spend = |n| operations.spend(budget.budget_id, [("tokens".to_owned(), n)].into(), None);
        spend(6).await.unwrap();
        spend(6).await.unwrap();
        spend(6).await.unwrap();
        operations.reset_budget(budget.budget_id, "ann").await.unwrap();
        let quota_id = QuotaPolicyId::from_uuid(uuid::Uuid::now_v7());
        let quota = Quota { concurrency: Some(1), ..Quota::new(quota_id, "default".to_owned(), false) };
        operations.create_quota(quota, "bob").await.unwrap();
        operations.throttle_quota(quota_id, "k", i64::MAX >> 12, Some("bob")).await.unwrap();
        operations.delete_quota(quota_id, "bob").await.unwrap();
        submit(operations, work("other")).await;

        let delivered = drain(&mut feed, |all| all.len() >= 7).await;
        let told = |id: &str| -> Vec<(String, Option<String>)> {
            let about = |item: &&Delivered| item.event.data.get("budget_id").or(item.event.data.get("quota_id")).is_some_and(|one| one.as_str() == Some(id));
            delivered.iter().filter(about).map(|item| (item.event.r#type.clone(), item.event.texts().remove("actor"))).collect()
        };
        let by = |actor: &str| Some(actor.to_owned());
        let expected = [("budget.created", by("ann")), ("budget.soft_breach", None), ("budget.hard_breach", None), ("budget.reset", by("ann"))];
        assert_eq!(told(&budget.budget_id.to_string()), expected.map(|(kind, actor)| (kind.to_owned(), actor)));
        let expected = [("quota.created", by("bob")), ("quota.throttled", by("bob")), ("quota.deleted", by("bob"))];
        assert_eq!(told(&quota_id.to_string()), expected.map(|(kind, actor)| (kind.to_owned(), actor)));
        // Each cursor goes on right behind its event.
        for (at, item) in delivered.iter().enumerate() {
            let cursor: Cursor = item.cursor.to_string().parse().unwrap();
            let filter = FeedFilter { types: vec!["budget.".into(), "quota.".into()], ..Default::default() };
            let rest = drain_quiet(&mut engine.feed(filter, cursor), ms(300)).await;
            assert_eq!(rest.len(), delivered.len() - at - 1);
        }
        engine.stop().await;
    }

    async fn a_reader_that_comes_back_with_its_cursor_misses_and_repeats_nothing(kit) {
        let engine = kit.engine().await;
        let writers: Vec<_> = (0..3)
            .map(|n| {
                let operations = engine.operations().clone();
                tokio::spawn(async move {
                    let mut ids = Vec::new();
                    for _ in 0..60 {
                        let mut new = work("written");
                        new.fields.lane = format!("lane-{n}");
                        ids.push(live(&operations, new).await);
                        tokio::time::sleep(ms(2)).await;
                    }
                    ids
                })
            })
            .collect();
        let mut seen: Vec<Delivered> = Vec::new();
        let mut cursor = Cursor::start().to_string();
        let mut rounds = 0;
        let mut take = 1;
        while seen.iter().filter(|item| item.event.execution_id.is_some()).count() < 3 * 3 * 60 {
            let mut feed = engine.feed(FeedFilter::default(), cursor.parse().expect("a cursor survives its text"));
            let some = feed.next(PATIENCE).await.expect("the feed is read");
            assert!(!some.is_empty(), "{} events seen in {rounds} rounds, then nothing", seen.len());
            // Sometimes it goes away in the middle of what it was given.
            take = take * 7 % 23 + 1;
            for item in some.into_iter().take(take) {
                cursor = item.cursor.to_string();
                seen.push(item);
            }
            rounds += 1;
        }
        let mut ids = BTreeSet::new();
        for writer in writers {
            ids.extend(writer.await.unwrap());
        }
        let mut feed = engine.feed(FeedFilter::default(), cursor.parse().unwrap());
        assert_eq!(drain_quiet(&mut feed, ms(1_300)).await, [], "nothing is left or repeated");
        let stories = stories(&seen);
        assert_eq!(stories.keys().copied().collect::<BTreeSet<_>>(), ids);
        for (id, story) in stories {
            assert_eq!(story, LIFE, "{id}");
        }
        assert!(rounds > 20, "{rounds} rounds are too few to show anything");
        engine.stop().await;
    }

    async fn a_filter_passes_what_matches_everything_given(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let mut mail = NewExecution::new("shop", "mail", "send");
        mail.fields.tags = Some(BTreeMap::from([("customer".to_owned(), "7".to_owned())]));
        let mail = submit(operations, mail).await;
        let mut report = NewExecution::new("shop", "reports", "render");
        report.fields.tags = Some(BTreeMap::from([("customer".to_owned(), "8".to_owned())]));
        let report = submit(operations, report).await;
        let other = submit(operations, NewExecution::new("else", "mail", "send")).await;
        operations.cancel(report, "ann", None, None).await.unwrap();

        let table: Vec<(FeedFilter, Vec<(ExecutionId, &str)>)> = vec![
            (
                FeedFilter { namespace: Some("shop".into()), types: vec!["execution.".into()], ..Default::default() },
                vec![(mail, "execution.submitted"), (report, "execution.submitted"), (report, "execution.cancelled")],
            ),
            (
                FeedFilter { lane: Some("mail".into()), types: vec!["execution.submitted".into()], ..Default::default() },
                vec![(mail, "execution.submitted"), (other, "execution.submitted")],
            ),
            (
                FeedFilter { kind: Some("render".into()), ..Default::default() },
                vec![(report, "execution.submitted"), (report, "execution.cancelled")],
            ),
            (FeedFilter { tag: Some(("customer".into(), "7".into())), ..Default::default() }, vec![(mail, "execution.submitted")]),
            (FeedFilter { types: vec!["execution.cancelled".into()], ..Default::default() }, vec![(report, "execution.cancelled")]),
            (FeedFilter { namespace: Some("else".into()), kind: Some("render".into()), ..Default::default() }, vec![]),
        ];
        for (filter, mut expected) in table {
            let mut seen: Vec<(ExecutionId, String)> = events_of(&engine, filter.clone())
                .await
                .into_iter()
                .map(|item| (item.event.execution_id.expect("of an execution"), item.event.r#type))
                .collect();
            seen.sort();
            expected.sort_unstable();
            let expected: Vec<(ExecutionId, String)> = expected.into_iter().map(|(id, kind)| (id, kind.to_owned())).collect();
            assert_eq!(seen, expected, "{filter:?}");
        }
        engine.stop().await;
    }

    async fn the_fleets_events_are_in_the_feed(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let mut feed = engine.feed(
            FeedFilter { types: vec!["worker.".into(), "lane.".into()], ..Default::default() },
            Cursor::start(),
        );
        let register = |name: &str| {
            RegisterWorker::new(Vec::new(), name.into(), vec![LANE.into()], "default".into(), 1, "test".into())
        };
        operations.define_lane(DefineLane::new("ann".into(), "made".into(), "default".into())).await.unwrap();
        operations.register_worker(register("w1")).await.unwrap();
        operations.register_worker(register("w2")).await.unwrap();
        operations.drain_worker("w1", "ann").await.unwrap();
        operations.mark_worker_dead("w2", "ann").await.unwrap();
        operations.deregister_worker("w1", None, None).await.unwrap();
        operations.set_lane_state("default", "made", LaneState::Paused, "ann").await.unwrap();
        let seen = drain(&mut feed, |all| all.len() >= 7).await;
        let seen: Vec<(&str, Option<&str>)> =
            seen.iter().map(|item| (item.event.r#type.as_str(), item.event.worker_instance.as_deref())).collect();
        assert_eq!(
            seen,
            [
                ("lane.changed", None),
                ("worker.registered", Some("w1")),
                ("worker.registered", Some("w2")),
                ("worker.draining", Some("w1")),
                ("worker.marked_dead", Some("w2")),
                ("worker.left", Some("w1")),
                ("lane.changed", None),
            ]
        );
        engine.stop().await;
    }

    /// A worker process that never heard of readers does not announce its events. They are read all the same, even while
    /// others announce all the time.
    async fn events_nobody_announced_are_not_kept_waiting_by_those_announced(kit) {
        let engine = kit.engine().await;
        let silent = kit.tool(kit.another_host().await).await;
        let mut feed = all_events(&engine);
        drain_quiet(&mut feed, ms(300)).await;
        let busy = tokio::spawn({
            let operations = engine.operations().clone();
            async move {
                for _ in 0..60 {
                    submit(&operations, work_in(1, "busy")).await;
                    tokio::time::sleep(ms(100)).await;
                }
            }
        });
        for _ in 0..3 {
            assert!(!feed.next(PATIENCE).await.unwrap().is_empty());
        }
        let quiet = submit(silent.operations(), work_in(2, "quiet")).await;
        loop {
            let some = feed.next(ms(1_000)).await.unwrap();
            if some.iter().any(|item| item.event.execution_id == Some(quiet)) {
                break;
            }
        }
        busy.abort();
        let _ = busy.await;
        engine.stop().await;
        silent.stop().await;
    }
}

fn stories_of(delivered: &[Delivered], id: ExecutionId) -> Vec<String> {
    stories(delivered).remove(&id).unwrap_or_default()
}
