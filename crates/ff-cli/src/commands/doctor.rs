//! `ff doctor`: looks at this installation and says what to do about what it finds.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::server::{GetCapabilities, ServerCapabilities};
use ff_script::Library;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use crate::client::{Api, ServerArgs};
use crate::listen::listen_address;
use crate::output::{Output, OutputArgs, say};
use crate::problem::explained;
use crate::store::{IN_USE, StoreAddress, open, state_directory};
use crate::times::now_ms;

/// Less room than this is worth a word, and a failure.
const ROOM_WARN: u64 = 2 * 1024 * 1024 * 1024;
const ROOM_FAIL: u64 = 200 * 1024 * 1024;
/// The server takes 4096 connections, and its store needs files too.
const FILES_WARN: u64 = 8_192;
const SKEW_WARN_MS: i64 = 2_000;
const SKEW_FAIL_MS: i64 = 30_000;

/// Looks at this installation: store, durability and its loss window, room on disk, permissions of secrets, limits, port, server and
/// clock. Exits 1 when something is broken.
#[derive(Args)]
#[command(after_help = "Example:
  ff doctor
  ff doctor --store valkey://127.0.0.1:6379 -o json")]
pub struct Doctor {
    /// The store to look at (default: the one of the state directory).
    #[arg(long, env = "FF_STORE")]
    store: Option<StoreAddress>,
    /// The state directory: the store when none is named, and the keys.
    #[arg(long, env = "FF_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where a server would listen.
    #[arg(long, env = "FF_LISTEN", default_value = "127.0.0.1:7433", value_parser = listen_address, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "fail",
        }
    }
}

/// One look.
#[derive(Debug)]
struct Finding {
    what: &'static str,
    verdict: Verdict,
    found: String,
    /// What to do about it.
    todo: Option<String>,
}

impl Finding {
    fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, verdict: Verdict::Ok, found: found.into(), todo: None }
    }

    fn warn(what: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { what, verdict: Verdict::Warn, found: found.into(), todo: Some(todo.into()) }
    }

    fn fail(what: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { what, verdict: Verdict::Fail, found: found.into(), todo: Some(todo.into()) }
    }
}

impl Doctor {
    /// Prints what it found.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let data = match &self.data_dir {
            Some(directory) => directory.clone(),
            None => state_directory()?,
        };
        let address = self.store.clone().unwrap_or_else(|| StoreAddress::Embedded(data.join("server")));
        let shipped = Library::shipped();
        let mut findings =
            vec![Finding::ok("version", format!("ff {}, library {}", env!("CARGO_PKG_VERSION"), shipped.number))];
        let serving = self.look_at_server(&mut findings).await;
        findings.push(port(self.listen, serving));
        findings.push(store(&address, serving).await);
        let directory = match &address {
            StoreAddress::Embedded(directory) => directory.clone(),
            StoreAddress::Valkey(_) => data.clone(),
        };
        findings.push(room(&directory));
        findings.push(secrets(&[&data, &directory]));
        findings.push(files());
        self.print(&findings)?;
        let broken = findings.iter().any(|finding| finding.verdict == Verdict::Fail);
        Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// True when a server answers.
    async fn look_at_server(&self, findings: &mut Vec<Finding>) -> bool {
        let url = self.server.url();
        let api = match Api::new(&self.server) {
            Ok(api) => api,
            Err(error) => {
                findings.push(Finding::fail("server", error.to_string(), "say where it is with --url or FF_URL"));
                return false;
            }
        };
        let sent = now_ms();
        let health = match api.health().await {
            Ok(health) => health,
            Err(_) => {
                let todo = "start one with `ff dev` or `ff server`, or say where it is with --url or FF_URL";
                findings.push(Finding::warn("server", format!("none answers at {url}"), todo));
                return false;
            }
        };
        match health.ready {
            true => findings.push(Finding::ok("server", format!("ready at {url}"))),
            false => findings.push(Finding::fail(
                "server",
                format!("{url} is not ready: {}", health.said),
                "look at its log; its store may be away",
            )),
        }
        let theirs = health.date.and_then(|date| jiff::fmt::rfc2822::parse(&date).ok());
        findings.extend(theirs.map(|theirs| clock(theirs.timestamp().as_millisecond(), sent, now_ms())));
        match api.ask(&Ask::<GetCapabilities>::at(())).await {
            Ok(facts) => findings.extend(agreement(&facts.value)),
            Err(error) => {
                findings.push(Finding::fail(
                    "capabilities",
                    explained(&error),
                    "present a token with --token or FF_TOKEN",
                ));
            }
        }
        true
    }

    fn print(&self, findings: &[Finding]) -> anyhow::Result<()> {
        match self.output.output {
            Output::Json => {
                let list: Vec<Value> = findings
                    .iter()
                    .map(|one| json!({ "check": one.what, "verdict": one.verdict.word(), "found": one.found, "todo": one.todo }))
                    .collect();
                say(&json!({ "items": list }).to_string())
            }
            Output::Ids => {
                let broken = findings.iter().filter(|one| one.verdict != Verdict::Ok);
                broken.into_iter().try_for_each(|one| say(one.what))
            }
            Output::Table => findings.iter().try_for_each(|one| {
                say(&format!("{:4}  {:12}  {}", one.verdict.word(), one.what, one.found))?;
                one.todo.as_ref().map_or(Ok(()), |todo| say(&format!("{:20}→ {todo}", "")))
            }),
        }
    }
}

