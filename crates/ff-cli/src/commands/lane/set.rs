//! `ff lane set`: defines a lane.

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use ff_script::generated::{Fairness, LaneState};
use serde_json::{Map, Value};

use super::LaneArgs;
use crate::client::{Api, Output, OutputArgs, ServerArgs, WrongUsage, say, say_raw, text, words};

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
    state: Option<String>,
    /// How many of its executions run at once; `none` lifts the limit.
    #[arg(long, value_name = "N|none")]
    max_active: Option<Bound>,
    /// How many of its executions may wait; `none` lifts the limit.
    #[arg(long, value_name = "N|none")]
    max_depth: Option<Bound>,
    /// Its share beside other lanes.
    #[arg(long)]
    weight: Option<i64>,
    /// How many milliseconds of age a step of priority is worth; very many unless said, so that priority comes first.
    #[arg(long)]
    priority_weight: Option<i64>,
    /// Whether the oldest comes first, or fairness keys take turns.
    #[arg(long, value_parser = words(Fairness::ALL))]
    fairness: Option<String>,
    /// Weights by fairness key, as a JSON object.
    #[arg(long)]
    fairness_weights: Option<String>,
    /// The retry policy of executions that name none, as JSON.
    #[arg(long)]
    retry: Option<String>,
    /// The attempt timeout of executions that name none.
    #[arg(long)]
    attempt_timeout_ms: Option<i64>,
    /// The lease TTL of claims that name none.
    #[arg(long)]
    lease_ttl_ms: Option<i64>,
    /// The retention of executions that name none.
    #[arg(long)]
    retention_ms: Option<i64>,
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
        let body = Value::Object(self.body()?).to_string();
        let reply = Api::new(&self.server)?.put(&self.lane.path(""), body).await?.accepted()?;
        match self.output.output {
            Output::Json => say_raw(&reply.bytes)?,
            Output::Ids => say(&text(&reply.json()?["lane"]))?,
            Output::Table => {
                let lane = reply.json()?;
                let (name, version) = (text(&lane["lane"]), text(&lane["version"]));
                say(&format!("{}/{name}  {}  version {version}", text(&lane["namespace"]), text(&lane["state"])))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn body(&self) -> anyhow::Result<Map<String, Value>> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        put("state", self.state.clone().map(Value::from));
        put("fairness", self.fairness.clone().map(Value::from));
        for (name, number) in [
            ("weight", self.weight),
            ("priority_weight", self.priority_weight),
            ("attempt_timeout_ms", self.attempt_timeout_ms),
            ("lease_ttl_ms", self.lease_ttl_ms),
            ("retention_ms", self.retention_ms),
        ] {
            put(name, number.map(Value::from));
        }
        put(
            "max_active",
            self.max_active.map(|bound| match bound {
                Bound::None => Value::Null,
                Bound::At(number) => number.into(),
            }),
        );
        match self.max_depth {
            Some(Bound::At(number)) => put("max_depth", Some(number.into())),
            Some(Bound::None) => put("clear_max_depth", Some(true.into())),
            None => {}
        }
        for (name, text) in [("fairness_weights", &self.fairness_weights), ("retry", &self.retry)] {
            let flag = name.replace('_', "-");
            let json = text
                .as_deref()
                .map(|text| serde_json::from_str(text).with_context(|| WrongUsage(format!("--{flag} is not JSON"))));
            put(name, json.transpose()?);
        }
        if body.is_empty() {
            bail!(WrongUsage(
                "say what to change, e.g. --max-active 20; `ff lane set --help` lists what a lane has".to_owned()
            ));
        }
        Ok(body)
    }
}
