//! `ff lane explain`: why the work of a lane is not running, and what would change that.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::explain_lane::ExplainLane;

use super::LaneArgs;
use crate::client::{Api, ServerArgs};
use crate::commands::explain::shown;
use crate::output::OutputArgs;

/// Explains why the work of a lane is not running, counted by reason, and what would unblock it. An unknown lane exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff lane explain mail")]
pub struct Explain {
    #[command(flatten)]
    lane: LaneArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Explain {
    /// Prints the tree.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let ask = Ask::<ExplainLane>::by(self.lane.lane.clone(), self.lane.query());
        let answered = Api::new(&self.server)?.ask(&ask).await?;
        shown(&answered, self.output.output, &self.lane.lane)?;
        Ok(ExitCode::SUCCESS)
    }
}
