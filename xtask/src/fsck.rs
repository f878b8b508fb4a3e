//! Checks every invariant of a store from outside its servers.

use std::path::Path;

use anyhow::Result;

/// The store to check.
#[derive(clap::Args)]
pub struct Options {
    /// `embedded:DIR`, `valkey://HOST:PORT` or `valkey-cluster://HOST:PORT,…`.
    #[arg(long)]
    store: String,
    /// Fix each finding that has only one correct fix, and list the repairs.
    #[arg(long)]
    repair: bool,
}

/// Builds itself with the hosts first, then checks.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    #[cfg(feature = "engine")]
    let checked = check::run(&options.store, options.repair);
    #[cfg(not(feature = "engine"))]
    let checked = {
        let _ = (&options.store, options.repair);
        crate::cargo::again_with_engine(root, false).map(|status| std::process::exit(status.code().unwrap_or(1)))
    };
    let _ = root;
    checked
}

#[cfg(feature = "engine")]
mod check {
    use std::path::Path;
    use std::sync::Arc;

    use anyhow::{Context, Result, bail};
    use ff_backend_embedded::Embedded;
    use ff_backend_valkey::ValkeyHost;
    use ff_engine::{Engine, EngineOptions, Fsck};
    use ff_script::{Host, Library};

    pub fn run(store: &str, repair: bool) -> Result<()> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
        let report = runtime.block_on(examine(store, repair))?;
        for finding in &report.findings {
            let mark = if finding.repaired { "repaired" } else { "broken" };
            println!(
                "{mark}: invariant {} at {}: {}",
                finding.invariant,
                finding.key.0.escape_ascii(),
                finding.problem
            );
        }
        for key in &report.foreign {
            println!("foreign: {key} belongs to no partition of this store");
        }
        println!("{} executions and {} keys looked at", report.executions, report.keys);
        if !report.is_clean() {
            let repaired = report.findings.iter().filter(|finding| finding.repaired).count();
            let (findings, foreign) = (report.findings.len(), report.foreign.len());
            bail!("{findings} broken invariants, of which {repaired} repaired, and {foreign} foreign keys");
        }
        println!("sound");
        Ok(())
    }

    async fn examine(store: &str, repair: bool) -> Result<Fsck> {
        let (host, options) = open(store).await?;
        // Without background work, so that only the check touches the store.
        let engine = Engine::start(Arc::clone(&host), EngineOptions { background: false, ..options }).await?;
        let report = Fsck::run(engine.operations().client(), repair).await;
        engine.stop().await;
        Ok(report?)
    }

    async fn open(store: &str) -> Result<(Arc<dyn Host>, EngineOptions)> {
        let library = Library::shipped();
        if let Some(directory) = store.strip_prefix("embedded:") {
            // Opening would create a store, but the check needs an existing one.
            if !Path::new(directory).is_dir() {
                bail!("no store in {directory}");
            }
            let host = Embedded::open(ff_backend_embedded::Options::new(directory, library.text))?;
            return Ok((Arc::new(host), EngineOptions::default()));
        }
        let mut options = ff_backend_valkey::Options::new(store, library);
        // A check needs no durability, so any server will do.
        options.durability = Some(ff_backend_valkey::Durability::None);
        Ok((Arc::new(ValkeyHost::connect(options).await?), EngineOptions::default()))
    }
}
