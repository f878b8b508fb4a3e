//! What one party hands to another: grants to claim.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::types::{ExecutionId, LaneId, TimestampMs};

/// A short reservation of one execution for one worker, which only that worker can turn into a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimGrant {
    /// The reserved execution.
    pub execution_id: ExecutionId,
    /// Names the reservation.
    pub grant_id: Uuid,
    /// When it runs out by itself.
    pub expires_at: TimestampMs,
    /// The lane of the execution.
    pub lane: LaneId,
    /// The kind of the execution.
    pub kind: String,
}

/// An interrupted execution that an operator hands to a chosen worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimGrant {
    /// The interrupted execution.
    pub execution_id: ExecutionId,
    /// Names the reservation.
    pub grant_id: Uuid,
    /// When it runs out by itself.
    pub expires_at: TimestampMs,
    /// The lane of the execution.
    pub lane: LaneId,
    /// The kind of the execution.
    pub kind: String,
}
