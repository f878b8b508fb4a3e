//! `ff release`: lets held executions start.

use std::process::ExitCode;

use clap::Args;
use ff_api::executions::{ReasonBody, ReleaseExecution};

use super::acting::act;
use crate::client::ServerArgs;
use crate::ids::IdArgs;
use crate::output::OutputArgs;

/// Lets held executions start again. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff release 0192f3a0-… --reason 'sorted out'")]
pub struct Release {
    #[command(flatten)]
    ids: IdArgs,
    /// Why; recorded with the action.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Release {
    /// Goes through the ids; a refusal is said and the others go on.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let body = ReasonBody { reason: self.reason };
        act::<ReleaseExecution>(&self.server, self.ids.read()?, &body, self.output.output).await
    }
}
