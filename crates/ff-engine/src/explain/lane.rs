//! Why the work of a lane is not running, counted by reason, and what would change that.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ff_api::explain::{LaneFacts, NearestWorker};
use ff_api::explain_lane::{LaneExplanation, LaneReason, LaneReasonOf, LaneReasonPart, LaneWorkers};
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::Error;
use ff_script::generated::{BlockingReason, BudgetRef, LaneCounts, LaneState, LaneWaiter, QuotaRef, Worker};

use super::admission::ROOM;
use super::{nearest, of_kind, serving, takers};
use crate::operations::{LaneWaiters, Operations, Room, set_of_lane};

/// How many requirement sets, quota keys and budgets are shown, those of most work first.
const PARTS_SHOWN: usize = 16;

impl Operations {
    /// Why the work of a lane is not running, counted by reason, and what would change that.
    pub async fn explain_lane(&self, namespace: &str, lane: &str) -> Result<LaneExplanation, Error> {
        let entry = self.lane(namespace, lane).await?;
        let room = match entry.definition.max_active {
            Some(_) => Some(self.room(&set_of_lane(namespace, lane)).await?),
            None => None,
        };
        let counts = self.lane_counts(namespace, lane).await?;
        let waiters = self.lane_waiters(namespace, lane).await?;
        let workers = self.workers().await?;
        let serving = serving(namespace, lane, &workers);
        let state = entry.definition.state;
        let waiting = Waiting { state, room, counts: &counts, waiters: &waiters, serving: &serving };
        let reasons = waiting.reasons(self).await?;
        Ok(LaneExplanation {
            lane: LaneFacts {
                namespace: entry.namespace,
                lane: entry.lane,
                state,
                max_active: entry.definition.max_active,
                active: room.map(|room| room.held),
            },
            running: waiting.sum(|counts| counts.active),
            waiting: reasons.iter().map(|reason| reason.count).sum(),
            workers: LaneWorkers { live: serving.len(), slots: serving.iter().map(|worker| worker.slots).sum() },
            reasons,
        })
    }
}

/// What is known of the work that waits in a lane.
struct Waiting<'a> {
    state: LaneState,
    room: Option<Room>,
    counts: &'a [LaneCounts],
    waiters: &'a LaneWaiters,
    serving: &'a [&'a Worker],
}

