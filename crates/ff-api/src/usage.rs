//! What is used of budgets: reported and reserved, with a lease or without one.

use std::collections::BTreeMap;

use ff_core::types::{BudgetId, ExecutionId};
use ff_script::generated::LedgerLine;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Invalid;
use crate::access::{FOLLOW, SPEND, WORK};
use crate::budgets::dimension;
use crate::operation::{Nothing, fenced, operations};
use crate::parts::{self, Id};
use crate::tasks::Fence;
#[cfg(feature = "openapi")]
use crate::vocabulary;

pub use ff_core::contracts::ReportUsageResult;

/// The largest amount.
const AMOUNT_MAX: i64 = ff_core::limits::TIME_MS_MAX;

/// Amounts by dimension.
pub type Amounts = BTreeMap<String, i64>;

/// Refuses amounts that are out of bounds.
///
/// # Errors
/// When a name or an amount is out of bounds.
pub fn within(dimensions: &Amounts) -> Result<(), Invalid> {
    for (name, n) in dimensions {
        dimension(name)?;
        if !(1..=AMOUNT_MAX).contains(n) {
            let problem = format!("must be in 1..={AMOUNT_MAX}, got {n}");
            return Err(Invalid::new(format!("dimensions.{name}"), problem));
        }
    }
    Ok(())
}

/// What became of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Reserved {
    /// The amounts are held.
    Ok {
        /// The reservation.
        reservation_id: Uuid,
        /// Until when it holds; absent when it holds as long as the lease.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<i64>,
    },
    /// Nothing is held: a hard limit is in the way.
    HardBreach {
        /// The budget of the limit: the one asked, or one above it.
        budget_id: BudgetId,
        /// The dimension of the limit.
        dimension: String,
        /// How much of it is used.
        used: u64,
        /// The limit.
        limit: u64,
    },
}

/// A reservation was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Released {
    /// What happened.
    pub outcome: ReleaseOutcome,
}

/// What became of a reservation that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReleaseOutcome {
    /// Nothing is held under it.
    Released,
}

/// Amounts to hold against a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReserveBody {
    /// What to hold.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Amounts))]
    #[serde(deserialize_with = "ff_core::json::once_each")]
    pub dimensions: Amounts,
    /// For how long, without a lease; the default is one minute.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 86_400_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// The same key is the same reservation.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DedupKey>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<String>,
    /// The execution that runs under the fence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The fence of a lease: the amounts are held as long as it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
}

/// What was used outside of any execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UsageBody {
    /// What was used.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Amounts))]
    #[serde(deserialize_with = "ff_core::json::once_each")]
    pub dimensions: Amounts,
    /// The same key counts once.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DedupKey>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<String>,
}

/// What was really used of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SettleBody {
    /// The reservation.
    pub reservation_id: Uuid,
    /// What was used.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Amounts))]
    #[serde(deserialize_with = "ff_core::json::once_each")]
    pub dimensions: Amounts,
}

/// A reservation to give back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReleaseReservationBody {
    /// The reservation.
    pub reservation_id: Uuid,
}

/// What a running attempt used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportUsageBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// The budget it reports to.
    pub budget_id: BudgetId,
    /// What was used.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Amounts))]
    #[serde(deserialize_with = "ff_core::json::once_each")]
    pub dimensions: Amounts,
    /// The same key counts once, whoever reports it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DedupKey>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<String>,
    /// The same id counts once for this execution. Not used beside a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Amounts to hold for a running attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReserveForTaskBody {
    /// The fence of the lease.
    pub fence: Fence,
    /// The budget to hold against.
    pub budget_id: BudgetId,
    /// What to hold.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Amounts))]
    #[serde(deserialize_with = "ff_core::json::once_each")]
    pub dimensions: Amounts,
    /// The same key under the same lease is the same reservation.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DedupKey>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<String>,
    /// Stands in for a key that is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What a running attempt really used of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SettleForTaskBody {
    /// The fence of the lease. Without one, what was used stands in no execution's ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// The budget of the reservation.
    pub budget_id: BudgetId,
    /// The reservation.
    pub reservation_id: Uuid,
    /// What was used.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Amounts))]
    #[serde(deserialize_with = "ff_core::json::once_each")]
    pub dimensions: Amounts,
    /// Taken and not used: a reservation is settled once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A reservation that a running attempt gives back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReleaseForTaskBody {
    /// The fence of the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// The budget of the reservation.
    pub budget_id: BudgetId,
    /// The reservation.
    pub reservation_id: Uuid,
    /// Taken and not used: a repetition gives back the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What an execution used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionUsage {
    /// The execution.
    pub execution_id: ExecutionId,
    /// By attempt, budget and dimension.
    pub ledger: Vec<LedgerLine>,
    /// The sum of what was accepted, by dimension.
    pub used: BTreeMap<String, i64>,
    /// How many reports wait for their budget's answer.
    pub pending: u64,
}

