//! The Python environment of the client's tests, its type checkers and the programs in the docs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The oldest Python that the client supports.
const OLDEST: &str = "3.9";

/// A Python on this machine that the client supports.
pub struct Python {
    program: &'static str,
    /// For example `3.11.7`.
    pub version: String,
}

impl Python {
    /// Finds one on PATH; `None` if there is none, or only an older one.
    pub fn find() -> Option<Self> {
        ["python3", "python"].into_iter().find_map(|program| {
            let asked =
                "import sys; print('.'.join(map(str, sys.version_info[:3]))); sys.exit(sys.version_info < (3, 9))";
            let output = Command::new(program).args(["-c", asked]).stdin(Stdio::null()).output().ok()?;
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success().then_some(Self { program, version })
        })
    }

    /// Returns the programs of a virtual environment under `target/` with the packages in
    /// `sdk/python/requirements.txt`. It creates the environment if there is none, or if the list or the Python has
    /// changed.
    pub fn environment(&self, root: &Path) -> Result<PathBuf> {
        let place = root.join("target/python-env");
        let (programs, stamp) = (place.join("bin"), place.join("made-from"));
        let mut lists = vec![root.join("sdk/python/requirements.txt")];
        if !runs("node") {
            lists.push(root.join("sdk/python/requirements-node.txt"));
        }
        let mut asked = format!("Python {}\n", self.version);
        for list in &lists {
            asked += &fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
        }
        if fs::read_to_string(&stamp).is_ok_and(|made| made == asked) {
            return Ok(programs);
        }
        let packages: Vec<&str> = asked.lines().filter(|line| line.contains("==")).collect();
        eprintln!("installing from the package index into {}: {}", place.display(), packages.join(", "));
        let made = Command::new(self.program).args(["-m", "venv", "--clear"]).arg(&place).stdin(Stdio::null()).status();
        ensure!(
            made.is_ok_and(|status| status.success()),
            "cannot make a virtual environment: python3 {OLDEST} or later with its venv module is needed"
        );
        let mut install = Command::new(programs.join("python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).stdin(Stdio::null());
        for list in &lists {
            install.arg("--requirement").arg(list);
        }
        ensure!(
            install.status().context("cannot run pip")?.success(),
            "cannot install the packages of sdk/python/requirements.txt: pip could not get them from the package index; \
             is the network there? (PIP_INDEX_URL names another index)"
        );
        fs::write(&stamp, asked).with_context(|| format!("cannot write {}", stamp.display()))?;
        Ok(programs)
    }
}

fn runs(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}
