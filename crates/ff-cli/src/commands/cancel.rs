//! `ff cancel`: ends executions.

use std::process::ExitCode;

use clap::Args;

use crate::client::{Api, IdArgs, Output, OutputArgs, ServerArgs, for_each, say, say_raw, segment, text};

/// Cancels executions; a running attempt ends at once, or within --grace-ms after its worker was asked. An unknown id exits 4.
#[derive(Args)]
pub struct Cancel {
    #[command(flatten)]
    ids: IdArgs,
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
    /// Goes through the ids; a refusal is said and the others go on.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = &Api::new(&self.server)?;
        let (output, body) =
            (self.output.output, &serde_json::json!({ "reason": self.reason, "grace_ms": self.grace_ms }).to_string());
        for_each(self.ids.read()?, |id| async move {
            let reply = api.post(&format!("/v1/executions/{}/cancel", segment(&id)), body.clone()).await?.accepted()?;
            match output {
                Output::Json => say_raw(&reply.bytes),
                Output::Ids => say(&text(&reply.json()?["execution_id"])),
                Output::Table => say(&format!("{id}  {}", text(&reply.json()?["outcome"]))),
            }
        })
        .await
    }
}
