//! How answers are printed.

use std::io::Write;

use anyhow::Context;
use clap::{Args, ValueEnum};

/// How answers are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// The API's answer as it came.
    Json,
    /// Execution ids, one per line.
    Ids,
}

/// How answers are printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputArgs {
    /// How answers are printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// Prints one line; a reader that has seen enough is not an error.
pub fn say(line: &str) -> anyhow::Result<()> {
    write_out(format!("{line}\n").as_bytes())
}

/// Prints a text.
pub fn print(text: &str) -> anyhow::Result<()> {
    write_out(text.as_bytes())
}

/// Prints an answer as it came.
pub fn say_raw(bytes: &[u8]) -> anyhow::Result<()> {
    write_out(bytes)?;
    if bytes.last() == Some(&b'\n') { Ok(()) } else { write_out(b"\n") }
}

fn write_out(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        done => done.context("cannot write to stdout"),
    }
}
