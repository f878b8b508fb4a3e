//! What lanes hold, in the words of `ff lane list`, `ff lane show` and `ff top`.

use std::collections::BTreeMap;

use ff_api::Ask;
use ff_api::lanes::{Lane, LaneCounts, LanesQuery, ListLanes};
use ff_api::server::{GetStats, Stats};
use ff_script::generated::{LaneDefinition, LaneState};

use crate::client::Api;
use crate::times::span;

/// A lane: its namespace and its name.
pub type Name = (String, String);

/// A lane's definition, where it has one, and what it holds.
#[derive(Clone, Debug, Default)]
pub struct Row {
    definition: Option<LaneDefinition>,
    pub counts: LaneCounts,
}

/// Lanes by their names.
pub type Rows = BTreeMap<Name, Row>;

/// Every lane that is defined or holds something.
pub async fn read(api: &Api, namespace: Option<&str>) -> anyhow::Result<Rows> {
    let stats = api.ask(&Ask::<GetStats>::at(())).await?.value;
    Ok(rows(defined(api, namespace).await?, &stats, namespace))
}

/// Every lane that is defined.
pub async fn defined(api: &Api, namespace: Option<&str>) -> anyhow::Result<Vec<Lane>> {
    let (mut lanes, mut cursor) = (Vec::new(), None);
    loop {
        let query = LanesQuery { namespace: namespace.map(str::to_owned), limit: Some(1_000), cursor };
        let page = api.ask(&Ask::<ListLanes>::by((), query)).await?.value;
        lanes.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(lanes);
        }
    }
}

/// The lanes that are defined, and those that only hold something.
pub fn rows(lanes: Vec<Lane>, stats: &Stats, namespace: Option<&str>) -> Rows {
    let mut rows = Rows::new();
    for lane in lanes {
        rows.entry((lane.namespace, lane.lane)).or_default().definition = Some(lane.definition);
    }
    for lane in stats.lanes.iter().filter(|lane| namespace.is_none_or(|namespace| lane.namespace == namespace)) {
        rows.entry((lane.namespace.clone(), lane.lane.clone())).or_default().counts = lane.counts;
    }
    rows
}

/// A lane as people name it.
pub fn named((namespace, lane): &Name) -> String {
    if namespace == "default" { lane.clone() } else { format!("{namespace}/{lane}") }
}

impl Row {
    /// Its state; a lane that nobody defined is active.
    pub fn state(&self) -> &'static str {
        self.definition.as_ref().map_or(LaneState::Active, |definition| definition.state).as_str()
    }

    /// How many of its executions run at once at most.
    pub fn max_active(&self) -> Option<i64> {
        self.definition.as_ref().and_then(|definition| definition.max_active)
    }

    /// Those that only wait for their turn.
    pub fn waiting(&self) -> i64 {
        waiting(&self.counts)
    }

    /// The age of the one that waits the longest.
    pub fn oldest(&self, now: i64) -> String {
        span(self.counts.oldest_eligible_at.map(|at| now - at))
    }
}

/// Those that only wait for their turn: ready for a worker, or just reserved for one.
pub fn waiting(counts: &LaneCounts) -> i64 {
    counts.eligible + counts.granted
}
