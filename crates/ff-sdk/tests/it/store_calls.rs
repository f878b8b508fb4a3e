//! How many calls of the store common work takes, on every way to it. What servers do for themselves (records, liveness, tally, sweeps) is
//! not counted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_engine::EngineOptions;
use ff_script::{Host, HostError, HostFacts, Invocation, Library, Route, ScanCursor, ScanPage, Watch};
use ff_sdk::runtime::{HandlerResult, WorkerRuntime};
use ff_sdk::{
    EmbeddedEngine, FlowFabricAdminClient, FlowFabricWorker, FlowSpec, MemberSpec, NewExecution, WorkerConfig,
};
use ff_server::{Server, ServerOptions};
use ff_testkit::TestServer;
use tokio_util::sync::CancellationToken;

const LANE: &str = "calls";
const SOON: Duration = Duration::from_secs(120);
/// The fewest of this many rounds count: something else may happen in any one of them.
const ROUNDS: usize = 40;

/// Functions that nobody's work asks for.
const OWN: [&str; 12] = [
    "ff_fire_due",
    "ff_next_due",
    "ff_tally_events",
    "ff_heartbeat_server",
    "ff_heartbeat_worker",
    "ff_heartbeat_workers",
    "ff_partition_stats",
    "ff_read_outbox",
    "ff_ack_outbox",
    "ff_get_worker",
    "ff_take_webhooks",
    "ff_read_events",
];

/// A host that notes which operations each call carries.
struct Noting {
    inner: Arc<dyn Host>,
    calls: Mutex<Vec<Vec<&'static str>>>,
}

impl Noting {
    fn over(inner: Arc<dyn Host>) -> Arc<Self> {
        Arc::new(Self { inner, calls: Mutex::default() })
    }

    fn note(&self, functions: Vec<&'static str>) {
        if functions.iter().any(|function| !OWN.contains(function)) {
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(functions);
        }
    }

    /// The calls since the last time.
    fn take(&self) -> Vec<Vec<&'static str>> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait::async_trait]
impl Host for Noting {
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        self.note(vec![invocation.function]);
        self.inner.call(invocation).await
    }
    async fn run(&self, operations: Vec<Invocation>) -> Vec<Result<Vec<u8>, HostError>> {
        self.note(operations.iter().map(|operation| operation.function).collect());
        self.inner.run(operations).await
    }
    fn watch(&self) -> Watch {
        self.inner.watch()
    }
    async fn subscribe(&self, routes: &[Route]) -> Result<(), HostError> {
        self.inner.subscribe(routes).await
    }
    async fn hear_out(&self) -> Result<(), HostError> {
        self.inner.hear_out().await
    }
    async fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, HostError> {
        self.inner.scan(cursor, limit).await
    }
    fn set_listening(&self, on: bool) {
        self.inner.set_listening(on);
    }
    async fn store_commands(&self) -> Result<u64, HostError> {
        self.inner.store_commands().await
    }
    fn facts(&self) -> HostFacts {
        self.inner.facts()
    }
}

/// Runs the rounds with one idle worker, and returns the calls of the round that took the fewest.
async fn fewest(
    host: &Noting,
    admin: &FlowFabricAdminClient,
    config: WorkerConfig,
    round: impl AsyncFn(&FlowFabricAdminClient, &Noting) -> Vec<Vec<&'static str>>,
) -> Vec<Vec<&'static str>> {
    let worker = FlowFabricWorker::connect(config).await.unwrap();
    let stop = CancellationToken::new();
    let runtime = WorkerRuntime::new(worker)
        .without_signals()
        .shutdown_on(stop.clone())
        .on("k", || async { HandlerResult::<std::io::Error>::Ok(Some(b"1".to_vec())) });
    let running = tokio::spawn(runtime.run());
    let mut best: Option<Vec<Vec<&'static str>>> = None;
    for _ in 0..ROUNDS {
        // The worker goes back to waiting.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let calls = round(admin, host).await;
        if best.as_ref().is_none_or(|best| calls.len() < best.len()) {
            best = Some(calls);
        }
    }
    stop.cancel();
    running.await.unwrap().unwrap();
    best.expect("there were rounds")
}

