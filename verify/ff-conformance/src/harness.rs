//! A fresh store of any kind under virtual time, with everything a test needs.
//!
//! A store starts its own server or directory, loads the test library, and its time is [`START_MS`]. Only the test
//! moves the time. Failures of the harness itself panic, because a test cannot handle them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use ff_backend_embedded::{Embedded, VirtualClock};
use ff_backend_valkey::ValkeyHost;
use ff_core::{ErrorCode, PartitionConfig};
use ff_script::dump::{Dump, DumpValue};
use ff_script::generated::{
    CheckExecutions, CheckExecutionsReply, CheckKeys, CheckKeysReply, Finding, FireDue, FireDueReply, FixPartitions,
    PartitionDefaults,
};
use ff_script::{Call, Client, Counted, Error, Host, Invocation, Library, Route, ScanCursor};
use ff_testkit::tier::{Tier, is_sampled, tier};
use ff_testkit::{Aof, ClusterOptions, ServerBinary, TestCluster, TestServer};
use rmpv::Value;
use tempfile::TempDir;

/// The virtual time at which every store starts.
pub const START_MS: i64 = 1_700_000_000_000;

/// Number of partitions of each family. It is small, so that a test can read all of them.
pub const PARTITIONS: PartitionConfig = PartitionConfig { executions: 4, budgets: 2, quotas: 2, schedules: 2 };

/// The hosts the suite runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// In-process, Lua over LMDB.
    Embedded,
    /// One Valkey server.
    Valkey,
    /// Three Valkey primaries.
    Cluster,
    /// One Redis server.
    Redis,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Embedded, Kind::Valkey, Kind::Cluster, Kind::Redis];

    /// The name of this kind in `FF_HOSTS`.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Embedded => "embedded",
            Kind::Valkey => "valkey",
            Kind::Cluster => "cluster",
            Kind::Redis => "redis",
        }
    }

    /// The kinds in `FF_HOSTS` (`embedded,valkey`). If it is not set, the kinds of the tier: Redis and a whole cluster
    /// belong to the wide tier.
    pub fn from_env() -> Vec<Kind> {
        match std::env::var("FF_HOSTS") {
            Ok(list) => list
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .map(|word| {
                    let known = Kind::ALL.into_iter().find(|kind| kind.as_str() == word);
                    known.unwrap_or_else(|| {
                        panic!("FF_HOSTS names {word:?}; known are embedded, valkey, cluster, redis")
                    })
                })
                .collect(),
            Err(_) if tier() == Tier::Quick => vec![Kind::Embedded, Kind::Valkey],
            Err(_) => Kind::ALL.to_vec(),
        }
    }

    /// True if the suite should run on this kind; prints a note if not.
    pub fn is_wanted(self) -> bool {
        let wanted = Kind::from_env().contains(&self);
        if !wanted {
            eprintln!("skipped: {} belongs neither to this tier nor to FF_HOSTS", self.as_str());
        }
        wanted
    }
}

/// In the quick tier, one of this number of areas runs on a cluster.
const CLUSTER_SHARE: u64 = 10;

/// The concrete host of a store, and the values that must live as long as it.
enum Behind {
    Embedded { host: Arc<Embedded>, clock: Arc<VirtualClock>, _directory: TempDir },
    Server { host: Arc<ValkeyHost>, server: TestServer },
    Cluster { host: Arc<ValkeyHost>, cluster: TestCluster },
}

/// An empty store with fixed partitions and its own virtual time.
pub struct Store {
    kind: Kind,
    behind: Behind,
    client: Client,
    now_ms: AtomicI64,
    minted: AtomicU64,
}

impl Store {
    /// Starts a store of this kind.
    pub async fn open(kind: Kind) -> Store {
        Store::open_with(kind, library()).await
    }

