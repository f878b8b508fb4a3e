//! The figures as a Markdown page and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::page::{Head, Table, grouped, percent, reached, sample, verdict};
use super::super::sample::Sample;
use super::throughput::Throughput;
use super::waiting;
use super::world::{INPUT_BYTES, Via};

/// The maximum median in ms until an idle worker starts new work.
const START_P50_MAX: f64 = 5.0;
const START_P99_MAX: f64 = 25.0;
/// The maximum wait (p99) in ms of work that a free worker can run.
const WAIT_P99_MAX: f64 = 1_000.0;

/// The minimum rate of one worker over HTTP, as a share of its rate without a server.
const HTTP_SHARE_MIN: f64 = 1.0 / 3.0;
/// The maximum store commands per second of a server with waiting workers.
const WAITING_MAX: f64 = 5.0;

/// The times within which certain shares completed.
#[derive(Default)]
struct Times {
    p50_ms: Sample,
    p99_ms: Sample,
    most_ms: Sample,
}

impl Times {
    fn add(&mut self, sorted: &[Duration]) {
        let at = |share: f64| {
            let index = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
            sorted.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        self.p50_ms.add(at(0.50));
        self.p99_ms.add(at(0.99));
        self.most_ms.add(at(1.0));
    }

    fn json(&self) -> Value {
        json!({ "p50_ms": sample(&self.p50_ms), "p99_ms": sample(&self.p99_ms), "most_ms": sample(&self.most_ms) })
    }
}

#[derive(Default)]
struct Rates {
    submitted: Sample,
    drained: Sample,
    end_to_end: Sample,
    cpu_here: Sample,
    cpu_servers: Sample,
    store_commands: Sample,
}

/// All results of the bench.
pub struct Report {
    pub head: Head,
    starts: usize,
    routed: usize,
    latencies: Vec<(Via, Times)>,
    rates: Vec<((Via, usize), Rates)>,
    waits: Vec<((Via, &'static str), Times)>,
    waiting: Vec<(&'static str, f64)>,
}

/// The figure with this name; a new one is empty.
fn of<K: PartialEq, V: Default>(all: &mut Vec<(K, V)>, key: K) -> &mut V {
    let at = all.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        all.push((key, V::default()));
        all.len() - 1
    });
    &mut all[at].1
}

impl Report {
    pub fn new(head: Head, starts: usize, routed: usize) -> Report {
        let (latencies, rates, waits, waiting) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Report { head, starts, routed, latencies, rates, waits, waiting }
    }

    pub fn latency(&mut self, via: Via, times: &[Duration]) {
        of(&mut self.latencies, via).add(times);
    }

    pub fn throughput(&mut self, via: Via, workers: usize, run: Throughput) {
        let rates = of(&mut self.rates, (via, workers));
        rates.submitted.add(run.submitted);
        rates.drained.add(run.drained);
        rates.end_to_end.add(run.end_to_end);
        rates.cpu_here.add(run.cpu_here);
        rates.cpu_servers.add(run.cpu_servers);
        if let Some(commands) = run.store_commands {
            rates.store_commands.add(commands);
        }
    }

    pub fn routing(&mut self, via: Via, what: &'static str, waits: &[Duration]) {
        of(&mut self.waits, (via, what)).add(waits);
    }

    pub fn waiting(&mut self, store: &'static str, commands_per_second: f64) {
        self.waiting.push((store, commands_per_second));
    }

    /// Each rate over HTTP as a share of the rate without a server, where both were measured.
    fn shares(&self) -> Vec<(Via, usize, f64)> {
        let rate = |via: Via, workers: usize| {
            let found = self.rates.iter().find(|((of, count), _)| (*of, *count) == (via, workers));
            found.map(|(_, rates)| rates.end_to_end.median())
        };
        let over_http = self.rates.iter().filter(|((via, _), _)| via.is_http());
        over_http
            .filter_map(|((via, workers), rates)| {
                Some((*via, *workers, rates.end_to_end.median() / rate(via.direct(), *workers)?))
            })
            .collect()
    }

    /// The Markdown page.
    pub fn markdown(&self) -> String {
        let mut page = String::from("## Workers\n\n");
        self.head.write(&mut page, &format!("{INPUT_BYTES}-byte input"), "store commands");
        let _ = writeln!(page, "### An idle worker starts new work: submit to handler, {} times\n", self.starts);
        let mut table = Table::new(&["", "p50 ms", "at most", "", "p99 ms", "at most", "", "longest ms"]);
        for (via, times) in &self.latencies {
            let (p50, p99) = (times.p50_ms.median(), times.p99_ms.median());
            table.row(vec![
                via.name().to_owned(),
                format!("{p50:.2}"),
                format!("{START_P50_MAX:.0}"),
                verdict(p50 < START_P50_MAX),
                format!("{p99:.2}"),
                format!("{START_P99_MAX:.0}"),
                verdict(p99 < START_P99_MAX),
                format!("{:.2}", times.most_ms.median()),
            ]);
        }
        table.write(&mut page);
        self.write_rates(&mut page);
        self.write_shares(&mut page);
        self.write_waits(&mut page);
        self.write_waiting(&mut page);
        page
    }

