//! Ensures that a killed test process leaves no servers behind.

use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};

/// A shell that kills one process as soon as the process with this value is gone.
///
/// It waits for the end of its standard input. Only this process holds the other end.
pub(crate) struct Guardian {
    shell: Child,
    _input: ChildStdin,
}

impl Guardian {
    pub(crate) fn of(pid: u32) -> Result<Guardian> {
        let mut shell = Command::new("sh")
            .args(["-c", "read -r _; kill -9 \"$0\"", &pid.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the shell that guards a server")?;
        let input = shell.stdin.take().context("the guarding shell has no standard input")?;
        Ok(Guardian { shell, _input: input })
    }
}

impl Drop for Guardian {
    /// Ends the shell before the process it guards is reaped, so its pid cannot have been reused.
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
