//! `ff flow seal`: releases what a flow holds.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::flows::{SealBody, SealFlow};

use crate::client::{Api, ServerArgs};
use crate::ids::id;
use crate::output::{Output, OutputArgs, say, say_raw};

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
        let ask = Ask::<SealFlow>::with(id("a flow", &self.id)?, SealBody {});
        let sealed = Api::new(&self.server)?.ask(&ask).await?;
        match self.output.output {
            Output::Json => say_raw(&sealed.bytes)?,
            Output::Ids => say(&sealed.value.flow_id.to_string())?,
            Output::Table => say(&format!("{}  {}", sealed.value.flow_id, sealed.value.state))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