    /// Starts a store of this kind with other limits in its library, for bounds that are too large to reach in a test.
    pub async fn open_with_limits(kind: Kind, limits: &[(&str, u32)]) -> Store {
        let mut library = library();
        for (name, limit) in limits {
            let at = library.text.find(&format!("{name} = ")).unwrap_or_else(|| panic!("no limit {name}"));
            let digits = at + name.len() + 3;
            let end = digits + library.text[digits..].find(',').expect("a limit ends with a comma");
            library.text.replace_range(digits..end, &limit.to_string());
        }
        Store::open_with(kind, library).await
    }

    async fn open_with(kind: Kind, library: Library) -> Store {
        let behind = match kind {
            Kind::Embedded => embedded(library),
            Kind::Valkey => server(ServerBinary::valkey().expect("valkey-server is installed"), library).await,
            Kind::Redis => server(ServerBinary::redis().expect("redis-server is installed"), library).await,
            Kind::Cluster => cluster(library).await,
        };
        let host: Arc<dyn Host> = match &behind {
            Behind::Embedded { host, .. } => host.clone(),
            Behind::Server { host, .. } | Behind::Cluster { host, .. } => host.clone(),
        };
        let client = Client::new(host, PARTITIONS).without_visits();
        let store = Store { kind, behind, client, now_ms: AtomicI64::new(START_MS), minted: AtomicU64::new(0) };
        store.fix_partitions().await;
        store
    }

    /// Empties a store on a server for the next test. An embedded store is opened anew instead.
    pub async fn wipe(&self) {
        let servers: Vec<&TestServer> = match &self.behind {
            Behind::Embedded { .. } => panic!("an embedded store is opened anew"),
            Behind::Server { server, .. } => vec![server],
            Behind::Cluster { cluster, .. } => cluster.primaries().iter().map(|member| &member.server).collect(),
        };
        for server in servers {
            server.command::<String>(&["FLUSHALL"]).expect("FLUSHALL");
        }
        self.host().set_listening(false);
        self.now_ms.store(START_MS, Ordering::SeqCst);
        self.minted.store(0, Ordering::SeqCst);
        self.fix_partitions().await;
    }

    async fn fix_partitions(&self) {
        let counts = PartitionDefaults {
            executions: i64::from(PARTITIONS.executions),
            budgets: i64::from(PARTITIONS.budgets),
            quotas: i64::from(PARTITIONS.quotas),
            schedules: i64::from(PARTITIONS.schedules),
        };
        self.call(Route::Config, &FixPartitions::new(counts)).await.expect("the partitions are fixed");
    }

