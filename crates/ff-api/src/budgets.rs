//! Budgets: how much may be used, made and changed by operators.

use std::collections::BTreeMap;

use ff_core::types::BudgetId;
use ff_script::generated::{
    self, BudgetAction, BudgetPeriod, BudgetScope, DimensionLimit, NewBudget, OnHard, OnSoft, ScopeType,
};
use serde::{Deserialize, Serialize};

use crate::access::{LOOK, STEER};
use crate::blocked::BlockedPage;
use crate::operation::{Nothing, operations};
use crate::page::{Listed, PageQuery};
use crate::parts;
use crate::reset::Reset;
#[cfg(feature = "openapi")]
use crate::vocabulary;
use crate::{Invalid, Made};

/// The largest amount.
const AMOUNT_MAX: i64 = ff_core::limits::TIME_MS_MAX;
/// The longest name of a dimension.
const DIMENSION_BYTES_MAX: usize = *ff_core::bounds::DIMENSION.end();

/// The limits of one dimension; 0 lets nothing pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitBody {
    /// Never more than this is used.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LimitAmount>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hard: Option<i64>,
    /// At this much, `on_soft` says what happens.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LimitAmount>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<i64>,
}

/// A budget to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateBudgetBody {
    /// Its id; minted by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_id: Option<BudgetId>,
    /// The namespace it belongs to; the default is `default`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Namespace>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The budget it stands under: what is used here is used there as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<BudgetId>,
    /// What it applies to; the default is `custom`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeBody>,
    /// What it measures, and how much of it may be used.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Limits))]
    #[serde(deserialize_with = "ff_core::json::objects")]
    pub dimensions: BTreeMap<String, LimitBody>,
    /// When its period ends; the default is `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
    /// What happens at a soft limit; the default is `notify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_soft: Option<OnSoft>,
    /// What happens at a hard limit; the default is `suspend`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_hard: Option<OnHard>,
}

impl CreateBudgetBody {
    /// The budget that this means; below a parent it gets an id of the parent's partition.
    ///
    /// # Errors
    /// When a limit or the name of a dimension is out of bounds.
    pub fn read(self) -> Result<NewBudget, Invalid> {
        let limit = |(name, LimitBody { hard, soft }): (String, LimitBody)| {
            within(&name, hard, soft).map(|()| DimensionLimit { name, hard, soft })
        };
        let mint = || self.parent.map_or_else(BudgetId::mint, |parent| BudgetId::mint_with_seed(parent.seed()));
        Ok(NewBudget {
            parent: self.parent,
            ..NewBudget::new(
                self.budget_id.unwrap_or_else(mint),
                self.namespace.unwrap_or_else(|| "default".to_owned()),
                self.scope.unwrap_or(ScopeBody::Bare(ScopeType::Custom)).into(),
                self.dimensions.into_iter().map(limit).collect::<Result<_, _>>()?,
                self.reset.unwrap_or(Reset::NEVER).into(),
                self.on_soft.unwrap_or(OnSoft::Notify),
                self.on_hard.unwrap_or(OnHard::Suspend),
            )
        })
    }
}

/// Refuses the name of a dimension that is out of bounds.
pub(crate) fn dimension(name: &str) -> Result<(), Invalid> {
    if (1..=DIMENSION_BYTES_MAX).contains(&name.len()) {
        return Ok(());
    }
    let problem = format!("must have names of 1 to {DIMENSION_BYTES_MAX} bytes, got one of {}", name.len());
    Err(Invalid::new("dimensions", problem))
}

fn within(name: &str, hard: Option<i64>, soft: Option<i64>) -> Result<(), Invalid> {
    dimension(name)?;
    for (which, limit) in [("hard", hard), ("soft", soft)] {
        if let Some(n) = limit.filter(|n| !(0..=AMOUNT_MAX).contains(n)) {
            let field = format!("dimensions.{name}.{which}");
            return Err(Invalid::new(field, format!("must be in 0..={AMOUNT_MAX}, got {n}")));
        }
    }
    Ok(())
}

/// New limits of one dimension. `null` takes a limit away; one that is absent stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitPatchBody {
    /// Never more than this is used.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LimitAmount>))]
    #[serde(default, deserialize_with = "ff_core::json::named", skip_serializing_if = "Option::is_none")]
    pub hard: Option<Option<i64>>,
    /// At this much, `on_soft` says what happens.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LimitAmount>))]
    #[serde(default, deserialize_with = "ff_core::json::named", skip_serializing_if = "Option::is_none")]
    pub soft: Option<Option<i64>>,
}

