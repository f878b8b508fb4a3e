//! Budgets: created with their calendar, found by their scopes, changed by operators.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ff_core::EngineError;
use ff_core::error::{Detail, ValidationKind};
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, FlowId, is_name};
use ff_script::generated::{
    self as wire, AdmitBudget, AdmitBudgetReply, ApproveBudget, ApproveBudgetReply, Budget, BudgetCandidate,
    BudgetPosition, BudgetRef, BudgetReset, BudgetScope, BudgetVerdict, BudgetsOfScopes, BudgetsOfScopesReply,
    ChangeBudget, ChangeBudgetReply, CorrectBudget, CorrectBudgetReply, CreateBudget, CreateBudgetReply, DeleteBudget,
    DimensionLimit, GetBudget, GetBudgetReply, Holder, ListBudgets, ListBudgetsReply, NextDue, NextDueReply, NoteScope,
    OnHard, OnSoft, ReleaseBudget, ResetBudget, ResetBudgetReply, ScopeType, Submission,
};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};
use uuid::Uuid;

use super::{Operations, next_reset, refused_with};

const AT_ONCE: usize = 16;
const PAGE: usize = 64;
/// How often a change is made anew when another came in between.
const TRIES: usize = 8;
/// How many budgets an execution may name, those of its scopes included.
const BUDGETS_MAX: usize = 16;
/// How many budgets a namespace, a lane or a flow may have; the library's number.
const BUDGETS_PER_SCOPE_MAX: usize = 8;
/// How old may be what is known about scopes and about which budgets exist.
const SCOPE_AGE: Duration = Duration::from_secs(1);
/// What is remembered is forgotten beyond this many.
const REMEMBERED_MAX: usize = 10_000;

/// A budget to create; an id is minted unless one is proposed, below a parent in the parent's partition.
#[derive(Clone, Debug)]
pub struct NewBudget {
    /// Its id, if the caller chose one.
    pub budget_id: Option<BudgetId>,
    /// The namespace it belongs to.
    pub namespace: String,
    /// The budget it stands under.
    pub parent: Option<BudgetId>,
    /// What it applies to.
    pub scope: BudgetScope,
    /// What it measures, and how much of it may be used.
    pub dimensions: Vec<DimensionLimit>,
    /// When its period ends.
    pub reset: BudgetReset,
    /// What happens at a soft limit.
    pub on_soft: OnSoft,
    /// What happens at a hard limit.
    pub on_hard: OnHard,
}

/// A change of a budget; what is not named stays.
#[derive(Clone, Debug, Default)]
pub struct BudgetLimits {
    /// The new limits of dimensions; each replaces both limits of its dimension.
    pub limits: Vec<DimensionLimit>,
    /// What happens at a soft limit.
    pub on_soft: Option<OnSoft>,
    /// What happens at a hard limit.
    pub on_hard: Option<OnHard>,
    /// Only if the budget still has this version.
    pub version: Option<i64>,
}

/// A change of a budget that leaves alone what it does not name.
#[derive(Clone, Debug, Default)]
pub struct BudgetPatch {
    /// By dimension.
    pub limits: BTreeMap<String, LimitPatch>,
    /// What happens at a soft limit.
    pub on_soft: Option<OnSoft>,
    /// What happens at a hard limit.
    pub on_hard: Option<OnHard>,
}

/// New limits of a dimension; `Some(None)` takes one away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitPatch {
    /// The hard limit.
    pub hard: Option<Option<i64>>,
    /// The soft limit.
    pub soft: Option<Option<i64>>,
}

/// A budget as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetStatus {
    /// The budget.
    pub budget: Budget,
    /// How many hold something against it.
    pub holders: i64,
    /// How many budgets are right below it.
    pub children: i64,
}

/// Which budgets to list.
#[derive(Clone, Debug, Default)]
pub struct BudgetFilter {
    /// Of this namespace.
    pub namespace: Option<String>,
    /// Of this type of scope.
    pub scope: Option<ScopeType>,
}

/// Where a list of budgets goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetCursor {
    created_at: i64,
    budget_id: BudgetId,
}

impl fmt::Display for BudgetCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.created_at, self.budget_id)
    }
}

