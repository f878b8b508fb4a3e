//! Why an execution is not running, and what would change that.

use std::collections::BTreeMap;

use ff_core::types::{BudgetId, ExecutionId, FlowId, QuotaPolicyId};
use ff_script::generated::{
    Child, ChildrenFacts, DependencyFacts, InboundPolicy, LaneState, PublicState, QuotaKeyState, Upstream,
};
use serde::{Deserialize, Serialize};

use crate::access::FOLLOW;
use crate::budgets::DimensionStatus;
use crate::operation::operations;
use crate::parts::Id;
use crate::suspensions::Suspension;

/// Why an execution is not running, and what would change that.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Explanation {
    /// The execution.
    pub execution_id: ExecutionId,
    /// Its state.
    pub state: PublicState,
    /// True while nothing but its turn is missing, or when it runs.
    pub can_run: bool,
    /// What is in the way; nothing when it can run.
    pub reasons: Vec<BlockingCause>,
    /// The lane it is in.
    pub lane: LaneFacts,
    /// Its place in its lane, while nothing but its turn is missing.
    pub place: Option<QueuePlace>,
    /// The capabilities it requires, when it requires some.
    pub requires: Option<RequiredCapabilities>,
    /// Each quota it names, as its key stands now.
    pub quotas: Vec<QuotaFacts>,
    /// Each budget it names, with those above it.
    pub budgets: Vec<BudgetFacts>,
    /// What it waits for: open waitpoints and how far its condition is.
    pub suspension: Option<Suspension>,
    /// How far the edges into it are, in a flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Dependencies>,
    /// The children it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<OpenChildren>,
}

/// One thing in the way of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BlockingCause {
    /// What it is, as one word.
    pub reason: String,
    /// What is known of it, by name. Times are texts of epoch milliseconds.
    pub detail: BTreeMap<String, String>,
    /// What would unblock it.
    pub remedy: String,
}

/// The lane of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LaneFacts {
    /// The lane's namespace.
    pub namespace: String,
    /// The lane.
    pub lane: String,
    /// What the lane lets happen.
    pub state: LaneState,
    /// How many of its executions may run at once.
    pub max_active: Option<i64>,
    /// How many count against `max_active`; absent without one.
    pub active: Option<i64>,
}

/// The place of an execution in its lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueuePlace {
    /// The queue it stands in.
    pub queue: String,
    /// How many eligible executions of the lane stand before it.
    pub ahead: i64,
    /// There are more than were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// What an execution requires of its worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RequiredCapabilities {
    /// The capabilities.
    pub capabilities: Vec<String>,
    /// Some live worker of the lane has them all.
    pub covered: bool,
    /// The live worker of the lane that lacks the fewest.
    pub nearest: Option<NearestWorker>,
}

/// A live worker, and the capabilities it lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NearestWorker {
    /// The worker's instance.
    pub instance: String,
    /// What it lacks.
    pub missing: Vec<String>,
}

/// A quota an execution names, as its key stands now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuotaFacts {
    /// The quota.
    pub quota_id: QuotaPolicyId,
    /// How much the execution counts.
    pub weight: i64,
    /// `not found` when the quota is gone: nothing starts that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What would let it pass, while it would not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The key.
    #[serde(flatten)]
    pub state: QuotaKeyState,
}

/// A budget an execution names, and those above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BudgetFacts {
    /// The budget.
    pub budget_id: BudgetId,
    /// What the execution is expected to spend.
    pub estimate: Option<BTreeMap<String, i64>>,
    /// `not found` when the budget is gone: nothing starts that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The limit in the way, while there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_the_way: Option<BudgetInTheWay>,
    /// Itself first, then those above it: each has to let it pass.
    pub path: Vec<BudgetLevel>,
}

/// One of the budgets that have to let an execution pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BudgetLevel {
    /// The budget.
    pub budget_id: BudgetId,
    /// Its dimensions by name.
    pub dimensions: BTreeMap<String, DimensionStatus>,
    /// Work may start past its soft limits in this period.
    pub approved: bool,
    /// When its next period begins.
    pub next_reset_at: Option<i64>,
}

/// The first limit that does not let an execution pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BudgetInTheWay {
    /// The budget.
    pub budget_id: BudgetId,
    /// Which of its limits.
    pub limit: LimitKind,
    /// The dimension.
    pub dimension: String,
    /// What would let it pass.
    pub remedy: String,
}

/// One of the two limits of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Nothing passes it.
    Hard,
    /// An approval is missing.
    Soft,
}

/// How far the edges into a member are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Dependencies {
    /// Which of the edges count.
    pub policy: InboundPolicy,
    /// How many edges must be met.
    pub needed: i64,
    /// How many there are.
    pub total: i64,
    /// How many are met.
    pub met: i64,
    /// How many can no longer be.
    pub dead: i64,
    /// The first upstreams that have not ended.
    pub open: Vec<Upstream>,
}

impl From<DependencyFacts> for Dependencies {
    fn from(facts: DependencyFacts) -> Self {
        let DependencyFacts { policy, needed, total, met, dead, held: _, open } = facts;
        Self { policy, needed, total, met, dead, open }
    }
}

impl Dependencies {
    /// The same in a few words.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let open: Vec<String> =
            self.open.iter().map(|upstream| format!("{} ({})", upstream.key, upstream.state)).collect();
        vec![("met", format!("{} of {}", self.met, self.needed)), ("open", open.join(", "))]
    }
}

/// The children an execution waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OpenChildren {
    /// How many it has spawned.
    pub total: i64,
    /// How many of them have not ended.
    pub open: i64,
    /// The flow that runs in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested_flow_id: Option<FlowId>,
    /// The first of those that have not ended.
    pub waits_for: Vec<OpenChild>,
}

/// A child that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OpenChild {
    /// The child.
    pub execution_id: ExecutionId,
    /// A name its parent knows it by.
    pub key: Option<String>,
    /// Its state.
    pub state: PublicState,
}

impl From<Child> for OpenChild {
    fn from(child: Child) -> Self {
        Self { execution_id: child.execution_id, key: child.key, state: child.state }
    }
}

impl OpenChildren {
    /// The children of an execution, and the first of them that have not ended.
    #[must_use]
    pub fn new(facts: ChildrenFacts, waits_for: Vec<OpenChild>) -> Self {
        Self { total: facts.total, open: facts.open, nested_flow_id: facts.nested, waits_for }
    }

    /// The same in a few words.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        if let Some(flow) = self.nested_flow_id {
            return vec![("nested_flow_id", flow.to_string())];
        }
        let name = |child: &OpenChild| child.key.clone().unwrap_or_else(|| child.execution_id.to_string());
        let open: Vec<String> =
            self.waits_for.iter().map(|child| format!("{} ({})", name(child), child.state)).collect();
        vec![("open", format!("{} of {}", self.open, self.total)), ("waits_for", open.join(", "))]
    }
}

operations! {
    /// Why an execution is not running, and what would change that.
    ExplainExecution execution_explain: get "/v1/executions/{id}/explain", FOLLOW;
    at (Id);
    returns Explanation: (status = 200, body = Explanation);
    fails &["execution_not_found"];
}
