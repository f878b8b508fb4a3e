//! Store commands of an engine without work.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use ff_engine::Engine;

use super::phases::{fill, show_lane};
use super::store::{Setting, Store};

/// At its start, the engine reads every partition once; that does not count as idle.
const SETTLE: Duration = Duration::from_secs(3);
const WATCH: Duration = Duration::from_secs(5);
/// Some executions are kept, so that there are timers that are not due.
const KEPT: usize = 640;

/// Commands per second, without those of the measurement.
pub async fn measure(setting: Setting, folder: &Path) -> Result<f64> {
    let store = Store::open(setting, folder).await?;
    show_lane(&store).await?;
    fill(&store, KEPT).await?;
    let engine = Engine::start(store.host.clone(), setting.engine_options()).await?;
    tokio::time::sleep(SETTLE).await;
    let asked = store.host.store_commands().await?;
    let before = store.host.store_commands().await?;
    let asking = before - asked;
    tokio::time::sleep(WATCH).await;
    let after = store.host.store_commands().await?;
    engine.stop().await;
    store.close().await;
    Ok((after - before).saturating_sub(asking) as f64 / WATCH.as_secs_f64())
}
