//! `ff export`: a whole store as one file.

use std::collections::HashSet;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use ff_script::{Content, Contents, ScanCursor};
use xxhash_rust::xxh3::xxh3_128;

use crate::client::now_ms;
use crate::progress::Progress;
use crate::store::{StoreAddress, open_contents};
use crate::transfer::Writer;

/// How many keys are read at once.
const PAGE: usize = 256;
/// The live servers of a store.
const SERVERS: &[u8] = b"ff:idx:{w}:servers";

/// Writes a whole store, work in flight included, into one file that `ff import` reads into an empty store of any kind.
///
/// Its servers must be stopped: the embedded store is opened by nobody else meanwhile, and one on Valkey is refused while a server
/// is alive on it. Workers need not be: their leases travel along and run out, or go on, by the clock. The keys that sign waitpoint
/// tokens are not part of the store: move the file `keys` of the data directory too.
#[derive(Args)]
#[command(after_help = "Example:
  ff export backup.ffx --store embedded:./data
  ff export - --store embedded:./data | ff import - --store valkey://127.0.0.1:6379")]
pub struct Export {
    /// Where to write; - for stdout.
    #[arg(value_name = "FILE")]
    file: String,
    /// The store: embedded:DIR, valkey://HOST:PORT or valkey-cluster://H1:P1,H2:P2.
    #[arg(long, env = "FF_STORE")]
    store: StoreAddress,
}

impl Export {
    /// Says how many keys were written.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        if let StoreAddress::Embedded(directory) = &self.store
            && !directory.exists()
        {
            bail!("{} is not there; say which store with --store", directory.display());
        }
        let host = open_contents(&self.store).await?;
        self.quiet(&*host).await?;
        let keys = if self.file == "-" {
            if std::io::stdout().is_terminal() {
                bail!("an export is not for a terminal; name a file, or pipe it into `ff import -`");
            }
            let (mut out, keys) = write(&*host, BufWriter::new(std::io::stdout().lock())).await?;
            out.flush().context("cannot write to stdout")?;
            keys
        } else {
            let partial = format!("{}.partial", self.file);
            let file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial);
            let file = file.with_context(|| format!("cannot write {partial}"))?;
            let (out, keys) =
                write(&*host, BufWriter::new(file)).await.with_context(|| format!("cannot write {partial}"))?;
            let file = out
                .into_inner()
                .map_err(|error| error.into_error())
                .with_context(|| format!("cannot write {partial}"))?;
            file.sync_all().with_context(|| format!("cannot write {partial}"))?;
            std::fs::rename(&partial, &self.file)
                .with_context(|| format!("cannot rename {partial} to {}", self.file))?;
            keys
        };
        // Whoever came meanwhile may have changed what was read before.
        self.quiet(&*host).await?;
        eprintln!(
            "{keys} keys exported; waitpoint tokens stay good where the file `keys` of the data directory goes along"
        );
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses a store that a server works on.
    async fn quiet(&self, host: &dyn Contents) -> anyhow::Result<()> {
        // Nobody else can have the embedded store open.
        if matches!(self.store, StoreAddress::Embedded(_)) {
            return Ok(());
        }
        let Some(Content::Hash(servers)) = host.read_keys(vec![SERVERS.to_vec()]).await?.pop().flatten() else {
            return Ok(());
        };
        let now = now_ms();
        for (server, record) in servers {
            let expires: i64 = read_expiry(&record)
                .with_context(|| format!("the record of server {} cannot be read", server.escape_ascii()))?;
            if expires > now {
                bail!(
                    "server {} is alive on this store; stop it first (one that was killed counts for {} s more)",
                    server.escape_ascii(),
                    (expires - now + 999) / 1_000
                );
            }
        }
        Ok(())
    }
}

/// The first field of a server's record: until when it is alive.
fn read_expiry(mut record: &[u8]) -> anyhow::Result<i64> {
    rmp::decode::read_array_len(&mut record)?;
    // Lua packs whole numbers as integers, and those that are not as floats.
    match rmp::decode::read_int::<i64, _>(&mut { record }) {
        Ok(at) => Ok(at),
        Err(_) => Ok(rmp::decode::read_f64(&mut record)? as i64),
    }
}

async fn write<W: Write>(host: &dyn Contents, to: W) -> anyhow::Result<(W, u64)> {
    let mut writer = Writer::new(to)?;
    let mut progress = Progress::new("exporting keys", None);
    // A scan may show a key twice.
    let mut seen: HashSet<u128> = HashSet::new();
    let mut cursor = ScanCursor::Start;
    while cursor != ScanCursor::End {
        let page = host.scan(cursor, PAGE).await?;
        cursor = page.next;
        let keys: Vec<Vec<u8>> = page.keys.into_iter().filter(|key| seen.insert(xxh3_128(key))).collect();
        let contents = host.read_keys(keys.clone()).await?;
        for (key, content) in keys.iter().zip(contents) {
            if let Some(content) = content {
                writer.key(key, &content)?;
            }
        }
        progress.advance(keys.len() as u64);
    }
    writer.finish()
}
