//! Handlers with 0 to 6 arguments, and how their tasks end.

use anyhow::ensure;
use ff_core::state::Outcome;
use ff_core::types::ExecutionId;
use ff_sdk::runtime::{BackoffPolicy, Ctx, Data, HandlerResult, Payload, PayloadBytes, TaskInfo, WorkerRuntime};
use ff_sdk::{NewExecution, Retry};
use tokio_util::sync::CancellationToken;

use crate::{LANE, Reach, SOON};

struct State(&'static str);

async fn zero() -> HandlerResult {
    Ok(None)
}
async fn one(Payload(n): Payload<u8>) -> HandlerResult {
    Ok(Some(vec![n]))
}
async fn two(PayloadBytes(bytes): PayloadBytes, Data(state): Data<State>) -> HandlerResult {
    Ok(Some([state.0.as_bytes(), &bytes].concat()))
}
async fn three(_: PayloadBytes, _: TaskInfo, ctx: Ctx) -> HandlerResult {
    ctx.progress(50, "half way").await?;
    Ok(None)
}
async fn six(
    _: Payload<u8>,
    _: PayloadBytes,
    _: Data<State>,
    info: TaskInfo,
    _: Ctx,
    _: Payload<u16>,
) -> HandlerResult {
    Ok(Some(info.kind.into_bytes()))
}
async fn refuses() -> HandlerResult {
    Err("no disk".into())
}
async fn panics() -> HandlerResult {
    panic!("the sky fell")
}
async fn stateless(_: Data<u128>) -> HandlerResult {
    Ok(None)
}

/// Submits an execution that is tried only once.
async fn submit_once(reach: &Reach, kind: &str, input: &[u8]) -> anyhow::Result<ExecutionId> {
    let mut new = NewExecution::new("default", LANE, kind);
    new.fields.input = Some(input.to_vec().into());
    new.fields.retry = Some(Retry { max_attempts: Some(1), ..Retry::default() });
    Ok(reach.admin.submit(new).await?)
}

pub async fn run(reach: &Reach) -> anyhow::Result<()> {
    let _ = BackoffPolicy::default();
    let stop = CancellationToken::new();
    let runtime = WorkerRuntime::new(reach.worker("handlers").await?)
        .data(State("state "))
        .on("zero", zero)
        .on("one", one)
        .on("two", two)
        .on("three", three)
        .on("six", six)
        .on("refuses", refuses)
        .on("panics", panics)
        .on("stateless", stateless)
        .shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());

    type Row = (&'static str, &'static [u8], Option<&'static [u8]>);
    let good: [Row; 5] = [
        ("zero", b"{}", None),
        ("one", b"7", Some(&[7])),
        ("two", b"\"in\"", Some(b"state \"in\"")),
        ("three", b"{}", None),
        ("six", b"6", Some(b"six")),
    ];
    for (kind, input, expected) in good {
        let id = submit_once(reach, kind, input).await?;
        let ended = reach.admin.result(&id, SOON).await?.ok_or_else(|| anyhow::anyhow!("{kind} has not ended"))?;
        ensure!(ended.outcome == Outcome::Success && ended.result.as_deref() == expected, "{kind}: {ended:?}");
    }
    let bad = [
        ("refuses", "handler_error"),
        ("panics", "handler_panic"),
        ("stateless", "extractor_missing_state"),
        ("one", "extractor_payload_decode"),
    ];
    for (kind, category) in bad {
        let id = submit_once(reach, kind, b"\"text\"").await?;
        let ended = reach.admin.result(&id, SOON).await?.ok_or_else(|| anyhow::anyhow!("{kind} has not ended"))?;
        let failure = ended.failure.ok_or_else(|| anyhow::anyhow!("{kind} failed"))?;
        ensure!(failure.category == category, "{kind}: {failure:?}");
    }

    // A kind without a handler is not claimed: it waits for a worker that has one.
    let unheard_of = submit_once(reach, "unheard of", b"{}").await?;
    let later = submit_once(reach, "zero", b"{}").await?;
    ensure!(reach.admin.result(&later, SOON).await?.is_some(), "what stands behind it runs");
    let shown = reach.admin.describe_execution(&unheard_of).await?;
    ensure!(shown.attempts.is_empty(), "it was claimed: {shown:?}");

    stop.cancel();
    running.await??;
    let left = reach.admin.list_workers().await?;
    ensure!(left.iter().all(|worker| worker.instance != "handlers"), "its liveness is gone");
    Ok(())
}
