//! Keeps a caller to its scope. Budgets and quotas outside of it are not found, exactly as if they were not there.

use ff_api::Problem;
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, QuotaPolicyId};

use crate::principal::Principal;
use crate::service::Service;

impl Service {
    /// Refuses a budget outside of the caller's scope.
    pub async fn check_budget(&self, by: &Principal, id: BudgetId) -> Result<(), Problem> {
        if !by.is_scoped() {
            return Ok(());
        }
        let status = self.operations.budget(id).await?;
        by.sees(&status.budget.namespace, None, ErrorCode::BudgetNotFound)
    }

    /// Refuses a quota outside of the caller's scope.
    pub async fn check_quota(&self, by: &Principal, id: QuotaPolicyId) -> Result<(), Problem> {
        if !by.is_scoped() {
            return Ok(());
        }
        let (entry, _) = self.operations.quota(id, None).await.map_err(|error| Problem::from(error).about(id))?;
        let seen = by.sees(&entry.quota.namespace, None, ErrorCode::QuotaNotFound);
        seen.map_err(|problem| problem.about(id))
    }
}
