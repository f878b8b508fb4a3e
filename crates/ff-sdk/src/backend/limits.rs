//! The part of the seam about budgets and quotas as operators see them.

use async_trait::async_trait;
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId, TimestampMs};

use crate::SdkError;
use crate::snapshot::{BudgetSnapshot, QuotaSnapshot, UsageSnapshot};
use crate::usage::{BudgetChange, BudgetSpec, QuotaChange, QuotaSpec};

/// Budgets and quotas. Object safe; nothing has a default body.
#[async_trait]
pub trait Limits: Send + Sync + 'static {
    /// Makes a budget; the same again is the one that is there.
    async fn create_budget(&self, budget: BudgetSpec) -> Result<BudgetSnapshot, SdkError>;

    /// A budget as it stands.
    async fn describe_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError>;

    /// Changes limits and actions; what waits for room goes on when there is some.
    async fn change_budget(&self, id: BudgetId, change: BudgetChange) -> Result<BudgetSnapshot, SdkError>;

    /// Starts a new period now.
    async fn reset_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError>;

    /// Lets work start past the soft limits until the period ends.
    async fn approve_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError>;

    /// Makes a quota; the same again is the one that is there.
    async fn create_quota(&self, quota: QuotaSpec) -> Result<QuotaSnapshot, SdkError>;

    /// A quota, and how far a key, or each key in use, is used.
    async fn describe_quota(&self, id: QuotaPolicyId, key: Option<&str>) -> Result<QuotaSnapshot, SdkError>;

    /// Changes a quota.
    async fn change_quota(&self, id: QuotaPolicyId, change: QuotaChange) -> Result<QuotaSnapshot, SdkError>;

    /// Nothing starts under a key until then; a time that has passed changes nothing, 0 ends the throttle.
    async fn throttle_quota(
        &self,
        id: QuotaPolicyId,
        key: &str,
        until: TimestampMs,
    ) -> Result<Option<TimestampMs>, SdkError>;

    /// What an execution used.
    async fn usage(&self, id: ExecutionId) -> Result<UsageSnapshot, SdkError>;
}