/// A change of a budget. What is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeBudgetBody {
    /// New limits by dimension.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::LimitPatches, required = false))]
    #[serde(default, deserialize_with = "ff_core::json::objects", skip_serializing_if = "BTreeMap::is_empty")]
    pub dimensions: BTreeMap<String, LimitPatchBody>,
    /// What happens at a soft limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_soft: Option<OnSoft>,
    /// What happens at a hard limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_hard: Option<OnHard>,
}

impl ChangeBudgetBody {
    /// The limits of the dimensions that change, given those of the budget as it stands.
    ///
    /// # Errors
    /// When a limit is out of bounds, or the budget has no such dimension.
    pub fn limits(&self, budget: &[generated::DimensionStatus]) -> Result<Vec<DimensionLimit>, Invalid> {
        let limit = |(name, patch): (&String, &LimitPatchBody)| {
            within(name, patch.hard.flatten(), patch.soft.flatten())?;
            let now = budget.iter().find(|dimension| dimension.name == *name);
            let unknown = || Invalid::new(format!("dimensions.{name}"), "is no dimension of the budget");
            let now = now.ok_or_else(unknown)?;
            let (hard, soft) = (patch.hard.unwrap_or(now.hard), patch.soft.unwrap_or(now.soft));
            Ok(DimensionLimit { name: name.clone(), hard, soft })
        };
        self.dimensions.iter().map(limit).collect()
    }
}

/// What a budget applies to: a type with its id, or the bare type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(
    untagged,
    expecting = "it must be namespace, tenant, flow, lane or custom, or an object with such a type and an id"
)]
pub enum ScopeBody {
    /// The type alone.
    Bare(ScopeType),
    /// The type and what it names.
    Named(NamedScope),
}

/// A type of scope and what it names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NamedScope {
    /// The type.
    pub r#type: ScopeType,
    /// The lane, the flow, the tenant.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::ScopeId>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl From<ScopeBody> for BudgetScope {
    fn from(scope: ScopeBody) -> Self {
        match scope {
            ScopeBody::Bare(r#type) => Self { r#type, id: None },
            ScopeBody::Named(NamedScope { r#type, id }) => Self { r#type, id },
        }
    }
}

/// One dimension as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DimensionStatus {
    /// Never more than this is used.
    pub hard: Option<i64>,
    /// At this much, `on_soft` says what happens.
    pub soft: Option<i64>,
    /// How much is used in this period.
    pub used: i64,
    /// How much is held for work that was admitted or has reserved it.
    pub held: i64,
    /// What is left below the hard limit; `null` without one.
    pub remaining: Option<i64>,
}

/// The dimensions of a budget as they stand, by name.
#[must_use]
pub fn dimensions(dimensions: Vec<generated::DimensionStatus>) -> BTreeMap<String, DimensionStatus> {
    let dimension = |status: generated::DimensionStatus| {
        let generated::DimensionStatus { name, hard, soft, used, held } = status;
        let remaining = hard.map(|hard| (hard - used - held).max(0));
        (name, DimensionStatus { hard, soft, used, held, remaining })
    };
    dimensions.into_iter().map(dimension).collect()
}

/// A budget as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Budget {
    /// The budget.
    pub budget_id: BudgetId,
    /// The namespace it belongs to.
    pub namespace: String,
    /// The budget it stands under.
    pub parent: Option<BudgetId>,
    /// What it applies to.
    pub scope: BudgetScope,
    /// What it measures.
    pub dimensions: BTreeMap<String, DimensionStatus>,
    /// When its period ends.
    pub reset: Reset,
    /// What happens at a soft limit.
    pub on_soft: OnSoft,
    /// What happens at a hard limit.
    pub on_hard: OnHard,
    /// Counts its changes.
    pub version: i64,
    /// When it was made.
    pub created_at: i64,
    /// When its period began.
    pub period_since: i64,
    /// When its period ends.
    pub next_reset_at: Option<i64>,
    /// An operator lets work start past the soft limits.
    pub approved: bool,
    /// What operators did to it, oldest first.
    pub actions: Vec<BudgetAction>,
    /// Periods that ended.
    pub past: Vec<BudgetPeriod>,
    /// How many hold something against it. Shown for one budget, not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holders: Option<i64>,
    /// How many budgets are right below it. Shown for one budget, not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<i64>,
}

