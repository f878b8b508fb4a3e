//! Waits and streams: how soon a signalled execution resumes, how fast frames are written, and how soon they are read.

mod calls;
mod flush;
mod frames;
mod report;
mod resume;
pub mod world;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::machine::Others;
use super::page::{self, Head};
use super::store::Setting;
use super::{StoreOptions, load};
use flush::Disk;
use report::Report;
use world::World;

/// A bench that takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(600);

/// The size of the run.
struct Scale {
    rounds: usize,
    /// Number of suspensions.
    waits: usize,
    /// How long a writer writes.
    writing: Duration,
    /// Number of frames that reach every tail before the next one is written.
    frames_followed: usize,
}

const FULL: Scale = Scale { rounds: 3, waits: 300, writing: Duration::from_millis(800), frames_followed: 200 };

const QUICK: Scale = Scale { rounds: 1, waits: 100, writing: Duration::from_millis(300), frames_followed: 50 };

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
    page::write(&folder, "waits", &report.json(), &markdown)?;
    if options.publish {
        page::publish(&root.join("docs/benchmarks.md"), "waits", &markdown)?;
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
            if round == 1 {
                report.calls.push((setting.name(), calls::count(&world).await?));
            }
            resume::measure(&world, Disk::open(folder)?, scale.waits, &mut report).await?;
            frames::measure(&world, &scale, &mut report).await?;
            world.close().await;
        }
    }
    report.head.ended(began.elapsed(), &others)?;
    Ok(report)
}

/// The times in the form of the report.
fn sorted(mut each: Vec<Duration>, wall: Duration) -> load::Timed {
    each.sort_unstable();
    load::Timed { count: each.len(), wall, each }
}
