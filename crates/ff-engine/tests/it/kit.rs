//! A fresh store on either host, engines over it, and bounded waiting for what must become true.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_core::PartitionConfig;
use ff_core::error_code::ErrorCode;
use ff_core::state::PublicState;
use ff_core::types::ExecutionId;
use ff_engine::{Claimant, Cursor, Delivered, Engine, EngineOptions, Feed, FeedFilter, Fsck, NewExecution, Operations};
use ff_script::generated::{
    AdmissionReason, BlockExecution, Execution, Grant, IssueGrants, IssueGrantsReply, SubmitExecutionReply, Task,
};
use ff_script::{Error, Host, Library, Route};
use ff_testkit::Tasks;
use ff_testkit::{Aof, TestServer};
use tempfile::TempDir;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use uuid::Uuid;

/// A test that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// Few partitions, so that a test can ask each of them.
pub const FEW: PartitionConfig = PartitionConfig { executions: 8, budgets: 2, quotas: 2, schedules: 2 };

/// The lane tests use unless they say otherwise.
pub const LANE: &str = "default";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Embedded,
    Valkey,
}

enum Behind {
    Embedded { host: Arc<Embedded>, _directory: TempDir },
    Valkey { server: TestServer },
}

/// One store.
pub struct Kit {
    pub kind: Kind,
    behind: Behind,
    host: Arc<dyn Host>,
}

impl Kit {
    pub async fn open(kind: Kind) -> Kit {
        match kind {
            Kind::Embedded => {
                let directory =
                    tempfile::Builder::new().prefix("ff-engine-").tempdir().expect("a directory for a store");
                let mut options = ff_backend_embedded::Options::new(directory.path(), library().text);
                options.durability = ff_backend_embedded::Durability::Relaxed;
                let host = Arc::new(Embedded::open(options).expect("an embedded store opens"));
                Kit { kind, host: host.clone(), behind: Behind::Embedded { host, _directory: directory } }
            }
            Kind::Valkey => {
                let options = ff_testkit::Options { aof: Aof::None, ..Default::default() };
                let server = TestServer::start(options).expect("valkey starts");
                let host = connect(&server).await;
                Kit { kind, host, behind: Behind::Valkey { server } }
            }
        }
    }

    /// The store's first host.
    pub fn host(&self) -> Arc<dyn Host> {
        Arc::clone(&self.host)
    }

    /// A host as another process would have it; an embedded store has one process, so it is the same there.
    pub async fn another_host(&self) -> Arc<dyn Host> {
        match &self.behind {
            Behind::Embedded { host, .. } => host.clone(),
            Behind::Valkey { server, .. } => connect(server).await,
        }
    }

    /// The server, on Valkey.
    pub fn server(&self) -> Option<&TestServer> {
        match &self.behind {
            Behind::Embedded { .. } => None,
            Behind::Valkey { server, .. } => Some(server),
        }
    }

    fn options(&self) -> EngineOptions {
        match self.kind {
            Kind::Embedded => EngineOptions::default(),
            Kind::Valkey => EngineOptions::default(),
        }
    }

    /// An engine with few partitions on the first host.
    pub async fn engine(&self) -> Engine {
        self.engine_on(self.host()).await
    }

    /// An engine with few partitions on this host, whose sweeps come too late to rescue a test.
    pub async fn engine_on(&self, host: Arc<dyn Host>) -> Engine {
        let sweep_every = Duration::from_secs(3_600);
        let options = EngineOptions { partitions: Some(FEW), sweep_every, ..self.options() };
        Engine::start(host, options).await.expect("an engine starts")
    }

    /// An engine as a user starts it: with as many partitions as the host's default.
    pub async fn plain_engine(&self) -> Engine {
        Engine::start(self.host(), self.options()).await.expect("an engine starts")
    }

    /// Operations without an engine, as a worker or a tool makes them.
    pub async fn tool(&self, host: Arc<dyn Host>) -> Engine {
        Engine::start(host, EngineOptions { background: false, ..self.options() }).await.expect("a tool connects")
    }

    /// Every broken invariant, as lines.
    pub async fn broken(&self) -> Vec<String> {
        let tool = self.tool(self.host()).await;
        let report = Fsck::run(tool.operations().client(), false).await.expect("the store is checked");
        shown(&report)
    }
}

/// The shipped library, whose second looks come sooner.
fn library() -> Library {
    let mut library = Library::shipped();
    for limit in ["usage_again_ms", "reservation_asked_after_ms"] {
        let (slow, soon) = (format!("{limit} = 5000"), format!("{limit} = 500"));
        assert!(library.text.contains(&slow), "{limit} has another value");
        library.text = library.text.replacen(&slow, &soon, 1);
    }
    library
}

async fn connect(server: &TestServer) -> Arc<dyn Host> {
    let mut options = ff_backend_valkey::Options::new(server.url(), library());
    options.durability = Some(ff_backend_valkey::Durability::None);
    Arc::new(ValkeyHost::connect(options).await.expect("the host connects"))
}

/// A report as lines; none when it is clean.
pub fn shown(report: &Fsck) -> Vec<String> {
    let findings = report.findings.iter().map(|finding| {
        format!("{} {}: {}", finding.invariant, String::from_utf8_lossy(&finding.key.0), finding.problem)
    });
    findings.chain(report.foreign.iter().map(|key| format!("foreign {key}"))).collect()
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
    run_boxed(kind, Box::new(move |kit| Box::pin(test(kit))));
}

