//! `ff bench`: what this installation does per second, and how long one execution takes when nothing else is going on.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use ff_sdk::runtime::{HandlerResult, WorkerRuntime};
use ff_sdk::{FlowFabricWorker, WorkerConfig};
use ff_server::{Server, ServerOptions};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::client::{Api, Output, OutputArgs, ServerArgs, say, text};
use crate::store::{StoreAddress, open};

const KIND: &str = "bench";
/// How many executions one request of a batch carries.
const BATCH: u64 = 500;
/// How often the slow measurements are repeated at most.
const ONE_BY_ONE: usize = 500;
const IDLE: usize = 100;
/// Ended executions are kept this long.
const RETENTION_MS: u64 = 60_000;

/// Measures this installation: submitting one by one and in batches, draining with one worker process, and the time from submission
/// to result when nothing else is going on.
///
/// The work has a lane of its own, which is empty afterwards. Each measurement ends after --seconds. With --store the store is opened in
/// this process, which serves it meanwhile; without, the running server is measured, whatever else it does.
#[derive(Args)]
#[command(after_help = "Example:
  ff bench
  ff bench --store embedded:/tmp/bench --count 20000 -o json")]
pub struct Bench {
    /// Opens this store instead of asking a server.
    #[arg(long)]
    store: Option<StoreAddress>,
    /// How many executions are submitted in batches and drained.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,
    /// How many the worker holds at once.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    slots: u16,
    /// How long one measurement may take.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// One row.
#[derive(Debug, Default, PartialEq)]
struct Measured {
    what: &'static str,
    count: u64,
    took: Duration,
    /// Single times, where they were taken.
    each: Vec<Duration>,
}

impl Measured {
    fn per_second(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64().max(1e-9)
    }

    fn quantile(&self, part: f64) -> Option<f64> {
        let mut sorted = self.each.clone();
        sorted.sort();
        let last = sorted.len().checked_sub(1)?;
        let place = (last as f64 * part).round() as usize;
        Some(sorted[place.min(last)].as_secs_f64() * 1_000.0)
    }

    fn json(&self) -> Value {
        json!({
            "measurement": self.what, "count": self.count, "took_ms": self.took.as_millis() as u64,
            "per_second": self.per_second(), "p50_ms": self.quantile(0.5), "p99_ms": self.quantile(0.99),
        })
    }

    fn row(&self) -> String {
        let ms = |part: f64| self.quantile(part).map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2} ms"));
        let (rate, what) = (self.per_second(), self.what);
        format!("{what:24}  {:>8}  {rate:>10.0}/s  {:>10}  {:>10}", self.count, ms(0.5), ms(0.99))
    }
}

