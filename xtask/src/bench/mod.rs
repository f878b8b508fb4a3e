//! Benchmarks. Each prints a table, and writes it with all figures to `target/bench`.

#[cfg(feature = "engine")]
mod admission;
#[cfg(feature = "engine")]
mod cost;
#[cfg(feature = "engine")]
mod counted;
#[cfg(feature = "engine")]
mod engine;
#[cfg(feature = "engine")]
mod flows;
#[cfg(feature = "engine")]
mod growth;
#[cfg(feature = "engine")]
mod idle;
#[cfg(feature = "engine")]
mod library;
#[cfg(feature = "engine")]
mod load;
#[cfg(feature = "engine")]
mod machine;
#[cfg(feature = "engine")]
mod page;
#[cfg(feature = "engine")]
mod phases;
#[cfg(feature = "engine")]
mod report;
#[cfg(feature = "engine")]
mod retained;
#[cfg(feature = "engine")]
mod rivals;
#[cfg(feature = "engine")]
mod sample;
#[cfg(feature = "engine")]
mod sdk;
#[cfg(feature = "engine")]
mod store;
#[cfg(feature = "engine")]
mod waits;

use std::path::Path;

use anyhow::Result;

/// The benchmark to run.
#[derive(clap::Subcommand)]
pub enum Bench {
    /// Submit, claim, renew, complete and the whole cycle on both hosts; store calls, bytes kept, idle cost.
    Engine(Options),
    /// Workers through the SDK: idle latency; throughput with 1, 4 and 16 workers, and the share left over HTTP;
    /// routing by capability; the cost of a hundred waiting workers.
    Sdk(SdkOptions),
    /// Suspend, signal and resume; frames of one writer, alone and with a hundred readers; store calls of each.
    Waits(StoreOptions),
    /// A chain of ten, fan-outs with a join, and the cancel of a thousand members.
    Flows(StoreOptions),
    /// The cost of submit, claim and complete inside the store: time, commands and calls, alone and in lists of 4 and
    /// 32.
    Library(StoreOptions),
    /// The same work with nothing attached, with quotas and with budgets; fifty thousand blocked on one budget.
    Admission(StoreOptions),
    /// The rate, the size and the start of a server, with ten thousand and with a million kept ended executions.
    Growth(StoreOptions),
    /// FlowFabric beside BullMQ and Restate on the same workloads; installs both from npm into target/rivals.
    Rivals(RivalsOptions),
    /// The process of `rivals` that submits to FlowFabric.
    #[command(hide = true)]
    RivalsDriver(RivalsPart),
    /// The process of `rivals` that runs FlowFabric's worker.
    #[command(hide = true)]
    RivalsWorker(RivalsPart),
}

/// The settings of a measurement.
#[derive(clap::Args)]
pub struct Options {
    /// One short run of each figure instead of three: half a minute instead of three.
    #[arg(long)]
    quick: bool,
    /// Also a Valkey without an append-only file.
    #[arg(long)]
    no_aof: bool,
    /// Also put the tables into docs/benchmarks.md.
    #[arg(long)]
    publish: bool,
    /// Only stores whose names contain this, e.g. `embedded` or `everysec`.
    #[arg(long)]
    store: Option<String>,
}

/// The settings for workers.
#[derive(clap::Args)]
pub struct SdkOptions {
    /// One short run of each figure instead of three.
    #[arg(long)]
    quick: bool,
    /// Also put the tables into docs/benchmarks.md.
    #[arg(long)]
    publish: bool,
    /// Only ways to the engine whose names contain this, e.g. `embedded`, `valkey` or `http`.
    #[arg(long)]
    via: Option<String>,
}

/// The settings for waits, streams, flows and admission.
#[derive(clap::Args)]
pub struct StoreOptions {
    /// One short run of each figure instead of three.
    #[arg(long)]
    quick: bool,
    /// Also put the tables into docs/benchmarks.md.
    #[arg(long)]
    publish: bool,
    /// Only stores whose names contain this, e.g. `embedded` or `everysec`.
    #[arg(long)]
    store: Option<String>,
}

/// The settings of a comparison with other systems.
#[derive(clap::Args)]
pub struct RivalsOptions {
    /// One short round instead of three.
    #[arg(long)]
    quick: bool,
    /// Also put the ratios into docs/benchmarks.md and README.md, and draw docs/images/rivals.svg.
    #[arg(long)]
    publish: bool,
    /// Only systems whose names contain this, e.g. `bullmq`, `restate` or `valkey`; may be repeated.
    #[arg(long)]
    only: Vec<String>,
}

/// The settings of a process of `rivals`.
#[derive(clap::Args)]
pub struct RivalsPart {
    /// The settings as JSON.
    spec: String,
}

/// Builds itself optimised, then measures.
pub fn run(root: &Path, bench: &Bench) -> Result<()> {
    #[cfg(feature = "engine")]
    if !cfg!(debug_assertions) {
        for (_, found) in ff_testkit::install(ff_testkit::store()) {
            found?;
        }
        return match bench {
            Bench::Engine(options) => engine::run(root, options),
            Bench::Sdk(options) => sdk::run(root, options),
            Bench::Waits(options) => waits::run(root, options),
            Bench::Flows(options) => flows::run(root, options),
            Bench::Library(options) => library::run(root, options),
            Bench::Admission(options) => admission::run(root, options),
            Bench::Growth(options) => growth::run(root, options),
            Bench::Rivals(options) => rivals::run(root, options),
            Bench::RivalsDriver(part) => rivals::run_part(part, true),
            Bench::RivalsWorker(part) => rivals::run_part(part, false),
        };
    }
    let (Bench::Engine(_)
    | Bench::Sdk(_)
    | Bench::Waits(_)
    | Bench::Flows(_)
    | Bench::Library(_)
    | Bench::Admission(_)
    | Bench::Growth(_)
    | Bench::Rivals(_)
    | Bench::RivalsDriver(_)
    | Bench::RivalsWorker(_)) = bench;
    eprintln!("building the bench in release mode");
    let status = crate::cargo::again_with_engine(root, true)?;
    std::process::exit(status.code().unwrap_or(1))
}
