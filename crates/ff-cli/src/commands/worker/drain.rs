//! `ff worker drain`: asks workers to hand back what they hold.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::workers::{DrainOutcome, DrainWorker};

use crate::client::{Api, ServerArgs};
use crate::ids::{for_each, read_ids};
use crate::output::{Output, OutputArgs, say, say_raw};

/// Asks workers to take nothing new and to hand back what they hold. An unknown instance exits 4.
#[derive(Args)]
pub struct Drain {
    /// Worker instances; `-` reads them from stdin.
    #[arg(required = true, value_name = "INSTANCE")]
    instances: Vec<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Drain {
    /// Goes through the instances; a refusal is said and the others go on.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = &Api::new(&self.server)?;
        let output = self.output.output;
        for_each(read_ids(&self.instances)?, |instance| async move {
            let drained = api.ask(&Ask::<DrainWorker>::at(instance)).await?;
            let outcome = match drained.value.outcome {
                DrainOutcome::Draining => "draining",
                DrainOutcome::Already => "already",
            };
            match output {
                Output::Json => say_raw(&drained.bytes),
                Output::Ids => say(&drained.value.instance),
                Output::Table => say(&format!("{}  {outcome}", drained.value.instance)),
            }
        })
        .await
    }
}