impl Waiting<'_> {
    fn sum(&self, of: impl Fn(&LaneCounts) -> i64) -> i64 {
        self.counts.iter().map(of).sum()
    }

    fn blocked(&self, reason: BlockingReason) -> impl Iterator<Item = &LaneWaiter> {
        self.waiters.items.iter().filter(move |waiter| waiter.reason == Some(reason))
    }

    /// Every execution that waits counts under one of them.
    async fn reasons(&self, operations: &Operations) -> Result<Vec<LaneReason>, Error> {
        let mut reasons = self.of_eligible();
        reasons.extend(self.of_quotas(operations).await?);
        reasons.extend(self.of_budgets(operations).await?);
        let plain = |reason: &str, count, remedy: &str| LaneReason {
            reason: reason.to_owned(),
            count,
            next_at: None,
            remedy: remedy.to_owned(),
            parts: Vec::new(),
        };
        reasons.extend([
            plain(
                "waiting_for_dependencies",
                self.sum(|counts| counts.blocked_dependencies),
                "each runs once enough of the edges into it are met: explain one of them to see which",
            ),
            plain(
                "waiting_for_children",
                self.sum(|counts| counts.blocked_children),
                "each goes on when its children have ended: explain one of them to see which",
            ),
            plain("held_by_operator", self.sum(|counts| counts.blocked_operator), "release them"),
            plain(
                "suspended",
                self.sum(|counts| counts.suspended),
                "each goes on when its condition is met: signal the open waitpoints, which GET /v1/waitpoints lists; an \
                 operator may resume, fail or cancel them",
            ),
            LaneReason {
                next_at: self.waiters.next_delay_at,
                ..plain(
                    "delayed",
                    self.sum(|counts| counts.delayed),
                    "each becomes eligible at its time; PATCH delay_until to change it",
                )
            },
            plain(
                "granted",
                self.sum(|counts| counts.granted),
                "their workers start them, or the grants run out",
            ),
        ]);
        reasons.retain(|reason| reason.count > 0);
        Ok(reasons)
    }

    /// Work that nothing blocks but the lane and its workers.
    fn of_eligible(&self) -> Vec<LaneReason> {
        let mut sets: BTreeMap<(&str, &[String]), i64> = BTreeMap::new();
        for queue in self.counts.iter().flat_map(|counts| &counts.queues) {
            *sets.entry((&queue.kind, &queue.requires)).or_default() += queue.eligible;
        }
        let eligible: i64 = sets.values().sum();
        let mut reasons = Vec::new();
        let mut say = |reason: &str, count, remedy: String| {
            reasons.push(LaneReason { reason: reason.to_owned(), count, next_at: None, remedy, parts: Vec::new() });
        };
        // What workers lack: the kind, where none of them takes it, else capabilities.
        let lacks = |kind: &str, requires: &[String]| {
            let takers = takers(kind, self.serving);
            match nearest(requires, &takers) {
                None => Some(Lacks::Kind(kind.to_owned())),
                Some(one) if one.missing.is_empty() => None,
                near => Some(Lacks::Capabilities(requires.to_vec(), near)),
            }
        };
        let mut uncovered: BTreeMap<Vec<String>, (Lacks, i64)> = BTreeMap::new();
        let mut lack = |lacks: Lacks, count: i64| {
            uncovered.entry(lacks.sorted_by()).or_insert((lacks, 0)).1 += count;
        };
        let mut out_of_reach = 0;
        if matches!(self.state, LaneState::Paused | LaneState::Disabled) {
            say("lane_state", eligible, format!("the lane is {}: resume it", self.state));
        } else if self.serving.is_empty() {
            say("no_worker", eligible, "start a worker that registers for this lane".to_owned());
        } else {
            for ((kind, requires), count) in sets {
                if let Some(lacks) = lacks(kind, requires) {
                    lack(lacks, count);
                    out_of_reach += count;
                }
            }
            let turn = eligible - out_of_reach;
            match self.room {
                Some(Room { held, limit: Some(limit) }) if held >= limit => say(
                    "max_active",
                    turn,
                    format!(
                        "{held} of {limit} run: the next starts when one of them ends; PUT the lane with a higher max_active to \
                         start more now"
                    ),
                ),
                _ => say(
                    "behind_others",
                    turn,
                    "nothing but their turn is missing: capable workers take them as slots become free; start more workers, or \
                     give them more slots"
                        .to_owned(),
                ),
            }
        }
        let waiting = out_of_reach + self.sum(|counts| counts.blocked_route);
        for waiter in self.blocked(BlockingReason::WaitingForCapableWorker) {
            let kind = waiter.detail.as_ref().and_then(|detail| detail.get("kind"));
            let lacks = match kind {
                Some(kind) => Lacks::Kind(kind.clone()),
                None => Lacks::Capabilities(waiter.requires.clone(), nearest(&waiter.requires, self.serving)),
            };
            lack(lacks, 1);
        }
        let parts = uncovered.into_values().filter(|(_, count)| *count > 0).map(|(lacks, count)| {
            let remedy = lacks.remedy();
            LaneReasonPart { what: lacks.into(), count, next_at: None, remedy }
        });
        let remedy = "start a worker of this lane that takes the kind and has the required capabilities".to_owned();
        let parts = most_first(parts.collect());
        let reason = "waiting_for_capable_worker".to_owned();
        reasons.push(LaneReason { reason, count: waiting, next_at: None, remedy, parts });
        reasons
    }

    async fn of_quotas(&self, operations: &Operations) -> Result<Option<LaneReason>, Error> {
        let mut keys: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for detail in self.blocked(BlockingReason::WaitingForQuota).filter_map(|waiter| waiter.detail.as_ref()) {
            let named = |name: &str| detail.get(name).map_or("", String::as_str);
            *keys.entry((named("quota_id"), named("key"))).or_default() += 1;
        }
        let mut parts = Vec::new();
        for ((quota_id, key), count) in most(keys) {
            let Ok(id) = quota_id.parse::<QuotaPolicyId>() else { continue };
            let asks = QuotaRef { key: key.to_owned(), quota_id: *id.as_uuid(), weight: None };
            let (remedy, next_at) = operations.quota_now(&asks).await?;
            let what = LaneReasonOf::Quota { quota_id: id, key: key.to_owned() };
            parts.push(LaneReasonPart { what, count, next_at, remedy: remedy.unwrap_or_else(|| ROOM.to_owned()) });
        }
        let count = self.sum(|counts| counts.blocked_quota);
        Ok(limited("waiting_for_quota", count, "each is called when its key has room", parts))
    }

    async fn of_budgets(&self, operations: &Operations) -> Result<Option<LaneReason>, Error> {
        let mut budgets: BTreeMap<&str, i64> = BTreeMap::new();
        // What was set aside by a budget asks for as much as it was refused.
        let mut refused: BTreeMap<&str, (&str, i64)> = BTreeMap::new();
        for detail in self.blocked(BlockingReason::WaitingForBudget).filter_map(|waiter| waiter.detail.as_ref()) {
            let named = |name: &str| detail.get(name).map_or("", String::as_str);
            *budgets.entry(named("budget_id")).or_default() += 1;
            if let Ok(asks) = named("asks").parse() {
                let least = refused.entry(named("budget_id")).or_insert((named("dimension"), asks));
                *least = if asks < least.1 { (named("dimension"), asks) } else { *least };
            }
        }
        let mut parts = Vec::new();
        for (budget_id, count) in most(budgets) {
            let Ok(id) = budget_id.parse::<BudgetId>() else { continue };
            let estimate = refused.get(budget_id).map(|(dimension, n)| [((*dimension).to_owned(), *n)].into());
            let asks = BudgetRef { budget_id: *id.as_uuid(), estimate };
            let (remedy, next_at) = operations.budget_now(&asks).await?;
            let what = LaneReasonOf::Budget { budget_id: id };
            parts.push(LaneReasonPart { what, count, next_at, remedy: remedy.unwrap_or_else(|| ROOM.to_owned()) });
        }
        let count = self.sum(|counts| counts.blocked_budget);
        Ok(limited("waiting_for_budget", count, "each goes on when its budgets have room", parts))
    }
}

