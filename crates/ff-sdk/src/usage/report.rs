//! Reporting what a task used, and reserving before it is used.

use ff_api::Ask;
use ff_api::usage::{
    Amounts, ReleaseForTask, ReleaseForTaskBody, ReportUsage, ReportUsageBody, ReserveForTask, ReserveForTaskBody,
    Reserved, SettleForTask, SettleForTaskBody,
};
use ff_core::contracts::{BreachAction, ReportUsageResult, Reservation, ReserveResult};
use ff_core::error::{ConflictKind, Detail};
use ff_core::types::BudgetId;
use ff_core::{EngineError, ErrorCode};
use uuid::Uuid;

use crate::runtime::Ctx;
use crate::task::TaskCore;
use crate::{CancelReason, ClaimedTask, SdkError};

/// The largest amount the engine counts.
const AMOUNT_MAX: u64 = ff_core::limits::TIME_MS_MAX.unsigned_abs();

/// Amounts by dimension, each named once and in bounds.
pub(super) fn amounts(context: &str, dimensions: &[(&str, u64)]) -> Result<Amounts, SdkError> {
    let mut all = Amounts::new();
    for (name, amount) in dimensions {
        let refuse = |problem: String| SdkError::config(context, &format!("dimensions.{name}"), problem);
        if !(1..=AMOUNT_MAX).contains(amount) {
            return Err(refuse(format!("must be in 1..={AMOUNT_MAX}, got {amount}")));
        }
        if all.insert((*name).to_owned(), i64::try_from(*amount).expect("it is in bounds")).is_some() {
            return Err(refuse("is given twice".to_owned()));
        }
    }
    if all.is_empty() {
        return Err(SdkError::config(context, "dimensions", "must name at least one"));
    }
    Ok(all)
}

/// The facts of a breach, as the engine tells them.
fn facts(result: &ReportUsageResult) -> Detail {
    let ReportUsageResult::HardBreach { budget_id, dimension, used, limit, action, .. } = result else {
        return Detail::new();
    };
    let facts = [
        ("action", action.to_string()),
        ("budget_id", budget_id.to_string()),
        ("dimension", dimension.clone()),
        ("limit", limit.to_string()),
        ("used", used.to_string()),
    ];
    facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
}

/// The breach that ended the lease while its answer was on the way.
fn told_again(error: &SdkError) -> Option<(Detail, Option<ReportUsageResult>)> {
    let Some(EngineError::Conflict(ConflictKind::Refused(refused))) = error.engine() else { return None };
    if refused.code != ErrorCode::HardBreach {
        return None;
    }
    let detail = &refused.detail;
    let breach = || {
        Some(ReportUsageResult::HardBreach {
            budget_id: detail.parse("budget_id").ok()??,
            dimension: detail.get("dimension")?.to_owned(),
            used: detail.parse("used").ok()??,
            limit: detail.parse("limit").ok()??,
            action: detail.parse::<BreachAction>("action").ok()??,
            lease_ended: true,
        })
    };
    Some((detail.clone(), breach()))
}

impl TaskCore {
    pub(crate) async fn report_usage(
        &self,
        budget: &BudgetId,
        dimensions: &[(&str, u64)],
        dedup_key: Option<&str>,
    ) -> Result<ReportUsageResult, SdkError> {
        let dimensions = amounts("report_usage", dimensions)?;
        self.check_breach()?;
        // A report that is repeated because its answer was lost must count once.
        let key = dedup_key.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        let ask = Ask::<ReportUsage>::with(
            self.lease.at.execution_id,
            ReportUsageBody {
                fence: self.lease.at.fence(),
                budget_id: *budget,
                dimensions,
                dedup_key: Some(key),
                request_id: None,
            },
        );
        let (reach, mut tries) = (self.backend.reach(), 0);
        let answer = self
            .repeat(|| {
                tries += 1;
                reach.ask(ask.clone())
            })
            .await;
        self.heard(answer, tries > 1 && dedup_key.is_none())
    }

    pub(crate) async fn reserve(
        &self,
        budget: &BudgetId,
        dimensions: &[(&str, u64)],
        dedup_key: Option<&str>,
    ) -> Result<ReserveResult, SdkError> {
        let dimensions = amounts("reserve", dimensions)?;
        let key = dedup_key.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        let ask = Ask::<ReserveForTask>::with(
            self.lease.at.execution_id,
            ReserveForTaskBody {
                fence: self.lease.at.fence(),
                budget_id: *budget,
                dimensions,
                dedup_key: Some(key),
                request_id: None,
            },
        );
        let reach = self.backend.reach();
        Ok(match self.repeat(|| reach.ask(ask.clone())).await? {
            Reserved::Ok { reservation_id, .. } => {
                ReserveResult::Ok(Reservation { budget_id: *budget, reservation_id })
            }
            Reserved::HardBreach { budget_id, dimension, used, limit } => {
                ReserveResult::HardBreach { budget_id, dimension, used, limit }
            }
        })
    }

