//! What a running attempt uses, told to `ff server`.

use async_trait::async_trait;
use ff_core::contracts::{BreachAction, ReportUsageResult, Reservation, ReserveResult};
use ff_core::types::{BudgetId, QuotaPolicyId, TimestampMs};
use ff_engine::operations::ThrottleUntil;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::LeaseRef;
use super::http::{Http, object};
use super::usage::{Amounts, Usage};
use crate::SdkError;
use crate::waits::unexpected;

#[derive(Deserialize)]
struct OutcomeShape {
    outcome: String,
    reservation_id: Option<Uuid>,
    budget_id: Option<BudgetId>,
    dimension: Option<String>,
    used: Option<u64>,
    limit: Option<u64>,
    action: Option<BreachAction>,
    #[serde(default)]
    lease_ended: bool,
}

impl OutcomeShape {
    /// The limit an answer is about.
    fn limit(&mut self) -> Result<(BudgetId, String, u64, u64), SdkError> {
        match (self.budget_id, self.dimension.take(), self.used, self.limit) {
            (Some(budget_id), Some(dimension), Some(used), Some(limit)) => Ok((budget_id, dimension, used, limit)),
            _ => Err(unexpected("a breach without its limit")),
        }
    }

    fn result(mut self) -> Result<ReportUsageResult, SdkError> {
        Ok(match self.outcome.as_str() {
            "ok" => ReportUsageResult::Ok,
            "already_applied" => ReportUsageResult::AlreadyApplied,
            "soft_breach" => {
                let (budget_id, dimension, used, limit) = self.limit()?;
                ReportUsageResult::SoftBreach { budget_id, dimension, used, limit }
            }
            "hard_breach" => {
                let action = self.action.ok_or_else(|| unexpected("a breach without an action"))?;
                let lease_ended = self.lease_ended;
                let (budget_id, dimension, used, limit) = self.limit()?;
                ReportUsageResult::HardBreach { budget_id, dimension, used, limit, action, lease_ended }
            }
            _ => return Err(unexpected("an outcome nobody knows")),
        })
    }
}

#[async_trait]
impl Usage for Http {
    async fn report_usage(
        &self,
        lease: LeaseRef,
        budget: BudgetId,
        dimensions: &Amounts,
        dedup_key: &str,
    ) -> Result<ReportUsageResult, SdkError> {
        let body = json!({ "budget_id": budget, "dimensions": dimensions, "dedup_key": dedup_key });
        self.task::<OutcomeShape>(lease, "usage", object(body)).await?.result()
    }

    async fn reserve(
        &self,
        lease: LeaseRef,
        budget: BudgetId,
        dimensions: &Amounts,
        key: &str,
    ) -> Result<ReserveResult, SdkError> {
        let body = json!({ "budget_id": budget, "dimensions": dimensions, "dedup_key": key });
        let mut answer: OutcomeShape = self.task(lease, "reserve", object(body)).await?;
        if answer.outcome == "hard_breach" {
            let (budget_id, dimension, used, limit) = answer.limit()?;
            return Ok(ReserveResult::HardBreach { budget_id, dimension, used, limit });
        }
        let reservation_id = answer.reservation_id.ok_or_else(|| unexpected("a reservation without an id"))?;
        Ok(ReserveResult::Ok(Reservation { budget_id: budget, reservation_id }))
    }

    async fn settle(
        &self,
        lease: LeaseRef,
        reservation: Reservation,
        dimensions: &Amounts,
    ) -> Result<ReportUsageResult, SdkError> {
        let Reservation { budget_id, reservation_id } = reservation;
        let body = json!({ "budget_id": budget_id, "reservation_id": reservation_id, "dimensions": dimensions });
        self.task::<OutcomeShape>(lease, "settle", object(body)).await?.result()
    }

    async fn release(&self, lease: LeaseRef, reservation: Reservation) -> Result<(), SdkError> {
        let Reservation { budget_id, reservation_id } = reservation;
        let body = json!({ "budget_id": budget_id, "reservation_id": reservation_id });
        self.task::<Value>(lease, "release", object(body)).await.map(|_| ())
    }

    async fn throttle(
        &self,
        lease: LeaseRef,
        quota: QuotaPolicyId,
        key: &str,
        until: ThrottleUntil,
    ) -> Result<Option<TimestampMs>, SdkError> {
        #[derive(Deserialize)]
        struct Throttled {
            throttled_until: Option<TimestampMs>,
        }
        let body = match until {
            ThrottleUntil::Time(at) => json!({ "quota_id": quota, "key": key, "until": at }),
            ThrottleUntil::For(ms) => json!({ "quota_id": quota, "key": key, "retry_after_ms": ms }),
        };
        Ok(self.task::<Throttled>(lease, "throttle", object(body)).await?.throttled_until)
    }

    async fn settle_weight(
        &self,
        lease: LeaseRef,
        quota: QuotaPolicyId,
        key: &str,
        weight: u64,
    ) -> Result<bool, SdkError> {
        let body = json!({ "quota_id": quota, "key": key, "weight": weight });
        Ok(self.task::<OutcomeShape>(lease, "weight", object(body)).await?.outcome == "ok")
    }
}
