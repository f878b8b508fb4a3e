//! `ff cancel`: ends executions.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::acting::BulkArgs;
use crate::client::{OutputArgs, ServerArgs};

/// Cancels executions, by id or all that match filters; a running attempt ends at once, or within --grace-ms after its worker was
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
    #[arg(long)]
    grace_ms: Option<i64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Cancel {
    /// Goes through the ids, or through everything that matches.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let body = json!({ "reason": self.reason, "grace_ms": self.grace_ms });
        self.executions.act(&self.server, "cancel", "cancelling", &body, self.output.output).await
    }
}
