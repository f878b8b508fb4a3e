//! A fresh store on either host, engines and dispatchers over it, and what its events say about a lane.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_core::PartitionConfig;
use ff_core::types::ExecutionId;
use ff_engine::dispatch::{Dispatcher, DispatcherOptions, Profile, StoreAdmission};
use ff_engine::{Engine, EngineOptions, Fsck, NewExecution, Operations};
use ff_script::generated::{DefineLane, SubmitExecutionReply, Task};
use ff_script::{Client, Host, Library};
use ff_testkit::{Aof, TestServer};
use tempfile::TempDir;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use uuid::Uuid;

use crate::counted::Counted;
use ff_testkit::Tasks;

/// A test that takes longer hangs.
fn limit() -> Duration {
    Duration::from_secs(if long() { 1_800 } else { 300 })
}

/// True in the long runs.
pub fn long() -> bool {
    ff_testkit::tier::tier() == ff_testkit::tier::Tier::Long
}

const FEW: PartitionConfig = PartitionConfig { executions: 8, budgets: 2, quotas: 2, schedules: 2 };
/// The limited lane.
pub const LANE: &str = "narrow";
/// Too late to rescue a test.
const NEVER: Duration = Duration::from_secs(3_600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Embedded,
    Valkey,
}

enum Behind {
    Embedded { host: Arc<Embedded>, _directory: TempDir },
    Valkey { server: TestServer },
}

/// One store with an engine over it.
pub struct Kit {
    behind: Behind,
    host: Arc<Counted>,
    engine: Engine,
}

fn quiet(options: EngineOptions) -> EngineOptions {
    EngineOptions { partitions: Some(FEW), sweep_every: NEVER, ..options }
}

impl Kit {
    async fn open(kind: Kind) -> Kit {
        let (behind, host): (Behind, Arc<dyn Host>) = match kind {
            Kind::Embedded => {
                let directory = tempfile::Builder::new().prefix("ff-dispatch-").tempdir().unwrap();
                let mut options = ff_backend_embedded::Options::new(directory.path(), Library::shipped().text);
                options.durability = ff_backend_embedded::Durability::Relaxed;
                let host = Arc::new(Embedded::open(options).unwrap());
                (Behind::Embedded { host: host.clone(), _directory: directory }, host)
            }
            Kind::Valkey => {
                let options = ff_testkit::Options { aof: Aof::None, ..Default::default() };
                let server = TestServer::start(options).unwrap();
                let host = connect(&server).await;
                (Behind::Valkey { server }, host)
            }
        };
        let host = Counted::over(host);
        let engine = Engine::start(host.clone(), quiet(EngineOptions::default())).await.unwrap();
        Kit { behind, host, engine }
    }

    pub fn host(&self) -> Arc<dyn Host> {
        self.host.clone()
    }

