//! The compared systems. Each run starts a fresh store, then a driver, which starts its worker and prints figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ff_testkit::{Aof, TestServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Scale;
use super::process::{Lines, Process, free_port};

/// Number of tasks that a worker runs at once.
const SLOTS: usize = 64;
/// Number of concurrent submitters.
const SUBMITTERS: usize = 16;
/// A driver that takes longer than this has hung.
const RUN_LIMIT: Duration = Duration::from_secs(300);
const START_LIMIT: Duration = Duration::from_secs(60);

/// The figures of one run, by name.
pub type Figures = BTreeMap<String, f64>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    BullMq,
    /// Worker and submitter use Valkey directly; `ff server` runs timers.
    Direct,
    HttpValkey,
    Restate,
    HttpEmbedded,
}

impl System {
    /// The order in a round: compared systems follow each other.
    pub const ALL: [System; 5] =
        [System::BullMq, System::Direct, System::HttpValkey, System::Restate, System::HttpEmbedded];

    pub fn name(self) -> &'static str {
        match self {
            System::BullMq => "bullmq",
            System::Direct => "direct-valkey",
            System::HttpValkey => "http-valkey",
            System::Restate => "restate",
            System::HttpEmbedded => "http-embedded",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            System::BullMq => "BullMQ",
            System::Direct => "direct, Valkey",
            System::HttpValkey => "HTTP, Valkey",
            System::Restate => "Restate",
            System::HttpEmbedded => "HTTP, embedded",
        }
    }

    /// The system to compare with, for FlowFabric's own systems.
    pub fn rival(self) -> Option<System> {
        match self {
            System::Direct | System::HttpValkey => Some(System::BullMq),
            System::HttpEmbedded => Some(System::Restate),
            System::BullMq | System::Restate => None,
        }
    }

    /// Measures once. Files are kept in `folder`.
    pub(super) fn measure(self, root: &Path, folder: &Path, scale: &Scale) -> Result<Figures> {
        let scene = Scene { root, folder, scale };
        match self {
            System::BullMq => scene.bullmq(),
            System::Restate => scene.restate(),
            System::Direct => scene.direct(),
            System::HttpValkey => scene.http(&everysec()?),
            System::HttpEmbedded => scene.embedded(),
        }
        .with_context(|| format!("cannot measure {}", self.name()))
    }
}

/// The Valkey of every system that needs one.
fn everysec() -> Result<TestServer> {
    TestServer::start(ff_testkit::Options { aof: Aof::EverySecond, ..Default::default() })
}

struct Scene<'a> {
    root: &'a Path,
    folder: &'a Path,
    scale: &'a Scale,
}

