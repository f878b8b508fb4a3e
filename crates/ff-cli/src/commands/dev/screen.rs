//! What the terminal shows: lines that stay, and on a terminal one status line that is redrawn.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::client::text;
use crate::terminal;

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
    /// The totals of an answer of `/v1/stats`.
    pub fn of(stats: &Value) -> Self {
        let count = |name: &str| stats["counts"][name].as_i64().unwrap_or(0);
        let (executions, active, ended) =
            (stats["executions"].as_i64().unwrap_or(0), count("active"), count("terminal"));
        Self { executions, waiting: executions - active - ended, active, ended }
    }
}

/// A shared screen.
#[derive(Clone)]
pub struct Screen {
    state: Arc<Mutex<State>>,
}

struct State {
    at: String,
    live: bool,
    colour: bool,
    status: String,
    completed: u64,
    flows: u64,
    /// Executions whose worker was lost, and when by the host's clock.
    lost: HashMap<String, i64>,
}

impl Screen {
    /// Commands on it say where the server is with these flags.
    pub fn new(at: String) -> Self {
        let state = State {
            at,
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
    pub async fn follow(self, mut events: reqwest::Response, stop: CancellationToken) -> anyhow::Result<()> {
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            let chunk = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                chunk = events.chunk() => chunk?,
            };
            let Some(chunk) = chunk else { return Ok(()) };
            bytes.extend_from_slice(&chunk);
            while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = bytes.drain(..=end).collect();
                if let Ok(event) = serde_json::from_slice::<Value>(&line) {
                    self.event(&event);
                }
            }
        }
    }

    /// Shows the transitions a person would want to see.
    fn event(&self, event: &Value) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let id = text(&event["execution_id"]);
        let kind = text(&event["kind"]);
        let at = event["at"].as_i64().unwrap_or(0);
        let worker = text(&event["worker_instance"]);
        let datum = |name: &str| text(&event["data"][name]);
        match text(&event["type"]).as_str() {
            "execution.completed" => {
                state.completed += 1;
                if let Some(lost_at) = state.lost.remove(&id) {
                    let late = at - lost_at;
                    let text =
                        format!("✓ {kind} {id} completed by {worker}, {late} ms after its first worker was lost");
                    state.line(&text, "\x1b[32m");
                }
            }
            "execution.reclaimed" => {
                let text = format!("↻ {kind} {id} taken back from {}: {}", datum("worker_instance"), datum("cause"));
                state.lost.insert(id, at);
                state.line(&text, "\x1b[33m");
            }
            "execution.retried" => {
                let text = format!("↻ {kind} {id} failed ({}), will be tried again", datum("category"));
                state.line(&text, "\x1b[2m");
            }
            "execution.failed" => {
                let text = format!("✗ {kind} {id} failed for good ({})", datum("category"));
                state.line(&text, "\x1b[31m");
            }
            "execution.suspended" if kind == "review" => {
                let text =
                    format!("◐ {kind} {id} waits for a person: `ff approvals{0}`, `ff resume {id}{0}`", state.at);
                state.line(&text, "\x1b[35m");
            }
            "execution.resumed" if kind == "review" => {
                let text = format!("◑ {kind} {id} goes on");
                state.line(&text, "\x1b[35m");
            }
            "flow.completed" => {
                state.flows += 1;
                let text = format!("✓ flow {} completed", text(&event["flow_id"]));
                state.line(&text, "\x1b[32m");
            }
            "worker.registered" | "worker.left" | "worker.expired" => {
                let text = format!("· {worker} {}", text(&event["type"]).trim_start_matches("worker."));
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
