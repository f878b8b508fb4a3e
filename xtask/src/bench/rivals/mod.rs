//! FlowFabric beside BullMQ and Restate: the same workloads on one machine in one run, and the ratios between them.
//!
//! Systems run one after the other in every round, so that noise of the machine affects all of them.

mod chart;
mod driver;
mod figures;
mod install;
mod process;
mod publish;
mod report;
pub mod systems;
mod worker;

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use self::report::Report;
use self::systems::System;
use super::machine::Others;
use super::page::{self, Head};
use super::{RivalsOptions, RivalsPart};

/// The size of the run.
struct Scale {
    rounds: usize,
    /// Number of no-ops before the first figure.
    warm_up: usize,
    /// Number of no-ops that are drained, and of those submitted while the worker runs.
    tasks: usize,
    /// Number of no-ops run one at a time.
    idle: usize,
    /// Number of chains run one at a time.
    chains: usize,
    /// Number of chains run with all submitters at once.
    chains_at_once: usize,
    signals: usize,
    /// Number of fan-outs run one at a time.
    fans: usize,
    /// Number of fan-outs run with all submitters at once.
    groups: usize,
}

const FULL: Scale = Scale {
    rounds: 3,
    warm_up: 1_000,
    tasks: 10_000,
    idle: 300,
    chains: 100,
    chains_at_once: 500,
    signals: 200,
    fans: 50,
    groups: 100,
};

const QUICK: Scale = Scale {
    rounds: 1,
    warm_up: 500,
    tasks: 3_000,
    idle: 100,
    chains: 30,
    chains_at_once: 100,
    signals: 50,
    fans: 10,
    groups: 32,
};

impl Scale {
    /// The sizes for the drivers.
    fn json(&self) -> Value {
        let Scale { rounds: _, warm_up, tasks, idle, chains, chains_at_once, signals, fans, groups } = self;
        json!({
            "warm_up": warm_up, "tasks": tasks, "idle": idle, "chains": chains, "chains_at_once": chains_at_once,
            "signals": signals, "fans": fans, "groups": groups,
        })
    }
}

/// Measures, prints and writes.
pub fn run(root: &Path, options: &RivalsOptions) -> Result<()> {
    let named = |system: &System| {
        options.only.is_empty() || options.only.iter().any(|part| system.name().contains(part.as_str()))
    };
    let systems: Vec<System> = System::ALL.into_iter().filter(named).collect();
    anyhow::ensure!(!systems.is_empty(), "no system has a name like {:?}", options.only);
    anyhow::ensure!(
        !options.publish || (systems.len() == System::ALL.len() && !options.quick),
        "only a whole run is published: leave out --only and --quick"
    );
    prepare(root, &systems)?;

    let folder = root.join("target/bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let scale = if options.quick { &QUICK } else { &FULL };
    let mut report = Report::new(Head::new(&folder, options.quick), versions(root, &systems)?);
    let (began, others, stolen) = (Instant::now(), Others::watch()?, report::stolen_seconds()?);
    for round in 1..=scale.rounds {
        for &system in &systems {
            let so_far = began.elapsed().as_secs_f64();
            eprintln!("round {round} of {}: {} ({so_far:.0} s so far)", scale.rounds, system.name());
            report.note(system, system.measure(root, &folder, scale)?);
        }
    }
    report.ended(began.elapsed(), &others, report::stolen_seconds()? - stolen)?;
    let markdown = report.markdown();
    println!("{markdown}");
    page::write(&folder, "rivals", &report.json(), &markdown)?;
    if options.publish {
        publish::publish(root, &report)?;
    }
    Ok(())
}

/// Builds `ff` and installs the selected rivals.
fn prepare(root: &Path, systems: &[System]) -> Result<()> {
    if systems.iter().any(|system| system.rival().is_some()) {
        let built = crate::cargo::cargo(root).args(["build", "--quiet", "--release", "--package", "ff-cli"]).status();
        anyhow::ensure!(built.context("cannot run cargo")?.success(), "ff could not be built");
    }
    let rivals: Vec<&str> =
        systems.iter().filter(|system| system.rival().is_none()).map(|system| system.name()).collect();
    install::install(root, &rivals)
}

/// The measured versions of the rivals, for readers.
fn versions(root: &Path, systems: &[System]) -> Result<Vec<String>> {
    let mut versions = Vec::new();
    if systems.contains(&System::BullMq) {
        versions.push(format!("BullMQ {}", install::version(root, "bullmq", "bullmq")?));
    }
    if systems.contains(&System::Restate) {
        versions.push(format!("Restate {}", install::version(root, "restate", "@restatedev/restate-server")?));
    }
    Ok(versions)
}

/// A process of this bench: FlowFabric's driver or its worker.
pub fn run_part(part: &RivalsPart, driver: bool) -> Result<()> {
    let spec: Value = serde_json::from_str(&part.spec).context("the settings are not JSON")?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(async { if driver { driver::run(&spec).await } else { worker::run(&spec).await } })
}
