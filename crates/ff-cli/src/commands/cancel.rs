//! `ff cancel`: ends executions.

use std::process::ExitCode;

use clap::Args;
use ff_api::executions::{BulkCancelBody, CancelBody, CancelExecution, CancelExecutions};

use super::acting::{BulkArgs, bulk_limit};
use crate::client::ServerArgs;
use crate::output::OutputArgs;
use crate::times::duration;

/// Cancels executions, by id or all that match filters; a running attempt ends at once, or within --grace after its worker was
/// asked. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff cancel 0192f3a0-… --reason 'wrong input'
  ff list --kind import -o ids | ff cancel -
  ff cancel --lane mail --state waiting --reason 'not today'")]
pub struct Cancel {
    #[command(flatten)]
    executions: BulkArgs,
    /// Why; recorded with the action.
    #[arg(long)]
    reason: Option<String>,
    /// How long a running attempt may take to end by itself.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    grace: Option<i64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Cancel {
    /// Goes through the ids, or through everything that matches.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let body = CancelBody { reason: self.reason, grace_ms: self.grace };
        let many = |filter, cursor| BulkCancelBody {
            limit: bulk_limit(),
            cursor,
            reason: body.reason.clone(),
            grace_ms: body.grace_ms,
            ..BulkCancelBody::from(filter)
        };
        let (server, output) = (&self.server, self.output.output);
        self.executions.act::<CancelExecution, CancelExecutions>(server, "cancelling", &body, many, output).await
    }
}