impl FromStr for BudgetCursor {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let wrong = || invalid("cursor", "is not a cursor of this list");
        let (created_at, id) = text.split_once('_').ok_or_else(wrong)?;
        Ok(Self { created_at: created_at.parse().map_err(|_| wrong())?, budget_id: id.parse().map_err(|_| wrong())? })
    }
}

/// One page of budgets, newest first; it may be short while more follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetPage {
    /// The budgets.
    pub items: Vec<Budget>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<BudgetCursor>,
}

/// What is known about scopes, and which budgets are known to exist.
#[derive(Default)]
pub(super) struct Scopes {
    of_scope: Mutex<HashMap<String, (Instant, Vec<BudgetId>)>>,
    known: Mutex<HashMap<BudgetId, (Instant, Arc<Known>)>>,
}

/// What never changes of a budget.
struct Known {
    namespace: String,
    dimensions: BTreeSet<String>,
}

impl Scopes {
    fn recall(&self, scope: &str) -> Option<Vec<BudgetId>> {
        let scopes = self.of_scope.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.get(scope).filter(|(at, _)| at.elapsed() < SCOPE_AGE).map(|(_, ids)| ids.clone())
    }

    fn remember(&self, scope: String, ids: Vec<BudgetId>) {
        let mut scopes = self.of_scope.lock().unwrap_or_else(PoisonError::into_inner);
        if scopes.len() >= REMEMBERED_MAX {
            scopes.clear();
        }
        scopes.insert(scope, (Instant::now(), ids));
    }

    fn forget(&self) {
        self.of_scope.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

fn invalid(field: impl Into<String>, detail: impl Into<String>) -> EngineError {
    EngineError::Validation { kind: ValidationKind::InvalidArgument { field: field.into() }, detail: detail.into() }
}

/// The name under which submissions find a scope's budgets; nothing for scopes that apply only where they are attached.
fn scope_name(scope: &BudgetScope, namespace: &str) -> Result<Option<String>, EngineError> {
    let id = || scope.id.as_deref().ok_or_else(|| invalid("scope.id", "is missing"));
    Ok(match scope.r#type {
        ScopeType::Tenant | ScopeType::Custom => None,
        ScopeType::Namespace => {
            if scope.id.as_deref().is_some_and(|id| id != namespace) {
                return Err(invalid("scope.id", "must be the budget's namespace"));
            }
            Some(format!("namespace:{namespace}"))
        }
        ScopeType::Lane => Some(format!("lane:{namespace}/{}", id()?)),
        ScopeType::Flow => {
            let flow: FlowId = id()?.parse().map_err(|_| invalid("scope.id", "must be the id of a flow"))?;
            Some(format!("flow:{flow}"))
        }
    })
}

impl Operations {
    /// Creates a budget; the same again is a duplicate, and says so.
    pub async fn create_budget(&self, new: NewBudget, actor: &str) -> Result<(Budget, bool), Error> {
        let seed = new.parent.map(|parent| parent.seed());
        let budget_id = new.budget_id.unwrap_or_else(|| seed.map_or_else(BudgetId::mint, BudgetId::mint_with_seed));
        if new
            .parent
            .is_some_and(|parent| self.client.route_of_budget(&parent) != self.client.route_of_budget(&budget_id))
        {
            return Err(invalid("budget_id", "must end like its parent's: a tree shares a partition").into());
        }
        let scope = scope_name(&new.scope, &new.namespace)?;
        if let Some(scope) = &scope {
            self.fits_scope(scope, budget_id).await?;
        }
        let route = self.client.route_of_budget(&budget_id);
        // Calendars follow the store's clock, as everything else that is due does.
        let NextDueReply::Next { now, .. } = self.client.call(route, &NextDue {}).await?;
        let next_reset_at = next_reset(&new.reset, now).map_err(|error| invalid("reset.zone", error.to_string()))?;
        let budget = wire::NewBudget {
            budget_id,
            dimensions: new.dimensions,
            namespace: new.namespace,
            next_reset_at,
            on_hard: new.on_hard,
            on_soft: new.on_soft,
            parent: new.parent,
            reset: new.reset,
            scope: new.scope,
        };
        let call = CreateBudget { actor: actor.to_owned(), budget };
        let CreateBudgetReply::Created { budget, duplicate } = self.client.call(route, &call).await?;
        self.note_scope(budget_id, scope, None).await;
        Ok((budget, duplicate))
    }

