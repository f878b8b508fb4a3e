//! The test command: runs everything, with the servers and programs it needs.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::cargo::{built_ff, cargo, tests_are_built, tool};
use crate::python::Python;
use crate::schemathesis;
use crate::steps::{Outcome, Steps, finish};

/// The tests to run.
#[derive(clap::Args)]
pub struct Options {
    /// Everything that the quick tier samples, and more: Redis, a whole cluster; half an hour or longer.
    #[arg(long, conflicts_with = "long")]
    wide: bool,
    /// The long runs: more seeds, cases and kills; hours.
    #[arg(long)]
    long: bool,
    /// The sample of the quick tier; the same number selects the same sample (default: the day).
    #[arg(long, value_name = "NUMBER")]
    sample: Option<u64>,
    /// Do not fail if a check cannot run.
    #[arg(long)]
    allow_skips: bool,
    /// Run only tests whose names contain one of these, and no other checks.
    filter: Vec<String>,
}

impl Options {
    fn tier(&self) -> &'static str {
        match (self.wide, self.long) {
            (_, true) => "long",
            (true, _) => "wide",
            _ => "quick",
        }
    }

    fn sample(&self) -> u64 {
        self.sample.unwrap_or_else(ff_testkit::tier::sample)
    }

    /// Sets the tier and the sample for a test run.
    fn tell<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("FF_TIER", self.tier()).env("FF_SAMPLE", self.sample().to_string())
    }
}

/// Runs everything, continues after a failure, and fails if anything failed.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let mut steps = Steps::new(options.allow_skips);
    steps.run("servers", || servers(options));
    steps.run("tests", || tests(root, options));
    if options.filter.is_empty() {
        tests_are_built(root);
        steps.run("examples in the docs", || {
            finish(options.tell(cargo(root).args(["test", "--doc", "--workspace", "--all-features"])))
        });
        steps.run("commands in the docs", || {
            crate::docs::run(root, &crate::docs::Options::default()).map(Outcome::Passed)
        });
        steps.run("Python client", || python(root));
        steps.run("OpenAPI document", || {
            let more = if options.long { schemathesis::Amount::Long } else { schemathesis::Amount::of(options.wide) };
            schemathesis::run(
                root,
                &schemathesis::Options { amount: more, sample: options.sample(), rest: Vec::new() },
            )?;
            Ok(Outcome::passed())
        });
    }
    let again = format!("tier {}, sample {}", options.tier(), options.sample());
    let only = format!("; only tests named like {} ran", options.filter.join(", "));
    steps.close(&if options.filter.is_empty() { again } else { again + &only })
}

/// Finds the external programs that the tests run, or installs them.
fn servers(options: &Options) -> Result<Outcome> {
    let more: &[ff_testkit::Need] = if options.tier() == "quick" { &[] } else { ff_testkit::WIDE };
    let found = ff_testkit::install(ff_testkit::QUICK.iter().chain(more));
    let missing: Vec<String> =
        found.iter().filter_map(|(name, there)| there.as_ref().err().map(|why| format!("{name}: {why:#}"))).collect();
    if !missing.is_empty() {
        return Ok(Outcome::Skipped(missing.join("; ")));
    }
    let names: Vec<String> =
        found.iter().filter_map(|(name, there)| Some(format!("{name} {}", there.as_ref().ok()?))).collect();
    Ok(Outcome::Passed(names.join(", ")))
}

fn tests(root: &Path, options: &Options) -> Result<Outcome> {
    let nextest = match tool(root, "cargo-nextest") {
        Ok(nextest) => nextest,
        Err(error) => return Ok(Outcome::Skipped(format!("{error:#}"))),
    };
    let mut command = Command::new(nextest);
    command.current_dir(root).args(["nextest", "run", "--workspace", "--all-features"]);
    // Many tests wait for leases, deaths and servers. Four tests per two cores keep the cores busy.
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    command.args(["--test-threads", &(2 * cores).to_string()]);
    if options.tier() != "quick" {
        command.args(["--profile", options.tier()]);
    }
    finish(options.tell(&mut command).args(&options.filter))
}

/// The Python client: its own tests against a server of this build, and two type checkers.
fn python(root: &Path) -> Result<Outcome> {
    let Some(python) = Python::find() else {
        return Ok(Outcome::Skipped("python3 3.9 or later is not there".to_owned()));
    };
    let (programs, folder) = (python.environment(root)?, root.join("sdk/python"));
    let mut tests = Command::new(programs.join("python"));
    tests.args(["-m", "unittest", "discover", "-s", "tests"]).env("FF_BIN", built_ff(root)?);
    let mut mypy = Command::new(programs.join("mypy"));
    mypy.arg("--cache-dir").arg(root.join("target/mypy"));
    let mut pyright = Command::new(programs.join("pyright"));
    pyright.arg("--pythonpath").arg(programs.join("python")).env("PYRIGHT_PYTHON_IGNORE_WARNINGS", "1");
    let mut failed = Vec::new();
    for (name, command) in [("tests", &mut tests), ("mypy", &mut mypy), ("pyright", &mut pyright)] {
        if let Outcome::Failed(status) = finish(command.current_dir(&folder))? {
            failed.push(format!("{name}: {status}"));
        }
    }
    Ok(if failed.is_empty() {
        Outcome::Passed(format!("Python {}", python.version))
    } else {
        Outcome::Failed(failed.join(", "))
    })
}
