//! Work that no live worker covers says so, and comes back when one does.

use ff_core::state::{BlockingReason, PublicState};
use ff_core::types::ExecutionId;
use ff_engine::{Claimant, NewExecution, Operations};
use ff_script::generated::{Execution, RegisterWorker};

use crate::kit::*;
use crate::on_both_hosts;

fn needs(token: &str) -> NewExecution {
    let mut new = work("picky");
    new.fields.requires = Some(vec![token.to_owned()]);
    new
}

fn can(instance: &str, token: &str) -> RegisterWorker {
    RegisterWorker::new(
        vec![token.to_owned()],
        instance.to_owned(),
        vec![LANE.to_owned()],
        "default".to_owned(),
        8,
        "test".to_owned(),
    )
}

async fn blocked(operations: &Operations, id: ExecutionId) -> Execution {
    eventually("nobody can run it", async || {
        let execution = operations.describe(id).await.unwrap();
        (execution.blocking_reason == Some(BlockingReason::WaitingForCapableWorker)).then_some(execution)
    })
    .await
}

async fn eligible(operations: &Operations, id: ExecutionId) {
    eventually("somebody can run it", async || {
        let execution = operations.describe(id).await.unwrap();
        (execution.state == PublicState::Waiting && execution.blocking_reason.is_none()).then_some(())
    })
    .await;
}

on_both_hosts! {
    async fn work_nobody_covers_says_so_after_a_second_and_comes_back_with_a_worker(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        operations.register_worker(can("plain", "cpu")).await.unwrap();
        // What a server looks at when it starts is over: from here on it has to hear of the work.
        tokio::time::sleep(ms(700)).await;
        let (gpu, cpu, plain) =
            (submit(operations, needs("gpu")).await, submit(operations, needs("cpu")).await, submit(operations, work("any")).await);
        let execution = blocked(operations, gpu).await;
        let waited = execution.updated_at - execution.created_at;
        assert!((1_000..=1_900).contains(&waited), "blocked after {waited} ms");
        assert_eq!(execution.blocking_detail.unwrap()["requires"], "gpu");
        for id in [cpu, plain] {
            assert_eq!(operations.describe(id).await.unwrap().blocking_reason, None);
        }
        // The next one of its kind does not wait for a second to say so.
        let mut twin = needs("gpu");
        twin.fields.execution_id = ExecutionId::mint_with_seed(gpu.seed());
        let twin = submit(operations, twin).await;
        blocked(operations, twin).await;

        operations.register_worker(can("strong", "gpu")).await.unwrap();
        eligible(operations, gpu).await;
        eligible(operations, twin).await;
        let strong = Claimant { capabilities: vec!["gpu".into()], ..worker("strong", 30_000) };
        let mut got: Vec<ExecutionId> = claim(operations, &strong, 8).await.into_iter().map(|task| task.execution_id).collect();
        got.sort_unstable();
        let mut expected = vec![gpu, twin, plain];
        expected.sort_unstable();
        assert_eq!(got, expected);
        engine.stop().await;
    }

    async fn work_is_blocked_again_when_its_only_worker_leaves_or_drains(kit) {
        let engine = kit.engine().await;
        let operations = engine.operations();
        for (instance, leaves) in [("leaver", true), ("drainer", false)] {
            operations.register_worker(can(instance, "gpu")).await.unwrap();
            let id = submit(operations, needs("gpu")).await;
            tokio::time::sleep(ms(1_500)).await;
            assert_eq!(operations.describe(id).await.unwrap().blocking_reason, None, "{instance} covers it");
            if leaves {
                operations.deregister_worker(instance, None, None).await.unwrap();
            } else {
                operations.drain_worker(instance, "ann").await.unwrap();
            }
            blocked(operations, id).await;
            operations.cancel(id, "ann", None, None).await.unwrap();
        }
        engine.stop().await;
    }

    async fn a_server_that_starts_finds_what_nobody_covers(kit) {
        let tool = kit.tool(kit.host()).await;
        let ids = [submit(tool.operations(), needs("gpu")).await, submit(tool.operations(), needs("tpu")).await];
        tool.stop().await;
        let options = ff_engine::EngineOptions::default();
        let engine = ff_engine::Engine::start(kit.host(), options).await.unwrap();
        for id in ids {
            blocked(engine.operations(), id).await;
        }
        engine.stop().await;
    }
}
