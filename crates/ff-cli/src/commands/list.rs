//! `ff list`: executions, newest first.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::flow::Colour;
use crate::client::{Api, Output, OutputArgs, ServerArgs, pair, text, time};
use crate::view::{View, WatchArgs};

/// Lists executions, newest first.
#[derive(Args)]
#[command(after_help = "Example:
  ff list --lane mail --state failed
  ff list --kind import --watch")]
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
    watch: WatchArgs,
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
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let look = async || {
            let reply = api.get("/v1/executions", &query).await?.accepted()?;
            if output == Output::Json {
                return View::raw(&reply.bytes);
            }
            let page = reply.json()?;
            let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut view = match output {
                Output::Ids => View::lines(items.iter().map(|item| text(&item["execution_id"]))),
                Output::Table | Output::Json => View::lines(table(items)),
            };
            view.note = page["next_cursor"].as_str().map(|cursor| format!("more with --cursor {cursor}"));
            Ok(view)
        };
        self.watch.show(&api, output, &[("types", "execution.".to_owned())], look).await
    }
}

fn table(items: &[Value]) -> Vec<String> {
    let colour = Colour::of_stdout();
    let mut lines = vec![format!(
        "{:36}  {:16}  {:20}  {:16}  {:23}  {}",
        "ID", "STATE", "KIND", "LANE", "CREATED (UTC)", "WORKER"
    )];
    for item in items {
        let state = text(&item["state"]);
        lines.push(format!(
            "{:36}  {}  {:20}  {:16}  {:23}  {}",
            text(&item["execution_id"]),
            colour.paint(&state, &format!("{state:16}")),
            text(&item["kind"]),
            text(&item["lane"]),
            time(&item["created_at"]),
            text(&item["worker_instance"])
        ));
    }
    lines
}
