//! The one test command: every check and test of the project, with the servers they need.

use std::env;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cargo::{built_ff, cargo};
use crate::schemathesis;

/// What the long runs turn up; the tests that read these say what they mean.
const LONG: &[(&str, &str)] =
    &[("FF_LONG", "1"), ("FF_SIM_SEEDS", "10000"), ("FF_DAMAGE_ROUNDS", "10000"), ("FF_PARITY_ROUNDS", "2000")];

/// What to run.
#[derive(clap::Args)]
pub struct Options {
    /// The long runs: more seeds, cases and kills; takes hours.
    #[arg(long)]
    long: bool,
    /// Run only tests whose names contain one of these, and no other check.
    filter: Vec<String>,
}

/// Runs everything, goes on after a failure, and fails when anything did.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let mut run = Run { root, options, done: Vec::new() };
    let everything = options.filter.is_empty();
    if everything {
        run.step("formatting", Run::formatting);
        run.step("generated files", Run::generated);
        run.step("lints", Run::lints);
    }
    run.step("servers", Run::servers);
    run.step("tests", Run::tests);
    if everything {
        run.step("examples in the docs", Run::examples);
        run.step("commands in the docs", Run::commands);
        run.step("Python client", Run::python);
        run.step("OpenAPI document", Run::document);
        run.step("dependencies", Run::dependencies);
    }
    run.close()
}

/// How a step ended, with what is worth saying about it.
enum Outcome {
    Passed(String),
    Skipped(String),
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, note) = match self {
            Outcome::Passed(note) => ("passed", note),
            Outcome::Skipped(note) => ("skipped", note),
            Outcome::Failed(note) => ("FAILED", note),
        };
        write!(f, "{word:8}{note}")
    }
}

struct Done {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

struct Run<'a> {
    root: &'a Path,
    options: &'a Options,
    done: Vec<Done>,
}

