//! `ff list`: executions, newest first.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::client::{Api, Output, OutputArgs, ServerArgs, pair, say, say_raw, text, time};

/// Lists executions, newest first.
#[derive(Args)]
pub struct List {
    #[arg(long)]
    namespace: Option<String>,
    #[arg(long)]
    lane: Option<String>,
    #[arg(long)]
    kind: Option<String>,
    /// E.g. waiting, active, failed.
    #[arg(long)]
    state: Option<String>,
    /// key=value.
    #[arg(long, value_parser = pair, value_name = "KEY=VALUE")]
    tag: Option<(String, String)>,
    /// Members of this flow, the one added last first.
    #[arg(long = "flow", alias = "flow-id", value_name = "ID")]
    flow_id: Option<String>,
    /// Leased by this worker instance.
    #[arg(long)]
    worker: Option<String>,
    #[arg(long)]
    created_after: Option<i64>,
    #[arg(long)]
    created_before: Option<i64>,
    /// How many at most.
    #[arg(long)]
    limit: Option<i64>,
    /// Where an earlier list stopped.
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl List {
    /// Prints one page, and how to get the next.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let number = |value: Option<i64>| value.map(|value| value.to_string());
        let tag = self.tag.as_ref().map(|(key, value)| format!("{key}:{value}"));
        let query: Vec<(&str, String)> = [
            ("namespace", self.namespace),
            ("lane", self.lane),
            ("kind", self.kind),
            ("state", self.state),
            ("tag", tag),
            ("flow_id", self.flow_id),
            ("worker", self.worker),
            ("created_after", number(self.created_after)),
            ("created_before", number(self.created_before)),
            ("limit", number(self.limit)),
            ("cursor", self.cursor),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
        let reply = Api::new(&self.server)?.get("/v1/executions", &query).await?.accepted()?;
        if self.output.output == Output::Json {
            say_raw(&reply.bytes)?;
            return Ok(ExitCode::SUCCESS);
        }
        let page = reply.json()?;
        let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        match self.output.output {
            Output::Ids => {
                for item in items {
                    say(&text(&item["execution_id"]))?;
                }
            }
            Output::Table | Output::Json => table(items)?,
        }
        if let Some(cursor) = page["next_cursor"].as_str() {
            eprintln!("more with --cursor {cursor}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(items: &[Value]) -> anyhow::Result<()> {
    say(&format!("{:36}  {:16}  {:20}  {:16}  {:23}  {}", "ID", "STATE", "KIND", "LANE", "CREATED (UTC)", "WORKER"))?;
    for item in items {
        say(&format!(
            "{:36}  {:16}  {:20}  {:16}  {:23}  {}",
            text(&item["execution_id"]),
            text(&item["state"]),
            text(&item["kind"]),
            text(&item["lane"]),
            time(&item["created_at"]),
            text(&item["worker_instance"])
        ))?;
    }
    Ok(())
}
