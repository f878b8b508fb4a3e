//! What is known about ready work, and who waits for it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ff_script::generated::Task;
use ff_script::{Kinds, QueueName};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::dispatch::choose::{LaneView, best_head, choose};
use crate::dispatch::dispatcher::Profile;

/// The work a worker can see: one lane through one capability set and the kinds it takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Sight {
    /// `<namespace>/<lane>`.
    pub lane: String,
    /// Sorted.
    pub capabilities: Vec<String>,
    /// `None` is all.
    pub kinds: Option<Kinds>,
}

impl Sight {
    /// True when it looks at this lane, whatever its namespace.
    pub fn is_of(&self, lane: &str) -> bool {
        self.lane.split_once('/').is_some_and(|(_, own)| own == lane)
    }

    /// True when it covers work of a lane.
    fn covers(&self, lane: &str, kind: &str, requires: &[String]) -> bool {
        self.lane == lane
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind))
            && requires.iter().all(|token| self.capabilities.binary_search(token).is_ok())
    }
}

/// Where a worker is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Errand {
    pub sight: Sight,
    pub partition: u16,
    /// Some of its work needs admission.
    pub admission: bool,
    /// The last claim there left work behind: there is more than one claim takes.
    pub deep: bool,
    /// How many may be started, as far as is known; nothing is known of a lane that was not found to be limited.
    pub room: Option<i64>,
    /// The announcements heard about the place when the worker was sent.
    heard: u64,
    /// The announcements heard about the lane's room when the worker was sent.
    heard_room: Option<u64>,
}

impl Errand {
    /// True when work is reserved and admitted before it is claimed: in a limited lane, and where a claim cannot ask quotas and budgets.
    pub fn needs_grants(&self) -> bool {
        self.room.is_some() || self.admission
    }
}

#[cfg(test)]
impl Errand {
    /// One to this partition of a lane.
    pub fn to(lane: &str, partition: u16, deep: bool) -> Self {
        let sight = Sight { lane: lane.to_owned(), capabilities: Vec::new(), kinds: None };
        Self { sight, partition, admission: false, deep, room: None, heard: 0, heard_room: None }
    }
}

/// A partition as seen through one sight.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The score of its head; the lowest there is when unknown.
    score: i64,
    hot: bool,
    /// Work that needs admission was announced.
    admission: bool,
    /// The last claim left work behind.
    deep: bool,
    /// Somebody is asking it right now.
    asked: bool,
    /// Announcements heard so far.
    heard: u64,
}

impl Head {
    /// One of which nothing was heard.
    const UNHEARD: Self = Self { score: i64::MAX, hot: false, admission: false, deep: false, asked: false, heard: 0 };
}

/// What is known about the room of a limited lane. Nobody is sent to a full one until it has room again.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    /// How many more may start, as the last answer or announcement said.
    free: i64,
    /// Errands on their way.
    out: i64,
    /// Announcements heard so far.
    heard: u64,
}

impl Gate {
    fn room(self) -> i64 {
        self.free - self.out
    }
}

struct SightState {
    heads: BTreeMap<u16, Head>,
    weight: i64,
    waiters: VecDeque<u64>,
    /// Its partitions were looked at since it is watched.
    known: bool,
}

/// More requirement sets than anybody has; beyond it they are learned anew.
const LEARNED_MAX: usize = 10_000;

struct Waiter {
    worker: String,
    sights: Vec<Sight>,
    /// What it would claim: a submission can make this claim on its behalf.
    wish: Option<Wish>,
    sent: oneshot::Sender<Sent>,
}

/// A claim that waits.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub profile: Profile,
    pub request_id: Uuid,
}

/// What a waiter gets.
#[derive(Debug)]
pub(crate) enum Sent {
    /// Somewhere to go.
    To(Errand),
    /// What was claimed for it there.
    Met(Errand, Vec<Task>),
}

/// A waiter that a submission takes along: it is out of the line, and waits to be sent something.
pub(crate) struct Met {
    pub errand: Errand,
    pub wish: Wish,
    pub sent: oneshot::Sender<Sent>,
}

