//! One server on loopback with its own directory. A test can kill it and start it again.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rand::Rng;
use tempfile::TempDir;

use crate::binary::ServerBinary;
use crate::guardian::Guardian;

const START_LIMIT: Duration = Duration::from_secs(20);
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// What a server writes to disk, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Aof {
    /// Nothing: a restart is empty.
    None,
    /// Every call, flushed once a second.
    #[default]
    EverySecond,
    /// Every call, flushed before the reply.
    Always,
}

/// How to start a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program (default: the Valkey found on this machine).
    pub binary: Option<ServerBinary>,
    /// What it writes to disk.
    pub aof: Aof,
    /// Whether to start it as a cluster node.
    pub cluster: bool,
    /// The default user's password.
    pub password: Option<String>,
    /// More arguments, e.g. `["--maxmemory", "10mb"]`.
    pub extra: Vec<String>,
}

/// A running server. Dropping it kills the server and removes its directory.
pub struct TestServer {
    binary: ServerBinary,
    options: Options,
    port: u16,
    bus_port: u16,
    directory: TempDir,
    running: Option<Running>,
}

/// A started process. The guardian is dropped first, so that it never kills a reused pid.
struct Running {
    guardian: Option<Guardian>,
    process: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.guardian.take();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl TestServer {
    /// Starts a server on a free port and waits until it responds.
    pub fn start(options: Options) -> Result<TestServer> {
        let binary = match &options.binary {
            Some(binary) => binary.clone(),
            None => ServerBinary::valkey()?,
        };
        let directory = tempfile::Builder::new().prefix("ff-server-").tempdir().context("no directory for a server")?;
        let mut server = TestServer { binary, options, port: 0, bus_port: 0, directory, running: None };
        // Another process may take the port between the check and the server's bind.
        let mut attempt = 0;
        loop {
            attempt += 1;
            server.port = free_port()?;
            server.bus_port = free_port()?;
            match server.run() {
                Ok(()) => return Ok(server),
                Err(error) if attempt < 5 && server.log().contains("ddress already in use") => {
                    eprintln!("port {} was taken, trying another: {error:#}", server.port);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Its port, which stays the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port of its cluster bus.
    pub fn bus_port(&self) -> u16 {
        self.bus_port
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `valkey://[:PASSWORD@]127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        match &self.options.password {
            Some(password) => format!("valkey://:{password}@{}", self.address()),
            None => format!("valkey://{}", self.address()),
        }
    }

    /// Its process id while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.process.id())
    }

    /// The directory with its files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The program it runs.
    pub fn binary(&self) -> &ServerBinary {
        &self.binary
    }

    /// Its output so far.
    pub fn log(&self) -> String {
        fs::read(self.directory.path().join("log"))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Kills it with SIGKILL; its files stay.
    pub fn kill_9(&mut self) {
        self.running.take();
    }

    /// Kills it if it runs and starts it again with the same directory and port.
    pub fn restart(&mut self) -> Result<()> {
        self.kill_9();
        self.run()
    }

    /// Sends one command and returns the reply; an error reply is an error.
    pub fn command<T: redis::FromRedisValue>(&self, arguments: &[&str]) -> Result<T> {
        let (name, rest) = arguments.split_first().context("an empty command")?;
        let mut command = redis::cmd(name);
        for argument in rest {
            command.arg(argument);
        }
        command
            .query(&mut self.connection()?)
            .map_err(|error| anyhow!("{} on port {}: {error}", arguments.join(" "), self.port))
    }

    /// A blocking connection for admin commands.
    pub fn connection(&self) -> Result<redis::Connection> {
        let url = self.url().replacen("valkey://", "redis://", 1);
        let connection = redis::Client::open(url)?
            .get_connection_with_timeout(Duration::from_secs(2))
            .with_context(|| format!("no connection to port {}", self.port))?;
        connection.set_read_timeout(Some(COMMAND_LIMIT))?;
        connection.set_write_timeout(Some(COMMAND_LIMIT))?;
        Ok(connection)
    }

    fn run(&mut self) -> Result<()> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.directory.path().join("log"))
            .context("cannot open the server's log")?;
        let mut command = Command::new(&self.binary.path);
        command
            .args(["--port", &self.port.to_string()])
            .args(["--bind", "127.0.0.1"])
            .args(["--dir", &self.directory.path().to_string_lossy()])
            .args(["--save", ""])
            .args(["--daemonize", "no"])
            .args(["--protected-mode", "no"])
            .args(["--repl-diskless-sync-delay", "0"])
            .args(["--enable-debug-command", "yes"]);
        match self.options.aof {
            Aof::None => command.args(["--appendonly", "no"]),
            Aof::EverySecond => command.args(["--appendonly", "yes", "--appendfsync", "everysec"]),
            Aof::Always => command.args(["--appendonly", "yes", "--appendfsync", "always"]),
        };
        if self.options.cluster {
            command
                .args(["--cluster-enabled", "yes"])
                .args(["--cluster-config-file", "nodes.conf"])
                .args(["--cluster-node-timeout", "1000"])
                .args(["--cluster-port", &self.bus_port.to_string()]);
        }
        if let Some(password) = &self.options.password {
            command.args(["--requirepass", password, "--masterauth", password]);
        }
        let process = command
            .args(&self.options.extra)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.binary.path.display()))?;
        let guardian = Guardian::of(process.id())?;
        self.running = Some(Running { guardian: Some(guardian), process });
        let outcome = self.wait_until_it_answers();
        if outcome.is_err() {
            self.running.take();
        }
        outcome
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let started = Instant::now();
        loop {
            let running = self.running.as_mut().context("the server is not running")?;
            if let Some(status) = running.process.try_wait()? {
                bail!("{} ended with {status}:\n{}", self.binary.flavour, self.log());
            }
            let answer = self.command::<String>(&["PING"]);
            match answer {
                Ok(pong) if pong == "PONG" => return Ok(()),
                _ if started.elapsed() > START_LIMIT => {
                    bail!("{} did not answer within {START_LIMIT:?}: {answer:?}\n{}", self.binary.flavour, self.log())
                }
                _ => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// An unused port below the range that the kernel uses for outgoing connections.
///
/// A client that reconnects to an unused port in that range can connect to itself.
fn free_port() -> Result<u16> {
    let mut random = rand::rng();
    for _ in 0..200 {
        let port = random.random_range(15_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port between 15000 and 32000")
}