    /// Refuses a budget of a scope that has as many as it may have.
    async fn fits_scope(&self, scope: &str, budget_id: BudgetId) -> Result<(), Error> {
        let call = BudgetsOfScopes { scopes: vec![scope.to_owned()] };
        let BudgetsOfScopesReply::Scopes { items } = self.client.call(Route::Fleet, &call).await?;
        let others = items.iter().flat_map(|item| &item.budget_ids).filter(|id| **id != budget_id).count();
        if others >= BUDGETS_PER_SCOPE_MAX {
            let problem =
                format!("has {others} budgets already, at most {BUDGETS_PER_SCOPE_MAX}; put this one under a parent");
            return Err(invalid("scope", problem).into());
        }
        Ok(())
    }

    /// Tells at once what the budget's partition owes its scope anyway.
    async fn note_scope(&self, budget_id: BudgetId, scope: Option<String>, gone: Option<bool>) {
        if let Some(scope) = scope
            && let Err(error) = self.client.call(Route::Fleet, &NoteScope { budget_id, gone, scope }).await
        {
            tracing::warn!(%budget_id, %error, "the budget's scope is told later");
        }
        self.scopes.forget();
    }

    /// A budget as it stands.
    pub async fn budget(&self, budget_id: BudgetId) -> Result<BudgetStatus, Error> {
        let route = self.client.route_of_budget(&budget_id);
        let GetBudgetReply::Found { budget, children, holders, .. } =
            self.client.call(route, &GetBudget { budget_id }).await?;
        Ok(BudgetStatus { budget, holders, children })
    }

