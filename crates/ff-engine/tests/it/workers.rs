//! Draining a worker asks for its leases, declaring it dead takes them.

use ff_core::error_code::ErrorCode;
use ff_core::state::PublicState;
use ff_engine::fence_of;
use ff_script::generated::{RegisterWorker, RenewLeaseReply, Task, WorkerState};

use crate::kit::*;
use crate::on_both_hosts;
use ff_testkit::Tasks;

fn registration(instance: &str) -> RegisterWorker {
    RegisterWorker::new(
        Vec::new(),
        instance.to_owned(),
        vec![LANE.to_owned()],
        "default".to_owned(),
        100,
        "test".to_owned(),
    )
}

/// A registered worker that holds a lease in every partition.
async fn busy(operations: &ff_engine::Operations, instance: &str) -> Vec<Task> {
    operations.register_worker(registration(instance)).await.expect("it registers");
    let mut tasks = Vec::new();
    for partition in 0..FEW.executions {
        for _ in 0..2 {
            let id = submit(operations, work_in(partition, "held")).await;
            tasks.push(claim_one(operations, &worker(instance, 60_000), id).await);
        }
    }
    tasks
}

on_both_hosts! {
    async fn draining_a_worker_asks_it_to_yield_every_lease(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let (mine, others) = (busy(operations, "w1").await, busy(operations, "w2").await);
        operations.drain_worker("w1", "ann").await.expect("it drains");
        assert_eq!(operations.worker("w1").await.unwrap().state, WorkerState::Draining);
        assert!(operations.heartbeat(vec!["w1".into()]).await.unwrap()[0].draining);
        for task in &mine {
            eventually("the lease is asked for", async || {
                let RenewLeaseReply::Renewed { yield_requested, .. } =
                    operations.client().renew(task.execution_id, fence_of(task)).await.expect("it is still held");
                yield_requested.then_some(())
            })
            .await;
            operations.yield_back(task.execution_id, fence_of(task)).await.expect("it yields");
            assert_eq!(operations.describe(task.execution_id).await.unwrap().state, PublicState::Waiting);
        }
        for task in &others {
            let RenewLeaseReply::Renewed { yield_requested, .. } = operations.client().renew(task.execution_id, fence_of(task)).await.unwrap();
            assert!(!yield_requested);
        }
        engine.stop().await;
    }

    async fn a_worker_marked_dead_loses_every_lease(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        let (mine, others) = (busy(operations, "w1").await, busy(operations, "w2").await);
        operations.mark_worker_dead("w1", "ann").await.expect("it is marked");
        assert_eq!(refusal(operations.worker("w1").await), ErrorCode::WorkerNotRegistered);
        for task in &mine {
            becomes(operations, task.execution_id, PublicState::Waiting).await;
            let refused = refusal(operations.client().complete(task.execution_id, fence_of(task), None).await);
            assert_eq!(refused, ErrorCode::LeaseRevoked);
        }
        for task in &others {
            complete(operations, task, b"").await;
        }
        engine.stop().await;
    }

    /// What is owed survives the server that would have paid it.
    async fn a_drain_nobody_applied_is_applied_by_the_next_server(kit) {
        let engine = kit.engine().await;
        let tasks = busy(engine.operations(), "w1").await;
        engine.stop().await;
        let tool = kit.tool(kit.host()).await;
        tool.operations().mark_worker_dead("w1", "ann").await.expect("it is marked");
        assert_eq!(tool.operations().describe(tasks[0].execution_id).await.unwrap().state, PublicState::Active);
        let engine = kit.engine().await;
        for task in &tasks {
            becomes(engine.operations(), task.execution_id, PublicState::Waiting).await;
        }
        engine.stop().await;
        tool.stop().await;
    }
}