/// What the server says about itself.
fn agreement(facts: &ServerCapabilities) -> Vec<Finding> {
    let (theirs, ours, store) = (&facts.version, env!("CARGO_PKG_VERSION"), &facts.store);
    let promise = format!("{} store, {}: a crash costs {}", store.kind, store.durability, store.loss_window);
    vec![
        if theirs == ours {
            Finding::ok("agreement", format!("the server has version {theirs}"))
        } else {
            Finding::warn(
                "agreement",
                format!("the server has version {theirs}, this is {ours}"),
                "use the same version of ff",
            )
        },
        if store.durability == "none" {
            Finding::warn("durability", promise, "turn on Valkey's append-only file, or accept the loss")
        } else {
            Finding::ok("durability", promise)
        },
    ]
}

/// How far the server's clock is from ours, beyond what asking took and what its answer leaves out.
fn clock(theirs: i64, sent: i64, heard: i64) -> Finding {
    // Its answer is in whole seconds.
    let skew = if theirs + 999 < sent { sent - theirs - 999 } else { (theirs - heard).max(0) };
    let found = format!("{skew} ms from the server's");
    let todo = "let NTP set the clocks: times in listings and delays are by the store's clock";
    match skew {
        SKEW_FAIL_MS.. => Finding::fail("clock", found, todo),
        SKEW_WARN_MS.. => Finding::warn("clock", found, todo),
        _ => Finding::ok("clock", found),
    }
}

