//! `ff lane`: lists, shows, defines, pauses and resumes lanes.

mod list;
mod set;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::client::{Api, Output, OutputArgs, ServerArgs, say, say_raw, segment, text};

/// Lists, shows, defines, pauses and resumes lanes. An unknown lane exits 4.
#[derive(Args)]
pub struct LaneCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Lists lanes and what they hold.
    List(list::List),
    /// Shows a lane and what it holds.
    Show(show::Show),
    /// Defines a lane; what is not named stays.
    Set(Box<set::Set>),
    /// Starts nothing of it any more; submissions are taken.
    Pause(State),
    /// Starts its work again, after pause, drain or disable.
    Resume(State),
    /// Takes no submissions; what it holds still runs.
    Drain(State),
    /// Takes no submissions and starts nothing.
    Disable(State),
}

/// Which lane.
#[derive(Args)]
struct LaneArgs {
    /// The lane.
    #[arg(value_name = "LANE")]
    lane: String,
    /// Its namespace.
    #[arg(long, default_value = "default")]
    namespace: String,
}

impl LaneArgs {
    /// Where it is, with a verb behind it or nothing.
    fn path(&self, verb: &str) -> String {
        format!("/v1/lanes/{}{verb}?namespace={}", segment(&self.lane), segment(&self.namespace))
    }
}

#[derive(Args)]
struct State {
    #[command(flatten)]
    lane: LaneArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl LaneCommand {
    /// Runs the verb.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.verb {
            Verb::List(list) => list.run().await,
            Verb::Show(show) => show.run().await,
            Verb::Set(set) => set.run().await,
            Verb::Pause(state) => state.change("/pause").await,
            Verb::Resume(state) => state.change("/resume").await,
            Verb::Drain(state) => state.change("/drain").await,
            Verb::Disable(state) => state.change("/disable").await,
        }
    }
}

impl State {
    async fn change(self, verb: &str) -> anyhow::Result<ExitCode> {
        let reply = Api::new(&self.server)?.post(&self.lane.path(verb), String::new()).await?.accepted()?;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&reply.json()?["lane"]))?,
            Output::Table => {
                let lane = reply.json()?;
                say(&format!("{}/{}  {}", text(&lane["namespace"]), text(&lane["lane"]), text(&lane["state"])))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