/// All sights and everyone who waits. Changing it sends waiting workers on their errands.
#[derive(Default)]
pub(crate) struct Board {
    sights: HashMap<Sight, SightState>,
    waiters: HashMap<u64, Waiter>,
    /// The lanes found to be limited.
    gates: HashMap<String, Gate>,
    /// What each worker's lanes have saved up, so that turns last from claim to claim.
    credits: HashMap<String, HashMap<Sight, i64>>,
    /// What the queues of each class require; a class stands for its requirement set, everywhere and for good.
    requirements: HashMap<String, Vec<String>>,
    /// Claims ask quotas and budgets on their way: what needs admission is claimed like everything else.
    admits_in_claims: bool,
    next_waiter: u64,
}

impl Board {
    /// An empty board.
    pub fn new(admits_in_claims: bool) -> Self {
        Self { admits_in_claims, ..Self::default() }
    }

    /// True when the partitions of the sight were looked at.
    pub fn knows(&self, sight: &Sight) -> bool {
        self.sights.get(sight).is_some_and(|state| state.known)
    }

    /// The sights of a lane that were not looked at yet.
    pub fn unknown(&self, lane: &str) -> Vec<Sight> {
        let unknown = self.sights.iter().filter(|(sight, state)| sight.lane == lane && !state.known);
        unknown.map(|(sight, _)| sight.clone()).collect()
    }

    /// These were looked at.
    pub fn known(&mut self, sights: &[Sight]) {
        for sight in sights {
            if let Some(state) = self.sights.get_mut(sight) {
                state.known = true;
            }
        }
    }

