//! Budgets and quotas to make, and changes of those that are there.

use ff_api::budgets::{ChangeBudgetBody, CreateBudgetBody, LimitBody, LimitPatchBody, NamedScope, ScopeBody};
use ff_api::quotas::{CreateQuotaBody, QuotaRateBody};
use ff_api::reset::{CalendarReset, CalendarUnit, IntervalReset, Reset};
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_engine::NewExecution;
use ff_script::generated::{BudgetRef, OnHard, OnSoft, QuotaWeights, RateMode, ScopeType};

/// A change of a quota. What is `None` stays; a part that is `Some(None)` is taken away.
pub use ff_api::quotas::ChangeQuotaBody as QuotaChange;

use crate::{ChildSpec, FlowSpec, MemberSpec};

fn amount(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A budget to make: what it measures, how much of it may be used, and what happens at its limits.
///
/// Without another word it applies only to what names it, is never reset, tells about a soft limit, and parks running work that
/// meets a hard one until there is room.
///
/// ```
/// use ff_sdk::BudgetSpec;
/// use ff_sdk::task::OnHard;
/// let daily = BudgetSpec::new("default").hard("tokens", 100_000).soft("tokens", 80_000).hard("usd_micros", 5_000_000)
///     .each_day("Europe/Berlin")
///     .on_hard(OnHard::Suspend);
/// assert_eq!(daily.fields.dimensions.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct BudgetSpec {
    /// What is said about it.
    pub fields: CreateBudgetBody,
}

impl BudgetSpec {
    /// A budget of a namespace, which measures nothing yet.
    #[must_use]
    pub fn new(namespace: impl Into<String>) -> Self {
        Self { fields: CreateBudgetBody { namespace: Some(namespace.into()), ..CreateBudgetBody::default() } }
    }

    /// Proposes an id; the same budget made again under it is the first one.
    #[must_use]
    pub fn id(mut self, id: BudgetId) -> Self {
        self.fields.budget_id = Some(id);
        self
    }

    /// Puts it below another: what it uses, that one uses too.
    #[must_use]
    pub fn parent(mut self, parent: BudgetId) -> Self {
        self.fields.parent = Some(parent);
        self
    }

