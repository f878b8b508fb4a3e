//! What the terminal shows: lines that stay, and on a terminal one status line that is redrawn.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use ff_api::events::Event;
use ff_api::server::Stats;
use ff_core::types::ExecutionId;
use ff_sdk::http::Lines;
use tokio_util::sync::CancellationToken;

use crate::client::item;
use crate::commands::events::datum;
use crate::terminal;

/// How much of an id is shown.
const SHORT: usize = 8;

/// Counts over all partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Everything stored.
    pub executions: i64,
    /// Eligible, delayed, suspended or blocked.
    pub waiting: i64,
    /// Leased.
    pub active: i64,
    /// Ended and still kept.
    pub ended: i64,
}

impl Totals {
    /// The totals of the whole store.
    pub fn of(stats: &Stats) -> Self {
        let (executions, active, ended) = (stats.executions, stats.counts.active, stats.counts.terminal);
        Self { executions, waiting: executions - active - ended, active, ended }
    }
}

/// A shared screen.
#[derive(Clone)]
pub struct Screen {
    state: Arc<Mutex<State>>,
}

struct State {
    live: bool,
    colour: bool,
    status: String,
    completed: u64,
    flows: u64,
    /// Executions whose worker was lost, and when by the host's clock.
    lost: HashMap<ExecutionId, i64>,
}

impl Screen {
    /// A screen with nothing on it.
    pub fn new() -> Self {
        let state = State {
            live: terminal::is_live(),
            colour: terminal::is_coloured(),
            status: String::new(),
            completed: 0,
            flows: 0,
            lost: HashMap::new(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A line that stays.
    pub fn line(&self, text: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).line(text, "");
    }

    /// A worker was killed.
    pub fn killed(&self, worker: &str, held: usize) {
        let what = match held {
            0 => "nothing".to_owned(),
            1 => "1 execution; its lease runs out".to_owned(),
            held => format!("{held} executions; their leases run out"),
        };
        let text = format!("✗ {worker} killed while holding {what}");
        self.state.lock().unwrap_or_else(PoisonError::into_inner).line(&text, "\x1b[31m");
    }

    /// Shows events as they come.
    pub async fn follow(self, mut events: Lines, stop: CancellationToken) -> anyhow::Result<()> {
        loop {
            let line = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                line = events.next() => line?,
            };
            let Some(line) = line else { return Ok(()) };
            self.event(&item(&line)?);
        }
    }

    /// Shows the transitions a person would want to see; each line fits 80 columns.
    fn event(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = event.kind.as_deref().unwrap_or_default();
        let worker = event.worker_instance.as_deref().unwrap_or_default();
        let what = event.execution_id.map(|id| format!("{kind} {}", short(id))).unwrap_or_default();
        let said = |name: &str| event.data.get(name).map(datum).unwrap_or_default();
        match (event.r#type.as_str(), event.execution_id) {
            ("execution.completed", Some(id)) => {
                state.completed += 1;
                if let Some(lost_at) = state.lost.remove(&id) {
                    let late = event.at - lost_at;
                    let text = format!("✓ {what} completed by {worker}, {late} ms after the loss");
                    state.line(&text, "\x1b[32m");
                }
            }
            ("execution.reclaimed", Some(id)) => {
                let text = format!("↻ {what} taken back from {}: {}", said("worker_instance"), said("cause"));
                state.lost.insert(id, event.at);
                state.line(&text, "\x1b[33m");
            }
            ("execution.retried", _) => {
                let text = format!("↻ {what} failed ({}), will be tried again", said("category"));
                state.line(&text, "\x1b[2m");
            }
            ("execution.failed", _) => {
                let text = format!("✗ {what} failed for good ({})", said("category"));
                state.line(&text, "\x1b[31m");
            }
            ("execution.suspended", Some(id)) if kind == "review" => {
                state.line(&format!("◐ {what} waits for a person: `ff approvals`, or"), "\x1b[35m");
                state.line(&format!("  ff resume {id}"), "\x1b[35m");
            }
            ("execution.resumed", _) if kind == "review" => state.line(&format!("◑ {what} goes on"), "\x1b[35m"),
            ("flow.completed", _) => {
                state.flows += 1;
                let text = format!("✓ flow {} completed", event.flow_id.map(short).unwrap_or_default());
                state.line(&text, "\x1b[32m");
            }
            ("worker.registered" | "worker.left" | "worker.expired", _) => {
                let text = format!("· {worker} {}", event.r#type.trim_start_matches("worker."));
                state.line(&text, "\x1b[2m");
            }
            _ => {}
        }
    }

    /// Redraws the status line; off a terminal nothing is shown.
    pub fn status(&self, totals: &Totals) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (completed, flows) = (state.completed, state.flows);
        let Totals { waiting, active, .. } = totals;
        state.status =
            format!("waiting {waiting:>4}   running {active:>2}   completed {completed:>6}   flows {flows:>4}");
        state.redraw();
    }
}

/// The end of an id: the part that differs from one to the next.
fn short(id: impl std::fmt::Display) -> String {
    let text = id.to_string();
    format!("…{}", &text[text.len().saturating_sub(SHORT)..])
}

impl State {
    fn line(&mut self, text: &str, colour: &str) {
        let mut out = std::io::stdout().lock();
        let clear = if self.live { "\r\x1b[K" } else { "" };
        let (begin, end) = if self.colour && !colour.is_empty() { (colour, "\x1b[0m") } else { ("", "") };
        // A closed pipe is the reader's choice; there is nobody left to tell.
        let _ = writeln!(out, "{clear}{begin}{text}{end}");
        drop(out);
        self.redraw();
    }

    fn redraw(&self) {
        if self.live && !self.status.is_empty() {
            let mut out = std::io::stdout().lock();
            let _ = write!(out, "\r\x1b[K{}", self.status);
            let _ = out.flush();
        }
    }
}
