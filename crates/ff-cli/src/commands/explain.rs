//! `ff explain`: why an execution, or the work of a lane, is not running, and what would change that.

use std::fmt::Display;
use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::explain::ExplainExecution;
use ff_api::explain_lane::ExplainLane;
use ff_api::lanes::NamespaceQuery;

use crate::client::{Answered, Api, ServerArgs};
use crate::ids::{for_each, id, read_ids};
use crate::output::{Output, OutputArgs, print, say, say_raw};
use crate::terminal;

/// Explains why executions are not running, and what would unblock each; or the same for all work of a lane, counted by reason. An
/// unknown id or lane exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff explain 0192f3a0-…
  ff list --state waiting -o ids | ff explain -
  ff explain --lane mail")]
pub struct Explain {
    /// Execution ids; `-` reads them from stdin.
    #[arg(required_unless_present = "lane", conflicts_with = "lane", value_name = "ID")]
    ids: Vec<String>,
    /// Explain the work of this lane instead.
    #[arg(long)]
    lane: Option<String>,
    /// The namespace of the lane (default: default).
    #[arg(long, requires = "lane")]
    namespace: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Explain {
    /// Prints one tree for each.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = &Api::new(&self.server)?;
        let output = self.output.output;
        if let Some(lane) = self.lane {
            let query = NamespaceQuery { namespace: self.namespace };
            let answered = api.ask(&Ask::<ExplainLane>::by(lane, query)).await?;
            shown(&answered, output, &answered.value.lane.lane)?;
            return Ok(ExitCode::SUCCESS);
        }
        for_each(read_ids(&self.ids)?, |name| async move {
            let answered = api.ask(&Ask::<ExplainExecution>::at(id("an execution", &name)?)).await?;
            shown(&answered, output, &answered.value.execution_id.to_string())
        })
        .await
    }
}

pub fn shown<T: Display>(answered: &Answered<T>, output: Output, id: &str) -> anyhow::Result<()> {
    match output {
        Output::Json => say_raw(&answered.bytes),
        Output::Ids => say(id),
        Output::Table => {
            let drawn = answered.value.to_string();
            print(&format!("{}\n", if terminal::is_live() { terminal::harmless(&drawn) } else { drawn }))
        }
    }
}
