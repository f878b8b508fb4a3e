//! `ff fork`: a new execution that starts with copies of another one's finished steps.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::steps::{ForkBody, ForkExecution};
use serde_json::value::RawValue;

use crate::client::{Api, ServerArgs};
use crate::ids::id;
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::values::{json, pair};

/// Submits a new execution that starts with copies of another one's finished steps. What is not named is as there. An unknown id
/// or step exits 4.
#[derive(Args)]
#[command(after_help = "Example:
  ff fork 0192f3a0-… --from-step summarize --input '{\"model\":\"larger\"}'
  ff show 0192f3a0-… --steps")]
pub struct Fork {
    /// The execution to fork.
    #[arg(value_name = "ID")]
    execution_id: String,
    /// Copies the finished steps before this one; the default is all of them.
    #[arg(long, value_name = "STEP")]
    from_step: Option<String>,
    /// Another input, as JSON.
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Another lane.
    #[arg(long)]
    lane: Option<String>,
    /// Another priority.
    #[arg(long)]
    priority: Option<i64>,
    /// Other tags, in place of all it has; may be repeated.
    #[arg(long = "tag", value_parser = pair, value_name = "KEY=VALUE")]
    tags: Vec<(String, String)>,
    /// Forking again under this key returns the first fork.
    #[arg(long)]
    idempotency_key: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Fork {
    /// Submits the fork and prints its id.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let input: Option<Box<RawValue>> = json("input", self.input.as_deref())?;
        let tags = (!self.tags.is_empty()).then(|| self.tags.into_iter().collect::<BTreeMap<_, _>>());
        let body = ForkBody {
            from_step: self.from_step,
            input_encoding: input.as_ref().map(|_| ff_api::Encoding::Json),
            input,
            lane: self.lane,
            priority: self.priority,
            tags,
            idempotency_key: self.idempotency_key,
        };
        let ask = Ask::<ForkExecution>::with(id("an execution", &self.execution_id)?, body);
        let forked = Api::new(&self.server)?.ask(&ask).await?;
        match self.output.output {
            Output::Json => say_raw(&forked.bytes)?,
            Output::Ids => say(&forked.value.execution_id.to_string())?,
            Output::Table => {
                let steps = forked.value.steps;
                let copied = if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
                say(&format!("{}  forked with {copied}", forked.value.execution_id))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
