//! `GET /v1/executions/{id}/explain`: why an execution is not running, and what would change that.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use ff_api::executions::ChildCounts;
use ff_api::suspensions::Suspension;
use ff_core::types::ExecutionId;
use ff_engine::operations::{Ahead, Room, set_of_lane};
use ff_script::generated::{
    ChildrenFacts, Execution, ExplainExecutionReply, LaneState, LifecyclePhase, PublicState, Worker, WorkerState,
};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::explain_admission::{self, BudgetFacts, GONE, QuotaFacts, ROOM};
use crate::app::{App, Id, JsonAnswer};
use crate::openapi::Described;
use crate::problem::{Answer, Problem};
use crate::shape::child::{OpenChildShape, OpenChildrenShape};
use crate::shape::flow::DependenciesShape;

/// How many of its children are looked at for open ones, and how many of these are shown.
const CHILDREN_LOOKS: i64 = 1_000;
const CHILDREN_SHOWN: usize = 16;

pub fn routes() -> Described {
    Described::new().with(routes!(explain))
}

/// Why an execution is not running, and what would change that.
#[derive(Serialize, ToSchema)]
#[schema(as = Explanation)]
struct Explained {
    execution_id: ExecutionId,
    state: PublicState,
    /// True while nothing but its turn is missing, or when it runs.
    can_run: bool,
    reasons: Vec<Reason>,
    lane: LaneFacts,
    /// Its place in its lane, while nothing but its turn is missing.
    place: Option<Place>,
    requires: Option<Requires>,
    /// Each quota it names, as its key stands now.
    quotas: Vec<QuotaFacts>,
    /// Each budget it names, with those above it.
    budgets: Vec<BudgetFacts>,
    /// What it waits for: open waitpoints and how far its condition is.
    suspension: Option<Suspension>,
    /// How far the edges into it are, in a flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    dependencies: Option<DependenciesShape>,
    /// The children it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<OpenChildrenShape>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = BlockingCause)]
struct Reason {
    reason: &'static str,
    detail: BTreeMap<String, String>,
    /// What would unblock it.
    remedy: String,
}

#[derive(Serialize, ToSchema)]
struct LaneFacts {
    namespace: String,
    lane: String,
    state: &'static str,
    /// How many of its executions may run at once, and how many count against that.
    max_active: Option<i64>,
    active: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = QueuePlace)]
struct Place {
    queue: String,
    /// How many eligible executions of the lane stand before it.
    ahead: i64,
    /// There are more than were counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RequiredCapabilities)]
struct Requires {
    capabilities: Vec<String>,
    /// Some live worker of the lane has them all.
    covered: bool,
    nearest: Option<Nearest>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = NearestWorker)]
pub struct Nearest {
    pub instance: String,
    pub missing: Vec<String>,
}

/// Why an execution is not running, and what would change that.
#[utoipa::path(
    get,
    path = "/v1/executions/{id}/explain",
    params(Id),
    responses((status = 200, body = Explained)),
    extensions(("x-ff-codes" = json!("execution_not_found"))),
)]
async fn explain(State(app): State<App>, Id(id): Id) -> JsonAnswer<Explained> {
    let facts = app.operations.explain(id).await.map_err(|error| Problem::from(error).about(id))?;
    let ExplainExecutionReply::Facts {
        ahead, children, dependencies, execution, lane_state, max_active, queue, ..
    } = facts;
    let dependencies = dependencies.map(DependenciesShape::from);
    let children = match children {
        Some(facts) => Some(open_children(&app, id, facts).await?),
        None => None,
    };
    let room = match max_active {
        Some(_) => Some(app.operations.room(&set_of_lane(&execution.namespace, &execution.lane)).await?),
        None => None,
    };
    // It stands in a queue exactly while its partition knows its rank.
    let place = match ahead {
        Some(_) => {
            let Ahead { count, more } = app.operations.ahead_in_lane(&execution).await?;
            Some(Place { queue, ahead: count, more })
        }
        None => None,
    };
    let workers = app.operations.workers().await?;
    let serving = serving(&execution, &workers);
    let requires = (!execution.requires.is_empty()).then(|| coverage(&execution, &serving));
    let lane_state = lane_state.unwrap_or(LaneState::Active);
    let waits_for = match (&dependencies, &children) {
        (_, Some(children)) => children.facts(),
        (Some(dependencies), None) => dependencies.facts(),
        (None, None) => Vec::new(),
    };
    let quotas = explain_admission::quotas(&app, &execution).await?;
    let budgets = explain_admission::budgets(&app, &execution).await?;
    let admission = Remedies {
        quota: quotas.iter().find_map(QuotaFacts::remedy),
        budget: budgets.iter().find_map(BudgetFacts::remedy),
        gone: quotas.iter().filter_map(QuotaFacts::gone).chain(budgets.iter().filter_map(BudgetFacts::gone)).collect(),
    };
    let reasons = reasons(&execution, lane_state, room, &serving, requires.as_ref(), &waits_for, &admission);
    Ok(Json(Explained {
        execution_id: id,
        state: execution.state,
        can_run: execution.phase != LifecyclePhase::Terminal && reasons.is_empty(),
        reasons,
        lane: LaneFacts {
            namespace: execution.namespace,
            lane: execution.lane,
            state: lane_state.as_str(),
            max_active,
            active: room.map(|room| room.held),
        },
        place,
        requires,
        quotas,
        budgets,
        suspension: execution.suspension.map(Suspension::from),
        dependencies,
        children,
    }))
}

