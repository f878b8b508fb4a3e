//! A server on a free port over a fresh store of either host, and a plain HTTP client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_core::PartitionConfig;
use ff_engine::{Engine, EngineOptions};
use ff_keys::{BearerToken, Keys, Source};
use ff_script::{Host, Library};
use ff_server::{Auth, CONNECTIONS_MAX, Server, ServerOptions, Times, WebhookOptions};
use ff_testkit::{Aof, TestServer};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::described::{self, Exchange};

/// A test that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(300);
/// A condition that takes longer to become true never does.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Few partitions: a look at all of them is quick.
const FEW: PartitionConfig = PartitionConfig { executions: 8, budgets: 2, quotas: 2, schedules: 2 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Embedded,
    Valkey,
}

enum Behind {
    Embedded { directory: TempDir },
    Valkey { server: TestServer },
}

/// One store with a server over it.
pub struct Kit {
    behind: Behind,
    host: Arc<dyn Host>,
    engine: EngineOptions,
    /// Where the keys are, and nothing else.
    secrets: TempDir,
    /// The root token of servers that ask for one.
    root: BearerToken,
    times: Times,
    server: tokio::sync::Mutex<Option<Server>>,
}

/// A server that waits for little, over a library whose registrations last three seconds: for tests of what happens after a wait.
pub fn hurried() -> (Library, Times) {
    let ms = Duration::from_millis;
    let times = Times {
        head: ms(1_000),
        body: ms(2_000),
        reader: ms(3_000),
        grace: ms(500),
        keep_alive: ms(1_000),
        registered: ms(3_000),
        beat: ms(1_000),
        ..Times::default()
    };
    let mut library = Library::shipped();
    library.text = library.text.replacen("worker_ttl_ms = 30000", "worker_ttl_ms = 3000", 1);
    assert_ne!(library.text, Library::shipped().text, "the limit has another name");
    (library, times)
}

impl Kit {
    async fn open(kind: Kind, (library, times): (Library, Times)) -> Kit {
        let (host, behind, engine): (Arc<dyn Host>, Behind, EngineOptions) = match kind {
            Kind::Embedded => {
                let directory = tempfile::Builder::new().prefix("ff-http-").tempdir().expect("a directory for a store");
                let mut options = ff_backend_embedded::Options::new(directory.path(), library.text);
                options.durability = ff_backend_embedded::Durability::Relaxed;
                let host = Embedded::open(options).expect("an embedded store opens");
                (Arc::new(host), Behind::Embedded { directory }, EngineOptions::default())
            }
            Kind::Valkey => {
                let server = TestServer::start(ff_testkit::Options { aof: Aof::None, ..Default::default() })
                    .expect("valkey starts");
                let mut options = ff_backend_valkey::Options::new(server.url(), library);
                options.durability = Some(ff_backend_valkey::Durability::None);
                let host = ValkeyHost::connect(options).await.expect("the host connects");
                (Arc::new(host), Behind::Valkey { server }, EngineOptions::default())
            }
        };
        let engine = EngineOptions { partitions: Some(FEW), ..engine };
        let secrets = tempfile::Builder::new().prefix("ff-keys-").tempdir().expect("a directory for keys");
        let kit = Kit {
            behind,
            host,
            engine,
            secrets,
            root: BearerToken::mint(),
            times,
            server: tokio::sync::Mutex::new(None),
        };
        kit.start().await;
        kit
    }

    async fn start(&self) {
        *self.server.lock().await = Some(self.another(self.keys()).await);
    }

    /// One more server over the same store, with keys of its own.
    pub async fn another(&self, keys: Keys) -> Server {
        self.serve(keys, Auth::Nobody).await
    }

    /// One more server over the same store that asks for tokens, and its root's client.
    pub async fn guarded(&self) -> (Server, Api) {
        let server = self.serve(self.keys(), Auth::Root(self.root.clone())).await;
        let root = Api::of(&server).bearing(self.root());
        (server, root)
    }

    /// The root token itself.
    pub fn root(&self) -> &str {
        self.root.reveal()
    }

    async fn serve(&self, keys: Keys, auth: Auth) -> Server {
        self.serve_with(keys, auth, &[], CONNECTIONS_MAX).await
    }

    /// One more server over the same store that holds so many connections.
    pub async fn holding(&self, connections_max: usize) -> Server {
        self.serve_with(self.keys(), Auth::Nobody, &[], connections_max).await
    }

    /// Stops the server and starts another that may send webhooks to these networks.
    pub async fn reaching(&self, networks: &[&str]) -> Api {
        self.stop().await;
        *self.server.lock().await = Some(self.serve_with(self.keys(), Auth::Nobody, networks, CONNECTIONS_MAX).await);
        self.api().await
    }

