//! A server that is killed again and again while workers run under quotas and a budget: no limit is passed by one, everything
//! ends, and what was accepted is what is used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::kit::{Server, out};
use ff_backend_embedded::Embedded;
use ff_backend_valkey::ValkeyHost;
use ff_engine::{Engine, EngineOptions};
use ff_script::{Host, Library};
use ff_testkit::{Aof, TestServer};
use serde_json::{Value, json};
use uuid::Uuid;

const COUNT: usize = 150;
const WORKERS: usize = 8;
const CAP: i64 = 4;
const RATE: usize = 12;
const WINDOW_MS: i64 = 1_000;
const LEASE_MS: i64 = 2_000;
/// How long the server runs before each of its deaths.
const LIVES_MS: [u64; 6] = [150, 400, 900, 50, 700, 250];
const SOON: Duration = Duration::from_secs(180);

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("it fits")
}

/// Talks to whichever server runs now.
#[derive(Clone)]
struct Line {
    client: reqwest::Client,
    url: Arc<RwLock<String>>,
}

impl Line {
    fn to(server: &Server) -> Line {
        let client = reqwest::Client::builder()
            .tls_built_in_root_certs(false)
            .timeout(Duration::from_secs(10))
            .build()
            .expect("a client");
        Line { client, url: Arc::new(RwLock::new(server.url.clone())) }
    }

    fn moved_to(&self, server: &Server) {
        *self.url.write().expect("a lock") = server.url.clone();
    }

    /// One try; nothing when the server did not answer.
    async fn once(&self, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let url = format!("{}{path}", self.url.read().expect("a lock"));
        let request = match body {
            Some(body) => self.client.post(url).header("content-type", "application/json").body(body.to_string()),
            None => self.client.get(url),
        };
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let body = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
        // A server that is about to go, or that cannot reach its store, has not decided anything.
        (status != 503).then_some((status, body))
    }

    /// Tries until somebody answers.
    async fn ask(&self, path: &str, body: Option<&Value>) -> (u16, Value) {
        loop {
            if let Some(answer) = self.once(path, body).await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(path, Some(body)).await;
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }
}

/// What all workers have in common, and what they saw.
struct Yard {
    line: Line,
    budget: String,
    stop: AtomicBool,
    /// From a claim to its end, or to the end of the lease of a worker that died.
    held: Mutex<Vec<(i64, i64)>>,
    mourned: Mutex<BTreeSet<String>>,
    /// Moments at which a worker could die; every twelfth one does.
    moments: AtomicUsize,
    /// What settled reservations used.
    settled: AtomicI64,
    completed: AtomicUsize,
}

fn fence_of(task: &Value) -> Value {
    json!({"attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"]})
}

/// True when the lease is over: another worker goes on.
fn lost(status: u16, answer: &Value) -> bool {
    let code = answer["code"].as_str().unwrap_or_default();
    let late = ["stale_lease", "lease_expired", "execution_not_active", "reservation_not_found"];
    status >= 400 && late.contains(&code)
}

impl Yard {
    fn dies(&self, task: &Value) -> bool {
        let id = task["execution_id"].as_str().expect("an id").to_owned();
        self.moments.fetch_add(1, Ordering::SeqCst).is_multiple_of(12)
            && self.mourned.lock().expect("a lock").insert(id)
    }

    /// Reserves and settles, or reports. False when the worker died, the lease is over, or the execution was parked.
    async fn spend(&self, task: &Value) -> bool {
        let id = task["execution_id"].as_str().expect("an id");
        let attempt = format!("{id}-{}", task["lease_id"]);
        if id.as_bytes()[35].is_multiple_of(2) {
            let body = json!({"dimensions": {"tokens": 10}, "execution_id": id, "fence": fence_of(task), "dedup_key": attempt});
            let (status, answer) = self.line.ask(&format!("/v1/budgets/{}/reserve", self.budget), Some(&body)).await;
            if lost(status, &answer) {
                return false;
            }
            assert_eq!(status, 200, "{answer}");
            if answer["outcome"] == "ok" {
                if self.dies(task) {
                    return false;
                }
                let body = json!({"reservation_id": answer["reservation_id"], "dimensions": {"tokens": 6}});
                let (status, answer) = self.line.ask(&format!("/v1/budgets/{}/settle", self.budget), Some(&body)).await;
                if lost(status, &answer) {
                    return false;
                }
                assert!(answer["outcome"] == "ok" || answer["outcome"] == "already_applied", "{status} {answer}");
                self.settled.fetch_add(6, Ordering::SeqCst);
                return true;
            }
            // Nothing was left to hold: what is used is reported, and the breach parks the execution.
        }
        let body =
            json!({"fence": fence_of(task), "budget_id": self.budget, "dimensions": {"tokens": 6}, "dedup_key": id});
        let (status, answer) = self.line.ask(&format!("/v1/tasks/{id}/usage"), Some(&body)).await;
        if lost(status, &answer) {
            return false;
        }
        assert_eq!(status, 200, "{answer}");
        answer["outcome"] == "ok" || answer["outcome"] == "already_applied"
    }