/// One execution, from its submission to its result.
async fn one(admin: &FlowFabricAdminClient, host: &Noting) -> Vec<Vec<&'static str>> {
    host.take();
    let id = admin.submit(NewExecution::new("default", LANE, "k")).await.unwrap();
    let result = admin.result(&id, SOON).await.unwrap();
    assert!(result.is_some(), "it ends");
    host.take()
}

/// Ten members, each after the one before it; without the submission.
async fn chain(admin: &FlowFabricAdminClient, host: &Noting) -> Vec<Vec<&'static str>> {
    let mut spec = FlowSpec::new("default", "chain").lane(LANE);
    for n in 0..10 {
        let mut member = MemberSpec::new(format!("m{n}"), "k");
        if n > 0 {
            member = member.after(format!("m{}", n - 1));
        }
        spec = spec.member(member);
    }
    host.take();
    let id = admin.submit_flow(spec).await.unwrap().flow_id;
    assert!(admin.wait_flow(&id, SOON).await.unwrap().is_some(), "it ends");
    let mut calls = host.take();
    calls.retain(|call| !call.contains(&"ff_submit_flow") && !call.contains(&"ff_budgets_of_scopes"));
    calls
}

async fn check(host: &Noting, admin: &FlowFabricAdminClient, config: WorkerConfig, way: &str) {
    let mut idle = config.clone();
    idle.worker_instance_id = ff_core::types::WorkerInstanceId::new("one");
    let calls = fewest(host, admin, idle, one).await;
    assert!(calls.len() <= 3, "{way}: one execution took {} calls: {calls:#?}", calls.len());
    let calls = fewest(host, admin, config, chain).await;
    assert!(calls.len() <= 14, "{way}: a chain of ten took {} calls: {calls:#?}", calls.len());
}

async fn directly(inner: Arc<dyn Host>, way: &str) {
    let host = Noting::over(inner);
    let engine = EmbeddedEngine::start(Arc::clone(&host) as Arc<dyn Host>).await.unwrap();
    let config = WorkerConfig::embedded(&engine, "tester", "base", "default", LANE);
    check(&host, &engine.admin(), config, way).await;
}

async fn over_http(inner: Arc<dyn Host>, way: &str) {
    let host = Noting::over(inner);
    let keys = tempfile::tempdir().unwrap();
    let options = ServerOptions::local("127.0.0.1:0".parse().unwrap(), keys.path()).unwrap();
    let server = Server::start(Arc::clone(&host) as Arc<dyn Host>, EngineOptions::default(), options).await.unwrap();
    let url = format!("http://{}", server.address());
    let admin = FlowFabricAdminClient::new(&url).unwrap();
    check(&host, &admin, WorkerConfig::http(&url, "tester", "base", "default", LANE), way).await;
    server.stop().await;
}

async fn valkey() -> (TestServer, Arc<dyn Host>) {
    let server = TestServer::start(ff_testkit::Options::default()).expect("valkey starts");
    let options = ff_backend_valkey::Options::new(server.url(), Library::shipped());
    let host = ValkeyHost::connect(options).await.expect("valkey answers");
    (server, Arc::new(host))
}

fn embedded() -> (tempfile::TempDir, Arc<dyn Host>) {
    let directory = tempfile::tempdir().unwrap();
    let options = ff_backend_embedded::Options::new(directory.path().join("store"), Library::shipped().text);
    let host = Arc::new(Embedded::open(options).unwrap());
    (directory, host)
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_work_takes_few_calls_directly() {
    let (_server, host) = valkey().await;
    directly(host, "directly on Valkey").await;
    let (_directory, host) = embedded();
    directly(host, "embedded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_work_takes_few_calls_over_http() {
    let (_server, host) = valkey().await;
    over_http(host, "over HTTP on Valkey").await;
    let (_directory, host) = embedded();
    over_http(host, "over HTTP, embedded").await;
}
