//! `ff bench-worker`: the worker process of `ff bench`.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use ff_sdk::runtime::{HandlerResult, WorkerRuntime};
use ff_sdk::{FlowFabricWorker, WorkerConfig};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use super::KIND;
use crate::client::ServerArgs;

/// How often a worker says how many it has run.
const SAYS_EVERY: Duration = Duration::from_millis(5);

/// A worker of the measurement: begins at the first byte of its input, says on each line how many executions it has run, and stops when
/// its input ends.
#[derive(Args)]
pub struct BenchWorker {
    #[arg(long)]
    url: String,
    #[arg(long)]
    lane: String,
    #[arg(long)]
    slots: u16,
    #[arg(long, env = "FF_TOKEN", hide_env_values = true)]
    token: Option<String>,
    #[arg(long)]
    ca_cert: Option<PathBuf>,
}

impl BenchWorker {
    /// Works until `ff bench` closes its input.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let mut config = WorkerConfig::http(self.url, "bench", &self.lane, "default", &self.lane)
            .with_max_concurrent_tasks(usize::from(self.slots));
        if let Some(token) = self.token {
            config = config.with_token(token);
        }
        if let Some(file) = self.ca_cert {
            config = config.with_ca_cert(file);
        }
        let worker = FlowFabricWorker::connect(config).await.context("cannot register the worker")?;
        let stop = CancellationToken::new();
        let done = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&done);
        let runtime = WorkerRuntime::new(worker).without_signals().shutdown_on(stop.clone()).on(KIND, move || {
            counting.fetch_add(1, Ordering::Relaxed);
            async { HandlerResult::<std::io::Error>::Ok(Some(b"1".to_vec())) }
        });
        println!("0");
        let (begin, begun) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read(&mut [0; 1]);
            let _ = begin.send(());
            let _ = std::io::stdin().read(&mut [0; 1]);
            stop.cancel();
        });
        // Without a first byte its input has ended, and it stops at once.
        let _ = begun.await;
        let saying = tokio::spawn(async move {
            let mut said = 0;
            loop {
                let now = done.load(Ordering::Relaxed);
                if now != said && writeln!(std::io::stdout(), "{now}").is_err() {
                    return;
                }
                said = now;
                tokio::time::sleep(SAYS_EVERY).await;
            }
        });
        let ran = runtime.run().await;
        saying.abort();
        ran?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A worker process, which ends with this value.
pub struct Worker {
    child: Child,
    says: Lines<BufReader<ChildStdout>>,
    done: u64,
}

impl Worker {
    /// Starts it, and returns when it is registered.
    pub async fn start(url: &str, server: Option<&ServerArgs>, lane: &str, slots: u16) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["bench-worker", "--url", url, "--lane", lane, "--slots", &slots.to_string()]);
        command.env_remove("FF_TOKEN").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        if let Some(server) = server {
            server.equip_process(&mut command)?;
        }
        let mut child = command.spawn().context("cannot start the worker")?;
        let says = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut worker = Self { child, says, done: 0 };
        worker.next().await?;
        Ok(worker)
    }

    /// Waits until it says how many it has run.
    async fn next(&mut self) -> anyhow::Result<()> {
        let Some(line) = self.says.next_line().await? else { bail!("the worker ended early") };
        self.done = line.trim().parse().with_context(|| format!("the worker said {line:?}"))?;
        Ok(())
    }

    /// How many it has run, as it said last.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Waits until it has run this many.
    pub async fn reach(&mut self, count: u64) -> anyhow::Result<()> {
        while self.done < count {
            self.next().await?;
        }
        Ok(())
    }

    /// Lets it take its first task.
    pub async fn begin(&mut self) -> anyhow::Result<()> {
        let input = self.child.stdin.as_mut().expect("it is piped");
        input.write_all(b"\n").await.context("the worker ended early")
    }

    /// Lets it finish what it holds.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        while self.says.next_line().await?.is_some() {}
        let status = self.child.wait().await?;
        if !status.success() {
            bail!("the worker ended with {status}");
        }
        Ok(())
    }
}
