//! A reservation as its worker sees it, without the store's internal fields.

use ff_core::contracts::{ClaimGrant, ReclaimGrant};
use ff_core::types::{LaneId, TimestampMs};

use crate::generated::Grant;

impl From<Grant> for ClaimGrant {
    fn from(grant: Grant) -> Self {
        Self {
            execution_id: grant.execution_id,
            grant_id: grant.grant_id,
            expires_at: TimestampMs(grant.expires_at),
            lane: LaneId::new(grant.lane),
            kind: grant.kind,
        }
    }
}

impl From<Grant> for ReclaimGrant {
    fn from(grant: Grant) -> Self {
        let ClaimGrant { execution_id, grant_id, expires_at, lane, kind } = grant.into();
        Self { execution_id, grant_id, expires_at, lane, kind }
    }
}
