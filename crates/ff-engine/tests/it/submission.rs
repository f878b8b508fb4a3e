//! Many submissions at once: each answered on its own, in the order given.

use std::collections::{BTreeSet, HashMap};

use ff_core::error_code::ErrorCode;
use ff_core::types::ExecutionId;
use ff_engine::ExecutionFilter;
use ff_script::generated::SubmitExecutionReply;

use crate::kit::*;
use crate::on_both_hosts;

on_both_hosts! {
    async fn a_thousand_submissions_are_answered_one_by_one_in_order(kit) {
        let engine = kit.plain_engine().await;
        let operations = engine.operations();
        let mut batch: Vec<ff_engine::NewExecution> = Vec::new();
        for n in 0..1_000_usize {
            let new = match n % 10 {
                3 => {
                    let mut twice = batch[n - 1].clone();
                    twice.fields.trace_parent = Some("again".to_owned());
                    twice
                }
                5 => {
                    let mut new = work("invalid");
                    new.fields.priority = Some(1_000_000);
                    new
                }
                7 => {
                    let mut other = batch[n - 1].clone();
                    other.fields.kind = "another body".to_owned();
                    other
                }
                8 => {
                    let mut new = work("keyed");
                    new.fields.idempotency_key = Some(format!("key {}", n / 100));
                    new
                }
                9 => {
                    let mut new = work("invalid");
                    new.fields.requires = Some(vec!["no spaces".to_owned()]);
                    new
                }
                _ => work(&format!("plain {}", n % 3)),
            };
            batch.push(new);
        }
        let ids: Vec<ExecutionId> = batch.iter().map(|new| new.fields.execution_id).collect();
        let answers = operations.submit_many(batch).await.expect("the batch is answered");
        assert_eq!(answers.len(), 1_000);
        let mut by_key: HashMap<usize, ExecutionId> = HashMap::new();
        let mut accepted = BTreeSet::new();
        for (n, answer) in answers.into_iter().enumerate() {
            match (n % 10, answer) {
                (3, Ok(SubmitExecutionReply::Duplicate { execution_id, .. })) => assert_eq!(execution_id, ids[n - 1]),
                (5, answer) => assert_eq!(refusal(answer), ErrorCode::InvalidArgument),
                (7, answer) => assert_eq!(refusal(answer), ErrorCode::IdempotencyConflict),
                (9, answer) => assert_eq!(refusal(answer), ErrorCode::CapabilityInvalid),
                (8, Ok(SubmitExecutionReply::Created { execution_id, .. })) => {
                    assert_eq!(by_key.insert(n / 100, execution_id), None, "key {} made two", n / 100);
                    accepted.insert(execution_id);
                }
                (8, Ok(SubmitExecutionReply::Duplicate { execution_id, .. })) => {
                    assert_eq!(by_key.get(&(n / 100)), Some(&execution_id), "the first with a key answers for the others");
                }
                (_, Ok(SubmitExecutionReply::Created { execution_id, .. })) if n % 10 != 3 => {
                    assert_eq!(execution_id, ids[n]);
                    accepted.insert(execution_id);
                }
                (_, other) => panic!("{n}: {other:?}"),
            }
        }
        assert_eq!(accepted.len(), 500 + 10);
        let stored: i64 = operations
            .stats()
            .await
            .unwrap()
            .iter()
            .map(|counts| match &counts.stats {
                ff_script::generated::PartitionStatsReply::Stats { executions, .. } => *executions,
            })
            .sum();
        assert_eq!(stored, 510);
        let listed = operations.list(&ExecutionFilter::default(), None, 1_000).await.unwrap();
        assert_eq!(listed.items.iter().map(|item| item.execution_id).collect::<BTreeSet<_>>(), accepted);
        engine.stop().await;
    }

    /// A batch to one partition keeps its order even when the lane has to be made first.
    async fn a_batch_keeps_its_order_within_a_partition(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let batch: Vec<_> = (0..300).map(|n| work_in(1, &format!("{n:03}"))).collect();
        for answer in operations.submit_many(batch).await.unwrap() {
            answer.expect("each is accepted");
        }
        let mut kinds = Vec::new();
        let mut created = Vec::new();
        while kinds.len() < 300 {
            let tasks = operations
                .claim(ff_script::Route::Execution(1), &worker("w", 30_000), 50, uuid::Uuid::now_v7())
                .await
                .unwrap()
                .tasks;
            assert!(!tasks.is_empty(), "{} of 300 claimed", kinds.len());
            created.extend(tasks.iter().map(|task| task.created_at));
            kinds.extend(tasks.into_iter().map(|task| task.kind));
        }
        assert!(created.is_sorted(), "first in, first out");
        // Within a millisecond ids decide, and these were minted in order with the same seed.
        assert!(kinds.is_sorted(), "{kinds:?}");
        engine.stop().await;
    }
}
