//! Checks that announcements are enough: a sleeper and a dispatcher that react only to announcements must miss nothing.
//!
//! The sleeper of a partition wakes at the earliest announced time, fires, and sleeps until the time that the call
//! returned. The dispatcher asks a queue until it finds it empty, and then only after a `ready` for it.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::PartitionConfig;
use ff_script::generated::*;
use ff_script::{Route, Wake};
use sha1::{Digest, Sha1};

use super::shadow::{among, covered, eligible, kinds_of, needs_admission};
use super::{Check, Checker, Step, require};
use crate::actor::{CAPABILITIES, KINDS};
use crate::request::{Outcome, Reply, Request};

/// A queue: partition, lane, name.
type Queue = (u16, String, String);

pub(super) struct Ears {
    /// When each partition's sleeper wakes. An absent one waits for an announcement.
    sleeps_until: BTreeMap<u16, i64>,
    /// Queues that dispatchers believe to be empty.
    empty: BTreeSet<Queue>,
    /// The names of every requirement set, without and with admission.
    names: Vec<(Vec<String>, String, String)>,
}

impl Ears {
    pub fn new(partitions: PartitionConfig) -> Self {
        let names = (0..1_usize << CAPABILITIES.len())
            .map(|bits| {
                let tokens = CAPABILITIES.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
                let requires: Vec<String> = tokens.map(|(_, token)| (*token).to_owned()).collect();
                let name = queue_name(&requires);
                let admitted = format!("admit.{name}");
                (requires, name, admitted)
            })
            .collect();
        Ears {
            sleeps_until: (0..partitions.executions).map(|partition| (partition, 0)).collect(),
            empty: BTreeSet::new(),
            names,
        }
    }
}

fn queue_name(requires: &[String]) -> String {
    if requires.is_empty() {
        return "any".to_owned();
    }
    let digest = Sha1::digest(requires.join(","));
    digest.iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}

fn queue_of(seen: &Execution) -> String {
    let class = queue_name(&seen.requires);
    let class = if needs_admission(seen) { format!("admit.{class}") } else { class };
    format!("{class}:{}", seen.kind)
}

impl Checker {
    /// The host returned. Messages in between are lost, so sleepers and dispatchers read everything once.
    pub fn woke_up(&mut self, now: i64) {
        for partition in 0..self.partitions.executions {
            self.ears.sleeps_until.insert(partition, now);
        }
        self.ears.empty.clear();
    }

    pub(super) fn listen(&mut self, step: &Step<'_>) -> Check {
        let (partition, now) = (step.partition(), step.now);
        if let Outcome::Reply(Reply::FireDue(FireDueReply::Fired { more, next_at, .. })) = step.outcome {
            // A call before the sleeper's time came from another actor.
            if self.ears.sleeps_until.get(&partition).is_some_and(|at| *at <= now) {
                self.ears.sleeps_until.remove(&partition);
                if let Some(at) = if *more { Some(now) } else { *next_at } {
                    self.ears.sleeps_until.insert(partition, at);
                }
            }
        }
        self.note_empty(step)?;
        for (route, wake) in step.heard {
            let Route::Execution(partition) = route else {
                continue;
            };
            match wake {
                Wake::Timer { at_ms } => {
                    let at = self.ears.sleeps_until.entry(*partition).or_insert(*at_ms);
                    *at = (*at).min(*at_ms);
                }
                Wake::Ready { lane, queue, .. } => {
                    let lane = lane.split_once('/').map_or(lane.as_str(), |(_, lane)| lane);
                    self.ears.empty.remove(&(*partition, lane.to_owned(), queue.clone()));
                }
                _ => {}
            }
        }
        if !matches!(step.outcome, Outcome::Reply(_)) {
            return Ok(());
        }
        self.nobody_sleeps_too_long(partition, now)?;
        self.nobody_overlooks(partition, now)
    }

