//! The mortal backend's usage and limits.

use async_trait::async_trait;
use ff_core::contracts::{ReportUsageResult, Reservation, ReserveResult};
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId, TimestampMs};
use ff_engine::operations::ThrottleUntil;

use super::crash::{Call, Mortal};
use crate::SdkError;
use crate::backend::{Amounts, LeaseRef, Limits, Usage};
use crate::snapshot::{BudgetSnapshot, QuotaSnapshot, UsageSnapshot};
use crate::usage::{BudgetChange, BudgetSpec, QuotaChange, QuotaSpec};

#[async_trait]
impl Usage for Mortal {
    async fn report_usage(
        &self,
        lease: LeaseRef,
        budget: BudgetId,
        dimensions: &Amounts,
        dedup_key: &str,
    ) -> Result<ReportUsageResult, SdkError> {
        self.through(Call::Usage, self.inner.report_usage(lease, budget, dimensions, dedup_key)).await
    }

    async fn reserve(
        &self,
        lease: LeaseRef,
        budget: BudgetId,
        dimensions: &Amounts,
        key: &str,
    ) -> Result<ReserveResult, SdkError> {
        self.through(Call::Reserve, self.inner.reserve(lease, budget, dimensions, key)).await
    }

    async fn settle(
        &self,
        lease: LeaseRef,
        reservation: Reservation,
        dimensions: &Amounts,
    ) -> Result<ReportUsageResult, SdkError> {
        self.through(Call::Settle, self.inner.settle(lease, reservation, dimensions)).await
    }

    async fn release(&self, lease: LeaseRef, reservation: Reservation) -> Result<(), SdkError> {
        self.through(Call::Release, self.inner.release(lease, reservation)).await
    }

    async fn throttle(
        &self,
        lease: LeaseRef,
        quota: QuotaPolicyId,
        key: &str,
        until: ThrottleUntil,
    ) -> Result<Option<TimestampMs>, SdkError> {
        self.through(Call::Throttle, self.inner.throttle(lease, quota, key, until)).await
    }

    async fn settle_weight(
        &self,
        lease: LeaseRef,
        quota: QuotaPolicyId,
        key: &str,
        weight: u64,
    ) -> Result<bool, SdkError> {
        self.through(Call::Weight, self.inner.settle_weight(lease, quota, key, weight)).await
    }
}

#[async_trait]
impl Limits for Mortal {
    async fn create_budget(&self, budget: BudgetSpec) -> Result<BudgetSnapshot, SdkError> {
        self.alive()?;
        self.inner.create_budget(budget).await
    }

    async fn describe_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError> {
        self.alive()?;
        self.inner.describe_budget(id).await
    }

    async fn change_budget(&self, id: BudgetId, change: BudgetChange) -> Result<BudgetSnapshot, SdkError> {
        self.alive()?;
        self.inner.change_budget(id, change).await
    }

    async fn reset_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError> {
        self.alive()?;
        self.inner.reset_budget(id).await
    }

    async fn approve_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError> {
        self.alive()?;
        self.inner.approve_budget(id).await
    }

    async fn create_quota(&self, quota: QuotaSpec) -> Result<QuotaSnapshot, SdkError> {
        self.alive()?;
        self.inner.create_quota(quota).await
    }

    async fn describe_quota(&self, id: QuotaPolicyId, key: Option<&str>) -> Result<QuotaSnapshot, SdkError> {
        self.alive()?;
        self.inner.describe_quota(id, key).await
    }

    async fn change_quota(&self, id: QuotaPolicyId, change: QuotaChange) -> Result<QuotaSnapshot, SdkError> {
        self.alive()?;
        self.inner.change_quota(id, change).await
    }

    async fn throttle_quota(
        &self,
        id: QuotaPolicyId,
        key: &str,
        until: TimestampMs,
    ) -> Result<Option<TimestampMs>, SdkError> {
        self.alive()?;
        self.inner.throttle_quota(id, key, until).await
    }

    async fn usage(&self, id: ExecutionId) -> Result<UsageSnapshot, SdkError> {
        self.alive()?;
        self.inner.usage(id).await
    }
}
