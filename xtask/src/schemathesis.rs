//! Compares a running server with its own OpenAPI document, using schemathesis from PyPI.
//!
//! It sends every route requests that the document allows, and invalid ones. It fails on a 5xx, on an undocumented
//! response, and on a response with another shape. Afterwards every invariant of the store is checked.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::built_ff;

/// How many cases are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Amount {
    /// A few cases for one route in five, a different fifth each time.
    Sample,
    /// A hundred cases for every route.
    Wide,
    /// A thousand cases for every route; takes hours.
    Long,
}

impl Amount {
    /// The amount for the tier: everything, or a sample.
    pub fn of(wide: bool) -> Self {
        if wide { Self::Wide } else { Self::Sample }
    }

    /// Number of random cases per route.
    fn examples(self) -> &'static str {
        match self {
            Self::Sample => "10",
            Self::Wide => "100",
            Self::Long => "1000",
        }
    }
}

/// A sample tests one route in this number.
const SHARE: u64 = 5;
/// How long a server may take to start, and to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// The settings of a run.
#[derive(clap::Args)]
pub struct Options {
    #[arg(long, value_enum, default_value = "sample")]
    pub amount: Amount,
    /// The number that selects the routes of a sample.
    #[arg(long, default_value_t = ff_testkit::tier::sample())]
    pub sample: u64,
    /// Passed on to `schemathesis run`.
    #[arg(last = true)]
    pub rest: Vec<String>,
}

/// Installs what is needed, starts a server on a fresh store, and runs every check against it.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let program = installed(root)?;
    let ff = built_ff(root)?;
    let store = root.join("target/schemathesis/store");
    // An earlier run's report says nothing about this run.
    if store.exists() {
        fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))?;
    }
    let mut server = Server::start(&ff, &store)?;
    let settings = root.join("xtask/schemathesis");
    let mut command = Command::new(program);
    command.arg("--config-file").arg(settings.join("schemathesis.toml")).arg("run");
    command.arg(format!("{}/openapi.json", server.url));
    command.args(["--max-examples", options.amount.examples(), "--seed", &options.sample.to_string()]);
    if options.amount == Amount::Sample {
        let routes = routes(&ff)?;
        let asked = routes.iter().enumerate().filter(|(n, _)| (*n as u64 + options.sample).is_multiple_of(SHARE));
        for (_, name) in asked {
            command.args(["--include-operation-id", name]);
        }
    }
    command.args(&options.rest);
    // The hooks call the same server.
    command.env("FF_URL", &server.url).env("FF_TOKEN", &server.token).current_dir(&settings).stdin(Stdio::null());
    eprintln!("schemathesis run {}/openapi.json", server.url);
    let status = command.status().context("cannot run schemathesis")?;
    server.stop()?;
    let checked = Command::new(&ff).args(["fsck", "--store"]).arg(embedded(&store)).status();
    ensure!(status.success(), "schemathesis found something; the server's log is {}", server.log.display());
    ensure!(checked.context("cannot run ff fsck")?.success(), "the store is broken: {}", store.display());
    Ok(())
}

/// The names of all routes, in the order of the document.
fn routes(ff: &Path) -> Result<Vec<String>> {
    let output = Command::new(ff).arg("openapi").stdin(Stdio::null()).output().context("cannot run ff openapi")?;
    let document = String::from_utf8_lossy(&output.stdout);
    let names: Vec<String> = document
        .split("\"operationId\":\"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"').map(|(name, _)| name.to_owned()))
        .collect();
    ensure!(!names.is_empty(), "ff openapi names no routes");
    Ok(names)
}

fn embedded(store: &Path) -> String {
    format!("embedded:{}", store.display())
}

/// The program, in a separate virtual environment with exactly the required packages.
fn installed(root: &Path) -> Result<PathBuf> {
    let (wanted, venv) = (root.join("xtask/schemathesis/requirements.txt"), root.join("target/schemathesis/venv"));
    let (program, have) = (venv.join("bin/schemathesis"), venv.join("requirements.txt"));
    let asked = fs::read(&wanted).with_context(|| format!("cannot read {}", wanted.display()))?;
    if program.exists() && fs::read(&have).is_ok_and(|have| have == asked) {
        return Ok(program);
    }
    eprintln!("installing schemathesis from the package index into {}", venv.display());
    let mut make = Command::new("python3");
    let made = make.args(["-m", "venv", "--clear"]).arg(&venv).stdin(Stdio::null()).status();
    ensure!(
        made.as_ref().is_ok_and(|status| status.success()),
        "cannot make a virtual environment: python3 3.10 or later with its venv module is needed"
    );
    let mut install = Command::new(venv.join("bin/pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&wanted);
    let status = install.stdin(Stdio::null()).status().context("cannot run pip")?;
    ensure!(
        status.success(),
        "cannot install schemathesis: pip could not get it from the package index (PIP_INDEX_URL names another)"
    );
    fs::write(&have, asked).with_context(|| format!("cannot write {}", have.display()))?;
    Ok(program)
}

/// A server with authentication, on an unused port of this machine.
struct Server {
    process: Child,
    url: String,
    token: String,
    log: PathBuf,
}

impl Server {
    fn start(ff: &Path, store: &Path) -> Result<Self> {
        fs::create_dir_all(store).with_context(|| format!("cannot make {}", store.display()))?;
        let mut command = Command::new(ff);
        command.args(["server", "--listen", "127.0.0.1:0", "--durability", "relaxed", "--store"]).arg(embedded(store));
        // The user's own settings must not affect the server.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FF_")) {
            command.env_remove(name);
        }
        command.current_dir(store).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().context("cannot start ff server")?;
        let log = store.with_extension("log");
        let mut kept = fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let said = BufReader::new(process.stderr.take().expect("it is piped"));
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                if let Some(url) = line.strip_prefix("listening on ") {
                    // The receiver is gone if the server took too long.
                    let _ = tell.send(url.trim().to_owned());
                }
                // The log is only for people.
                let _ = writeln!(kept, "{line}");
            }
        });
        let Ok(url) = told.recv_timeout(PATIENCE) else {
            let _ = process.kill();
            bail!("the server did not start; its log is {}", log.display());
        };
        let token = fs::read_to_string(store.join("root-token")).context("cannot read the root token")?;
        Ok(Self { process, url, token: token.trim().to_owned(), log })
    }

    /// Tells it to stop, and waits for its end.
    fn stop(&mut self) -> Result<()> {
        let asked = Command::new("kill").arg(self.process.id().to_string()).status();
        ensure!(asked.is_ok_and(|status| status.success()), "the server has gone; its log is {}", self.log.display());
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.process.try_wait().context("cannot wait for the server")? {
                ensure!(status.success(), "the server ended with {status}; its log is {}", self.log.display());
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("the server did not stop; its log is {}", self.log.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has already ended, unless something went wrong.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