    fn scope(mut self, r#type: ScopeType, id: Option<String>) -> Self {
        self.fields.scope = Some(ScopeBody::Named(NamedScope { r#type, id }));
        self
    }

    /// Applies it to everything in its namespace.
    #[must_use]
    pub fn of_namespace(self) -> Self {
        self.scope(ScopeType::Namespace, None)
    }

    /// Applies it to everything in a lane of its namespace.
    #[must_use]
    pub fn of_lane(self, lane: impl Into<String>) -> Self {
        self.scope(ScopeType::Lane, Some(lane.into()))
    }

    /// Applies it to every member of a flow.
    #[must_use]
    pub fn of_flow(self, flow: &ff_core::types::FlowId) -> Self {
        self.scope(ScopeType::Flow, Some(flow.to_string()))
    }

    /// Says whose it is; it applies only to what names it.
    #[must_use]
    pub fn of_tenant(self, tenant: impl Into<String>) -> Self {
        self.scope(ScopeType::Tenant, Some(tenant.into()))
    }

    fn limit(&mut self, dimension: &str) -> &mut LimitBody {
        self.fields.dimensions.entry(dimension.to_owned()).or_default()
    }

    /// Measures a dimension without a limit.
    #[must_use]
    pub fn measure(mut self, dimension: &str) -> Self {
        self.limit(dimension);
        self
    }

    /// Never more than this of a dimension is used.
    #[must_use]
    pub fn hard(mut self, dimension: &str, limit: u64) -> Self {
        self.limit(dimension).hard = Some(amount(limit));
        self
    }

    /// At this much of a dimension, [`BudgetSpec::on_soft`] says what happens.
    #[must_use]
    pub fn soft(mut self, dimension: &str, limit: u64) -> Self {
        self.limit(dimension).soft = Some(amount(limit));
        self
    }

    /// Starts anew after every interval.
    #[must_use]
    pub fn every_ms(mut self, interval_ms: u64) -> Self {
        self.fields.reset = Some(Reset::Interval(IntervalReset { interval_ms: amount(interval_ms) }));
        self
    }

    fn each(mut self, calendar: CalendarUnit, zone: String) -> Self {
        self.fields.reset = Some(Reset::Calendar(CalendarReset { calendar, zone: Some(zone) }));
        self
    }

    /// Starts anew with each day of a time zone, by its IANA name.
    #[must_use]
    pub fn each_day(self, zone: impl Into<String>) -> Self {
        self.each(CalendarUnit::Day, zone.into())
    }

    /// Starts anew with each month of a time zone, by its IANA name.
    #[must_use]
    pub fn each_month(self, zone: impl Into<String>) -> Self {
        self.each(CalendarUnit::Month, zone.into())
    }

    /// What happens at a soft limit.
    #[must_use]
    pub fn on_soft(mut self, what: OnSoft) -> Self {
        self.fields.on_soft = Some(what);
        self
    }

    /// What happens to running work at a hard limit.
    #[must_use]
    pub fn on_hard(mut self, what: OnHard) -> Self {
        self.fields.on_hard = Some(what);
        self
    }
}

/// A change of a budget's limits and actions; what is not named stays.
///
/// ```
/// use ff_sdk::BudgetChange;
/// let raise = BudgetChange::default().hard("tokens", Some(200_000)).soft("tokens", None);
/// assert_eq!(raise.patch.dimensions["tokens"].hard, Some(Some(200_000)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct BudgetChange {
    /// What changes.
    pub patch: ChangeBudgetBody,
}

impl BudgetChange {
    fn limit(&mut self, dimension: &str) -> &mut LimitPatchBody {
        self.patch.dimensions.entry(dimension.to_owned()).or_default()
    }

    /// The hard limit of a dimension; none takes it away.
    #[must_use]
    pub fn hard(mut self, dimension: &str, limit: Option<u64>) -> Self {
        self.limit(dimension).hard = Some(limit.map(amount));
        self
    }

    /// The soft limit of a dimension; none takes it away.
    #[must_use]
    pub fn soft(mut self, dimension: &str, limit: Option<u64>) -> Self {
        self.limit(dimension).soft = Some(limit.map(amount));
        self
    }

    /// What happens at a soft limit.
    #[must_use]
    pub fn on_soft(mut self, what: OnSoft) -> Self {
        self.patch.on_soft = Some(what);
        self
    }

    /// What happens to running work at a hard limit.
    #[must_use]
    pub fn on_hard(mut self, what: OnHard) -> Self {
        self.patch.on_hard = Some(what);
        self
    }
}

/// A quota to make: how much may start, run and weigh under each of its keys.
///
/// ```
/// use ff_sdk::QuotaSpec;
/// let provider = QuotaSpec::new("default").rate(60, 60_000).concurrency(8).weighted(90_000, 60_000);
/// assert_eq!(provider.fields.concurrency, Some(8));
/// ```
#[derive(Clone, Debug)]
pub struct QuotaSpec {
    /// What is said about it; the id is minted unless one is proposed.
    pub fields: CreateQuotaBody,
}

impl QuotaSpec {
    /// A quota of a namespace, which limits nothing yet.
    #[must_use]
    pub fn new(namespace: impl Into<String>) -> Self {
        Self {
            fields: CreateQuotaBody {
                quota_id: Some(QuotaPolicyId::mint()),
                namespace: Some(namespace.into()),
                ..CreateQuotaBody::default()
            },
        }
    }

    /// Proposes an id; the same quota made again under it is the first one.
    #[must_use]
    pub fn id(mut self, id: QuotaPolicyId) -> Self {
        self.fields.quota_id = Some(id);
        self
    }

    /// So many starts in any window of this length.
    #[must_use]
    pub fn rate(mut self, limit: u64, window_ms: u64) -> Self {
        let (limit, window_ms) = (amount(limit), amount(window_ms));
        self.fields.rate = Some(QuotaRateBody { limit, window_ms, mode: None });
        self
    }

    /// So many starts in a window, evenly spread over it.
    #[must_use]
    pub fn smooth_rate(mut self, limit: u64, window_ms: u64) -> Self {
        let (limit, window_ms) = (amount(limit), amount(window_ms));
        self.fields.rate = Some(QuotaRateBody { limit, window_ms, mode: Some(RateMode::Smooth) });
        self
    }

    /// So many running at once.
    #[must_use]
    pub fn concurrency(mut self, limit: u64) -> Self {
        self.fields.concurrency = Some(amount(limit));
        self
    }

    /// So much weight started in any window of this length.
    #[must_use]
    pub fn weighted(mut self, limit: u64, window_ms: u64) -> Self {
        self.fields.weighted = Some(QuotaWeights { limit: amount(limit), window_ms: amount(window_ms) });
        self
    }

    /// Work that is suspended or waits for children keeps its place among those that run.
    #[must_use]
    pub fn hold_while_suspended(mut self) -> Self {
        self.fields.hold_while_suspended = Some(true);
        self
    }
}

/// Gives what is submitted its budgets and quotas.
macro_rules! limited {
    ($($spec:ident),*) => { $(
        impl $spec {
            fn limited(mut self, change: impl FnOnce(NewExecution) -> NewExecution) -> Self {
                self.fields = change(NewExecution { fields: self.fields }).fields;
                self
            }

            /// Starts it only while something is left of a budget.
            #[must_use]
            pub fn budget(self, budget: &BudgetId) -> Self {
                self.limited(|new| new.budget(budget))
            }

            /// Starts it only when this much fits into a budget, and holds that for it.
            #[must_use]
            pub fn estimate(self, budget: &BudgetId, dimensions: &[(&str, u64)]) -> Self {
                self.limited(|new| new.estimate(budget, dimensions))
            }

            /// Counts it against a quota, under a key.
            #[must_use]
            pub fn quota(self, quota: &QuotaPolicyId, key: impl Into<String>) -> Self {
                self.limited(|new| new.quota(quota, key))
            }

            /// Counts it against a quota, under a key, with a weight.
            #[must_use]
            pub fn weighing(self, quota: &QuotaPolicyId, key: impl Into<String>, weight: u64) -> Self {
                self.limited(|new| new.weighing(quota, key, weight))
            }
        }
    )* };
}

limited!(MemberSpec, ChildSpec);

impl FlowSpec {
    /// Starts its members only while something is left of a budget.
    #[must_use]
    pub fn budget(mut self, budget: &BudgetId) -> Self {
        let named = BudgetRef { budget_id: *budget.as_uuid(), estimate: None };
        self.fields.budgets.get_or_insert_default().push(named);
        self
    }
}
