//! The part of the seam about what a running attempt uses of budgets and quotas.

use std::collections::BTreeMap;

use async_trait::async_trait;
use ff_core::contracts::{ReportUsageResult, Reservation, ReserveResult};
use ff_core::types::{BudgetId, QuotaPolicyId, TimestampMs};
use ff_engine::operations::ThrottleUntil;

use super::LeaseRef;
use crate::SdkError;

/// Amounts by dimension; each is in 1..=2^53-1.
pub type Amounts = BTreeMap<String, u64>;

/// Reports, reservations, throttles and weights of running attempts. Object safe; nothing has a default body.
#[async_trait]
pub trait Usage: Send + Sync + 'static {
    /// Reports what the attempt used; the same key counts once.
    async fn report_usage(
        &self,
        lease: LeaseRef,
        budget: BudgetId,
        dimensions: &Amounts,
        dedup_key: &str,
    ) -> Result<ReportUsageResult, SdkError>;

    /// Holds amounts for as long as the lease lives; the same key under the same lease is the same reservation.
    async fn reserve(
        &self,
        lease: LeaseRef,
        budget: BudgetId,
        dimensions: &Amounts,
        key: &str,
    ) -> Result<ReserveResult, SdkError>;

    /// Turns a reservation into what was really used.
    async fn settle(
        &self,
        lease: LeaseRef,
        reservation: Reservation,
        dimensions: &Amounts,
    ) -> Result<ReportUsageResult, SdkError>;

    /// Gives a reservation back unused.
    async fn release(&self, lease: LeaseRef, reservation: Reservation) -> Result<(), SdkError>;

    /// Nothing starts under a key for a while; answers until when.
    async fn throttle(
        &self,
        lease: LeaseRef,
        quota: QuotaPolicyId,
        key: &str,
        until: ThrottleUntil,
    ) -> Result<Option<TimestampMs>, SdkError>;

    /// Says what the attempt really weighed under a key; false when that does not count any more.
    async fn settle_weight(
        &self,
        lease: LeaseRef,
        quota: QuotaPolicyId,
        key: &str,
        weight: u64,
    ) -> Result<bool, SdkError>;
}
