//! The figures of waits and streams as a Markdown page and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::super::load::Timed;
use super::super::page::{Head, Table, grouped, percent, sample, verdict};
use super::super::sample::Sample;
use super::calls::Calls;
use super::frames::{BATCH, FRAME_BYTES, TAILS};

/// The maximum median of a wait in ms.
const WAIT_P50_MS_MAX: f64 = 5.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Flush,
    Suspend,
    Signal,
    Again,
    Wait,
    Frame,
    Frames,
    FrameFull,
    FrameFollowed,
    Followed,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Flush => "4 KiB written and flushed, for comparison",
            Step::Suspend => "suspend",
            Step::Signal => "signal",
            Step::Again => "signal sent → task claimed",
            Step::Wait => "suspend → signal → task claimed",
            Step::Frame => "append 1",
            Step::Frames => "append 16",
            Step::FrameFull => "append 1 to a full stream",
            Step::FrameFollowed => "append 1, 100 tails",
            Step::Followed => "append 1 → seen by 100 tails",
        }
    }

    fn is_wait(self) -> bool {
        matches!(self, Step::Flush | Step::Suspend | Step::Signal | Step::Again | Step::Wait)
    }
}

struct Figure {
    store: &'static str,
    step: Step,
    /// Frames written per second, if the writer writes without a pause.
    per_second: Sample,
    p50_us: Sample,
    p99_us: Sample,
}

/// The cost of a stream with many readers.
pub struct Fan {
    pub store: &'static str,
    pub delivered_per_second: f64,
    pub commands_per_frame: f64,
}

/// All results of the bench.
pub struct Report {
    pub head: Head,
    figures: Vec<Figure>,
    fans: Vec<Fan>,
    pub calls: Vec<(&'static str, Vec<Calls>)>,
}

impl Report {
    pub fn new(head: Head) -> Report {
        Report { head, figures: Vec::new(), fans: Vec::new(), calls: Vec::new() }
    }

    /// Adds the time of a step.
    pub fn note_time(&mut self, store: &'static str, step: Step, timed: &Timed) {
        let found = self.figures.iter().position(|figure| (figure.store, figure.step) == (store, step));
        let index = found.unwrap_or_else(|| {
            let (per_second, p50_us, p99_us) = Default::default();
            self.figures.push(Figure { store, step, per_second, p50_us, p99_us });
            self.figures.len() - 1
        });
        let microseconds = |share| timed.quantile(share).as_secs_f64() * 1e6;
        self.figures[index].p50_us.add(microseconds(0.50));
        self.figures[index].p99_us.add(microseconds(0.99));
    }

    /// Also adds the number of frames that a writer wrote, `at_once` with each call.
    pub fn note_rate(&mut self, store: &'static str, step: Step, at_once: usize, timed: &Timed) {
        self.note_time(store, step, timed);
        let figure = self.figures.iter_mut().find(|figure| (figure.store, figure.step) == (store, step));
        figure.expect("it was just noted").per_second.add(timed.per_second() * at_once as f64);
    }

    pub fn note_fan(&mut self, fan: Fan) {
        self.fans.push(fan);
    }

    fn fan_medians(&self) -> Vec<(&'static str, Sample, Sample)> {
        let mut medians: Vec<(&'static str, Sample, Sample)> = Vec::new();
        for fan in &self.fans {
            if medians.iter().all(|(store, ..)| *store != fan.store) {
                medians.push((fan.store, Sample::default(), Sample::default()));
            }
            for (_, delivered, commands) in medians.iter_mut().filter(|(store, ..)| *store == fan.store) {
                delivered.add(fan.delivered_per_second);
                commands.add(fan.commands_per_frame);
            }
        }
        medians
    }

    /// The Markdown page.
    pub fn markdown(&self) -> String {
        let mut page = String::new();
        let what = format!("one execution at a time, {FRAME_BYTES}-byte signals and frames, default settings");
        self.head.write(&mut page, &what, "store calls and commands");
        let ms = |sample: &Sample| format!("{:.2}", sample.median() / 1e3);

        let _ = writeln!(page, "### Suspend, signal, run again\n");
        let mut table = Table::new(&["", "store", "p50 ms", "p99 ms", "spread of p50", "p50 below", ""]);
        for figure in self.figures.iter().filter(|figure| figure.step.is_wait()) {
            let whole = figure.step == Step::Wait;
            table.row(vec![
                figure.step.name().to_owned(),
                figure.store.to_owned(),
                ms(&figure.p50_us),
                ms(&figure.p99_us),
                percent(figure.p50_us.spread()),
                if whole { format!("{WAIT_P50_MS_MAX:.0}") } else { String::new() },
                if whole { verdict(figure.p50_us.median() / 1e3 < WAIT_P50_MS_MAX) } else { String::new() },
            ]);
        }
        table.write(&mut page);

        let _ = writeln!(page, "### Streams: one writer\n");
        let mut table = Table::new(&["", "store", "frames/s", "spread", "p50 ms of a call", "p99 ms of a call"]);
        for figure in self.figures.iter().filter(|figure| !figure.step.is_wait()) {
            let writes = !figure.per_second.runs().is_empty();
            table.row(vec![
                figure.step.name().to_owned(),
                figure.store.to_owned(),
                if writes { grouped(figure.per_second.median()) } else { String::new() },
                if writes { percent(figure.per_second.spread()) } else { String::new() },
                ms(&figure.p50_us),
                ms(&figure.p99_us),
            ]);
        }
        table.write(&mut page);

        let _ = writeln!(page, "### Streams: {TAILS} tails of one execution, a writer that does not wait\n");
        let mut table = Table::new(&["store", "frames delivered/s", "spread", "store commands per frame"]);
        for (store, delivered, commands) in self.fan_medians() {
            table.row(vec![
                store.to_owned(),
                grouped(delivered.median()),
                percent(delivered.spread()),
                format!("{:.1}", commands.median()),
            ]);
        }
        table.write(&mut page);

        let _ = writeln!(page, "### Store calls of a function\n");
        let mut table = Table::new(&["function", "store", "calls", "most"]);
        for (store, all) in &self.calls {
            for calls in all {
                table.row(vec![
                    calls.function.to_owned(),
                    (*store).to_owned(),
                    calls.typical().to_string(),
                    calls.most().to_string(),
                ]);
            }
        }
        table.write(&mut page);
        page
    }

    /// Every figure of every run.
    pub fn json(&self) -> Value {
        json!({
            "head": self.head.json(),
            "frame_bytes": FRAME_BYTES,
            "batch": BATCH,
            "tails": TAILS,
            "wait_p50_ms_below": WAIT_P50_MS_MAX,
            "steps": self.figures.iter().map(|figure| json!({
                "store": figure.store,
                "step": figure.step.name(),
                "frames_per_second": (!figure.per_second.runs().is_empty()).then(|| sample(&figure.per_second)),
                "p50_us": sample(&figure.p50_us),
                "p99_us": sample(&figure.p99_us),
            })).collect::<Vec<_>>(),
            "fan_out": self.fans.iter().map(|fan| json!({
                "store": fan.store,
                "frames_delivered_per_second": fan.delivered_per_second,
                "store_commands_per_frame": fan.commands_per_frame,
            })).collect::<Vec<_>>(),
            "store_calls": self.calls.iter().flat_map(|(store, all)| all.iter().map(move |calls| json!({
                "store": store,
                "function": calls.function,
                "calls": calls.calls,
            }))).collect::<Vec<_>>(),
        })
    }
}
