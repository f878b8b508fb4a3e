//! Lists over all partitions: newest first, every match once, whatever the size of a page.

use std::collections::BTreeMap;

use ff_core::state::PublicState;
use ff_core::types::ExecutionId;
use ff_engine::{ExecutionFilter, ListCursor, Operations};
use ff_script::generated::{ListExecutions, ListExecutionsReply, Position, Summary};
use uuid::Uuid;

use crate::kit::*;
use crate::on_both_hosts;

type Matches = Box<dyn Fn(&Summary) -> bool>;

/// Every page, through the text of its cursor.
async fn pages(operations: &Operations, filter: &ExecutionFilter, limit: usize) -> Vec<Summary> {
    let mut all = Vec::new();
    let mut after: Option<ListCursor> = None;
    for _ in 0..2_000 {
        let page = operations.list(filter, after, limit).await.expect("a page");
        assert!(page.items.len() <= limit);
        all.extend(page.items);
        match page.next {
            Some(next) => after = Some(next.to_string().parse().expect("a cursor survives its text")),
            None => return all,
        }
    }
    panic!("the list has no end");
}

on_both_hosts! {
    async fn pages_show_every_match_once_newest_first(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let mut batch = Vec::new();
        for n in 0..400 {
            let mut new = work(["red", "green", "blue", "rare"][if n % 97 == 0 { 3 } else { n % 3 }]);
            new.fields.lane = ["one", "two"][n % 2].to_owned();
            new.fields.tags = Some(BTreeMap::from([("side".to_owned(), ["left", "right"][n % 5 / 4].to_owned())]));
            batch.push(new);
        }
        // Some at once, so that many share a millisecond, some one by one.
        for new in batch.split_off(300) {
            submit(operations, new).await;
        }
        for answer in operations.submit_many(batch).await.unwrap() {
            answer.expect("each is accepted");
        }
        let at_one = ff_engine::Claimant { lane: "one".to_owned(), ..worker("w1", 60_000) };
        let tasks = claim(operations, &at_one, 64).await;
        for task in &tasks[..20] {
            complete(operations, task, b"").await;
        }
        let all = pages(operations, &ExecutionFilter::default(), 1_000).await;
        assert_eq!(all.len(), 400);
        let key = |item: &Summary| std::cmp::Reverse((item.created_at, item.execution_id));
        assert!(all.is_sorted_by_key(key));
        let filters: Vec<(ExecutionFilter, Matches)> = vec![
            (ExecutionFilter::default(), Box::new(|_| true)),
            (ExecutionFilter { kind: Some("rare".into()), ..Default::default() }, Box::new(|item| item.kind == "rare")),
            (ExecutionFilter { lane: Some("two".into()), ..Default::default() }, Box::new(|item| item.lane.as_str() == "two")),
            (
                ExecutionFilter { namespace: Some("default".into()), lane: Some("one".into()), state: Some(PublicState::Active), ..Default::default() },
                Box::new(|item| item.state == PublicState::Active),
            ),
            (
                ExecutionFilter { namespace: Some("default".into()), lane: Some("one".into()), state: Some(PublicState::Completed), ..Default::default() },
                Box::new(|item| item.state == PublicState::Completed),
            ),
            (ExecutionFilter { state: Some(PublicState::Completed), ..Default::default() }, Box::new(|item| item.state == PublicState::Completed)),
            (ExecutionFilter { worker: Some("w1".into()), ..Default::default() }, Box::new(|item| item.worker_instance.as_deref() == Some("w1") && item.state == PublicState::Active)),
            (ExecutionFilter { kind: Some("nothing".into()), ..Default::default() }, Box::new(|_| false)),
            (
                ExecutionFilter { created_after: Some(all[300].created_at.as_millis()), created_before: Some(all[100].created_at.as_millis()), ..Default::default() },
                {
                    let (from, to) = (all[300].created_at, all[100].created_at);
                    Box::new(move |item| (from..=to).contains(&item.created_at))
                },
            ),
        ];
        for (filter, matches) in &filters {
            let expected: Vec<ExecutionId> = all.iter().filter(|item| matches(item)).map(|item| item.execution_id).collect();
            for limit in [1, 7, 50, 1_000] {
                if limit == 1 && expected.len() > 50 {
                    continue;
                }
                let seen: Vec<ExecutionId> = pages(operations, filter, limit).await.iter().map(|item| item.execution_id).collect();
                assert_eq!(seen, expected, "{filter:?} in pages of {limit}");
            }
        }
        let tagged = ExecutionFilter { tag: Some(("side".into(), "right".into())), ..Default::default() };
        assert_eq!(pages(operations, &tagged, 9).await.len(), 80);
        let both = ExecutionFilter { kind: Some("red".into()), ..tagged };
        let seen = pages(operations, &both, 9).await;
        assert!(!seen.is_empty() && seen.iter().all(|item| item.kind == "red"));
        engine.stop().await;
    }

    /// More executions of one millisecond than one look takes must not hide the older ones behind them.
    async fn a_crowded_millisecond_hides_nothing(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let older = submit(operations, work_in(4, "older")).await;
        tokio::time::sleep(ms(5)).await;
        for answer in operations.submit_many((0..64).map(|_| work_in(4, "crowd")).collect()).await.unwrap() {
            answer.expect("each is accepted");
        }
        let crowd = pages(operations, &ExecutionFilter { kind: Some("crowd".into()), ..Default::default() }, 100).await;
        let newest = crowd[0].created_at;
        // A position of another partition, of the same millisecond and behind every id of the crowd.
        let after = Position { created_at: newest.as_millis(), execution_id: ExecutionId::from_uuid(Uuid::nil()) };
        let call = ListExecutions { after: Some(after), ..ListExecutions::new(10) };
        let route = operations.client().route_of(&older);
        let ListExecutionsReply::Page { items, more, .. } = operations.client().call(route, &call).await.unwrap();
        let expected = crowd.iter().filter(|item| item.created_at < newest).count() + 1;
        assert_eq!(items.len(), expected.min(10), "more: {more}");
        assert_eq!(items.last().map(|item| item.execution_id).filter(|_| expected <= 10), Some(older).filter(|_| expected <= 10));
        engine.stop().await;
    }

    async fn pages_stay_whole_while_work_is_submitted(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations().clone();
        let mut first = Vec::new();
        for answer in operations.submit_many((0..200).map(|_| work("early")).collect()).await.unwrap() {
            first.push(answer.expect("each is accepted"));
        }
        let going_on = tokio::spawn({
            let operations = operations.clone();
            async move {
                for _ in 0..200 {
                    submit(&operations, work("during")).await;
                }
            }
        });
        let seen = pages(&operations, &ExecutionFilter { kind: Some("early".into()), ..Default::default() }, 11).await;
        let everything = pages(&operations, &ExecutionFilter::default(), 11).await;
        going_on.await.unwrap();
        assert_eq!(seen.len(), 200);
        assert_eq!(everything.iter().filter(|item| item.kind == "early").count(), 200);
        let mut ids: Vec<ExecutionId> = everything.iter().map(|item| item.execution_id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), everything.len(), "nothing is shown twice");
        engine.stop().await;
    }
}