impl From<generated::Budget> for Budget {
    fn from(budget: generated::Budget) -> Self {
        Self {
            budget_id: budget.budget_id,
            namespace: budget.namespace,
            parent: budget.parent,
            scope: budget.scope,
            dimensions: dimensions(budget.dimensions),
            reset: budget.reset.into(),
            on_soft: budget.on_soft,
            on_hard: budget.on_hard,
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

/// Which budgets to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct BudgetsQuery {
    /// Those of a namespace.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Namespace>))]
    pub namespace: Option<String>,
    /// Those of a type of scope.
    pub scope: Option<ScopeType>,
    /// How many; at most 64 come at once.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// A correction of what is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CorrectBody {
    /// The dimension that was counted wrong.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Dimension))]
    pub dimension: String,
    /// By how much; below 0 gives back.
    #[cfg_attr(
        feature = "openapi",
        schema(minimum = -9_007_199_254_740_991_i64, maximum = 9_007_199_254_740_991_i64)
    )]
    pub delta: i64,
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Reason))]
    pub reason: String,
}

operations! {
    /// Makes a budget, below another one when it names a parent.
    CreateBudget budget_create: post "/v1/budgets", STEER;
    takes CreateBudgetBody;
    returns Made<Budget>: (status = 201, description = "It is new.", body = Budget), (status = 200, description = "It was there already: the same id with the same definition.", body = Budget);
    status Made::status;
    fails &["budget_not_found", "budget_in_use", "idempotency_conflict"];

    /// One page of budgets, newest first; at most 64.
    ListBudgets budget_list: get "/v1/budgets", LOOK;
    asks BudgetsQuery;
    returns Listed<Budget>: (status = 200, body = Listed<Budget>);

    /// A budget as it stands.
    GetBudget budget_get: get "/v1/budgets/{name}", LOOK;
    at (parts::Budget);
    returns Budget: (status = 200, body = Budget);
    fails &["budget_not_found"];

    /// Changes limits and what happens at them; what is absent stays.
    ChangeBudget budget_change: patch "/v1/budgets/{name}", STEER;
    at (parts::Budget);
    takes ChangeBudgetBody;
    returns Budget: (status = 200, body = Budget);
    fails &["budget_not_found", "budget_version_conflict"];

    /// Deletes a budget that nothing holds from.
    DeleteBudget budget_delete: delete "/v1/budgets/{name}", STEER;
    at (parts::Budget);
    returns Nothing: (status = 204, description = "It is gone.");
    fails &["budget_not_found", "budget_in_use"];

    /// The executions that wait for a budget, the first to go on first.
    ListBlockedOnBudget budget_list_blocked: get "/v1/budgets/{name}/blocked", LOOK;
    at (parts::Budget);
    asks PageQuery;
    returns BlockedPage: (status = 200, body = BlockedPage);
    fails &["budget_not_found"];

    /// Begins a new period: nothing is used.
    ResetBudget budget_reset: post "/v1/budgets/{name}/reset", STEER;
    at (parts::Budget);
    returns Budget: (status = 200, body = Budget);
    fails &["budget_not_found"];

    /// Lets work start past the soft limits until the period ends.
    ApproveBudget budget_approve: post "/v1/budgets/{name}/approve", STEER;
    at (parts::Budget);
    returns Budget: (status = 200, body = Budget);
    fails &["budget_not_found"];

    /// Corrects what is used of a dimension, with a reason.
    CorrectBudget budget_correct: post "/v1/budgets/{name}/correct", STEER;
    at (parts::Budget);
    takes CorrectBody;
    returns Budget: (status = 200, body = Budget);
    fails &["budget_not_found"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_as_it_is_written() {
        for text in [r#""custom""#, r#"{"type":"lane","id":"mail"}"#] {
            let scope: ScopeBody = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&scope).unwrap(), text);
        }
    }

    #[test]
    fn a_limit_that_is_null_is_taken_away_and_one_that_is_absent_stays() {
        let text = r#"{"dimensions":{"tokens":{"hard":null},"usd":{"soft":5}}}"#;
        let change: ChangeBudgetBody = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&change).unwrap(), text);
        let now = |name: &str| generated::DimensionStatus {
            hard: Some(7),
            soft: Some(3),
            ..generated::DimensionStatus::new(name.to_owned(), 0, 0)
        };
        let limits = change.limits(&[now("tokens"), now("usd")]).unwrap();
        let limits: Vec<_> = limits.iter().map(|limit| (limit.hard, limit.soft)).collect();
        assert_eq!(limits, [(None, Some(3)), (Some(7), Some(5))]);
        assert_eq!(change.limits(&[now("usd")]).unwrap_err().field, "dimensions.tokens");
    }

    #[test]
    fn a_dimension_is_an_object_and_is_named_once() {
        for text in [r#"{"tokens":[1,2]}"#, r#"{"tokens":{},"tokens":{}}"#] {
            assert!(
                serde_json::from_str::<CreateBudgetBody>(&format!(r#"{{"dimensions":{text}}}"#)).is_err(),
                "{text}"
            );
        }
    }
}
