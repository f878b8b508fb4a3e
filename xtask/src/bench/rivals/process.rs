//! Processes that the bench starts. Each ends when its value is dropped, and its output is read line by line up to a
//! deadline.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a process may take to end after it was told to.
const END_LIMIT: Duration = Duration::from_secs(10);

/// A process of the bench. It is killed and reaped when this value is dropped.
pub struct Process {
    name: String,
    child: Child,
    /// Processes that read their input end when this is dropped, even if the bench itself is killed.
    input: Option<ChildStdin>,
}

impl Process {
    pub fn start(name: &str, command: &mut Command) -> Result<Process> {
        command.stdin(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let input = child.stdin.take();
        Ok(Process { name: name.to_owned(), child, input })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The lines of its standard output, which must be piped.
    pub fn output(&mut self) -> Result<Lines> {
        Ok(Lines::of(self.child.stdout.take().with_context(|| format!("{} has no output", self.name))?))
    }

    /// The lines of its standard error, which must be piped.
    pub fn errors(&mut self) -> Result<Lines> {
        Ok(Lines::of(self.child.stderr.take().with_context(|| format!("{} has no standard error", self.name))?))
    }

    /// Its standard input.
    pub fn input(&mut self) -> Result<&mut ChildStdin> {
        self.input.as_mut().with_context(|| format!("the input of {} is closed", self.name))
    }

    /// Waits for the end of a process that ends by itself.
    pub fn wait(&mut self) -> Result<()> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                anyhow::ensure!(status.success(), "{} ended with {status}", self.name);
                return Ok(());
            }
            anyhow::ensure!(began.elapsed() < END_LIMIT, "{} did not end within {END_LIMIT:?}", self.name);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks it to end with SIGTERM, and waits for it.
    pub fn end(mut self) -> Result<()> {
        let asked = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        anyhow::ensure!(asked.context("cannot run kill")?.success(), "{} cannot be asked to end", self.name);
        self.wait()
    }

    /// Closes its input and waits for its end.
    pub fn stop(mut self) -> Result<()> {
        self.input.take();
        self.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of a pipe. A thread reads them, so the process never waits for a reader.
pub struct Lines(Receiver<String>);

impl Lines {
    fn of(pipe: impl Read + Send + 'static) -> Lines {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(|line| line.ok()) {
                // Without a receiver the pipe is still read to its end.
                let _ = sender.send(line);
            }
        });
        Lines(receiver)
    }

    /// The next line, or `None` at the end.
    pub fn next(&self, deadline: Instant) -> Result<Option<String>> {
        match self.0.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("nothing was printed in time"),
        }
    }
}

/// A loopback port that was unused a moment ago.
pub fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}
