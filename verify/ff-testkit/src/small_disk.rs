//! A disk of a few mebibytes, for tests of what happens when it is full.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// A file system in memory that only programs started through [`SmallDisk::command`] see. It goes with the value.
pub struct SmallDisk {
    keeper: Child,
    directory: TempDir,
    /// How other programs enter: without root it takes a user namespace as well.
    enter: &'static [&'static str],
}

impl SmallDisk {
    /// Mounts a disk of so many mebibytes. Needs root or user namespaces, and util-linux.
    pub fn mount(mebibytes: u32) -> Result<SmallDisk> {
        let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
        let (unshare, enter): (&[&str], &[&str]) =
            if root { (&["-m"], &["-m"]) } else { (&["-r", "-m"], &["-U", "--preserve-credentials", "-m"]) };
        let directory = tempfile::Builder::new().prefix("ff-disk-").tempdir().context("no directory for a disk")?;
        let script = format!("mount -t tmpfs -o size={mebibytes}m tmpfs \"$0\" && echo mounted && read -r _");
        let mut keeper = Command::new("unshare")
            .args(unshare)
            .args(["sh", "-c", &script])
            .arg(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("cannot run unshare, which is part of util-linux")?;
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().context("it is piped")?).read_line(&mut said)?;
        let disk = SmallDisk { keeper, directory, enter };
        ensure!(
            said.trim() == "mounted",
            "a small disk cannot be mounted: run the tests as root, or allow user namespaces"
        );
        Ok(disk)
    }

    /// Where the disk is, for programs that see it.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The same place, for programs that do not.
    pub fn from_outside(&self) -> PathBuf {
        let inside = self.path().strip_prefix("/").unwrap_or(self.path());
        Path::new("/proc").join(self.keeper.id().to_string()).join("root").join(inside)
    }

    /// A program that sees the disk; it keeps the process id it is started with.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.keeper.id().to_string()]).args(self.enter).arg("--").arg(program);
        command
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The shell ends with its input too, so a killed test leaves nothing behind.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