    async fn work(&self, task: &Value) {
        let (since, expires) = (now_ms(), task["lease_expires_at"].as_i64().expect("a time"));
        let died = self.dies(task);
        let going = !died && self.spend(task).await;
        // Before the end is asked for, so that it lies within what the store knows as the lease.
        let until = if died { expires } else { now_ms().min(expires) };
        self.held.lock().expect("a lock").push((since, until));
        if !going || self.dies(task) {
            return;
        }
        let id = task["execution_id"].as_str().expect("an id");
        let (status, answer) =
            self.line.ask(&format!("/v1/tasks/{id}/complete"), Some(&json!({"fence": fence_of(task)}))).await;
        if !lost(status, &answer) {
            assert_eq!(status, 200, "{answer}");
            self.completed.fetch_add(1, Ordering::SeqCst);
        }
    }

    async fn worker(self: Arc<Self>, n: usize) {
        let mut instance = None;
        while !self.stop.load(Ordering::SeqCst) {
            let name = match instance.clone() {
                Some(name) => name,
                None => {
                    let name = format!("w{n}-{}", Uuid::now_v7().simple());
                    let body = json!({"worker_id": "w", "lanes": ["default"], "slots": 4});
                    if self.line.once(&format!("/v1/workers/{name}/register"), Some(&body)).await.is_none() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        continue;
                    }
                    instance = Some(name.clone());
                    name
                }
            };
            let body = json!({"wait_ms": 500, "max": 2, "lease_ttl_ms": LEASE_MS});
            let Some((200, answer)) = self.line.once(&format!("/v1/workers/{name}/claim"), Some(&body)).await else {
                instance = None;
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            for task in answer["tasks"].as_array().expect("tasks") {
                self.work(task).await;
            }
        }
    }
}

async fn submit(line: &Line, concurrency: &str, rate: &str, budget: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..COUNT {
        let mut quotas = vec![json!({"quota_id": concurrency, "key": "k"})];
        if n % 3 == 0 {
            quotas.push(json!({"quota_id": rate, "key": "k"}));
        }
        let estimate = (n % 2 == 0).then(|| json!({"tokens": 10}));
        let body = json!({"kind": "call", "quotas": quotas, "budgets": [{"budget_id": budget, "estimate": estimate}]});
        ids.push(line.post("/v1/executions", &body).await["execution_id"].as_str().expect("an id").to_owned());
    }
    ids
}

async fn tokens(line: &Line, budget: &str) -> (i64, i64, i64) {
    let shown = line.get(&format!("/v1/budgets/{budget}")).await;
    let of = |name: &str| shown["dimensions"]["tokens"][name].as_i64().expect("a number");
    (of("used"), of("held"), of("hard"))
}

/// The most intervals that overlap; one that ends when another begins does not.
fn most_at_once(intervals: &[(i64, i64)]) -> i64 {
    let mut moments: Vec<(i64, i64)> =
        intervals.iter().filter(|(from, to)| from < to).flat_map(|(from, to)| [(*from, 1), (*to, -1)]).collect();
    moments.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in moments {
        now += change;
        most = most.max(now);
    }
    most
}

/// When each execution was granted, started and ended, as the store's own record says.
struct Record {
    runs: Vec<(i64, i64)>,
    /// From the grant, or from the start when none was needed, to the start: the admission lies in between.
    starts: BTreeMap<String, Vec<(i64, i64)>>,
}