    /// Notes what queues require.
    pub fn learn<'a>(&mut self, queues: impl Iterator<Item = (&'a str, &'a [String])>) {
        if self.requirements.len() > LEARNED_MAX {
            self.requirements.clear();
        }
        for (queue, requires) in queues {
            let class = QueueName::of(queue).class;
            if !self.requirements.contains_key(class) {
                self.requirements.insert(class.to_owned(), requires.to_vec());
            }
        }
    }

    /// A queue of a partition has work, for those who cover it; false when it is not known what it requires.
    pub fn announced(&mut self, lane: &str, queue: &str, partition: u16, score: i64) -> bool {
        let queue = QueueName::of(queue);
        let requires: &[String] = match self.requirements.get(queue.class) {
            Some(requires) => requires,
            None if queue.is_plain() => &[],
            None => return self.sights_of(lane).is_empty(),
        };
        let covers = |sight: &&Sight| sight.covers(lane, queue.kind, requires);
        let sights: Vec<Sight> = self.sights.keys().filter(covers).cloned().collect();
        for sight in sights {
            self.ready(&sight, partition, score, queue.needs_admission());
        }
        true
    }

    pub fn sights_of(&self, lane: &str) -> Vec<Sight> {
        self.sights.keys().filter(|sight| sight.lane == lane).cloned().collect()
    }

    pub fn all_sights(&self) -> Vec<Sight> {
        self.sights.keys().cloned().collect()
    }

    /// Begins to watch a sight; nothing is known to be ready yet.
    pub fn watch(&mut self, sight: Sight) {
        self.sights.entry(sight).or_insert_with(|| SightState {
            heads: BTreeMap::new(),
            weight: 1,
            waiters: VecDeque::new(),
            known: false,
        });
    }

    pub fn set_weight(&mut self, lane: &str, weight: i64) {
        for (sight, state) in &mut self.sights {
            if sight.lane == lane {
                state.weight = weight;
            }
        }
    }

    /// A partition has work with this head, as an announcement or a look says.
    pub fn ready(&mut self, sight: &Sight, partition: u16, score: i64, admission: bool) {
        let Some(state) = self.sights.get_mut(sight) else { return };
        let head = state.heads.entry(partition).or_insert(Head { score, ..Head::UNHEARD });
        head.heard += 1;
        head.score = if head.hot { head.score.min(score) } else { score };
        head.hot = true;
        head.admission |= admission && !self.admits_in_claims;
        self.send_out(sight);
    }

    /// A claim has answered: what is left in the partition, if anything.
    pub fn answered(&mut self, errand: &Errand, left: Option<i64>) {
        let Some(state) = self.sights.get_mut(&errand.sight) else { return };
        if let Some(head) = state.heads.get_mut(&errand.partition) {
            head.asked = false;
            head.deep = left.is_some_and(|score| score != i64::MIN);
            match left {
                Some(score) => {
                    head.hot = true;
                    head.score = score;
                }
                // Empty, unless something was announced after the claim was sent.
                None => {
                    head.hot = head.heard != errand.heard;
                    head.admission &= head.hot;
                }
            }
        }
        match self.gates.get_mut(&errand.sight.lane).filter(|_| errand.heard_room.is_some()) {
            Some(gate) => {
                gate.out = (gate.out - 1).max(0);
                self.send_out_lane(&errand.sight.lane);
            }
            None => self.send_out(&errand.sight),
        }
    }

    /// An admission on this errand said how much room the lane has left. A full one is left alone until it is announced to have
    /// room, unless that was announced after the errand was sent.
    pub fn told_room(&mut self, errand: &Errand, free: i64) {
        match self.gates.get_mut(&errand.sight.lane) {
            Some(gate) if Some(gate.heard) != errand.heard_room => gate.free = gate.free.max(free),
            Some(gate) => gate.free = free,
            None => drop(self.gates.insert(errand.sight.lane.clone(), Gate { free, ..Gate::default() })),
        }
    }

    /// A full lane has room again, as an announcement says.
    pub fn has_room(&mut self, lane: &str, free: i64) {
        if self.sights.keys().any(|sight| sight.lane == lane) {
            let gate = self.gates.entry(lane.to_owned()).or_default();
            gate.free = free;
            gate.heard += 1;
            self.send_out_lane(lane);
        }
    }

    /// Room may have come to any lane unheard: one errand each finds out.
    pub fn doubt_room(&mut self) {
        for gate in self.gates.values_mut() {
            gate.free = gate.free.max(gate.out + 1);
            gate.heard += 1;
        }
        for lane in self.gates.keys().cloned().collect::<Vec<_>>() {
            self.send_out_lane(&lane);
        }
    }

    /// The lane is not limited any more.
    pub fn forget_room(&mut self, lane: &str) {
        if self.gates.remove(lane).is_some() {
            self.send_out_lane(lane);
        }
    }

    fn send_out_lane(&mut self, lane: &str) {
        for sight in self.sights_of(lane) {
            self.send_out(&sight);
        }
    }

    fn best(&self, sight: &Sight) -> Option<(i64, u16)> {
        if self.gates.get(&sight.lane).is_some_and(|gate| gate.room() <= 0) {
            return None;
        }
        self.sights.get(sight).and_then(best)
    }

    /// A claim did not answer: whatever made the partition hot may still be there.
    pub fn unanswered(&mut self, errand: &Errand) {
        self.answered(errand, Some(i64::MIN));
    }

    /// An errand nobody goes on: the place is as it was.
    pub fn put_back(&mut self, errand: &Errand) {
        let head = self.sights.get_mut(&errand.sight).and_then(|state| state.heads.get_mut(&errand.partition));
        if let Some(head) = head {
            head.asked = false;
        }
        if let Some(gate) = self.gates.get_mut(&errand.sight.lane).filter(|_| errand.heard_room.is_some()) {
            gate.out = (gate.out - 1).max(0);
        }
        self.send_out(&errand.sight);
    }

    /// The errand there is right now, if there is one.
    pub fn take(&mut self, worker: &str, sights: &[Sight]) -> Option<Errand> {
        let (id, mut sent) = self.wait(worker, sights.to_vec(), None);
        match sent.try_recv() {
            Ok(Sent::To(errand)) => Some(errand),
            _ => {
                self.leave(id);
                None
            }
        }
    }

    /// Takes a waiter out of the line for a submission to this partition. None when no waiter covers it, or a claim is out there.
    pub fn meet(&mut self, lane: &str, kind: &str, requires: &[String], partition: u16) -> Option<Met> {
        let covers = |sight: &Sight| sight.covers(lane, kind, requires);
        let wishes =
            |id: &u64| self.waiters.get(id).is_some_and(|waiter| waiter.wish.is_some() && !waiter.sent.is_closed());
        let (sight, id) = self.sights.iter().filter(|(sight, _)| covers(sight)).find_map(|(sight, state)| {
            let id = state.waiters.iter().copied().find(wishes)?;
            Some((sight.clone(), id))
        })?;
        let errand = self.look_in(&sight, partition)?;
        let waiter = self.waiters.remove(&id)?;
        self.forget(id, &waiter.sights);
        Some(Met { errand, wish: waiter.wish?, sent: waiter.sent })
    }

    /// An errand to a partition of which nothing was announced: an end there may make something ready. None when the lane is limited,
    /// or a claim is out there.
    pub fn look_in(&mut self, sight: &Sight, partition: u16) -> Option<Errand> {
        if self.gates.contains_key(&sight.lane) {
            return None;
        }
        let heads = &mut self.sights.get_mut(sight)?.heads;
        let head = heads.entry(partition).or_insert(Head::UNHEARD);
        if head.asked || head.admission {
            return None;
        }
        head.asked = true;
        Some(Errand {
            sight: sight.clone(),
            partition,
            admission: false,
            deep: head.deep,
            room: None,
            heard: head.heard,
            heard_room: None,
        })
    }

    /// Takes a place in the line of every sight; the errand arrives as soon as there is one.
    pub fn wait(&mut self, worker: &str, sights: Vec<Sight>, wish: Option<Wish>) -> (u64, oneshot::Receiver<Sent>) {
        let id = self.next_waiter;
        self.next_waiter += 1;
        let (sent, receiver) = oneshot::channel();
        for sight in &sights {
            if let Some(state) = self.sights.get_mut(sight) {
                state.waiters.push_back(id);
            }
        }
        self.waiters.insert(id, Waiter { worker: worker.to_owned(), sights, wish, sent });
        self.send_one(id);
        (id, receiver)
    }

    /// Leaves the line.
    pub fn leave(&mut self, id: u64) {
        if let Some(waiter) = self.waiters.remove(&id) {
            self.forget(id, &waiter.sights);
        }
    }

    fn forget(&mut self, id: u64, sights: &[Sight]) {
        for sight in sights {
            if let Some(state) = self.sights.get_mut(sight) {
                state.waiters.retain(|waiting| *waiting != id);
            }
        }
    }

    /// A worker is gone for good.
    pub fn forget_worker(&mut self, worker: &str) {
        self.credits.remove(worker);
    }

    /// Sends waiters of this sight out while there is somewhere to go.
    fn send_out(&mut self, sight: &Sight) {
        while let Some(state) = self.sights.get(sight) {
            let Some(first) = state.waiters.front().copied() else { return };
            if self.best(sight).is_none() || !self.send_one(first) {
                return;
            }
        }
    }

    /// Sends one waiter to the best place it can see; false when there is none.
    fn send_one(&mut self, id: u64) -> bool {
        let Some(waiter) = self.waiters.get(&id) else { return false };
        let saved = self.credits.get(&waiter.worker);
        let mut lanes: Vec<LaneView> = waiter
            .sights
            .iter()
            .map(|sight| {
                let weight = self.sights.get(sight).map_or(1, |state| state.weight);
                let credit = saved.and_then(|saved| saved.get(sight)).copied().unwrap_or(0);
                LaneView { weight, credit, best: self.best(sight) }
            })
            .collect();
        let Some(index) = choose(&mut lanes) else { return false };
        *self.credits.entry(waiter.worker.clone()).or_default() =
            waiter.sights.iter().cloned().zip(lanes.iter().map(|lane| lane.credit)).collect();
        let (_, partition) = lanes[index].best.expect("a chosen lane has work");
        let waiter = self.waiters.remove(&id).expect("it was there a moment ago");
        self.forget(id, &waiter.sights);
        let sight = waiter.sights[index].clone();
        let head =
            self.sights.get_mut(&sight).and_then(|state| state.heads.get_mut(&partition)).expect("it was the best");
        let gate = self.gates.get_mut(&sight.lane);
        let errand = Errand {
            partition,
            admission: head.admission,
            deep: head.deep,
            room: gate.as_ref().map(|gate| gate.room()),
            heard: head.heard,
            heard_room: gate.as_ref().map(|gate| gate.heard),
            sight,
        };
        // A worker that gave up in the meantime leaves the place as it was.
        if waiter.sent.send(Sent::To(errand)).is_ok() {
            head.asked = true;
            if let Some(gate) = gate {
                gate.out += 1;
            }
        }
        true
    }
}

