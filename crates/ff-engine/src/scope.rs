//! Keeps a caller to its scope. Budgets and quotas outside of it are not found, exactly as if they were not there.

use ff_api::Problem;
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::generated::{BudgetRef, Submission};

use crate::operations::NewMember;
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

    /// Refuses what would spend from a budget outside of the caller's scope.
    pub async fn check_budgets(&self, by: &Principal, budgets: Option<&[BudgetRef]>) -> Result<(), Problem> {
        for budget in budgets.unwrap_or_default() {
            self.check_budget(by, BudgetId::from_uuid(budget.budget_id)).await?;
        }
        Ok(())
    }

    /// Refuses a submission that is outside of the caller's scope, or would spend what is.
    pub async fn check_submission(&self, by: &Principal, new: &Submission) -> Result<(), Problem> {
        by.check(&new.namespace, Some(&new.lane))?;
        self.check_spending(by, new).await
    }

    /// Refuses a submission that would spend from budgets, or count against quotas, outside of the caller's scope.
    async fn check_spending(&self, by: &Principal, new: &Submission) -> Result<(), Problem> {
        if !by.is_scoped() {
            return Ok(());
        }
        self.check_budgets(by, new.budgets.as_deref()).await?;
        for quota in new.quotas.iter().flatten() {
            self.check_quota(by, QuotaPolicyId::from_uuid(quota.quota_id)).await?;
        }
        Ok(())
    }

    /// Refuses members outside of the caller's scope, those of nested flows included. A member that names no lane has
    /// the default of its flow.
    pub(crate) async fn check_members(
        &self,
        by: &Principal,
        members: &[NewMember],
        default_lane: Option<&str>,
    ) -> Result<(), Problem> {
        if !by.is_scoped() {
            return Ok(());
        }
        let mut levels = vec![(members, default_lane)];
        while let Some((members, default_lane)) = levels.pop() {
            for NewMember { fields, flow, .. } in members {
                let own = Some(fields.lane.as_str()).filter(|lane| !lane.is_empty());
                by.check_lane(own.or(default_lane).unwrap_or("default"))?;
                if !fields.namespace.is_empty() {
                    by.check(&fields.namespace, None)?;
                }
                self.check_spending(by, fields).await?;
                if let Some(flow) = flow {
                    self.check_budgets(by, flow.fields.budgets.as_deref()).await?;
                    levels.push((flow.members.as_slice(), flow.fields.default_lane.as_deref()));
                }
            }
        }
        Ok(())
    }
}
