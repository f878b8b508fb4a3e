//! Why the work of a lane is not running, counted by reason.

use ff_core::types::{BudgetId, QuotaPolicyId};
use serde::{Deserialize, Serialize};

use crate::access::LOOK;
use crate::explain::{LaneFacts, NearestWorker};
use crate::lanes::NamespaceQuery;
use crate::operation::operations;
use crate::parts;

/// Why the work of a lane is not running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneExplanation {
    /// The lane.
    #[serde(flatten)]
    pub lane: LaneFacts,
    /// How many of its executions run.
    pub running: i64,
    /// How many have not ended and do not run; the counts of the reasons add up to it.
    pub waiting: i64,
    /// The live workers that take from the lane.
    pub workers: LaneWorkers,
    /// Why some of the work waits, each execution under one reason.
    pub reasons: Vec<LaneReason>,
}

/// The live workers that take from a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneWorkers {
    /// How many there are.
    pub live: usize,
    /// How many executions they run at once.
    pub slots: i64,
}

/// Why some of the work waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneReason {
    /// The reason, as one word.
    pub reason: String,
    /// How many executions wait for it.
    pub count: i64,
    /// When the first of them may go on, where a time is known.
    pub next_at: Option<i64>,
    /// What would unblock them.
    pub remedy: String,
    /// What is in the way, one by one.
    pub parts: Vec<LaneReasonPart>,
}

/// One thing in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneReasonPart {
    /// The thing.
    #[serde(flatten)]
    pub what: LaneReasonOf,
    /// How many of those looked at wait for it: the longest waiting of every partition.
    pub count: i64,
    /// When the first of them may go on, where a time is known.
    pub next_at: Option<i64>,
    /// What would unblock them.
    pub remedy: String,
}

/// What work of a lane waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum LaneReasonOf {
    /// A worker that has these capabilities.
    Requires {
        /// The capabilities.
        requires: Vec<String>,
        /// The live worker that lacks the fewest.
        nearest: Option<NearestWorker>,
    },
    /// A worker that takes this kind.
    Kind {
        /// The kind.
        kind: String,
    },
    /// A key of a quota.
    Quota {
        /// The quota.
        quota_id: QuotaPolicyId,
        /// The key.
        key: String,
    },
    /// A budget.
    Budget {
        /// The budget.
        budget_id: BudgetId,
    },
}

operations! {
    /// Why the work of a lane is not running, counted by reason, and what would change that.
    ExplainLane lane_explain: get "/v1/lanes/{name}/explain", LOOK;
    at (parts::Lane);
    asks NamespaceQuery;
    returns LaneExplanation: (status = 200, body = LaneExplanation);
    fails &["lane_not_found"];
}
