//! A disk of a few mebibytes, for tests of a full disk.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// A file system in memory that only programs started by [`SmallDisk::command`] see. It is removed when this value is
/// dropped.
pub struct SmallDisk {
    keeper: Child,
    directory: TempDir,
    /// How other programs enter it. Without root, this includes a user namespace.
    enter: &'static [&'static str],
}

impl SmallDisk {
    /// Mounts a disk of this size. Needs root or user namespaces, and util-linux.
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

    /// The path of the disk for programs that see it.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The path of the disk for all other programs.
    pub fn from_outside(&self) -> PathBuf {
        let inside = self.path().strip_prefix("/").unwrap_or(self.path());
        Path::new("/proc").join(self.keeper.id().to_string()).join("root").join(inside)
    }

    /// A program that sees the disk. It keeps the process id it is started with.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.keeper.id().to_string()]).args(self.enter).arg("--").arg(program);
        command
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The shell also ends at the end of its input, so a killed test leaves nothing behind.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
