//! `ff flow list`: flows, newest first.

use std::process::ExitCode;

use clap::Args;
use ff_script::generated::FlowState;
use serde_json::Value;

use super::state::counts;
use crate::client::{Api, OutputArgs, ServerArgs, text, time, words};
use crate::pages::{Listing, PageArgs};
use crate::view::{View, WatchArgs};

/// Lists flows, newest first.
#[derive(Args)]
pub struct List {
    /// Those of a namespace.
    #[arg(long)]
    namespace: Option<String>,
    /// Those of a kind.
    #[arg(long)]
    kind: Option<String>,
    /// Those in a state.
    #[arg(long, value_parser = words(FlowState::ALL))]
    state: Option<String>,
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
        let filters = [("namespace", self.namespace), ("kind", self.kind), ("state", self.state)];
        let listing = Listing {
            path: "/v1/flows",
            query: filters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
            page: self.page,
            id: "flow_id",
            about: &[],
        };
        let api = Api::new(&self.server)?;
        listing.show(&api, self.watch, self.output.output, |items| View::lines(table(items))).await
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
