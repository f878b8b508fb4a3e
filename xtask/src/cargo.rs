//! Runs cargo on this workspace.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// Cargo in the root of the workspace, without a standard input it could wait for.
pub fn cargo(root: &Path) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root).stdin(Stdio::null());
    command
}

/// A program of the workspace, as cargo builds it for tests.
pub fn built(root: &Path, program: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    root.join(target).join("debug").join(program)
}

/// This very command once more, built with the engine and the hosts.
pub fn again_with_engine(root: &Path, release: bool) -> Result<ExitStatus> {
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--package", "xtask", "--features", "engine"]);
    if release {
        command.arg("--release");
    }
    command.arg("--").args(env::args_os().skip(1)).status().context("cannot run cargo")
}