async fn record(host: Arc<dyn Host>, options: EngineOptions) -> Record {
    let engine = Engine::start(host, EngineOptions { background: false, ..options }).await.expect("an engine");
    let client = engine.operations().client();
    let (mut runs, mut starts) = (Vec::new(), BTreeMap::<String, Vec<(i64, i64)>>::new());
    for route in client.execution_routes() {
        let (mut granted, mut running) = (BTreeMap::new(), BTreeMap::new());
        let mut after: Option<String> = None;
        loop {
            let items = client.events(route, after.as_deref(), 1_000).await.expect("events");
            after = items.last().map(|event| event.id.clone());
            if after.is_none() {
                break;
            }
            for event in items {
                let Some(id) = event.execution_id.map(|id| id.to_string()) else { continue };
                match event.r#type.as_str() {
                    "execution.granted" => drop(granted.insert(id, event.at)),
                    "execution.started" => {
                        // On one machine a claim admits and starts in one call; elsewhere a grant comes first.
                        let from = granted.remove(&id).unwrap_or(event.at);
                        starts.entry(id.clone()).or_default().push((from, event.at));
                        assert_eq!(running.insert(id, event.at), None, "it started twice");
                    }
                    _ => {
                        if let Some(since) = running.remove(&id) {
                            runs.push((since, event.at));
                        }
                    }
                }
            }
        }
        assert!(running.is_empty(), "all have ended");
    }
    engine.stop().await;
    Record { runs, starts }
}

/// Starts that surely were admitted within one window: no more than the rate allows.
fn most_in_a_window(record: &Record, limited: &BTreeSet<String>) -> usize {
    let starts: Vec<(i64, i64)> =
        record.starts.iter().filter(|(id, _)| limited.contains(*id)).flat_map(|(_, all)| all.clone()).collect();
    let inside = |from: i64| starts.iter().filter(|(a, b)| *a >= from && *b < from + WINDOW_MS).count();
    starts.iter().map(|(from, _)| inside(*from)).max().unwrap_or_default()
}

