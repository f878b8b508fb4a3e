//! The common parts of every bench's page: its head, its tables, and where it is written.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::machine::{self, Machine, Others};
use super::sample::Sample;

/// If other programs took more of the CPU than this, the page says so.
const OTHERS_MAX: f64 = 0.1;

/// The start of each line in a page after which the figures of a bench follow, up to the next such line.
const FIGURES: &str = "<!-- Everything below is written by `cargo xtask bench ";

/// Where and how a run was measured.
pub struct Head {
    machine: Machine,
    quick: bool,
    /// The duration of the run.
    took: Duration,
    /// The share of the CPU that other programs took during the run.
    others: f64,
    niceness: f64,
}

impl Head {
    /// A run on this machine that has not ended yet.
    pub fn new(folder: &Path, quick: bool) -> Head {
        Head { machine: Machine::look(folder), quick, took: Duration::ZERO, others: f64::NAN, niceness: 0.0 }
    }

    /// Records the end of the run.
    pub fn ended(&mut self, took: Duration, others: &Others) -> Result<()> {
        self.took = took;
        self.others = others.share()?;
        self.niceness = machine::niceness()?;
        Ok(())
    }

    /// The head as one paragraph. `what` was measured; `holds` names the figures that are valid even on a busy machine.
    pub fn write(&self, page: &mut String, what: &str, holds: &str) {
        let Machine { cpu, cores, kernel, file_system, server } = &self.machine;
        let rounds = if self.quick { "one short run" } else { "median of three runs" };
        let _ = write!(
            page,
            "{cores} cores ({cpu}), Linux {kernel}, {file_system}, {server}; {rounds}, warm-up excluded, {what}; measured in {:.0} s",
            self.took.as_secs_f64()
        );
        if self.niceness != 0.0 {
            let _ = write!(page, " at niceness {:.0}", self.niceness);
        }
        let _ = writeln!(page, "; other programs took {} of the CPU meanwhile.\n", percent(self.others));
        if self.others > OTHERS_MAX {
            let _ = writeln!(
                page,
                "> **Taken on a busy machine.** Rates are too low, times too long, and their order means little. These are reliable: {holds}.\n"
            );
        }
    }

    /// The head as fields of a JSON object.
    pub fn json(&self) -> Value {
        let Machine { cpu, cores, kernel, file_system, server } = &self.machine;
        json!({
            "machine": { "cpu": cpu, "cores": cores, "kernel": kernel, "file_system": file_system, "server": server },
            "quick": self.quick,
            "seconds": self.took.as_secs_f64(),
            "others_cpu_share": self.others,
            "niceness": self.niceness,
        })
    }
}

/// Replaces the figures of one bench in a page: the text between its line and that of the next bench.
pub fn publish(page: &Path, bench: &str, markdown: &str) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let text =
        replaced(&text, bench, markdown).with_context(|| format!("{} has no place for the figures", page.display()))?;
    fs::write(page, text).with_context(|| format!("cannot write {}", page.display()))?;
    println!("wrote {}", page.display());
    Ok(())
}

fn replaced(text: &str, bench: &str, markdown: &str) -> Option<String> {
    let line = format!("{FIGURES}{bench} --publish`. -->");
    let (before, after) = text.split_once(&line)?;
    let next = after.find(FIGURES).map_or("", |at| &after[at..]);
    let gap = if next.is_empty() { "" } else { "\n" };
    Some(format!("{before}{line}\n\n{}\n{gap}{next}", markdown.trim_end()))
}

/// Writes `<bench>.json` and `<bench>.md`.
pub fn write(folder: &Path, bench: &str, json: &Value, markdown: &str) -> Result<()> {
    let json = serde_json::to_string_pretty(json).context("cannot write the report as JSON")?;
    for (name, text) in [(format!("{bench}.json"), json.as_str()), (format!("{bench}.md"), markdown)] {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// A figure of several runs as JSON.
pub fn sample(sample: &Sample) -> Value {
    json!({ "median": sample.median(), "spread": sample.spread(), "runs": sample.runs() })
}

/// Whether a figure meets its bound.
pub fn verdict(good: bool) -> String {
    if good { "within" } else { "ABOVE" }.to_owned()
}

/// Whether a figure reaches its target.
pub fn reached(good: bool) -> String {
    if good { "reached" } else { "BELOW" }.to_owned()
}

pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A whole number with separated thousands: `12_345`.
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// A Markdown table with aligned columns, readable as plain text.
pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn new(head: &[&str]) -> Table {
        Table(vec![head.iter().map(|&cell| cell.to_owned()).collect()])
    }

    pub fn row(&mut self, row: Vec<String>) {
        self.0.push(row);
    }

    pub fn write(&self, page: &mut String) {
        let width = |column: usize| {
            self.0.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.0[0].len()).map(width).collect();
        for (index, row) in self.0.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = " ".repeat(width - cell.chars().count());
                // Names are left-aligned, figures right-aligned.
                let figure = column > 0 && index > 0 && cell.starts_with(|first: char| first.is_ascii_digit());
                let _ = if figure { write!(page, "| {gap}{cell} ") } else { write!(page, "| {cell}{gap} ") };
            }
            page.push_str("|\n");
            if index == 0 {
                for width in &widths {
                    let _ = write!(page, "| {} ", "-".repeat((*width).max(3)));
                }
                page.push_str("|\n");
            }
        }
        page.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bench_replaces_its_own_figures() {
        let [one, two] = ["one", "two"].map(|bench| format!("{FIGURES}{bench} --publish`. -->"));
        let page = format!("prose\n\n{one}\n\nold one\n\n{two}\n\nold two\n");
        let page = replaced(&page, "one", "new one\n").expect("it has a place");
        assert_eq!(page, format!("prose\n\n{one}\n\nnew one\n\n{two}\n\nold two\n"));
        let page = replaced(&page, "two", "new two\n").expect("it has a place");
        assert_eq!(page, format!("prose\n\n{one}\n\nnew one\n\n{two}\n\nnew two\n"));
        assert_eq!(replaced(&page, "three", ""), None);
    }

    #[test]
    fn thousands_stand_apart() {
        for (value, text) in [(0.0, "0"), (999.4, "999"), (1_000.0, "1_000"), (1_234_567.0, "1_234_567")] {
            assert_eq!(grouped(value), text);
        }
    }
}
