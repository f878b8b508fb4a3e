//! The cost of kept ended executions: the rate and the size of a store, and how long a server takes to start on it.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::StoreOptions;
use super::machine::Others;
use super::page::{self, Head, Table, grouped, percent};
use super::phases::{cycles, fill, show_lane, warm_up};
use super::retained::blocks;
use super::rivals::systems::start_server;
use super::sample::Sample;
use super::store::{Setting, Store};

const IN_FLIGHT: usize = 64;
const WARM_UP: Duration = Duration::from_secs(1);
/// How long a server may take until its first response.
const START_LIMIT: Duration = Duration::from_secs(30);

struct Scale {
    few: usize,
    many: usize,
    rounds: usize,
    cycles: usize,
}

const FULL: Scale = Scale { few: 10_000, many: 1_000_000, rounds: 5, cycles: 4_000 };
const QUICK: Scale = Scale { few: 2_000, many: 50_000, rounds: 1, cycles: 2_000 };

/// A store at one size.
struct Size {
    kept: usize,
    per_second: Sample,
    bytes: u64,
}

/// A store at its sizes.
struct Grown {
    store: &'static str,
    sizes: [Size; 2],
    /// Time from the start of `ff server` to its first response, at the larger size.
    answers_ms: f64,
}

impl Grown {
    fn bytes_each(&self) -> f64 {
        let [few, many] = &self.sizes;
        many.bytes.saturating_sub(few.bytes) as f64 / (many.kept - few.kept) as f64
    }

    fn share(&self) -> f64 {
        let [few, many] = &self.sizes;
        many.per_second.median() / few.per_second.median()
    }
}

/// Measures, prints and writes.
pub fn run(root: &Path, options: &StoreOptions) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let folder = root.join("target/bench");
    let scale = if options.quick { QUICK } else { FULL };
    let built = crate::cargo::cargo(root).args(["build", "--quiet", "--release", "--package", "ff-cli"]).status();
    anyhow::ensure!(built.context("cannot run cargo")?.success(), "ff could not be built");
    let (began, others) = (Instant::now(), Others::watch()?);
    let mut head = Head::new(&folder, options.quick);
    let mut settings = vec![Setting::EMBEDDED_FSYNC, Setting::VALKEY_EVERYSEC];
    if let Some(part) = &options.store {
        settings.retain(|setting| setting.name().contains(part.as_str()));
    }
    let mut grown = Vec::new();
    for setting in settings {
        grown.push(runtime.block_on(measure(root, &folder, setting, &scale))?);
    }
    head.ended(began.elapsed(), &others)?;
    let markdown = page(&head, &grown);
    println!("{markdown}");
    page::write(&folder, "growth", &report(&head, &grown), &markdown)?;
    if options.publish {
        page::publish(&root.join("docs/benchmarks.md"), "growth", &markdown)?;
    }
    Ok(())
}

async fn measure(root: &Path, folder: &Path, setting: Setting, scale: &Scale) -> Result<Grown> {
    let store = Store::open(setting, folder).await?;
    show_lane(&store).await?;
    let few = size(&store, scale, scale.few, 0).await?;
    let many = size(&store, scale, scale.many, few.kept).await?;
    let data = tempfile::Builder::new().prefix("data-").tempdir_in(folder)?;
    let address = match (store.embedded(), store.server()) {
        (Some((host, directory)), _) => {
            host.close().await;
            format!("embedded:{}", directory.display())
        }
        (None, Some(server)) => server.url(),
        (None, None) => anyhow::bail!("{} has neither files nor a server", setting.name()),
    };
    // The first server takes the store over from this process. The second one finds the store as a server left it.
    first_response(root, &address, data.path())?;
    let answers_ms = first_response(root, &address, data.path())?.as_secs_f64() * 1_000.0;
    Ok(Grown { store: setting.name(), sizes: [few, many], answers_ms })
}

/// Fills the store up to `kept` ended executions, and measures it.
async fn size(store: &Store, scale: &Scale, kept: usize, so_far: usize) -> Result<Size> {
    eprintln!("{}: {} ended executions", store.setting.name(), grouped(kept as f64));
    let kept = so_far + fill(store, kept - so_far).await?;
    let bytes = bytes(store).await?;
    warm_up(store, IN_FLIGHT, WARM_UP).await?;
    let mut per_second = Sample::default();
    for _ in 0..scale.rounds {
        per_second.add(cycles(store, IN_FLIGHT, scale.cycles).await?.per_second());
    }
    Ok(Size { kept, per_second, bytes })
}

/// The size of the store: on disk if embedded, otherwise in the server's memory.
async fn bytes(store: &Store) -> Result<u64> {
    if let Some((host, directory)) = store.embedded() {
        host.flush().await?;
        return blocks(directory);
    }
    let server = store.server().context("the store has no server")?;
    let memory: String = server.command(&["INFO", "memory"])?;
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok());
    used.context("INFO memory has no used_memory")
}

/// Starts `ff server`, waits for its first response, and stops it.
fn first_response(root: &Path, store: &str, data: &Path) -> Result<Duration> {
    let began = Instant::now();
    let (server, url) = start_server(root, store, data)?;
    let address = url.strip_prefix("http://").context("the server has no plain URL")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(START_LIMIT))?;
    write!(stream, "GET /v1/stats HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let took = began.elapsed();
    anyhow::ensure!(response.starts_with("HTTP/1.1 200"), "the server's first response was {response:?}");
    server.end()?;
    Ok(took)
}

fn page(head: &Head, grown: &[Grown]) -> String {
    let mut page = String::from("## Many ended executions\n\n");
    let what = format!("{IN_FLIGHT} cycles of submit, claim and complete in flight, 256-byte input");
    head.write(&mut page, &what, "sizes");
    let mut table = Table::new(&[
        "store",
        "kept",
        "cycles/s",
        "spread",
        "kept",
        "cycles/s",
        "spread",
        "rate kept",
        "bytes each",
        "server answers after ms",
    ]);
    for one in grown {
        let mut row = vec![one.store.to_owned()];
        for Size { kept, per_second, .. } in &one.sizes {
            row.extend([grouped(*kept as f64), grouped(per_second.median()), percent(per_second.spread())]);
        }
        row.extend([percent(one.share()), grouped(one.bytes_each()), grouped(one.answers_ms)]);
        table.row(row);
    }
    table.write(&mut page);
    let _ = writeln!(
        page,
        "**Bytes each** is the growth of the store per execution: files of the embedded store, `used_memory` of Valkey. \
         The last column is from the start of `ff server` on the larger store to its first response."
    );
    page
}

fn report(head: &Head, grown: &[Grown]) -> serde_json::Value {
    let stores = grown.iter().map(|one| {
        let sizes = one.sizes.iter().map(
            |size| json!({ "kept": size.kept, "per_second": page::sample(&size.per_second), "bytes": size.bytes }),
        );
        json!({
            "store": one.store, "sizes": sizes.collect::<Vec<_>>(), "bytes_each": one.bytes_each(),
            "rate_kept": one.share(), "server_answers_ms": one.answers_ms,
        })
    });
    json!({ "run": head.json(), "stores": stores.collect::<Vec<_>>() })
}
