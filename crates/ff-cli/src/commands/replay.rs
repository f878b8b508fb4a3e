//! `ff replay`: runs ended executions again.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::acting::BulkArgs;
use crate::client::{OutputArgs, ServerArgs};

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
        let body = json!({ "reason": self.reason });
        self.executions.act(&self.server, "replay", "replaying", &body, self.output.output).await
    }
}
