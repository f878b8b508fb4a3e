//! A budget as the API shows and takes it.

use std::collections::BTreeMap;
use std::fmt;

use ff_core::json::Once;
use ff_core::types::BudgetId;
use ff_engine::{BudgetStatus, Reserved, UsageAnswer};
use ff_script::generated::{
    Budget, BudgetAction, BudgetPeriod, BudgetReset, BudgetScope, DimensionStatus, LedgerLine, OnHard, OnSoft,
    ResetType, ScopeType,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::openapi::vocabulary;
use crate::problem::{Answer, Problem};

/// The largest amount.
pub const AMOUNT_MAX: i64 = ff_core::limits::TIME_MS_MAX;

/// The longest name of a dimension.
const DIMENSION_BYTES_MAX: usize = 64;

/// Named fields, never a list of them in their order, which readers take as well.
#[derive(Debug, Clone, Default)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Reader(std::marker::PhantomData))
    }
}

fn named(name: &str) -> Answer<()> {
    if (1..=DIMENSION_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    let problem = format!("must have names of 1 to {DIMENSION_BYTES_MAX} bytes, got one of {}", name.len());
    Err(Problem::invalid("dimensions", problem))
}

/// Amounts by dimension, none of them out of bounds.
pub fn amounts(dimensions: Once<i64>) -> Answer<BTreeMap<String, i64>> {
    for (name, n) in &dimensions.0 {
        named(name)?;
        if !(1..=AMOUNT_MAX).contains(n) {
            return Err(Problem::invalid(
                format!("dimensions.{name}"),
                format!("must be in 1..={AMOUNT_MAX}, got {n}"),
            ));
        }
    }
    Ok(dimensions.0)
}

/// Refuses limits out of bounds; 0 lets nothing pass.
pub fn limits(name: &str, hard: Option<i64>, soft: Option<i64>) -> Answer<()> {
    named(name)?;
    for (which, limit) in [("hard", hard), ("soft", soft)] {
        if let Some(n) = limit.filter(|n| !(0..=AMOUNT_MAX).contains(n)) {
            let field = format!("dimensions.{name}.{which}");
            return Err(Problem::invalid(field, format!("must be in 0..={AMOUNT_MAX}, got {n}")));
        }
    }
    Ok(())
}

/// What a budget applies to: a type with its id, or the bare type.
#[derive(Deserialize, ToSchema)]
#[serde(untagged, expecting = "it must be a type of scope, or an object with type and id")]
pub enum ScopeBody {
    /// The type alone.
    #[schema(value_type = ScopeType)]
    Bare(String),
    /// The type and what it names.
    Named(NamedScope),
}

/// A type of scope and what it names.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedScope {
    #[schema(value_type = ScopeType)]
    r#type: String,
    /// The lane, the flow, the tenant.
    #[schema(value_type = Option<vocabulary::ScopeId>)]
    id: Option<String>,
}

