//! `ff flow submit`: a flow from a file or stdin.

use std::io::Read;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use ff_api::Ask;
use ff_api::flows::{FlowBody, SubmitFlow};

use super::result;
use crate::client::{Answered, Api, ServerArgs};
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::problem::WrongUsage;
use crate::times::duration;

/// Submits a flow. The file holds what `POST /v1/flows` takes. With --wait it prints the results and exits as `ff flow result` does.
#[derive(Args)]
#[command(after_help = "Example:
  ff flow submit report.json --wait
  jq -n '{kind:\"hello\",members:[{key:\"a\",kind:\"a\"}]}' | ff flow submit -")]
pub struct Submit {
    /// A JSON file; `-` reads stdin.
    #[arg(value_name = "FILE")]
    file: String,
    /// Waits until it has ended, or for this long at most, and prints its results.
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1, require_equals = true, default_missing_value = "365d", hide_default_value = true)]
    wait: Option<i64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Submit {
    /// Prints the flow's id and those of its members, the API's answer, or with --wait the results.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let mut text = String::new();
        if self.file == "-" {
            std::io::stdin().read_to_string(&mut text).context("cannot read the flow from stdin")?;
        } else {
            text = std::fs::read_to_string(&self.file)
                .with_context(|| WrongUsage(format!("cannot read a flow from {}", self.file)))?;
        }
        let body: FlowBody =
            serde_json::from_str(&text).map_err(|error| WrongUsage(format!("{} is no flow: {error}", self.file)))?;
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let Answered { value, bytes, .. } = api.ask(&Ask::<SubmitFlow>::with((), body)).await?;
        if let Some(wait) = self.wait {
            if output == Output::Table {
                eprintln!("{}", value.flow_id);
            }
            return result::show(&api, value.flow_id, wait, &[], output).await;
        }
        match output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => say(&value.flow_id.to_string())?,
            Output::Table => {
                let again = if value.duplicate { "  (submitted before)" } else { "" };
                say(&format!("{}  {}{again}", value.flow_id, value.state))?;
                value.members.iter().try_for_each(|one| say(&format!("  {}  {}", one.execution_id, one.key)))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