    /// The calls of each function by this kit's engine and its dispatchers so far.
    pub fn calls(&self) -> BTreeMap<&'static str, usize> {
        self.host.calls()
    }

    pub fn operations(&self) -> &Operations {
        self.engine.operations()
    }

    /// Another process: an engine with its own connection, where the host has such.
    pub async fn another(&self) -> Engine {
        let host: Arc<dyn Host> = match &self.behind {
            Behind::Embedded { host, .. } => host.clone(),
            Behind::Valkey { server } => connect(server).await,
        };
        Engine::start(host, quiet(EngineOptions::default())).await.unwrap()
    }

    /// A dispatcher over this kit's engine.
    pub fn dispatcher(&self) -> Dispatcher {
        dispatcher(self.operations().clone())
    }

    /// A dispatcher whose calls go through another host.
    pub fn dispatcher_over(&self, host: Arc<dyn Host>) -> Dispatcher {
        dispatcher(Operations::new(Client::new(host, FEW)))
    }

    pub async fn limit(&self, max_active: Option<i64>) {
        let define = DefineLane::new("test".to_owned(), LANE.to_owned(), "default".to_owned());
        let define = DefineLane { max_active, clear_max_active: Some(max_active.is_none()), ..define };
        self.operations().define_lane(define).await.unwrap();
    }

    pub async fn submit(&self, kind: &str) -> ExecutionId {
        self.submit_new(NewExecution::new("default", LANE, kind)).await
    }

    pub async fn submit_new(&self, new: NewExecution) -> ExecutionId {
        match self.operations().submit(new).await {
            Ok(SubmitExecutionReply::Created { execution_id, .. }) => execution_id,
            other => panic!("not created: {other:?}"),
        }
    }

    /// How many events of this type executions had.
    pub async fn count_events(&self, kind: &str) -> usize {
        let mut count = 0;
        for route in self.operations().client().execution_routes() {
            let mut after: Option<String> = None;
            loop {
                let items = self.operations().client().events(route, after.as_deref(), 1_000).await.unwrap();
                let Some(last) = items.last() else { break };
                after = Some(last.id.clone());
                count += items.iter().filter(|event| event.r#type == kind).count();
            }
        }
        count
    }

    pub async fn complete(&self, task: &Task) {
        self.operations().client().complete(task.execution_id, ff_engine::fence_of(task), None).await.unwrap();
    }

    /// How many executions of the lane ran at once, at most, as the store's own record says. Ends come before starts of the
    /// same millisecond, and what began and ended in one is passed over: its clock is too coarse to tell.
    pub async fn most_at_once(&self) -> usize {
        let mut moments: Vec<(i64, i32)> = Vec::new();
        for route in self.operations().client().execution_routes() {
            let mut after: Option<String> = None;
            let mut running: BTreeMap<ExecutionId, i64> = BTreeMap::new();
            loop {
                let items = self.operations().client().events(route, after.as_deref(), 1_000).await.unwrap();
                after = items.last().map(|event| event.id.clone());
                if after.is_none() {
                    moments.extend(running.values().map(|started| (*started, 1)));
                    break;
                }
                for event in items {
                    let Some(id) = event.execution_id else { continue };
                    match event.r#type.as_str() {
                        "execution.started" => {
                            assert_eq!(running.insert(id, event.at), None, "{id} started twice");
                        }
                        "execution.completed"
                        | "execution.failed"
                        | "execution.cancelled"
                        | "execution.retried"
                        | "execution.reclaimed"
                        | "execution.yielded"
                        | "execution.delayed" => {
                            let started = running.remove(&id).filter(|started| *started < event.at);
                            moments.extend(started.iter().flat_map(|started| [(*started, 1), (event.at, -1)]));
                        }
                        _ => {}
                    }
                }
            }
        }
        moments.sort_unstable();
        let (mut now, mut most) = (0_i32, 0_i32);
        for (_, change) in moments {
            now += change;
            most = most.max(now);
        }
        usize::try_from(most).unwrap()
    }
}

fn dispatcher(operations: Operations) -> Dispatcher {
    Dispatcher::start(
        operations.clone(),
        Arc::new(StoreAdmission::new(operations)),
        DispatcherOptions { sweep_every: NEVER },
    )
}

/// A dispatcher of another process.
pub fn dispatcher_of(engine: &Engine) -> Dispatcher {
    dispatcher(engine.operations().clone())
}

async fn connect(server: &TestServer) -> Arc<dyn Host> {
    let mut options = ff_backend_valkey::Options::new(server.url(), Library::shipped());
    options.durability = Some(ff_backend_valkey::Durability::None);
    Arc::new(ValkeyHost::connect(options).await.unwrap())
}

/// A worker of the limited lane.
pub fn worker(instance: &str, capabilities: &[&str], lease_ttl_ms: i64) -> Profile {
    Profile {
        namespace: "default".to_owned(),
        lanes: vec![LANE.to_owned()],
        worker_id: "test".to_owned(),
        instance: instance.to_owned(),
        capabilities: capabilities.iter().map(|&token| token.to_owned()).collect(),
        kinds: None,
        lease_ttl_ms,
    }
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Claims up to `max`, waiting this long.
pub async fn claim(dispatcher: &Dispatcher, who: &Profile, max: u16, wait: Duration) -> Vec<Task> {
    dispatcher.claim(who, max, wait, Uuid::now_v7()).await.unwrap()
}

/// A condition that takes longer to become true never does.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Looks until there is something to see.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = tokio::time::Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(started.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(ms(20)).await;
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
    run_boxed(kind, Box::new(move |kit| Box::pin(test(kit))));
}

fn run_boxed(kind: Kind, test: Test<'_>) {
    show_log();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let kit = Arc::new(Kit::open(kind).await);
        tokio::time::timeout(limit(), test(Arc::clone(&kit))).await.expect("the test ends in time");
        let report = Fsck::run(kit.operations().client(), false).await.unwrap();
        assert!(report.is_clean(), "{report:?}");
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
