//! A wait is ended by its own signals, timeout or operator; nothing else that lets an attempt go on ends it.

use std::sync::{Arc, Mutex};

use ff_core::state::{LifecyclePhase, Outcome};
use ff_core::types::{BudgetId, ExecutionId, WaitpointId, WaitpointToken};
use ff_sdk::middleware::TaskError;
use ff_sdk::runtime::{Ctx, Data, HandlerResult, WorkerRuntime};
use ff_sdk::task::{Condition, Over, SuspendOptions, WaitpointSpec};
use ff_sdk::{BudgetSpec, ChildSpec};
use tokio_util::sync::CancellationToken;

use crate::waits::signal;
use crate::world::{World, until};

/// Where tokens go, by approver.
#[derive(Default)]
struct Mail(Mutex<Vec<(WaitpointId, WaitpointToken)>>);

/// Asks two people, and says how many answered.
async fn ask(ctx: &Ctx, mail: &Mail) -> HandlerResult {
    let two = Condition::Count { n: 2, over: Over::Approvers, of: None };
    let sign_off = SuspendOptions::new("waiting_for_approval").condition(two).step("sign-off");
    if ctx.resume_of(&sign_off).is_none() {
        let approvers = vec!["ann".to_owned(), "bob".to_owned()];
        let spec = WaitpointSpec { key: "sign-off".to_owned(), approvers, ..WaitpointSpec::default() };
        let opened = ctx.create_waitpoint(spec).await?;
        let sent = opened.tokens.iter().map(|issued| (opened.waitpoint_id, issued.token.clone()));
        *mail.0.lock().unwrap() = sent.collect();
    }
    let signals = ctx.wait_for_signals(sign_off).await?;
    Ok(Some(format!("approved by {}", signals.len()).into_bytes()))
}

async fn after_a_budget(ctx: Ctx, Data(budget): Data<BudgetId>, Data(mail): Data<Arc<Mail>>) -> HandlerResult {
    ctx.report_usage(&budget, &[("tokens", 11)], Some("call")).await?;
    ask(&ctx, &mail).await
}

async fn after_children(ctx: Ctx, Data(mail): Data<Arc<Mail>>) -> HandlerResult {
    ctx.spawn(vec![ChildSpec::new("child")]).await?;
    ctx.wait_children().await?;
    ask(&ctx, &mail).await
}

/// Waits at two places and does not look where it was.
async fn after_another_wait(ctx: Ctx, Data(mail): Data<Arc<Mail>>) -> HandlerResult {
    let first = SuspendOptions::new("waiting_for_signal").signal("go");
    if ctx.resume_of(&first).is_none() && ctx.resume().is_none() {
        let opened =
            ctx.create_waitpoint(WaitpointSpec { key: "first".to_owned(), ..WaitpointSpec::default() }).await?;
        *mail.0.lock().unwrap() = vec![(opened.waitpoint_id, opened.tokens[0].token.clone())];
        ctx.wait_for_signals(first.clone()).await?;
    }
    if ctx.resume_of(&first).is_some() {
        ctx.wait_for_signals(first).await?;
    }
    ask(&ctx, &mail).await
}

async fn child() -> HandlerResult {
    Ok(None)
}

async fn undecodable(ctx: Ctx) -> HandlerResult<anyhow::Error> {
    use anyhow::Context;
    let _ = ctx;
    Err(TaskError::new("not in this house", "content_policy").fatal()).context("asking the model")
}

async fn takes_a_number(ff_sdk::runtime::Payload(_): ff_sdk::runtime::Payload<u32>) -> HandlerResult {
    Ok(None)
}

async fn waits(world: &World, id: &ExecutionId) {
    until("it waits for people", || async {
        let seen = world.describe(id).await;
        assert_eq!(seen.outcome, None, "nobody has answered: {:?}", world.describe(id).await);
        seen.lifecycle_phase == LifecyclePhase::Suspended
            && seen.suspension.is_some_and(|suspension| suspension.reason == "waiting_for_approval")
    })
    .await;
}

