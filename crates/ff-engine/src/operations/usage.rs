//! Usage: a report is noted with its execution, counted by its budget, and the answer noted back.
//!
//! **Invariant:** every step is safe to repeat. A report is known to its budget by its key and to its execution by its
//! sequence, so whoever finds one that waits may finish it.

use std::collections::BTreeMap;

use ff_api::usage::{ExecutionUsage, Reserved, used};
use ff_core::EngineError;
use ff_core::contracts::ReportUsageResult;
use ff_core::error::ValidationKind;
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_script::generated::{
    ApplyUsage, ApplyUsageReply, BudgetHolder, Fence, HoldBudget, HoldBudgetReply, NoteUsage, NoteUsageReply,
    PendingUsage, QuotaHolder, ReadUsage, ReadUsageReply, ReleaseReservation, ReserveBudget, ReserveBudgetReply,
    SettleReservation, SettleReservationReply, SettleUsage, SettleUsageReply, UsageBreach, UsageOutcome, UsageReport,
};
use ff_script::{Client, Error};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Operations, refused_with};

/// The id of the reservation that a caller knows by a key of its own.
#[must_use]
pub fn reservation_id(budget: BudgetId, key: &str) -> Uuid {
    let digest = Sha256::new().chain_update(budget.as_uuid().as_bytes()).chain_update(key).finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

impl Operations {
    /// Reports what a running attempt used. Under the same key it counts once.
    pub async fn report_usage(
        &self,
        execution_id: ExecutionId,
        fence: &Fence,
        budget_id: BudgetId,
        dimensions: BTreeMap<String, i64>,
        dedup_key: Option<String>,
    ) -> Result<ReportUsageResult, Error> {
        // A report whose answer is lost is sent again: it counts once under the key it has then, too.
        let dedup_key = dedup_key.or_else(|| Some(Uuid::now_v7().to_string()));
        let call = NoteUsage { dedup_key, ..NoteUsage::new(budget_id, dimensions, execution_id, *fence) };
        self.note_usage(call).await
    }

    /// Turns a reservation of a running attempt into what was really used: the ledger of its execution has it, and the
    /// difference returns.
    pub async fn settle_under_lease(
        &self,
        execution_id: ExecutionId,
        fence: &Fence,
        budget_id: BudgetId,
        reservation_id: Uuid,
        dimensions: BTreeMap<String, i64>,
    ) -> Result<ReportUsageResult, Error> {
        let call = NoteUsage {
            // A reservation is settled once: its id is the key.
            dedup_key: Some(format!("reservation:{reservation_id}")),
            reservation_id: Some(reservation_id),
            ..NoteUsage::new(budget_id, dimensions, execution_id, *fence)
        };
        self.note_usage(call).await
    }

    async fn note_usage(&self, call: NoteUsage) -> Result<ReportUsageResult, Error> {
        let execution_id = call.execution_id;
        let route = self.client.route_of(&execution_id);
        let NoteUsageReply::Noted { report } = self.client.call(route, &call).await?;
        finish(&self.client, execution_id, report).await
    }

    /// Reports what was used outside of any execution. Under the same key it counts once.
    pub async fn spend(
        &self,
        budget_id: BudgetId,
        dimensions: BTreeMap<String, i64>,
        dedup_key: Option<String>,
    ) -> Result<ReportUsageResult, Error> {
        let report = UsageReport::new(dedup_key.unwrap_or_else(|| Uuid::now_v7().to_string()), dimensions);
        let route = self.client.route_of_budget(&budget_id);
        let applied = self.client.call(route, &ApplyUsage { budget_id, report }).await;
        Ok(match applied.map_err(of_the_report)? {
            ApplyUsageReply::Ok => ReportUsageResult::Ok,
            ApplyUsageReply::AlreadyApplied { .. } => ReportUsageResult::AlreadyApplied,
            ApplyUsageReply::SoftBreach { budget_id, dimension, limit, used } => {
                soft(budget_id, dimension, used, limit)
            }
            ApplyUsageReply::HardBreach { action, budget_id, dimension, limit, rooms, used } => {
                hard(UsageBreach { action, budget_id, dimension, limit, rooms, used }, false)
            }
        })
    }

    /// What an execution used, and how many of its reports are not answered yet.
    pub async fn usage(&self, execution_id: ExecutionId) -> Result<ExecutionUsage, Error> {
        let ReadUsageReply::Usage { ledger, pending } =
            self.client.call(self.client.route_of(&execution_id), &ReadUsage { execution_id }).await?;
        Ok(ExecutionUsage { execution_id, used: used(&ledger), ledger, pending: pending.len() as u64 })
    }

    /// Holds amounts for a time.
    pub async fn reserve(
        &self,
        budget_id: BudgetId,
        reservation_id: Uuid,
        dimensions: BTreeMap<String, i64>,
        ttl_ms: i64,
    ) -> Result<Reserved, Error> {
        self.reserved(ReserveBudget { budget_id, dimensions, holder: None, reservation_id, ttl_ms: Some(ttl_ms) }).await
    }

    /// Holds amounts for a running attempt; they are given back when its lease ends.
    pub async fn reserve_under_lease(
        &self,
        execution_id: ExecutionId,
        fence: &Fence,
        budget_id: BudgetId,
        reservation_id: Uuid,
        dimensions: BTreeMap<String, i64>,
    ) -> Result<Reserved, Error> {
        let call = HoldBudget { budget_id, execution_id, fence: *fence };
        let HoldBudgetReply::Held { holder_id } = self.client.call(self.client.route_of(&execution_id), &call).await?;
        let holder = Some(BudgetHolder { execution_id, holder_id });
        self.reserved(ReserveBudget { budget_id, dimensions, holder, reservation_id, ttl_ms: None }).await
    }

    async fn reserved(&self, call: ReserveBudget) -> Result<Reserved, Error> {
        let reservation_id = call.reservation_id;
        Ok(match self.client.call(self.client.route_of_budget(&call.budget_id), &call).await? {
            ReserveBudgetReply::Reserved { expires_at, .. } => Reserved::Ok { reservation_id, expires_at },
            ReserveBudgetReply::HardBreach { budget_id, dimension, limit, used, .. } => {
                let (used, limit) = (used.unsigned_abs(), limit.unsigned_abs());
                Reserved::HardBreach { budget_id, dimension, used, limit }
            }
        })
    }

    /// Turns a reservation into what was really used; the difference returns.
    pub async fn settle_reservation(
        &self,
        budget_id: BudgetId,
        reservation_id: Uuid,
        dimensions: BTreeMap<String, i64>,
    ) -> Result<ReportUsageResult, Error> {
        let call = SettleReservation { budget_id, dimensions, reservation_id };
        Ok(match self.client.call(self.client.route_of_budget(&budget_id), &call).await? {
            SettleReservationReply::Ok => ReportUsageResult::Ok,
            SettleReservationReply::AlreadyApplied => ReportUsageResult::AlreadyApplied,
            SettleReservationReply::SoftBreach { budget_id, dimension, limit, used } => {
                soft(budget_id, dimension, used, limit)
            }
            SettleReservationReply::HardBreach { action, budget_id, dimension, limit, rooms, used } => {
                hard(UsageBreach { action, budget_id, dimension, limit, rooms, used }, false)
            }
        })
    }

    /// Refuses unless the lease is the current one.
    pub async fn check_lease(&self, execution_id: ExecutionId, fence: &Fence) -> Result<(), Error> {
        // Its quotas are of no interest here; asking for one is the call that only looks.
        let nobody = QuotaPolicyId::from_uuid(Uuid::nil());
        let call = QuotaHolder { execution_id, fence: *fence, key: "-".to_owned(), quota_id: nobody };
        self.client.call(self.client.route_of(&execution_id), &call).await.map(|_| ())
    }

    /// Gives a reservation back unused.
    pub async fn release_reservation(&self, budget_id: BudgetId, reservation_id: Uuid) -> Result<(), Error> {
        let call = ReleaseReservation { budget_id, reservation_id };
        self.client.call(self.client.route_of_budget(&budget_id), &call).await.map(|_| ())
    }
}

/// Finishes a report whose reporter did not get that far; one that does not wait any more is finished.
pub(crate) async fn finish_usage(client: &Client, execution_id: ExecutionId, sequence: i64) -> Result<(), Error> {
    let read = client.call(client.route_of(&execution_id), &ReadUsage { execution_id }).await;
    let pending = match read {
        Ok(ReadUsageReply::Usage { pending, .. }) => pending,
        Err(error) if refused_with(&error) == Some(ErrorCode::ExecutionNotFound) => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some(report) = pending.into_iter().find(|report| report.sequence == sequence) else { return Ok(()) };
    match finish(client, execution_id, report).await {
        // Its budget does not take it: that was settled, and there is nobody to tell.
        Err(Error::Engine(error)) => {
            tracing::warn!(%execution_id, sequence, %error, "a report of usage was refused");
            Ok(())
        }
        other => other.map(|_| ()),
    }
}

/// The caller gave the fields of a report, not the report.
fn of_the_report(error: Error) -> Error {
    match error {
        Error::Engine(EngineError::Validation { kind: ValidationKind::InvalidArgument { field }, detail }) => {
            let field = field.strip_prefix("report.").map_or(field.clone(), str::to_owned);
            Error::Engine(EngineError::Validation { kind: ValidationKind::InvalidArgument { field }, detail })
        }
        other => other,
    }
}

/// Counted, and a soft limit is reached.
fn soft(budget_id: BudgetId, dimension: String, used: i64, limit: i64) -> ReportUsageResult {
    let (used, limit) = (used.unsigned_abs(), limit.unsigned_abs());
    ReportUsageResult::SoftBreach { budget_id, dimension, used, limit }
}

/// Not counted: it would have passed a hard limit.
fn hard(breach: UsageBreach, lease_ended: bool) -> ReportUsageResult {
    let UsageBreach { action, budget_id, dimension, limit, used, .. } = breach;
    let (used, limit) = (used.unsigned_abs(), limit.unsigned_abs());
    ReportUsageResult::HardBreach { budget_id, dimension, used, limit, action, lease_ended }
}

/// Counts a report and notes the answer with its execution.
async fn finish(client: &Client, execution_id: ExecutionId, report: PendingUsage) -> Result<ReportUsageResult, Error> {
    let PendingUsage { budget_id, dedup_key, dimensions, holder_id, reservation_id, sequence, .. } = report;
    let report = UsageReport {
        dedup_key,
        dimensions,
        execution_id: Some(execution_id),
        holder_id,
        reservation_id,
        sequence: Some(sequence),
    };
    let applied = client.call(client.route_of_budget(&budget_id), &ApplyUsage { budget_id, report }).await;
    let mut settle = SettleUsage::new(execution_id, UsageOutcome::Ok, sequence);
    let mut answer = Ok(ReportUsageResult::Ok);
    match applied {
        Ok(ApplyUsageReply::Ok) => {}
        Ok(ApplyUsageReply::AlreadyApplied { same }) => {
            settle.outcome = UsageOutcome::AlreadyApplied;
            settle.counted = Some(same);
            answer = Ok(ReportUsageResult::AlreadyApplied);
        }
        Ok(ApplyUsageReply::SoftBreach { budget_id, dimension, limit, used }) => {
            settle.outcome = UsageOutcome::SoftBreach;
            answer = Ok(soft(budget_id, dimension, used, limit));
        }
        Ok(ApplyUsageReply::HardBreach { action, budget_id, dimension, limit, rooms, used }) => {
            let breach = UsageBreach { action, budget_id, dimension, limit, rooms, used };
            settle.outcome = UsageOutcome::HardBreach;
            settle.breach = Some(breach.clone());
            answer = Ok(hard(breach, false));
        }
        // The budget refuses it for good: it must not wait for ever.
        Err(error)
            if matches!(
                refused_with(&error),
                Some(ErrorCode::InvalidArgument | ErrorCode::BudgetNotFound | ErrorCode::ReservationNotFound)
            ) =>
        {
            settle.outcome = UsageOutcome::Invalid;
            answer = Err(of_the_report(error));
        }
        Err(error) => return Err(error),
    }
    let settled = client.call(client.route_of(&execution_id), &settle).await?;
    if let (Ok(ReportUsageResult::HardBreach { lease_ended, .. }), SettleUsageReply::Settled { ended, .. }) =
        (&mut answer, settled)
    {
        *lease_ended = ended;
    }
    answer
}