/// What the workers of a lane lack for some of its work.
enum Lacks {
    /// None takes this kind.
    Kind(String),
    /// None that takes its kind has all of these; the one that lacks the fewest.
    Capabilities(Vec<String>, Option<NearestWorker>),
}

impl Lacks {
    fn sorted_by(&self) -> Vec<String> {
        match self {
            Self::Kind(kind) => vec!["kind".to_owned(), kind.clone()],
            Self::Capabilities(requires, _) => requires.iter().map(|token| format!("requires {token}")).collect(),
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Kind(kind) => of_kind(kind),
            Self::Capabilities(_, Some(one)) if one.missing.is_empty() => {
                format!("{} has them all by now: they are asked again by themselves", one.instance)
            }
            Self::Capabilities(_, Some(one)) => format!("{} lacks only {}", one.instance, one.missing.join(", ")),
            Self::Capabilities(requires, None) => {
                format!("start a worker of this lane that has {}", requires.join(", "))
            }
        }
    }
}

impl From<Lacks> for LaneReasonOf {
    fn from(lacks: Lacks) -> Self {
        match lacks {
            Lacks::Kind(kind) => Self::Kind { kind },
            Lacks::Capabilities(requires, nearest) => Self::Requires { requires, nearest },
        }
    }
}

/// A reason made of its parts; the first of them to have room says when, and a single one says how.
fn limited(reason: &str, count: i64, remedy: &str, parts: Vec<LaneReasonPart>) -> Option<LaneReason> {
    let next_at = parts.iter().filter_map(|part| part.next_at).min();
    let remedy = match parts.as_slice() {
        [only] => only.remedy.clone(),
        _ => remedy.to_owned(),
    };
    (count > 0).then(|| LaneReason { reason: reason.to_owned(), count, next_at, remedy, parts })
}

/// Those of most work, as many as are shown.
fn most<K: Ord>(counts: BTreeMap<K, i64>) -> Vec<(K, i64)> {
    let mut all: Vec<(K, i64)> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| Reverse(*count));
    all.truncate(PARTS_SHOWN);
    all
}

fn most_first(mut parts: Vec<LaneReasonPart>) -> Vec<LaneReasonPart> {
    parts.sort_by_key(|part| Reverse(part.count));
    parts.truncate(PARTS_SHOWN);
    parts
}
