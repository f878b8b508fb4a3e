//! `ff import`: fills an empty store from an export.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use ff_script::{Content, Contents, ScanCursor};

use crate::progress::Progress;
use crate::store::{StoreAddress, open_contents};
use crate::transfer::Reader;

/// How many keys, and how many pieces of content, are written at once.
const KEYS: usize = 256;
const PIECES: usize = 4_096;
/// The record that makes a store one: it is written last, so that no server takes half a store for a whole one.
const PARTITIONS: &[u8] = b"ff:config:partitions";

/// Fills an empty store with what `ff export` wrote. The store takes over the partition counts of the export, and the work in it goes
/// on where it was as soon as a server is started on it.
///
/// The whole file is checked before anything is written. A store that holds anything is refused.
#[derive(Args)]
#[command(after_help = "Example:
  ff import backup.ffx --store valkey://127.0.0.1:6379
  ff fsck --store valkey://127.0.0.1:6379")]
pub struct Import {
    /// The export; - for stdin.
    #[arg(value_name = "FILE")]
    file: String,
    /// The store: embedded:DIR, valkey://HOST:PORT or valkey-cluster://H1:P1,H2:P2.
    #[arg(long, env = "FF_STORE")]
    store: StoreAddress,
}

impl Import {
    /// Says how many keys were written.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let mut file = self.open()?;
        let (keys, partitions) = check(&file).with_context(|| format!("{} is not imported", self.file))?;
        let Some(partitions) = partitions else {
            bail!("the export is of a store no server was ever started on; there is nothing to import");
        };
        let host = open_contents(&self.store).await?;
        if let Some(key) = first_key(&*host).await? {
            bail!("the store is not empty, it holds {}; an import needs an empty one", key.escape_ascii());
        }
        file.seek(SeekFrom::Start(0))?;
        fill(&*host, Reader::new(BufReader::new(file))?, keys, partitions)
            .await
            .context("the import is not complete: empty the store and import again")?;
        eprintln!("{keys} keys imported; `ff fsck --store` checks them, `ff server --store` goes on with the work");
        Ok(ExitCode::SUCCESS)
    }

    /// The file, or what came on stdin in one of its own.
    fn open(&self) -> anyhow::Result<File> {
        if self.file != "-" {
            return File::open(&self.file).with_context(|| format!("cannot read {}", self.file));
        }
        let mut spool = tempfile::tempfile().context("cannot keep what comes on stdin")?;
        std::io::copy(&mut std::io::stdin().lock(), &mut spool).context("cannot keep what comes on stdin")?;
        spool.seek(SeekFrom::Start(0))?;
        Ok(spool)
    }
}

/// Reads the whole export: how many keys it has, and its partition counts.
fn check(file: &File) -> anyhow::Result<(u64, Option<Content>)> {
    let mut reader = Reader::new(BufReader::new(file))?;
    let (mut keys, mut partitions) = (0, None);
    while let Some((key, content)) = reader.next()? {
        keys += 1;
        if key == PARTITIONS {
            partitions = Some(content);
        }
    }
    Ok((keys, partitions))
}

/// A key of the store, when it has one.
async fn first_key(host: &dyn Contents) -> anyhow::Result<Option<Vec<u8>>> {
    let mut cursor = ScanCursor::Start;
    while cursor != ScanCursor::End {
        let page = host.scan(cursor, KEYS).await?;
        if let Some(key) = page.keys.into_iter().next() {
            return Ok(Some(key));
        }
        cursor = page.next;
    }
    Ok(None)
}

async fn fill(
    host: &dyn Contents,
    mut reader: Reader<BufReader<File>>,
    keys: u64,
    partitions: Content,
) -> anyhow::Result<()> {
    let mut progress = Progress::new("importing keys", Some(keys));
    let (mut batch, mut pieces) = (Vec::new(), 0);
    while let Some((key, content)) = reader.next()? {
        if key == PARTITIONS {
            continue;
        }
        pieces += match &content {
            Content::Hash(pairs) => pairs.len(),
            Content::Zset(members) => members.len(),
            Content::Text(_) => 1,
            Content::Stream { entries, .. } => entries.len(),
        };
        batch.push((key, content));
        if batch.len() >= KEYS || pieces >= PIECES {
            progress.advance(batch.len() as u64);
            host.write_keys(std::mem::take(&mut batch)).await?;
            pieces = 0;
        }
    }
    host.write_keys(batch).await?;
    host.write_keys(vec![(PARTITIONS.to_vec(), partitions)]).await?;
    Ok(())
}
