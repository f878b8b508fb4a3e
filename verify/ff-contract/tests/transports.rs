//! The program runs on an embedded engine, on Valkey, and through a server.

use std::sync::Arc;

use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_contract::{LANE, Reach, run};
use ff_engine::{Engine, EngineOptions};
use ff_script::Library;
use ff_sdk::{EmbeddedEngine, FlowFabricAdminClient, FlowFabricWorker, WorkerConfig};
use ff_server::{Server, ServerOptions};
use ff_testkit::TestServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded() {
    let directory = tempfile::tempdir().unwrap();
    let engine = EmbeddedEngine::open(directory.path()).await.unwrap();
    let config = WorkerConfig::embedded(&engine, "contract", "contract", "default", LANE);
    run(&Reach { config, admin: engine.admin() }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valkey() {
    let server = TestServer::start(ff_testkit::Options::default()).unwrap();
    let options = ff_backend_valkey::Options::new(server.url(), Library::shipped());
    let host = Arc::new(ValkeyHost::connect(options).await.unwrap());
    let _engine = Engine::start(host, EngineOptions::default()).await.unwrap();
    let config = WorkerConfig::new("127.0.0.1", server.port(), "contract", "contract", "default", LANE);
    let operator = FlowFabricWorker::connect(config.clone()).await.unwrap();
    let admin = FlowFabricAdminClient::of(&operator);
    run(&Reach { config, admin }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http() {
    let directory = tempfile::tempdir().unwrap();
    let options = ff_backend_embedded::Options::new(directory.path(), Library::shipped().text);
    let host = Arc::new(Embedded::open(options).unwrap());
    let options = ServerOptions::local("127.0.0.1:0".parse().unwrap(), directory.path()).unwrap();
    let server = Server::start(host, EngineOptions::default(), options).await.unwrap();
    let url = format!("http://{}", server.address());
    let config = WorkerConfig::http(&url, "contract", "contract", "default", LANE);
    run(&Reach { config, admin: FlowFabricAdminClient::new(&url).unwrap() }).await.unwrap();
    server.stop().await;
}
