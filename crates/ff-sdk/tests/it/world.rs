//! An engine reached through one of the three transports, fresh for each test.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_core::PartitionConfig;
use ff_core::types::ExecutionId;
use ff_engine::{Engine, EngineOptions, Operations};
use ff_script::{Client, Library};
use ff_sdk::backend::Transport;
use ff_sdk::snapshot::{ExecutionResult, ExecutionSnapshot};
use ff_sdk::testing::Faults;
use ff_sdk::{ClaimedTask, EmbeddedEngine, FlowFabricAdminClient, FlowFabricWorker, NewExecution, WorkerConfig};
use ff_server::{Server, ServerOptions};
use ff_testkit::TestServer;
use tempfile::TempDir;

pub const LANE: &str = "work";
/// Only a hang takes longer.
pub const SOON: Duration = Duration::from_secs(120);

/// What has to live as long as the engine.
#[expect(dead_code, reason = "held, not read")]
#[expect(clippy::large_enum_variant, reason = "one per test")]
pub enum Behind {
    Embedded(TempDir),
    Valkey { server: TestServer, engine: Engine, directory: TempDir },
    Http { server: Server, directory: TempDir },
}

pub struct World {
    pub transport: Transport,
    pub admin: FlowFabricAdminClient,
    /// Straight to the store, for what no client offers.
    pub operations: Operations,
    base: WorkerConfig,
    pub behind: Behind,
}

pub fn partitions() -> Option<PartitionConfig> {
    Some(PartitionConfig { executions: 8, budgets: 2, quotas: 2, schedules: 2 })
}

impl World {
    pub fn over_engine(engine: &EmbeddedEngine, base: WorkerConfig, directory: TempDir) -> World {
        let operations = engine.engine().operations().clone();
        let behind = Behind::Embedded(directory);
        World { transport: Transport::Embedded, admin: engine.admin(), operations, base, behind }
    }

    pub async fn embedded() -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = EmbeddedEngine::open(directory.path().join("store")).await.expect("the engine starts");
        let base = WorkerConfig::embedded(&engine, "tester", "base", "default", LANE);
        World::over_engine(&engine, base, directory)
    }

    pub async fn valkey() -> World {
        let server = TestServer::start(ff_testkit::Options::default()).expect("valkey starts");
        let options = ff_backend_valkey::Options::new(server.url(), Library::shipped());
        let host = Arc::new(ValkeyHost::connect(options).await.expect("valkey answers"));
        let engine = Engine::start(host, EngineOptions { partitions: partitions(), ..EngineOptions::default() })
            .await
            .expect("the engine starts");
        let directory = tempfile::tempdir().expect("a directory");
        let mut base = WorkerConfig::new("127.0.0.1", server.port(), "tester", "base", "default", LANE);
        base.data_dir = Some(directory.path().to_owned());
        let mut admin_worker = WorkerConfig::new("127.0.0.1", server.port(), "admin", "admin", "default", "nothing");
        admin_worker.data_dir = base.data_dir.clone();
        let worker = FlowFabricWorker::connect(admin_worker).await.expect("the admin connects");
        let admin = FlowFabricAdminClient::of(&worker);
        worker.disconnect().await.expect("the admin's registration ends");
        let operations = engine.operations().clone();
        World {
            transport: Transport::Valkey,
            admin,
            operations,
            base,
            behind: Behind::Valkey { server, engine, directory },
        }
    }

    pub async fn http() -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let options = ff_backend_embedded::Options::new(directory.path().join("store"), Library::shipped().text);
        let host = Arc::new(Embedded::open(options).expect("the store opens"));
        let listen = "127.0.0.1:0".parse().expect("an address");
        let operations = Operations::new(Client::new(host.clone(), PartitionConfig::standalone()));
        let options = ServerOptions::local(listen, directory.path()).expect("keys can be used");
        let server = Server::start(host, EngineOptions::default(), options).await.expect("the server starts");
        let url = format!("http://{}", server.address());
        let base = WorkerConfig::http(&url, "tester", "base", "default", LANE);
        let admin = FlowFabricAdminClient::new(&url).expect("a URL");
        World { transport: Transport::Http, admin, operations, base, behind: Behind::Http { server, directory } }
    }

    pub fn config(&self, instance: &str) -> WorkerConfig {
        WorkerConfig { worker_instance_id: ff_core::types::WorkerInstanceId::new(instance), ..self.base.clone() }
    }

    pub async fn worker(&self, instance: &str) -> FlowFabricWorker {
        FlowFabricWorker::connect(self.config(instance)).await.expect("the worker connects")
    }

    /// A worker whose answers can be lost.
    pub async fn faulty_worker(&self, instance: &str) -> (FlowFabricWorker, Faults) {
        let inner = FlowFabricWorker::connect(self.config("behind-faults")).await.expect("the worker connects");
        let faults = Faults::around(Arc::clone(inner.backend()));
        inner.disconnect().await.expect("the other registration ends");
        let worker = FlowFabricWorker::connect_with(self.config(instance), faults.backend(), None).await;
        (worker.expect("the worker connects"), faults)
    }

    pub async fn submit(&self, kind: &str, input: &[u8]) -> ExecutionId {
        let mut new = self.new_execution(kind);
        new.fields.input = Some(input.to_vec().into());
        self.admin.submit(new).await.expect("submitted")
    }

    pub fn new_execution(&self, kind: &str) -> NewExecution {
        NewExecution::new("default", LANE, kind)
    }

    pub async fn describe(&self, id: &ExecutionId) -> ExecutionSnapshot {
        self.admin.describe_execution(id).await.expect("described")
    }

    pub async fn result(&self, id: &ExecutionId) -> ExecutionResult {
        match self.admin.result(id, SOON).await.expect("asked") {
            Some(result) => result,
            None => panic!("{id} has not ended: {:#?}", self.describe(id).await),
        }
    }
}

/// The next task, which must come soon.
pub async fn claim(worker: &FlowFabricWorker) -> ClaimedTask {
    let claimed = worker.claim_many(1, SOON).await.expect("claimed").pop();
    claimed.expect("a task comes soon")
}

/// Waits until something is so.
pub async fn until<F: Future<Output = bool>>(what: &str, mut so: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + SOON;
    while !so().await {
        assert!(tokio::time::Instant::now() < deadline, "not so within {SOON:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Runs a test on one transport. Takes a boxed one, so that it is compiled once and not once per test.
pub fn run(transport: Transport, check: for<'w> fn(&'w World) -> Pin<Box<dyn Future<Output = ()> + 'w>>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let world = match transport {
            Transport::Embedded => World::embedded().await,
            Transport::Valkey => World::valkey().await,
            Transport::Http => World::http().await,
        };
        check(&world).await;
    });
}

/// Writes one test per transport.
macro_rules! for_each_transport {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: &World) $body:block)*) => {
        $(
            $(#[$meta])*
            mod $name {
                #[allow(unused_imports, reason = "each test uses what it needs")]
                use super::*;

                fn check($world: &World) -> std::pin::Pin<Box<dyn Future<Output = ()> + '_>> {
                    Box::pin(async move $body)
                }

                #[test]
                fn embedded() {
                    $crate::world::run(ff_sdk::backend::Transport::Embedded, check);
                }

                #[test]
                fn valkey() {
                    $crate::world::run(ff_sdk::backend::Transport::Valkey, check);
                }

                #[test]
                fn http() {
                    $crate::world::run(ff_sdk::backend::Transport::Http, check);
                }
            }
        )*
    };
}
