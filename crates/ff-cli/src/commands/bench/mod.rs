//! `ff bench`: what this installation does per second, and how long one execution takes when nothing else is going on.

pub mod worker;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use ff_api::Ask;
use ff_api::executions::{
    BulkCancelBody, BulkQuery, CancelExecutions, GetResult, ResultQuery, SubmitBody, SubmitExecution, Submitted,
};
use ff_api::server::{GetCapabilities, ServerStore};
use ff_core::types::ExecutionId;
use ff_server::{Server, ServerOptions};
use serde::Serialize;
use serde_json::value::RawValue;

use self::worker::Worker;
use crate::client::{Api, ServerArgs, item};
use crate::output::{Output, OutputArgs, say};
use crate::store::{StoreAddress, open};

const KIND: &str = "bench";
/// How many executions one request of a batch carries.
const BATCH: u64 = 500;
/// How often the slow measurements are repeated at most.
const ONE_BY_ONE: usize = 500;
const IDLE: usize = 100;
/// The bytes of an execution's input.
const INPUT_BYTES: usize = 256;
/// Ended executions are kept this long.
const RETENTION_MS: i64 = 60_000;
/// How long one request waits for a result.
const RESULT_WAIT: Duration = Duration::from_secs(10);

/// Measures this installation over HTTP: how fast one worker process drains a queue, and how long an execution takes from submission to
/// result when nothing else is going on.
///
/// The worker is a process of its own, and inputs have 256 bytes. The work has lanes of its own, which are empty afterwards. Each
/// measurement ends after --seconds. With --store this process opens the store and serves it meanwhile; without, the running server is
/// measured, whatever else it does.
#[derive(Args)]
#[command(after_help = "Example:
  ff bench
  ff bench --store embedded:/tmp/bench --count 20000 -o json")]
pub struct Bench {
    /// Opens this store instead of asking a server.
    #[arg(long)]
    store: Option<StoreAddress>,
    /// How many executions are drained.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: u64,
    /// How many the worker holds at once.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    slots: u16,
    /// How long one measurement may take.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Measures submitting one by one and in batches too.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What `-o json` prints.
#[derive(Serialize)]
struct Report<'a> {
    url: &'a str,
    version: &'a str,
    store: &'a ServerStore,
    measurements: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    measurement: &'static str,
    count: u64,
    took_ms: u128,
    per_second: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
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

    fn shown(&self) -> Row {
        Row {
            measurement: self.what,
            count: self.count,
            took_ms: self.took.as_millis(),
            per_second: self.per_second(),
            p50_ms: self.quantile(0.5),
            p99_ms: self.quantile(0.99),
        }
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
        let facts = api.ask(&Ask::<GetCapabilities>::at(())).await?.value;
        let lane = format!("bench-{:08x}", rand::random::<u32>());
        let measured = self.measurements(api, url, server, &lane).await;
        // Whatever a measurement left when its time was over.
        for lane in [lane.clone(), idle_lane(&lane)] {
            cancel_all(api, &lane).await?;
        }
        let measured = measured?;
        let (version, store) = (facts.version.as_str(), &facts.store);
        if self.output.output == Output::Json {
            let measurements = measured.iter().map(Measured::shown).collect();
            return say(&serde_json::to_string(&Report { url, version, store, measurements })?);
        }
        say(&format!("FlowFabric {version} at {url}, {} store ({})", store.kind, store.durability))?;
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
        let mut rows = Vec::new();
        let mut submitted = 0;
        if self.all {
            let one_by_one = self.one_by_one(api, &body(lane)).await?;
            submitted += one_by_one.count;
            rows.push(one_by_one);
        }
        let (batches, last) = self.batches(api, &body(lane)).await?;
        submitted += batches.count;
        if self.all {
            rows.push(batches);
        }
        rows.push(self.drain(api, url, server, lane, submitted, &last).await?);
        rows.push(self.idle(api, url, server, &idle_lane(lane)).await?);
        Ok(rows)
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    async fn one_by_one(&self, api: &Api, body: &SubmitBody) -> anyhow::Result<Measured> {
        let began = Instant::now();
        let mut each = Vec::new();
        while each.len() < ONE_BY_ONE && began.elapsed() < self.time() {
            let sent = Instant::now();
            api.ask(&Ask::<SubmitExecution>::with((), body.clone())).await?;
            each.push(sent.elapsed());
        }
        Ok(Measured { what: "submit one by one", count: each.len() as u64, took: began.elapsed(), each })
    }

    /// Submits in batches; returns the ids of the last one too.
    async fn batches(&self, api: &Api, body: &SubmitBody) -> anyhow::Result<(Measured, Vec<ExecutionId>)> {
        let began = Instant::now();
        let (mut count, mut last) = (0, Vec::new());
        while count < self.count && began.elapsed() < self.time() {
            let some = BATCH.min(self.count - count);
            let lines = format!("{}\n", serde_json::to_string(body)?).repeat(usize::try_from(some)?);
            let answer = api.submit_lines(lines).await?;
            last.clear();
            for line in answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                last.push(item::<Submitted>(line).context("a submission was refused")?.execution_id);
            }
            count += some;
        }
        Ok((Measured { what: "submit in batches", count, took: began.elapsed(), each: Vec::new() }, last))
    }

