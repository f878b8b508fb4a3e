//! `ff list`: executions, newest first.

use std::process::ExitCode;

use clap::Args;
use ff_core::state::PublicState;
use serde_json::Value;

use super::flow::Colour;
use crate::client::{Api, OutputArgs, ServerArgs, pair, text, time, words};
use crate::pages::{Listing, PageArgs};
use crate::view::{View, WatchArgs};

/// Lists executions, newest first.
#[derive(Args)]
#[command(after_help = "Example:
  ff list --lane mail --state failed
  ff list --kind import --watch
  ff list --lane mail --state failed -o ids | ff replay -")]
pub struct List {
    /// Those of a namespace.
    #[arg(long)]
    namespace: Option<String>,
    /// Those of a lane.
    #[arg(long)]
    lane: Option<String>,
    /// Those of a kind.
    #[arg(long)]
    kind: Option<String>,
    /// Those in a state.
    #[arg(long, value_parser = words(PublicState::ALL))]
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
    /// Submitted after this, in milliseconds since 1970.
    #[arg(long)]
    created_after: Option<i64>,
    /// Submitted before this, in milliseconds since 1970.
    #[arg(long)]
    created_before: Option<i64>,
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
        let number = |value: Option<i64>| value.map(|value| value.to_string());
        let tag = self.tag.as_ref().map(|(key, value)| format!("{key}:{value}"));
        let filters = [
            ("namespace", self.namespace),
            ("lane", self.lane),
            ("kind", self.kind),
            ("state", self.state),
            ("tag", tag),
            ("flow_id", self.flow_id),
            ("worker", self.worker),
            ("created_after", number(self.created_after)),
            ("created_before", number(self.created_before)),
        ];
        let listing = Listing {
            path: "/v1/executions",
            query: filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
            page: self.page,
            id: "execution_id",
            about: &[("types", "execution.".to_owned())],
        };
        let api = Api::new(&self.server)?;
        listing.show(&api, self.watch, self.output.output, |items| View::lines(table(items))).await
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
