//! `ff flow show`: a flow and its members.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::state::counts;
use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, segment, text, time};

/// Shows a flow and its members. An unknown id exits 4.
#[derive(Args)]
pub struct Show {
    /// The flow's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Waits up to so many milliseconds for its end.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=30_000))]
    wait_ms: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    /// Prints the flow.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let query: Vec<(&str, String)> = self.wait_ms.iter().map(|ms| ("wait_ms", ms.to_string())).collect();
        let path = format!("/v1/flows/{}", segment(&self.id));
        let reply = Api::new(&self.server)?.get(&path, &query).await?.accepted()?;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => {
                for member in reply.json()?["members"].as_array().into_iter().flatten() {
                    say(&text(&member["execution_id"]))?;
                }
            }
            Output::Table => table(&reply.json()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn table(flow: &Value) -> anyhow::Result<()> {
    let line = |name: &str, value: String| if value.is_empty() { Ok(()) } else { say(&format!("{name:16} {value}")) };
    line("flow", text(&flow["flow_id"]))?;
    line("state", text(&flow["state"]))?;
    line("kind", text(&flow["kind"]))?;
    line("namespace", text(&flow["namespace"]))?;
    line("policy", text(&flow["policy"]))?;
    line("members", counts(flow))?;
    for name in ["created_at", "sealed_at", "deadline_at", "finished_at"] {
        line(name.trim_end_matches("_at"), time(&flow[name]))?;
    }
    let stop = &flow["stop"];
    if !stop.is_null() {
        let by = stop["actor"].as_str().map(|actor| format!(" by {actor}")).unwrap_or_default();
        line("stopped", format!("{} {}{by}: {}", time(&stop["at"]), text(&stop["policy"]), text(&stop["reason"])))?;
    }
    line("in place of", text(&flow["parent_id"]))?;
    say("")?;
    say(&format!("{:36}  {:16}  {:20}  {}", "EXECUTION", "STATE", "KIND", "KEY"))?;
    for member in flow["members"].as_array().into_iter().flatten() {
        let nested = member["nested_flow_id"].as_str().map(|flow| format!("  = flow {flow}")).unwrap_or_default();
        say(&format!(
            "{:36}  {:16}  {:20}  {}{nested}",
            text(&member["execution_id"]),
            text(&member["state"]),
            text(&member["kind"]),
            text(&member["key"])
        ))?;
    }
    if flow["members_next_cursor"].is_string() {
        eprintln!("these are the first; `ff list --flow {}` pages through all", text(&flow["flow_id"]));
    }
    Ok(())
}
