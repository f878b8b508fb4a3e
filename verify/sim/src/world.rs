//! The world: virtual time, a queue of coming events, and a network that loses, copies and delays.

use std::collections::BTreeMap;
use std::sync::Arc;

use ff_core::PartitionConfig;
use ff_script::Route;
use ff_script::generated::*;

use crate::Options;
use crate::actor::{self, Actor, Board, Scene};
use crate::check::{Checker, Step, Violation};
use crate::profile::Profile;
use crate::request::{Failure, Outcome, Reply, Request};
use crate::rng::Rng;
use crate::settle;
use crate::store::{Fault, Store};
use crate::totals::Totals;

/// The time at which every simulation begins.
const BEGIN_MS: i64 = 1_700_000_000_000;

/// The number of calls between two comparisons of all indexes with the history, and between two runs of the library's
/// own check.
const INDEXES_EVERY: u64 = 5;
const FSCK_EVERY: u64 = 40;

/// How often a client retries before it gives up.
const ASKS_MAX: u32 = 3;

enum Due {
    Tick(usize),
    Arrive(u64, Route, Arc<Request>),
    Answer(u64, Arc<Outcome>),
    /// The client waited too long for a reply.
    Silence(u64),
    RoomAgain,
}

struct Asked {
    actor: usize,
    route: Route,
    request: Arc<Request>,
    asks: u32,
}

pub(crate) struct World {
    pub rng: Rng,
    pub store: Store,
    pub checker: Checker,
    pub board: Board,
    pub now: i64,
    profile: Profile,
    steps: u32,
    done: u32,
    queue: BTreeMap<(i64, u64), Due>,
    sequence: u64,
    asked: BTreeMap<u64, Asked>,
    actors: Vec<Box<dyn Actor>>,
    totals: Totals,
    trace: Option<Vec<String>>,
}

impl World {
    pub fn new(options: &Options) -> Self {
        let mut rng = Rng::new(options.seed);
        let profile = Profile::draw(&mut rng, options.limits);
        let partitions = PartitionConfig { executions: profile.partitions, budgets: 1, quotas: 1, schedules: 1 };
        let store = Store::new(&options.library, partitions, BEGIN_MS);
        let mut board = Board::new(partitions, profile.submissions);
        (board.limits.on, board.limits.widened) = (profile.limits, profile.widened);
        let actors = actor::cast(&profile, &mut board, &mut rng);
        World {
            store,
            checker: Checker::new(partitions),
            board,
            now: BEGIN_MS,
            // Admission needs additional calls.
            steps: options.steps + if profile.limits { options.steps / 2 } else { 0 },
            profile,
            done: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            asked: BTreeMap::new(),
            actors,
            totals: Totals::default(),
            trace: options.trace.then(Vec::new),
            rng,
        }
    }

    pub fn into_parts(self) -> (Totals, Vec<String>) {
        (self.totals, self.trace.unwrap_or_default())
    }

    pub fn run(&mut self) -> Result<(), Violation> {
        let profile = format!("{:?}", self.profile);
        self.note(|| profile);
        self.store.fix_partitions()?;
        self.define_lanes()?;
        if self.board.limits.on {
            self.define_limits()?;
        }
        for actor in 0..self.actors.len() {
            let at = self.now + self.rng.between(0, 100);
            self.schedule(at, Due::Tick(actor));
        }
        while self.done < self.steps {
            let Some(((at, _), due)) = self.queue.pop_first() else {
                break;
            };
            // Events that were due while the world stopped happen late.
            self.now = self.now.max(at);
            self.happen(due)?;
        }
        self.note(|| "---- the faults stop ----".to_owned());
        self.store.set_full(false);
        settle::run(self)
    }

    fn define_lanes(&mut self) -> Result<(), Violation> {
        for (lane, weight, fairness) in actor::LANES {
            let mut call = DefineLane::new("setup".to_owned(), (*lane).to_owned(), actor::NAMESPACE.to_owned());
            call.priority_weight = Some(*weight);
            call.fairness = Some(*fairness);
            let outcome = self.execute(Route::Fleet, &call.into(), "setup", None)?;
            if let Outcome::Reply(Reply::DefineLane(DefineLaneReply::Defined { entry, .. })) = outcome {
                for route in self.board.routes() {
                    // Some partitions first meet a lane when they get work for it.
                    if self.rng.percent(80) {
                        self.execute(route, &InstallLane { entry: entry.clone() }.into(), "setup", None)?;
                    }
                }
                self.board.lanes.insert((*lane).to_owned(), entry);
            }
        }
        Ok(())
    }

