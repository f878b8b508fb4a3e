//! The figures of flows as a Markdown page and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::load::Timed;
use super::super::page::{Head, Table, percent, sample, verdict};
use super::super::sample::Sample;

/// The measured step, with the time that half of the runs must stay within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Chain,
    SubmitFan,
    Fan,
    SubmitWideFan,
    WideFan,
    Stop,
    Cancel,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Chain => "chain of 10, submitted → over",
            Step::SubmitFan => "fan-out of 100 with a join, submitted",
            Step::Fan => "fan-out of 100 with a join, submitted → over",
            Step::SubmitWideFan => "fan-out of 1_000 with a join, submitted",
            Step::WideFan => "fan-out of 1_000 with a join, submitted → over",
            Step::Stop => "cancel of 1_000, none can be claimed",
            Step::Cancel => "cancel of 1_000, all are cancelled",
        }
    }

    fn ms_max(self) -> Option<f64> {
        match self {
            Step::Chain => Some(60.0),
            Step::Cancel => Some(300.0),
            _ => None,
        }
    }
}

struct Figure {
    store: &'static str,
    step: Step,
    p50_ms: Sample,
    worst_ms: Sample,
}

/// All results of the bench.
pub struct Report {
    pub head: Head,
    figures: Vec<Figure>,
    /// Store, width of a fan-out, and commands per member.
    costs: Vec<(&'static str, usize, Sample)>,
}

impl Report {
    pub fn new(head: Head) -> Report {
        Report { head, figures: Vec::new(), costs: Vec::new() }
    }

    /// Adds the time of each run of a step.
    pub fn note(&mut self, store: &'static str, step: Step, mut each: Vec<Duration>) {
        each.sort_unstable();
        let timed = Timed { count: each.len(), wall: each.iter().sum(), each };
        let found = self.figures.iter().position(|figure| (figure.store, figure.step) == (store, step));
        let index = found.unwrap_or_else(|| {
            self.figures.push(Figure { store, step, p50_ms: Sample::default(), worst_ms: Sample::default() });
            self.figures.len() - 1
        });
        self.figures[index].p50_ms.add(timed.quantile(0.5).as_secs_f64() * 1e3);
        self.figures[index].worst_ms.add(timed.quantile(1.0).as_secs_f64() * 1e3);
    }

    /// Adds the number of store commands per member of a fan-out.
    pub fn note_cost(&mut self, store: &'static str, width: usize, per_member: f64) {
        match self.costs.iter_mut().find(|(name, of, _)| (*name, *of) == (store, width)) {
            Some((_, _, sample)) => sample.add(per_member),
            None => {
                let mut sample = Sample::default();
                sample.add(per_member);
                self.costs.push((store, width, sample));
            }
        }
    }

    /// The Markdown page.
    pub fn markdown(&self) -> String {
        let mut page = String::new();
        let what = "one flow at a time, one worker with 64 slots that completes tasks at once, default settings";
        self.head.write(&mut page, what, "store commands");
        let _ = writeln!(page, "### Flows\n");
        let mut table = Table::new(&["", "store", "p50 ms", "worst ms", "spread of p50", "p50 below", ""]);
        for figure in &self.figures {
            let promise = figure.step.ms_max();
            table.row(vec![
                figure.step.name().to_owned(),
                figure.store.to_owned(),
                format!("{:.1}", figure.p50_ms.median()),
                format!("{:.1}", figure.worst_ms.median()),
                percent(figure.p50_ms.spread()),
                promise.map_or_else(String::new, |ms| format!("{ms:.0}")),
                promise.map_or_else(String::new, |ms| verdict(figure.p50_ms.median() < ms)),
            ]);
        }
        table.write(&mut page);
        let _ = writeln!(page, "### Store commands for each member of a fan-out, from submission to end\n");
        let mut table = Table::new(&["members", "store", "commands"]);
        for (store, width, commands) in &self.costs {
            table.row(vec![(width + 2).to_string(), (*store).to_owned(), format!("{:.1}", commands.median())]);
        }
        table.write(&mut page);
        page
    }

    /// Every figure of every run.
    pub fn json(&self) -> Value {
        json!({
            "head": self.head.json(),
            "steps": self.figures.iter().map(|figure| json!({
                "store": figure.store,
                "step": figure.step.name(),
                "p50_ms": sample(&figure.p50_ms),
                "worst_ms": sample(&figure.worst_ms),
                "p50_ms_below": figure.step.ms_max(),
            })).collect::<Vec<_>>(),
            "store_commands_per_member": self.costs.iter().map(|(store, width, commands)| json!({
                "store": store,
                "members": width + 2,
                "commands": sample(commands),
            })).collect::<Vec<_>>(),
        })
    }
}
