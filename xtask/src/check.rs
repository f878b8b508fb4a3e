//! Checks of a change that do not run it: formatting, generated files, lints, dependencies.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{cargo, tool};
use crate::steps::{Outcome, Steps, finish};

/// The checks to run.
#[derive(clap::Args)]
pub struct Options {
    /// Do not fail if a check cannot run.
    #[arg(long)]
    allow_skips: bool,
    /// Also look for known advisories; this downloads their database from GitHub each time.
    #[arg(long)]
    advisories: bool,
}

/// Runs every check, continues after a failure, and fails if any check failed.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let mut steps = Steps::new(options.allow_skips);
    steps.run("formatting", || finish(cargo(root).args(["fmt", "--all", "--check"])));
    steps.run("generated files", generated);
    steps.run("lints", || {
        finish(cargo(root).args(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))
    });
    steps.run("dependencies", || dependencies(root, options.advisories));
    steps.close("")
}

fn generated() -> Result<Outcome> {
    let me = env::current_exe().context("cannot find this program")?;
    finish(Command::new(me).args(["codegen", "--check"]))
}

/// Licences, sources and duplicates of all dependencies, and known advisories on request.
fn dependencies(root: &Path, advisories: bool) -> Result<Outcome> {
    let deny = match tool(root, "cargo-deny") {
        Ok(deny) => deny,
        Err(error) => return Ok(Outcome::Skipped(format!("{error:#}"))),
    };
    let mut checks = vec!["check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    checks.extend(advisories.then_some("advisories"));
    finish(Command::new(deny).current_dir(root).args(checks))
}