    pub(crate) async fn settle(
        &self,
        reservation: &Reservation,
        dimensions: &[(&str, u64)],
    ) -> Result<ReportUsageResult, SdkError> {
        let dimensions = amounts("settle", dimensions)?;
        self.check_breach()?;
        let Reservation { budget_id, reservation_id } = *reservation;
        let ask = Ask::<SettleForTask>::with(
            self.lease.at.execution_id,
            SettleForTaskBody {
                fence: Some(self.lease.at.fence()),
                budget_id,
                reservation_id,
                dimensions,
                request_id: None,
            },
        );
        let (reach, mut tries) = (self.backend.reach(), 0);
        let answer = self
            .repeat(|| {
                tries += 1;
                reach.ask(ask.clone())
            })
            .await;
        self.heard(answer, tries > 1)
    }

    pub(crate) async fn release(&self, reservation: &Reservation) -> Result<(), SdkError> {
        let Reservation { budget_id, reservation_id } = *reservation;
        let ask = Ask::<ReleaseForTask>::with(
            self.lease.at.execution_id,
            ReleaseForTaskBody { fence: Some(self.lease.at.fence()), budget_id, reservation_id, request_id: None },
        );
        let (reach, mut tries) = (self.backend.reach(), 0);
        let answer = self
            .repeat(|| {
                tries += 1;
                reach.ask(ask.clone())
            })
            .await;
        match answer {
            // It was given back by the call whose answer was lost.
            Err(error) if tries > 1 && error.engine().is_some_and(|error| error.code() == "reservation_not_found") => {
                Ok(())
            }
            answer => answer.map(|_| ()),
        }
    }

    /// Takes a budget's answer in: a breach that ended the lease ends this task. `ours` says that what is applied already was
    /// applied by this very call, whose first answer was lost.
    fn heard(&self, answer: Result<ReportUsageResult, SdkError>, ours: bool) -> Result<ReportUsageResult, SdkError> {
        match answer {
            Ok(ReportUsageResult::AlreadyApplied) if ours => Ok(ReportUsageResult::Ok),
            Ok(result) => {
                if matches!(result, ReportUsageResult::HardBreach { lease_ended: true, .. }) {
                    self.breached(facts(&result));
                }
                Ok(result)
            }
            Err(error) => match told_again(&error) {
                Some((detail, breach)) => {
                    self.breached(detail);
                    breach.ok_or(error)
                }
                None => Err(error),
            },
        }
    }

    /// A budget ended the lease: nothing is to be renewed or ended any more.
    fn breached(&self, facts: Detail) {
        tracing::info!(execution = %self.lease.at.execution_id, breach = %facts, "a budget's hard limit ended the lease");
        // The first breach is the one that did it.
        let _ = self.breach.set(facts);
        self.set_aside();
        self.lease.cancellation.fire(CancelReason::HardBreach);
    }

    /// Says what happened when a budget has ended the lease.
    pub(crate) fn check_breach(&self) -> Result<(), SdkError> {
        match self.breach.get() {
            Some(facts) => Err(EngineError::from_refusal(ErrorCode::HardBreach, facts.clone()).into()),
            None => Ok(()),
        }
    }
}

/// Usage of budgets.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_core::contracts::{ReportUsageResult, ReserveResult};
/// use ff_sdk::{BudgetChange, BudgetSpec, NewExecution};
/// # let engine = ff_sdk::testing::TestEngine::start().await?;
/// let admin = engine.admin();
/// let budget = admin.create_budget(BudgetSpec::new("default").hard("tokens", 1_000)).await?.budget_id;
/// engine.submit_new(NewExecution::new("default", "default", "ask").budget(&budget)).await?;
/// # let worker = engine.worker("w-1").await?;
/// let task = worker.claim_next().await?.expect("one execution waits");
///
/// // What must not overshoot is reserved first; what was not used returns.
/// let ReserveResult::Ok(reservation) = task.reserve(&budget, &[("tokens", 800)], None).await? else {
///     panic!("it is below the limit")
/// };
/// assert_eq!(task.settle(&reservation, &[("tokens", 640)]).await?, ReportUsageResult::Ok);
///
/// // A report past the limit is not counted. This budget parks the task, and its lease is over.
/// let answer = task.report_usage(&budget, &[("tokens", 500)], None).await?;
/// assert!(matches!(answer, ReportUsageResult::HardBreach { used: 640, limit: 1_000, lease_ended: true, .. }));
/// drop(task);
///
/// // A raise lets the same attempt go on.
/// admin.change_budget(&budget, BudgetChange::default().hard("tokens", Some(2_000))).await?;
/// # let mut task = None;
/// # while task.is_none() { tokio::task::yield_now().await; task = worker.claim_next().await?; }
/// # let task = task.unwrap();
/// assert_eq!(task.resume().map(|resume| resume.cause), Some(ff_sdk::task::ResumeCause::Budget));
/// task.complete(None).await?;
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
impl ClaimedTask {
    /// Reports what this attempt used. Under the same key it counts once, whoever reports it.
    ///
    /// What would pass a hard limit is not counted and answers [`ReportUsageResult::HardBreach`]. When its `lease_ended` says so,
    /// the task is over: [`ClaimedTask::cancellation`] fires, and every later call on it is refused with the code `hard_breach`.
    /// The execution is parked, waits, was cancelled or has failed, as the budget says.
    pub async fn report_usage(
        &self,
        budget: &BudgetId,
        dimensions: &[(&str, u64)],
        dedup_key: Option<&str>,
    ) -> Result<ReportUsageResult, SdkError> {
        self.core().report_usage(budget, dimensions, dedup_key).await
    }

