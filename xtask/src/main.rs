//! Project chores: `cargo xtask <chore>`.

mod bench;
mod cargo;
mod check;
mod codegen;
mod docs;
mod fsck;
mod python;
mod schemathesis;
mod steps;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// Project chores.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Write the generated files: from the contracts in lua/ the bundle, Rust types, error codes and reference page;
    /// with --commands the reference of `ff`.
    Codegen(codegen::Options),
    /// Run the checks that need no execution: formatting, generated files, lints, dependencies.
    Check(check::Options),
    /// Run every test; finds or installs the servers and programs they need.
    Test(test::Options),
    /// Run the commands of README.md and docs/ against a fresh `ff`, and follow every link.
    Docs(docs::Options),
    /// Compare a running server with its OpenAPI document, using schemathesis from PyPI.
    Schemathesis(schemathesis::Options),
    /// Measure, print a table and write it to target/bench.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Check every invariant of a store; exits with 1 if one is broken.
    Fsck(fsck::Options),
}

fn main() -> ExitCode {
    let outcome = match Chore::parse() {
        Chore::Codegen(options) => codegen::run(&root(), &options),
        Chore::Check(options) => check::run(&root(), &options),
        Chore::Test(options) => test::run(&root(), &options),
        Chore::Docs(options) => docs::run(&root(), &options).map(|done| println!("{done}")),
        Chore::Schemathesis(options) => schemathesis::run(&root(), &options),
        Chore::Bench(bench) => bench::run(&root(), &bench),
        Chore::Fsck(options) => fsck::run(&root(), &options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The error chain only: the place in the chore's code helps no user.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}