    /// From a worker's first claim until everything has a result, or the time is over.
    async fn drain(
        &self,
        api: &Api,
        url: &str,
        server: Option<&ServerArgs>,
        lane: &str,
        all: u64,
        last: &[ExecutionId],
    ) -> anyhow::Result<Measured> {
        let mut worker = Worker::start(url, server, lane, self.slots).await?;
        let began = Instant::now();
        worker.begin().await?;
        let reached = tokio::time::timeout(self.time(), worker.reach(all)).await;
        let mut took = began.elapsed();
        if let Ok(reached) = reached {
            reached?;
            // The handlers have run; what they returned is to be stored as well.
            for id in last {
                wait(api, *id).await?;
            }
            took = began.elapsed();
        }
        let count = worker.done();
        if count < all {
            cancel_all(api, lane).await?;
        }
        worker.stop().await?;
        Ok(Measured { what: "drain", count, took, each: Vec::new() })
    }

    async fn idle(&self, api: &Api, url: &str, server: Option<&ServerArgs>, lane: &str) -> anyhow::Result<Measured> {
        let mut worker = Worker::start(url, server, lane, self.slots).await?;
        worker.begin().await?;
        let one = body(lane);
        let began = Instant::now();
        let mut each = Vec::new();
        while each.len() < IDLE && began.elapsed() < self.time() {
            let sent = Instant::now();
            let submitted = api.ask(&Ask::<SubmitExecution>::with((), one.clone())).await?.value;
            wait(api, submitted.execution_id).await?;
            each.push(sent.elapsed());
        }
        let took = began.elapsed();
        worker.stop().await?;
        Ok(Measured { what: "idle: submit to result", count: each.len() as u64, took, each })
    }
}

fn idle_lane(lane: &str) -> String {
    format!("{lane}-idle")
}

/// A submission.
fn body(lane: &str) -> SubmitBody {
    // A JSON text of the wanted size has two quotes.
    let input = RawValue::from_string(format!("\"{}\"", "x".repeat(INPUT_BYTES - 2))).expect("a text is JSON");
    SubmitBody {
        kind: KIND.to_owned(),
        lane: Some(lane.to_owned()),
        input: Some(input),
        retention_ms: Some(RETENTION_MS),
        ..SubmitBody::default()
    }
}

/// Waits until an execution has a result, for a while.
async fn wait(api: &Api, id: ExecutionId) -> anyhow::Result<()> {
    let query = ResultQuery { wait_ms: i64::try_from(RESULT_WAIT.as_millis()).ok() };
    api.ask_within(&Ask::<GetResult>::by(id, query), RESULT_WAIT).await?;
    Ok(())
}

/// Ends what is left in a lane.
async fn cancel_all(api: &Api, lane: &str) -> anyhow::Result<()> {
    let body = BulkCancelBody {
        lane: Some(lane.to_owned()),
        reason: Some("the measurement is over".to_owned()),
        limit: Some(10_000),
        ..BulkCancelBody::default()
    };
    let ask = Ask::<CancelExecutions> { at: (), query: BulkQuery::default(), body };
    while api.ask(&ask).await?.value.next_cursor.is_some() {}
    Ok(())
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
