//! `ff resume`: lets suspended executions go on.

use std::process::ExitCode;

use clap::Args;

use crate::client::{Api, IdArgs, Output, OutputArgs, ServerArgs, for_each, say, say_raw, segment, text};

/// Lets suspended executions go on without the signals they wait for. An unknown id exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff resume 0192f3a0-… --reason 'approved by phone'")]
pub struct Resume {
    #[command(flatten)]
    ids: IdArgs,
    /// Why; recorded with the action.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Resume {
    /// Goes through the ids; a refusal is said and the others go on.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = &Api::new(&self.server)?;
        let (output, body) = (self.output.output, &serde_json::json!({ "reason": self.reason }).to_string());
        for_each(self.ids.read()?, |id| async move {
            let reply = api.post(&format!("/v1/executions/{}/resume", segment(&id)), body.clone()).await?.accepted()?;
            match output {
                Output::Json => say_raw(&reply.bytes),
                Output::Ids => say(&text(&reply.json()?["execution_id"])),
                Output::Table => say(&format!("{id}  {}", text(&reply.json()?["outcome"]))),
            }
        })
        .await
    }
}
