//! `ff lane show`: a lane and what it holds.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::lanes::{GetLane, Lane};
use serde::Serialize;

use super::LaneArgs;
use crate::client::{Answered, Api, Output, OutputArgs, ServerArgs, moment};
use crate::view::{View, WatchArgs};

/// Shows a lane and what it holds. An unknown lane exits 4.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    lane: LaneArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    /// Prints the lane.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (api, output) = (Api::new(&self.server)?, self.output.output);
        let about = [("namespace", self.lane.namespace.clone()), ("lane", self.lane.lane.clone())];
        let look = async || {
            let ask = Ask::<GetLane>::by(self.lane.lane.clone(), self.lane.query());
            let Answered { value, bytes } = api.ask(&ask).await?;
            match output {
                Output::Json => View::raw(&bytes),
                Output::Ids => Ok(View::lines([value.lane])),
                Output::Table => Ok(View::lines(table(&value))),
            }
        };
        self.watch.show(&api, output, &about, look).await
    }
}

fn table(lane: &Lane) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("{name:26} {value}")));
    };
    let number = |n: Option<i64>| n.map(|n| n.to_string());
    let definition = &lane.definition;
    line("lane", Some(format!("{}/{}", lane.namespace, lane.lane)));
    line("state", Some(definition.state.to_string()));
    line("weight", number(Some(definition.weight)));
    line("priority_weight", number(Some(definition.priority_weight)));
    line("fairness", Some(definition.fairness.to_string()));
    line("fairness_weights", definition.fairness_weights.as_ref().map(json));
    line("max_depth", number(definition.max_depth));
    line("max_active", number(definition.max_active));
    line("retry", definition.retry.as_ref().map(json));
    line("attempt_timeout_ms", number(definition.attempt_timeout_ms));
    line("lease_ttl_ms", number(definition.lease_ttl_ms));
    line("retention_ms", number(definition.retention_ms));
    let counts = lane.counts.unwrap_or_default();
    for (state, n) in [
        ("eligible", counts.eligible),
        ("granted", counts.granted),
        ("active", counts.active),
        ("delayed", counts.delayed),
        ("suspended", counts.suspended),
        ("terminal", counts.terminal),
    ] {
        line(state, number(Some(n)));
    }
    let blocked = counts.blocked;
    for (reason, n) in [
        ("waiting_for_capable_worker", blocked.waiting_for_capable_worker),
        ("waiting_for_quota", blocked.waiting_for_quota),
        ("waiting_for_budget", blocked.waiting_for_budget),
        ("waiting_for_dependencies", blocked.waiting_for_dependencies),
        ("waiting_for_children", blocked.waiting_for_children),
        ("held_by_operator", blocked.held_by_operator),
    ] {
        line(reason, number(Some(n).filter(|n| *n != 0)));
    }
    line("oldest eligible since", counts.oldest_eligible_at.map(moment));
    lines
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("definitions are JSON")
}
