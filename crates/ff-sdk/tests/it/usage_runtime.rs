//! Handlers that spend: a breach ends their run, and nothing else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ff_core::state::Outcome;
use ff_core::types::BudgetId;
use ff_sdk::runtime::{Ctx, Data, HandlerResult, WorkerRuntime};
use ff_sdk::task::{OnHard, ReportUsageResult, ResumeCause};
use ff_sdk::{BudgetChange, CancelReason};
use tokio_util::sync::CancellationToken;

use crate::usage::budget;
use crate::world::{World, until};

#[derive(Clone)]
struct Spending {
    budget: BudgetId,
    runs: Arc<AtomicUsize>,
    told: Arc<Mutex<Option<CancelReason>>>,
}

/// Spends ten tokens of a step, and goes on as if nothing had happened when there is a limit.
async fn careless(ctx: Ctx, Data(spending): Data<Spending>) -> HandlerResult {
    spending.runs.fetch_add(1, Ordering::SeqCst);
    let answer = ctx.report_usage(&spending.budget, &[("tokens", 10)], Some("step")).await?;
    if let ReportUsageResult::HardBreach { .. } = answer {
        *spending.told.lock().unwrap() = ctx.cancellation().reason();
        return Ok(Some(b"not so".to_vec()));
    }
    let resumed = ctx.resume().is_some_and(|resume| resume.cause == ResumeCause::Budget);
    Ok(Some(if resumed { b"after the raise".to_vec() } else { b"at once".to_vec() }))
}

/// Does not look at its answer, and waits for ever.
async fn deaf(ctx: Ctx, Data(spending): Data<Spending>) -> HandlerResult {
    ctx.report_usage(&spending.budget, &[("tokens", 10)], None).await?;
    ctx.cancellation().cancelled().await;
    Err("told to stop".into())
}

for_each_transport! {
    async fn a_handler_that_met_the_limit_is_neither_completed_nor_failed(world: &World) {
        let id = budget(world, 5, OnHard::Suspend).await;
        let spending = Spending { budget: id, runs: Arc::default(), told: Arc::default() };
        let token = CancellationToken::new();
        let runtime = WorkerRuntime::new(world.worker("w-1").await)
            .data(spending.clone())
            .on("careless", careless)
            .on("deaf", deaf)
            .without_signals()
            .shutdown_on(token.clone());
        let running = tokio::spawn(runtime.run());
        let parked = world.admin.submit(world.new_execution("careless").budget(&id)).await.unwrap();
        let stopped = world.admin.submit(world.new_execution("deaf").budget(&id)).await.unwrap();
        until("both wait for the budget", || async {
            let (one, other) = (world.describe(&parked).await, world.describe(&stopped).await);
            one.blocking_reason.is_some() && other.blocking_reason.is_some()
        })
        .await;
        assert_eq!(*spending.told.lock().unwrap(), Some(CancelReason::HardBreach));
        assert_eq!(world.describe(&parked).await.outcome, None);

        world.admin.cancel(&stopped, "not needed", None).await.unwrap();
        world.admin.change_budget(&id, BudgetChange::default().hard("tokens", Some(50))).await.unwrap();
        let result = world.result(&parked).await;
        assert_eq!((result.outcome, result.result.as_deref()), (Outcome::Success, Some(b"after the raise".as_slice())));
        assert_eq!((spending.runs.load(Ordering::SeqCst), world.describe(&parked).await.attempts.len()), (2, 1));
        token.cancel();
        running.await.unwrap().unwrap();
    }
}
