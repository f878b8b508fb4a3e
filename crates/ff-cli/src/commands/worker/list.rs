//! `ff worker list`: live workers.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::client::{Api, Output, OutputArgs, ServerArgs, now_ms, span, text};
use crate::view::{View, WatchArgs};

/// Lists live workers.
#[derive(Args)]
#[command(after_help = "Example:
  ff worker list
  ff worker list -o ids | ff worker drain -")]
pub struct List {
    /// How many at most.
    #[arg(long)]
    limit: Option<i64>,
    /// Where an earlier list stopped.
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl List {
    /// Prints one page, and how to get the next.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let query: Vec<(&str, String)> =
            [("limit", self.limit.map(|limit| limit.to_string())), ("cursor", self.cursor)]
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?)))
                .collect();
        let look = async || {
            let reply = api.get("/v1/workers", &query).await?.accepted()?;
            if output == Output::Json {
                return View::raw(&reply.bytes);
            }
            let page = reply.json()?;
            let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut view = match output {
                Output::Ids => View::lines(items.iter().map(|item| text(&item["instance"]))),
                Output::Table | Output::Json => View::lines(table(items, now_ms())).about(standing(items)),
            };
            view.note = page["next_cursor"].as_str().map(|cursor| format!("more with --cursor {cursor}"));
            Ok(view)
        };
        self.watch.show(&api, output, &[("types", "worker.".to_owned())], look).await
    }
}

/// The workers without the times of their heartbeats.
fn standing(items: &[Value]) -> String {
    let fields = ["instance", "state", "slots", "lanes", "capabilities", "registered_at"];
    items.iter().flat_map(|item| fields.map(|name| item[name].to_string())).collect::<Vec<_>>().join(" ")
}

fn table(items: &[Value], now: i64) -> Vec<String> {
    let mut lines = vec![format!(
        "{:32}  {:20}  {:9}  {:>5}  {:>8}  {:24}  {}",
        "INSTANCE", "WORKER", "STATE", "SLOTS", "SINCE", "LANES", "CAPABILITIES"
    )];
    let list = |value: &Value| {
        let texts: Vec<String> = value.as_array().into_iter().flatten().map(text).collect();
        if texts.is_empty() { "-".to_owned() } else { texts.join(",") }
    };
    for item in items {
        let namespace = text(&item["namespace"]);
        let lanes = list(&item["lanes"]);
        lines.push(format!(
            "{:32}  {:20}  {:9}  {:>5}  {:>8}  {:24}  {}",
            text(&item["instance"]),
            text(&item["worker_id"]),
            text(&item["state"]),
            text(&item["slots"]),
            span(item["registered_at"].as_i64().map(|at| now - at)),
            if namespace == "default" { lanes } else { format!("{namespace}/{lanes}") },
            list(&item["capabilities"])
        ));
    }
    lines
}
