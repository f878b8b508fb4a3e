//! Budgets and quotas of an engine in reach.

use async_trait::async_trait;
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId, TimestampMs};
use ff_engine::Operations;

use super::direct::Direct;
use super::limits::Limits;
use crate::SdkError;
use crate::snapshot::{BudgetSnapshot, QuotaSnapshot, UsageSnapshot};
use crate::usage::{BudgetChange, BudgetSpec, QuotaChange, QuotaSpec};

const ACTOR: &str = "sdk";
/// How many keys a quota shows when none is asked for, as at a server.
const KEYS_SHOWN: usize = 100;

impl Direct {
    fn limit_operations(&self) -> &Operations {
        self.engine().operations()
    }
}

#[async_trait]
impl Limits for Direct {
    async fn create_budget(&self, budget: BudgetSpec) -> Result<BudgetSnapshot, SdkError> {
        Ok(self.limit_operations().create_budget(budget.fields, ACTOR).await?.0.into())
    }

    async fn describe_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError> {
        Ok(self.limit_operations().budget(id).await?.budget.into())
    }

    async fn change_budget(&self, id: BudgetId, change: BudgetChange) -> Result<BudgetSnapshot, SdkError> {
        Ok(self.limit_operations().patch_budget(id, &change.patch, ACTOR).await?.into())
    }

    async fn reset_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError> {
        Ok(self.limit_operations().reset_budget(id, ACTOR).await?.into())
    }

    async fn approve_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError> {
        Ok(self.limit_operations().approve_budget(id, ACTOR).await?.into())
    }

    async fn create_quota(&self, quota: QuotaSpec) -> Result<QuotaSnapshot, SdkError> {
        Ok(QuotaSnapshot::new(self.limit_operations().create_quota(quota.fields, ACTOR).await?.0, Vec::new()))
    }

    async fn describe_quota(&self, id: QuotaPolicyId, key: Option<&str>) -> Result<QuotaSnapshot, SdkError> {
        let operations = self.limit_operations();
        let (entry, state) = operations.quota(id, key).await?;
        let keys = match state {
            Some(state) => vec![state],
            None => operations.quota_keys(id, KEYS_SHOWN).await?.into_iter().map(|key| key.state).collect(),
        };
        Ok(QuotaSnapshot::new(entry, keys))
    }

    async fn change_quota(&self, id: QuotaPolicyId, change: QuotaChange) -> Result<QuotaSnapshot, SdkError> {
        let entry = self.limit_operations().change_quota(id, |quota| change.apply(quota), ACTOR).await?;
        Ok(QuotaSnapshot::new(entry, Vec::new()))
    }

    async fn throttle_quota(
        &self,
        id: QuotaPolicyId,
        key: &str,
        until: TimestampMs,
    ) -> Result<Option<TimestampMs>, SdkError> {
        let until = self.limit_operations().throttle_quota(id, key, until.as_millis(), Some(ACTOR)).await?;
        Ok(until.map(TimestampMs))
    }

    async fn usage(&self, id: ExecutionId) -> Result<UsageSnapshot, SdkError> {
        Ok(self.limit_operations().usage(id).await?.into())
    }
}
