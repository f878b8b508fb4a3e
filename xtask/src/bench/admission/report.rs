//! The figures of admission as a Markdown page and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::super::page::{Head, Table, grouped, percent, sample, verdict};
use super::super::phases::INPUT_BYTES;
use super::super::sample::Sample;
use super::blocked::Blocked;
use super::runs::{Attached, Figures};

struct Figure {
    store: &'static str,
    attached: Attached,
    drained: Sample,
    end_to_end: Sample,
    /// Both rates as a share of the rates with nothing attached, round by round.
    drained_share: Sample,
    end_to_end_share: Sample,
    cpu_here: Sample,
    cpu_server: Sample,
    store_commands: Sample,
    calls: Sample,
    /// Calls of each function per execution, in the last round.
    functions: BTreeMap<&'static str, f64>,
}

/// All results of the bench.
pub struct Report {
    pub head: Head,
    pub blocked: Vec<(&'static str, Blocked)>,
    tasks: usize,
    figures: Vec<Figure>,
}

impl Report {
    pub fn new(head: Head, tasks: usize) -> Report {
        Report { head, blocked: Vec::new(), tasks, figures: Vec::new() }
    }

    /// Adds a round's figures. Within a round, those with nothing attached come first.
    pub fn note(&mut self, store: &'static str, attached: Attached, found: Figures) {
        let place = |figures: &[Figure], attached| {
            figures.iter().position(|figure| (figure.store, figure.attached) == (store, attached))
        };
        let plain = place(&self.figures, Attached::Nothing).filter(|_| attached != Attached::Nothing);
        let last = |sample: &Sample| sample.runs().last().copied().unwrap_or(f64::NAN);
        let (drained, end_to_end) = plain.map_or((found.drained, found.end_to_end), |index| {
            (last(&self.figures[index].drained), last(&self.figures[index].end_to_end))
        });
        let index = place(&self.figures, attached).unwrap_or_else(|| {
            self.figures.push(Figure {
                store,
                attached,
                drained: Sample::default(),
                end_to_end: Sample::default(),
                drained_share: Sample::default(),
                end_to_end_share: Sample::default(),
                cpu_here: Sample::default(),
                cpu_server: Sample::default(),
                store_commands: Sample::default(),
                calls: Sample::default(),
                functions: BTreeMap::new(),
            });
            self.figures.len() - 1
        });
        let figure = &mut self.figures[index];
        figure.drained.add(found.drained);
        figure.end_to_end.add(found.end_to_end);
        figure.drained_share.add(found.drained / drained);
        figure.end_to_end_share.add(found.end_to_end / end_to_end);
        figure.cpu_here.add(found.cpu.0);
        figure.cpu_server.add(found.cpu.1);
        figure.store_commands.add(found.store_commands);
        figure.calls.add(found.calls.values().sum());
        figure.functions = found.calls;
    }

    /// The Markdown page.
    pub fn markdown(&self) -> String {
        let mut page = String::new();
        let what =
            format!("{INPUT_BYTES}-byte input, 4 workers of 32 slots that complete tasks at once, default settings");
        self.head.write(&mut page, &what, "shares of one run and store commands");
        let tasks = grouped(self.tasks as f64);
        let _ = writeln!(
            page,
            "### {tasks} executions with something attached, until all have ended and nothing is held any more\n"
        );
        let mut table = Table::new(&[
            "store",
            "attached",
            "drained/s",
            "share",
            "end to end/s",
            "share",
            "spread of share",
            "at least",
            "",
            "CPU s per 1_000",
            "of the store",
            "calls each",
            "store commands each",
        ]);
        for figure in &self.figures {
            let least = figure.attached.share_min();
            table.row(vec![
                figure.store.to_owned(),
                figure.attached.name().to_owned(),
                grouped(figure.drained.median()),
                percent(figure.drained_share.median()),
                grouped(figure.end_to_end.median()),
                percent(figure.end_to_end_share.median()),
                percent(figure.end_to_end_share.spread()),
                least.map_or_else(String::new, percent),
                least.map_or_else(String::new, |least| {
                    if figure.end_to_end_share.median() >= least { "within" } else { "BELOW" }.to_owned()
                }),
                format!("{:.2}", figure.cpu_here.median()),
                format!("{:.2}", figure.cpu_server.median()),
                format!("{:.1}", figure.calls.median()),
                format!("{:.1}", figure.store_commands.median()),
            ]);
        }
        table.write(&mut page);
        self.write_blocked(&mut page);
        page
    }

    fn write_blocked(&self, page: &mut String) {
        for (store, blocked) in &self.blocked {
            let _ = writeln!(
                page,
                "### {} executions blocked on one budget, {store}\n",
                grouped(blocked.executions as f64)
            );
            let mut table = Table::new(&["", "calls", "at most", "", "seconds"]);
            for step in &blocked.steps {
                table.row(vec![
                    step.name.to_owned(),
                    step.calls.to_string(),
                    step.at_most.map_or_else(String::new, |most| most.to_string()),
                    step.at_most.map_or_else(String::new, |most| verdict(step.calls <= most)),
                    step.seconds.map_or_else(String::new, |seconds| format!("{seconds:.1}")),
                ]);
            }
            table.write(page);
        }
    }

    /// Every figure of every run.
    pub fn json(&self) -> Value {
        json!({
            "head": self.head.json(),
            "executions": self.tasks,
            "attached": self.figures.iter().map(|figure| json!({
                "store": figure.store,
                "attached": figure.attached.name(),
                "drained_per_second": sample(&figure.drained),
                "drained_share": sample(&figure.drained_share),
                "end_to_end_per_second": sample(&figure.end_to_end),
                "end_to_end_share": sample(&figure.end_to_end_share),
                "share_at_least": figure.attached.share_min(),
                "cpu_s_per_1000_here": sample(&figure.cpu_here),
                "cpu_s_per_1000_store": sample(&figure.cpu_server),
                "calls": sample(&figure.calls),
                "calls_by_function": figure.functions,
                "store_commands": sample(&figure.store_commands),
            })).collect::<Vec<_>>(),
            "blocked": self.blocked.iter().map(|(store, blocked)| json!({
                "store": store,
                "executions": blocked.executions,
                "steps": blocked.steps.iter().map(|step| json!({
                    "step": step.name,
                    "calls": step.calls,
                    "at_most": step.at_most,
                    "seconds": step.seconds,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        })
    }
}
