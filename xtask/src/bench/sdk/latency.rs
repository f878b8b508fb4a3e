//! How soon an idle worker starts newly submitted work.

use std::time::{Duration, Instant};

use anyhow::Result;
use ff_sdk::runtime::WorkerRuntime;

use super::seen::{Seen, noop};
use super::world::{Crew, KIND, World, new_execution};

const WARM_UP: usize = 30;
/// Pause between two submissions: the worker waits again, and earlier announcements have arrived.
const IDLE: Duration = Duration::from_millis(10);
const RESULT_LIMIT: Duration = Duration::from_secs(20);

/// Times from the call of submit to the first line of the handler, sorted.
pub async fn measure(world: &World, count: usize) -> Result<Vec<Duration>> {
    let seen = Seen::new();
    let mut crew = Crew::new();
    let worker = world.worker("idle-1", &[]).await?;
    crew.start(WorkerRuntime::new(worker).data(seen.clone()).on(KIND, noop));
    let mut times = Vec::with_capacity(count);
    for turn in 0..WARM_UP + count {
        let submitted = Instant::now();
        let id = world.admin.submit(new_execution(None)).await?;
        seen.started(turn + 1).await?;
        let took = seen.start_of(&id)?.saturating_duration_since(submitted);
        if turn >= WARM_UP {
            times.push(took);
        }
        anyhow::ensure!(world.admin.result(&id, RESULT_LIMIT).await?.is_some(), "{id} did not end");
        tokio::time::sleep(IDLE).await;
    }
    crew.stop().await?;
    times.sort_unstable();
    Ok(times)
}
