//! Runs cargo on this workspace.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// Cargo in the root of the workspace, without standard input, so that it cannot wait for any.
pub fn cargo(root: &Path) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root).stdin(Stdio::null());
    command
}

/// The `ff` program of the last test build.
static OF_TESTS: OnceLock<PathBuf> = OnceLock::new();

/// Records that the tests are built, so that docs and checks run the same programs.
pub fn tests_are_built(root: &Path) {
    let program = target(root).join("debug/ff");
    if program.is_file() {
        let _ = OF_TESTS.set(program);
    }
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |named| root.join(named))
}

/// The program `ff`: FF_BIN, else that of the tests, else a new build.
pub fn built_ff(root: &Path) -> Result<PathBuf> {
    if let Some(program) = OF_TESTS.get() {
        return Ok(program.clone());
    }
    if let Some(named) = env::var_os("FF_BIN") {
        let path = root.join(named);
        ensure!(path.is_file(), "FF_BIN names {}, which is not a program", path.display());
        return Ok(path);
    }
    let status = cargo(root).args(["build", "--workspace", "--all-features", "--bin", "ff"]).status();
    ensure!(status.context("cannot run cargo")?.success(), "ff does not build");
    Ok(target(root).join("debug/ff"))
}

/// Runs this command again, built with the engine and the hosts.
pub fn again_with_engine(root: &Path, release: bool) -> Result<ExitStatus> {
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--package", "xtask", "--features", "engine"]);
    if release {
        command.arg("--release");
    }
    command.arg("--").args(env::args_os().skip(1)).status().context("cannot run cargo")
}

/// A cargo program that a chore needs: from PATH, else installed from crates.io under `target/tools`.
pub fn tool(root: &Path, name: &str) -> Result<PathBuf> {
    let works = |program: &Path| {
        let asked = Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    if works(Path::new(name)) {
        return Ok(PathBuf::from(name));
    }
    let tools = root.join("target/tools");
    let program = tools.join("bin").join(name);
    if !works(&program) {
        // Built without optimisation: it runs for seconds, and an optimised build takes minutes.
        eprintln!("installing {name} from crates.io into {}", tools.display());
        let mut install = cargo(root);
        install.args(["install", name, "--locked", "--debug", "--quiet", "--root"]).arg(&tools);
        let installed = install.status().context("cannot run cargo")?.success();
        ensure!(installed && works(&program), "{name} is not there and cannot be installed from crates.io");
    }
    Ok(program)
}
