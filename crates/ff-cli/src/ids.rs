//! Ids of the command line, and commands that go through many of them.

use std::io::Read;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use crate::problem::{Refused, WrongUsage, exit_code, explained};
use crate::progress::Progress;

/// Which executions a command is about.
#[derive(Args, Clone, Debug)]
pub struct IdArgs {
    /// Execution ids; `-` reads them from stdin.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

impl IdArgs {
    /// The ids, those on stdin included.
    pub fn read(&self) -> anyhow::Result<Vec<String>> {
        read_ids(&self.ids)
    }
}

/// An id of the command line.
pub fn id<T: std::str::FromStr>(what: &str, text: &str) -> anyhow::Result<T> {
    text.parse().map_err(|_| WrongUsage(format!("{text:?} is not the id of {what}: it must be a UUID")).into())
}

/// Ids as they were named; `-` stands for those on stdin.
pub fn read_ids(named: &[String]) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    for id in named {
        if id == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read ids from stdin")?;
            ids.extend(text.split_whitespace().map(str::to_owned));
        } else {
            ids.push(id.clone());
        }
    }
    Ok(ids)
}

/// Runs a command for each id, goes on past refusals, and answers with the first failure's exit code.
pub async fn for_each<F: Future<Output = anyhow::Result<()>>>(
    ids: Vec<String>,
    run: impl Fn(String) -> F,
) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut progress = Progress::new("done", Some(ids.len() as u64));
    for id in ids {
        progress.advance(1);
        if let Err(error) = run(id).await {
            if error.downcast_ref::<Refused>().is_none() {
                return Err(error);
            }
            eprintln!("ff: {}", explained(&error));
            if code == ExitCode::SUCCESS {
                code = exit_code(&error);
            }
        }
    }
    Ok(code)
}