/// The children an execution waits for, the first open ones by name.
async fn open_children(app: &App, id: ExecutionId, facts: ChildrenFacts) -> Answer<OpenChildrenShape> {
    let waits_for = if facts.nested.is_some() {
        Vec::new()
    } else {
        let (all, _) = app.operations.children(id, None, CHILDREN_LOOKS).await?;
        all.into_iter().filter(|child| child.outcome.is_none()).take(CHILDREN_SHOWN).map(OpenChildShape::from).collect()
    };
    let counts = ChildCounts { total: facts.total, open: facts.open };
    Ok(OpenChildrenShape { counts, nested_flow_id: facts.nested, waits_for })
}

/// Live workers that take from the execution's lane.
fn serving<'a>(execution: &Execution, workers: &'a [Worker]) -> Vec<&'a Worker> {
    workers
        .iter()
        .filter(|worker| {
            worker.state == WorkerState::Live
                && worker.namespace == execution.namespace
                && worker.lanes.contains(&execution.lane)
        })
        .collect()
}

/// The worker that lacks the fewest of these.
pub fn nearest(requires: &[String], serving: &[&Worker]) -> Option<Nearest> {
    let missing = |worker: &Worker| -> Vec<String> {
        requires.iter().filter(|token| !worker.capabilities.contains(token)).cloned().collect()
    };
    let near = |worker: &&Worker| Nearest { instance: worker.instance.clone(), missing: missing(worker) };
    serving.iter().map(near).min_by_key(|nearest| nearest.missing.len())
}

fn coverage(execution: &Execution, serving: &[&Worker]) -> Requires {
    let nearest = nearest(&execution.requires, serving);
    let covered = nearest.as_ref().is_some_and(|nearest| nearest.missing.is_empty());
    Requires { capabilities: execution.requires.clone(), covered, nearest }
}

/// What would bring it a worker that has what it requires.
fn capable(nearest: Option<&Nearest>) -> String {
    match nearest {
        None => "start a worker of this lane that has the required capabilities".to_owned(),
        Some(Nearest { instance, missing }) if missing.is_empty() => {
            format!("{instance} has them all by now: it is offered again by itself")
        }
        Some(Nearest { instance, missing }) => format!("{instance} lacks only {}", missing.join(", ")),
    }
}

/// What would let it pass its quotas and its budgets, where something is in the way.
struct Remedies<'a> {
    quota: Option<&'a str>,
    budget: Option<&'a str>,
    /// What it names and is not there, by the reason it would be refused for.
    gone: Vec<(&'static str, [(&'static str, String); 2])>,
}

