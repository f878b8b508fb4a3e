//! Budgets: created with their calendar, found by their scopes, changed by operators.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ff_api::budgets::ChangeBudgetBody;
use ff_core::EngineError;
use ff_core::error::{Detail, ValidationKind};
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, FlowId, is_name};
use ff_script::generated::{
    AdmitBudget, AdmitBudgetReply, ApproveBudget, ApproveBudgetReply, Budget, BudgetCandidate, BudgetPosition,
    BudgetRef, BudgetScope, BudgetVerdict, BudgetsOfScopes, BudgetsOfScopesReply, ChangeBudget, ChangeBudgetReply,
    CorrectBudget, CorrectBudgetReply, CreateBudget, CreateBudgetReply, DeleteBudget, GetBudget, GetBudgetReply,
    Holder, ListBudgets, ListBudgetsReply, NewBudget, NextDue, NextDueReply, NoteScope, ReleaseBudget, ResetBudget,
    ResetBudgetReply, ScopeType, Submission,
};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};
use uuid::Uuid;

use super::page::{Place, Share, merge};
use super::{Operations, next_reset, refused_with};

const AT_ONCE: usize = 16;
const PAGE: usize = 64;
/// How often a change is made anew when another came in between.
const TRIES: usize = 8;
/// How many budgets an execution may name, those of its scopes included.
const BUDGETS_MAX: usize = ff_core::limits::BUDGETS_MAX as usize;
/// How many budgets a namespace, a lane or a flow may have.
const BUDGETS_PER_SCOPE_MAX: usize = ff_core::limits::BUDGETS_PER_SCOPE_MAX as usize;
/// How old may be what is known about scopes and about which budgets exist.
const SCOPE_AGE: Duration = Duration::from_secs(1);
/// What is remembered is forgotten beyond this many.
const REMEMBERED_MAX: usize = 10_000;

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

/// A place in a list that begins with the newest.
type Newest = Reverse<Place<BudgetId>>;

/// One page of budgets, newest first; it may be short while more follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetPage {
    /// The budgets.
    pub items: Vec<Budget>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<Place<BudgetId>>,
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
    /// Creates a budget; the same again is a duplicate, and says so. The first reset of a calendar is filled in.
    pub async fn create_budget(&self, mut budget: NewBudget, actor: &str) -> Result<(Budget, bool), Error> {
        let budget_id = budget.budget_id;
        if budget
            .parent
            .is_some_and(|parent| self.client.route_of_budget(&parent) != self.client.route_of_budget(&budget_id))
        {
            return Err(invalid("budget_id", "must end like its parent's: a tree shares a partition").into());
        }
        let scope = scope_name(&budget.scope, &budget.namespace)?;
        if let Some(scope) = &scope {
            self.fits_scope(scope, budget_id).await?;
        }
        let route = self.client.route_of_budget(&budget_id);
        // Calendars follow the store's clock, as everything else that is due does.
        let NextDueReply::Next { now, .. } = self.client.call(route, &NextDue {}).await?;
        budget.next_reset_at =
            next_reset(&budget.reset, now).map_err(|error| invalid("reset.zone", error.to_string()))?;
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
        after: Option<Place<BudgetId>>,
        limit: usize,
    ) -> Result<BudgetPage, Error> {
        let limit = limit.clamp(1, PAGE);
        let shares: Vec<Share<Budget, Newest>> = stream::iter(self.client.budget_routes())
            .map(|route| async move {
                let call = ListBudgets {
                    after: after.map(|Place { created_at, id }| BudgetPosition { created_at, budget_id: id }),
                    limit: i64::try_from(limit).expect("a page is small"),
                    namespace: filter.namespace.clone(),
                    scope: filter.scope,
                };
                let ListBudgetsReply::Page { items, last, more } = self.client.call(route, &call).await?;
                let last =
                    last.filter(|_| more).map(|at| Reverse(Place { created_at: at.created_at, id: at.budget_id }));
                Ok::<_, Error>((items, last))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let place = |budget: &Budget| Reverse(Place { created_at: budget.created_at, id: budget.budget_id });
        let (items, next) = merge(shares, limit, place);
        Ok(BudgetPage { items, next: next.map(|Reverse(place)| place) })
    }

    /// Changes what is named and leaves the rest; made anew when another change came in between. Work that waits for room goes
    /// on when there is some.
    pub async fn change_budget(
        &self,
        budget_id: BudgetId,
        change: &ChangeBudgetBody,
        actor: &str,
    ) -> Result<Budget, Error> {
        let route = self.client.route_of_budget(&budget_id);
        let mut tries = 1;
        loop {
            let budget = self.budget(budget_id).await?.budget;
            let call = ChangeBudget {
                actor: actor.to_owned(),
                budget_id,
                limits: change.limits(&budget.dimensions).map_err(|wrong| invalid(wrong.field, wrong.problem))?,
                on_hard: change.on_hard,
                on_soft: change.on_soft,
                version: Some(budget.version),
            };
            match self.client.call(route, &call).await {
                Err(error) if refused_with(&error) == Some(ErrorCode::BudgetVersionConflict) && tries < TRIES => {
                    tries += 1;
                }
                answer => return answer.map(|ChangeBudgetReply::Changed { budget, .. }| budget),
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
