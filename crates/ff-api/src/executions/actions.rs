//! What operators and submitters do with executions, and what became of it.

use std::collections::BTreeMap;

use ff_core::contracts::ReclaimGrant;
use ff_core::types::{ExecutionId, LaneId, TimestampMs};
use ff_script::generated::{Grant, Outcome, PublicState};
use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use crate::vocabulary;

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionDone {
    /// The execution.
    pub execution_id: ExecutionId,
    /// What happened.
    pub outcome: ActionOutcome,
    /// Its state afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PublicState>,
    /// How it had ended already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_outcome: Option<Outcome>,
    /// When it ends at the latest, after its worker was asked.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i64>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_by: Option<TimestampMs>,
    /// How often it was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_count: Option<i64>,
}

/// What an action did to an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ActionOutcome {
    /// It is cancelled.
    Cancelled,
    /// Its worker is asked.
    Requested,
    /// It was so already.
    Already,
    /// It runs again.
    Replayed,
    /// It does not start until it is released.
    Held,
    /// It may start.
    Released,
    /// Its lease is taken away.
    Revoked,
}

impl ExecutionDone {
    /// What happened, and nothing more.
    #[must_use]
    pub fn new(execution_id: ExecutionId, outcome: ActionOutcome) -> Self {
        Self { execution_id, outcome, state: None, terminal_outcome: None, cancel_by: None, replay_count: None }
    }

    /// The same, in this state.
    #[must_use]
    pub fn in_state(self, state: PublicState) -> Self {
        Self { state: Some(state), ..self }
    }
}

/// Why an execution is cancelled, and how.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = CancelExecutionBody))]
pub struct CancelBody {
    /// Why; it is recorded with the action.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Reason>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long a running attempt may take to end by itself.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<i64>,
}

/// Why an operator acts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReasonBody {
    /// Why; it is recorded with the action.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Reason>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a lease is taken away, and how.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RevokeBody {
    /// Why; it is recorded with the action.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Reason>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `true` asks the worker to hand the execution back; the default takes the lease at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<bool>,
}

/// The worker that gets an interrupted execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReclaimBody {
    /// The worker's instance.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Instance))]
    pub instance: String,
    /// How long it is reserved for the worker; the default is 30 seconds.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::GrantTtlMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
}

/// An execution that is reserved for a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reclaimed {
    /// The reservation.
    pub grant: ReclaimGrant,
}

impl From<Grant> for Reclaimed {
    fn from(grant: Grant) -> Self {
        let Grant { execution_id, grant_id, expires_at, lane, kind, .. } = grant;
        let (expires_at, lane) = (TimestampMs(expires_at), LaneId::new(lane));
        Self { grant: ReclaimGrant { execution_id, grant_id, expires_at, lane, kind } }
    }
}

/// What may change while an execution has not ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = ChangeExecutionBody))]
pub struct ChangeBody {
    /// Higher comes first.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Priority>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Where it queues.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LaneName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// All of its tags.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Tags>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Expired if it has not ended by then.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<i64>,
    /// Not before this time.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_until: Option<i64>,
}

/// The state after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionChanged {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its state.
    pub state: PublicState,
}

/// What a bulk request did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkCounts {
    /// Executions that matched and were acted on.
    pub matched: u64,
    /// Those that are cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<u64>,
    /// Those whose worker is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
    /// Those that run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<u64>,
    /// Ended, or replayed, by another request in the meantime.
    pub unchanged: u64,
    /// Those that the store refused.
    pub refused: u64,
    /// Where to go on; absent when everything that matched was seen.
    pub next_cursor: Option<String>,
}

/// How long to wait for a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ResultQuery {
    /// How long, in milliseconds; the default is not at all.
    #[cfg_attr(feature = "openapi", param(minimum = 0, maximum = 30_000))]
    pub wait_ms: Option<i64>,
}
