//! `ff worker`: lists, shows and drains workers, and runs any program as one.

mod drain;
mod exec;
pub mod list;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Lists, shows and drains workers, and runs any program as one. An unknown instance exits 4.
#[derive(Args)]
pub struct WorkerCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Lists live workers.
    List(list::List),
    /// Shows a worker and what it holds.
    Show(show::Show),
    Exec(Box<exec::Exec>),
    /// Asks workers to take nothing new and to hand back what they hold.
    Drain(drain::Drain),
}

impl WorkerCommand {
    /// Runs the verb.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            Verb::List(list) => list.run().await,
            Verb::Show(show) => show.run().await,
            Verb::Exec(exec) => exec.run().await,
            Verb::Drain(drain) => drain.run().await,
        }
    }
}
