//! Budgets: made, listed and changed by operators.

use ff_api::blocked::BlockedPage;
use ff_api::budgets::{
    ApproveBudget, Budget, ChangeBudget, CorrectBudget, CreateBudget, DeleteBudget, GetBudget, ListBlockedOnBudget,
    ListBudgets, ResetBudget,
};
use ff_api::{Ask, Listed, Made, Nothing, Problem, page};

use crate::operations::{BudgetFilter, BudgetStatus};
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// The most budgets of a page.
const PAGE_MAX: usize = 64;

impl Handle<CreateBudget> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CreateBudget>) -> Result<Made<Budget>, Problem> {
        let new = ask.body.read()?;
        by.check(&new.namespace, None)?;
        if let Some(parent) = new.parent {
            self.check_budget(by, parent).await?;
        }
        let (budget, duplicate) = self.operations.create_budget(new, by.name()).await?;
        Ok(Made { thing: budget.into(), new: !duplicate })
    }
}

impl Handle<ListBudgets> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListBudgets>) -> Result<Listed<Budget>, Problem> {
        let limit = page::length(ask.query.limit)?.min(PAGE_MAX);
        let after = ask.query.cursor.as_deref().map(str::parse).transpose()?;
        let filter = BudgetFilter { namespace: by.namespace(ask.query.namespace)?, scope: ask.query.scope };
        let page = self.operations.budgets(&filter, after, limit).await?;
        let items = page.items.into_iter().map(Budget::from).collect();
        Ok(Listed { items, next_cursor: page.next.map(|cursor| cursor.to_string()) })
    }
}

impl Handle<GetBudget> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetBudget>) -> Result<Budget, Problem> {
        let BudgetStatus { budget, holders, children } = self.operations.budget(ask.at).await?;
        Ok(Budget { holders: Some(holders), children: Some(children), ..budget.into() })
    }
}

impl Handle<ChangeBudget> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ChangeBudget>) -> Result<Budget, Problem> {
        Ok(self.operations.change_budget(ask.at, &ask.body, by.name()).await?.into())
    }
}

impl Handle<DeleteBudget> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<DeleteBudget>) -> Result<Nothing, Problem> {
        self.operations.delete_budget(ask.at, by.name()).await?;
        Ok(Nothing {})
    }
}

impl Handle<ListBlockedOnBudget> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ListBlockedOnBudget>) -> Result<BlockedPage, Problem> {
        let limit = page::length(ask.query.limit)?;
        let after = ask.query.cursor.as_deref().map(str::parse).transpose()?;
        Ok(self.operations.blocked_on_budget(ask.at, after, limit).await?)
    }
}

impl Handle<ResetBudget> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ResetBudget>) -> Result<Budget, Problem> {
        Ok(self.operations.reset_budget(ask.at, by.name()).await?.into())
    }
}

impl Handle<ApproveBudget> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ApproveBudget>) -> Result<Budget, Problem> {
        Ok(self.operations.approve_budget(ask.at, by.name()).await?.into())
    }
}

impl Handle<CorrectBudget> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CorrectBudget>) -> Result<Budget, Problem> {
        let body = ask.body;
        let corrected =
            self.operations.correct_budget(ask.at, &body.dimension, body.delta, by.name(), &body.reason).await?;
        Ok(corrected.into())
    }
}
