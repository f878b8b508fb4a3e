//! Why an execution, or the work of a lane, is not running, and what would change that.

mod admission;
mod lane;

use ff_api::explain::{
    BlockingCause, Dependencies, Explanation, LaneFacts, NearestWorker, OpenChild, OpenChildren, QueuePlace,
    RequiredCapabilities,
};
use ff_api::suspensions::Suspension;
use ff_core::types::ExecutionId;
use ff_script::Error;
use ff_script::generated::{
    AttemptState, ChildrenFacts, Execution, ExplainExecution, ExplainExecutionReply, LaneState, LifecyclePhase,
    PublicState, Step, StepKind, StepState, Worker, WorkerState,
};

use self::admission::{GONE, ROOM};
use crate::operations::{Ahead, Operations, Room, set_of_lane};

/// How many of its children are looked at for open ones, and how many of these are shown.
const CHILDREN_LOOKS: i64 = 1_000;
const CHILDREN_SHOWN: usize = 16;
/// How many of its last steps are looked at for the one it rests at.
const STEPS_LOOKS: i64 = 64;

impl Operations {
    /// Why an execution is not running, and what would change that.
    pub async fn explain(&self, id: ExecutionId) -> Result<Explanation, Error> {
        let call = ExplainExecution { execution_id: id };
        let ExplainExecutionReply::Facts {
            ahead,
            children,
            dependencies,
            execution,
            lane_state,
            max_active,
            queue,
            ..
        } = self.client().call(self.client().route_of(&id), &call).await?;
        let dependencies = dependencies.map(Dependencies::from);
        let children = match children {
            Some(facts) => Some(self.open_children(id, facts).await?),
            None => None,
        };
        let room = match max_active {
            Some(_) => Some(self.room(&set_of_lane(&execution.namespace, &execution.lane)).await?),
            None => None,
        };
        // It stands in a queue exactly while its partition knows its rank.
        let place = match ahead {
            Some(_) => {
                let Ahead { count, more } = self.ahead_in_lane(&execution).await?;
                Some(QueuePlace { queue, ahead: count, more })
            }
            None => None,
        };
        let workers = self.workers().await?;
        let serving = serving(&execution.namespace, &execution.lane, &workers);
        let takers = takers(&execution.kind, &serving);
        let requires = (!execution.requires.is_empty()).then(|| coverage(&execution, &takers));
        let lane_state = lane_state.unwrap_or(LaneState::Active);
        let waits_for = match (&dependencies, &children) {
            (_, Some(children)) => children.facts(),
            (Some(dependencies), None) => dependencies.facts(),
            (None, None) => Vec::new(),
        };
        let quotas = self.quota_facts(&execution).await?;
        let budgets = self.budget_facts(&execution).await?;
        let in_the_way = Remedies {
            rest: self.rest_of(&execution).await?,
            quota: quotas.iter().find_map(|quota| quota.remedy.as_deref()),
            budget: budgets.iter().find_map(admission::budget_remedy),
            gone: quotas
                .iter()
                .filter_map(admission::quota_gone)
                .chain(budgets.iter().filter_map(admission::budget_gone))
                .collect(),
        };
        let there = There { serving: serving.len(), takers: takers.len() };
        let reasons = reasons(&execution, lane_state, room, there, requires.as_ref(), &waits_for, &in_the_way);
        Ok(Explanation {
            execution_id: id,
            state: execution.state,
            can_run: execution.phase != LifecyclePhase::Terminal && reasons.is_empty(),
            reasons,
            lane: LaneFacts {
                namespace: execution.namespace,
                lane: execution.lane,
                state: lane_state,
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
        })
    }

    /// The step at which an attempt rests: a sleep, or one that is tried again.
    async fn rest_of(&self, execution: &Execution) -> Result<Option<Step>, Error> {
        let aside = execution.attempts.last().is_some_and(|attempt| attempt.state == AttemptState::Suspended);
        if !aside || execution.state != PublicState::Delayed || execution.steps == 0 {
            return Ok(None);
        }
        let after = (execution.steps - STEPS_LOOKS).max(0);
        let (steps, _) = self.steps(execution.execution_id, after, STEPS_LOOKS).await?;
        let rests = |step: &Step| match step.state {
            StepState::Waiting => step.kind == StepKind::Sleep && step.due_at == execution.delay_until,
            StepState::Failed => step.due_at.is_some(),
            StepState::Done => false,
        };
        Ok(steps.into_iter().rev().find(rests))
    }

    /// The children an execution waits for, the first open ones by name.
    async fn open_children(&self, id: ExecutionId, facts: ChildrenFacts) -> Result<OpenChildren, Error> {
        let waits_for = if facts.nested.is_some() {
            Vec::new()
        } else {
            let (all, _) = self.children(id, None, CHILDREN_LOOKS).await?;
            all.into_iter().filter(|child| child.outcome.is_none()).take(CHILDREN_SHOWN).map(OpenChild::from).collect()
        };
        Ok(OpenChildren::new(facts, waits_for))
    }
}

/// Live workers that take from a lane.
fn serving<'a>(namespace: &str, lane: &str, workers: &'a [Worker]) -> Vec<&'a Worker> {
    let takes = |worker: &&Worker| {
        worker.state == WorkerState::Live
            && worker.namespace == namespace
            && worker.lanes.iter().any(|known| known == lane)
    };
    workers.iter().filter(takes).collect()
}