impl Scene<'_> {
    fn directory(&self) -> Result<TempDir> {
        tempfile::Builder::new().prefix("rivals-").tempdir_in(self.folder).context("no directory for a store")
    }

    /// The common settings of every driver, with additional ones.
    fn spec(&self, more: Value) -> Value {
        let mut spec = json!({ "slots": SLOTS, "submitters": SUBMITTERS, "scale": self.scale.json() });
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        spec
    }

    fn bullmq(&self) -> Result<Figures> {
        let valkey = everysec()?;
        let spec = self.spec(json!({ "port": valkey.port(), "pids": { "store": valkey.pid() } }));
        self.node("bullmq", &spec)
    }

    fn restate(&self) -> Result<Figures> {
        let directory = self.directory()?;
        let [node, ingress, admin, worker] = [free_port()?, free_port()?, free_port()?, free_port()?];
        let config = directory.path().join("restate.toml");
        let text = format!(
            "cluster-name = \"bench\"\nnode-name = \"n1\"\nauto-provision = true\ndisable-telemetry = true\n\
             listen-mode = \"tcp\"\nbind-ip = \"127.0.0.1\"\nbind-port = {node}\n\
             advertised-address = \"http://127.0.0.1:{node}/\"\nlog-filter = \"warn\"\nbase-dir = \"{}\"\n\
             [ingress]\nbind-address = \"127.0.0.1:{ingress}\"\n[admin]\nbind-address = \"127.0.0.1:{admin}\"\n\
             [log-server]\nrocksdb-disable-wal-fsync = false\n",
            directory.path().display()
        );
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        let log = fs::File::create(self.folder.join("rivals-restate.log")).context("no log for Restate")?;
        let server = Process::start(
            "restate-server",
            Command::new(self.restate_server()?)
                .arg("--config-file")
                .arg(&config)
                .arg("--no-logo")
                .env("DO_NOT_TRACK", "1")
                .stdout(log.try_clone()?)
                .stderr(log),
        )?;
        let ports = json!({ "ingress": ingress, "admin": admin, "worker": worker });
        let spec = self.spec(json!({ "ports": ports, "pids": { "server": server.pid() } }));
        self.node("restate", &spec)
    }

    /// The server's program itself: npm's `restate-server` is a script that would start it as a separate process.
    fn restate_server(&self) -> Result<PathBuf> {
        let packages = self.root.join("target/rivals/restate/node_modules/@restatedev");
        let found = fs::read_dir(&packages)?.filter_map(|entry| entry.ok()).find_map(|entry| {
            let program = entry.path().join("bin/restate-server");
            let of_a_platform = entry.file_name().to_string_lossy().starts_with("restate-server-");
            (of_a_platform && program.is_file()).then_some(program)
        });
        found.with_context(|| format!("{} has no server for this platform", packages.display()))
    }

    fn direct(&self) -> Result<Figures> {
        let (valkey, directory) = (everysec()?, self.directory()?);
        let server = start_server(self.root, &valkey.url(), directory.path())?;
        let spec = self.spec(json!({
            "port": valkey.port(),
            "pids": { "store": valkey.pid(), "server": server.0.pid() },
        }));
        self.ours(&spec, directory.path())
    }

    fn http(&self, valkey: &TestServer) -> Result<Figures> {
        let directory = self.directory()?;
        let server = start_server(self.root, &valkey.url(), directory.path())?;
        let spec = self.spec(json!({ "url": server.1, "pids": { "store": valkey.pid(), "server": server.0.pid() } }));
        self.ours(&spec, directory.path())
    }

    fn embedded(&self) -> Result<Figures> {
        let directory = self.directory()?;
        let store = format!("embedded:{}", directory.path().join("store").display());
        let server = start_server(self.root, &store, directory.path())?;
        let spec = self.spec(json!({ "url": server.1, "pids": { "server": server.0.pid() } }));
        self.ours(&spec, directory.path())
    }

    fn node(&self, folder: &str, spec: &Value) -> Result<Figures> {
        let mut command = Command::new("node");
        command.arg("driver.mjs").arg(spec.to_string()).current_dir(self.root.join("target/rivals").join(folder));
        collect(command)
    }

    /// FlowFabric's driver is this program.
    fn ours(&self, spec: &Value, data: &Path) -> Result<Figures> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["bench", "rivals-driver"]).arg(spec.to_string()).env("FF_DATA_DIR", data);
        collect(command)
    }
}

/// Starts `ff server`; also returns its URL.
pub fn start_server(root: &Path, store: &str, data: &Path) -> Result<(Process, String)> {
    let mut command = Command::new(root.join("target/release/ff"));
    command.args(["server", "--no-auth", "--listen", "127.0.0.1:0", "--store", store]);
    command.env("FF_DATA_DIR", data).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = Process::start("ff server", &mut command)?;
    let says = server.errors()?;
    let deadline = Instant::now() + START_LIMIT;
    while let Some(line) = says.next(deadline)? {
        if let Some((_, rest)) = line.split_once("listening on ") {
            let url = rest.split(',').next().unwrap_or(rest).to_owned();
            return Ok((server, url));
        }
    }
    anyhow::bail!("ff server did not start on {store}")
}

/// Runs a driver to its end, and returns the figures it prints.
fn collect(mut command: Command) -> Result<Figures> {
    let deadline = Instant::now() + RUN_LIMIT;
    let mut driver = Process::start("the driver", command.stdout(Stdio::piped()))?;
    let says: Lines = driver.output()?;
    let mut figures = Figures::new();
    while let Some(line) = says.next(deadline).context("the driver hangs")? {
        let (name, value) = parsed(&line).with_context(|| format!("the driver printed {line:?}"))?;
        figures.insert(name, value);
    }
    driver.wait()?;
    Ok(figures)
}

fn parsed(line: &str) -> Option<(String, f64)> {
    let figure: Value = serde_json::from_str(line).ok()?;
    Some((figure["figure"].as_str()?.to_owned(), figure["value"].as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_one_line_of_json() {
        assert_eq!(parsed(r#"{"figure":"drain_per_s","value":11300}"#), Some(("drain_per_s".to_owned(), 11_300.0)));
        assert_eq!(parsed(r#"{"figure":"drain_per_s"}"#), None);
        assert_eq!(parsed("listening"), None);
    }
}
