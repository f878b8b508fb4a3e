//! `ff worker list`: live workers.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::client::{Api, OutputArgs, ServerArgs, now_ms, span, text};
use crate::pages::{Listing, PageArgs};
use crate::view::{View, WatchArgs};

/// Lists live workers.
#[derive(Args)]
#[command(after_help = "Example:
  ff worker list
  ff worker list -o ids | ff worker drain -")]
pub struct List {
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl List {
    /// Prints them, and how to get more.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let listing = Listing {
            path: "/v1/workers",
            query: Vec::new(),
            page: self.page,
            id: "instance",
            about: &[("types", "worker.".to_owned())],
        };
        let api = Api::new(&self.server)?;
        let table = |items: &[Value]| View::lines(table(items, now_ms())).about(standing(items));
        listing.show(&api, self.watch, self.output.output, table).await
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