/// Those of them that take a kind.
fn takers<'a>(kind: &str, serving: &[&'a Worker]) -> Vec<&'a Worker> {
    let takes =
        |worker: &&&Worker| worker.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|known| known.as_str() == kind));
    serving.iter().filter(takes).copied().collect()
}

/// How many live workers there are for an execution.
#[derive(Clone, Copy)]
struct There {
    /// Workers of its lane.
    serving: usize,
    /// Those of them that take its kind.
    takers: usize,
}

/// What would bring it a worker that takes its kind.
fn of_kind(kind: &str) -> String {
    format!("start a worker of this lane that takes the kind {kind}: the workers there are do not")
}

/// The worker that lacks the fewest of these.
fn nearest(requires: &[String], serving: &[&Worker]) -> Option<NearestWorker> {
    let missing = |worker: &Worker| -> Vec<String> {
        requires.iter().filter(|token| !worker.capabilities.contains(token)).cloned().collect()
    };
    let near = |worker: &&Worker| NearestWorker { instance: worker.instance.clone(), missing: missing(worker) };
    serving.iter().map(near).min_by_key(|nearest: &NearestWorker| nearest.missing.len())
}

fn coverage(execution: &Execution, serving: &[&Worker]) -> RequiredCapabilities {
    let nearest = nearest(&execution.requires, serving);
    let covered = nearest.as_ref().is_some_and(|nearest| nearest.missing.is_empty());
    RequiredCapabilities { capabilities: execution.requires.clone(), covered, nearest }
}

/// What would bring it a worker that has what it requires.
fn capable(nearest: Option<&NearestWorker>) -> String {
    match nearest {
        None => "start a worker of this lane that has the required capabilities".to_owned(),
        Some(NearestWorker { instance, missing }) if missing.is_empty() => {
            format!("{instance} has them all by now: it is offered again by itself")
        }
        Some(NearestWorker { instance, missing }) => format!("{instance} lacks only {}", missing.join(", ")),
    }
}

/// What would let it pass its quotas and its budgets, where something is in the way.
struct Remedies<'a> {
    quota: Option<&'a str>,
    budget: Option<&'a str>,
    /// The step at which its attempt rests.
    rest: Option<Step>,
    /// What it names and is not there, by the reason it would be refused for.
    gone: Vec<(&'static str, [(&'static str, String); 2])>,
}

fn reasons(
    execution: &Execution,
    lane: LaneState,
    room: Option<Room>,
    there: There,
    requires: Option<&RequiredCapabilities>,
    waits_for: &[(&str, String)],
    admission: &Remedies<'_>,
) -> Vec<BlockingCause> {
    let mut reasons = Vec::new();
    let mut say = |reason: &str, detail: &[(&str, String)], remedy: String| {
        let detail = detail.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        reasons.push(BlockingCause { reason: String::from(reason), detail, remedy });
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
        match &admission.rest {
            Some(step) => say(
                "resting",
                &[("rests_until", until.to_string()), ("step", step.name.clone())],
                format!(
                    "it rests at step {} of what it has recorded, and goes on by itself then; PATCH delay_until to change it",
                    step.number
                ),
            ),
            None => say(
                "delayed",
                &[("delay_until", until.to_string())],
                "it becomes eligible then; PATCH delay_until to change it".to_owned(),
            ),
        }
    }
    if let Some(reason) = execution.blocking_reason {
        let mut detail: Vec<(&str, String)> =
            execution.blocking_detail.iter().flatten().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let remedy = match (reason.as_str(), requires.and_then(|requires| requires.nearest.as_ref())) {
            ("waiting_for_capable_worker", _) if there.takers == 0 && there.serving > 0 => of_kind(&execution.kind),
            ("waiting_for_capable_worker", None) if there.takers > 0 => {
                "a worker that takes it is there by now: it is offered again by itself".to_owned()
            }
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
    if there.serving == 0 {
        say("no_worker", &[("lane", execution.lane.clone())], "start a worker that registers for this lane".to_owned());
    } else if execution.blocking_reason.is_none() && there.takers == 0 {
        say("missing_kind", &[("kind", execution.kind.clone())], of_kind(&execution.kind));
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
        let near = |missing: &[&str]| NearestWorker {
            instance: "w1".to_owned(),
            missing: missing.iter().map(|token| (*token).to_owned()).collect(),
        };
        assert_eq!(capable(Some(&near(&["gpu", "cuda"]))), "w1 lacks only gpu, cuda");
        assert_eq!(capable(Some(&near(&[]))), "w1 has them all by now: it is offered again by itself");
        assert!(capable(None).starts_with("start a worker of this lane"));
    }
}
