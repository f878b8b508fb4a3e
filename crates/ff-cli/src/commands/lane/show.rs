//! `ff lane show`: a lane and what it holds.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::events::EventsQuery;
use ff_api::lanes::{GetLane, Lane};
use ff_script::generated::{BlockingReason, Fairness, LaneDefinition};
use serde::Serialize;

use super::{LaneArgs, rows};
use crate::client::{Answered, Api, ServerArgs};
use crate::output::{Output, OutputArgs};
use crate::sheet::Sheet;
use crate::times::{length, moment};
use crate::view::{View, WatchArgs};

/// From here on no age makes up for a step of priority: it is more than thirty years.
const PRIORITY_FIRST: i64 = 1_000_000_000_000;

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
        let (namespace, lane) = (Some(self.lane.namespace.clone()), Some(self.lane.lane.clone()));
        let about = EventsQuery { namespace, lane, ..EventsQuery::default() };
        let look = async || {
            let ask = Ask::<GetLane>::by(self.lane.lane.clone(), self.lane.query());
            let Answered { value, bytes, .. } = api.ask(&ask).await?;
            match output {
                Output::Json => View::raw(&bytes),
                Output::Ids => Ok(View::lines([value.lane])),
                Output::Table => Ok(View::lines(sheet(&value))),
            }
        };
        self.watch.show(&api, output, &about, look).await
    }
}

/// The words are those of `ff lane list`.
fn sheet(lane: &Lane) -> Vec<String> {
    let mut sheet = Sheet::default();
    let definition = &lane.definition;
    sheet.fact("lane", format!("{}/{}", lane.namespace, lane.lane));
    sheet.fact("state", definition.state);
    let counts = lane.counts.unwrap_or_default();
    sheet.fact("waiting", rows::waiting(&counts));
    sheet.fact("running", counts.active);
    sheet.fact("delayed", counts.delayed);
    sheet.fact("suspended", counts.suspended);
    sheet.fact("blocked", counts.blocked.all());
    let blocked = counts.blocked;
    for (reason, n) in [
        (BlockingReason::WaitingForCapableWorker, blocked.waiting_for_capable_worker),
        (BlockingReason::WaitingForQuota, blocked.waiting_for_quota),
        (BlockingReason::WaitingForBudget, blocked.waiting_for_budget),
        (BlockingReason::WaitingForDependencies, blocked.waiting_for_dependencies),
        (BlockingReason::WaitingForChildren, blocked.waiting_for_children),
        (BlockingReason::HeldByOperator, blocked.held_by_operator),
    ] {
        sheet.maybe(&format!("  {reason}"), Some(n).filter(|n| *n != 0));
    }
    sheet.fact("ended", counts.terminal);
    sheet.maybe("oldest", counts.oldest_eligible_at.map(|at| format!("waiting since {}", moment(at))));
    sheet.maybe("max active", definition.max_active);
    sheet.maybe("max depth", definition.max_depth);
    sheet.fact("weight", definition.weight);
    sheet.fact("order", order(definition));
    sheet.maybe("fairness weights", definition.fairness_weights.as_ref().map(json));
    sheet.maybe("retry", definition.retry.as_ref().map(json));
    sheet.maybe("attempt timeout", definition.attempt_timeout_ms.map(length));
    sheet.maybe("lease ttl", definition.lease_ttl_ms.map(length));
    sheet.maybe("retention", definition.retention_ms.map(length));
    sheet.lines()
}

/// What comes first, in words.
fn order(definition: &LaneDefinition) -> String {
    let turns = match definition.fairness {
        Fairness::Fifo => "the oldest first",
        Fairness::Fair => "fairness keys take turns",
    };
    match definition.priority_weight {
        0 => format!("{turns}, whatever its priority"),
        PRIORITY_FIRST.. => format!("by priority, then {turns}"),
        worth => format!("{turns}; a step of priority is worth {} of age", length(worth)),
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("definitions are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_a_lane_is_told_in_words() {
        let lane = |weight: i64, fairness: &str| {
            let definition =
                serde_json::json!({"state": "active", "weight": 1, "priority_weight": weight, "fairness": fairness});
            order(&serde_json::from_value(definition).expect("a definition"))
        };
        assert_eq!(lane(1_000_000_000_000, "fifo"), "by priority, then the oldest first");
        assert_eq!(lane(60_000, "fifo"), "the oldest first; a step of priority is worth 1m of age");
        assert_eq!(lane(0, "fair"), "fairness keys take turns, whatever its priority");
    }
}
