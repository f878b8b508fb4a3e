//! What a claim or a grant may take: work that the worker covers, best first, and never work reserved for another
//! worker.

use ff_core::types::ExecutionId;
use ff_script::generated::*;

use super::shadow::{among, covered, eligible, kinds_of, needs_admission};
use super::{Check, Checker, Shadow, Step, require};
use crate::request::{Outcome, Reply, Request};

impl Checker {
    /// Checks the state before a call that chooses work.
    pub(super) fn check_order(&self, step: &Step<'_>) -> Check {
        let (lane, capabilities, kinds, max, admission) = match step.request {
            Request::ClaimExecutions(c) => {
                (&c.lane, &c.capabilities, kinds_of(c.kinds.as_ref()), c.max.min(self.unused_leases(step, c)), false)
            }
            Request::IssueGrants(c) => (&c.lane, &c.capabilities, kinds_of(c.kinds.as_ref()), c.max, true),
            Request::DrainLeases(c) => return self.check_drained(step, c),
            _ => return Ok(()),
        };
        if let Outcome::Reply(reply) = step.outcome
            && self.answers_again(step, reply)?
        {
            return Ok(());
        }
        let copy = self.lanes.get(&(step.partition(), lane.clone()));
        let starts = copy.is_some_and(|copy| matches!(copy.definition.state, LaneState::Active | LaneState::Draining));
        require!(
            9,
            starts || taken(step).next().is_none(),
            "lane {lane} does not start anything, {} taken",
            taken(step).count()
        );
        // Without a reply it is unknown whether an old request was repeated. The work it took is checked anyway.
        if !starts || !matches!(step.outcome, Outcome::Reply(_)) {
            return Ok(());
        }

        // A claim cancels a member of a stopped flow that it meets, with possible consequences for other executions.
        let taken: Vec<ExecutionId> = taken(step).filter_map(|event| event.execution_id).collect();
        require!(1, taken.len() as i64 <= max, "{} taken, {max} requested", taken.len());
        let candidates: Vec<(&ExecutionId, &Shadow, &Execution)> = self
            .live_in(step.partition())
            .filter(|(_, _, seen)| {
                eligible(seen)
                    && seen.lane == *lane
                    && covered(&seen.requires, capabilities)
                    && among(&seen.kind, kinds.as_ref())
                    && (admission || !needs_admission(seen))
            })
            .collect();
        let dead = candidates.iter().filter(|(_, shadow, seen)| !shadow.may_start(seen, step.now)).count();
        let left: Vec<_> = candidates
            .iter()
            .filter(|(id, shadow, seen)| !taken.contains(id) && shadow.may_start(seen, step.now))
            .collect();
        if (taken.len() as i64) < max && dead == 0 {
            require!(16, left.is_empty(), "{} taken of {max} requested, {} more could start", taken.len(), left.len());
        }
        let prefers = !capabilities.is_empty() && self.preferring.contains(&(step.partition(), lane.clone()));
        for id in &taken {
            let Some((_, _, chosen)) = candidates.iter().find(|(candidate, ..)| *candidate == id) else {
                // The judge reports the error.
                continue;
            };
            for (other, _, waiting) in &left {
                let passed_over = waiting.score < chosen.score && !(prefers && waiting.priority == chosen.priority);
                require!(
                    16,
                    !passed_over,
                    "{id} (score {}, priority {}) was taken before {other} (score {}, priority {})",
                    chosen.score,
                    chosen.priority,
                    waiting.score,
                    waiting.priority
                );
            }
        }
        Ok(())
    }

    /// The number of a claim's lease ids that hold no execution yet. A late copy of a claim may name a lease that has
    /// expired but was not taken back yet. It can start nothing under that id.
    fn unused_leases(&self, step: &Step<'_>, call: &ClaimExecutions) -> i64 {
        let used = self
            .live_in(step.partition())
            .filter_map(|(_, shadow, _)| shadow.lease.as_ref())
            .filter(|lease| lease.ended.is_none() && lease.instance == call.instance)
            .filter(|lease| call.lease_ids.contains(&lease.fence.lease_id))
            .count();
        (call.lease_ids.len() - used) as i64
    }

