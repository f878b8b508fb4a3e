//! Ids, settings, and what fails at connect.

use anyhow::ensure;
use ff_core::types::{
    AttemptIndex, BudgetId, EdgeId, FlowId, LaneId, LeaseEpoch, Namespace, QuotaPolicyId, SignalId, SuspensionId,
    TimestampMs, WaitpointId, WaitpointToken, WorkerId, WorkerInstanceId,
};
use ff_sdk::{FlowFabricWorker, SdkError, WorkerConfig};

use crate::Reach;

fn ids() -> anyhow::Result<()> {
    fn copy_ord<T: Copy + Ord>(_: T) {}
    copy_ord(AttemptIndex::new(3_u32));
    copy_ord(LeaseEpoch::new(3));
    let names = [
        LaneId::new("x").to_string(),
        Namespace::new(String::from("x")).to_string(),
        WorkerId::new("x").to_string(),
        WorkerInstanceId::new("x").to_string(),
    ];
    ensure!(names.iter().all(|name| name == "x"));
    ensure!(LaneId::try_new("no spaces").is_err() && LaneId::new("no spaces").as_str() == "no spaces");
    let TimestampMs(at) = TimestampMs::from_millis(5);
    ensure!(at == 5_i64 && TimestampMs::now().0 > at);
    let token = WaitpointToken::new("secret").clone();
    ensure!(token.as_str() == "secret" && !format!("{token} {token:?}").contains("secret"));
    let _ = (FlowId::mint(), EdgeId::mint(), BudgetId::mint(), QuotaPolicyId::mint());
    let _ = (WaitpointId::mint(), SuspensionId::mint(), SignalId::mint());
    Ok(())
}

fn defaults() -> anyhow::Result<()> {
    let config = WorkerConfig::new("localhost", 6379_u16, "worker", String::from("worker-1"), "default", "lane");
    ensure!(config.worker_id == WorkerId::new("worker") && config.worker_instance_id.as_str() == "worker-1");
    ensure!(config.namespace == Namespace::new("default") && config.lanes == vec![LaneId::new("lane")]);
    ensure!(config.capabilities == Vec::<String>::new());
    ensure!(config.lease_ttl_ms == 30_000 && config.claim_poll_interval_ms == 1_000);
    ensure!(config.max_concurrent_tasks == 1);
    let _ = &config.backend;
    let _ = WorkerConfig::http("http://127.0.0.1:7433", "w", "w-1", "default", "lane");
    Ok(())
}

pub async fn run(reach: &Reach) -> anyhow::Result<()> {
    ids()?;
    defaults()?;
    type Change = fn(&mut WorkerConfig);
    let wrong: [(&str, Change); 7] = [
        ("lanes", |config| config.lanes.clear()),
        ("lease_ttl_ms", |config| config.lease_ttl_ms = 999),
        ("capabilities", |config| config.capabilities = vec![String::new()]),
        ("capabilities", |config| config.capabilities = vec!["a,b".to_owned()]),
        ("capabilities", |config| config.capabilities = vec!["a b".to_owned()]),
        ("capabilities", |config| config.capabilities = (0..65).map(|n| n.to_string()).collect()),
        ("capabilities", |config| config.capabilities = vec!["x".repeat(4_097)]),
    ];
    for (expected, change) in wrong {
        let mut config = reach.config("refused");
        change(&mut config);
        match FlowFabricWorker::connect(config).await {
            Err(SdkError::Config { context, field, message }) => {
                ensure!(field.as_deref() == Some(expected), "{context}: {field:?} {message}");
            }
            other => anyhow::bail!("{expected}: {other:?}"),
        }
    }

    let mut config = reach.config("settled");
    config.capabilities = vec!["größe".to_owned()];
    let worker = FlowFabricWorker::connect(config.clone()).await?;
    match FlowFabricWorker::connect(config.clone()).await {
        Err(SdkError::Config { field: Some(field), .. }) => ensure!(field == "worker_instance_id", "{field}"),
        other => anyhow::bail!("a live process holds the id, and yet {other:?}"),
    }
    ensure!(worker.config().worker_instance_id.as_str() == "settled");
    let partitions: &ff_core::PartitionConfig = worker.partition_config();
    ensure!(partitions.executions > 0);
    let _ = (worker.backend(), worker.completion_backend());
    worker.disconnect().await?;
    FlowFabricWorker::connect(config).await?.disconnect().await?;
    Ok(())
}
