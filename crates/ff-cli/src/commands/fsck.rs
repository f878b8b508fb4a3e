//! `ff fsck`: verifies a store's invariants.

use std::process::ExitCode;

use clap::Args;
use ff_engine::{Engine, EngineOptions};

use crate::store::{StoreAddress, open};

/// Verifies the invariants of a store.
#[derive(Args)]
pub struct FsckCommand {
    /// The store: embedded:DIR, valkey://HOST:PORT or valkey-cluster://H1:P1,H2:P2.
    #[arg(long, env = "FF_STORE")]
    store: StoreAddress,
    /// Puts right what has one right answer; each repair is listed.
    #[arg(long)]
    repair: bool,
}

impl FsckCommand {
    /// Exit code 0 when the store is clean or was repaired, 1 when something stays broken.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        self.store.must_be_there()?;
        let (host, options) = open(&self.store, None).await?;
        let engine = Engine::start(host, EngineOptions { background: false, ..options }).await?;
        let report = engine.operations().fsck(self.repair).await?;
        for finding in &report.findings {
            let done = if finding.repaired { "repaired" } else { "broken" };
            println!("{done}  invariant {}  {}  {}", finding.invariant, finding.key.0.escape_ascii(), finding.problem);
        }
        for key in &report.foreign {
            println!("foreign  {key}");
        }
        println!("{} executions, {} keys, {} findings", report.executions, report.keys, report.findings.len());
        engine.stop().await;
        let broken = report.findings.iter().any(|finding| !finding.repaired);
        Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
