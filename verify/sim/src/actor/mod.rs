//! The actors. Each acts on its own beliefs, which the network may have made wrong.

mod courier;
mod debts;
mod flows;
mod holders;
mod lanes;
mod operator;
mod outbox;
mod outsider;
mod reader;
mod routes;
mod submitter;
mod timers;
mod treasurer;
mod unblock;
mod worker;

use std::collections::BTreeMap;

use ff_core::PartitionConfig;
use ff_core::types::{ExecutionId, FlowId, WaitpointId};
use ff_script::Route;
use ff_script::generated::{Fairness, LaneEntry};
use uuid::Uuid;

use crate::profile::Profile;
use crate::request::{Outcome, Request};
use crate::rng::Rng;
pub(crate) use debts::{apply, payments, settle};
pub(crate) use holders::{follow, route_of_set};
pub(crate) use treasurer::{Limits, draw_budgets, draw_quota};
pub(crate) use unblock::{free_of, tell};

pub(crate) const NAMESPACE: &str = "default";

/// The lanes of every simulation: name, value of one point of priority, fairness.
pub(crate) const LANES: &[(&str, i64, Fairness)] =
    &[("strict", 1_000_000_000_000, Fairness::Fifo), ("aging", 500, Fairness::Fifo), ("fair", 1_000, Fairness::Fair)];

/// All capabilities of any worker.
pub(crate) const CAPABILITIES: &[&str] = &["eu", "gpu", "ssd"];

/// Every kind of work.
pub(crate) const KINDS: &[&str] = &["mail", "render", "train model"];

/// The longest lease a worker asks for.
pub(crate) const LEASE_TTL_MS_MAX: i64 = 3_000;

/// Shared knowledge: ids that were mentioned, and the last known lanes.
pub(crate) struct Board {
    pub partitions: PartitionConfig,
    pub lanes: BTreeMap<String, LaneEntry>,
    pub known: Vec<ExecutionId>,
    pub instances: Vec<String>,
    /// Recent grants: execution, grant, worker.
    pub grants: Vec<(ExecutionId, Uuid, String)>,
    pub submissions_left: u32,
    /// All tokens that were ever issued, even if their waitpoint was never created.
    pub tokens: Vec<Token>,
    pub flows: Vec<FlowId>,
    /// Executions with frames.
    pub streams: Vec<ExecutionId>,
    /// Errors found by readers of streams.
    pub complaints: Vec<String>,
    pub limits: Limits,
}

/// The knowledge of an outsider: where to signal, and the digest of the token.
#[derive(Clone)]
pub(crate) struct Token {
    pub execution_id: ExecutionId,
    pub waitpoint_id: WaitpointId,
    pub digest: String,
}

pub(crate) fn draw_digest(rng: &mut Rng) -> String {
    [rng.uuid(), rng.uuid()].map(|half| half.simple().to_string()).concat()
}

impl Board {
    pub fn new(partitions: PartitionConfig, submissions: u32) -> Self {
        Board {
            partitions,
            lanes: BTreeMap::new(),
            known: Vec::new(),
            instances: Vec::new(),
            grants: Vec::new(),
            submissions_left: submissions,
            tokens: Vec::new(),
            flows: Vec::new(),
            streams: Vec::new(),
            complaints: Vec::new(),
            limits: Limits::default(),
        }
    }

    pub fn route_of(&self, id: &ExecutionId) -> Route {
        Route::Execution(self.partitions.of_execution(id))
    }

    pub fn routes(&self) -> impl Iterator<Item = Route> + use<> {
        (0..self.partitions.executions).map(Route::Execution)
    }

    pub fn saw_grant(&mut self, id: ExecutionId, grant_id: Uuid, instance: &str) {
        self.grants.push((id, grant_id, instance.to_owned()));
        if self.grants.len() > 16 {
            self.grants.remove(0);
        }
    }

    /// Keeps the newer of two definitions.
    pub fn heard_of(&mut self, entry: &LaneEntry) {
        let known = self.lanes.get(&entry.lane);
        if known.is_none_or(|known| known.version < entry.version) {
            self.lanes.insert(entry.lane.clone(), entry.clone());
        }
    }
}

/// One turn of an actor.
pub(crate) struct Scene<'a> {
    pub now: i64,
    pub rng: &'a mut Rng,
    pub board: &'a mut Board,
    pub said: Vec<(Route, Request)>,
    /// The partition whose reply is being handled.
    pub from: Option<Route>,
}

impl Scene<'_> {
    pub fn say(&mut self, route: Route, request: impl Into<Request>) {
        self.said.push((route, request.into()));
    }

    /// Sends a call about an execution to its partition.
    pub fn tell(&mut self, id: ExecutionId, request: impl Into<Request>) {
        let route = self.board.route_of(&id);
        self.say(route, request);
    }
}

pub(crate) trait Actor {
    fn name(&self) -> String;

    /// Acts. Returns the milliseconds until the next turn.
    fn tick(&mut self, scene: &mut Scene<'_>) -> i64;

    /// Handles the outcome of one of its calls.
    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>);
}

/// All actors of a profile.
pub(crate) fn cast(profile: &Profile, board: &mut Board, rng: &mut Rng) -> Vec<Box<dyn Actor>> {
    let mut all: Vec<Box<dyn Actor>> = Vec::new();
    for number in 0..profile.submitters {
        all.push(Box::new(submitter::Submitter::new(number)));
    }
    for number in 0..profile.workers {
        let worker = worker::Worker::new(number, profile.spawns, rng);
        board.instances.push(worker.instance().to_owned());
        all.push(Box::new(worker));
    }
    if profile.flows {
        all.push(Box::new(flows::Flows::default()));
    }
    all.push(Box::new(operator::Operator));
    all.push(Box::new(outsider::Outsider::default()));
    all.push(Box::new(reader::Reader::default()));
    all.push(Box::new(timers::Timers { lazy: profile.lazy_timers }));
    all.push(Box::new(routes::Routes));
    all.push(Box::new(outbox::Outbox::default()));
    all.push(Box::new(lanes::Lanes));
    all.push(Box::new(courier::Courier));
    if profile.limits {
        all.push(Box::new(debts::Debts::default()));
        all.push(Box::new(holders::Holders));
        all.push(Box::new(unblock::Unblock::default()));
        all.push(Box::new(treasurer::Treasurer));
    }
    all
}