    /// After a claim or a round of grants that left nothing in a queue, dispatchers ignore the queue.
    fn note_empty(&mut self, step: &Step<'_>) -> Check {
        let (lane, capabilities, kinds, admission, next_score) = match (step.request, step.outcome) {
            (Request::ClaimExecutions(call), Outcome::Reply(Reply::ClaimExecutions(reply))) => match reply {
                ClaimExecutionsReply::Claimed { next_score, .. } => {
                    (&call.lane, &call.capabilities, &call.kinds, false, *next_score)
                }
                ClaimExecutionsReply::Paused { .. } => (&call.lane, &call.capabilities, &call.kinds, false, None),
                ClaimExecutionsReply::Replayed { .. } => return Ok(()),
            },
            (Request::IssueGrants(call), Outcome::Reply(Reply::IssueGrants(reply))) => {
                match reply {
                    // A repeated request says nothing about the queues.
                    IssueGrantsReply::Granted { grants, .. } if !grants.is_empty() && step.events.is_empty() => {
                        return Ok(());
                    }
                    IssueGrantsReply::Granted { next_score, .. } => {
                        (&call.lane, &call.capabilities, &call.kinds, true, *next_score)
                    }
                    IssueGrantsReply::Paused { .. } => (&call.lane, &call.capabilities, &call.kinds, true, None),
                    IssueGrantsReply::Replayed { .. } => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        let partition = step.partition();
        let waiting = self.waiting(partition, Some(step.now));
        let standing = self.waiting(partition, None);
        let kinds = kinds_of(kinds.as_ref());
        let mut reachable = Vec::new();
        for (requires, name, admitted) in &self.ears.names {
            if covered(requires, capabilities) {
                for kind in KINDS.iter().filter(|kind| among(kind, kinds.as_ref())) {
                    reachable.push(format!("{name}:{kind}"));
                    if admission {
                        reachable.push(format!("{admitted}:{kind}"));
                    }
                }
            }
        }
        for queue in reachable {
            let queue = (partition, lane.clone(), queue);
            if waiting.contains(&queue) && self.lane_starts(partition, lane) {
                require!(0, next_score.is_some(), "{queue:?} has work, but the claim reported that nothing is left");
            }
            // A reply with a next score brings the dispatcher back, even if that execution can no longer start.
            if next_score.is_some() && standing.contains(&queue) {
                self.ears.empty.remove(&queue);
            } else {
                self.ears.empty.insert(queue);
            }
        }
        Ok(())
    }

    fn lane_starts(&self, partition: u16, lane: &str) -> bool {
        let copy = self.lanes.get(&(partition, lane.to_owned()));
        copy.is_some_and(|copy| matches!(copy.definition.state, LaneState::Active | LaneState::Draining))
    }

    /// Queues of a partition with work; with a time, queues with work that could start at that time.
    fn waiting(&self, partition: u16, at: Option<i64>) -> BTreeSet<Queue> {
        self.live_in(partition)
            .filter(|(_, shadow, seen)| eligible(seen) && at.is_none_or(|now| shadow.may_start(seen, now)))
            .map(|(_, _, seen)| (partition, seen.lane.clone(), queue_of(seen)))
            .collect()
    }

    fn nobody_sleeps_too_long(&self, partition: u16, now: i64) -> Check {
        let next = self
            .live_in(partition)
            .filter_map(|(id, shadow, seen)| Some((shadow.wake_at(seen)?, id.to_string())))
            .chain(self.flow_wakes(partition).map(|(at, id)| (at, format!("flow {id}"))))
            .min();
        let Some((next, id)) = next else {
            return Ok(());
        };
        let sleeps_until = self.ears.sleeps_until.get(&partition);
        require!(
            6,
            sleeps_until.is_some_and(|at| *at <= next.max(now)),
            "{id} wakes at {next}, but the sleeper of {{p:{partition}}} sleeps until {sleeps_until:?}"
        );
        Ok(())
    }

    fn nobody_overlooks(&self, partition: u16, now: i64) -> Check {
        let overlooked = self
            .waiting(partition, Some(now))
            .into_iter()
            .find(|queue| self.ears.empty.contains(queue) && self.lane_starts(partition, &queue.1));
        require!(0, overlooked.is_none(), "{overlooked:?} holds work and dispatchers believe it to be empty");
        Ok(())
    }
}