impl Run<'_> {
    fn step(&mut self, name: &'static str, work: impl FnOnce(&Self) -> Result<Outcome>) {
        eprintln!("\n== {name}");
        let started = Instant::now();
        let outcome = work(self).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let took = started.elapsed();
        eprintln!("== {name}: {outcome} ({:.1} s)", took.as_secs_f64());
        self.done.push(Done { name, outcome, took });
    }

    fn formatting(&self) -> Result<Outcome> {
        self.finish(cargo(self.root).args(["fmt", "--all", "--check"]))
    }

    fn generated(&self) -> Result<Outcome> {
        let me = env::current_exe().context("cannot find this program")?;
        self.finish(Command::new(me).args(["codegen", "--check"]))
    }

    fn lints(&self) -> Result<Outcome> {
        self.finish(cargo(self.root).args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ]))
    }

    fn servers(&self) -> Result<Outcome> {
        ff_testkit::install_tools();
        let found = ff_testkit::install()?;
        let names: Vec<String> = found
            .iter()
            .map(|binary| Ok(format!("{} {}", binary.flavour, binary.version()?)))
            .collect::<Result<_>>()?;
        Ok(Outcome::Passed(names.join(", ")))
    }

    fn tests(&self) -> Result<Outcome> {
        if has(self.root, "nextest") || self.install("cargo-nextest") {
            let mut command = cargo(self.root);
            command.args(["nextest", "run", "--workspace", "--all-features"]);
            // Many tests wait for leases, deaths and servers: three to two cores keep those busy.
            let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
            command.args(["--test-threads", &(cores + cores / 2).to_string()]);
            if self.options.long {
                command.args(["--profile", "long"]);
            }
            self.lengthen(&mut command);
            return self.finish(command.args(&self.options.filter));
        }
        eprintln!("cargo-nextest is not there: running `cargo test`, where a hang is not ended");
        let mut command = cargo(self.root);
        command.args(["test", "--workspace", "--all-features", "--all-targets"]);
        self.lengthen(&mut command);
        command.arg("--").args(&self.options.filter);
        self.finish(&mut command)
    }

    fn examples(&self) -> Result<Outcome> {
        self.finish(cargo(self.root).args(["test", "--doc", "--workspace", "--all-features"]))
    }

    fn commands(&self) -> Result<Outcome> {
        crate::docs::run(self.root, &crate::docs::Options::default()).map(Outcome::Passed)
    }

    /// The Python client's own tests, against a server of this very build.
    fn python(&self) -> Result<Outcome> {
        let Some((python, version)) = python() else {
            let how = "python3 3.9 or later is not there; the tests of sdk/python need it and nothing else";
            return Ok(Outcome::Skipped(how.to_owned()));
        };
        let mut command = Command::new(python);
        command.args(["-m", "unittest", "discover", "-s", "tests"]).current_dir(self.root.join("sdk/python"));
        command.env("FF_BIN", built_ff(self.root)?);
        Ok(match self.finish(&mut command)? {
            Outcome::Passed(_) => Outcome::Passed(version),
            other => other,
        })
    }

    /// A running server, asked everything its document allows and what it does not.
    fn document(&self) -> Result<Outcome> {
        schemathesis::run(self.root, &schemathesis::Options { long: self.options.long, rest: Vec::new() })?;
        Ok(Outcome::Passed(String::new()))
    }

    fn dependencies(&self) -> Result<Outcome> {
        if !has(self.root, "deny") {
            let how = "cargo-deny is not installed (cargo install cargo-deny --locked)";
            return Ok(Outcome::Skipped(how.to_owned()));
        }
        let local = self.finish(cargo(self.root).args([
            "deny",
            "check",
            "--hide-inclusion-graph",
            "bans",
            "licenses",
            "sources",
        ]))?;
        let advisories = ["deny", "check", "advisories"];
        eprintln!("cargo {}", advisories.join(" "));
        let output = cargo(self.root).args(advisories).output().context("cannot run cargo deny")?;
        let text = String::from_utf8_lossy(&output.stderr);
        // Without a network the rest of the checks still says something.
        let unreachable = text.contains("failed to fetch advisory database");
        Ok(match local {
            Outcome::Passed(_) if unreachable => {
                Outcome::Passed("without advisories: their database cannot be reached".to_owned())
            }
            Outcome::Passed(_) if !output.status.success() => {
                eprint!("{text}");
                Outcome::Failed("advisories".to_owned())
            }
            other => other,
        })
    }

    /// Installs a program of cargo's; false when that fails.
    fn install(&self, package: &str) -> bool {
        eprintln!("installing {package}: cargo install {package} --locked");
        let status = cargo(self.root).args(["install", package, "--locked"]).status();
        status.is_ok_and(|status| status.success())
    }

    fn lengthen(&self, command: &mut Command) {
        if self.options.long {
            for (name, value) in LONG {
                // What the caller set wins.
                if env::var_os(name).is_none() {
                    command.env(name, value);
                }
            }
        }
    }

    fn finish(&self, command: &mut Command) -> Result<Outcome> {
        let mut words = vec![command.get_program().to_string_lossy().into_owned()];
        if words[0].ends_with("/cargo") {
            words[0] = "cargo".to_owned();
        }
        words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
        eprintln!("{}", words.join(" "));
        let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {}", words[0]))?;
        Ok(if status.success() { Outcome::Passed(String::new()) } else { Outcome::Failed(status.to_string()) })
    }

    /// Prints what ran and how long it took.
    fn close(self) -> Result<()> {
        let total: Duration = self.done.iter().map(|done| done.took).sum();
        eprintln!("\n== summary");
        for done in &self.done {
            let seconds = done.took.as_secs_f64();
            eprintln!("{:22} {seconds:7.1} s  {}", done.name, done.outcome);
        }
        eprintln!("{:22} {:7.1} s", "all", total.as_secs_f64());
        if !self.options.filter.is_empty() {
            eprintln!("only tests named like {} ran", self.options.filter.join(", "));
        }
        let failed: Vec<&str> =
            self.done.iter().filter(|done| matches!(done.outcome, Outcome::Failed(_))).map(|done| done.name).collect();
        if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
    }
}

/// A Python the client supports, and its version.
fn python() -> Option<(&'static str, String)> {
    ["python3", "python"].into_iter().find_map(|program| {
        let asked = "import sys; print('.'.join(map(str, sys.version_info[:3]))); sys.exit(sys.version_info < (3, 9))";
        let output = Command::new(program).args(["-c", asked]).stdin(Stdio::null()).output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then(|| (program, format!("Python {version}")))
    })
}

/// True when cargo has this subcommand.
fn has(root: &Path, subcommand: &str) -> bool {
    let status = cargo(root).args([subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
