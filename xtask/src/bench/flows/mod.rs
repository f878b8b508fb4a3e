//! Flows: a chain with an idle worker, a fan-out with a join, and the cancel of a flow that has not run.

mod report;
mod runs;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::StoreOptions;
use super::machine::Others;
use super::page::{self, Head};
use super::store::Setting;
use super::waits::world::World;
use report::Report;

/// A bench that takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(900);

/// The size of the run.
struct Scale {
    rounds: usize,
    /// Number of chains of ten steps, run one after the other.
    chains: usize,
    /// Number of fan-outs of a hundred, run one after the other.
    fans: usize,
    /// Number of fan-outs of a thousand.
    wide_fans: usize,
    /// Number of cancelled flows of a thousand.
    cancels: usize,
}

const FULL: Scale = Scale { rounds: 3, chains: 100, fans: 10, wide_fans: 2, cancels: 5 };

const QUICK: Scale = Scale { rounds: 1, chains: 30, fans: 3, wide_fans: 1, cancels: 2 };

/// Measures, prints and writes.
pub fn run(root: &Path, options: &StoreOptions) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let folder = root.join("target/bench");
    let report = runtime.block_on(async {
        tokio::time::timeout(LIMIT, measure(&folder, options)).await.context("the bench did not end in time")?
    })?;
    let markdown = report.markdown();
    println!("{markdown}");
    page::write(&folder, "flows", &report.json(), &markdown)?;
    if options.publish {
        page::publish(&root.join("docs/benchmarks.md"), "flows", &markdown)?;
    }
    Ok(())
}

async fn measure(folder: &Path, options: &StoreOptions) -> Result<Report> {
    let began = Instant::now();
    let scale = if options.quick { QUICK } else { FULL };
    let mut settings =
        vec![Setting::EMBEDDED_FSYNC, Setting::EMBEDDED_RELAXED, Setting::VALKEY_EVERYSEC, Setting::VALKEY_ALWAYS];
    if let Some(part) = &options.store {
        settings.retain(|setting| setting.name().contains(part.as_str()));
    }
    anyhow::ensure!(
        !settings.is_empty(),
        "no store has a name like {:?}",
        options.store.as_deref().unwrap_or_default()
    );
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let others = Others::watch()?;
    let mut report = Report::new(Head::new(folder, options.quick));
    for round in 1..=scale.rounds {
        for &setting in &settings {
            let so_far = began.elapsed().as_secs_f64();
            eprintln!("round {round} of {}: {} ({so_far:.0} s so far)", scale.rounds, setting.name());
            let world = World::open(setting, folder).await?;
            runs::chains(&world, scale.chains, &mut report).await?;
            runs::fans(&world, runs::FAN, scale.fans, &mut report).await?;
            runs::fans(&world, runs::WIDE_FAN, scale.wide_fans, &mut report).await?;
            runs::cancels(&world, scale.cancels, &mut report).await?;
            world.close().await;
        }
    }
    report.head.ended(began.elapsed(), &others)?;
    Ok(report)
}
