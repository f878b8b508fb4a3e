//! `ff export`: a whole store as one file.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use ff_script::{Contents, ScanCursor};
use xxhash_rust::xxh3::xxh3_128;

use crate::progress::Progress;
use crate::quiet::{still_quiet, wait_until_quiet};
use crate::store::{StoreAddress, import_begun, open_contents};
use crate::transfer::Writer;

/// How many keys are read at once.
const PAGE: usize = 256;

/// Writes a whole store, work in flight included, into one file that `ff import` reads into an empty store of any kind.
///
/// Nobody may work on it meanwhile. The embedded store is opened by nobody else; one on Valkey is refused while a server is alive on it,
/// or a worker that needs none. Workers that talk to a server need not be stopped, only the server: their leases travel along and run
/// out, or go on, by the clock. On Valkey their registrations are waited for first, for up to 30 s. An export that somebody disturbed
/// fails and leaves no file. The keys that sign waitpoint tokens are not part of the store: move the file `keys` of the data
/// directory too.
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
        self.store.must_be_there()?;
        let store = Store { host: open_contents(&self.store).await?, shared: !self.store.is_embedded() };
        if import_begun(&*store.host).await? {
            bail!("the store holds a part of an import that has not ended; run that again with --again");
        }
        if store.shared {
            wait_until_quiet(&store.host).await?;
        }
        let keys = if self.file == "-" {
            if std::io::stdout().is_terminal() {
                bail!("an export is not for a terminal; name a file, or pipe it into `ff import -`");
            }
            let (mut out, keys) = store.write(BufWriter::new(std::io::stdout().lock())).await?;
            out.flush().context("cannot write to stdout")?;
            keys
        } else {
            let partial = format!("{}.partial", self.file);
            let written = store.write_file(&partial).await;
            if written.is_err() {
                let _ = std::fs::remove_file(&partial);
            }
            let keys = written.with_context(|| format!("cannot write {partial}"))?;
            std::fs::rename(&partial, &self.file)
                .with_context(|| format!("cannot rename {partial} to {}", self.file))?;
            keys
        };
        eprintln!(
            "{keys} keys exported; waitpoint tokens stay good where the file `keys` of the data directory goes along"
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// The store that is exported.
struct Store {
    host: Arc<dyn Contents>,
    /// Others can have it open too.
    shared: bool,
}

impl Store {
    async fn write_file(&self, path: &str) -> anyhow::Result<u64> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let (out, keys) = self.write(BufWriter::new(file)).await?;
        out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        Ok(keys)
    }

    async fn write<W: Write>(&self, to: W) -> anyhow::Result<(W, u64)> {
        let mut writer = Writer::new(to)?;
        let mut progress = Progress::new("exporting keys", None);
        // A scan may show a key twice.
        let mut seen: HashSet<u128> = HashSet::new();
        let mut cursor = ScanCursor::Start;
        while cursor != ScanCursor::End {
            let page = self.host.scan(cursor, PAGE).await?;
            cursor = page.next;
            let keys: Vec<Vec<u8>> = page.keys.into_iter().filter(|key| seen.insert(xxh3_128(key))).collect();
            let contents = self.host.read_keys(keys.clone()).await?;
            for (key, content) in keys.iter().zip(contents) {
                if let Some(content) = content {
                    writer.key(key, &content)?;
                }
            }
            progress.advance(keys.len() as u64);
        }
        // Whoever came meanwhile may have changed what was read before: only an export nobody disturbed is given its end.
        if self.shared {
            still_quiet(&self.host).await.context("the store changed while it was exported")?;
        }
        writer.finish()
    }
}