/// Runs everything while the server dies; answers what the store must agree with.
async fn storm(server: &mut Server) -> (BTreeSet<String>, Arc<Yard>) {
    let line = Line::to(server);
    let quota =
        async |body: Value| line.post("/v1/quotas", &body).await["quota_id"].as_str().expect("an id").to_owned();
    let concurrency = quota(json!({"concurrency": CAP})).await;
    let rate = quota(json!({"rate": {"limit": RATE, "window_ms": WINDOW_MS}})).await;
    let budget = line.post("/v1/budgets", &json!({"dimensions": {"tokens": {"hard": 500}}})).await;
    let budget = budget["budget_id"].as_str().expect("an id").to_owned();
    let ids = submit(&line, &concurrency, &rate, &budget).await;
    let yard = Arc::new(Yard {
        line: line.clone(),
        budget: budget.clone(),
        stop: AtomicBool::new(false),
        held: Mutex::default(),
        mourned: Mutex::default(),
        moments: AtomicUsize::new(0),
        settled: AtomicI64::new(0),
        completed: AtomicUsize::new(0),
    });
    let workers: Vec<_> = (0..WORKERS).map(|n| tokio::spawn(Arc::clone(&yard).worker(n))).collect();
    for life in LIVES_MS {
        tokio::time::sleep(Duration::from_millis(life)).await;
        server.kill_and_start_again();
        line.moved_to(server);
        let (used, held, hard) = tokens(&line, &budget).await;
        assert!(used + held <= hard, "{used} used and {held} held of {hard}");
        let key = line.get(&format!("/v1/quotas/{concurrency}?key=k")).await;
        let held = key["keys"][0]["held"].as_i64().unwrap_or_default();
        assert!(held <= CAP, "{held} slots of {CAP} are held");
    }
    // What fits is used by then, or will be; the rest resumes.
    let raise = json!({"dimensions": {"tokens": {"hard": 1_000_000}}});
    let url = format!("{}/v1/budgets/{budget}", server.url);
    let raised = line.client.patch(url).header("content-type", "application/json").body(raise.to_string());
    let raised = raised.send().await.expect("an answer");
    assert_eq!(raised.status().as_u16(), 200);
    let began = tokio::time::Instant::now();
    for id in &ids {
        loop {
            let shown = line.get(&format!("/v1/executions/{id}")).await;
            if shown["state"] == "completed" {
                break;
            }
            assert!(began.elapsed() < SOON, "{id} has not ended after {SOON:?}: {shown}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    yard.stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.expect("a worker ends");
    }
    let (mut accepted, mut pending) = (0, 1);
    while pending > 0 {
        (accepted, pending) = (0, 0);
        for id in &ids {
            let usage = line.get(&format!("/v1/executions/{id}/usage")).await;
            accepted += usage["used"]["tokens"].as_i64().unwrap_or_default();
            pending += usage["pending"].as_i64().unwrap_or_default();
        }
        assert!(began.elapsed() < SOON, "{pending} reports are not answered");
    }
    loop {
        let (used, held, _) = tokens(&line, &budget).await;
        if held == 0 {
            assert_eq!(used, accepted + yard.settled.load(Ordering::SeqCst), "accepted and used differ");
            break;
        }
        assert!(began.elapsed() < SOON, "{held} are still held");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let limited = ids.iter().enumerate().filter(|(n, _)| n % 3 == 0).map(|(_, id)| id.clone()).collect();
    (limited, yard)
}

fn check(record: &Record, limited: &BTreeSet<String>, yard: &Yard) {
    let seen = most_at_once(&yard.held.lock().expect("a lock"));
    assert!(seen <= CAP, "workers saw {seen} at once");
    let stored = most_at_once(&record.runs);
    assert!(stored <= CAP, "the store had {stored} at once");
    let most = most_in_a_window(record, limited);
    assert!(most <= RATE, "{most} started in a window");
    let deaths = yard.mourned.lock().expect("a lock").len();
    eprintln!("{deaths} workers died; {seen} and {stored} at once, {most} in a window");
    assert!(deaths > 0, "nobody died");
}

fn fsck(store: &str) {
    let checked = std::process::Command::new(env!("CARGO_BIN_EXE_ff")).args(["fsck", "--store", store]).output();
    let report = out(&checked.expect("ff runs"));
    assert!(report.contains(" 0 findings"), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_embedded_server_keeps_limits_through_its_deaths() {
    if !ff_testkit::tier::is_sampled("an_embedded_server_keeps_limits_through_its_deaths", 3) {
        return;
    }
    let mut server = Server::start();
    let (limited, yard) = storm(&mut server).await;
    server.kill();
    let directory = server.directory().join("store");
    fsck(&format!("embedded:{}", directory.display()));
    let options = ff_backend_embedded::Options::new(&directory, Library::shipped().text);
    let host = Arc::new(Embedded::open(options).expect("the store opens"));
    check(&record(host, EngineOptions::default()).await, &limited, &yard);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_valkey_keeps_limits_through_its_deaths() {
    if !ff_testkit::tier::is_sampled("a_server_on_valkey_keeps_limits_through_its_deaths", 3) {
        return;
    }
    let store = valkey();
    let mut server = Server::on(tempfile::tempdir().expect("a directory"), store.url());
    let (limited, yard) = storm(&mut server).await;
    server.kill();
    fsck(&store.url());
    let host = ValkeyHost::connect(ff_backend_valkey::Options::new(store.url(), Library::shipped())).await;
    check(&record(Arc::new(host.expect("it connects")), EngineOptions::default()).await, &limited, &yard);
}

/// Under a quota of one: a worker, or a grant, that comes to nothing while the server dies.
async fn comes_back(server: &mut Server, granted: bool) {
    let line = Line::to(server);
    let quota = line.post("/v1/quotas", &json!({"concurrency": 1})).await["quota_id"].clone();
    for _ in 0..2 {
        line.post("/v1/executions", &json!({"kind": "call", "quotas": [{"quota_id": quota, "key": "k"}]})).await;
    }
    let register = json!({"worker_id": "w", "lanes": ["default"], "slots": 4});
    line.post("/v1/workers/lost/register", &register).await;
    let expires = if granted {
        let granted = line.post("/v1/workers/lost/grant", &json!({"max": 1, "grant_ttl_ms": LEASE_MS})).await;
        granted["grants"][0]["expires_at"].as_i64()
    } else {
        let claimed =
            line.post("/v1/workers/lost/claim", &json!({"max": 1, "wait_ms": 5_000, "lease_ttl_ms": LEASE_MS})).await;
        claimed["tasks"][0]["lease_expires_at"].as_i64()
    };
    let expires = expires.expect("a time");
    server.kill_and_start_again();
    line.moved_to(server);
    line.post("/v1/workers/next/register", &register).await;
    let answer =
        line.post("/v1/workers/next/claim", &json!({"max": 1, "wait_ms": 9_000, "lease_ttl_ms": 60_000})).await;
    let task = &answer["tasks"][0];
    let started = task["lease_expires_at"].as_i64().expect("a task") - 60_000;
    assert!(started >= expires, "it started {} ms before the other's time was over", expires - started);
    assert!(started <= expires + 2_000, "it started {} ms after the other's time was over", started - expires);
}

fn valkey() -> TestServer {
    TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() }).expect("valkey")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slot_of_a_worker_that_died_is_back_within_its_lease_and_two_seconds() {
    comes_back(&mut Server::start(), false).await;
    let store = valkey();
    comes_back(&mut Server::on(tempfile::tempdir().expect("a directory"), store.url()), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admission_that_nobody_claimed_is_back_within_its_grant_and_two_seconds() {
    comes_back(&mut Server::start(), true).await;
    let store = valkey();
    comes_back(&mut Server::on(tempfile::tempdir().expect("a directory"), store.url()), true).await;
}