fn best(state: &SightState) -> Option<(i64, u16)> {
    best_head(
        state
            .heads
            .iter()
            .filter(|(_, head)| head.hot && !head.asked)
            .map(|(partition, head)| (head.score, *partition)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(lane: &str) -> Sight {
        Sight { lane: lane.to_owned(), capabilities: Vec::new(), kinds: None }
    }

    fn board(lanes: &[&str]) -> Board {
        let mut board = Board::default();
        for lane in lanes {
            board.watch(sight(lane));
        }
        board
    }

    /// What a waiter is sent.
    struct Line(oneshot::Receiver<Sent>);

    impl Line {
        fn try_recv(&mut self) -> Result<Errand, ()> {
            match self.0.try_recv() {
                Ok(Sent::To(errand)) => Ok(errand),
                _ => Err(()),
            }
        }
    }

    fn wait(board: &mut Board, worker: &str, sights: Vec<Sight>) -> (u64, Line) {
        let (id, sent) = board.wait(worker, sights, None);
        (id, Line(sent))
    }

    fn wish() -> Wish {
        let profile = Profile {
            namespace: "n".to_owned(),
            lanes: vec!["a".to_owned()],
            worker_id: "w".to_owned(),
            instance: "w-1".to_owned(),
            capabilities: Vec::new(),
            kinds: None,
            lease_ttl_ms: 30_000,
        };
        Wish { profile, request_id: Uuid::nil() }
    }

    #[test]
    fn a_submission_meets_a_waiter_that_covers_it_and_no_other() {
        let mut board = board(&["a"]);
        assert!(board.meet("a", "mail", &[], 1).is_none(), "nobody waits");
        let (_, _plain) = wait(&mut board, "w", vec![sight("a")]);
        assert!(board.meet("a", "mail", &[], 1).is_none(), "it said nothing about its claim");
        let (_, mut waiting) = board.wait("w", vec![sight("a")], Some(wish()));
        assert!(board.meet("a", "mail", &["gpu".to_owned()], 1).is_none());
        assert!(board.meet("b", "mail", &[], 1).is_none());
        let met = board.meet("a", "mail", &[], 1).expect("it is met");
        assert_eq!(met.errand.partition, 1);
        assert!(board.meet("a", "mail", &[], 1).is_none(), "it is met once");
        board.answered(&met.errand, None);
        met.sent.send(Sent::Met(met.errand, Vec::new())).expect("it still waits");
        assert!(matches!(waiting.try_recv(), Ok(Sent::Met(..))));
        let (_, gone) = board.wait("w", vec![sight("a")], Some(wish()));
        drop(gone);
        assert!(board.meet("a", "mail", &[], 1).is_none(), "it has gone");
    }

    #[test]
    fn a_look_where_something_ended_is_an_errand_like_any_other() {
        let mut board = board(&["a"]);
        let errand = board.look_in(&sight("a"), 3).expect("nobody asks there");
        assert!(board.look_in(&sight("a"), 3).is_none(), "somebody does now");
        board.ready(&sight("a"), 3, 7, false);
        board.answered(&errand, None);
        assert_eq!(board.take("w", &[sight("a")]).map(|errand| errand.partition), Some(3), "announced meanwhile");
        board.has_room("a", 1);
        assert!(board.look_in(&sight("a"), 4).is_none(), "a limited lane is reached by grants");
    }

    #[test]
    fn one_piece_of_work_sends_one_worker() {
        let mut board = board(&["a"]);
        let (_, mut first) = wait(&mut board, "w", vec![sight("a")]);
        let (_, mut second) = wait(&mut board, "w", vec![sight("a")]);
        board.ready(&sight("a"), 3, 10, false);
        let errand = first.try_recv().expect("the first in line goes");
        assert_eq!(errand.partition, 3);
        assert!(second.try_recv().is_err());
        board.answered(&errand, Some(20));
        assert_eq!(second.try_recv().expect("more was left").partition, 3);
    }

    #[test]
    fn an_empty_answer_keeps_what_was_announced_after_the_claim_was_sent() {
        let mut board = board(&["a"]);
        board.ready(&sight("a"), 1, 10, false);
        let (_, mut first) = wait(&mut board, "w", vec![sight("a")]);
        let errand = first.try_recv().expect("there is work");
        board.ready(&sight("a"), 1, 11, false);
        board.answered(&errand, None);
        let (_, mut second) = wait(&mut board, "w", vec![sight("a")]);
        let errand = second.try_recv().expect("the later announcement counts");
        board.answered(&errand, None);
        let (_, mut third) = wait(&mut board, "w", vec![sight("a")]);
        assert!(third.try_recv().is_err());
    }

    #[test]
    fn the_best_head_goes_first_and_a_busy_partition_is_left_alone() {
        let mut board = board(&["a"]);
        for (partition, score) in [(1, 30), (2, 10), (3, 20)] {
            board.ready(&sight("a"), partition, score, false);
        }
        let order: Vec<u16> = (0..3)
            .map(|_| wait(&mut board, "w", vec![sight("a")]).1.try_recv().expect("three have work").partition)
            .collect();
        assert_eq!(order, [2, 3, 1]);
    }

    #[test]
    fn lanes_take_turns_from_claim_to_claim() {
        let mut board = board(&["a", "b"]);
        let lanes: Vec<String> = (0..4)
            .map(|_| {
                board.ready(&sight("a"), 1, 1, false);
                board.ready(&sight("b"), 1, 1, false);
                let (_, mut errand) = wait(&mut board, "w", vec![sight("a"), sight("b")]);
                let errand = errand.try_recv().expect("both have work");
                board.answered(&errand, Some(1));
                errand.sight.lane
            })
            .collect();
        assert_eq!(lanes, ["a", "b", "a", "b"]);
    }

    #[test]
    fn nobody_is_sent_to_a_full_lane_until_it_has_room() {
        let mut board = board(&["a"]);
        board.ready(&sight("a"), 1, 10, false);
        let (_, mut first) = wait(&mut board, "w", vec![sight("a")]);
        let errand = first.try_recv().expect("there is work");
        board.told_room(&errand, 0);
        board.answered(&errand, Some(10));
        let (_, mut second) = wait(&mut board, "w", vec![sight("a")]);
        assert!(second.try_recv().is_err());
        board.ready(&sight("a"), 2, 5, false);
        assert!(second.try_recv().is_err());
        board.has_room("a", 1);
        let errand = second.try_recv().expect("there is room");
        assert_eq!((errand.partition, errand.room), (2, Some(1)));
        let (_, mut third) = wait(&mut board, "w", vec![sight("a")]);
        assert!(third.try_recv().is_err(), "one slot sends one worker");
        board.told_room(&errand, 1);
        board.answered(&errand, None);
        assert_eq!(third.try_recv().expect("another is free").partition, 1);
    }

    #[test]
    fn room_announced_while_the_refusal_was_on_its_way_is_not_lost() {
        let mut board = board(&["a"]);
        for gated in [false, true] {
            board.ready(&sight("a"), 1, 10, false);
            let (_, mut first) = wait(&mut board, "w", vec![sight("a")]);
            let errand = first.try_recv().expect("there is work");
            assert_eq!(errand.room.is_some(), gated);
            board.has_room("a", 1);
            board.told_room(&errand, 0);
            board.answered(&errand, Some(10));
            let (_, mut second) = wait(&mut board, "w", vec![sight("a")]);
            let errand = second.try_recv().expect("the announcement counts");
            board.told_room(&errand, 0);
            board.answered(&errand, Some(10));
            let (_, mut third) = wait(&mut board, "w", vec![sight("a")]);
            assert!(third.try_recv().is_err());
            board.doubt_room();
            let errand = third.try_recv().expect("a doubt is looked into");
            board.told_room(&errand, 1);
            board.answered(&errand, Some(10));
        }
    }

    #[test]
    fn a_worker_that_left_does_not_take_work_along() {
        let mut board = board(&["a", "b"]);
        let (id, gone) = wait(&mut board, "w", vec![sight("a"), sight("b")]);
        drop(gone);
        let (_, mut waiting) = wait(&mut board, "w", vec![sight("b")]);
        board.ready(&sight("b"), 7, 1, false);
        assert_eq!(waiting.try_recv().expect("it is next").partition, 7);
        board.leave(id);
    }

    #[test]
    fn work_is_announced_to_those_who_cover_it_only() {
        let [all, none] = [vec!["cpu".to_owned(), "gpu".to_owned()], Vec::new()].map(|capabilities| Sight {
            lane: "a".to_owned(),
            capabilities,
            kinds: None,
        });
        let mut board = Board::default();
        board.watch(all.clone());
        board.watch(none.clone());
        assert!(!board.announced("a", "0badf00d:mail", 1, 5), "nobody knows what it requires");
        board.learn([("0badf00d:call", ["gpu".to_owned()].as_slice())].into_iter());
        assert!(board.announced("a", "0badf00d:mail", 1, 5));
        assert_eq!(board.take("w", std::slice::from_ref(&none)), None);
        assert_eq!(board.take("w", std::slice::from_ref(&all)).map(|errand| errand.partition), Some(1));
        assert!(board.announced("a", "any:mail", 2, 5));
        assert_eq!(board.take("w", &[none]).map(|errand| errand.partition), Some(2));
        assert!(board.announced("nobody serves", "feedbeef:mail", 1, 5));
    }

    #[test]
    fn work_is_announced_to_those_who_take_its_kind_only() {
        let [mail, calls] = ["mail", "call"].map(|kind| Sight {
            lane: "a".to_owned(),
            capabilities: Vec::new(),
            kinds: Some(Kinds::of([kind])),
        });
        let mut board = Board::default();
        board.watch(mail.clone());
        board.watch(calls.clone());
        assert!(board.announced("a", "any:mail", 1, 5));
        assert_eq!(board.take("w", std::slice::from_ref(&calls)), None);
        let (_, _waiting) = board.wait("v", vec![calls], Some(wish()));
        assert!(board.meet("a", "mail", &[], 2).is_none(), "it does not take the kind");
        assert!(board.meet("a", "call", &[], 2).is_some());
        assert_eq!(board.take("w", &[mail]).map(|errand| errand.partition), Some(1));
    }

    #[test]
    fn an_errand_that_is_put_back_goes_to_the_next() {
        let mut board = board(&["a"]);
        board.ready(&sight("a"), 3, 10, false);
        let errand = board.take("w", &[sight("a")]).expect("there is work");
        assert_eq!(board.take("w", &[sight("a")]), None, "somebody is asking already");
        let (_, mut waiting) = wait(&mut board, "v", vec![sight("a")]);
        board.put_back(&errand);
        assert_eq!(waiting.try_recv().expect("it is next").partition, 3);
    }
}
