//! The cost of admission: the same work with nothing attached, with quotas and with budgets, in one run.

mod blocked;
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
use runs::Attached;

/// A bench that takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(1_200);

/// The size of the run.
struct Scale {
    rounds: usize,
    /// Number of executions that are drained, and of those submitted while workers run.
    tasks: usize,
    blocked: usize,
}

const FULL: Scale = Scale { rounds: 3, tasks: 8_000, blocked: 50_000 };

const QUICK: Scale = Scale { rounds: 1, tasks: 1_000, blocked: 5_000 };

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
    page::write(&folder, "admission", &report.json(), &markdown)?;
    if options.publish {
        page::publish(&root.join("docs/benchmarks.md"), "admission", &markdown)?;
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
    let mut report = Report::new(Head::new(folder, options.quick), scale.tasks);
    for round in 1..=scale.rounds {
        for &setting in &settings {
            let so_far = began.elapsed().as_secs_f64();
            eprintln!("round {round} of {}: {} ({so_far:.0} s so far)", scale.rounds, setting.name());
            let world = World::open(setting, folder).await?;
            runs::warm_up(&world).await?;
            for attached in Attached::ALL {
                let figures = runs::measure(&world, attached, scale.tasks).await?;
                report.note(setting.name(), attached, figures);
            }
            world.close().await;
        }
    }
    for setting in [Setting::EMBEDDED_RELAXED, Setting::VALKEY_EVERYSEC] {
        if settings.contains(&setting) {
            eprintln!("{} blocked on one budget: {}", scale.blocked, setting.name());
            report.blocked.push((setting.name(), blocked::measure(setting, folder, scale.blocked).await?));
        }
    }
    report.head.ended(began.elapsed(), &others)?;
    Ok(report)
}