    /// Holds amounts against a budget before they are used, until they are settled or released; at the latest until this lease
    /// ends. The same key under the same lease is the same reservation.
    ///
    /// A limit in the way is an answer: nothing is held, and the lease goes on.
    pub async fn reserve(
        &self,
        budget: &BudgetId,
        dimensions: &[(&str, u64)],
        dedup_key: Option<&str>,
    ) -> Result<ReserveResult, SdkError> {
        self.core().reserve(budget, dimensions, dedup_key).await
    }

    /// Turns a reservation into what was really used: that is counted, and the rest returns. More than was reserved is taken from
    /// what is free; past a hard limit it is a breach as in [`ClaimedTask::report_usage`].
    pub async fn settle(
        &self,
        reservation: &Reservation,
        dimensions: &[(&str, u64)],
    ) -> Result<ReportUsageResult, SdkError> {
        self.core().settle(reservation, dimensions).await
    }

    /// Gives a reservation back unused.
    pub async fn release(&self, reservation: &Reservation) -> Result<(), SdkError> {
        self.core().release(reservation).await
    }
}

/// Usage of budgets; see [`ClaimedTask::report_usage`]. A handler whose report ended its lease has ended its run, whatever it
/// returns. One that was parked is called again when there is room, and finds
/// [`ResumeCause::Budget`](crate::task::ResumeCause::Budget) in [`Ctx::resume`].
impl Ctx {
    /// Reports what this attempt used.
    pub async fn report_usage(
        &self,
        budget: &BudgetId,
        dimensions: &[(&str, u64)],
        dedup_key: Option<&str>,
    ) -> Result<ReportUsageResult, SdkError> {
        self.0.report_usage(budget, dimensions, dedup_key).await
    }

    /// Holds amounts before they are used, for this run at most.
    pub async fn reserve(
        &self,
        budget: &BudgetId,
        dimensions: &[(&str, u64)],
        dedup_key: Option<&str>,
    ) -> Result<ReserveResult, SdkError> {
        self.0.reserve(budget, dimensions, dedup_key).await
    }

    /// Turns a reservation into what was really used.
    pub async fn settle(
        &self,
        reservation: &Reservation,
        dimensions: &[(&str, u64)],
    ) -> Result<ReportUsageResult, SdkError> {
        self.0.settle(reservation, dimensions).await
    }

    /// Gives a reservation back unused.
    pub async fn release(&self, reservation: &Reservation) -> Result<(), SdkError> {
        self.0.release(reservation).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_dimension_is_refused_by_its_name_before_the_wire() {
        let table: &[(&[(&str, u64)], &str)] = &[
            (&[], "dimensions"),
            (&[("tokens", 0)], "dimensions.tokens"),
            (&[("usd", 1), ("tokens", AMOUNT_MAX + 1)], "dimensions.tokens"),
            (&[("usd", 1), ("tokens", 1), ("usd", 1)], "dimensions.usd"),
        ];
        for (dimensions, wanted) in table {
            match amounts("report_usage", dimensions) {
                Err(SdkError::Config { field: Some(field), .. }) => assert_eq!(field, *wanted),
                other => panic!("{dimensions:?}: {other:?}"),
            }
        }
        assert_eq!(amounts("report_usage", &[("a", 1), ("b", AMOUNT_MAX)]).unwrap().len(), 2);
    }

    #[test]
    fn a_breach_that_is_told_again_is_the_breach_it_was() {
        let breach = ReportUsageResult::HardBreach {
            budget_id: BudgetId::mint(),
            dimension: "tokens".to_owned(),
            used: 7,
            limit: 10,
            action: BreachAction::Block,
            lease_ended: true,
        };
        let again: SdkError = EngineError::from_refusal(ErrorCode::HardBreach, facts(&breach)).into();
        assert_eq!(told_again(&again).unwrap().1, Some(breach));
        let bare: SdkError = EngineError::from_refusal(ErrorCode::HardBreach, Detail::new()).into();
        assert_eq!(told_again(&bare).unwrap().1, None);
    }
}
