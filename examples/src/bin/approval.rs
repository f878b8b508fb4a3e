//! Approval: an execution waits for two approvers without holding a worker, and goes on after both have approved.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::runtime::{Ctx, Data, HandlerResult, Payload, WorkerRuntime};
use flowfabric::state::{LifecyclePhase, Outcome};
use flowfabric::task::{
    Condition, IssuedToken, Matcher, Over, Signal, SignalOutcome, SuspendOptions, TimeoutBehavior, WaitpointSpec,
};
use flowfabric::types::{ExecutionId, WaitpointId, WaitpointToken};
use flowfabric::{FlowFabricAdminClient, NewExecution};
use tokio_util::sync::CancellationToken;

/// The mailboxes of the approvers.
#[derive(Default)]
struct Mail(Mutex<Vec<Letter>>);

#[derive(Clone)]
struct Letter {
    to: String,
    waitpoint_id: WaitpointId,
    token: WaitpointToken,
}

/// The first run asks for two approvals; the second one returns who gave them.
async fn release(ctx: Ctx, Payload(version): Payload<String>, Data(mail): Data<Arc<Mail>>) -> HandlerResult {
    let approved = Some(Matcher { name: Some("approved".to_owned()), waitpoint: None });
    let both = Condition::Count { n: 2, over: Over::Approvers, of: approved };
    let options = SuspendOptions::new("waiting_for_approval")
        .step("release")
        .condition(both)
        .timeout(86_400_000, TimeoutBehavior::Expire);
    if ctx.resume_of(&options).is_none() {
        let opened = ctx
            .create_waitpoint(WaitpointSpec {
                key: "release".to_owned(),
                approvers: vec!["ann".to_owned(), "bob".to_owned()],
                ..WaitpointSpec::default()
            })
            .await?;
        let letter = |issued: IssuedToken| Letter {
            to: issued.approver.unwrap_or_default(),
            waitpoint_id: opened.waitpoint_id,
            token: issued.token,
        };
        mail.0.lock().expect("no holder of the lock panics").extend(opened.tokens.into_iter().map(letter));
    }
    let signals = ctx.wait_for_signals(options).await?;
    let by: Vec<&str> = signals.iter().filter_map(|signal| signal.approver.as_deref()).collect();
    Ok(Some(serde_json::to_vec(&format!("{version} released by {}", by.join(" and ")))?))
}

async fn answer(admin: &FlowFabricAdminClient, id: &ExecutionId, letter: &Letter) -> anyhow::Result<SignalOutcome> {
    let signal = Signal {
        signal_name: "approved".to_owned(),
        signal_category: "approval".to_owned(),
        payload: None,
        source_type: "mail".to_owned(),
        source_identity: letter.to.clone(),
        idempotency_key: None,
        waitpoint_token: letter.token.clone(),
    };
    Ok(admin.deliver_signal(id, &letter.waitpoint_id, signal).await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let admin = sandbox.engine.admin();
    let stop = CancellationToken::new();
    let mail = Arc::new(Mail::default());
    let runtime = WorkerRuntime::new(sandbox.worker("release-1", "default", &[]).await?)
        .data(mail.clone())
        .on("release", release)
        .shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());

    let mut new = NewExecution::new("default", "default", "release");
    new.fields.input = Some(br#""1.4.0""#.to_vec().into());
    let id = admin.submit(new).await?;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while admin.describe_execution(&id).await?.lifecycle_phase != LifecyclePhase::Suspended {
        ensure!(tokio::time::Instant::now() < deadline, "it does not wait");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let letters = mail.0.lock().expect("no holder of the lock panics").clone();
    ensure!(letters.len() == 2, "two letters, got {}", letters.len());
    let (ann, bob) = (&letters[0], &letters[1]);
    let first = answer(&admin, &id, ann).await?;
    ensure!(matches!(first, SignalOutcome::Accepted { .. }), "one of two, got {first:?}");
    let again = answer(&admin, &id, ann).await?;
    ensure!(matches!(again, SignalOutcome::Accepted { .. }), "still one of two, got {again:?}");
    let second = answer(&admin, &id, bob).await?;
    ensure!(matches!(second, SignalOutcome::TriggeredResume { .. }), "both, got {second:?}");

    let result = sandbox.result(&id).await?;
    ensure!(result.outcome == Outcome::Success, "got {result:?}");
    let said: String = serde_json::from_slice(result.result.as_deref().unwrap_or_default())?;
    ensure!(said == "1.4.0 released by ann and bob", "got {said:?}");
    ensure!(admin.describe_execution(&id).await?.attempts.len() == 1, "the same attempt went on");
    stop.cancel();
    running.await??;
    println!("{said}");
    Ok(())
}
