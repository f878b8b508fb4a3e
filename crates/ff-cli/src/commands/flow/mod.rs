//! `ff flow`: submits, watches, releases and cancels flows.

mod cancel;
mod drawing;
mod graph;
mod gutter;
mod list;
mod result;
mod seal;
mod show;
mod submit;

use std::process::ExitCode;

use clap::{Args, Subcommand};

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
    /// Prints what became of a flow, waiting for its end when asked to.
    Result(result::ResultCommand),
    /// Draws a flow: what waits for what, and how far each member is.
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
            Verb::Result(result) => result.run().await,
            Verb::Graph(graph) => graph.run().await,
            Verb::Seal(seal) => seal.run().await,
            Verb::Cancel(cancel) => cancel.run().await,
        }
    }
}