    /// One more server over the same store that serves pages of these origins, encrypted where there is a certificate.
    pub async fn outside(&self, origins: &[&str], tls: Option<ff_server::Tls>) -> Server {
        let cors_origins = origins.iter().map(|origin| origin.parse().expect("an origin")).collect();
        let options =
            ServerOptions { cors_origins, tls, ..self.options(self.keys(), Auth::Nobody, &[], CONNECTIONS_MAX) };
        Server::start(Arc::clone(&self.host), self.engine.clone(), options).await.expect("a server starts")
    }

    async fn serve_with(&self, keys: Keys, auth: Auth, networks: &[&str], connections_max: usize) -> Server {
        let options = self.options(keys, auth, networks, connections_max);
        Server::start(Arc::clone(&self.host), self.engine.clone(), options).await.expect("a server starts")
    }

    fn options(&self, keys: Keys, auth: Auth, networks: &[&str], connections_max: usize) -> ServerOptions {
        let listen = "127.0.0.1:0".parse().expect("an address");
        let allow = networks.iter().map(|network| network.parse().expect("a network")).collect();
        let webhooks = WebhookOptions { allow };
        ServerOptions {
            listen,
            auth,
            tls: None,
            behind_tls_proxy: false,
            hosts: Vec::new(),
            cors_origins: Vec::new(),
            keys,
            webhooks,
            connections_max,
            times: self.times,
        }
    }

    /// The keys of the store's servers; made when they are needed.
    pub fn keys(&self) -> Keys {
        Keys::open(Source::DataDir(self.keys_file())).expect("keys can be used")
    }

    pub fn keys_file(&self) -> PathBuf {
        self.secrets.path().join("keys")
    }

    pub fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// Where an embedded store keeps its files.
    pub fn directory(&self) -> Option<&Path> {
        match &self.behind {
            Behind::Embedded { directory } => Some(directory.path()),
            Behind::Valkey { .. } => None,
        }
    }

    /// How many connections a Valkey has, this question's included.
    pub fn store_connections(&self) -> Option<usize> {
        match &self.behind {
            Behind::Embedded { .. } => None,
            Behind::Valkey { server } => {
                let list: String = server.command(&["CLIENT", "LIST"]).expect("valkey answers");
                Some(list.lines().count())
            }
        }
    }

    /// A client of the running server.
    pub async fn api(&self) -> Api {
        Api::of(self.server.lock().await.as_ref().expect("a server runs"))
    }

    /// Stops the server and starts another over the same store.
    pub async fn restart(&self) -> Api {
        self.stop().await;
        self.start().await;
        self.api().await
    }

    pub async fn stop(&self) {
        if let Some(server) = self.server.lock().await.take() {
            server.stop().await;
        }
    }

    /// The store without a server in between.
    pub async fn tool(&self) -> Engine {
        let options = EngineOptions { background: false, ..self.engine.clone() };
        Engine::start(Arc::clone(&self.host), options).await.expect("a tool connects")
    }

    async fn broken(&self) -> Vec<String> {
        let tool = self.tool().await;
        let report = tool.operations().fsck(false).await.expect("the store is checked");
        report.findings.iter().map(|f| format!("{} {}: {}", f.invariant, f.key.0.escape_ascii(), f.problem)).collect()
    }
}

/// Shows what `RUST_LOG` names, e.g. `debug` or `warn,ff_engine=trace`, with the output of a test that fails.
fn show_log() {
    let filter: Targets = std::env::var("RUST_LOG").ok().and_then(|said| said.parse().ok()).unwrap_or_default();
    let shown = tracing_subscriber::fmt::layer().with_test_writer().with_filter(filter);
    // Another test of this process may have begun it.
    let _ = tracing_subscriber::registry().with(shown).try_init();
}

/// A test that waits for its store. Boxed, so that what runs it is compiled once and not once per test.
type Test<'a> = Box<dyn FnOnce(Arc<Kit>) -> Pin<Box<dyn Future<Output = ()> + 'a>> + 'a>;

/// Runs a test on a fresh store within the limit, and checks every invariant of what it leaves.
pub fn run<'a, F: Future<Output = ()> + 'a>(kind: Kind, test: impl FnOnce(Arc<Kit>) -> F + 'a) {
    run_boxed(kind, (Library::shipped(), Times::default()), Box::new(move |kit| Box::pin(test(kit))));
}

/// The same with a server that waits for little.
pub fn run_hurried<'a, F: Future<Output = ()> + 'a>(kind: Kind, test: impl FnOnce(Arc<Kit>) -> F + 'a) {
    run_boxed(kind, hurried(), Box::new(move |kit| Box::pin(test(kit))));
}

fn run_boxed(kind: Kind, over: (Library, Times), test: Test<'_>) {
    show_log();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let kit = Arc::new(Kit::open(kind, over).await);
        tokio::time::timeout(LIMIT, test(Arc::clone(&kit))).await.expect("the test ends in time");
        kit.stop().await;
        assert_eq!(kit.broken().await, Vec::<String>::new());
    });
}

