//! `ff flow graph`: a flow drawn in the terminal.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::drawing::{self, Edge, Node};
use super::state::Colour;
use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, segment, text};

/// The width drawn for when the terminal does not say its own.
const WIDTH: usize = 120;

/// Draws a flow: who waits for whom, and how far each is. An unknown id exits 4.
#[derive(Args)]
pub struct Graph {
    /// The flow's id.
    #[arg(value_name = "ID")]
    id: String,
    /// How many columns there are; a drawing that is wider becomes a list.
    #[arg(long, env = "COLUMNS", default_value_t = WIDTH)]
    width: usize,
    /// How many members of one layer are drawn; the others are counted.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(2..))]
    rows: u16,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Graph {
    /// Prints the drawing.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let path = format!("/v1/flows/{}/graph", segment(&self.id));
        let reply = Api::new(&self.server)?.get(&path, &[]).await?.accepted()?;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => {
                for node in reply.json()?["nodes"].as_array().into_iter().flatten() {
                    say(&text(&node["execution_id"]))?;
                }
            }
            Output::Table => {
                let graph = reply.json()?;
                say(&format!("{}  {}", self.id, text(&graph["state"])))?;
                say("")?;
                let size = drawing::Size { width: self.width, rows: usize::from(self.rows) };
                let lines = drawing::draw(&nodes(&graph), &edges(&graph), size, Colour::of_stdout());
                lines.iter().try_for_each(|line| say(line))?;
            }
        }
        Ok(ExitCode::SUCCESS)
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
