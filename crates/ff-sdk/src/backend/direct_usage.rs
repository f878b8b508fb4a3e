//! What a running attempt uses, told to an engine in reach.

use std::collections::BTreeMap;

use async_trait::async_trait;
use ff_core::contracts::{BreachAction, ReportUsageResult, Reservation, ReserveResult};
use ff_core::types::{BudgetId, QuotaPolicyId, TimestampMs};
use ff_engine::operations::{ThrottleUntil, reservation_id};
use ff_engine::{Reserved, UsageAnswer};
use ff_script::generated::OnHard;

use super::LeaseRef;
use super::direct::{Direct, fence, millis};
use super::usage::{Amounts, Usage};
use crate::SdkError;

fn wire(dimensions: &Amounts) -> BTreeMap<String, i64> {
    dimensions.iter().map(|(name, amount)| (name.clone(), millis(*amount))).collect()
}

fn action(on_hard: OnHard) -> BreachAction {
    match on_hard {
        OnHard::Suspend => BreachAction::Suspend,
        OnHard::Block => BreachAction::Block,
        OnHard::Cancel => BreachAction::Cancel,
        OnHard::Fail => BreachAction::Fail,
    }
}

fn result(answer: UsageAnswer) -> ReportUsageResult {
    match answer {
        UsageAnswer::Ok => ReportUsageResult::Ok,
        UsageAnswer::AlreadyApplied => ReportUsageResult::AlreadyApplied,
        UsageAnswer::SoftBreach { budget_id, dimension, used, limit } => ReportUsageResult::SoftBreach {
            budget_id,
            dimension,
            used: used.unsigned_abs(),
            limit: limit.unsigned_abs(),
        },
        UsageAnswer::HardBreach { breach, ended } => ReportUsageResult::HardBreach {
            budget_id: breach.budget_id,
            dimension: breach.dimension,
            used: breach.used.unsigned_abs(),
            limit: breach.limit.unsigned_abs(),
            action: action(breach.action),
            lease_ended: ended,
        },
    }
}

#[async_trait]
impl Usage for Direct {
    async fn report_usage(
        &self,
        lease: LeaseRef,
        budget: BudgetId,
        dimensions: &Amounts,
        dedup_key: &str,
    ) -> Result<ReportUsageResult, SdkError> {
        let operations = self.engine().operations();
        let (key, dimensions) = (Some(dedup_key.to_owned()), wire(dimensions));
        Ok(result(operations.report_usage(lease.execution_id, &fence(lease), budget, dimensions, key).await?))
    }

    async fn reserve(
        &self,
        lease: LeaseRef,
        budget: BudgetId,
        dimensions: &Amounts,
        key: &str,
    ) -> Result<ReserveResult, SdkError> {
        let id = reservation_id(budget, &format!("{}:{key}", lease.lease_id));
        let operations = self.engine().operations();
        let answer =
            operations.reserve_under_lease(lease.execution_id, &fence(lease), budget, id, wire(dimensions)).await?;
        Ok(match answer {
            Reserved::Held { .. } => ReserveResult::Ok(Reservation { budget_id: budget, reservation_id: id }),
            Reserved::HardBreach { budget_id, dimension, used, limit } => ReserveResult::HardBreach {
                budget_id,
                dimension,
                used: used.unsigned_abs(),
                limit: limit.unsigned_abs(),
            },
        })
    }

    async fn settle(
        &self,
        lease: LeaseRef,
        reservation: Reservation,
        dimensions: &Amounts,
    ) -> Result<ReportUsageResult, SdkError> {
        let Reservation { budget_id, reservation_id } = reservation;
        let (operations, dimensions) = (self.engine().operations(), wire(dimensions));
        let (execution, fence) = (lease.execution_id, fence(lease));
        Ok(result(operations.settle_under_lease(execution, &fence, budget_id, reservation_id, dimensions).await?))
    }

    async fn release(&self, lease: LeaseRef, reservation: Reservation) -> Result<(), SdkError> {
        let operations = self.engine().operations();
        operations.check_lease(lease.execution_id, &fence(lease)).await?;
        Ok(operations.release_reservation(reservation.budget_id, reservation.reservation_id).await?)
    }

    async fn throttle(
        &self,
        lease: LeaseRef,
        quota: QuotaPolicyId,
        key: &str,
        until: ThrottleUntil,
    ) -> Result<Option<TimestampMs>, SdkError> {
        let operations = self.engine().operations();
        let until = operations.throttle_under_lease(lease.execution_id, &fence(lease), quota, key, until).await?;
        Ok(until.map(TimestampMs))
    }

    async fn settle_weight(
        &self,
        lease: LeaseRef,
        quota: QuotaPolicyId,
        key: &str,
        weight: u64,
    ) -> Result<bool, SdkError> {
        let operations = self.engine().operations();
        Ok(operations.settle_weight(lease.execution_id, &fence(lease), quota, key, millis(weight)).await?)
    }
}
