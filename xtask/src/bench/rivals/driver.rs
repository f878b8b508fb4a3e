//! FlowFabric's own driver: submits from this process, runs a worker in another one, and prints one JSON line per
//! figure.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ff_core::types::{ExecutionId, WaitpointId, WaitpointToken};
use ff_sdk::task::Signal;
use ff_sdk::{FlowFabricAdminClient, FlowFabricWorker, FlowSpec, MemberSpec, NewExecution};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::super::load::{Timed, drive};
use super::super::machine;
use super::process::{Lines, Process};
use super::worker::{self, LANE, NAMESPACE, NOOP, SIGNAL, WAIT};

/// Anything that takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(120);
/// Time between the waitpoint and its signal; by then the execution is suspended.
const BEFORE_SIGNAL: Duration = Duration::from_millis(20);

/// 256 bytes of JSON.
fn payload() -> Vec<u8> {
    format!("\"{}\"", "a".repeat(254)).into_bytes()
}

fn new_execution(kind: &str) -> NewExecution {
    let mut new = NewExecution::new(NAMESPACE, LANE, kind);
    new.fields.input = Some(payload().into());
    new
}

fn member(key: &str) -> MemberSpec {
    MemberSpec::new(key, NOOP).input(payload())
}

fn chain() -> FlowSpec {
    let members = (0..10).map(|n| match n {
        0 => member("s0"),
        n => member(&format!("s{n}")).after(format!("s{}", n - 1)),
    });
    FlowSpec::new(NAMESPACE, "chain").lane(LANE).members(members)
}

fn fan() -> FlowSpec {
    let keys: Vec<String> = (0..100).map(|n| format!("m{n}")).collect();
    let join = keys.iter().fold(member("join"), |join, key| join.after(key));
    FlowSpec::new(NAMESPACE, "fan").lane(LANE).members(keys.iter().map(|key| member(key))).member(join)
}

fn emit(figure: &str, value: f64) {
    println!("{}", json!({ "figure": figure, "value": value }));
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

struct Worker {
    process: Process,
    says: Lines,
}

impl Worker {
    fn start(spec: &Value, instance: &str) -> Result<Worker> {
        let mut spec = spec.clone();
        spec["instance"] = instance.into();
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["bench", "rivals-worker"]).arg(spec.to_string()).stdout(Stdio::piped());
        let mut process = Process::start("the worker", &mut command)?;
        let says = process.output()?;
        let worker = Worker { process, says };
        worker.hear("ready")?;
        Ok(worker)
    }

    fn tell(&mut self, command: &str) -> Result<()> {
        writeln!(self.process.input()?, "{command}").context("the worker ended early")
    }

    /// The rest of the next line that begins with this word.
    fn hear(&self, word: &str) -> Result<String> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let next = tokio::task::block_in_place(|| self.says.next(deadline));
            let line =
                next.with_context(|| format!("the worker does not print {word}"))?.context("the worker ended early")?;
            if let Some(rest) = line.strip_prefix(word) {
                return Ok(rest.trim().to_owned());
            }
        }
    }

    /// Begins to count handlers.
    fn count(&mut self, target: usize) -> Result<()> {
        self.tell(&format!("count {target}"))?;
        self.hear("counting").map(|_| ())
    }
}

/// The driver's connections and settings.
struct Driver {
    admin: FlowFabricAdminClient,
    submitters: usize,
    scale: Value,
}

impl Driver {
    async fn connect(spec: &Value) -> Result<Driver> {
        let admin = match spec["url"].as_str() {
            Some(url) => FlowFabricAdminClient::new(url)?,
            None => {
                let connected = FlowFabricWorker::connect(worker::config(spec, "submitter")?).await?;
                let admin = FlowFabricAdminClient::of(&connected);
                connected.disconnect().await?;
                admin
            }
        };
        let submitters = spec["submitters"].as_u64().context("no submitters")?;
        Ok(Driver { admin, submitters: usize::try_from(submitters)?, scale: spec["scale"].clone() })
    }

    fn scale(&self, name: &str) -> Result<usize> {
        let count = self.scale[name].as_u64().with_context(|| format!("the scale has no {name}"))?;
        Ok(usize::try_from(count)?)
    }

    /// Submits no-ops with all submitters at once. Returns the duration.
    async fn submit(&self, count: usize) -> Result<Duration> {
        let admin = self.admin.clone();
        let work = move |_, ()| {
            let admin = admin.clone();
            async move { Ok(admin.submit(new_execution(NOOP)).await?) }
        };
        Ok(drive(self.submitters, vec![(); count], work).await?.0.wall)
    }

    async fn result(&self, id: ExecutionId) -> Result<()> {
        self.admin.result(&id, LIMIT).await?.with_context(|| format!("{id} has no result after {LIMIT:?}"))?;
        Ok(())
    }

    /// Waits until the worker has run the counted handlers and their results are stored.
    async fn reached(&self, worker: &Worker) -> Result<()> {
        let ids = worker.hear("reached")?;
        let ids = ids.split(' ').map(|id| id.parse().context("the worker names no execution"));
        let ids: Vec<ExecutionId> = ids.collect::<Result<_>>()?;
        try_join_all(ids.into_iter().map(|id| self.result(id))).await?;
        Ok(())
    }

    /// Runs flows one after the other. The first tenth is warm-up.
    async fn flows(&self, count: usize, flow: fn() -> FlowSpec) -> Result<Timed> {
        self.flows_at_once(1, count.div_ceil(10), flow).await?;
        self.flows_at_once(1, count, flow).await
    }

