//! How long the disk takes to write and flush a page. Replies of durable stores wait for at least one flush, so their
//! figures are read beside this one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

const PAGES: u64 = 8;
const PAGE: [u8; 4096] = [b'x'; 4096];

/// A file beside the stores.
pub struct Disk {
    file: Arc<File>,
    flushes: u64,
}

impl Disk {
    pub fn open(folder: &Path) -> Result<Disk> {
        let file = tempfile::tempfile_in(folder).context("no file to flush")?;
        // The file gets its final size, so that pages are written in place, as in a store.
        file.set_len(PAGES * PAGE.len() as u64).context("no room for a file to flush")?;
        Ok(Disk { file: Arc::new(file), flushes: 0 })
    }

    /// How long it takes to write one page and flush it.
    pub async fn flush(&mut self) -> Result<Duration> {
        let (file, at) = (Arc::clone(&self.file), self.flushes % PAGES * PAGE.len() as u64);
        self.flushes += 1;
        let flushed = tokio::task::spawn_blocking(move || {
            let began = Instant::now();
            file.write_all_at(&PAGE, at).context("cannot write")?;
            file.sync_data().context("cannot flush")?;
            Ok(began.elapsed())
        });
        flushed.await?
    }
}
