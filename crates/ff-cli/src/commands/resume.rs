//! `ff resume`: lets suspended executions go on.

use std::process::ExitCode;

use clap::Args;
use ff_api::suspensions::{ResumeBody, ResumeExecution};

use super::acting::act;
use crate::client::ServerArgs;
use crate::ids::IdArgs;
use crate::output::OutputArgs;

/// Lets suspended executions go on without the signals they wait for. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff resume 0192f3a0-… --reason 'approved by phone'")]
pub struct Resume {
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

impl Resume {
    /// Goes through the ids; a refusal is said and the others go on.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let body = ResumeBody { reason: self.reason };
        act::<ResumeExecution>(&self.server, self.ids.read()?, &body, self.output.output).await
    }
}
