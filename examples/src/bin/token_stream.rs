//! A stream of tokens, as a model writes them. One reader follows from the start, one joins late, one loses its
//! connection.

use std::time::Duration;

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::runtime::{Ctx, HandlerResult, Payload, WorkerRuntime};
use flowfabric::task::{NewFrame, StreamCursor, StreamFrames, stream_summary, tail_stream};
use flowfabric::types::{AttemptIndex, ExecutionId};
use flowfabric::{FlowFabricAdminClient, NewExecution};
use tokio_util::sync::CancellationToken;

const TEXT: &str = "durable streams can be read from any place at any time by any number of readers";

/// Writes its prompt word by word, and keeps a summary of its progress.
async fn write(ctx: Ctx, Payload(prompt): Payload<String>) -> HandlerResult {
    let words: Vec<&str> = prompt.split(' ').collect();
    for (n, word) in words.iter().enumerate() {
        let usage = serde_json::json!({ "tokens": n + 1 });
        ctx.append_frames(&[NewFrame::new("token", *word), NewFrame::new("usage", usage.to_string()).summary()])
            .await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(Some(words.len().to_string().into_bytes()))
}

fn tokens(page: &StreamFrames) -> impl Iterator<Item = String> {
    let tokens = page.frames.iter().filter(|frame| frame.frame_type == "token");
    tokens.map(|frame| String::from_utf8_lossy(&frame.payload).into_owned())
}

/// Reads from a cursor to the end of the stream, or until it has seen enough. Returns its last cursor and what it saw.
async fn follow(
    admin: FlowFabricAdminClient,
    id: ExecutionId,
    from: StreamCursor,
    enough: usize,
) -> anyhow::Result<(Vec<String>, StreamCursor)> {
    let (mut seen, mut after) = (Vec::new(), from);
    loop {
        let page = tail_stream(&admin, &id, AttemptIndex::new(0), after, 10_000, 4).await?;
        seen.extend(tokens(&page));
        after = page.next.clone();
        if page.is_closed() || seen.len() >= enough {
            return Ok((seen, after));
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let admin = sandbox.engine.admin();
    let stop = CancellationToken::new();
    let runtime = WorkerRuntime::new(sandbox.worker("writer-1", "default", &[]).await?)
        .on("write", write)
        .shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());

    let mut new = NewExecution::new("default", "default", "write");
    new.fields.input = Some(serde_json::to_vec(TEXT)?.into());
    let id = admin.submit(new).await?;

    // Follows before anything is written.
    let early = tokio::spawn(follow(admin.clone(), id, StreamCursor::from_beginning(), usize::MAX));
    // Loses its connection after a few tokens, and continues with its last cursor.
    let (mut broken, kept) = follow(admin.clone(), id, StreamCursor::from_beginning(), 5).await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (rest, _) = follow(admin.clone(), id, kept, usize::MAX).await?;
    broken.extend(rest);
    let (early, _) = early.await??;
    // Joins after the end.
    sandbox.result(&id).await?;
    let (late, _) = follow(admin.clone(), id, StreamCursor::from_beginning(), usize::MAX).await?;

    for (who, seen) in [("early", early), ("broken", broken), ("late", late)] {
        ensure!(seen.join(" ") == TEXT, "the {who} reader saw {seen:?}");
    }
    let summary = stream_summary(&admin, &id, None).await?;
    ensure!(summary.as_deref() == Some(br#"{"tokens":16}"#.as_slice()), "got {summary:?}");
    stop.cancel();
    running.await??;
    println!("three readers saw: {TEXT}");
    Ok(())
}
