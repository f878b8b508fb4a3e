//! `ff replay`: runs ended executions again.

use std::process::ExitCode;

use clap::Args;
use ff_api::executions::{BulkReplayBody, ReasonBody, ReplayExecution, ReplayExecutions};

use super::acting::{BulkArgs, bulk_limit};
use crate::client::ServerArgs;
use crate::output::OutputArgs;

/// Runs ended executions again with a new attempt, by id or all that match filters. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff replay 0192f3a0-… --reason 'the provider is back'
  ff replay --lane mail --state failed")]
pub struct Replay {
    #[command(flatten)]
    executions: BulkArgs,
    /// Why; recorded with the action.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Replay {
    /// Goes through the ids, or through everything that matches.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let body = ReasonBody { reason: self.reason };
        let many = |filter, cursor| {
            let reason = body.reason.clone();
            BulkReplayBody { limit: bulk_limit(), cursor, reason, ..BulkReplayBody::from(filter) }
        };
        let (server, output) = (&self.server, self.output.output);
        self.executions.act::<ReplayExecution, ReplayExecutions>(server, "replaying", &body, many, output).await
    }
}
