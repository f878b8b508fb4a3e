//! What the disk takes to keep a page, next to which the figures of durable stores are read: each of their answers waits for
//! at least one flush.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use super::super::load::Timed;
use super::sorted;

const PAGES: usize = 100;
const PAGE: [u8; 4096] = [b'x'; 4096];

/// Pages of a file of their own in this folder, written and flushed one after the other.
pub async fn measure(folder: &Path) -> Result<Timed> {
    let folder = folder.to_owned();
    let flushed = tokio::task::spawn_blocking(move || {
        let file: File = tempfile::tempfile_in(&folder).context("no file to flush")?;
        let began = Instant::now();
        let mut each = Vec::with_capacity(PAGES);
        for at in 0..PAGES {
            let began = Instant::now();
            // In place, as a store writes: the first round makes the file as long as it gets.
            file.write_all_at(&PAGE, (at % 8 * PAGE.len()) as u64).context("cannot write")?;
            file.sync_data().context("cannot flush")?;
            each.push(began.elapsed());
        }
        Ok(sorted(each, began.elapsed()))
    });
    flushed.await?
}
