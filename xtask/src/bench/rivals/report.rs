//! The results of a run: medians and spreads of every system, and the ratios to the rivals.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::machine::Others;
use super::super::page::{self, Head, Table, percent};
use super::super::sample::Sample;
use super::figures::{FIGURES, Figure};
use super::systems::{Figures, System};

/// All runs of all systems.
pub struct Report {
    head: Head,
    /// The rivals and their versions.
    versions: Vec<String>,
    /// One entry per round.
    runs: BTreeMap<System, Vec<Figures>>,
    /// The share of the CPU that processes outside the run took.
    others: f64,
    /// The share of the CPU that the hypervisor gave to other machines.
    stolen: f64,
}

impl Report {
    pub fn new(head: Head, versions: Vec<String>) -> Report {
        Report { head, versions, runs: BTreeMap::new(), others: f64::NAN, stolen: f64::NAN }
    }

    pub fn note(&mut self, system: System, figures: Figures) {
        self.runs.entry(system).or_default().push(figures);
    }

    /// Records the end of the run. Every process has been waited for, so its CPU time counts for the run.
    pub fn ended(&mut self, took: Duration, others: &Others, stolen: f64) -> Result<()> {
        self.head.ended(took, others)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.stolen = stolen / (took.as_secs_f64() * cores as f64);
        // `Others` counts stolen time as other programs' time.
        self.others = (others.share()? - self.stolen).max(0.0);
        Ok(())
    }

    /// The share of the CPU that processes outside the run took.
    pub fn others(&self) -> f64 {
        self.others
    }

    /// FlowFabric's systems whose rival was measured too.
    pub fn compared(&self) -> Vec<System> {
        let measured = |system: System| self.runs.contains_key(&system);
        System::ALL.into_iter().filter(|ours| measured(*ours) && ours.rival().is_some_and(measured)).collect()
    }

    fn sample(&self, system: System, figure: &Figure) -> Option<Sample> {
        let mut sample = Sample::default();
        for run in self.runs.get(&system)? {
            sample.add(*run.get(figure.name)?);
        }
        Some(sample)
    }

    /// How much better FlowFabric's system is than its rival, round by round.
    pub fn ratio(&self, ours: System, figure: &Figure) -> Option<Sample> {
        let (ours, theirs) = (self.sample(ours, figure)?, self.sample(ours.rival()?, figure)?);
        let mut ratios = Sample::default();
        for (ours, theirs) in ours.runs().iter().zip(theirs.runs()) {
            // CPU time is counted in hundredths of a second. A process that did little may have none, and a division by
            // 0 must not happen.
            if *ours <= 0.0 || *theirs <= 0.0 {
                return None;
            }
            ratios.add(figure.ratio(*ours, *theirs));
        }
        Some(ratios)
    }

    /// The ratios as a table; with `spreads`, also the spread of the rounds.
    pub fn ratios(&self, figures: impl Iterator<Item = &'static Figure>, spreads: bool) -> String {
        let systems = self.compared();
        let heads: Vec<String> = systems
            .iter()
            .map(|ours| format!("{} ÷ {}", ours.title(), ours.rival().map_or("", System::title)))
            .collect();
        let mut head = vec![""];
        for name in &heads {
            head.push(name);
            if spreads {
                head.push("spread");
            }
        }
        let mut table = Table::new(&head);
        for figure in figures {
            let ratios: Vec<Option<Sample>> = systems.iter().map(|ours| self.ratio(*ours, figure)).collect();
            if ratios.iter().all(Option::is_none) {
                continue;
            }
            let mut row = vec![figure.title.to_owned()];
            for ratio in &ratios {
                row.push(ratio.as_ref().map_or_else(String::new, |ratio| format!("{:.2} ×", ratio.median())));
                if spreads {
                    row.push(ratio.as_ref().map_or_else(String::new, |ratio| percent(ratio.spread())));
                }
            }
            table.row(row);
        }
        let mut page = String::new();
        table.write(&mut page);
        page
    }

    /// The medians of every system.
    fn figures(&self) -> String {
        let mut head = vec![""];
        for system in self.runs.keys() {
            head.extend([system.title(), "spread"]);
        }
        let mut table = Table::new(&head);
        for figure in FIGURES {
            let mut row = vec![figure.title.to_owned()];
            for &system in self.runs.keys() {
                let sample = self.sample(system, figure);
                row.push(sample.as_ref().map_or_else(String::new, |sample| figure_text(sample.median())));
                let spread = sample.filter(|sample| sample.median() > 0.0);
                row.push(spread.map_or_else(String::new, |sample| percent(sample.spread())));
            }
            table.row(row);
        }
        let mut page = String::new();
        table.write(&mut page);
        page
    }

    /// The page below its image.
    pub fn markdown(&self) -> String {
        let mut page = String::new();
        let what = format!("256-byte input, 64 at once, 16 submitters; {}", self.versions.join(", "));
        self.head.write(&mut page, &what, "ratios between systems of one round");
        page.push_str(&format!(
            "Processes outside the run took {}, other machines of the hypervisor {}.\n\n",
            percent(self.others),
            percent(self.stolen)
        ));
        if !self.compared().is_empty() {
            page.push_str("### How much better than its rival\n\n");
            page.push_str(
                "Rates: ours divided by theirs. Times and CPU: theirs divided by ours. Above 1 ours is better.\n\n",
            );
            page.push_str(&self.ratios(FIGURES.iter(), true));
        }
        page.push_str("### The figures behind the ratios\n\n");
        page.push_str(&self.figures());
        page
    }

    pub fn json(&self) -> Value {
        let mut json = self.head.json();
        json["versions"] = json!(self.versions);
        json["outside_cpu_share"] = json!(self.others);
        json["stolen_cpu_share"] = json!(self.stolen);
        for system in self.runs.keys() {
            for figure in FIGURES {
                if let Some(sample) = self.sample(*system, figure) {
                    json["systems"][system.name()][figure.name] = page::sample(&sample);
                }
                if let Some(ratio) = self.ratio(*system, figure) {
                    json["ratios"][system.name()][figure.name] = page::sample(&ratio);
                }
            }
        }
        json
    }
}

/// A figure with its significant digits.
fn figure_text(value: f64) -> String {
    match value {
        value if value >= 100.0 => page::grouped(value),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

/// The time of all cores since boot that the hypervisor gave to other machines.
pub fn stolen_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    // "cpu" user nice system idle iowait irq softirq steal, in hundredths of a second
    let ticks = text.split_whitespace().nth(8).and_then(|field| field.parse::<f64>().ok());
    Ok(ticks.context("/proc/stat has no stolen time")? / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round() {
        let mut report = Report::new(Head::new(std::path::Path::new("."), true), Vec::new());
        for (ours, theirs) in [(20.0, 10.0), (300.0, 100.0), (4.0, 4.0)] {
            report.note(System::Direct, Figures::from([("drain_per_s".to_owned(), ours)]));
            report.note(System::BullMq, Figures::from([("drain_per_s".to_owned(), theirs)]));
        }
        let drain = FIGURES.iter().find(|figure| figure.name == "drain_per_s").expect("it is a figure");
        assert_eq!(report.ratio(System::Direct, drain).expect("both were measured").median(), 2.0);
        assert_eq!(report.compared(), [System::Direct]);
        assert!(report.ratios([drain].into_iter(), false).contains("2.00 ×"));
    }
}