    /// Budgets of every partition, newest first.
    pub async fn budgets(
        &self,
        filter: &BudgetFilter,
        after: Option<BudgetCursor>,
        limit: usize,
    ) -> Result<BudgetPage, Error> {
        let limit = limit.clamp(1, PAGE);
        let shares: Vec<(Vec<Budget>, Option<BudgetPosition>)> = stream::iter(self.client.budget_routes())
            .map(|route| async move {
                let call = ListBudgets {
                    after: after.map(|c| BudgetPosition { created_at: c.created_at, budget_id: c.budget_id }),
                    limit: i64::try_from(limit).expect("a page is small"),
                    namespace: filter.namespace.clone(),
                    scope: filter.scope,
                };
                let ListBudgetsReply::Page { items, last, more } = self.client.call(route, &call).await?;
                Ok::<_, Error>((items, if more { last } else { None }))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(merged(shares, limit))
    }

    /// Changes limits; work that waits for room goes on when there is some.
    pub async fn change_budget(&self, id: BudgetId, change: BudgetLimits, actor: &str) -> Result<Budget, Error> {
        let BudgetLimits { limits, on_soft, on_hard, version } = change;
        let call = ChangeBudget { actor: actor.to_owned(), budget_id: id, limits, on_hard, on_soft, version };
        let ChangeBudgetReply::Changed { budget, .. } =
            self.client.call(self.client.route_of_budget(&id), &call).await?;
        Ok(budget)
    }

    /// Changes what a patch names and leaves the rest; made anew when another change came in between.
    pub async fn patch_budget(&self, id: BudgetId, patch: &BudgetPatch, actor: &str) -> Result<Budget, Error> {
        let mut tries = 1;
        loop {
            let budget = self.budget(id).await?.budget;
            let mut limits = Vec::new();
            for (name, patch) in &patch.limits {
                let Some(now) = budget.dimensions.iter().find(|dimension| dimension.name == *name) else {
                    return Err(invalid(format!("dimensions.{name}"), "is no dimension of the budget").into());
                };
                let (hard, soft) = (patch.hard.unwrap_or(now.hard), patch.soft.unwrap_or(now.soft));
                limits.push(DimensionLimit { name: name.clone(), hard, soft });
            }
            let BudgetPatch { on_soft, on_hard, .. } = *patch;
            let change = BudgetLimits { limits, on_soft, on_hard, version: Some(budget.version) };
            match self.change_budget(id, change, actor).await {
                Err(error) if refused_with(&error) == Some(ErrorCode::BudgetVersionConflict) && tries < TRIES => {
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    /// Removes a budget that nothing needs any more.
    pub async fn delete_budget(&self, budget_id: BudgetId, actor: &str) -> Result<(), Error> {
        let scope = match self.budget(budget_id).await {
            Ok(BudgetStatus { budget, .. }) => scope_name(&budget.scope, &budget.namespace)?,
            // Deleted a moment ago, perhaps by a request whose answer was lost.
            Err(error) if refused_with(&error) == Some(ErrorCode::BudgetNotFound) => None,
            Err(error) => return Err(error),
        };
        let call = DeleteBudget { actor: actor.to_owned(), budget_id };
        self.client.call(self.client.route_of_budget(&budget_id), &call).await?;
        self.note_scope(budget_id, scope, Some(true)).await;
        Ok(())
    }

    /// Starts a new period now.
    pub async fn reset_budget(&self, budget_id: BudgetId, actor: &str) -> Result<Budget, Error> {
        let call = ResetBudget { actor: actor.to_owned(), budget_id, request_id: Some(Uuid::now_v7()) };
        let ResetBudgetReply::Reset { budget } =
            self.client.call(self.client.route_of_budget(&budget_id), &call).await?;
        Ok(budget)
    }

    /// Lets work start past the soft limits until the period ends.
    pub async fn approve_budget(&self, budget_id: BudgetId, actor: &str) -> Result<Budget, Error> {
        let call = ApproveBudget { actor: actor.to_owned(), budget_id };
        let ApproveBudgetReply::Approved { budget } =
            self.client.call(self.client.route_of_budget(&budget_id), &call).await?;
        Ok(budget)
    }

    /// Changes what is used in a dimension; kept with actor and reason.
    pub async fn correct_budget(
        &self,
        budget_id: BudgetId,
        dimension: &str,
        delta: i64,
        actor: &str,
        reason: &str,
    ) -> Result<Budget, Error> {
        let call = CorrectBudget {
            actor: actor.to_owned(),
            budget_id,
            delta,
            dimension: dimension.to_owned(),
            reason: reason.to_owned(),
            request_id: Some(Uuid::now_v7()),
        };
        let CorrectBudgetReply::Corrected { budget } =
            self.client.call(self.client.route_of_budget(&budget_id), &call).await?;
        Ok(budget)
    }

    /// Asks a budget for executions about to start; one verdict for each, in order. Up to 64 at once.
    pub async fn admit_budget(
        &self,
        budget_id: BudgetId,
        candidates: Vec<BudgetCandidate>,
    ) -> Result<Vec<BudgetVerdict>, Error> {
        let call = AdmitBudget { budget_id, candidates };
        let AdmitBudgetReply::Answered { items } =
            self.client.call(self.client.route_of_budget(&budget_id), &call).await?;
        Ok(items)
    }

    /// Drops what holders hold against a budget; who holds nothing is passed over.
    pub async fn release_budget(&self, budget_id: BudgetId, holders: Vec<Holder>) -> Result<(), Error> {
        let call = ReleaseBudget { budget_id, holders };
        self.client.call(self.client.route_of_budget(&budget_id), &call).await.map(|_| ())
    }

    /// Checks that the budgets a submission names exist, and adds those of its namespace, lane and flow.
    ///
    /// What is known may be a second old: a budget made just now may miss what is submitted at the same moment.
    pub(super) async fn attach_budgets(&self, submission: &mut Submission, flows: &[FlowId]) -> Result<(), Error> {
        self.check_budgets(&submission.namespace, submission.budgets.as_deref()).await?;
        let (namespace, lane) = (&submission.namespace, &submission.lane);
        // What cannot be a name has no budget; the submission is refused for it by its own field.
        let mut scopes = Vec::new();
        if is_name(namespace) {
            scopes.push(format!("namespace:{namespace}"));
            scopes.extend(is_name(lane).then(|| format!("lane:{namespace}/{lane}")));
        }
        scopes.extend(flows.iter().map(|flow| format!("flow:{flow}")));
        let ids = self.budgets_of(scopes).await?;
        for id in ids {
            let budgets = submission.budgets.get_or_insert_default();
            if budgets.iter().any(|named| named.budget_id == *id.as_uuid()) {
                continue;
            }
            if budgets.len() >= BUDGETS_MAX {
                let problem =
                    format!("must hold at most {BUDGETS_MAX} items, those of namespace, lane and flow included");
                return Err(invalid("budgets", problem).into());
            }
            budgets.push(BudgetRef { budget_id: *id.as_uuid(), estimate: None });
        }
        Ok(())
    }

    /// Refuses budgets that are not there, belong to another namespace or are named twice, and estimates in dimensions they
    /// do not have.
    pub(super) async fn check_budgets(&self, namespace: &str, refs: Option<&[BudgetRef]>) -> Result<(), Error> {
        let refs = refs.unwrap_or_default();
        for (at, named) in refs.iter().enumerate() {
            if refs[..at].iter().any(|other| other.budget_id == named.budget_id) {
                return Err(invalid(format!("budgets[{at}].budget_id"), "is named twice").into());
            }
            let known = self.known_budget(BudgetId::from_uuid(named.budget_id)).await?;
            if known.namespace != namespace {
                let detail = Detail::from_iter([("budget_id".to_owned(), named.budget_id.to_string())]);
                return Err(Error::Engine(EngineError::from_refusal(ErrorCode::BudgetNotFound, detail)));
            }
            let mut estimated = named.estimate.iter().flat_map(BTreeMap::keys);
            if let Some(name) = estimated.find(|name| !known.dimensions.contains(*name)) {
                let field = format!("budgets[{at}].estimate.{name}");
                return Err(invalid(field, "is no dimension of the budget").into());
            }
        }
        Ok(())
    }

    /// What never changes of a budget that must exist.
    async fn known_budget(&self, budget_id: BudgetId) -> Result<Arc<Known>, Error> {
        let fresh = {
            let known = self.scopes.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(&budget_id).filter(|(at, _)| at.elapsed() < SCOPE_AGE).map(|(_, budget)| budget.clone())
        };
        if let Some(budget) = fresh {
            return Ok(budget);
        }
        let Budget { namespace, dimensions, .. } = self.budget(budget_id).await?.budget;
        let dimensions = dimensions.into_iter().map(|dimension| dimension.name).collect();
        let budget = Arc::new(Known { namespace, dimensions });
        let mut known = self.scopes.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(budget_id, (Instant::now(), budget.clone()));
        Ok(budget)
    }

    async fn budgets_of(&self, scopes: Vec<String>) -> Result<Vec<BudgetId>, Error> {
        let mut found: BTreeMap<String, Vec<BudgetId>> = BTreeMap::new();
        let mut unknown = Vec::new();
        for scope in scopes {
            match self.scopes.recall(&scope) {
                Some(ids) => drop(found.insert(scope, ids)),
                None => unknown.push(scope),
            }
        }
        if !unknown.is_empty() {
            let call = BudgetsOfScopes { scopes: unknown };
            let BudgetsOfScopesReply::Scopes { items } = self.client.call(Route::Fleet, &call).await?;
            for item in items {
                self.scopes.remember(item.scope.clone(), item.budget_ids.clone());
                found.insert(item.scope, item.budget_ids);
            }
        }
        Ok(found.into_values().flatten().collect())
    }
}

/// Shows only what no partition can still come before.
fn merged(shares: Vec<(Vec<Budget>, Option<BudgetPosition>)>, limit: usize) -> BudgetPage {
    let reached = shares.iter().filter_map(|(_, next)| next.as_ref()).map(|at| (at.created_at, at.budget_id)).max();
    let mut items: Vec<Budget> = shares.into_iter().flat_map(|(items, _)| items).collect();
    items.sort_by_key(|budget| std::cmp::Reverse((budget.created_at, budget.budget_id)));
    items.retain(|budget| reached.is_none_or(|at| (budget.created_at, budget.budget_id) >= at));
    let cut = items.len() > limit;
    items.truncate(limit);
    let next = match (items.last(), reached) {
        (Some(last), _) if cut => Some(BudgetCursor { created_at: last.created_at, budget_id: last.budget_id }),
        (_, Some((created_at, budget_id))) => Some(BudgetCursor { created_at, budget_id }),
        (_, None) => None,
    };
    BudgetPage { items, next }
}
