//! `ff worker exec`: any program as a worker.

mod captured;
mod pipe;
mod program;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use ff_core::types::LaneId;
use ff_sdk::runtime::{Ctx, WorkerRuntime};
use ff_sdk::{FlowFabricWorker, WorkerConfig};

use crate::client::{Api, ServerArgs};
use crate::times::duration;
use program::Program;

/// Beyond the time a program may take to end after SIGTERM, for its last output to be sent.
const SLACK: Duration = Duration::from_secs(5);

/// Runs a program for every execution of these kinds.
///
/// The input is on its stdin, and FF_EXECUTION_ID, FF_ATTEMPT (from 0), FF_KIND, FF_LANE, FF_NAMESPACE, FF_TAGS (a JSON object),
/// FF_TAG_<NAME>, FF_TRACE_PARENT, FF_DEADLINE_AT, FF_FLOW_ID, FF_PARENT_ID, FF_KEY, FF_WORKER_INSTANCE and FF_URL say what it is;
/// with FF_ATTEMPT_ID, FF_LEASE_ID and FF_LEASE_EPOCH it can speak the worker protocol itself. Each line of its stdout becomes a frame
/// of the execution's stream as it comes. The last line that is JSON becomes the result, else its whole stdout as a text.
///
/// Exit code 0 completes the execution, 75 fails the attempt so that its retry policy decides, as does death by a signal; any other
/// code fails the execution for good, with the end of stderr as the reason. The lease is renewed meanwhile. When the execution is
/// cancelled, wanted back or lost, the program and all it started get SIGTERM, and SIGKILL after --kill-grace. On SIGTERM or
/// Ctrl-C no more is claimed; running programs have --drain-grace to end, then they are stopped and their work is handed back.
#[derive(Args)]
#[command(after_help = "Example:
  ff worker exec --lane default --kind shout -- tr a-z A-Z
  ff worker exec --lane video --kind encode --slots 4 --capability gpu -- ./encode.sh --fast")]
pub struct Exec {
    /// The lane to serve; may be repeated.
    #[arg(long = "lane", required = true)]
    lanes: Vec<String>,
    /// The kind the program is for; may be repeated. Other kinds of the lanes fail: give them lanes of their own.
    #[arg(long = "kind", required = true)]
    kinds: Vec<String>,
    /// The namespace of its lanes.
    #[arg(long, default_value = "default")]
    namespace: String,
    /// What this worker can do; may be repeated.
    #[arg(long = "capability")]
    capabilities: Vec<String>,
    /// How many programs run at once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4_096))]
    slots: u16,
    /// Names the kind of worker (default: the program's name).
    #[arg(long)]
    worker_id: Option<String>,
    /// Names this process; no two live ones share it.
    #[arg(long)]
    instance: Option<String>,
    /// How long a lease lasts without renewal.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration)]
    lease_ttl: i64,
    /// How long a program may take to end after SIGTERM.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    kill_grace: i64,
    /// How long running programs may go on once this worker is told to stop.
    #[arg(long, default_value = "25s", value_name = "DURATION", value_parser = duration)]
    drain_grace: i64,
    #[command(flatten)]
    server: ServerArgs,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Exec {
    /// Serves until SIGTERM or Ctrl-C.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        // Says what to do when there is no server at all.
        Api::new(&self.server)?.health().await?;
        let mut config = self.config()?;
        config.max_concurrent_tasks = usize::from(self.slots);
        config.concurrency_is_set = true;
        let instance = config.worker_instance_id.as_str().to_owned();
        let kill_grace = Duration::from_millis(self.kill_grace.unsigned_abs());
        let program = Arc::new(Program {
            command: self.command,
            kill_grace,
            own: vec![("FF_URL", self.server.url().to_owned()), ("FF_WORKER_INSTANCE", instance.clone())],
        });
        let worker = FlowFabricWorker::connect(config).await.context("cannot register the worker")?;
        let mut runtime = WorkerRuntime::new(worker)
            .stop_grace(kill_grace + SLACK)
            .drain_grace(Duration::from_millis(self.drain_grace.unsigned_abs()));
        for kind in &self.kinds {
            let program = Arc::clone(&program);
            runtime = runtime.on(kind.clone(), move |ctx: Ctx| {
                let program = Arc::clone(&program);
                async move { program.run(ctx).await }
            });
        }
        eprintln!("{instance} serves {} of lane {}; Ctrl-C stops it", self.kinds.join(", "), self.lanes.join(", "));
        runtime.run().await?;
        Ok(ExitCode::SUCCESS)
    }

    fn config(&self) -> anyhow::Result<WorkerConfig> {
        let program = Path::new(&self.command[0]).file_name().map(|name| name.to_string_lossy().into_owned());
        let worker_id = self.worker_id.clone().or(program).map_or_else(|| "exec".to_owned(), |name| plain(&name));
        let instance = self
            .instance
            .clone()
            .unwrap_or_else(|| format!("{}-{}-{:08x}", plain(&host()), std::process::id(), rand::random::<u32>()));
        let config =
            WorkerConfig::http(self.server.url(), worker_id, instance, self.namespace.clone(), self.lanes[0].clone());
        let mut config = self.server.equip(config)?;
        config.lanes = self.lanes.iter().map(LaneId::new).collect();
        config.capabilities.clone_from(&self.capabilities);
        config.lease_ttl_ms = self.lease_ttl.unsigned_abs();
        Ok(config)
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A name the API takes.
fn plain(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' })
        .take(40)
        .collect();
    if plain.is_empty() { "exec".to_owned() } else { plain }
}
