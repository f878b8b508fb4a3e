//! `ff replay`: runs ended executions again.

use std::process::ExitCode;

use clap::Args;
use ff_api::executions::{BulkReplayBody, ReplayExecution, ReplayExecutions};
use ff_api::steps::{ReplayBody, ReplayFrom};

use super::acting::{BulkArgs, bulk_limit};
use crate::client::ServerArgs;
use crate::output::OutputArgs;

/// Runs ended executions again with a new attempt, by id or all that match filters. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff replay 0192f3a0-… --reason 'the provider is back'
  ff replay 0192f3a0-… --from summarize
  ff replay --lane mail --state failed")]
pub struct Replay {
    #[command(flatten)]
    executions: BulkArgs,
    /// Why; recorded with the action.
    #[arg(long)]
    reason: Option<String>,
    /// Keeps the steps before this one and runs the others again; `start` forgets every step. The default keeps every finished
    /// step. A step that is called start is named step:start.
    #[arg(long, value_name = "STEP", value_parser = place, conflicts_with = "filters")]
    from: Option<ReplayFrom>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Where a replay goes on.
fn place(text: &str) -> Result<ReplayFrom, String> {
    if text == "start" {
        return Ok(ReplayFrom::Start);
    }
    let name = text.strip_prefix("step:").unwrap_or(text);
    ff_api::steps::check_name("the step", name).map_err(|wrong| wrong.to_string())?;
    Ok(ReplayFrom::Step(name.to_owned()))
}

impl Replay {
    /// Goes through the ids, or through everything that matches.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let body = ReplayBody { reason: self.reason, from: self.from };
        let many = |filter, cursor| {
            let reason = body.reason.clone();
            BulkReplayBody { limit: bulk_limit(), cursor, reason, ..BulkReplayBody::from(filter) }
        };
        let (server, output) = (&self.server, self.output.output);
        self.executions.act::<ReplayExecution, ReplayExecutions>(server, "replaying", &body, many, output).await
    }
}