    /// Which host it runs on.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn host(&self) -> &Arc<dyn Host> {
        self.client.host()
    }

    /// The embedded host, if it is one, for faults and backups.
    pub fn embedded(&self) -> Option<&Arc<Embedded>> {
        match &self.behind {
            Behind::Embedded { host, .. } => Some(host),
            Behind::Server { .. } | Behind::Cluster { .. } => None,
        }
    }

    /// The server, if the store runs on one.
    pub fn server(&self) -> Option<&TestServer> {
        match &self.behind {
            Behind::Server { server, .. } => Some(server),
            Behind::Embedded { .. } | Behind::Cluster { .. } => None,
        }
    }

    /// A typed client at the store's current time.
    pub fn client(&self) -> Client {
        self.client.at(self.now())
    }

    /// The same client, but its operations visit other partitions. `None` where those are on other nodes.
    pub fn visiting(&self) -> Option<Client> {
        let client = Client::new(Arc::clone(self.client.host()), PARTITIONS);
        client.admits_in_claims().then(|| client.at(self.now()))
    }

    /// The store's time in milliseconds.
    pub fn now(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    /// Moves the time forward.
    pub fn advance(&self, ms: i64) {
        self.go_to(self.now() + ms);
    }

    /// Moves the time to this moment.
    pub fn go_to(&self, ms: i64) {
        self.now_ms.store(ms, Ordering::SeqCst);
        if let Behind::Embedded { clock, .. } = &self.behind {
            clock.set_ms(ms);
        }
    }

    /// All partitions of executions.
    pub fn routes(&self) -> impl Iterator<Item = Route> + use<> {
        self.client.execution_routes()
    }

    /// A number that this store has not returned before. Ids are derived from it, so two stores create the same ids.
    pub fn next_number(&self) -> u64 {
        self.minted.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Runs one function at the store's time.
    pub async fn call<C: Call>(&self, route: Route, call: &C) -> Result<C::Reply, Error> {
        self.client().call(route, call).await
    }

    /// Runs one function and counts the store calls it made.
    pub async fn counted<C: Call>(&self, route: Route, call: &C) -> Result<Counted<C::Reply>, Error> {
        self.client().call_counted(route, call).await
    }

    /// Runs a function with arbitrary arguments and returns the undecoded reply, for calls that a typed client cannot
    /// make.
    pub async fn raw(&self, route: Route, function: &'static str, read_only: bool, args: &Value) -> Value {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, args).expect("writing to memory cannot fail");
        let reply = self.bytes(route, function, read_only, bytes).await;
        as_map(&reply)
    }

    /// Runs one function at the store's time and returns the undecoded reply.
    pub async fn reply<C: Call>(&self, route: Route, call: &C) -> Value {
        as_map(&self.reply_bytes(route, call).await)
    }

    /// Runs one function at the store's time and returns the bytes of the reply.
    pub async fn reply_bytes<C: Call>(&self, route: Route, call: &C) -> Vec<u8> {
        self.bytes(route, C::FUNCTION, C::READ_ONLY, call.encode()).await
    }

    async fn bytes(&self, route: Route, function: &'static str, read_only: bool, args: Vec<u8>) -> Vec<u8> {
        let invocation = Invocation {
            route,
            function,
            read_only,
            args,
            now_ms: Some(self.now()),
            count_calls: false,
            terms: ff_script::Terms::default(),
        };
        self.host().call(invocation).await.unwrap_or_else(|error| panic!("{function} on {route}: {error}"))
    }

    /// The content of the whole store.
    pub async fn dump(&self) -> Dump {
        ff_script::dump::ordered(match &self.behind {
            Behind::Embedded { host, .. } => {
                let dump = host.dump().await.expect("an embedded store dumps");
                dump.into_iter().map(|(key, value)| (key, plain(value))).collect()
            }
            Behind::Server { host, .. } | Behind::Cluster { host, .. } => host.dump().await.expect("a server dumps"),
        })
    }

    /// The content of the whole store without streams. It must be equal if only events happened.
    pub async fn dump_without_streams(&self) -> Dump {
        let mut dump = self.dump().await;
        dump.retain(|key, value| {
            let counts_events = key.starts_with("ff:events:") && key.ends_with(":count");
            !matches!(value, DumpValue::Stream(_)) && !counts_events
        });
        dump
    }

    /// All broken invariants of the whole store.
    pub async fn fsck(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for route in self.routes() {
            let mut offset = 0;
            loop {
                let page = CheckExecutions { offset, limit: 64, repair: false };
                let CheckExecutionsReply::Checked { findings, looked, more, .. } =
                    self.call(route, &page).await.expect("records are checked");
                found.extend(findings);
                offset += looked;
                if !more {
                    break;
                }
            }
        }
        let (mut keys, mut cursor) = (Vec::new(), ScanCursor::Start);
        while cursor != ScanCursor::End {
            let page = self.host().scan(cursor, 1_000).await.expect("keys are scanned");
            keys.extend(page.keys);
            cursor = page.next;
        }
        for route in self.every_route() {
            let tag = route.tag().expect("a partition has a tag");
            let own: Vec<_> =
                keys.iter().filter(|key| contains(key, tag.as_bytes())).map(|key| key.clone().into()).collect();
            for chunk in own.chunks(500) {
                let call = CheckKeys { keys: chunk.to_vec(), repair: false };
                let CheckKeysReply::Checked { findings, foreign } =
                    self.call(route, &call).await.expect("keys are checked");
                assert_eq!(foreign, 0, "keys of {route} were taken for another partition's");
                found.extend(findings);
            }
        }
        found
    }

    /// Panics if an invariant is broken, and lists all of them.
    pub async fn assert_sound(&self) {
        let findings = self.fsck().await;
        let lines: Vec<String> = findings
            .iter()
            .map(|finding| {
                format!("{} {}: {}", finding.invariant, String::from_utf8_lossy(&finding.key), finding.problem)
            })
            .collect();
        assert!(lines.is_empty(), "broken invariants on {}:\n{}", self.kind.as_str(), lines.join("\n"));
    }

    /// Fires the due timers of one partition until none is left. Returns their number.
    pub async fn fire_due(&self, route: Route) -> i64 {
        let mut sum = 0;
        for _ in 0..10_000 {
            let call = FireDue { limit: 64, draw: 500 };
            let reply = self.call(route, &call).await.expect("due timers are fired");
            let FireDueReply::Fired { count, more, .. } = reply;
            sum += count;
            if !more {
                return sum;
            }
        }
        panic!("{route} still has due timers after 10000 rounds");
    }

    fn every_route(&self) -> impl Iterator<Item = Route> + use<> {
        let client = &self.client;
        let apart = client.quota_routes().chain(client.budget_routes()).chain(client.schedule_routes());
        self.routes().chain(apart).chain([Route::Fleet])
    }

    /// Fires the due timers of every partition, including quotas and the fleet. Returns their number.
    pub async fn fire_all(&self) -> i64 {
        let mut sum = 0;
        for route in self.every_route() {
            sum += self.fire_due(route).await;
        }
        sum
    }
}

/// The library under test: the test bundle, or the file in `FF_LIBRARY`, which shows that the suite fails on a known
/// defect.
fn library() -> Library {
    let mut library = Library::test();
    if let Ok(path) = std::env::var("FF_LIBRARY") {
        library.text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("FF_LIBRARY names {path}: {error}"));
    }
    library
}