/// Makes a test on each host of every `async fn name(kit) { … }`.
macro_rules! on_both_hosts {
    ( $( $(#[$meta:meta])* async fn $name:ident($kit:ident) $body:block )+ ) => {
        $(
            $(#[$meta])*
            mod $name {
                #[allow(unused_imports, reason = "a test need not use everything its file imports")]
                use super::*;

                async fn test($kit: std::sync::Arc<$crate::kit::Kit>) $body

                #[test]
                fn embedded() { $crate::kit::run($crate::kit::Kind::Embedded, test) }
                #[test]
                fn valkey() { $crate::kit::run($crate::kit::Kind::Valkey, test) }
            }
        )+
    };
}

/// A client that reads no list of authorities: nothing here is encrypted.
pub fn plain_client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().tls_built_in_root_certs(false)
}

/// A plain client.
#[derive(Clone)]
pub struct Api {
    pub base: String,
    pub http: reqwest::Client,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub bytes: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("text")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The answer, which must have this status.
    #[track_caller]
    pub fn with(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// The problem, which must have this status and code.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        assert_eq!(
            self.headers.get("content-type").map(|v| v.as_bytes()),
            Some(&b"application/problem+json"[..]),
            "{}",
            self.text()
        );
        let problem = self.json();
        assert_eq!((self.status, problem["code"].as_str()), (status, Some(code)), "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["request_id"].as_str(), self.headers.get("x-request-id").and_then(|v| v.to_str().ok()));
        for field in ["type", "title", "detail"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {problem}");
        }
        assert!(problem["retryable"].is_boolean());
        problem
    }
}

impl Api {
    pub fn of(server: &Server) -> Self {
        Self { base: format!("http://{}", server.address()), http: plain_client().build().expect("a client") }
    }

    /// The same client, showing this token.
    pub fn bearing(&self, token: &str) -> Self {
        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().expect("a header"));
        let http = plain_client().default_headers(headers).build().expect("a client");
        Self { base: self.base.clone(), http }
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Reply {
        let body = body.into();
        let sent = body.as_bytes().map(<[u8]>::to_vec).unwrap_or_default();
        let mut request = self.http.request(method.clone(), format!("{}{path}", self.base)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.expect("the server answers");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let bytes = answer.bytes().await.expect("the answer arrives").to_vec();
        let content_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        described::check(&Exchange { method: method.as_str(), path, sent: &sent, status, content_type, got: &bytes });
        Reply { status, headers, bytes }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(Method::POST, path, &[], body.to_string()).await
    }

    /// Submits something that must be new.
    pub async fn submit(&self, body: Value) -> String {
        let submitted = self.post("/v1/executions", body).await.with(201);
        assert_eq!(submitted["duplicate"], false);
        submitted["execution_id"].as_str().expect("an id").to_owned()
    }

    pub async fn execution(&self, id: &str) -> Value {
        self.get(&format!("/v1/executions/{id}")).await.with(200)
    }

    /// Registers a worker of the default lane.
    pub async fn register(&self, instance: &str, slots: u32) {
        let body = json!({ "worker_id": "w", "lanes": ["default"], "slots": slots });
        self.post(&format!("/v1/workers/{instance}/register"), body).await.with(200);
    }

    /// The tasks of one claim.
    pub async fn claim(&self, instance: &str, body: Value) -> Vec<Value> {
        let claimed = self.post(&format!("/v1/workers/{instance}/claim"), body).await.with(200);
        claimed["tasks"].as_array().expect("tasks").clone()
    }

    /// The one task of a claim that waits for it.
    pub async fn claim_one(&self, instance: &str) -> Value {
        let mut tasks = self.claim(instance, json!({ "max": 1, "wait_ms": 25_000 })).await;
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        tasks.remove(0)
    }

    /// What a worker does with a task.
    pub async fn task(&self, task: &Value, verb: &str, mut body: Value) -> Reply {
        body["fence"] = fence(task);
        self.post(&format!("/v1/tasks/{}/{verb}", task["execution_id"].as_str().expect("an id")), body).await
    }
}

/// The fence of a task.
pub fn fence(task: &Value) -> Value {
    json!({ "attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"] })
}

/// Looks until there is something to see; only a hang takes longer than [`PATIENCE`].
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(started.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The clients' ports of the connections to a server of this process that are established.
pub fn connected(server: SocketAddr) -> Vec<u16> {
    let port = format!(":{:04X}", server.port());
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table of connections");
    let client = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        let (_, client) = remote.split_once(':')?;
        (local.ends_with(&port) && state == "01").then(|| u16::from_str_radix(client, 16).expect("a port"))
    };
    table.lines().skip(1).filter_map(client).collect()
}

/// How many connections to a server of this process are established.
pub fn open_connections(server: SocketAddr) -> usize {
    connected(server).len()
}