/// Both answer; one is not enough.
async fn both_sign(world: &World, id: &ExecutionId, mail: &Mail) {
    let sender = world.worker("sender").await;
    let tokens = mail.0.lock().unwrap().clone();
    for (at, token) in &tokens {
        assert_eq!(world.describe(id).await.lifecycle_phase, LifecyclePhase::Suspended);
        sender.deliver_signal(id, at, signal("approved", token)).await.unwrap();
    }
    let result = world.result(id).await;
    assert_eq!((result.outcome, result.result.as_deref()), (Outcome::Success, Some(b"approved by 2".as_slice())));
}

for_each_transport! {
    async fn an_approval_is_not_given_by_a_budget_that_has_room_again(world: &World) {
        let spec = BudgetSpec::new("default").hard("tokens", 10);
        let budget = world.admin.create_budget(spec).await.unwrap().budget_id;
        let (token, mail) = (CancellationToken::new(), Arc::new(Mail::default()));
        let runtime = WorkerRuntime::new(world.worker("w-1").await)
            .data(budget)
            .data(Arc::clone(&mail))
            .on("ask", after_a_budget)
            .without_signals()
            .shutdown_on(token.clone());
        let running = tokio::spawn(runtime.run());
        let id = world.admin.submit(world.new_execution("ask").budget(&budget)).await.unwrap();
        until("it is parked", || async {
            let seen = world.describe(&id).await;
            seen.blocking_reason.is_some_and(|reason| reason.as_str() == "waiting_for_budget")
        })
        .await;
        crate::usage::raise(world, &budget, 100).await;
        waits(world, &id).await;
        both_sign(world, &id, &mail).await;
        token.cancel();
        running.await.unwrap().unwrap();
    }

    async fn an_approval_is_not_given_by_children_or_by_another_wait(world: &World) {
        let (token, mail) = (CancellationToken::new(), Arc::new(Mail::default()));
        let runtime = WorkerRuntime::new(world.worker("w-1").await)
            .data(Arc::clone(&mail))
            .on("children", after_children)
            .on("child", child)
            .on("twice", after_another_wait)
            .without_signals()
            .shutdown_on(token.clone());
        let running = tokio::spawn(runtime.run());
        let id = world.submit("children", b"{}").await;
        waits(world, &id).await;
        both_sign(world, &id, &mail).await;

        let id = world.submit("twice", b"{}").await;
        until("it waits", || async { world.describe(&id).await.lifecycle_phase == LifecyclePhase::Suspended }).await;
        let (at, first) = mail.0.lock().unwrap()[0].clone();
        world.worker("another").await.deliver_signal(&id, &at, signal("go", &first)).await.unwrap();
        waits(world, &id).await;
        both_sign(world, &id, &mail).await;
        token.cancel();
        running.await.unwrap().unwrap();
    }

    async fn a_failure_keeps_its_class_through_anyhow_and_what_can_only_repeat_is_not_retried(world: &World) {
        let token = CancellationToken::new();
        let runtime = WorkerRuntime::new(world.worker("w-1").await)
            .on("wrapped", undecodable)
            .on("number", takes_a_number)
            .without_signals()
            .shutdown_on(token.clone());
        let running = tokio::spawn(runtime.run());
        for (kind, category, reason) in [
            ("wrapped", "content_policy", "asking the model: not in this house"),
            ("number", "extractor_payload_decode", "the input is not u32"),
        ] {
            let id = world.submit(kind, b"\"text\"").await;
            let failure = world.result(&id).await.failure.expect("it failed");
            assert_eq!(failure.category, category);
            assert!(failure.reason.starts_with(reason), "{}", failure.reason);
            assert_eq!(world.describe(&id).await.attempts.len(), 1);
        }
        token.cancel();
        running.await.unwrap().unwrap();
    }
}
