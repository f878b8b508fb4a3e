//! `ff flow list`: flows, newest first.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::state::counts;
use crate::client::{Api, Output, OutputArgs, ServerArgs, text, time};
use crate::view::{View, WatchArgs};

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
    watch: WatchArgs,
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
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let look = async || {
            let reply = api.get("/v1/flows", &query).await?.accepted()?;
            if output == Output::Json {
                return View::raw(&reply.bytes);
            }
            let page = reply.json()?;
            let items = page["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut view = match output {
                Output::Ids => View::lines(items.iter().map(|item| text(&item["flow_id"]))),
                Output::Table | Output::Json => View::lines(table(items)),
            };
            view.note = page["next_cursor"].as_str().map(|cursor| format!("more with --cursor {cursor}"));
            Ok(view)
        };
        self.watch.show(&api, output, &[], look).await
    }
}

fn table(items: &[Value]) -> Vec<String> {
    let mut lines = vec![format!("{:36}  {:10}  {:20}  {:23}  {}", "ID", "STATE", "KIND", "CREATED (UTC)", "MEMBERS")];
    for item in items {
        lines.push(format!(
            "{:36}  {:10}  {:20}  {:23}  {}",
            text(&item["flow_id"]),
            text(&item["state"]),
            text(&item["kind"]),
            time(&item["created_at"]),
            counts(item)
        ));
    }
    lines
}
