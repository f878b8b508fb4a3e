//! A lane and its counts.

use std::collections::BTreeMap;

use ff_script::generated::{Fairness, LaneCounts, LaneEntry, LaneState, Retry};
use serde::Serialize;
use utoipa::ToSchema;

/// A lane's definition.
#[derive(Serialize, ToSchema)]
pub struct LaneShape {
    namespace: String,
    lane: String,
    version: i64,
    #[schema(value_type = LaneState)]
    state: &'static str,
    priority_weight: i64,
    #[schema(value_type = Fairness)]
    fairness: &'static str,
    fairness_weights: Option<BTreeMap<String, i64>>,
    max_depth: Option<i64>,
    max_active: Option<i64>,
    weight: i64,
    retry: Option<Retry>,
    attempt_timeout_ms: Option<i64>,
    retention_ms: Option<i64>,
    lease_ttl_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<CountsShape>,
}

impl LaneShape {
    /// With what it holds.
    pub fn with(mut self, counts: CountsShape) -> Self {
        self.counts = Some(counts);
        self
    }
}

impl From<LaneEntry> for LaneShape {
    fn from(entry: LaneEntry) -> Self {
        let definition = entry.definition;
        Self {
            namespace: entry.namespace,
            lane: entry.lane,
            version: entry.version,
            state: definition.state.as_str(),
            priority_weight: definition.priority_weight,
            fairness: definition.fairness.as_str(),
            fairness_weights: definition.fairness_weights,
            max_depth: definition.max_depth,
            max_active: definition.max_active,
            weight: definition.weight,
            retry: definition.retry,
            attempt_timeout_ms: definition.attempt_timeout_ms,
            retention_ms: definition.retention_ms,
            lease_ttl_ms: definition.lease_ttl_ms,
            counts: None,
        }
    }
}

/// How many executions of a lane are in which state, over all partitions.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = LaneCounts)]
pub struct CountsShape {
    eligible: i64,
    granted: i64,
    active: i64,
    delayed: i64,
    suspended: i64,
    terminal: i64,
    blocked: BlockedShape,
    oldest_eligible_at: Option<i64>,
}

#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = BlockedCounts)]
struct BlockedShape {
    waiting_for_capable_worker: i64,
    waiting_for_quota: i64,
    waiting_for_budget: i64,
    waiting_for_dependencies: i64,
    waiting_for_children: i64,
    held_by_operator: i64,
}

impl CountsShape {
    /// Adds another partition's, or another lane's.
    pub fn add(&mut self, counts: &LaneCounts) {
        self.eligible += counts.eligible;
        self.granted += counts.granted;
        self.active += counts.active;
        self.delayed += counts.delayed;
        self.suspended += counts.suspended;
        self.terminal += counts.terminal;
        self.blocked.waiting_for_capable_worker += counts.blocked_route;
        self.blocked.waiting_for_quota += counts.blocked_quota;
        self.blocked.waiting_for_budget += counts.blocked_budget;
        self.blocked.waiting_for_dependencies += counts.blocked_dependencies;
        self.blocked.waiting_for_children += counts.blocked_children;
        self.blocked.held_by_operator += counts.blocked_operator;
        let oldest = [self.oldest_eligible_at, counts.oldest_eligible_at];
        self.oldest_eligible_at = oldest.into_iter().flatten().min();
    }

    /// How many there are in whichever state.
    pub fn all(&self) -> i64 {
        let BlockedShape {
            waiting_for_capable_worker,
            waiting_for_quota,
            waiting_for_budget,
            waiting_for_dependencies,
            waiting_for_children,
            held_by_operator,
        } = self.blocked;
        let blocked = waiting_for_capable_worker
            + waiting_for_quota
            + waiting_for_budget
            + waiting_for_dependencies
            + waiting_for_children
            + held_by_operator;
        blocked + self.eligible + self.granted + self.active + self.delayed + self.suspended + self.terminal
    }
}
