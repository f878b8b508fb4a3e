//! A token budget: an agent spends until its budget is used up, waits without a worker, and goes on after a raise.

use std::sync::Arc;

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::contracts::ReportUsageResult;
use flowfabric::runtime::{Ctx, Data, HandlerResult, WorkerRuntime};
use flowfabric::task::{NewFrame, OnHard, StreamCursor};
use flowfabric::types::BudgetId;
use flowfabric::{BudgetChange, BudgetSpec, NewExecution};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const STEPS: usize = 6;
const TOKENS_PER_STEP: u64 = 300;

struct Wallet {
    budget: BudgetId,
    used_up: Arc<Notify>,
}

/// Each step is paid for, then recorded. So a run after a pause begins with the missing step.
async fn think(ctx: Ctx, Data(wallet): Data<Wallet>) -> HandlerResult {
    let done = ctx.read_stream(StreamCursor::Start, StreamCursor::End, 100).await?.frames.len();
    for step in done..STEPS {
        // With the key, a step counts once, even if a worker dies between paying and recording.
        let key = format!("{}:{step}", ctx.execution_id());
        match ctx.report_usage(&wallet.budget, &[("tokens", TOKENS_PER_STEP)], Some(&key)).await? {
            ReportUsageResult::HardBreach { used, limit, .. } => {
                println!("step {step} does not fit: {used} of {limit} tokens are used");
                wallet.used_up.notify_one();
                return Err("the budget is used up".into());
            }
            ReportUsageResult::SoftBreach { used, limit, .. } => {
                println!("{used} tokens are used, {limit} were planned")
            }
            ReportUsageResult::Ok | ReportUsageResult::AlreadyApplied => {}
        }
        ctx.append(NewFrame::new("step", step.to_string())).await?;
    }
    Ok(Some(format!("{STEPS} steps").into_bytes()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let admin = sandbox.engine.admin();
    let spec = BudgetSpec::new("default").hard("tokens", 1_000).soft("tokens", 600).on_hard(OnHard::Suspend);
    let budget = admin.create_budget(spec).await?.budget_id;
    let used_up = Arc::new(Notify::new());

    let stop = CancellationToken::new();
    let runtime = WorkerRuntime::new(sandbox.worker("agent-1", "agents", &[]).await?)
        .data(Wallet { budget, used_up: Arc::clone(&used_up) })
        .on("think", think)
        .shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());
    let id = admin.submit(NewExecution::new("default", "agents", "think").budget(&budget)).await?;

    used_up.notified().await;
    let parked = admin.describe_execution(&id).await?;
    ensure!(parked.lease.is_none() && parked.outcome.is_none(), "it waits without a worker: {parked:?}");
    println!("parked: {}", parked.blocking_detail["dimension"]);

    admin.change_budget(&budget, BudgetChange::default().hard("tokens", Some(5_000))).await?;
    let result = sandbox.result(&id).await?;
    ensure!(result.result.as_deref() == Some(b"6 steps"), "{result:?}");
    let (usage, attempts) = (admin.usage(&id).await?, admin.describe_execution(&id).await?.attempts.len());
    ensure!(usage.used("tokens") == 1_800 && attempts == 1, "every step is paid once, by one attempt: {usage:?}");
    println!("after the raise it went on: {} tokens for {STEPS} steps, {attempts} attempt", usage.used("tokens"));
    stop.cancel();
    running.await??;
    Ok(())
}
