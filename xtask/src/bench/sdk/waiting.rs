//! The cost of a server for its store while a hundred workers wait for work over HTTP.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use ff_core::types::WorkerInstanceId;
use ff_sdk::runtime::WorkerRuntime;
use ff_sdk::{FlowFabricWorker, WorkerConfig};
use ff_server::{Server, ServerOptions};

use super::super::store::{Setting, Store};
use super::seen::{Seen, noop};
use super::world::{Crew, KIND, LANE, NAMESPACE};

/// Number of waiting workers.
pub const WORKERS: usize = 100;
/// Registrations and the first read of every partition do not count as waiting.
const SETTLE: Duration = Duration::from_secs(5);
/// Long enough for heartbeats, which come every ten seconds.
const WATCH: Duration = Duration::from_secs(20);

/// Commands per second, without those of the measurement.
pub async fn measure(setting: Setting, folder: &Path) -> Result<f64> {
    let store = Store::open(setting, folder).await?;
    let keys = tempfile::Builder::new().prefix("keys-").tempdir_in(folder).context("no directory for keys")?;
    let options = ServerOptions::local("127.0.0.1:0".parse()?, keys.path())?;
    let server = Server::start(store.host.clone(), setting.engine_options(), options).await?;
    let base = WorkerConfig::http(format!("http://{}", server.address()), "bench", "bench", NAMESPACE, LANE);
    let (seen, mut crew) = (Seen::new(), Crew::new());
    for n in 0..WORKERS {
        let worker_instance_id = WorkerInstanceId::new(format!("waits-{n}"));
        let worker = FlowFabricWorker::connect(WorkerConfig { worker_instance_id, ..base.clone() }).await?;
        crew.start(WorkerRuntime::new(worker).data(seen.clone()).on(KIND, noop));
    }
    tokio::time::sleep(SETTLE).await;
    let asked = store.host.store_commands().await?;
    let before = store.host.store_commands().await?;
    let asking = before - asked;
    tokio::time::sleep(WATCH).await;
    let after = store.host.store_commands().await?;
    crew.stop().await?;
    server.stop().await;
    store.close().await;
    Ok((after - before).saturating_sub(asking) as f64 / WATCH.as_secs_f64())
}
