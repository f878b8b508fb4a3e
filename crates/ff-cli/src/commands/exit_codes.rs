//! `ff exit-codes`: what the exit codes mean.

use std::process::ExitCode;

use crate::output::print;

/// What scripts can rely on.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  it was done; where a result is printed: the outcome is success
  1  it failed, was refused, or no server answered; where a result is printed: the outcome
     is another; `ff fsck` and `ff doctor`: something is broken
  2  the command line, a file it names, or the configuration is wrong
  4  an id, lane, worker or key is unknown
  5  it has not ended yet (`ff result`, `ff flow result`, `ff submit --wait`,
     `ff flow submit --wait`, `ff flow cancel --wait`)
  6  a hard limit is in the way (`ff budget usage`, `reserve`, `settle`)

A command over several ids goes on past refusals and exits with the code of the first.
";

/// Prints them.
pub fn run() -> anyhow::Result<ExitCode> {
    print(EXIT_CODES)?;
    Ok(ExitCode::SUCCESS)
}
