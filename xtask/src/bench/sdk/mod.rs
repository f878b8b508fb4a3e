//! The performance of workers through the SDK with the default settings.
//!
//! Every figure is measured once per round on every transport, so that noise of the machine affects all of them.

mod latency;
mod report;
mod routing;
mod seen;
mod throughput;
mod waiting;
mod world;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use self::report::Report;
use self::world::{Via, World};
use super::SdkOptions;
use super::machine::Others;
use super::page::{self, Head};
use super::store::Setting;

/// The numbers of workers that share the work.
const WORKERS: [usize; 3] = [1, 4, 16];
/// A bench that takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(1_200);

/// The size of the run.
struct Scale {
    rounds: usize,
    /// Number of executions whose start is timed, one at a time.
    starts: usize,
    /// Number of executions that are drained, and of those submitted while workers run.
    tasks: usize,
    /// Number of executions over ten requirement sets.
    routed: usize,
}

const FULL: Scale = Scale { rounds: 3, starts: 500, tasks: 2_000, routed: 1_000 };
const QUICK: Scale = Scale { rounds: 1, starts: 200, tasks: 500, routed: 1_000 };

/// Measures, prints and writes.
pub fn run(root: &Path, options: &SdkOptions) -> Result<()> {
    let vias: Vec<Via> = Via::ALL
        .into_iter()
        .filter(|via| options.via.as_ref().is_none_or(|part| via.name().contains(part.as_str())))
        .collect();
    anyhow::ensure!(!vias.is_empty(), "no transport has a name like {:?}", options.via.as_deref().unwrap_or_default());
    if vias.iter().any(|via| via.is_http()) {
        build_server(root)?;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let folder = root.join("target/bench");
    let scale = if options.quick { QUICK } else { FULL };
    let report = runtime.block_on(async {
        let measured = measure(root, &folder, &vias, &scale, options.quick);
        tokio::time::timeout(LIMIT, measured).await.context("the bench did not end in time")?
    })?;
    let markdown = report.markdown();
    println!("{markdown}");
    page::write(&folder, "sdk", &report.json(), &markdown)?;
    if options.publish {
        page::publish(&root.join("docs/benchmarks.md"), "sdk", &markdown)?;
    }
    Ok(())
}

/// `ff server` is measured as users run it: optimised, in a separate process.
fn build_server(root: &Path) -> Result<()> {
    let built = crate::cargo::cargo(root).args(["build", "--quiet", "--release", "--package", "ff-cli"]).status();
    anyhow::ensure!(built.context("cannot run cargo")?.success(), "ff could not be built");
    Ok(())
}

async fn measure(root: &Path, folder: &Path, vias: &[Via], scale: &Scale, quick: bool) -> Result<Report> {
    let began = Instant::now();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let others = Others::watch()?;
    let mut report = Report::new(Head::new(folder, quick), scale.starts, scale.routed);
    for round in 1..=scale.rounds {
        for &via in vias {
            let say = |what: &str| {
                let so_far = began.elapsed().as_secs_f64();
                eprintln!("round {round} of {}: {what}, {} ({so_far:.0} s so far)", scale.rounds, via.name());
            };
            say("idle latency");
            let world = World::open(via, root, folder).await?;
            report.latency(via, &latency::measure(&world, scale.starts).await?);
            world.close().await;
            for workers in WORKERS {
                // The promise over HTTP is for one worker, and more of them on Valkey show nothing new.
                if via == Via::HttpValkey && workers > 1 {
                    continue;
                }
                say(&format!("throughput of {workers}"));
                let world = World::open(via, root, folder).await?;
                report.throughput(via, workers, throughput::measure(&world, workers, scale.tasks).await?);
                world.close().await;
            }
            if via == Via::HttpValkey {
                continue;
            }
            say("routing by capability");
            let world = World::open(via, root, folder).await?;
            for (what, waits) in routing::measure(&world, scale.routed).await? {
                report.routing(via, what, &waits);
            }
            world.close().await;
        }
    }
    if vias.iter().any(|via| via.is_http()) {
        eprintln!("{} waiting workers", waiting::WORKERS);
        for setting in [Setting::EMBEDDED_FSYNC, Setting::VALKEY_EVERYSEC] {
            report.waiting(setting.name(), waiting::measure(setting, folder).await?);
        }
    }
    report.head.ended(began.elapsed(), &others)?;
    Ok(report)
}
