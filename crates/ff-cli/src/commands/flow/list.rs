//! `ff flow list`: flows, newest first.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::state::counts;
use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, text, time};

/// Lists flows, newest first.
#[derive(Args)]
pub struct List {
    #[arg(long)]
    namespace: Option<String>,
    #[arg(long)]
    kind: Option<String>,
    /// open, running, blocked, completed, failed or cancelled.
    #[arg(long)]
    state: Option<String>,
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
        let query: Vec<(&str, String)> = [
            ("namespace", self.namespace),
            ("kind", self.kind),
            ("state", self.state),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("cursor", self.cursor),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
        let reply = Api::new(&self.server)?.get("/v1/flows", &query).await?.accepted()?;
        if self.output.output == Output::Json {
            say_raw(&reply.bytes)?;
            return Ok(ExitCode::SUCCESS);
        }
        let page = reply.json()?;
        let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        match self.output.output {
            Output::Ids => {
                for item in items {
                    say(&text(&item["flow_id"]))?;
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
    say(&format!("{:36}  {:10}  {:20}  {:23}  {}", "ID", "STATE", "KIND", "CREATED (UTC)", "MEMBERS"))?;
    for item in items {
        say(&format!(
            "{:36}  {:10}  {:20}  {:23}  {}",
            text(&item["flow_id"]),
            text(&item["state"]),
            text(&item["kind"]),
            time(&item["created_at"]),
            counts(item)
        ))?;
    }
    Ok(())
}