    fn write_shares(&self, page: &mut String) {
        let shares = self.shares();
        if shares.is_empty() {
            return;
        }
        let _ = writeln!(page, "### Over HTTP, of the rate without a server in between, end to end\n");
        let mut table = Table::new(&["", "workers", "share", "at least", ""]);
        for (via, workers, share) in shares {
            table.row(vec![
                via.name().to_owned(),
                workers.to_string(),
                format!("{share:.2}"),
                format!("{HTTP_SHARE_MIN:.2}"),
                reached(share >= HTTP_SHARE_MIN),
            ]);
        }
        table.write(page);
    }

    fn write_waiting(&self, page: &mut String) {
        if self.waiting.is_empty() {
            return;
        }
        let _ = writeln!(page, "### A server with {} workers that wait over HTTP\n", waiting::WORKERS);
        let mut table = Table::new(&["store", "store commands/s", "at most", ""]);
        for (store, per_second) in &self.waiting {
            table.row(vec![
                (*store).to_owned(),
                format!("{per_second:.1}"),
                format!("{WAITING_MAX:.0}"),
                verdict(*per_second < WAITING_MAX),
            ]);
        }
        table.write(page);
    }

    fn write_rates(&self, page: &mut String) {
        let _ = writeln!(page, "### Submit, claim, complete through the SDK\n");
        let mut table = Table::new(&[
            "",
            "workers",
            "submitted/s",
            "drained/s",
            "end to end/s",
            "spread",
            "CPU s per 1_000, caller",
            "CPU s per 1_000, servers",
            "store commands each",
        ]);
        for ((via, workers), rates) in &self.rates {
            let commands = rates.store_commands.median();
            table.row(vec![
                via.name().to_owned(),
                workers.to_string(),
                grouped(rates.submitted.median()),
                grouped(rates.drained.median()),
                grouped(rates.end_to_end.median()),
                percent(rates.end_to_end.spread()),
                format!("{:.2}", rates.cpu_here.median()),
                format!("{:.2}", rates.cpu_servers.median()),
                if commands.is_nan() { "–".to_owned() } else { format!("{commands:.1}") },
            ]);
        }
        table.write(page);
    }

    fn write_waits(&self, page: &mut String) {
        let _ = writeln!(page, "### {} executions over 10 requirement sets, 20 workers\n", grouped(self.routed as f64));
        let mut table = Table::new(&["", "", "p50 ms", "p99 ms", "at most", "", "longest ms"]);
        for ((via, what), times) in &self.waits {
            let p99 = times.p99_ms.median();
            table.row(vec![
                via.name().to_owned(),
                (*what).to_owned(),
                format!("{:.1}", times.p50_ms.median()),
                format!("{p99:.1}"),
                format!("{WAIT_P99_MAX:.0}"),
                verdict(p99 < WAIT_P99_MAX),
                format!("{:.1}", times.most_ms.median()),
            ]);
        }
        table.write(page);
    }

    /// Every figure of every run.
    pub fn json(&self) -> Value {
        let of_times = |name: &str, times: &Times| {
            let mut value = times.json();
            value["via"] = json!(name);
            value
        };
        json!({
            "run": self.head.json(),
            "input_bytes": INPUT_BYTES,
            "idle_start": self.latencies.iter().map(|(via, times)| of_times(via.name(), times)).collect::<Vec<_>>(),
            "throughput": self.rates.iter().map(|((via, workers), rates)| json!({
                "via": via.name(),
                "workers": workers,
                "submitted_per_second": sample(&rates.submitted),
                "drained_per_second": sample(&rates.drained),
                "end_to_end_per_second": sample(&rates.end_to_end),
                "cpu_s_per_1000_caller": sample(&rates.cpu_here),
                "cpu_s_per_1000_servers": sample(&rates.cpu_servers),
                "store_commands_each": rates.store_commands.runs(),
            })).collect::<Vec<_>>(),
            "http_shares": self.shares().into_iter().map(|(via, workers, share)| json!({
                "via": via.name(), "workers": workers, "share": share, "at_least": HTTP_SHARE_MIN,
            })).collect::<Vec<_>>(),
            "waiting": self.waiting.iter().map(|(store, per_second)| json!({
                "store": store, "workers": waiting::WORKERS, "store_commands_per_second": per_second, "below": WAITING_MAX,
            })).collect::<Vec<_>>(),
            "routing": self.waits.iter().map(|((via, what), times)| {
                let mut value = of_times(via.name(), times);
                value["what"] = json!(what);
                value
            }).collect::<Vec<_>>(),
        })
    }
}
