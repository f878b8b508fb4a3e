//! `ff flow`: submits, watches, releases and cancels flows.

mod cancel;
mod drawing;
mod graph;
mod gutter;
mod list;
mod seal;
mod show;
mod state;
mod submit;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub use state::Colour;

/// Submits, watches, releases and cancels flows. An unknown id exits 4.
#[derive(Args)]
pub struct FlowCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Submits a flow from a JSON file.
    Submit(submit::Submit),
    /// Lists flows, newest first.
    List(list::List),
    /// Shows a flow and its members.
    Show(show::Show),
    /// Draws a flow: who waits for whom, and how far each is.
    Graph(graph::Graph),
    /// Releases the members a flow holds.
    Seal(seal::Seal),
    /// Cancels a flow.
    Cancel(cancel::Cancel),
}

impl FlowCommand {
    /// Runs the verb.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            Verb::Submit(submit) => submit.run().await,
            Verb::List(list) => list.run().await,
            Verb::Show(show) => show.run().await,
            Verb::Graph(graph) => graph.run().await,
            Verb::Seal(seal) => seal.run().await,
            Verb::Cancel(cancel) => cancel.run().await,
        }
    }
}
