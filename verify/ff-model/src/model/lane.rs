//! A lane as one partition knows it: its definition, who has a fair share of it, and which queues nobody covers.

use std::collections::BTreeMap;

use ff_script::generated::{Fairness, LaneDefinition, LaneState};
use ff_script::{Bytes, Kinds};
use sha1::{Digest, Sha1};

/// Virtual milliseconds for one execution of weight 1.
const SHARE: i64 = 1_000;

#[derive(Clone, Debug)]
pub struct Lane {
    pub version: i64,
    pub definition: LaneDefinition,
    /// The virtual time while the lane is fair and has work.
    pub virtual_time: Option<i64>,
    /// The virtual start of the next execution of each fairness key.
    pub next_start: BTreeMap<String, i64>,
    /// Queues nobody covers, by name.
    pub uncovered: BTreeMap<String, Uncovered>,
}

/// What the work of a queue has in common.
#[derive(Clone, Debug)]
pub struct Queue {
    pub kind: String,
    pub requires: Vec<String>,
    pub admission: bool,
}

#[derive(Clone, Debug)]
pub struct Uncovered {
    pub queue: Queue,
    /// Nobody takes the kind at all.
    pub kind_missing: bool,
    pub since: i64,
    /// The grace period is over: work of this queue is blocked.
    pub confirmed: bool,
}

/// The interval of virtual time of an execution in a fair lane.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub start: i64,
    pub end: i64,
}

impl Lane {
    pub fn new(version: i64, definition: LaneDefinition) -> Lane {
        Lane { version, definition, virtual_time: None, next_start: BTreeMap::new(), uncovered: BTreeMap::new() }
    }

    pub fn starts(&self) -> bool {
        matches!(self.definition.state, LaneState::Active | LaneState::Draining)
    }

    pub fn accepts(&self) -> bool {
        matches!(self.definition.state, LaneState::Active | LaneState::Paused)
    }

    pub fn is_fair(&self) -> bool {
        self.definition.fairness == Fairness::Fair
    }

    /// The score of new work and, in a fair lane, its virtual start and end.
    pub fn score(
        &mut self,
        created_at: i64,
        priority: i64,
        fairness_key: Option<&str>,
        now: i64,
    ) -> (i64, Option<Turn>) {
        let bonus = priority * self.definition.priority_weight;
        if !self.is_fair() {
            return (created_at - bonus, None);
        }
        let virtual_time = *self.virtual_time.get_or_insert(now);
        let key = fairness_key.unwrap_or_default();
        let start = virtual_time.max(self.next_start.get(key).copied().unwrap_or(0));
        let weights = self.definition.fairness_weights.as_ref();
        let weight = fairness_key.and_then(|key| weights?.get(key)).copied().unwrap_or(1);
        let end = start + (SHARE / weight).max(1);
        self.next_start.insert(key.to_owned(), end);
        (start - bonus, Some(Turn { start, end }))
    }

    /// Work that starts moves the virtual time.
    pub fn started(&mut self, turn: Option<Turn>) {
        if self.is_fair()
            && let (Some(turn), Some(virtual_time)) = (turn, self.virtual_time.as_mut())
        {
            *virtual_time = turn.start.max(*virtual_time);
        }
    }

    /// Work leaves the lane. Its key starts afresh if no later work used it.
    pub fn left(&mut self, fairness_key: Option<&str>, turn: Option<Turn>) {
        let key = fairness_key.unwrap_or_default();
        if turn.is_some_and(|turn| self.next_start.get(key) == Some(&turn.end)) {
            self.next_start.remove(key);
        }
    }

    /// No work waits: every key starts afresh.
    pub fn idle(&mut self) {
        if self.virtual_time.take().is_some() {
            self.next_start.clear();
        }
    }

    pub fn is_confirmed_uncovered(&self, queue: &str) -> bool {
        self.uncovered.get(queue).is_some_and(|u| u.confirmed)
    }
}

/// The first twenty hex digits of a SHA-1, used in the names of keys.
pub fn digest(text: &str) -> String {
    hex::encode(Sha1::digest(text))[..20].to_owned()
}

/// The queue of a kind and a requirement set.
pub fn queue_name(kind: &str, requires: &[String], admission: bool) -> String {
    let class = if requires.is_empty() { "any".to_owned() } else { digest(&requires.join(",")) };
    let class = if admission { format!("admit.{class}") } else { class };
    format!("{class}:{kind}")
}

/// What a worker takes.
pub struct Taker<'a> {
    pub capabilities: &'a [String],
    /// `None` is every kind.
    pub kinds: Option<Vec<String>>,
}

impl<'a> Taker<'a> {
    /// One whose claims carry a packed list of kinds.
    pub fn of(capabilities: &'a [String], kinds: Option<&Bytes>) -> Self {
        let kinds = kinds.map(|packed| Kinds::unpacked(packed).expect("the tests pack them").names().to_vec());
        Self { capabilities, kinds }
    }

    pub fn takes_kind(&self, kind: &str) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|known| known == kind))
    }

    pub fn takes(&self, queue: &Queue) -> bool {
        self.takes_kind(&queue.kind) && covers(self.capabilities, &queue.requires)
    }
}

/// True if the capabilities include every requirement.
pub fn covers(capabilities: &[String], requires: &[String]) -> bool {
    requires.iter().all(|token| capabilities.contains(token))
}
