//! `ff flow graph`: a flow drawn in the terminal.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::events::EventsQuery;
use ff_api::graph::{GetFlowGraph, Member};
use ff_core::types::FlowId;
use ff_script::generated::{Inbound, InboundPolicy};

use super::drawing::{self, Node};
use crate::client::{Answered, Api, ServerArgs};
use crate::ids::id;
use crate::output::{Output, OutputArgs};
use crate::states::Colour;
use crate::terminal;
use crate::view::{View, WatchArgs};

/// Draws a flow: what waits for what, and how far each member is. An unknown id exits 4.
#[derive(Args)]
pub struct Graph {
    /// The flow's id.
    #[arg(value_name = "ID")]
    id: String,
    /// How many columns there are (default: those of the terminal); a drawing that is wider becomes a list.
    #[arg(long, env = "COLUMNS")]
    width: Option<usize>,
    /// How many members of one layer are drawn; the others are counted.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(2..))]
    rows: u16,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Graph {
    /// Prints the drawing.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let id: FlowId = id("a flow", &self.id)?;
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let look = async || {
            let Answered { value: graph, bytes, .. } = api.ask(&Ask::<GetFlowGraph>::at(id)).await?;
            match output {
                Output::Json => return View::raw(&bytes),
                Output::Ids => return Ok(View::lines(graph.nodes.iter().map(|node| node.execution_id.to_string()))),
                Output::Table => {}
            }
            let mut lines = vec![format!("{id}  {}", graph.state), String::new()];
            let width = self.width.unwrap_or_else(|| terminal::size().0);
            let size = drawing::Size { width, rows: usize::from(self.rows) };
            let nodes: Vec<Node> = graph.nodes.iter().map(node).collect();
            lines.extend(drawing::draw(&nodes, &graph.edges, size, Colour::of_stdout()));
            Ok(View::lines(lines))
        };
        let about = EventsQuery { flow_id: Some(id), ..EventsQuery::default() };
        self.watch.show(&api, output, &about, look).await
    }
}

fn node(member: &Member) -> Node {
    let race = match &member.inbound {
        Some(Inbound { policy: InboundPolicy::AnyOf, .. }) => " (any)".to_owned(),
        Some(Inbound { policy: InboundPolicy::Quorum, k: Some(k), .. }) => format!(" ({k} of {})", member.edges_in),
        _ => String::new(),
    };
    let nested = if member.nested_flow_id.is_some() { " [flow]" } else { "" };
    let name = terminal::harmless(&format!("{}{nested}{race}", member.key));
    Node { key: member.key.clone(), name, state: member.state }
}