fn embedded(library: Library) -> Behind {
    let directory = tempfile::Builder::new().prefix("ff-conformance-").tempdir().expect("a directory for a store");
    let clock = Arc::new(VirtualClock::at_ms(START_MS));
    let mut options = ff_backend_embedded::Options::new(directory.path(), library.text);
    options.clock = clock.clone();
    options.strict = true;
    options.durability = ff_backend_embedded::Durability::Relaxed;
    options.reserve_bytes = 0;
    let host = Arc::new(Embedded::open(options).expect("an embedded store opens"));
    Behind::Embedded { host, clock, _directory: directory }
}

async fn server(binary: ServerBinary, library: Library) -> Behind {
    let options = ff_testkit::Options { binary: Some(binary), aof: Aof::None, ..ff_testkit::Options::default() };
    let server = TestServer::start(options).expect("a server starts");
    let host = Arc::new(connect(server.url(), library).await);
    Behind::Server { host, server }
}

async fn cluster(library: Library) -> Behind {
    let options = ClusterOptions { aof: Aof::None, ..ClusterOptions::default() };
    let cluster = TestCluster::start(options).expect("a cluster starts");
    let host = Arc::new(connect(cluster.url(), library).await);
    Behind::Cluster { host, cluster }
}

async fn connect(url: String, library: Library) -> ValkeyHost {
    let mut options = ff_backend_valkey::Options::new(url, library);
    options.durability = Some(ff_backend_valkey::Durability::None);
    ValkeyHost::connect(options).await.expect("the host connects")
}

