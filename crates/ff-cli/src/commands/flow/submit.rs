//! `ff flow submit`: a flow from a file or stdin.

use std::io::Read;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use crate::client::{Api, Output, OutputArgs, ServerArgs, WrongUsage, say, say_raw, text};

/// Submits a flow. The file holds what `POST /v1/flows` takes.
#[derive(Args)]
#[command(after_help = "Example:
  ff flow submit report.json
  jq -n '{kind:\"hello\",members:[{key:\"a\",kind:\"a\"}]}' | ff flow submit -")]
pub struct Submit {
    /// A JSON file; `-` reads stdin.
    #[arg(value_name = "FILE")]
    file: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Submit {
    /// Prints the flow's id and those of its members, or the API's answer.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let mut body = String::new();
        if self.file == "-" {
            std::io::stdin().read_to_string(&mut body).context("cannot read the flow from stdin")?;
        } else {
            body = std::fs::read_to_string(&self.file)
                .with_context(|| WrongUsage(format!("cannot read a flow from {}", self.file)))?;
        }
        let reply = Api::new(&self.server)?.post("/v1/flows", body).await?.accepted()?;
        if self.output.output == Output::Json {
            say_raw(&reply.bytes)?;
            return Ok(ExitCode::SUCCESS);
        }
        let answer = reply.json()?;
        if self.output.output == Output::Ids {
            say(&text(&answer["flow_id"]))?;
            return Ok(ExitCode::SUCCESS);
        }
        let again = if answer["duplicate"] == true { "  (submitted before)" } else { "" };
        say(&format!("{}  {}{again}", text(&answer["flow_id"]), text(&answer["state"])))?;
        for member in answer["members"].as_array().into_iter().flatten() {
            say(&format!("  {}  {}", text(&member["execution_id"]), text(&member["key"])))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
