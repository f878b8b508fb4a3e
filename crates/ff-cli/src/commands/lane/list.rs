//! `ff lane list`: lanes and what they hold.

use std::process::ExitCode;

use clap::Args;
use ff_api::Ask;
use ff_api::lanes::{LanesQuery, ListLanes};

use super::rows::{self, Rows};
use crate::client::{Api, ServerArgs};
use crate::output::{Output, OutputArgs};
use crate::pages::{PageArgs, Paged};
use crate::table::{Table, number, text};
use crate::times::now_ms;
use crate::view::{View, WatchArgs, types};

/// Lists lanes and what they hold. A lane nobody defined is listed while it holds something.
#[derive(Args)]
#[command(after_help = "Example:
  ff lane list
  ff lane list --watch")]
pub struct List {
    /// Only lanes of this namespace.
    #[arg(long)]
    namespace: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl List {
    /// Prints the lanes.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let api = Api::new(&self.server)?;
        let about = types("execution.,lane.");
        if self.output.output == Output::Json {
            let list = Paged::new(PageArgs::everything(), about, |limit, cursor| {
                Ask::<ListLanes>::by((), LanesQuery { namespace: self.namespace.clone(), limit: Some(limit), cursor })
            });
            return list.show(&api, self.watch, Output::Json, |lane| lane.lane.clone(), |_| View::default()).await;
        }
        self.watch.show(&api, self.output.output, &about, async || self.look(&api).await).await
    }

    async fn look(&self, api: &Api) -> anyhow::Result<View> {
        let rows = rows::read(api, self.namespace.as_deref()).await?;
        Ok(match self.output.output {
            Output::Ids => View::lines(rows.into_keys().map(|(_, lane)| lane)),
            Output::Table | Output::Json => View::lines(table(&rows, now_ms())).about(format!("{rows:?}")),
        })
    }
}

fn table(rows: &Rows, now: i64) -> Vec<String> {
    let mut table =
        Table::new(["LANE", "STATE", "WAITING", "RUNNING", "DELAYED", "SUSPENDED", "BLOCKED", "OLDEST", "MAX ACTIVE"]);
    for (name, row) in rows {
        table.row([
            text(rows::named(name)),
            text(row.state()),
            number(row.waiting()),
            number(row.counts.active),
            number(row.counts.delayed),
            number(row.counts.suspended),
            number(row.counts.blocked.all()),
            number(row.oldest(now)),
            number(row.max_active().map_or_else(|| "-".to_owned(), |max| max.to_string())),
        ]);
    }
    table.lines()
}

#[cfg(test)]
mod tests {
    use ff_api::lanes::{BlockedCounts, LaneCounts};
    use ff_api::server::{LaneStats, Stats};
    use serde_json::json;

    use super::*;

    #[test]
    fn lanes_that_only_hold_something_are_listed_too() {
        let lane = json!({"namespace": "default", "lane": "mail", "version": 1, "state": "paused", "weight": 1,
            "priority_weight": 0, "fairness": "fifo", "max_active": 3});
        let lanes = vec![serde_json::from_value(lane).expect("a lane")];
        let blocked = BlockedCounts { waiting_for_quota: 2, held_by_operator: 1, ..BlockedCounts::default() };
        let counts = LaneCounts {
            eligible: 2,
            granted: 1,
            active: 1,
            delayed: 4,
            blocked,
            oldest_eligible_at: Some(1_000),
            ..LaneCounts::default()
        };
        let held = LaneStats { namespace: "acme".to_owned(), lane: "bulk".to_owned(), counts };
        let stats = Stats { lanes: vec![held], ..Stats::default() };
        assert_eq!(
            table(&rows::rows(lanes, &stats, None), 61_000).join("\n"),
            "\
LANE       STATE   WAITING  RUNNING  DELAYED  SUSPENDED  BLOCKED  OLDEST  MAX ACTIVE
acme/bulk  active        3        1        4          0        3     60s           -
mail       paused        0        0        0          0        0       -           3"
        );
        assert_eq!(rows::rows(Vec::new(), &stats, Some("default")).len(), 0);
    }
}