fn plain(value: ff_backend_embedded::DumpValue) -> DumpValue {
    match value {
        ff_backend_embedded::DumpValue::Hash(fields) => DumpValue::Hash(fields),
        ff_backend_embedded::DumpValue::Zset(members) => DumpValue::Zset(members),
        ff_backend_embedded::DumpValue::String(bytes) => DumpValue::String(bytes),
        ff_backend_embedded::DumpValue::Stream(entries) => DumpValue::Stream(
            entries.into_iter().map(|((ms, sequence), fields)| (format!("{ms}-{sequence}"), fields)).collect(),
        ),
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// The code of a refusal. Panics if the call succeeded or the host failed.
#[track_caller]
pub fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ErrorCode {
    match &outcome {
        Err(error) => code_of(error).unwrap_or_else(|| panic!("no code in {error:?}")),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// The code of a refusal.
pub fn code_of(error: &Error) -> Option<ErrorCode> {
    match error {
        Error::Engine(error) => error.error_code(),
        _ => None,
    }
}

/// Runs a test on one kind of host, if it is wanted, and checks every invariant of the store afterwards.
///
/// Takes a boxed test, so that it is compiled once, not per test.
pub fn run_on(kind: Kind, test: Test) {
    if !kind.is_wanted() {
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let store = Arc::new(Store::open(kind).await);
        test(store.clone()).await;
        store.assert_sound().await;
    });
}

/// A test that gets a store.
pub type Test = fn(Arc<Store>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// One test of the suite with its name, for running many on one store.
pub type Named = (&'static str, Test);

/// Runs all tests of an area on one cluster, emptied before each one, because a cluster takes seconds to start.
///
/// Continues after a failure, and names every test that failed.
pub fn run_on_one_cluster(area: &str, tests: &[Named]) {
    // Starting a cluster takes seconds. The quick tier does it for a few areas, different ones each day.
    let smoke = std::env::var_os("FF_HOSTS").is_none() && tier() == Tier::Quick && is_sampled(area, CLUSTER_SHARE);
    if !smoke && !Kind::Cluster.is_wanted() {
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let store = Arc::new(Store::open(Kind::Cluster).await);
        let mut failed = Vec::new();
        for (name, test) in tests {
            eprintln!("{name} on a cluster");
            store.wipe().await;
            let running = (store.clone(), test(store.clone()));
            let outcome = tokio::spawn(async move {
                running.1.await;
                running.0.assert_sound().await;
            });
            if outcome.await.is_err() {
                failed.push(*name);
            }
        }
        assert!(failed.is_empty(), "failed on a cluster: {failed:?}");
    });
}

/// Creates one test per kind of host from each `async fn name(store) { … }`; `store` is an empty [`Store`] in an `Arc`.
///
/// Used once per area. On a cluster the tests of an area share one cluster, and are a single test, `on_a_cluster`.
#[macro_export]
macro_rules! for_each_host {
    ( $( $(#[$meta:meta])* async fn $name:ident($store:ident) $body:block )+ ) => {
        $(
            $(#[$meta])*
            mod $name {
                #[allow(unused_imports, reason = "a test need not use everything its file imports")]
                use super::*;

                pub fn test($store: std::sync::Arc<$crate::Store>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
                    Box::pin(async move $body)
                }

                #[test]
                fn embedded() { $crate::harness::run_on($crate::Kind::Embedded, test) }
                #[test]
                fn valkey() { $crate::harness::run_on($crate::Kind::Valkey, test) }
                #[test]
                fn redis() { $crate::harness::run_on($crate::Kind::Redis, test) }
            }
        )+

        #[test]
        fn on_a_cluster() {
            $crate::harness::run_on_one_cluster(module_path!(), &[ $( (stringify!($name), $name::test), )+ ]);
        }
    };
}

/// A reply as a map: `is` and `ok`, or `err` and `detail`.
fn as_map(mut reply: &[u8]) -> Value {
    let mut next = || rmpv::decode::read_value(&mut reply).unwrap_or(Value::Nil);
    let (names, values) = match next() {
        Value::Boolean(false) => (["err", "detail"], [next(), next()]),
        variant => (["is", "ok"], [variant, next()]),
    };
    Value::Map(names.into_iter().map(Value::from).zip(values).collect())
}