    fn define_limits(&mut self) -> Result<(), Violation> {
        for _ in 0..self.rng.between(2, 3) {
            let quota = actor::draw_quota(&mut self.rng);
            self.execute(
                Route::Quota(0),
                &PutQuota { actor: None, quota: quota.clone(), version: None }.into(),
                "setup",
                None,
            )?;
            self.board.limits.quotas.push((quota, 1));
        }
        for budget in actor::draw_budgets(&mut self.rng) {
            let create = CreateBudget { actor: "setup".to_owned(), budget: budget.clone() };
            self.execute(Route::Budget(0), &create.into(), "setup", None)?;
            self.board.limits.budgets.push(budget);
        }
        for (scope, id) in self.board.limits.scopes() {
            self.execute(Route::Fleet, &NoteScope::new(id, scope).into(), "setup", None)?;
        }
        Ok(())
    }

    fn schedule(&mut self, at: i64, due: Due) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), due);
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>8.3} {}", (self.now - BEGIN_MS) as f64 / 1000.0, line()));
        }
    }

    fn happen(&mut self, due: Due) -> Result<(), Violation> {
        if let Some(complaint) = self.board.complaints.pop() {
            return Err(Violation::new(35, complaint));
        }
        match due {
            Due::Tick(actor) => {
                let next = self.play(actor, None, |actor, scene| actor.tick(scene));
                self.schedule(self.now + next.max(1), Due::Tick(actor));
            }
            Due::Arrive(token, route, request) => self.arrive(token, route, &request)?,
            Due::Answer(token, outcome) => {
                if let Some(asked) = self.asked.remove(&token) {
                    let request = asked.request;
                    self.play(asked.actor, Some(asked.route), |actor, scene| {
                        actor.answer(&request, &outcome, scene);
                        0
                    });
                }
            }
            Due::Silence(token) => self.silence(token),
            Due::RoomAgain => {
                self.store.set_full(false);
                self.note(|| "the disk has room again".to_owned());
            }
        }
        Ok(())
    }

    /// Lets an actor act, and sends its calls.
    fn play(
        &mut self,
        index: usize,
        from: Option<Route>,
        act: impl FnOnce(&mut dyn Actor, &mut Scene<'_>) -> i64,
    ) -> i64 {
        let mut scene = Scene { now: self.now, rng: &mut self.rng, board: &mut self.board, said: Vec::new(), from };
        let next = act(self.actors[index].as_mut(), &mut scene);
        for (route, request) in scene.said {
            self.sequence += 1;
            let token = self.sequence;
            let request = Arc::new(request);
            self.asked.insert(token, Asked { actor: index, route, request, asks: 0 });
            self.send(token);
        }
        next
    }

    /// Sends a request over the network. It may be lost, delayed or duplicated.
    fn send(&mut self, token: u64) {
        let asked = self.asked.get_mut(&token).expect("asked before it is sent");
        asked.asks += 1;
        let (route, request) = (asked.route, asked.request.clone());
        // A grant is used once. A copy that issues it again and another that consumes it would start something that was
        // not requested.
        let once = self.profile.limits && matches!(*request, Request::IssueGrants(_));
        if self.rng.permille(self.profile.lose_request) {
            self.totals.count("fault", "lost request");
        } else {
            let late = !once && self.rng.permille(self.profile.late);
            if late {
                self.totals.count("fault", "late request");
            }
            let took = if late { self.rng.between(500, 12_000) } else { self.rng.between(0, 15) };
            self.schedule(self.now + took, Due::Arrive(token, route, request.clone()));
            if !once && self.rng.permille(self.profile.duplicate) {
                self.totals.count("fault", "duplicated request");
                let again = self.now + self.rng.between(0, 6_000);
                self.schedule(again, Due::Arrive(token, route, request));
            }
        }
        let patience = self.rng.between(150, 900);
        self.schedule(self.now + patience, Due::Silence(token));
    }

    fn silence(&mut self, token: u64) {
        let Some(asked) = self.asked.get(&token) else {
            return;
        };
        if asked.asks < ASKS_MAX && self.rng.percent(80) {
            self.totals.count("fault", "asked again");
            self.send(token);
        } else {
            self.asked.remove(&token);
        }
    }

    fn arrive(&mut self, token: u64, route: Route, request: &Arc<Request>) -> Result<(), Violation> {
        let fault = self.draw_fault();
        let who =
            self.asked.get(&token).map_or_else(|| "(late copy)".to_owned(), |asked| self.actors[asked.actor].name());
        let outcome = self.execute(route, request, &who, fault)?;
        self.done += 1;
        if self.rng.permille(self.profile.lose_reply) {
            self.totals.count("fault", "lost reply");
        } else if !matches!(outcome, Outcome::Failed(Failure::Crashed | Failure::Died)) {
            let took = self.rng.between(0, 15);
            self.schedule(self.now + took, Due::Answer(token, Arc::new(outcome)));
        }
        if !self.store.is_full() && self.rng.permille(self.profile.full) {
            self.totals.count("fault", "full disk");
            self.note(|| "the disk is full".to_owned());
            self.store.set_full(true);
            let until = self.now + self.rng.between(200, 3_000);
            self.schedule(until, Due::RoomAgain);
        }
        if self.rng.permille(self.profile.stall) {
            self.totals.count("fault", "stall");
            self.now += self.rng.between(1_000, 40_000);
            self.note(|| "the world stood still".to_owned());
        }
        Ok(())
    }

    fn draw_fault(&mut self) -> Option<Fault> {
        if self.rng.permille(self.profile.crash) {
            return Some(Fault::CrashAt(self.rng.between(1, 16) as u64));
        }
        if self.rng.permille(self.profile.die) {
            return Some(Fault::CrashAfterCommit);
        }
        if self.rng.permille(self.profile.broken) {
            return Some(Fault::BreakAt(self.rng.between(1, 16) as u64));
        }
        None
    }

    /// Runs a call on the host, and has the checker check all its effects.
    pub fn execute(
        &mut self,
        route: Route,
        request: &Request,
        who: &str,
        fault: Option<Fault>,
    ) -> Result<Outcome, Violation> {
        self.store.set_now(self.now);
        let outcome = self.store.run(route, request, fault);
        self.note(|| {
            let shown = match &outcome {
                Ok(outcome) => outcome.to_string(),
                Err(violation) => violation.to_string(),
            };
            format!("{who} → {route} {request}\n             = {shown}")
        });
        let outcome = outcome?;
        self.totals.count("calls", "all");
        match &outcome {
            Outcome::Reply(reply) => {
                let told =
                    matches!(request, Request::DeliverSignal(_) | Request::AppendFrames(_) | Request::ReadStream(_));
                if told || !matches!(route, Route::Execution(_) | Route::Fleet) {
                    self.totals.count("reply", &format!("{}.{}", request.name(), reply.variant()));
                }
            }
            Outcome::Refused(error) => self.totals.count("refused", error.code()),
            Outcome::Failed(failure) => self.totals.count("failed", &format!("{failure:?}")),
        }
        let events = self.checker.new_events(&self.store, route)?;
        for event in &events {
            self.totals.count("event", &event.r#type);
            if let Some(cause) = event.data.get("cause") {
                self.totals.count("cause", &cause.to_string());
            }
            if let Some(trace) = &mut self.trace {
                let id = event.execution_id.map_or_else(String::new, |id| id.to_string()[..8].to_owned());
                trace.push(format!("             ! {} {id} {:?}", event.r#type, event.data));
            }
        }
        let heard = self.store.heard()?;
        let step = Step { heard: &heard, now: self.now, route, request, outcome: &outcome, events: &events };
        self.checker.observe(&step, &self.store)?;
        for unpaid in self.checker.unpaid() {
            self.totals.count("unpaid", unpaid);
        }
        if matches!(outcome, Outcome::Failed(Failure::Crashed | Failure::Died)) {
            self.checker.survived(&self.store)?;
            if self.rng.percent(self.profile.clock_back) {
                let back = self.rng.between(1, 2_000);
                if self.checker.may_go_back(back) {
                    self.totals.count("fault", "clock went back");
                    self.now -= back;
                    self.note(|| "the host's clock is behind".to_owned());
                }
            }
            self.checker.woke_up(self.now);
        }
        let calls = self.totals.of("calls.all");
        if calls.is_multiple_of(FSCK_EVERY) {
            self.check_deeply()?;
        } else if calls.is_multiple_of(INDEXES_EVERY) {
            self.totals.count("checks", "indexes");
            self.checker.check_indexes(&self.store.dump()?)?;
        }
        Ok(outcome)
    }

    pub fn count(&mut self, group: &str, name: &str) {
        self.totals.count(group, name);
    }

    /// Compares the whole store with the checker's expectations, and runs the library's own check.
    pub fn check_deeply(&mut self) -> Result<(), Violation> {
        self.totals.count("checks", "fsck");
        self.checker.deep(&self.store)
    }
}
