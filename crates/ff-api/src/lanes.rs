//! Lanes: what waits together, and how it is let run.

use std::collections::BTreeMap;

use ff_script::generated::{self, Fairness, LaneDefinition, LaneEntry, LaneState, Retry};
use serde::{Deserialize, Deserializer, Serialize};

use crate::access::{LOOK, STEER};
use crate::operation::operations;
use crate::page::Listed;
use crate::parts;
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// A lane: its definition, and of a single one its counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lane {
    /// The lane's namespace.
    pub namespace: String,
    /// The lane.
    pub lane: String,
    /// Changes whenever the definition does.
    pub version: i64,
    /// How it behaves.
    #[serde(flatten)]
    pub definition: LaneDefinition,
    /// What it holds; shown of one lane, not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<LaneCounts>,
}

impl From<LaneEntry> for Lane {
    fn from(entry: LaneEntry) -> Self {
        let LaneEntry { namespace, lane, version, definition } = entry;
        Self { namespace, lane, version, definition, counts: None }
    }
}

/// How many executions of a lane are in which state, over all partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneCounts {
    /// Those that a worker may take.
    pub eligible: i64,
    /// Those reserved for a worker.
    pub granted: i64,
    /// Those that run.
    pub active: i64,
    /// Those that wait for a time.
    pub delayed: i64,
    /// Those that wait for signals.
    pub suspended: i64,
    /// Those that have ended and are kept.
    pub terminal: i64,
    /// Those that something blocks.
    pub blocked: BlockedCounts,
    /// Since when the oldest eligible one is there.
    pub oldest_eligible_at: Option<i64>,
}

/// How many executions are blocked, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BlockedCounts {
    /// No live worker has what they require.
    pub waiting_for_capable_worker: i64,
    /// A quota is full.
    pub waiting_for_quota: i64,
    /// A budget is spent.
    pub waiting_for_budget: i64,
    /// Upstream members have not ended.
    pub waiting_for_dependencies: i64,
    /// Children have not ended.
    pub waiting_for_children: i64,
    /// An operator holds them.
    pub held_by_operator: i64,
}

impl LaneCounts {
    /// Adds another partition's, or another lane's.
    pub fn add(&mut self, counts: &generated::LaneCounts) {
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

    /// How many there are in all states.
    #[must_use]
    pub fn all(&self) -> i64 {
        self.blocked.all() + self.eligible + self.granted + self.active + self.delayed + self.suspended + self.terminal
    }
}

impl BlockedCounts {
    /// How many there are for all reasons.
    #[must_use]
    pub fn all(&self) -> i64 {
        self.waiting_for_capable_worker
            + self.waiting_for_quota
            + self.waiting_for_budget
            + self.waiting_for_dependencies
            + self.waiting_for_children
            + self.held_by_operator
    }
}

/// Which namespace a lane is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct NamespaceQuery {
    /// The default is `default`.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Namespace>))]
    pub namespace: Option<String>,
}

impl NamespaceQuery {
    /// The namespace that was asked for, or the default one.
    #[must_use]
    pub fn or_default(self) -> String {
        self.namespace.unwrap_or_else(|| "default".to_owned())
    }
}

/// Which lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct LanesQuery {
    /// Those of a namespace.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Namespace>))]
    pub namespace: Option<String>,
    /// How many; the default is 100.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Count>))]
    pub cursor: Option<String>,
}

/// Changes of a lane; what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LaneBody {
    /// What the lane lets happen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<LaneState>,
    /// Milliseconds of age one point of priority is worth.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1_000_000_000_000_i64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_weight: Option<i64>,
    /// Whose turn comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Fairness>,
    /// Shares of the turns of a fair lane, by fairness key.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::FairnessWeights>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fairness_weights: Option<BTreeMap<String, i64>>,
    /// How many executions may wait in it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Count>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<i64>,
    /// `true` lets any number wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clear_max_depth: Option<bool>,
    /// How many of its executions may run at once. Null means any number; absent, it stays.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000))]
    pub max_active: Option<Option<i64>>,
    /// Its share among the lanes of a worker.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Weight>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// The retry policy of executions that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long an attempt may take, for executions that say nothing about it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_timeout_ms: Option<i64>,
    /// How long an execution is kept once it has ended, unless it names its own time.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<i64>,
    /// How long a lease holds without a renewal, for workers that ask for no time.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LeaseTtlMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ttl_ms: Option<i64>,
}

/// A field that is there, null or not.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

operations! {
    /// One page of lanes.
    ListLanes lane_list: get "/v1/lanes", LOOK;
    asks LanesQuery;
    returns Listed<Lane>: (status = 200, body = Listed<Lane>);

    /// A lane and how many of its executions are in which state.
    GetLane lane_get: get "/v1/lanes/{name}", LOOK;
    at (parts::Lane);
    asks NamespaceQuery;
    returns Lane: (status = 200, body = Lane);
    fails &["lane_not_found"];

    /// Defines a lane; what is absent stays as it is.
    DefineLane lane_define: put "/v1/lanes/{name}", STEER;
    at (parts::Lane);
    takes LaneBody;
    asks NamespaceQuery;
    returns Lane: (status = 200, body = Lane);

    /// Nothing starts from the lane until it is resumed; it takes submissions.
    PauseLane lane_pause: post "/v1/lanes/{name}/pause", STEER;
    at (parts::Lane);
    asks NamespaceQuery;
    returns Lane: (status = 200, body = Lane);
    fails &["lane_not_found"];

    /// The lane takes submissions, and they start.
    ResumeLane lane_resume: post "/v1/lanes/{name}/resume", STEER;
    at (parts::Lane);
    asks NamespaceQuery;
    returns Lane: (status = 200, body = Lane);
    fails &["lane_not_found"];

    /// The lane takes no more submissions; what is there goes on.
    DrainLane lane_drain: post "/v1/lanes/{name}/drain", STEER;
    at (parts::Lane);
    asks NamespaceQuery;
    returns Lane: (status = 200, body = Lane);
    fails &["lane_not_found"];

    /// The lane takes no more submissions, and nothing starts from it.
    DisableLane lane_disable: post "/v1/lanes/{name}/disable", STEER;
    at (parts::Lane);
    asks NamespaceQuery;
    returns Lane: (status = 200, body = Lane);
    fails &["lane_not_found"];
}
