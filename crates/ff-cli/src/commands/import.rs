//! `ff import`: fills an empty store from an export.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use ff_engine::offline;
use ff_script::generated::PartitionDefaults;
use ff_script::{Content, Contents, ScanCursor};

use crate::progress::Progress;
use crate::store::{StoreAddress, import_begun, open_contents, partitions_key};
use crate::transfer::Reader;

/// How many keys, and how many pieces of content, are written at once.
const KEYS: usize = 256;
const PIECES: usize = 4_096;

/// Fills an empty store with what `ff export` wrote. The store takes over the partition counts of the export, and the work in it goes
/// on where it was as soon as a server is started on it.
///
/// The whole file is checked before anything is written. A store that holds anything is refused. Until the import has ended, no server
/// starts on the store; one that was killed is run again with --again.
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
    /// Deletes what an import that has not ended left in the store, and begins anew; not while that one runs. Nothing else is deleted.
    #[arg(long)]
    again: bool,
}

impl Import {
    /// Says how many keys were written.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let mut file = self.open()?;
        let (keys, counts) = check(&file).with_context(|| format!("{} is not imported", self.file))?;
        let Some(counts) = counts else {
            bail!("the export is of a store no server was ever started on; there is nothing to import");
        };
        let host = open_contents(&self.store).await?;
        if import_begun(&*host).await? {
            if !self.again {
                bail!(
                    "the store holds a part of an import that has not ended; when that one does not run any more, --again deletes the part and begins anew"
                );
            }
            clear(&*host).await.context("cannot delete what the import before left; run it again with --again")?;
        } else if let Some(key) = first_key(&*host).await? {
            bail!("the store is not empty, it holds {}; an import needs an empty one", key.escape_ascii());
        }
        file.seek(SeekFrom::Start(0))?;
        fill(&host, Reader::new(BufReader::new(file))?, keys, counts)
            .await
            .context("the import is not complete; run it again with --again")?;
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
fn check(file: &File) -> anyhow::Result<(u64, Option<PartitionDefaults>)> {
    let mut reader = Reader::new(BufReader::new(file))?;
    let (mut keys, mut counts) = (0, None);
    while let Some((key, content)) = reader.next()? {
        keys += 1;
        if key == partitions_key() {
            counts = Some(partition_counts(&content)?);
        }
    }
    Ok((keys, counts))
}

fn partition_counts(record: &Content) -> anyhow::Result<PartitionDefaults> {
    let count = |name: &str| {
        let Content::Hash(fields) = record else { return None };
        let (_, value) = fields.iter().find(|(field, _)| field == name.as_bytes())?;
        std::str::from_utf8(value).ok()?.parse::<i64>().ok()
    };
    if let Content::Hash(fields) = record {
        let fields = fields.iter().map(|(field, value)| (field.as_slice(), value.as_slice()));
        if let Some(refusal) = ff_script::library::format_refusal(fields) {
            bail!("{}", refusal.replacen("the store has", "the export has", 1));
        }
    }
    let count =
        |name: &str| count(name).with_context(|| format!("the export does not say how many partitions {name} have"));
    Ok(PartitionDefaults {
        executions: count("executions")?,
        budgets: count("budgets")?,
        quotas: count("quotas")?,
        schedules: count("schedules")?,
    })
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

/// Deletes everything but the record that says an import has not ended.
async fn clear(host: &dyn Contents) -> anyhow::Result<()> {
    let mut progress = Progress::new("deleting keys", None);
    let mut cursor = ScanCursor::Start;
    while cursor != ScanCursor::End {
        let page = host.scan(cursor, KEYS).await?;
        cursor = page.next;
        let keys: Vec<Vec<u8>> = page.keys.into_iter().filter(|key| *key != partitions_key()).collect();
        progress.advance(keys.len() as u64);
        host.remove_keys(keys).await?;
    }
    Ok(())
}

/// Writes everything. Before the first key the store is marked as one that is being imported, and after the last one it no longer is:
/// no server takes a part of it for a whole store, or for a new one.
async fn fill(
    host: &Arc<dyn Contents>,
    mut reader: Reader<BufReader<File>>,
    keys: u64,
    counts: PartitionDefaults,
) -> anyhow::Result<()> {
    offline::mark_importing(Arc::clone(host) as _, counts.clone(), true).await?;
    let mut progress = Progress::new("importing keys", Some(keys));
    let (mut batch, mut pieces) = (Vec::new(), 0);
    while let Some((key, content)) = reader.next()? {
        if key == partitions_key() {
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
    offline::mark_importing(Arc::clone(host) as _, counts, false).await?;
    Ok(())
}
