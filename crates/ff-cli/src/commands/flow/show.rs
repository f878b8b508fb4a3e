//! `ff flow show`: a flow and its members.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::state::{Colour, counts};
use crate::client::{Api, Output, OutputArgs, ServerArgs, segment, text, time};
use crate::commands::show::told;
use crate::view::{View, WatchArgs};

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
    watch: WatchArgs,
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
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let look = async || {
            let reply = api.get(&path, &query).await?.accepted()?;
            if output == Output::Json {
                return View::raw(&reply.bytes);
            }
            let flow = reply.json()?;
            let members = flow["members"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut view = match output {
                Output::Ids => View::lines(members.iter().map(|member| text(&member["execution_id"]))),
                Output::Table | Output::Json => View::lines(table(&flow)),
            };
            if flow["members_next_cursor"].is_string() {
                let id = text(&flow["flow_id"]);
                view.note = Some(format!("these are the first; `ff list --flow {id}` pages through all"));
            }
            Ok(view)
        };
        self.watch.show(&api, output, &[("flow_id", self.id.clone())], look).await
    }
}

fn table(flow: &Value) -> Vec<String> {
    let colour = Colour::of_stdout();
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("{name:16} {value}"));
        }
    };
    line("flow", text(&flow["flow_id"]));
    line("state", text(&flow["state"]));
    line("kind", text(&flow["kind"]));
    line("namespace", text(&flow["namespace"]));
    line("policy", text(&flow["policy"]));
    line("members", counts(flow));
    for name in ["created_at", "sealed_at", "deadline_at", "finished_at"] {
        line(name.trim_end_matches("_at"), time(&flow[name]));
    }
    let stop = &flow["stop"];
    if !stop.is_null() {
        let by = stop["actor"].as_str().map(|actor| format!(" by {actor}")).unwrap_or_default();
        line("stopped", format!("{} {}{by}: {}", time(&stop["at"]), text(&stop["policy"]), text(&stop["reason"])));
    }
    line("in place of", text(&flow["parent_id"]));
    if !flow["webhook"].is_null() {
        line("webhook", told(&flow["webhook"]));
    }
    lines.push(String::new());
    lines.push(format!("{:36}  {:16}  {:20}  {}", "EXECUTION", "STATE", "KIND", "KEY"));
    for member in flow["members"].as_array().into_iter().flatten() {
        let nested = member["nested_flow_id"].as_str().map(|flow| format!("  = flow {flow}")).unwrap_or_default();
        let state = text(&member["state"]);
        lines.push(format!(
            "{:36}  {}  {:20}  {}{nested}",
            text(&member["execution_id"]),
            colour.paint(&state, &format!("{state:16}")),
            text(&member["kind"]),
            text(&member["key"])
        ));
    }
    lines
}
