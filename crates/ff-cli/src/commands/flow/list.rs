//! `ff flow list`: flows, newest first.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::graph::{Flow, FlowsQuery, ListFlows};
use ff_script::generated::FlowState;

use crate::client::{Api, ServerArgs};
use crate::output::OutputArgs;
use crate::pages::{PageArgs, Paged};
use crate::states::counts;
use crate::table::{Table, id, number, text};
use crate::times::moment;
use crate::values::words;
use crate::view::{View, WatchArgs, types};

/// Lists flows, newest first.
#[derive(Args)]
pub struct List {
    /// Only flows of this namespace.
    #[arg(long)]
    namespace: Option<String>,
    /// Only flows of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Only flows in this state.
    #[arg(long, value_parser = words(FlowState::ALL))]
    state: Option<FlowState>,
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
        let api = Api::new(&self.server)?;
        let list = Paged::new(self.page, types("flow.,execution."), |limit, cursor| {
            let (namespace, kind, state) = (self.namespace.clone(), self.kind.clone(), self.state);
            Ask::<ListFlows>::by((), FlowsQuery { namespace, kind, state, limit: Some(limit), cursor })
        });
        let named = |flow: &Flow| flow.flow_id.to_string();
        list.show(&api, self.watch, self.output.output, named, |flows| View::lines(table(flows))).await
    }
}

fn table(flows: &[Flow]) -> Vec<String> {
    let mut table = Table::new(["ID", "STATE", "KIND", "CREATED (UTC)", "MEMBERS"]).sparing(&["CREATED (UTC)"]);
    for flow in flows {
        let (state, members) = (flow.state.as_str(), counts(flow));
        table.row([id(flow.flow_id), text(state), text(&flow.kind), number(moment(flow.created_at)), text(members)]);
    }
    table.lines()
}
