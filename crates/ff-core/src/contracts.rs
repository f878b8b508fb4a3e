//! What one party hands to another: grants to claim, and what budgets answer.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::text_enum::text_enum;
use crate::types::{BudgetId, ExecutionId, LaneId, TimestampMs};

/// A short reservation of one execution for one worker, which only that worker can turn into a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Grant))]
pub struct ClaimGrant {
    /// The reserved execution.
    pub execution_id: ExecutionId,
    /// Names the reservation.
    pub grant_id: Uuid,
    /// When it runs out by itself.
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
    /// When it runs out by itself.
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

/// What was done at a hard limit.
pub type BreachAction = OnHard;

/// What a budget answered to a report of usage, or to the settlement of a reservation.
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
        /// The budget of the limit: the one reported to, or one above it.
        budget_id: BudgetId,
        /// The dimension of the limit.
        dimension: String,
        /// How much of it is used.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Not counted: it would have passed a hard limit.
    HardBreach {
        /// The budget of the limit: the one reported to, or one above it.
        budget_id: BudgetId,
        /// The dimension of the limit.
        dimension: String,
        /// How much of it is used; what was refused is not in it.
        used: u64,
        /// The limit.
        limit: u64,
        /// What the budget says to do.
        action: OnHard,
        /// That was done, and the lease is over. `false` for reports without a lease.
        lease_ended: bool,
    },
}

/// Amounts held against a budget, for as long as the lease under which they were reserved lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reservation {
    /// The budget.
    pub budget_id: BudgetId,
    /// Names the reservation.
    pub reservation_id: Uuid,
}

/// What a budget answered to a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveResult {
    /// The amounts are held.
    Ok(Reservation),
    /// Nothing is held: a hard limit is in the way. The lease goes on.
    HardBreach {
        /// The budget of the limit: the one asked, or one above it.
        budget_id: BudgetId,
        /// The dimension of the limit.
        dimension: String,
        /// How much of it is used.
        used: u64,
        /// The limit.
        limit: u64,
    },
}