fn run_boxed(kind: Kind, test: Test<'_>) {
    show_log();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let kit = Arc::new(Kit::open(kind).await);
        tokio::time::timeout(LIMIT, test(Arc::clone(&kit))).await.expect("the test ends in time");
        assert_eq!(kit.broken().await, Vec::<String>::new());
    });
}

/// Makes a test on each host of every `async fn name(kit) { … }`.
#[macro_export]
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

/// A condition that takes longer to become true never does.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Looks until there is something to see.
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

/// Waits until the execution is in this state.
pub async fn becomes(operations: &Operations, id: ExecutionId, state: PublicState) -> Execution {
    eventually(&format!("{id} becomes {state}"), async || {
        let execution = operations.describe(id).await.expect("it exists");
        (execution.state == state).then_some(execution)
    })
    .await
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A submission to the default lane.
pub fn work(kind: &str) -> NewExecution {
    NewExecution::new("default", LANE, kind)
}

/// A submission that falls into this partition.
pub fn work_in(partition: u16, kind: &str) -> NewExecution {
    work(kind).with_id(ExecutionId::mint_with_seed(partition))
}

/// Submits something that must be accepted as new.
pub async fn submit(operations: &Operations, new: NewExecution) -> ExecutionId {
    match operations.submit(new).await {
        Ok(SubmitExecutionReply::Created { execution_id, .. }) => execution_id,
        other => panic!("not created: {other:?}"),
    }
}

/// A worker of the default lane.
pub fn worker(instance: &str, lease_ttl_ms: i64) -> Claimant {
    Claimant {
        namespace: "default".to_owned(),
        lane: LANE.to_owned(),
        worker_id: "test".to_owned(),
        instance: instance.to_owned(),
        capabilities: Vec::new(),
        kinds: None,
        lease_ttl_ms,
    }
}

/// Claims up to `max` wherever there is something.
pub async fn claim(operations: &Operations, who: &Claimant, max: u16) -> Vec<Task> {
    let mut tasks = Vec::new();
    for route in operations.client().execution_routes() {
        let left = max - u16::try_from(tasks.len()).expect("a claim is small");
        if left == 0 {
            break;
        }
        tasks.extend(
            operations.claim(route, who, left.min(64), Uuid::now_v7()).await.expect("a claim is answered").tasks,
        );
    }
    tasks
}

/// Claims this execution, which must be the best of its partition.
pub async fn claim_one(operations: &Operations, who: &Claimant, id: ExecutionId) -> Task {
    let route = operations.client().route_of(&id);
    let claimed = operations.claim(route, who, 1, Uuid::now_v7()).await.expect("a claim is answered");
    assert_eq!(claimed.tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [id]);
    claimed.tasks.into_iter().next().expect("there is one")
}

/// Ends a task well.
pub async fn complete(operations: &Operations, task: &Task, result: &[u8]) {
    let fence = ff_engine::fence_of(task);
    operations.client().complete(task.execution_id, fence, Some(result.to_vec())).await.expect("it completes");
}

/// Reserves everything of the default lane in a partition that can be.
pub async fn grant_all(operations: &Operations, route: Route) -> Vec<Grant> {
    let mut all = Vec::new();
    loop {
        let call = IssueGrants {
            namespace: "default".to_owned(),
            lane: LANE.to_owned(),
            instance: "w1".to_owned(),
            capabilities: Vec::new(),
            kinds: None,
            max: 64,
            lease_ids: None,
            ttl_ms: 60_000,
            grant_ids: (0..64).map(|_| Uuid::now_v7()).collect(),
        };
        match operations.client().call(route, &call).await.expect("grants are issued") {
            IssueGrantsReply::Granted { grants, .. } if grants.is_empty() => return all,
            IssueGrantsReply::Granted { grants, .. } => all.extend(grants),
            other => panic!("not granted: {other:?}"),
        }
    }
}

/// Records that admission refused a grant.
pub async fn block(operations: &Operations, grant: &Grant, reason: AdmissionReason, facts: &[(&str, String)]) {
    let detail = facts.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect();
    let call = BlockExecution::new(detail, grant.execution_id, grant.grant_id, reason);
    let call = BlockExecution { unheld: Some(true), ..call };
    let client = operations.client();
    client.call(client.route_of(&grant.execution_id), &call).await.expect("it is blocked");
}

/// The code of a refusal.
#[track_caller]
pub fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ErrorCode {
    match outcome {
        Err(Error::Engine(error)) => error.error_code().unwrap_or_else(|| panic!("no code in {error:?}")),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Reads a feed until it has brought `enough`.
pub async fn drain(feed: &mut Feed, mut enough: impl FnMut(&[Delivered]) -> bool) -> Vec<Delivered> {
    let (mut all, started) = (Vec::new(), Instant::now());
    while !enough(&all) {
        assert!(started.elapsed() < PATIENCE, "not enough came within {PATIENCE:?}: {all:#?}");
        all.extend(feed.next(Duration::from_secs(1)).await.expect("the feed is read"));
    }
    all
}

/// Reads a feed until everything that has happened was read and nothing came for `quiet`.
pub async fn drain_quiet(feed: &mut Feed, quiet: Duration) -> Vec<Delivered> {
    let mut all = Vec::new();
    loop {
        let some = feed.next(quiet).await.expect("the feed is read");
        if some.is_empty() && feed.is_caught_up() {
            return all;
        }
        all.extend(some);
    }
}

/// A feed of everything from the start.
pub fn all_events(engine: &Engine) -> Feed {
    engine.feed(FeedFilter::default(), Cursor::start())
}
