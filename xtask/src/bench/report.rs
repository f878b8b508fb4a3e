//! The figures as a Markdown page and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::cost::Cost;
use super::page::{Head, Table, grouped, percent, sample, verdict};
use super::phases::{INPUT_BYTES, Phase};
use super::retained::Retained;
use super::sample::Sample;

/// One line in the table of calls.
pub struct Figure {
    pub store: &'static str,
    pub phase: Phase,
    pub in_flight: usize,
    /// Executions moved per second.
    pub per_second: Sample,
    pub p50_us: Sample,
    pub p99_us: Sample,
}

/// The cost of a cycle, apart from time.
pub struct Cycle {
    pub store: &'static str,
    pub in_flight: usize,
    /// CPU seconds per 1_000 cycles, of this process.
    pub cpu_here: f64,
    /// CPU seconds per 1_000 cycles, of the server.
    pub cpu_server: f64,
    pub store_commands: f64,
    /// Memory of the process that holds the store.
    pub memory_mib: f64,
}

/// The commands of an engine without work.
pub struct Idle {
    pub store: &'static str,
    pub per_second: f64,
}

/// An idle engine stays below this many store commands per second.
const IDLE_MAX: f64 = 5.0;

/// All results of a bench.
pub struct Report {
    pub head: Head,
    pub figures: Vec<Figure>,
    pub cycles: Vec<Cycle>,
    pub costs: Vec<(&'static str, Vec<Cost>)>,
    pub retained: Option<Retained>,
    pub idle: Vec<Idle>,
}

impl Report {
    pub fn new(head: Head) -> Report {
        Report { head, figures: Vec::new(), cycles: Vec::new(), costs: Vec::new(), retained: None, idle: Vec::new() }
    }

    /// The line of this figure; a new one is empty.
    pub fn figure(&mut self, store: &'static str, phase: Phase, in_flight: usize) -> &mut Figure {
        let found = self.figures.iter().position(|f| (f.store, f.phase, f.in_flight) == (store, phase, in_flight));
        let index = found.unwrap_or_else(|| {
            let (per_second, p50_us, p99_us) = Default::default();
            self.figures.push(Figure { store, phase, in_flight, per_second, p50_us, p99_us });
            self.figures.len() - 1
        });
        &mut self.figures[index]
    }

    fn stores(&self) -> Vec<&'static str> {
        let mut stores = Vec::new();
        for figure in &self.figures {
            if !stores.contains(&figure.store) {
                stores.push(figure.store);
            }
        }
        stores
    }

    /// The Markdown page.
    pub fn markdown(&self) -> String {
        let mut page = String::new();
        self.head.write(&mut page, &format!("{INPUT_BYTES}-byte input"), "store calls, bytes and idle commands");
        self.write_cycles(&mut page);
        for store in self.stores() {
            self.write_store(&mut page, store);
        }
        self.write_costs(&mut page);
        self.write_rest(&mut page);
        page
    }

    /// The main table.
    fn write_cycles(&self, page: &mut String) {
        let _ = writeln!(page, "### Submit, claim, complete: one cycle, three calls\n");
        let mut table = Table::new(&[
            "store",
            "in flight",
            "cycles/s",
            "spread",
            "p50 ms",
            "p99 ms",
            "CPU s per 1_000, caller",
            "CPU s per 1_000, server",
            "store commands per cycle",
            "memory MiB",
        ]);
        for figure in self.figures.iter().filter(|figure| figure.phase == Phase::Cycle) {
            let costs: Vec<&Cycle> = self
                .cycles
                .iter()
                .filter(|cycle| (cycle.store, cycle.in_flight) == (figure.store, figure.in_flight))
                .collect();
            let median = |pick: fn(&Cycle) -> f64| {
                let mut sample = Sample::default();
                costs.iter().for_each(|cycle| sample.add(pick(cycle)));
                sample.median()
            };
            table.row(vec![
                figure.store.to_owned(),
                figure.in_flight.to_string(),
                grouped(figure.per_second.median()),
                percent(figure.per_second.spread()),
                format!("{:.2}", figure.p50_us.median() / 1e3),
                format!("{:.2}", figure.p99_us.median() / 1e3),
                format!("{:.2}", median(|cycle| cycle.cpu_here)),
                format!("{:.2}", median(|cycle| cycle.cpu_server)),
                format!("{:.1}", median(|cycle| cycle.store_commands)),
                format!("{:.0}", median(|cycle| cycle.memory_mib)),
            ]);
        }
        table.write(page);
    }

