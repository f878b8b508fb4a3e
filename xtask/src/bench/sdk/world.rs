//! The transports between a worker and an engine, each with a fresh store and the default settings.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use ff_backend_valkey::ValkeyHost;
use ff_core::types::WorkerInstanceId;
use ff_engine::{Engine, EngineOptions};
use ff_script::{Host, Library};
use ff_sdk::runtime::WorkerRuntime;
use ff_sdk::{EmbeddedEngine, FlowFabricAdminClient, FlowFabricWorker, NewExecution, SdkError, WorkerConfig};
use ff_testkit::{Aof, TestServer};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::machine;

pub const NAMESPACE: &str = "default";
pub const LANE: &str = "work";
pub const KIND: &str = "noop";
/// Size of a submission's input.
pub const INPUT_BYTES: usize = 256;

/// A transport, and the durability of its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Embedded,
    Valkey,
    HttpEmbedded,
    HttpValkey,
}

impl Via {
    pub const ALL: [Via; 4] = [Via::Embedded, Via::Valkey, Via::HttpEmbedded, Via::HttpValkey];

    pub fn name(self) -> &'static str {
        match self {
            Via::Embedded => "embedded fsync",
            Via::Valkey => "valkey everysec",
            Via::HttpEmbedded => "http, embedded fsync",
            Via::HttpValkey => "http, valkey everysec",
        }
    }

    /// The same store without a server.
    pub fn direct(self) -> Via {
        match self {
            Via::Embedded | Via::HttpEmbedded => Via::Embedded,
            Via::Valkey | Via::HttpValkey => Via::Valkey,
        }
    }

    pub fn is_http(self) -> bool {
        matches!(self, Via::HttpEmbedded | Via::HttpValkey)
    }
}

/// `ff server` as a separate process, which ends when this value is dropped.
struct ServerProcess {
    process: Child,
    url: String,
}

impl ServerProcess {
    fn start(root: &Path, store: &str) -> Result<ServerProcess> {
        let mut process = Command::new(root.join("target/release/ff"))
            .args(["server", "--no-auth", "--listen", "127.0.0.1:0", "--store", store])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start ff server")?;
        let mut lines = BufReader::new(process.stderr.take().context("ff server has no standard error")?).lines();
        let url = lines.by_ref().map_while(|line| line.ok()).find_map(|line| {
            let (_, rest) = line.split_once("listening on ")?;
            rest.split(',').next().map(str::to_owned)
        });
        // Later output is read too, so that the server never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        match url {
            Some(url) => Ok(ServerProcess { process, url }),
            None => {
                let _ = process.kill();
                anyhow::bail!("ff server did not start on {store}: {:?}", process.wait())
            }
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An engine, a submitter, and the settings of its workers.
pub struct World {
    pub admin: FlowFabricAdminClient,
    base: WorkerConfig,
    /// Counts store commands; `None` if this process cannot count them.
    host: Option<Arc<dyn Host>>,
    /// Dropped before the store; the order of these fields is the order of their end.
    engine: Option<Engine>,
    http: Option<ServerProcess>,
    valkey: Option<TestServer>,
    directory: Option<TempDir>,
}

impl World {
    pub async fn open(via: Via, root: &Path, folder: &Path) -> Result<World> {
        let directory = || tempfile::Builder::new().prefix("store-").tempdir_in(folder).context("no directory");
        let everysec = || TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() });
        Ok(match via {
            Via::Embedded => {
                let directory = directory()?;
                let engine = EmbeddedEngine::open(directory.path()).await?;
                World {
                    admin: engine.admin(),
                    host: Some(Arc::clone(engine.engine().operations().client().host())),
                    base: WorkerConfig::embedded(engine, "bench", "bench", NAMESPACE, LANE),
                    engine: None,
                    http: None,
                    valkey: None,
                    directory: Some(directory),
                }
            }
            Via::Valkey => {
                let server = everysec()?;
                let options = ff_backend_valkey::Options::new(server.url(), Library::shipped());
                let host: Arc<dyn Host> = Arc::new(ValkeyHost::connect(options).await?);
                // Takes the server's role: timers and reconcilers, on a separate connection.
                let engine = Engine::start(Arc::clone(&host), EngineOptions::default()).await?;
                let base = WorkerConfig::new("127.0.0.1", server.port(), "bench", "bench", NAMESPACE, LANE);
                let submitter = FlowFabricWorker::connect(base.clone()).await?;
                let admin = FlowFabricAdminClient::of(&submitter);
                submitter.disconnect().await?;
                World {
                    admin,
                    base,
                    host: Some(host),
                    engine: Some(engine),
                    http: None,
                    valkey: Some(server),
                    directory: None,
                }
            }
            Via::HttpEmbedded => {
                let directory = directory()?;
                let store = format!("embedded:{}", directory.path().display());
                World { directory: Some(directory), ..World::over_http(ServerProcess::start(root, &store)?)? }
            }
            Via::HttpValkey => {
                let server = everysec()?;
                let http = ServerProcess::start(root, &server.url())?;
                World { valkey: Some(server), ..World::over_http(http)? }
            }
        })
    }

