//! `ff flow graph`: a flow drawn in the terminal.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::drawing::{self, Edge, Node};
use super::state::Colour;
use crate::client::{Api, Output, OutputArgs, ServerArgs, segment, text};
use crate::terminal;
use crate::view::{View, WatchArgs};

/// Draws a flow: who waits for whom, and how far each is. An unknown id exits 4.
#[derive(Args)]
pub struct Graph {
    /// The flow's id.
    #[arg(value_name = "ID")]
    id: String,
    /// How many columns there are, as many as the terminal has unless said; a drawing that is wider becomes a list.
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
        let path = format!("/v1/flows/{}/graph", segment(&self.id));
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let look = async || {
            let reply = api.get(&path, &[]).await?.accepted()?;
            if output == Output::Json {
                return View::raw(&reply.bytes);
            }
            let graph = reply.json()?;
            if output == Output::Ids {
                let nodes = graph["nodes"].as_array().into_iter().flatten();
                return Ok(View::lines(nodes.map(|node| text(&node["execution_id"]))));
            }
            let mut lines = vec![format!("{}  {}", self.id, text(&graph["state"])), String::new()];
            let width = self.width.unwrap_or_else(|| terminal::size().0);
            let size = drawing::Size { width, rows: usize::from(self.rows) };
            lines.extend(drawing::draw(&nodes(&graph), &edges(&graph), size, Colour::of_stdout()));
            Ok(View::lines(lines))
        };
        self.watch.show(&api, output, &[("flow_id", self.id.clone())], look).await
    }
}

fn nodes(graph: &Value) -> Vec<Node> {
    let nodes = graph["nodes"].as_array().into_iter().flatten();
    nodes
        .map(|node| {
            let inbound = &node["inbound"];
            let race = match inbound["policy"].as_str() {
                Some("any_of") => " (any)".to_owned(),
                Some("quorum") => format!(" ({} of {})", text(&inbound["k"]), text(&node["edges_in"])),
                _ => String::new(),
            };
            let nested = if node["nested_flow_id"].is_string() { " [flow]" } else { "" };
            let name = format!("{}{nested}{race}", text(&node["key"]));
            Node { key: text(&node["key"]), name, state: text(&node["state"]) }
        })
        .collect()
}

fn edges(graph: &Value) -> Vec<Edge> {
    let edges = graph["edges"].as_array().into_iter().flatten();
    edges.map(|edge| Edge { from: text(&edge["from"]), to: text(&edge["to"]), on: text(&edge["on"]) }).collect()
}
