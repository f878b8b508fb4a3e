//! The order of the runs: every store once per round, so that noise of the machine affects all of them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::load::Timed;
use super::machine::{self, Others};
use super::page::{self, Head};
use super::phases::{self, Phase};
use super::report::{Cycle, Idle, Report};
use super::store::{Setting, Store};
use super::{Options, cost, idle, retained};

const IN_FLIGHT: [usize; 3] = [1, 16, 64];
const IN_FLIGHT_BATCHES: [usize; 2] = [1, 16];
/// A bench that takes longer than this has hung.
const LIMIT: Duration = Duration::from_secs(600);

/// The size of the run.
struct Scale {
    rounds: usize,
    warm_up: Duration,
    /// The planned duration of one phase.
    phase: Duration,
    retained: usize,
}

const FULL: Scale =
    Scale { rounds: 3, warm_up: Duration::from_millis(300), phase: Duration::from_millis(400), retained: 20_000 };

const QUICK: Scale =
    Scale { rounds: 1, warm_up: Duration::from_millis(100), phase: Duration::from_millis(150), retained: 5_000 };

/// Measures, prints and writes.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let folder = root.join("target/bench");
    let report = runtime.block_on(async {
        tokio::time::timeout(LIMIT, measure(&folder, options)).await.context("the bench did not end in time")?
    })?;
    let markdown = report.markdown();
    println!("{markdown}");
    page::write(&folder, "engine", &report.json(), &markdown)?;
    if options.publish {
        page::publish(&root.join("docs/benchmarks.md"), "engine", &markdown)?;
    }
    Ok(())
}

async fn measure(folder: &Path, options: &Options) -> Result<Report> {
    let began = Instant::now();
    let scale = if options.quick { QUICK } else { FULL };
    let mut settings =
        vec![Setting::EMBEDDED_FSYNC, Setting::EMBEDDED_RELAXED, Setting::VALKEY_EVERYSEC, Setting::VALKEY_ALWAYS];
    if options.no_aof {
        settings.push(Setting::VALKEY_NO_AOF);
    }
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
            eprintln!(
                "round {round} of {}: {} ({:.0} s so far)",
                scale.rounds,
                setting.name(),
                began.elapsed().as_secs_f64()
            );
            let store = Store::open(setting, folder).await?;
            phases::show_lane(&store).await?;
            if round == 1 {
                report.costs.push((setting.name(), cost::count(&store).await?));
            }
            let mut per_second = 0.0;
            for in_flight in IN_FLIGHT {
                per_second = one_at_a_time(&store, in_flight, &scale, &mut report).await?;
            }
            for in_flight in IN_FLIGHT_BATCHES {
                let count = (per_second * scale.phase.as_secs_f64()) as usize;
                for (phase, timed) in phases::in_batches(&store, in_flight, count).await? {
                    note(&mut report, setting, phase, in_flight, &timed);
                }
            }
            store.close().await;
        }
    }
    if settings.iter().any(|setting| matches!(setting, Setting::Embedded(_))) {
        eprintln!("bytes of {} kept executions", scale.retained);
        report.retained = Some(retained::measure(scale.retained, folder).await?);
    }
    eprintln!("idle engines");
    let idle_settings: Vec<Setting> = [Setting::EMBEDDED_FSYNC, Setting::VALKEY_EVERYSEC]
        .into_iter()
        .filter(|setting| settings.contains(setting))
        .collect();
    let measured =
        futures::future::try_join_all(idle_settings.iter().map(|setting| idle::measure(*setting, folder))).await?;
    for (setting, per_second) in idle_settings.iter().zip(measured) {
        report.idle.push(Idle { store: setting.name(), per_second });
    }
    report.head.ended(began.elapsed(), &others)?;
    Ok(report)
}

/// Measures each call and the cycle. Returns the number of calls per second.
async fn one_at_a_time(store: &Store, in_flight: usize, scale: &Scale, report: &mut Report) -> Result<f64> {
    let cycles_per_second = phases::warm_up(store, in_flight, scale.warm_up).await?;
    // A cycle is three calls; a phase makes one call per execution.
    let fitting = |per_second: f64| ((per_second * scale.phase.as_secs_f64()) as usize).clamp(in_flight, 50_000);
    let round_up = |count: usize| count.div_ceil(in_flight) * in_flight;
    for (phase, timed) in phases::one_by_one(store, in_flight, round_up(fitting(cycles_per_second * 3.0))).await? {
        note(report, store.setting, phase, in_flight, &timed);
    }

    let me = std::process::id();
    let server = store.server_pid();
    let cpu = || -> Result<(f64, f64)> {
        Ok((machine::cpu_seconds(me)?, server.map(machine::cpu_seconds).transpose()?.unwrap_or_default()))
    };
    let (cpu_before, commands_before) = (cpu()?, store.host.store_commands().await?);
    let timed = phases::cycles(store, in_flight, round_up(fitting(cycles_per_second * 2.0))).await?;
    let (cpu_after, commands_after) = (cpu()?, store.host.store_commands().await?);
    note(report, store.setting, Phase::Cycle, in_flight, &timed);
    let count = timed.count as f64;
    report.cycles.push(Cycle {
        store: store.setting.name(),
        in_flight,
        cpu_here: (cpu_after.0 - cpu_before.0) / count * 1_000.0,
        cpu_server: (cpu_after.1 - cpu_before.1) / count * 1_000.0,
        store_commands: (commands_after - commands_before) as f64 / count,
        memory_mib: machine::resident_mib(server.unwrap_or(me))?,
    });
    Ok(cycles_per_second * 3.0)
}

fn note(report: &mut Report, setting: Setting, phase: Phase, in_flight: usize, timed: &Timed) {
    let figure = report.figure(setting.name(), phase, in_flight);
    let microseconds = |share| timed.quantile(share).as_secs_f64() * 1e6;
    figure.per_second.add(timed.per_second() * phase.items() as f64);
    figure.p50_us.add(microseconds(0.50));
    figure.p99_us.add(microseconds(0.99));
}
