//! `ff token`: waitpoint tokens.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, segment, text};

/// Waitpoint tokens.
#[derive(Args)]
pub struct TokenCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Makes a new token for a waitpoint; the old one is refused from then on. An unknown id exits 4.
    #[command(after_help = "Example:
  ff token reissue 0192f3a1-… --approver ann > ann.token
  ff signal 0192f3a1-… --execution 0192f3a0-… --name approved --token @ann.token")]
    Reissue(Reissue),
}

#[derive(Args)]
struct Reissue {
    /// The waitpoint.
    #[arg(value_name = "WAITPOINT")]
    waitpoint: String,
    /// Whose token; not said where there is only one.
    #[arg(long)]
    approver: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl TokenCommand {
    /// Prints the token alone, so that it can go straight into a file.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let Verb::Reissue(reissue) = self.verb;
        let path = format!("/v1/waitpoints/{}/tokens", segment(&reissue.waitpoint));
        let body = json!({ "approver": reissue.approver }).to_string();
        let reply = Api::new(&reissue.server)?.post(&path, body).await?.accepted()?;
        match reissue.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&reply.json()?["waitpoint_id"]))?,
            Output::Table => {
                let answer = reply.json()?;
                let whom = answer["approver"].as_str().map(|approver| format!(" for {approver}")).unwrap_or_default();
                eprintln!("a new token{whom}; it is not shown again, and the old one is refused");
                say(&text(&answer["token"]))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
