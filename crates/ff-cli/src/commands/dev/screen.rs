//! What the terminal shows: lines that stay, and on a terminal one status line that is redrawn.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use ff_script::generated::Event;

use super::Totals;

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
    /// Executions whose worker was lost, and when by the host's clock.
    lost: HashMap<String, i64>,
}

impl Screen {
    pub fn new() -> Self {
        let live = std::io::stdout().is_terminal();
        let colour = live && std::env::var_os("NO_COLOR").is_none();
        let state = State { live, colour, status: String::new(), completed: 0, lost: HashMap::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A line that stays.
    pub fn line(&self, text: &str) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).line(text, "");
    }

    /// A worker was killed.
    pub fn killed(&self, worker: &str, held: usize) {
        let text = format!("✗ {worker} killed while holding {held} executions; their leases run out");
        self.state.lock().unwrap_or_else(PoisonError::into_inner).line(&text, "\x1b[31m");
    }

    /// Shows the transitions a person would want to see.
    pub fn event(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let id = event.execution_id.map(|id| id.to_string()).unwrap_or_default();
        let short = id.get(24..).unwrap_or(&id).to_owned();
        let kind = event.kind.as_deref().unwrap_or("");
        let datum = |name: &str| event.data.get(name).map_or("", String::as_str);
        match event.r#type.as_str() {
            "execution.completed" => {
                state.completed += 1;
                if let Some(lost_at) = state.lost.remove(&id) {
                    let worker = event.worker_instance.as_deref().unwrap_or("");
                    let text = format!(
                        "✓ {kind} {short} completed by {worker}, {} ms after its first worker was lost",
                        event.at - lost_at
                    );
                    state.line(&text, "\x1b[32m");
                }
            }
            "execution.reclaimed" => {
                state.lost.insert(id, event.at);
                let text = format!("↻ {kind} {short} taken back from {}: {}", datum("worker_instance"), datum("cause"));
                state.line(&text, "\x1b[33m");
            }
            "execution.retried" => {
                let text = format!("↻ {kind} {short} failed ({}), will be tried again", datum("category"));
                state.line(&text, "\x1b[2m");
            }
            "execution.failed" => {
                let text = format!("✗ {kind} {short} failed for good ({})", datum("category"));
                state.line(&text, "\x1b[31m");
            }
            "worker.registered" | "worker.left" | "worker.expired" => {
                let text = format!(
                    "· {} {}",
                    event.worker_instance.as_deref().unwrap_or(""),
                    event.r#type.trim_start_matches("worker.")
                );
                state.line(&text, "\x1b[2m");
            }
            _ => {}
        }
    }

    /// Redraws the status line; off a terminal nothing is shown.
    pub fn status(&self, totals: &Totals) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.status =
            format!("waiting {:>4}   running {:>2}   completed {:>6}", totals.waiting, totals.active, state.completed);
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