    /// True if the reply repeats what the same request got before.
    fn answers_again(&self, step: &Step<'_>, reply: &Reply) -> Result<bool, super::Violation> {
        match (step.request, reply) {
            (Request::ClaimExecutions(call), Reply::ClaimExecutions(reply)) => {
                let mine: Vec<(&ExecutionId, &Fence)> = self
                    .live_in(step.partition())
                    .filter_map(|(id, shadow, seen)| {
                        let lease = shadow.lease.as_ref()?;
                        let alive =
                            lease.ended.is_none() && seen.lease.as_ref().is_some_and(|l| step.now < l.expires_at);
                        (alive && call.lease_ids.contains(&lease.fence.lease_id) && lease.instance == call.instance)
                            .then_some((id, &lease.fence))
                    })
                    .collect();
                if let ClaimExecutionsReply::Replayed { tasks } = reply {
                    let told: Vec<(&ExecutionId, Fence)> =
                        tasks.iter().map(|task| (&task.execution_id, fence_of(task))).collect();
                    let same = told.len() == mine.len()
                        && mine.iter().all(|(id, fence)| told.iter().any(|(i, f)| i == id && f == *fence));
                    require!(
                        3,
                        same && !mine.is_empty(),
                        "a repeated claim answered {told:?}, its leases are {mine:?}"
                    );
                    require!(41, step.events.is_empty(), "a repeated claim emitted events");
                    return Ok(true);
                }
                require!(1, mine.is_empty(), "a repeated claim took more although {mine:?} are its own");
                if let ClaimExecutionsReply::Claimed { tasks, .. } = reply {
                    let told: Vec<_> = tasks.iter().map(|task| Some(task.execution_id)).collect();
                    let emitted: Vec<_> = taken(step).map(|event| event.execution_id).collect();
                    require!(41, told == emitted, "claimed {told:?}, started {emitted:?}");
                    for task in tasks {
                        self.check_task(task)?;
                    }
                }
                Ok(false)
            }
            (Request::IssueGrants(call), Reply::IssueGrants(IssueGrantsReply::Granted { grants, .. })) => {
                let again = !grants.is_empty() && taken(step).next().is_none();
                for grant in grants {
                    require!(
                        1,
                        call.grant_ids.iter().any(|id| id.as_u128() >> 16 == grant.grant_id.as_u128() >> 16),
                        "{} got a grant that was not requested",
                        grant.execution_id
                    );
                    if again {
                        let shadow = self.executions.get(&grant.execution_id);
                        let known = shadow
                            .and_then(|shadow| shadow.grant.as_ref())
                            .is_some_and(|(id, _)| *id == grant.grant_id);
                        require!(
                            1,
                            known,
                            "a repeated request got a grant of {} that was never given",
                            grant.execution_id
                        );
                    }
                }
                require!(
                    41,
                    again || grants.len() == taken(step).count(),
                    "{} grants, {} events",
                    grants.len(),
                    taken(step).count()
                );
                Ok(again)
            }
            _ => Ok(false),
        }
    }

    /// The task of the worker contains what was submitted.
    fn check_task(&self, task: &Task) -> Check {
        let Some(shadow) = self.executions.get(&task.execution_id) else {
            return Ok(());
        };
        let s = &shadow.submission;
        let input = s.input.as_ref().map_or(&[][..], |input| &input[..]);
        require!(13, task.input[..] == *input, "{}: the worker got other bytes than were submitted", task.execution_id);
        let seen = shadow.seen.as_ref();
        require!(
            13,
            seen.is_some_and(|seen| seen.tags == task.tags
                && seen.priority == task.priority
                && seen.created_at == task.created_at),
            "{}: the worker was told other facts than are stored",
            task.execution_id
        );
        let tier = task.fallback_index.and_then(|index| s.fallbacks.as_ref()?.get(usize::try_from(index).ok()?));
        require!(14, tier == task.fallback.as_ref(), "{}: the worker got another fallback tier", task.execution_id);
        let frames =
            if seen.is_some_and(|seen| seen.continues) { shadow.waits.frame_count(shadow.attempts - 1) } else { 0 };
        require!(
            36,
            task.frames == frames,
            "{}: told of {} frames, there are {frames}",
            task.execution_id,
            task.frames
        );
        self.check_passed(task)?;
        self.check_children_told(task)?;
        shadow.waits.check_resume(task.execution_id, task.resume.as_ref())
    }

    fn check_drained(&self, step: &Step<'_>, call: &DrainLeases) -> Check {
        let Outcome::Reply(Reply::DrainLeases(DrainLeasesReply::Drained { changed, more })) = step.outcome else {
            return Ok(());
        };
        let open = self
            .live_in(step.partition())
            .filter_map(|(_, _, seen)| seen.lease.as_ref())
            .filter(|lease| lease.worker_instance == call.instance && (call.revoke || !lease.yield_requested))
            .count() as i64;
        let of_worker = |event: &&Event| {
            let seen = event.execution_id.and_then(|id| self.seen(&id));
            let lease = seen.and_then(|seen| seen.lease.as_ref());
            lease.is_some_and(|lease| lease.worker_instance == call.instance)
        };
        let own = step.events.iter().filter(of_worker).count() as i64;
        require!(
            7,
            *changed == open.min(call.limit) && *changed == own,
            "drained {changed} of {open}, limit {}, {} events",
            call.limit,
            own
        );
        require!(7, *more || open <= call.limit, "{open} leases, {} drained, and no more to do", call.limit);
        Ok(())
    }
}

/// The events of the work that a claim or a round of grants took.
fn taken<'a>(step: &Step<'a>) -> impl Iterator<Item = &'a Event> + use<'a> {
    step.events.iter().filter(|event| matches!(event.r#type.as_str(), "execution.started" | "execution.granted"))
}

pub(super) fn fence_of(task: &Task) -> Fence {
    Fence { attempt_id: task.attempt_id, lease_id: task.lease_id, lease_epoch: task.lease_epoch }
}
