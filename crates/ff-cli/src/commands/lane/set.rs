//! `ff lane set`: defines a lane.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use ff_api::Ask;
use ff_api::lanes::{DefineLane, Lane, LaneBody};
use ff_script::generated::{Fairness, LaneState};

use super::LaneArgs;
use crate::client::{Answered, Api, ServerArgs};
use crate::output::{Output, OutputArgs, say, say_raw};
use crate::problem::WrongUsage;
use crate::times::duration;
use crate::values::{json, words};

/// Defines a lane; what is not named stays.
#[derive(Args)]
#[command(after_help = "Example:
  ff lane set mail --max-active 20 --weight 2
  ff lane set mail --max-active none
  ff lane set mail --retry '{\"max_attempts\":5}'")]
pub struct Set {
    #[command(flatten)]
    lane: LaneArgs,
    /// Whether it takes submissions, and whether they start.
    #[arg(long, value_parser = words(LaneState::ALL))]
    state: Option<LaneState>,
    /// How many of its executions run at once; `none` lifts the limit.
    #[arg(long, value_name = "N|none")]
    max_active: Option<Bound>,
    /// How many of its executions may wait; `none` lifts the limit.
    #[arg(long, value_name = "N|none")]
    max_depth: Option<Bound>,
    /// Its share beside other lanes.
    #[arg(long)]
    weight: Option<i64>,
    /// How much age one step of priority is worth, e.g. 1m (default: so much that priority always comes first).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    priority_weight: Option<i64>,
    /// Whether the oldest comes first, or fairness keys take turns.
    #[arg(long, value_parser = words(Fairness::ALL))]
    fairness: Option<Fairness>,
    /// Weights by fairness key, as a JSON object.
    #[arg(long)]
    fairness_weights: Option<String>,
    /// The retry policy of executions that name none, as JSON.
    #[arg(long)]
    retry: Option<String>,
    /// The attempt timeout of executions that name none.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    attempt_timeout: Option<i64>,
    /// The lease TTL of claims that name none.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    lease_ttl: Option<i64>,
    /// The retention of executions that name none.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    retention: Option<i64>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// A limit, or the word that lifts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    None,
    At(i64),
}

impl std::str::FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            number => number.parse().map(Self::At).map_err(|_| format!("{text} is neither a number nor none")),
        }
    }
}

impl Set {
    /// Prints the lane as it is afterwards.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let ask = Ask::<DefineLane> { at: self.lane.lane.clone(), query: self.lane.query(), body: self.body()? };
        let Answered { value, bytes, .. } = Api::new(&self.server)?.ask(&ask).await?;
        match self.output.output {
            Output::Json => say_raw(&bytes)?,
            Output::Ids => say(&value.lane)?,
            Output::Table => {
                let Lane { namespace, lane, version, definition, .. } = value;
                say(&format!("{namespace}/{lane}  {}  version {version}", definition.state))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn body(&self) -> anyhow::Result<LaneBody> {
        let at = |bound: Bound| match bound {
            Bound::None => None,
            Bound::At(number) => Some(number),
        };
        let body = LaneBody {
            state: self.state,
            priority_weight: self.priority_weight,
            fairness: self.fairness,
            fairness_weights: json("fairness-weights", self.fairness_weights.as_deref())?,
            max_depth: self.max_depth.and_then(at),
            clear_max_depth: (self.max_depth == Some(Bound::None)).then_some(true),
            max_active: self.max_active.map(at),
            weight: self.weight,
            retry: json("retry", self.retry.as_deref())?,
            attempt_timeout_ms: self.attempt_timeout,
            retention_ms: self.retention,
            lease_ttl_ms: self.lease_ttl,
        };
        if body == LaneBody::default() {
            bail!(WrongUsage(
                "say what to change, e.g. --max-active 20; `ff lane set --help` lists what a lane has".to_owned()
            ));
        }
        Ok(body)
    }
}