fn port(listen: SocketAddr, serving: bool) -> Finding {
    match TcpListener::bind(listen) {
        Ok(_) => Finding::ok("port", format!("{listen} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && serving => {
            Finding::ok("port", format!("{listen} is in use, and a server answers"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Finding::warn("port", format!("{listen} is in use by something else"), "choose another with --listen")
        }
        Err(error) => Finding::fail("port", format!("{listen}: {error}"), "choose another with --listen"),
    }
}

async fn store(address: &StoreAddress, serving: bool) -> Finding {
    if let StoreAddress::Embedded(directory) = address
        && !directory.exists()
    {
        let found = format!("{} is not there yet; the first `ff server` makes it", directory.display());
        return Finding::ok("store", found);
    }
    match open(address, None).await {
        Ok((host, _)) => {
            let facts = host.facts();
            let found = format!("{} opens, {}: a crash costs {}", facts.kind, facts.durability, facts.loss_window);
            if facts.durability == "none" {
                return Finding::warn("store", found, "turn on Valkey's append-only file: appendonly yes");
            }
            Finding::ok("store", found)
        }
        Err(error) => {
            let said = format!("{error:#}");
            if serving && said.contains(IN_USE) {
                return Finding::ok("store", "in use by a running process, as it should be");
            }
            Finding::fail("store", said, "say which store with --store; `ff server` says the same when it starts")
        }
    }
}

/// The room where the data is, or will be.
fn room(directory: &Path) -> Finding {
    let there = directory.ancestors().find(|directory| directory.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        Err(error) => Finding::warn("disk", format!("{}: {error}", there.display()), "look at the file system"),
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let found = format!("{} MiB free at {}", free / 1024 / 1024, there.display());
            let todo = "make room: a full disk refuses new work; what ends or frees work goes on until its reserve of 8 MiB is used up";
            match free {
                0..ROOM_FAIL => Finding::fail("disk", found, todo),
                ROOM_FAIL..ROOM_WARN => Finding::warn("disk", found, todo),
                _ => Finding::ok("disk", found),
            }
        }
    }
}

/// Files that hold secrets are for their owner alone.
fn secrets(directories: &[&Path]) -> Finding {
    let mut open = Vec::new();
    let mut looked = 0;
    let mut files: Vec<PathBuf> = Vec::new();
    for directory in directories {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        files.extend(entries.map(|entry| entry.path()).filter(|path| holds_secrets(path)));
    }
    files.sort();
    files.dedup();
    for path in files {
        let Ok(meta) = std::fs::metadata(&path) else { continue };
        looked += 1;
        if meta.permissions().mode() & 0o077 != 0 {
            open.push(path);
        }
    }
    if open.is_empty() {
        return Finding::ok("secrets", format!("{looked} files, each for its owner alone"));
    }
    let names: Vec<String> = open.iter().map(|path| path.display().to_string()).collect();
    let mut todo = format!("chmod 600 {}", names.join(" "));
    let mut after: Vec<&str> = open.iter().map(|path| renewal(path)).collect();
    after.dedup();
    todo.push_str(&format!("; if others had access, {}", after.join(", and ")));
    Finding::fail("secrets", format!("others may read {}", names.join(", ")), todo)
}

/// How a secret that others may have seen is replaced.
fn renewal(path: &Path) -> &'static str {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("root-token") => "stop the server, delete the root-token and start it again: a new one is made",
        Some("keys") => "rotate the keys with `ff key rotate` and revoke the old one",
        Some(name) if name.contains("token") => "make other tokens with `ff token create` and revoke these",
        _ => "replace the key and its certificate",
    }
}

fn holds_secrets(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.is_file() && (name == "keys" || name.contains("token") || name.ends_with(".key") || name.ends_with(".pem"))
}

fn files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    match limit.current {
        Some(soft) if soft < FILES_WARN => {
            let hard = limit.maximum.map_or_else(|| "unlimited".to_owned(), |hard| hard.to_string());
            Finding::warn(
                "open files",
                format!("{soft} at most, {hard} may be asked for"),
                format!("`ulimit -n {FILES_WARN}` before starting a server with many workers"),
            )
        }
        Some(soft) => Finding::ok("open files", format!("{soft} at most")),
        None => Finding::ok("open files", "unlimited"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_judged_by_what_cannot_be_explained() {
        for (theirs, verdict) in [
            (10_000, Verdict::Ok),
            (9_000, Verdict::Ok),
            (7_000, Verdict::Warn),
            (13_000, Verdict::Warn),
            (60_000, Verdict::Fail),
        ] {
            assert_eq!(clock(theirs, 10_500, 10_600).verdict, verdict, "{theirs}");
        }
    }

    #[test]
    fn secrets_that_others_may_read_are_a_failure() {
        let directory = tempfile::tempdir().expect("a directory");
        let keys = directory.path().join("keys");
        std::fs::write(&keys, "x").expect("a file");
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o640)).expect("permissions");
        let finding = secrets(&[directory.path(), directory.path()]);
        assert_eq!(finding.verdict, Verdict::Fail);
        let todo = finding.todo.expect("a remedy");
        assert!(todo.contains("chmod 600") && todo.contains("ff key rotate") && !todo.contains("root-token"), "{todo}");
        let token = directory.path().join("root-token");
        std::fs::write(&token, "x").expect("a file");
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).expect("permissions");
        let todo = secrets(&[directory.path()]).todo.expect("a remedy");
        assert!(todo.contains("delete the root-token and start it again"), "{todo}");
        std::fs::remove_file(&token).expect("it goes");
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        assert_eq!(secrets(&[directory.path()]).verdict, Verdict::Ok);
    }
}
