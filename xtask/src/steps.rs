//! The steps of a chore. Each is run and timed, and summed up on one line. The chore continues after a failure.

use std::fmt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How a step ended, with a short note.
pub enum Outcome {
    /// It ran and found no problem.
    Passed(String),
    /// It could not run.
    Skipped(String),
    /// It ran and found a problem.
    Failed(String),
}

impl Outcome {
    /// Passed, without a note.
    pub fn passed() -> Self {
        Self::Passed(String::new())
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Passed(_) => "passed",
            Self::Skipped(_) => "skipped",
            Self::Failed(_) => "FAILED",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Passed(note) | Self::Skipped(note) | Self::Failed(note)) = self;
        if note.is_empty() { f.write_str(self.word()) } else { write!(f, "{:8}{note}", self.word()) }
    }
}

struct Done {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// The completed steps of one chore.
pub struct Steps {
    allow_skips: bool,
    done: Vec<Done>,
}

impl Steps {
    /// No steps yet. A step that cannot run fails the chore, unless skips are allowed.
    pub fn new(allow_skips: bool) -> Self {
        Self { allow_skips, done: Vec::new() }
    }

    pub fn run(&mut self, name: &'static str, work: impl FnOnce() -> Result<Outcome>) {
        eprintln!("\n== {name}");
        let started = Instant::now();
        let outcome = work().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let took = started.elapsed();
        eprintln!("== {name}: {outcome} ({:.1} s)", took.as_secs_f64());
        self.done.push(Done { name, outcome, took });
    }

    /// Prints one line per step. Fails if a step failed, or was skipped without permission.
    pub fn close(self, footer: &str) -> Result<()> {
        let total: Duration = self.done.iter().map(|done| done.took).sum();
        eprintln!("\n== summary");
        for done in &self.done {
            eprintln!("{:22} {:7.1} s  {}", done.name, done.took.as_secs_f64(), done.outcome);
        }
        eprintln!("{:22} {:7.1} s", "all", total.as_secs_f64());
        if !footer.is_empty() {
            eprintln!("{footer}");
        }
        let named = |wanted: fn(&Outcome) -> bool| -> Vec<&str> {
            self.done.iter().filter(|done| wanted(&done.outcome)).map(|done| done.name).collect()
        };
        let failed = named(|outcome| matches!(outcome, Outcome::Failed(_)));
        let skipped = named(|outcome| matches!(outcome, Outcome::Skipped(_)));
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        if !skipped.is_empty() && !self.allow_skips {
            bail!("skipped: {}; put there what is missing, or say --allow-skips", skipped.join(", "));
        }
        Ok(())
    }
}

/// Runs a command to its end and shows its output.
pub fn finish(command: &mut Command) -> Result<Outcome> {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    if words[0].ends_with("/cargo") {
        words[0] = "cargo".to_owned();
    }
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    eprintln!("{}", words.join(" "));
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {}", words[0]))?;
    Ok(if status.success() { Outcome::passed() } else { Outcome::Failed(status.to_string()) })
}