impl ScopeBody {
    /// As the library takes it.
    pub fn scope(self) -> Answer<BudgetScope> {
        let (word, id) = match self {
            Self::Bare(word) => (word, None),
            Self::Named(NamedScope { r#type, id }) => (r#type, id),
        };
        let r#type = crate::word::word("scope.type", &word)?;
        Ok(BudgetScope { r#type, id })
    }
}

/// When a period ends; both ways, as the API takes and shows it.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged, expecting = "it must be none, {interval_ms} or {calendar, zone}")]
#[schema(as = BudgetReset)]
pub enum ResetShape {
    /// After so many milliseconds.
    Interval(IntervalReset),
    /// With the day or month of a time zone.
    Calendar(CalendarReset),
    /// `none`.
    #[schema(value_type = NoReset)]
    Word(String),
}

/// A period that lasts so long.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IntervalReset {
    /// How long a period is.
    #[schema(minimum = 1_000, maximum = 315_360_000_000_i64)]
    interval_ms: i64,
}

/// A period that is a day or a month of a time zone.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CalendarReset {
    #[schema(value_type = CalendarUnit)]
    calendar: String,
    /// UTC when it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<vocabulary::Zone>)]
    zone: Option<String>,
}

/// How long a period of the calendar is.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes a word")]
enum CalendarUnit {
    Day,
    Month,
}

/// A budget that is never reset.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes a word")]
enum NoReset {
    None,
}

impl ResetShape {
    /// As the library takes it.
    pub fn reset(self) -> Answer<BudgetReset> {
        let none = BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None };
        Ok(match self {
            Self::Interval(IntervalReset { interval_ms }) => {
                BudgetReset { r#type: ResetType::Interval, interval_ms: Some(interval_ms), ..none }
            }
            Self::Calendar(CalendarReset { calendar, zone }) => {
                let all = [ResetType::Day, ResetType::Month];
                let r#type = crate::word::one_of("reset.calendar", &calendar, &all)?;
                BudgetReset { r#type, zone, ..none }
            }
            Self::Word(word) if word == "none" => none,
            Self::Word(word) => {
                let problem = format!("{word:?} is neither none nor {{interval_ms}} nor {{calendar, zone}}");
                return Err(Problem::invalid("reset", problem));
            }
        })
    }
}

impl From<BudgetReset> for ResetShape {
    fn from(reset: BudgetReset) -> Self {
        match reset {
            BudgetReset { interval_ms: Some(interval_ms), .. } => Self::Interval(IntervalReset { interval_ms }),
            BudgetReset { r#type: ResetType::None, .. } => Self::Word("none".to_owned()),
            BudgetReset { r#type, zone, .. } => {
                Self::Calendar(CalendarReset { calendar: r#type.as_str().to_owned(), zone })
            }
        }
    }
}

/// One dimension as it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = DimensionStatus)]
pub struct DimensionShape {
    hard: Option<i64>,
    soft: Option<i64>,
    used: i64,
    held: i64,
    /// What is left below the hard limit; nothing without one.
    remaining: Option<i64>,
}

/// A budget as it stands.
#[derive(Serialize, ToSchema)]
pub struct BudgetShape {
    budget_id: BudgetId,
    namespace: String,
    parent: Option<BudgetId>,
    scope: BudgetScope,
    dimensions: BTreeMap<String, DimensionShape>,
    reset: ResetShape,
    #[schema(value_type = OnSoft)]
    on_soft: &'static str,
    #[schema(value_type = OnHard)]
    on_hard: &'static str,
    version: i64,
    created_at: i64,
    period_since: i64,
    next_reset_at: Option<i64>,
    approved: bool,
    actions: Vec<BudgetAction>,
    past: Vec<BudgetPeriod>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holders: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<i64>,
}

/// The dimensions of a budget as they stand.
pub fn dimensions(dimensions: Vec<DimensionStatus>) -> BTreeMap<String, DimensionShape> {
    let dimension = |d: DimensionStatus| {
        let remaining = d.hard.map(|hard| (hard - d.used - d.held).max(0));
        (d.name, DimensionShape { hard: d.hard, soft: d.soft, used: d.used, held: d.held, remaining })
    };
    dimensions.into_iter().map(dimension).collect()
}

impl From<Budget> for BudgetShape {
    fn from(budget: Budget) -> Self {
        Self {
            budget_id: budget.budget_id,
            namespace: budget.namespace,
            parent: budget.parent,
            scope: budget.scope,
            dimensions: dimensions(budget.dimensions),
            reset: budget.reset.into(),
            on_soft: budget.on_soft.as_str(),
            on_hard: budget.on_hard.as_str(),
            version: budget.version,
            created_at: budget.created_at,
            period_since: budget.period_since,
            next_reset_at: budget.next_reset_at,
            approved: budget.approved,
            actions: budget.actions.into_iter().collect(),
            past: budget.past.into_iter().collect(),
            holders: None,
            children: None,
        }
    }
}

impl From<BudgetStatus> for BudgetShape {
    fn from(BudgetStatus { budget, holders, children }: BudgetStatus) -> Self {
        Self { holders: Some(holders), children: Some(children), ..budget.into() }
    }
}

/// What a budget answered to a report, a settlement or a reservation.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = BudgetOutcome)]
pub struct OutcomeShape {
    /// ok, already_applied, soft_breach or hard_breach; released; gone when a weight does not count any more.
    pub outcome: &'static str,
    /// The reservation, if there is one now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<uuid::Uuid>,
    /// Until when it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// The budget whose limit it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_id: Option<BudgetId>,
    /// The dimension of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    /// How much is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<i64>,
    /// The limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// What the budget says to do at its hard limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OnHard>)]
    pub action: Option<&'static str>,
    /// The lease is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ended: Option<bool>,
}

impl OutcomeShape {
    /// What became of a reservation.
    pub fn of_reservation(reservation_id: uuid::Uuid, reserved: Reserved) -> Self {
        match reserved {
            Reserved::Held { expires_at } => {
                Self { outcome: "ok", reservation_id: Some(reservation_id), expires_at, ..Self::default() }
            }
            Reserved::HardBreach { budget_id, dimension, used, limit } => Self {
                outcome: "hard_breach",
                budget_id: Some(budget_id),
                dimension: Some(dimension),
                used: Some(used),
                limit: Some(limit),
                ..Self::default()
            },
        }
    }
}

impl From<UsageAnswer> for OutcomeShape {
    fn from(answer: UsageAnswer) -> Self {
        match answer {
            UsageAnswer::Ok => Self { outcome: "ok", ..Self::default() },
            UsageAnswer::AlreadyApplied => Self { outcome: "already_applied", ..Self::default() },
            UsageAnswer::SoftBreach { budget_id, dimension, used, limit } => Self {
                outcome: "soft_breach",
                budget_id: Some(budget_id),
                dimension: Some(dimension),
                used: Some(used),
                limit: Some(limit),
                ..Self::default()
            },
            UsageAnswer::HardBreach { breach, ended } => Self {
                outcome: "hard_breach",
                budget_id: Some(breach.budget_id),
                dimension: Some(breach.dimension),
                used: Some(breach.used),
                limit: Some(breach.limit),
                action: Some(breach.action.as_str()),
                lease_ended: Some(ended),
                ..Self::default()
            },
        }
    }
}

/// The sum of what was accepted, by dimension.
pub fn used(ledger: &[LedgerLine]) -> BTreeMap<String, i64> {
    let mut used: BTreeMap<String, i64> = BTreeMap::new();
    for line in ledger.iter().filter(|line| line.accepted > 0) {
        let sum = used.entry(line.dimension.clone()).or_default();
        *sum = sum.saturating_add(line.accepted);
    }
    used
}
