//! Bytes on disk per kept ended execution, on the embedded host.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};

use super::phases::{fill, show_lane};
use super::store::{Setting, Store};

/// The size of a number of kept executions.
#[derive(Clone, Debug)]
pub struct Retained {
    pub executions: usize,
    /// Blocks of the store's files.
    pub bytes: u64,
    /// Blocks of a copy without free pages.
    pub bytes_compacted: u64,
    /// Time to open the store again, in milliseconds.
    pub reopen_ms: f64,
}

impl Retained {
    pub fn per_execution(&self) -> f64 {
        self.bytes as f64 / self.executions as f64
    }

    pub fn per_execution_compacted(&self) -> f64 {
        self.bytes_compacted as f64 / self.executions as f64
    }
}

/// Submits and completes `count` executions with a small payload, and measures the files.
pub async fn measure(count: usize, folder: &Path) -> Result<Retained> {
    let store = Store::open(Setting::EMBEDDED_RELAXED, folder).await?;
    show_lane(&store).await?;
    let executions = fill(&store, count).await? + usize::from(store.partitions());
    let (host, directory) = store.embedded().context("the store is embedded")?;
    host.flush().await?;
    let bytes = blocks(directory)?;
    let copy = tempfile::Builder::new().prefix("copy-").tempdir_in(folder)?;
    host.backup(copy.path()).await?;
    let bytes_compacted = blocks(copy.path())?;
    store.close().await;
    let began = std::time::Instant::now();
    let options = ff_backend_embedded::Options::new(copy.path(), ff_script::Library::shipped().text);
    let again = ff_backend_embedded::Embedded::open(options)?;
    let reopen_ms = began.elapsed().as_secs_f64() * 1_000.0;
    again.close().await;
    Ok(Retained { executions, bytes, bytes_compacted, reopen_ms })
}

/// The size of a directory's files on disk, without sparse parts.
pub fn blocks(directory: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let metadata = entry?.metadata()?;
        if metadata.is_file() {
            sum += metadata.blocks() * 512;
        }
    }
    Ok(sum)
}