    async fn flows_at_once(&self, at_once: usize, count: usize, flow: fn() -> FlowSpec) -> Result<Timed> {
        let admin = self.admin.clone();
        let work = move |_, ()| {
            let admin = admin.clone();
            async move {
                let id = admin.submit_flow(flow()).await?.flow_id;
                admin.wait_flow(&id, LIMIT).await?.with_context(|| format!("flow {id} did not end in {LIMIT:?}"))?;
                Ok(())
            }
        };
        Ok(drive(at_once, vec![(); count], work).await?.0)
    }

    async fn idle(&self, count: usize) -> Result<Timed> {
        let admin = self.admin.clone();
        let work = move |_, ()| {
            let admin = admin.clone();
            async move {
                let id = admin.submit(new_execution(NOOP)).await?;
                admin.result(&id, LIMIT).await?.with_context(|| format!("{id} has no result after {LIMIT:?}"))?;
                Ok(())
            }
        };
        Ok(drive(1, vec![(); count], work).await?.0)
    }

    /// Suspends one execution and signals it. Returns the time from the submission to its token, and from the signal to
    /// its result.
    async fn wait(&self, worker: &Worker) -> Result<(Duration, Duration)> {
        let began = Instant::now();
        let id = self.admin.submit(new_execution(WAIT)).await?;
        let admin = self.admin.clone();
        let result = tokio::spawn(async move { admin.result(&id, LIMIT).await });
        let said = worker.hear("waits")?;
        let waiting = began.elapsed();
        let (waitpoint, token) = said.split_once(' ').context("the worker names no token")?;
        let waitpoint: WaitpointId = waitpoint.parse().context("the worker names no waitpoint")?;
        let signal = Signal {
            signal_name: SIGNAL.to_owned(),
            signal_category: String::new(),
            payload: Some(payload()),
            source_type: String::new(),
            source_identity: String::new(),
            idempotency_key: None,
            waitpoint_token: WaitpointToken::new(token),
        };
        tokio::time::sleep(BEFORE_SIGNAL).await;
        let signalled = Instant::now();
        let admin = self.admin.clone();
        let delivered = tokio::spawn(async move { admin.deliver_signal(&id, &waitpoint, signal).await });
        result.await??.with_context(|| format!("{id} has no result after {LIMIT:?}"))?;
        let resumed = signalled.elapsed();
        delivered.await??;
        Ok((waiting, resumed))
    }
}

/// Measures everything, in the same order as the other drivers.
pub async fn run(spec: &Value) -> Result<()> {
    // The bench holds the other end. When it closes, no process reads the figures any more.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1)
    });
    let driver = Driver::connect(spec).await?;
    let (tasks, warm_up) = (driver.scale("tasks")?, driver.scale("warm_up")?);

    let mut warm = Worker::start(spec, "warm")?;
    warm.tell("begin")?;
    warm.count(warm_up)?;
    driver.submit(warm_up).await?;
    driver.reached(&warm).await?;
    tokio::task::block_in_place(|| warm.process.stop())?;

    emit("submit_per_s", tasks as f64 / driver.submit(tasks).await?.as_secs_f64());

    let mut worker = Worker::start(spec, "worker")?;
    worker.count(tasks)?;
    let mut pids = vec![("client", std::process::id()), ("worker", worker.process.pid())];
    for name in ["store", "server"] {
        if let Some(pid) = spec["pids"][name].as_u64() {
            pids.push((name, u32::try_from(pid)?));
        }
    }
    let used = || pids.iter().map(|(_, pid)| machine::cpu_seconds(*pid)).collect::<Result<Vec<f64>>>();
    let before = used()?;
    let began = Instant::now();
    worker.tell("begin")?;
    driver.reached(&worker).await?;
    let took = began.elapsed();
    let mut total = 0.0;
    for (((name, _), before), after) in pids.iter().zip(before).zip(used()?) {
        let each = (after - before) * 1_000.0 / tasks as f64;
        total += each;
        emit(&format!("cpu_{name}"), each);
    }
    emit("cpu_total", total);
    emit("drain_per_s", tasks as f64 / took.as_secs_f64());

    worker.count(tasks)?;
    let began = Instant::now();
    driver.submit(tasks).await?;
    driver.reached(&worker).await?;
    emit("end_to_end_per_s", tasks as f64 / began.elapsed().as_secs_f64());

    let idle = driver.scale("idle")?;
    driver.idle(idle.div_ceil(10)).await?;
    let times = driver.idle(idle).await?;
    emit("idle_p50_ms", milliseconds(times.quantile(0.5)));
    emit("idle_p99_ms", milliseconds(times.quantile(0.99)));

    emit("chain_p50_ms", milliseconds(driver.flows(driver.scale("chains")?, chain).await?.quantile(0.5)));
    let chains = driver.flows_at_once(driver.submitters, driver.scale("chains_at_once")?, chain).await?;
    emit("chains_per_s", chains.per_second());

    let (mut signals, mut waits) = (Vec::new(), Vec::new());
    for _ in 0..driver.scale("signals")? {
        let (waiting, resumed) = driver.wait(&worker).await?;
        signals.push(resumed);
        waits.push(waiting + resumed);
    }
    for (name, mut each) in [("signal_p50_ms", signals), ("wait_p50_ms", waits)] {
        each.sort_unstable();
        emit(name, milliseconds(Timed { count: each.len(), wall: Duration::ZERO, each }.quantile(0.5)));
    }

    emit("fan_p50_ms", milliseconds(driver.flows(driver.scale("fans")?, fan).await?.quantile(0.5)));
    emit("groups_per_s", driver.flows_at_once(driver.submitters, driver.scale("groups")?, fan).await?.per_second());
    tokio::task::block_in_place(|| worker.process.stop())
}