impl ExecutionUsage {
    /// What all attempts used of a dimension, of all budgets together.
    #[must_use]
    pub fn used(&self, dimension: &str) -> i64 {
        self.used.get(dimension).copied().unwrap_or(0)
    }
}

/// The sum of what was accepted, by dimension.
#[must_use]
pub fn used(ledger: &[LedgerLine]) -> Amounts {
    let mut used = Amounts::new();
    for line in ledger.iter().filter(|line| line.accepted > 0) {
        let sum = used.entry(line.dimension.clone()).or_default();
        *sum = sum.saturating_add(line.accepted);
    }
    used
}

operations! {
    /// Holds amounts: with the lease under a fence, else for a time. The same key is the same reservation.
    ReserveBudget budget_reserve: post "/v1/budgets/{name}/reserve", SPEND;
    at (parts::Budget);
    takes ReserveBody;
    returns Reserved: (status = 200, body = Reserved);
    fails fenced!["budget_not_found", "idempotency_conflict"];

    /// Reports what was used outside of any execution.
    SpendBudget budget_report_usage: post "/v1/budgets/{name}/usage", SPEND;
    at (parts::Budget);
    takes UsageBody;
    returns ReportUsageResult: (status = 200, body = ReportUsageResult);
    fails &["budget_not_found"];

    /// Turns a reservation into what was really used; the difference returns.
    SettleBudget budget_settle: post "/v1/budgets/{name}/settle", SPEND;
    at (parts::Budget);
    takes SettleBody;
    returns ReportUsageResult: (status = 200, body = ReportUsageResult);
    fails &["budget_not_found", "reservation_not_found"];

    /// Gives a reservation back unused.
    ReleaseBudget budget_release: post "/v1/budgets/{name}/release", SPEND;
    at (parts::Budget);
    takes ReleaseReservationBody;
    returns Nothing: (status = 204, description = "It is given back.");
    fails &["budget_not_found", "reservation_not_found"];

    /// Reports what a running attempt used; a request id makes it safe to repeat as well as a key does.
    ReportUsage task_report_usage: post "/v1/tasks/{id}/usage", WORK;
    at (Id);
    takes ReportUsageBody;
    returns ReportUsageResult: (status = 200, body = ReportUsageResult);
    fails fenced!["budget_not_found", "hard_breach", "usage_pending"];

    /// Holds amounts for as long as the lease lives. The same key under the same lease is the same reservation.
    ReserveForTask task_reserve: post "/v1/tasks/{id}/reserve", WORK;
    at (Id);
    takes ReserveForTaskBody;
    returns Reserved: (status = 200, body = Reserved);
    fails fenced!["budget_not_found", "idempotency_conflict", "hard_breach"];

    /// Turns a reservation into what was really used; the difference returns.
    SettleForTask task_settle: post "/v1/tasks/{id}/settle", WORK;
    at (Id);
    takes SettleForTaskBody;
    returns ReportUsageResult: (status = 200, body = ReportUsageResult);
    fails fenced!["budget_not_found", "reservation_not_found", "hard_breach", "usage_pending"];

    /// Gives a reservation back unused.
    ReleaseForTask task_release: post "/v1/tasks/{id}/release", WORK;
    at (Id);
    takes ReleaseForTaskBody;
    returns Released: (status = 200, body = Released);
    fails fenced!["budget_not_found", "reservation_not_found", "hard_breach"];

    /// What an execution used of its budgets, by attempt.
    GetExecutionUsage execution_get_usage: get "/v1/executions/{id}/usage", FOLLOW;
    at (Id);
    returns ExecutionUsage: (status = 200, body = ExecutionUsage);
    fails &["execution_not_found"];
}