    fn over_http(http: ServerProcess) -> Result<World> {
        Ok(World {
            admin: FlowFabricAdminClient::new(&http.url)?,
            base: WorkerConfig::http(&http.url, "bench", "bench", NAMESPACE, LANE),
            host: None,
            engine: None,
            http: Some(http),
            valkey: None,
            directory: None,
        })
    }

    /// A worker with the default settings and these capabilities.
    pub async fn worker(&self, instance: &str, capabilities: &[String]) -> Result<FlowFabricWorker> {
        let mut config = WorkerConfig { worker_instance_id: WorkerInstanceId::new(instance), ..self.base.clone() };
        config.capabilities = capabilities.to_vec();
        Ok(FlowFabricWorker::connect(config).await?)
    }

    /// The CPU seconds of the servers so far.
    pub fn server_cpu(&self) -> Result<f64> {
        let pids = [self.http.as_ref().map(|http| http.process.id()), self.valkey.as_ref().and_then(TestServer::pid)];
        pids.into_iter().flatten().map(machine::cpu_seconds).sum()
    }

    /// The number of commands that the store has run, if it can be counted.
    pub async fn store_commands(&self) -> Result<Option<u64>> {
        match &self.host {
            Some(host) => Ok(Some(host.store_commands().await?)),
            None => Ok(None),
        }
    }

    /// Ends the engine before its store.
    pub async fn close(self) {
        let World { admin, base, host, engine, http, valkey, directory } = self;
        drop((admin, base, host));
        if let Some(engine) = engine {
            engine.stop().await;
        }
        drop((http, valkey, directory));
    }
}

/// A no-op with a 256-byte input.
pub fn new_execution(requires: Option<Vec<String>>) -> NewExecution {
    let mut new = NewExecution::new(NAMESPACE, LANE, KIND);
    new.fields.input = Some(format!("\"{}\"", "x".repeat(INPUT_BYTES - 2)).into_bytes().into());
    new.fields.requires = requires;
    new
}

/// Runtimes in the background.
pub struct Crew {
    stop: CancellationToken,
    running: Vec<JoinHandle<Result<(), SdkError>>>,
}

impl Crew {
    pub fn new() -> Crew {
        Crew { stop: CancellationToken::new(), running: Vec::new() }
    }

    pub fn start(&mut self, runtime: WorkerRuntime) {
        let runtime = runtime.without_signals().shutdown_on(self.stop.clone());
        self.running.push(tokio::spawn(runtime.run()));
    }

    /// Stops all runtimes, and waits for their end.
    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        for running in self.running {
            running.await??;
        }
        Ok(())
    }
}
