//! `ff dev-worker`: one worker process of the demo.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use ff_api::Ask;
use ff_api::tasks::Fence;
use ff_api::usage::{ReportUsage, ReportUsageBody};
use ff_sdk::middleware::TaskError;
use ff_sdk::runtime::{Ctx, HandlerResult, WorkerRuntime};
use ff_sdk::task::{SuspendOptions, TimeoutBehavior, WaitpointSpec};
use ff_sdk::{FlowFabricWorker, WorkerConfig};
use serde_json::json;

use super::LANE;
use super::director::BUDGET;
use crate::client::Api;

/// Short leases, so that what a killed worker held is soon taken back.
const LEASE_TTL_MS: u64 = 5_000;
const SLOTS: usize = 4;
/// A review that nobody answers goes on after this.
const REVIEW_MS: u64 = 45_000;

/// A worker of the demo.
#[derive(Args)]
pub struct DevWorker {
    #[arg(long)]
    url: String,
    #[arg(long)]
    instance: String,
}

impl DevWorker {
    /// Works until SIGTERM, or until whoever started it is gone.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Arc::new(Api::anonymous(&self.url, None)?);
        let mut config =
            WorkerConfig::http(self.url, "demo", self.instance, "default", LANE).with_max_concurrent_tasks(SLOTS);
        config.lease_ttl_ms = LEASE_TTL_MS;
        let worker = FlowFabricWorker::connect(config).await.context("cannot register the worker")?;
        let runtime = WorkerRuntime::new(worker)
            .drain_grace(Duration::ZERO)
            .on("quick", async |ctx: Ctx| work(&ctx, 50, 400).await)
            .on("urgent", async |ctx: Ctx| work(&ctx, 40, 60).await)
            .on("slow", async |ctx: Ctx| work(&ctx, 1_500, 4_000).await)
            .on("flaky", flaky)
            .on("review", review)
            .on("call", move |ctx: Ctx| {
                let api = Arc::clone(&api);
                async move { call(ctx, &api).await }
            });
        let (alone, left_alone) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read(&mut [0; 1]);
            let _ = alone.send(());
        });
        tokio::select! {
            ended = runtime.run() => ended?,
            _ = left_alone => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Takes its time, and says how far it is.
async fn work(ctx: &Ctx, min_ms: u64, max_ms: u64) -> HandlerResult<TaskError> {
    let takes = Duration::from_millis(rand::random_range(min_ms..max_ms));
    for step in 1..=4_u8 {
        tokio::select! {
            () = tokio::time::sleep(takes / 4) => {}
            reason = ctx.cancellation().cancelled() => return Err(TaskError::new(format!("stopped: {reason}"), "stopped")),
        }
        if max_ms > 1_000 {
            // The lease may be gone by now; whoever ends the task hears so.
            let _ = ctx.progress(step * 25, "working").await;
            let _ = ctx.append_frame("text", format!("\"part {step} of 4\"").as_bytes(), None).await;
        }
    }
    Ok(Some(br#"{"ok":true}"#.to_vec()))
}

/// Fails once.
async fn flaky(ctx: Ctx) -> HandlerResult<TaskError> {
    if ctx.info().attempt_index.to_string() == "0" {
        return Err(TaskError::new("the provider said no", "provider_error"));
    }
    work(&ctx, 50, 200).await
}

/// Waits for a person, for a while.
async fn review(ctx: Ctx) -> HandlerResult {
    let options = SuspendOptions::new("waiting_for_approval")
        .waitpoint(WaitpointSpec { key: "review".to_owned(), ..WaitpointSpec::default() })
        .timeout(REVIEW_MS, TimeoutBehavior::AutoResume);
    let signals = ctx.wait_for_signals(options).await?;
    let by = signals.first().map_or("an operator", |signal| signal.signal_name.as_str());
    Ok(Some(json!({ "went_on_by": by }).to_string().into_bytes()))
}

/// Calls a provider that charges by the token.
async fn call(ctx: Ctx, api: &Api) -> HandlerResult {
    work(&ctx, 100, 300).await?;
    let info = ctx.info();
    let body = ReportUsageBody {
        fence: Fence {
            attempt_id: info.attempt_id,
            lease_id: info.lease_id,
            lease_epoch: i64::try_from(info.lease_epoch.get()).unwrap_or(i64::MAX),
        },
        budget_id: BUDGET.parse().expect("an id"),
        dimensions: BTreeMap::from([("tokens".to_owned(), rand::random_range(50..150))]),
        dedup_key: Some(info.attempt_id.to_string()),
        request_id: None,
    };
    api.ask(&Ask::<ReportUsage>::with(info.execution_id, body)).await.map_err(|error| error.to_string())?;
    Ok(Some(br#"{"answer":42}"#.to_vec()))
}
