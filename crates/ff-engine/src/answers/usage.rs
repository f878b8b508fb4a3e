//! What is used of budgets: reported and reserved, with a lease or without one.

use ff_api::usage::{
    ExecutionUsage, GetExecutionUsage, ReleaseBudget, ReleaseForTask, ReleaseOutcome, Released, ReportUsage,
    ReportUsageResult, ReserveBudget, ReserveForTask, Reserved, SettleBudget, SettleForTask, SpendBudget, within,
};
use ff_api::{Ask, Nothing, Problem};
use ff_core::bounds::DEDUP_KEY;
use uuid::Uuid;

use super::about;
use crate::operations::reservation_id;
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// How long a reservation without a lease holds by default.
const TTL_MS: i64 = 60_000;

/// True when a hard limit was passed and the lease is over with it.
fn breached(counted: &ReportUsageResult) -> bool {
    matches!(counted, ReportUsageResult::HardBreach { lease_ended: true, .. })
}

impl Handle<ReserveBudget> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReserveBudget>) -> Result<Reserved, Problem> {
        let Ask { at: id, body, .. } = ask;
        if body.dedup_key.as_deref().is_some_and(|key| !DEDUP_KEY.contains(&key.len())) {
            return Err(Problem::invalid("dedup_key", "must be 1 to 256 bytes long"));
        }
        let reservation = body.dedup_key.as_deref().map_or_else(Uuid::now_v7, |key| reservation_id(id, key));
        within(&body.dimensions)?;
        let dimensions = body.dimensions;
        Ok(match (body.execution_id, body.fence) {
            (Some(_), Some(_)) if body.ttl_ms.is_some() => {
                return Err(Problem::invalid("ttl_ms", "belongs to a reservation without a fence"));
            }
            (Some(execution), Some(fence)) => {
                let reserving = async {
                    Ok(self.operations.reserve_under_lease(execution, &fence, id, reservation, dimensions).await?)
                };
                self.fenced(by, execution, fence, |_| false, reserving).await?
            }
            (None, None) => self.operations.reserve(id, reservation, dimensions, body.ttl_ms.unwrap_or(TTL_MS)).await?,
            (Some(_), None) => return Err(Problem::invalid("fence", "is missing")),
            (None, Some(_)) => return Err(Problem::invalid("execution_id", "is missing")),
        })
    }
}

impl Handle<SpendBudget> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<SpendBudget>) -> Result<ReportUsageResult, Problem> {
        within(&ask.body.dimensions)?;
        Ok(self.operations.spend(ask.at, ask.body.dimensions, ask.body.dedup_key).await?)
    }
}

impl Handle<SettleBudget> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<SettleBudget>) -> Result<ReportUsageResult, Problem> {
        within(&ask.body.dimensions)?;
        Ok(self.operations.settle_reservation(ask.at, ask.body.reservation_id, ask.body.dimensions).await?)
    }
}

impl Handle<ReleaseBudget> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ReleaseBudget>) -> Result<Nothing, Problem> {
        self.operations.release_reservation(ask.at, ask.body.reservation_id).await?;
        Ok(Nothing {})
    }
}

impl Handle<ReportUsage> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReportUsage>) -> Result<ReportUsageResult, Problem> {
        let Ask { at: id, body, .. } = ask;
        let key = body.dedup_key.or_else(|| body.request_id.map(|request| format!("{id}:{request}")));
        let counting = async {
            self.check_budget(by, body.budget_id).await?;
            within(&body.dimensions)?;
            let counted = self.operations.report_usage(id, &body.fence, body.budget_id, body.dimensions, key).await;
            counted.map_err(about(id))
        };
        self.fenced(by, id, body.fence, breached, counting).await
    }
}

impl Handle<ReserveForTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReserveForTask>) -> Result<Reserved, Problem> {
        let Ask { at: id, body, .. } = ask;
        let (fence, budget, dimensions) = (body.fence, body.budget_id, body.dimensions);
        let key = body.dedup_key.or(body.request_id).unwrap_or_else(|| Uuid::now_v7().to_string());
        let reservation = reservation_id(budget, &format!("{}:{key}", fence.lease_id));
        let reserving = async {
            self.check_budget(by, budget).await?;
            within(&dimensions)?;
            let reserved = self.operations.reserve_under_lease(id, &fence, budget, reservation, dimensions).await;
            reserved.map_err(about(id))
        };
        self.fenced(by, id, fence, |_| false, reserving).await
    }
}

impl Handle<SettleForTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<SettleForTask>) -> Result<ReportUsageResult, Problem> {
        let Ask { at: id, body, .. } = ask;
        let (budget, reservation, dimensions) = (body.budget_id, body.reservation_id, body.dimensions);
        let Some(fence) = body.fence else {
            self.check_budget(by, budget).await?;
            within(&dimensions)?;
            return Ok(self.operations.settle_reservation(budget, reservation, dimensions).await?);
        };
        let settling = async {
            self.check_budget(by, budget).await?;
            within(&dimensions)?;
            let settled = self.operations.settle_under_lease(id, &fence, budget, reservation, dimensions).await;
            settled.map_err(about(id))
        };
        self.fenced(by, id, fence, breached, settling).await
    }
}

impl Handle<ReleaseForTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReleaseForTask>) -> Result<Released, Problem> {
        let Ask { at: id, body, .. } = ask;
        let releasing = async {
            self.check_budget(by, body.budget_id).await?;
            if let Some(fence) = &body.fence {
                self.operations.check_lease(id, fence).await.map_err(about(id))?;
            }
            Ok(self.operations.release_reservation(body.budget_id, body.reservation_id).await?)
        };
        match body.fence {
            Some(fence) => self.fenced(by, id, fence, |_| false, releasing).await?,
            None => releasing.await?,
        }
        Ok(Released { outcome: ReleaseOutcome::Released })
    }
}

impl Handle<GetExecutionUsage> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetExecutionUsage>) -> Result<ExecutionUsage, Problem> {
        let usage = self.operations.usage(ask.at).await;
        usage.map_err(|error| Problem::from(error).about(ask.at))
    }
}
