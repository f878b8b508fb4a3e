//! Several engines on one store: partitions are shared, a leaver's share is taken over, and nothing fires twice.

use std::collections::BTreeMap;

use ff_core::state::PublicState;
use ff_core::types::ExecutionId;
use ff_engine::{Engine, FeedFilter, Operations};

use crate::kit::*;
use crate::on_both_hosts;

/// One delayed execution in every partition.
async fn delayed_everywhere(operations: &Operations, delay_ms: i64) -> Vec<ExecutionId> {
    let mut ids = Vec::new();
    for partition in 0..FEW.executions {
        let mut new = work_in(partition, "later");
        new.fields.delay_ms = Some(delay_ms);
        ids.push(submit(operations, new).await);
    }
    ids
}

async fn all_become_ready(operations: &Operations, ids: &[ExecutionId]) {
    for id in ids {
        becomes(operations, *id, PublicState::Waiting).await;
    }
}

/// Each execution became ready exactly once.
async fn each_ready_once(engine: &Engine, ids: &[ExecutionId]) {
    let filter = FeedFilter { types: vec!["execution.ready".to_owned()], ..FeedFilter::default() };
    let mut feed = engine.feed(filter, ff_engine::Cursor::start());
    let mut times: BTreeMap<ExecutionId, usize> = BTreeMap::new();
    for delivered in drain_quiet(&mut feed, ms(300)).await {
        *times.entry(delivered.event.execution_id.expect("of an execution")).or_default() += 1;
    }
    for id in ids {
        assert_eq!(times.get(id), Some(&1), "{id}");
    }
}

on_both_hosts! {
    async fn two_engines_fire_everything_once_and_on_time(kit) {
        let one = kit.engine().await;
        let two = kit.engine_on(kit.another_host().await).await;
        let mut ids = delayed_everywhere(one.operations(), 300).await;
        ids.extend(delayed_everywhere(two.operations(), 1_200).await);
        all_become_ready(one.operations(), &ids).await;
        for id in &ids {
            let execution = one.operations().describe(*id).await.unwrap();
            let late = execution.updated_at - execution.created_at;
            assert!((300..=3_000).contains(&late), "{id} became ready after {late} ms");
        }
        each_ready_once(&one, &ids).await;
        one.stop().await;
        two.stop().await;
    }

    async fn the_share_of_an_engine_that_stops_is_taken_over(kit) {
        let stays = kit.engine().await;
        let leaves = kit.engine_on(kit.another_host().await).await;
        let ids = delayed_everywhere(leaves.operations(), 1_500).await;
        leaves.stop().await;
        all_become_ready(stays.operations(), &ids).await;
        each_ready_once(&stays, &ids).await;
        stays.stop().await;
    }

    async fn the_share_of_an_engine_that_vanishes_is_taken_over(kit) {
        let stays = kit.engine().await;
        let vanishes = kit.engine_on(kit.another_host().await).await;
        // Both have seen each other once a second beat has passed.
        let warm = delayed_everywhere(stays.operations(), 1_200).await;
        all_become_ready(stays.operations(), &warm).await;
        let ids = delayed_everywhere(stays.operations(), 300).await;
        drop(vanishes);
        all_become_ready(stays.operations(), &ids).await;
        let later = delayed_everywhere(stays.operations(), 200).await;
        all_become_ready(stays.operations(), &later).await;
        each_ready_once(&stays, &[warm, ids, later].concat()).await;
        stays.stop().await;
    }
}
