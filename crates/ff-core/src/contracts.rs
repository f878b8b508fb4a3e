//! Grants to claim, and the outcomes of reports to budgets.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::text_enum::text_enum;
use crate::types::{BudgetId, ExecutionId, LaneId, TimestampMs};

/// A short reservation of one execution for one worker. Only that worker can turn it into a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Grant))]
pub struct ClaimGrant {
    /// The reserved execution.
    pub execution_id: ExecutionId,
    /// Names the reservation.
    pub grant_id: Uuid,
    /// When the reservation expires by itself.
    #[cfg_attr(feature = "openapi", schema(value_type = i64))]
    pub expires_at: TimestampMs,
    /// The lane of the execution.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub lane: LaneId,
    /// The kind of the execution.
    pub kind: String,
}

/// An interrupted execution that an operator hands to a chosen worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReclaimGrant {
    /// The interrupted execution.
    pub execution_id: ExecutionId,
    /// Names the reservation.
    pub grant_id: Uuid,
    /// When the reservation expires by itself.
    #[cfg_attr(feature = "openapi", schema(value_type = i64))]
    pub expires_at: TimestampMs,
    /// The lane of the execution.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub lane: LaneId,
    /// The kind of the execution.
    pub kind: String,
}

text_enum! {
    /// What a budget does to a running execution whose report met its hard limit.
    OnHard as "action at a hard limit" {
        /// The attempt is parked, and goes on when there is room.
        Suspend = "suspend",
        /// The attempt is over; another one starts when there is room.
        Block = "block",
        /// The execution is cancelled.
        Cancel = "cancel",
        /// The execution has failed.
        Fail = "fail",
    }
}

/// The action taken at a hard limit.
pub type BreachAction = OnHard;

/// The outcome of a report of usage, or of the settlement of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = UsageAnswer))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ReportUsageResult {
    /// Counted.
    Ok,
    /// Counted before, under the same key.
    AlreadyApplied,
    /// Counted, and a soft limit is reached.
    SoftBreach {
        /// The budget of the limit: the reported one, or one above it.
        budget_id: BudgetId,
        /// The dimension of the limit.
        dimension: String,
        /// The amount used of it.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Not counted, because it would exceed a hard limit.
    HardBreach {
        /// The budget of the limit: the reported one, or one above it.
        budget_id: BudgetId,
        /// The dimension of the limit.
        dimension: String,
        /// The amount used of it, without the refused amount.
        used: u64,
        /// The limit.
        limit: u64,
        /// The action that the budget prescribes.
        action: OnHard,
        /// Whether the action was taken and the lease is over. `false` for reports without a lease.
        lease_ended: bool,
    },
}

/// Amounts held against a budget as long as the lease they were reserved under lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reservation {
    /// The budget.
    pub budget_id: BudgetId,
    /// Names the reservation.
    pub reservation_id: Uuid,
}

/// The outcome of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveResult {
    /// The amounts are held.
    Ok(Reservation),
    /// Nothing is held, because a hard limit would be exceeded. The lease goes on.
    HardBreach {
        /// The budget of the limit: the requested one, or one above it.
        budget_id: BudgetId,
        /// The dimension of the limit.
        dimension: String,
        /// The amount used of it.
        used: u64,
        /// The limit.
        limit: u64,
    },
}
