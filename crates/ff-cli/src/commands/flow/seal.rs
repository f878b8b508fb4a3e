//! `ff flow seal`: releases what a flow holds.

use std::process::ExitCode;

use clap::Args;

use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, segment, text};

/// Releases the members a flow holds. More may be added until it ends. An unknown id exits 4.
#[derive(Args)]
pub struct Seal {
    /// The flow's id.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Seal {
    /// Prints how the flow stands.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let path = format!("/v1/flows/{}/seal", segment(&self.id));
        let reply = Api::new(&self.server)?.post(&path, "{}".to_owned()).await?.accepted()?;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&reply.json()?["flow_id"]))?,
            Output::Table => say(&format!("{}  {}", self.id, text(&reply.json()?["state"])))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