impl Bench {
    /// Prints the table.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let Some(address) = &self.store else {
            let api = Api::new(&self.server)?;
            self.measure(&api, self.server.url(), Some(&self.server)).await?;
            return Ok(ExitCode::SUCCESS);
        };
        let keys = tempfile::tempdir().context("cannot make a directory for the keys")?;
        let (host, engine) = open(address, None).await?;
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::start(host, engine, ServerOptions::local(listen, keys.path())?).await?;
        let url = format!("http://{}", server.address());
        let measured = self.measure(&Api::anonymous(&url, None)?, &url, None).await;
        server.stop().await;
        measured.map(|()| ExitCode::SUCCESS)
    }

    async fn measure(&self, api: &Api, url: &str, server: Option<&ServerArgs>) -> anyhow::Result<()> {
        let facts = api.get("/v1/capabilities", &[]).await?.accepted()?.json()?;
        let lane = format!("bench-{:08x}", rand::random::<u32>());
        let measured = self.measurements(api, url, server, &lane).await;
        // Whatever a measurement left when its time was over.
        let left = json!({ "lane": lane, "reason": "the measurement is over", "limit": 10_000 }).to_string();
        while api.post("/v1/executions:cancel", left.clone()).await?.accepted()?.json()?["next_cursor"].is_string() {}
        let measured = measured?;
        let store = &facts["store"];
        if self.output.output == Output::Json {
            let rows: Vec<Value> = measured.iter().map(Measured::json).collect();
            return say(
                &json!({ "url": url, "version": facts["version"], "store": store, "measurements": rows }).to_string()
            );
        }
        let version = text(&facts["version"]);
        say(&format!(
            "FlowFabric {version} at {url}, {} store ({})",
            text(&store["kind"]),
            text(&store["durability"])
        ))?;
        say(&format!("{:24}  {:>8}  {:>12}  {:>10}  {:>10}", "", "COUNT", "RATE", "P50", "P99"))?;
        measured.iter().try_for_each(|row| say(&row.row()))
    }

    async fn measurements(
        &self,
        api: &Api,
        url: &str,
        server: Option<&ServerArgs>,
        lane: &str,
    ) -> anyhow::Result<Vec<Measured>> {
        let one = json!({ "kind": KIND, "lane": lane, "input": {"n": 1}, "retention_ms": RETENTION_MS }).to_string();
        let one_by_one = self.one_by_one(api, &one).await?;
        let (batches, last) = self.batches(api, &one).await?;
        let done = Arc::new(Done::default());
        let worker = self.worker(url, server, lane).await?;
        let stop = CancellationToken::new();
        let counting = Arc::clone(&done);
        let runtime = WorkerRuntime::new(worker).without_signals().shutdown_on(stop.clone()).on(KIND, move || {
            let counting = Arc::clone(&counting);
            async move {
                counting.one();
                HandlerResult::<std::io::Error>::Ok(Some(b"1".to_vec()))
            }
        });
        let began = Instant::now();
        let running = tokio::spawn(runtime.run());
        let all = one_by_one.count + batches.count;
        let measured = async {
            let drained = self.drained(api, &done, all, &last, began).await?;
            let idle = if drained.count == all { Some(self.idle(api, &one).await?) } else { None };
            Ok::<_, anyhow::Error>((drained, idle))
        }
        .await;
        stop.cancel();
        running.await.context("the worker ended badly")??;
        let (drained, idle) = measured?;
        Ok([one_by_one, batches, drained].into_iter().chain(idle).collect())
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    async fn one_by_one(&self, api: &Api, body: &str) -> anyhow::Result<Measured> {
        let began = Instant::now();
        let mut each = Vec::new();
        while each.len() < ONE_BY_ONE && began.elapsed() < self.time() {
            let sent = Instant::now();
            api.post("/v1/executions", body.to_owned()).await?.accepted()?;
            each.push(sent.elapsed());
        }
        Ok(Measured { what: "submit one by one", count: each.len() as u64, took: began.elapsed(), each })
    }

    /// Submits in batches; answers the ids of the last one too.
    async fn batches(&self, api: &Api, body: &str) -> anyhow::Result<(Measured, Vec<String>)> {
        let began = Instant::now();
        let (mut count, mut last) = (0, Vec::new());
        while count < self.count && began.elapsed() < self.time() {
            let some = BATCH.min(self.count - count);
            let lines = format!("{body}\n").repeat(usize::try_from(some)?);
            let reply = api.post("/v1/executions:batch", lines).await?.accepted()?;
            last.clear();
            for line in reply.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let answer: Value = serde_json::from_slice(line)?;
                let Some(id) = answer["execution_id"].as_str() else { bail!("a submission was refused: {answer}") };
                last.push(id.to_owned());
            }
            count += some;
        }
        Ok((Measured { what: "submit in batches", count, took: began.elapsed(), each: Vec::new() }, last))
    }

    async fn worker(&self, url: &str, server: Option<&ServerArgs>, lane: &str) -> anyhow::Result<FlowFabricWorker> {
        let mut config =
            WorkerConfig::http(url, "bench", lane, "default", lane).with_max_concurrent_tasks(usize::from(self.slots));
        if let Some(server) = server {
            config = server.equip(config)?;
        }
        FlowFabricWorker::connect(config).await.context("cannot register the worker")
    }

    /// Waits until the worker has run everything, or the time is over.
    async fn drained(
        &self,
        api: &Api,
        done: &Done,
        all: u64,
        last: &[String],
        began: Instant,
    ) -> anyhow::Result<Measured> {
        let left = self.time().saturating_sub(began.elapsed());
        let whole = tokio::time::timeout(left, done.reach(all)).await.is_ok();
        let mut took = began.elapsed();
        if whole {
            // The handlers have run; what they answered is to be true as well.
            for id in last {
                let path = format!("/v1/executions/{id}/result");
                api.get(&path, &[("wait_ms", "10000".to_owned())]).await?.accepted()?;
            }
            took = began.elapsed();
        }
        let count = if whole { all } else { done.count() };
        Ok(Measured { what: "drain", count, took, each: Vec::new() })
    }

    async fn idle(&self, api: &Api, body: &str) -> anyhow::Result<Measured> {
        let began = Instant::now();
        let mut each = Vec::new();
        while each.len() < IDLE && began.elapsed() < self.time() {
            let sent = Instant::now();
            let answer = api.post("/v1/executions", body.to_owned()).await?.accepted()?.json()?;
            let path = format!("/v1/executions/{}/result", text(&answer["execution_id"]));
            api.get(&path, &[("wait_ms", "10000".to_owned())]).await?.accepted()?;
            each.push(sent.elapsed());
        }
        Ok(Measured { what: "idle: submit to result", count: each.len() as u64, took: began.elapsed(), each })
    }
}

/// Counts what was run, and wakes whoever waits for a number.
#[derive(Default)]
struct Done {
    count: AtomicU64,
    changed: Notify,
}

impl Done {
    fn one(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_one();
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    async fn reach(&self, count: u64) {
        while self.count() < count {
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_rates_and_times() {
        let each: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        let measured = Measured { what: "submit one by one", count: 100, took: Duration::from_secs(2), each };
        assert_eq!(measured.row(), "submit one by one              100          50/s    51.00 ms    99.00 ms");
        let plain = Measured { what: "drain", count: 0, took: Duration::ZERO, each: Vec::new() };
        assert_eq!(plain.row(), "drain                            0           0/s           -           -");
    }
}
