//! `ff lane`: lists, shows, defines, pauses and resumes lanes.

mod explain;
mod list;
pub mod rows;
mod set;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ff_api::lanes::{DisableLane, DrainLane, Lane, NamespaceQuery, PauseLane, ResumeLane};
use ff_api::operation::Nothing;
use ff_api::{Ask, Operation};

use crate::client::{Answered, Api, ServerArgs};
use crate::output::{Output, OutputArgs, say, say_raw};

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
    /// Explains why the work of a lane is not running, counted by reason.
    Explain(explain::Explain),
    /// Defines a lane; what is not named stays.
    Set(Box<set::Set>),
    /// Starts none of its work; it still takes submissions.
    Pause(State),
    /// Starts its work again, after pause, drain or disable.
    Resume(State),
    /// Takes no more submissions; the work it holds still runs.
    Drain(State),
    /// Takes no more submissions and starts none of its work.
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
    /// Names the lane to an operation.
    fn query(&self) -> NamespaceQuery {
        NamespaceQuery { namespace: Some(self.namespace.clone()) }
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
            Verb::Explain(explain) => explain.run().await,
            Verb::Set(set) => set.run().await,
            Verb::Pause(state) => state.change::<PauseLane>().await,
            Verb::Resume(state) => state.change::<ResumeLane>().await,
            Verb::Drain(state) => state.change::<DrainLane>().await,
            Verb::Disable(state) => state.change::<DisableLane>().await,
        }
    }
}

impl State {
    async fn change<O>(self) -> anyhow::Result<ExitCode>
    where
        O: Operation<At = String, Query = NamespaceQuery, Body = Nothing, Answer = Lane>,
    {
        let ask = Ask::<O>::by(self.lane.lane.clone(), self.lane.query());
        let Answered { value, bytes, .. } = Api::new(&self.server)?.ask(&ask).await?;
        match self.output.output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => say(&value.lane)?,
            Output::Table => say(&format!("{}/{}  {}", value.namespace, value.lane, value.definition.state))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