    fn write_store(&self, page: &mut String, store: &str) {
        let _ = writeln!(page, "### {store}\n");
        let mut table =
            Table::new(&["", "in flight", "per second", "spread", "µs each", "p50 ms of a call", "p99 ms of a call"]);
        for figure in self.figures.iter().filter(|figure| figure.store == store && figure.phase != Phase::Cycle) {
            table.row(vec![
                figure.phase.name().to_owned(),
                figure.in_flight.to_string(),
                grouped(figure.per_second.median()),
                percent(figure.per_second.spread()),
                format!("{:.0}", 1e6 / figure.per_second.median()),
                format!("{:.2}", figure.p50_us.median() / 1e3),
                format!("{:.2}", figure.p99_us.median() / 1e3),
            ]);
        }
        table.write(page);
    }

    fn write_costs(&self, page: &mut String) {
        let _ = writeln!(page, "### Store calls of a function, common path\n");
        let mut table = Table::new(&["function", "store", "calls", "most", "budget", ""]);
        for (store, costs) in &self.costs {
            for cost in costs {
                table.row(vec![
                    cost.function.to_owned(),
                    (*store).to_owned(),
                    cost.typical().to_string(),
                    cost.most().to_string(),
                    cost.budget.to_string(),
                    verdict(cost.within()),
                ]);
            }
        }
        table.write(page);
    }

    fn write_rest(&self, page: &mut String) {
        if let Some(retained) = &self.retained {
            let _ = writeln!(
                page,
                "### Kept executions, embedded\n\n{} ended executions of {INPUT_BYTES} bytes input take {} bytes each on disk, \
                 {} in a compacted copy, which opens in {:.0} ms.\n",
                grouped(retained.executions as f64),
                grouped(retained.per_execution()),
                grouped(retained.per_execution_compacted()),
                retained.reopen_ms,
            );
        }
        if !self.idle.is_empty() {
            let _ = writeln!(page, "### Idle engine\n");
            let mut table = Table::new(&["store", "store commands/s", "at most", ""]);
            for idle in &self.idle {
                table.row(vec![
                    idle.store.to_owned(),
                    format!("{:.1}", idle.per_second),
                    format!("{IDLE_MAX:.0}"),
                    verdict(idle.per_second < IDLE_MAX),
                ]);
            }
            table.write(page);
        }
    }

    /// Every figure of every run.
    pub fn json(&self) -> Value {
        json!({
            "run": self.head.json(),
            "input_bytes": INPUT_BYTES,
            "calls": self.figures.iter().map(|figure| json!({
                "store": figure.store,
                "operation": figure.phase.name(),
                "in_flight": figure.in_flight,
                "items_per_call": figure.phase.items(),
                "per_second": sample(&figure.per_second),
                "p50_us": sample(&figure.p50_us),
                "p99_us": sample(&figure.p99_us),
            })).collect::<Vec<_>>(),
            "cycles": self.cycles.iter().map(|cycle| json!({
                "store": cycle.store,
                "in_flight": cycle.in_flight,
                "cpu_s_per_1000_caller": cycle.cpu_here,
                "cpu_s_per_1000_server": cycle.cpu_server,
                "store_commands_per_cycle": cycle.store_commands,
                "memory_mib": cycle.memory_mib,
            })).collect::<Vec<_>>(),
            "store_calls": self.costs.iter().flat_map(|(store, costs)| costs.iter().map(move |cost| json!({
                "store": store,
                "function": cost.function,
                "budget": cost.budget,
                "calls": cost.calls,
                "within": cost.within(),
            }))).collect::<Vec<_>>(),
            "retained": self.retained.as_ref().map(|retained| json!({
                "executions": retained.executions,
                "bytes": retained.bytes,
                "bytes_compacted": retained.bytes_compacted,
                "reopen_ms": retained.reopen_ms,
            })),
            "idle": self.idle.iter().map(|idle| json!({
                "store": idle.store,
                "store_commands_per_second": idle.per_second,
                "below": IDLE_MAX,
            })).collect::<Vec<_>>(),
        })
    }
}
