//! A progress bar for long work: on stderr, and only when that is a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const WIDTH: usize = 24;
/// Redrawn no more often than this.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Work that is over sooner shows no bar.
const QUIET: Duration = Duration::from_millis(400);

/// How far something is; the bar goes when this does.
pub struct Progress {
    what: &'static str,
    done: u64,
    total: Option<u64>,
    began: Instant,
    drawn: Option<Instant>,
    live: bool,
}

impl Progress {
    /// Nothing is done yet; without a total only the count is shown.
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        let live = std::io::stderr().is_terminal();
        Self { what, done: 0, total, began: Instant::now(), drawn: None, live }
    }

    /// So much more is done.
    pub fn advance(&mut self, by: u64) {
        self.done += by;
        let now = Instant::now();
        let due = self.drawn.map_or(now - self.began >= QUIET, |at| now - at >= DRAW_EVERY);
        if self.live && due {
            self.drawn = Some(now);
            eprint!("\r\x1b[K{}", line(self.what, self.done, self.total, now - self.began));
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

fn line(what: &str, done: u64, total: Option<u64>, took: Duration) -> String {
    let rate = done as f64 / took.as_secs_f64().max(0.001);
    let Some(total) = total.filter(|total| *total > 0) else { return format!("{what} {done}  {rate:.0}/s") };
    let full = usize::try_from(done.min(total) * WIDTH as u64 / total).unwrap_or(WIDTH);
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH - full));
    let left = if rate > 0.0 { (total.saturating_sub(done)) as f64 / rate } else { 0.0 };
    format!("{what} {bar} {done}/{total}  {rate:.0}/s  {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_how_much_is_left() {
        let second = Duration::from_secs(1);
        assert_eq!(
            line("submitting", 50, Some(100), second),
            "submitting ████████████░░░░░░░░░░░░ 50/100  50/s  1 s left"
        );
        assert_eq!(line("reading", 7, None, second), "reading 7  7/s");
        assert!(line("x", 120, Some(100), second).contains("120/100"));
    }
}
