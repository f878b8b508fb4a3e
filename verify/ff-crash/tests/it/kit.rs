//! Child processes that end with the test, and bounded waiting.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// A child that is killed when this value is dropped.
pub struct Process(pub Child);

impl Process {
    pub fn start(arguments: &[&std::ffi::OsStr]) -> Result<Process> {
        let child = Command::new(env!("CARGO_BIN_EXE_ff-crash-child"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()?;
        Ok(Process(child))
    }

    pub fn kill_9(mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Sends a signal by name, e.g. `STOP`.
    pub fn signal(&self, name: &str) -> Result<()> {
        let status = Command::new("kill").args([format!("-{name}"), self.0.id().to_string()]).status()?;
        if !status.success() {
            bail!("kill -{name} {} failed", self.0.id());
        }
        Ok(())
    }

    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(180);

/// Repeats `look` until it returns a value, or fails.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(seen) = look().await? {
            return Ok(seen);
        }
        if started.elapsed() > PATIENCE {
            bail!("{what}: not within {PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
