//! `ff hold`: keeps executions from starting.

use std::process::ExitCode;

use clap::Args;
use ff_api::executions::{HoldExecution, ReasonBody};

use super::acting::act;
use crate::client::ServerArgs;
use crate::ids::IdArgs;
use crate::output::OutputArgs;

/// Keeps executions that wait from starting, until they are released. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff hold 0192f3a0-… --reason 'the customer called'")]
pub struct Hold {
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

impl Hold {
    /// Goes through the ids; a refusal is said and the others go on.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let body = ReasonBody { reason: self.reason };
        act::<HoldExecution>(&self.server, self.ids.read()?, &body, self.output.output).await
    }
}