fn reasons(
    execution: &Execution,
    lane: LaneState,
    room: Option<Room>,
    serving: &[&Worker],
    requires: Option<&Requires>,
    waits_for: &[(&str, String)],
    admission: &Remedies<'_>,
) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut say = |reason, detail: &[(&str, String)], remedy: String| {
        let detail = detail.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        reasons.push(Reason { reason, detail, remedy });
    };
    match execution.phase {
        LifecyclePhase::Terminal => {
            let outcome = execution.outcome.map(|outcome| outcome.to_string()).unwrap_or_default();
            say("ended", &[("outcome", outcome)], "replay it to run it again".to_owned());
            return reasons;
        }
        LifecyclePhase::Active => return reasons,
        LifecyclePhase::Suspended => {
            let facts = execution.suspension.clone().map(|suspension| Suspension::from(suspension).facts());
            say(
                "suspended",
                &facts.unwrap_or_default(),
                "it goes on when its condition is met; an operator may resume, fail or cancel it".to_owned(),
            );
            return reasons;
        }
        LifecyclePhase::Runnable => {}
    }
    if let Some(until) = execution.delay_until.filter(|_| execution.state == PublicState::Delayed) {
        say(
            "delayed",
            &[("delay_until", until.to_string())],
            "it becomes eligible then; PATCH delay_until to change it".to_owned(),
        );
    }
    if let Some(reason) = execution.blocking_reason {
        let mut detail: Vec<(&str, String)> =
            execution.blocking_detail.iter().flatten().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let remedy = match (reason.as_str(), requires.and_then(|requires| requires.nearest.as_ref())) {
            ("waiting_for_capable_worker", nearest) => capable(nearest),
            ("held_by_operator", _) => "release it".to_owned(),
            ("waiting_for_dependencies", _) => {
                "it runs once enough of the edges into it are met, and is skipped when they no longer can be".to_owned()
            }
            ("waiting_for_children", _) if execution.nested.is_some() => "it ends with its flow".to_owned(),
            ("waiting_for_children", _) => "it goes on when its children have ended".to_owned(),
            ("waiting_for_quota", _) => admission.quota.unwrap_or(ROOM).to_owned(),
            ("waiting_for_budget", _) => admission.budget.unwrap_or(ROOM).to_owned(),
            _ => "it goes on by itself once that has cleared".to_owned(),
        };
        if matches!(reason.as_str(), "waiting_for_dependencies" | "waiting_for_children") {
            detail.extend(waits_for.iter().cloned());
        }
        say(reason.as_str(), &detail, remedy);
    }
    if execution.blocking_reason.is_none() {
        for (reason, detail) in &admission.gone {
            say(reason, detail, GONE.to_owned());
        }
    }
    if matches!(lane, LaneState::Paused | LaneState::Disabled) {
        say("lane_state", &[("state", lane.to_string())], "resume the lane".to_owned());
    }
    if let Some(Room { held, limit: Some(limit) }) =
        room.filter(|room| room.free() <= 0 && execution.granted_until.is_none())
    {
        say(
            "max_active",
            &[
                ("problem", format!("lane is at max_active {held} of {limit}")),
                ("active", held.to_string()),
                ("max_active", limit.to_string()),
            ],
            "it starts when one of the lane's running executions ends; PUT the lane with a higher max_active to start it now"
                .to_owned(),
        );
    }
    if let Some(until) = execution.granted_until {
        say(
            "granted",
            &[("granted_until", until.to_string())],
            "its worker starts it, or the grant runs out".to_owned(),
        );
    }
    // A flow runs in its place: no worker ever does.
    if execution.nested.is_some() {
        return reasons;
    }
    if serving.is_empty() {
        say("no_worker", &[("lane", execution.lane.clone())], "start a worker that registers for this lane".to_owned());
    } else if execution.blocking_reason.is_none() && requires.is_some_and(|requires| !requires.covered) {
        let nearest = requires.and_then(|requires| requires.nearest.as_ref());
        let missing = nearest.map(|nearest| nearest.missing.join(",")).unwrap_or_default();
        say("missing_capabilities", &[("missing", missing)], "start a worker of this lane that has them".to_owned());
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_could_run_is_told_who_comes_nearest() {
        let near = |missing: &[&str]| Nearest {
            instance: "w1".to_owned(),
            missing: missing.iter().map(|token| (*token).to_owned()).collect(),
        };
        assert_eq!(capable(Some(&near(&["gpu", "cuda"]))), "w1 lacks only gpu, cuda");
        assert_eq!(capable(Some(&near(&[]))), "w1 has them all by now: it is offered again by itself");
        assert!(capable(None).starts_with("start a worker of this lane"));
    }
}
