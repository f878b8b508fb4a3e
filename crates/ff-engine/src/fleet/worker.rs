//! One registered worker as this server knows it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ff_api::Problem;
use ff_core::error::{ConflictKind, Detail, EngineError, Refused};
use ff_core::error_code::ErrorCode;
use ff_core::limits::KIND_BYTES_MAX;
use ff_core::types::{ExecutionId, LeaseId, TimestampMs};
use ff_script::Kinds;
use ff_script::generated::{self, RegisterWorker, WorkerState};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Answer, CUT_OFF, lock};
use crate::dispatch::Profile;

/// How many kinds a worker names at most.
const KINDS_MAX: usize = ff_core::limits::KINDS_MAX as usize;

/// Claims a worker may repeat after a lost reply.
const REQUESTS_KEPT: usize = 64;

/// A registered worker.
pub struct Worker {
    /// Its instance id.
    pub instance: String,
    /// How long it counts as there after its last word.
    registered_for: Duration,
    facts: Mutex<Facts>,
    /// A slot became free.
    pub(super) freed: Notify,
    /// An operator handed it an execution.
    pub(super) granted: Notify,
    /// Its standing changed: drained, ended, or another process has its id.
    changed: Notify,
    /// Its leases were looked up once.
    pub(super) looked: tokio::sync::Mutex<bool>,
}

struct Facts {
    worker_id: String,
    namespace: String,
    lanes: Vec<String>,
    capabilities: Vec<String>,
    kinds: Option<Kinds>,
    slots: usize,
    incarnation: Option<Uuid>,
    /// The principal that registered it; `None` without authentication.
    owner: Option<String>,
    draining: bool,
    ended: bool,
    last_word: Instant,
    /// Heard of since the last heartbeat was written.
    heard: bool,
    /// Claims that wait right now.
    polls: usize,
    /// Its last poll was cut off then, and it has not been heard of since.
    cut_off: Option<Instant>,
    /// Slots promised to claims in flight.
    reserved: usize,
    /// Live leases and when each ends.
    held: HashMap<LeaseId, i64>,
    /// Grants of operators that no claim has used yet.
    grants: VecDeque<(ExecutionId, Uuid)>,
    requests: VecDeque<(Uuid, Seen)>,
    serial: u64,
}

/// What became of a claim with a request id.
enum Seen {
    /// It waits; another claim with its id ends it.
    Waiting { serial: u64, superseded: CancellationToken },
    /// It got these, under this id.
    Answered { kept_as: Uuid, executions: Vec<ExecutionId> },
    /// Its caller went away: what it may still get is handed back, so the id must not be shown to the store again.
    CutOff,
}

/// How a claim begins.
pub(super) enum Begun {
    /// The request was answered before.
    Before { kept_as: Uuid, executions: Vec<ExecutionId> },
    /// It is new.
    New(Poll),
}

/// A claim in flight; dropped before it is answered, its caller has gone away.
pub(super) struct Poll {
    worker: Arc<Worker>,
    request_id: Uuid,
    /// The id the store sees.
    pub kept_as: Uuid,
    serial: u64,
    pub superseded: CancellationToken,
    answered: bool,
}

/// Slots promised to a claim until it is over.
pub(super) struct Reserved {
    worker: Arc<Worker>,
    pub count: u16,
}

/// Another process has this instance id.
pub(super) fn in_use(instance: &str) -> Problem {
    let detail = Detail::from_iter([("instance".to_owned(), instance.to_owned())]);
    let refused = Refused { code: ErrorCode::InstanceInUse, detail };
    Problem::from(EngineError::Conflict(ConflictKind::Refused(refused)))
}

impl Worker {
    /// A worker as it just registered.
    pub(super) fn new(registration: &RegisterWorker, registered_for: Duration) -> Self {
        let facts = Facts {
            worker_id: registration.worker_id.clone(),
            namespace: registration.namespace.clone(),
            lanes: registration.lanes.clone(),
            capabilities: registration.capabilities.clone(),
            kinds: registration.kinds.clone().map(Kinds::of),
            slots: usize::try_from(registration.slots).unwrap_or(1),
            incarnation: registration.incarnation,
            owner: registration.owner.clone(),
            draining: false,
            ended: false,
            last_word: Instant::now(),
            heard: true,
            polls: 0,
            cut_off: None,
            reserved: 0,
            held: HashMap::new(),
            grants: VecDeque::new(),
            requests: VecDeque::new(),
            serial: 0,
        };
        Self {
            instance: registration.instance.clone(),
            registered_for,
            facts: Mutex::new(facts),
            freed: Notify::new(),
            granted: Notify::new(),
            changed: Notify::new(),
            looked: tokio::sync::Mutex::new(false),
        }
    }

    /// A worker that registered with another server, or with this one before it started anew.
    pub(super) fn adopted(found: &generated::Worker, registered_for: Duration) -> Self {
        let registration = RegisterWorker {
            capabilities: found.capabilities.clone(),
            kinds: found.kinds.clone(),
            incarnation: found.incarnation,
            instance: found.instance.clone(),
            lanes: found.lanes.clone(),
            namespace: found.namespace.clone(),
            owner: found.owner.clone(),
            slots: found.slots,
            take_over: None,
            worker_id: found.worker_id.clone(),
        };
        let worker = Self::new(&registration, registered_for);
        worker.facts().draining = found.state == WorkerState::Draining;
        worker
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        lock(&self.facts)
    }

    /// Replaces what it serves. A new process starts with empty hands: leases of the old one run out by themselves.
    pub(super) fn replace(&self, registration: &RegisterWorker) {
        let mut facts = self.facts();
        let another = registration.incarnation.is_some() && registration.incarnation != facts.incarnation;
        facts.worker_id.clone_from(&registration.worker_id);
        facts.namespace.clone_from(&registration.namespace);
        facts.lanes.clone_from(&registration.lanes);
        facts.capabilities.clone_from(&registration.capabilities);
        facts.kinds = registration.kinds.clone().map(Kinds::of);
        facts.slots = usize::try_from(registration.slots).unwrap_or(1);
        facts.incarnation = registration.incarnation;
        facts.owner.clone_from(&registration.owner);
        facts.draining = false;
        facts.ended = false;
        if another {
            facts.held.clear();
        }
        facts.hear();
        drop(facts);
        self.freed.notify_waiters();
        self.changed.notify_waiters();
    }

    /// True when another incarnation may take its place: its poll was cut off and nothing was heard of it since.
    pub(super) async fn gone_for_good(&self, newcomer: Option<Uuid>) -> bool {
        let (cut_off, incarnation) = {
            let facts = self.facts();
            (facts.cut_off, facts.incarnation)
        };
        let Some(cut_off) = cut_off.filter(|_| newcomer != incarnation) else { return false };
        tokio::time::sleep_until(cut_off + CUT_OFF).await;
        self.facts().cut_off == Some(cut_off)
    }

    /// The principal that registered it; `None` without authentication.
    #[must_use]
    pub fn owner(&self) -> Option<String> {
        self.facts().owner.clone()
    }

    /// The namespace it works in.
    #[must_use]
    pub fn namespace(&self) -> String {
        self.facts().namespace.clone()
    }

    /// False when it fell silent.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        let facts = self.facts();
        !facts.ended && (facts.polls > 0 || facts.last_word.elapsed() < self.registered_for)
    }

    /// It said something; another incarnation of it must not.
    pub(super) fn touch(&self, incarnation: Option<Uuid>) -> Answer<()> {
        let mut facts = self.facts();
        if incarnation.is_some() && facts.incarnation.is_some() && incarnation != facts.incarnation {
            return Err(in_use(&self.instance));
        }
        facts.hear();
        Ok(())
    }

    /// Counts as heard of at the next heartbeat.
    pub(super) fn hear(&self) {
        self.facts().heard = true;
    }

    /// True once for each heartbeat it has earned.
    pub(super) fn take_heard(&self) -> bool {
        let mut facts = self.facts();
        std::mem::take(&mut facts.heard) || facts.polls > 0
    }

    /// The process that registered.
    #[must_use]
    pub fn incarnation(&self) -> Option<Uuid> {
        self.facts().incarnation
    }

    /// The incarnation that may be vouched for: it is registered, and its last word was not cut off.
    pub(super) fn lives(&self) -> Option<Uuid> {
        let alive = self.is_registered();
        let facts = self.facts();
        facts.incarnation.filter(|_| alive && facts.cut_off.is_none())
    }

    /// It takes nothing new while this is set.
    pub(super) fn set_draining(&self, draining: bool) {
        let before = std::mem::replace(&mut self.facts().draining, draining);
        if before != draining {
            self.freed.notify_waiters();
            self.changed.notify_waiters();
        }
    }

    /// Waits until the worker drains, or no longer does, unless it is as `draining` says; at most until `over`.
    ///
    /// While somebody attends, the worker counts as there.
    pub async fn attend(
        self: &Arc<Self>,
        incarnation: Option<Uuid>,
        draining: bool,
        over: impl Future<Output = ()>,
    ) -> Answer<bool> {
        self.facts().polls += 1;
        let mut attending = Attending { worker: Arc::clone(self), answered: false };
        tokio::pin!(over);
        let standing = loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Err(problem) = self.touch(incarnation) {
                break Err(problem);
            }
            if self.is_draining() != draining || self.facts().ended {
                break Ok(self.is_draining());
            }
            tokio::select! {
                () = &mut changed => {}
                () = &mut over => break Ok(self.is_draining()),
            }
        };
        if standing.is_ok() {
            self.facts().hear();
        }
        attending.answered = true;
        standing
    }

    /// Returns when the worker drains.
    pub(super) async fn drained(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_draining() {
                return;
            }
            changed.await;
        }
    }

    /// True while an operator drains it.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.facts().draining
    }

    /// Its registration is over: claims that wait end.
    pub(super) fn end(&self) {
        let mut facts = self.facts();
        facts.ended = true;
        for (_, seen) in &facts.requests {
            if let Seen::Waiting { superseded, .. } = seen {
                superseded.cancel();
            }
        }
        drop(facts);
        self.changed.notify_waiters();
    }

    /// As the dispatcher sees it, for these of its lanes and kinds.
    pub fn profile(
        &self,
        lanes: Option<Vec<String>>,
        kinds: Option<Vec<String>>,
        lease_ttl_ms: i64,
    ) -> Answer<Profile> {
        let facts = self.facts();
        let kinds = match kinds {
            None => facts.kinds.clone(),
            Some(asked) => Some(narrowed(facts.kinds.as_ref(), asked)?),
        };
        let lanes = match lanes {
            None => facts.lanes.clone(),
            Some(asked) => {
                if let Some(other) = asked.iter().find(|lane| !facts.lanes.contains(lane)) {
                    return Err(Problem::invalid("lanes", format!("{other} is not a lane this worker registered for")));
                }
                if asked.is_empty() {
                    return Err(Problem::invalid("lanes", "must name at least one lane"));
                }
                asked
            }
        };
        Ok(Profile {
            namespace: facts.namespace.clone(),
            lanes,
            worker_id: facts.worker_id.clone(),
            instance: self.instance.clone(),
            capabilities: facts.capabilities.clone(),
            kinds,
            lease_ttl_ms,
        })
    }

    pub(super) fn hold(&self, lease: LeaseId, expires_at: i64) {
        self.facts().held.insert(lease, expires_at);
    }

    pub(super) fn release(&self, lease: LeaseId) {
        self.facts().held.remove(&lease);
        self.freed.notify_waiters();
    }

    /// True when the lease is over or unknown here.
    pub(super) fn ran_out(&self, lease: LeaseId, now: i64) -> bool {
        let mut facts = self.facts();
        if facts.held.get(&lease).is_some_and(|expires_at| *expires_at > now) {
            return false;
        }
        facts.held.remove(&lease);
        true
    }

    /// Promises up to `max` free slots; nothing when all are taken or the worker drains. `ending` leases are as good as over.
    pub(super) fn reserve(self: &Arc<Self>, max: u16, ending: usize) -> Option<Reserved> {
        let mut facts = self.facts();
        let now = TimestampMs::now().as_millis();
        facts.held.retain(|_, expires_at| *expires_at > now);
        let free = facts.slots.saturating_sub(facts.held.len().saturating_sub(ending) + facts.reserved);
        let count = u16::try_from(free).unwrap_or(u16::MAX).min(max);
        if count == 0 || facts.draining || facts.ended {
            return None;
        }
        facts.reserved += usize::from(count);
        drop(facts);
        Some(Reserved { worker: Arc::clone(self), count })
    }

    /// How long until the first of its leases runs out by itself.
    pub(super) fn first_end(&self) -> Option<Duration> {
        let now = TimestampMs::now().as_millis();
        let first = self.facts().held.values().min().copied()?;
        Some(Duration::from_millis(u64::try_from(first - now).unwrap_or(0) + 1))
    }

    /// An operator chose this worker for an execution. Heard a second time it changes nothing.
    pub fn grant(&self, execution_id: ExecutionId, grant_id: Uuid) {
        let mut facts = self.facts();
        if !facts.grants.contains(&(execution_id, grant_id)) {
            facts.grants.push_back((execution_id, grant_id));
        }
        drop(facts);
        self.granted.notify_waiters();
    }

    pub(super) fn next_grant(&self) -> Option<(ExecutionId, Uuid)> {
        self.facts().grants.pop_front()
    }

    /// Begins a claim. One with the same id that still waits ends, with nothing.
    pub(super) fn begin(self: &Arc<Self>, request_id: Uuid) -> Begun {
        let mut facts = self.facts();
        let mut kept_as = request_id;
        if let Some(at) = facts.requests.iter().position(|(id, _)| *id == request_id) {
            match &facts.requests[at].1 {
                Seen::Answered { kept_as, executions } => {
                    return Begun::Before { kept_as: *kept_as, executions: executions.clone() };
                }
                Seen::Waiting { superseded, .. } => superseded.cancel(),
                Seen::CutOff => {}
            }
            // What the earlier one may still get is handed back; under an id of its own this one cannot get hold of it.
            kept_as = Uuid::now_v7();
            facts.requests.remove(at);
        }
        if facts.requests.len() >= REQUESTS_KEPT {
            facts.requests.pop_front();
        }
        facts.serial += 1;
        facts.polls += 1;
        let (serial, superseded) = (facts.serial, CancellationToken::new());
        if facts.ended {
            // The end of the registration did not see this claim: it is over before it begins.
            superseded.cancel();
        }
        facts.requests.push_back((request_id, Seen::Waiting { serial, superseded: superseded.clone() }));
        drop(facts);
        Begun::New(Poll { worker: Arc::clone(self), request_id, kept_as, serial, superseded, answered: false })
    }

    /// The request was answered with these, before this server met the worker.
    pub(super) fn remember(&self, request_id: Uuid, executions: Vec<ExecutionId>) {
        self.facts().requests.push_back((request_id, Seen::Answered { kept_as: request_id, executions }));
    }

    /// What a request got has ended: it may be asked again.
    pub(super) fn forget_request(&self, request_id: Uuid) {
        self.facts().requests.retain(|(id, _)| *id != request_id);
    }
}

fn is_kind(text: &str) -> bool {
    (1..=KIND_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// The kinds a claim asks for, which are among those its worker registered for.
fn narrowed(registered: Option<&Kinds>, asked: Vec<String>) -> Answer<Kinds> {
    if asked.is_empty() {
        return Err(Problem::invalid("kinds", "must name at least one kind"));
    }
    if asked.len() > KINDS_MAX {
        return Err(Problem::invalid("kinds", format!("must hold at most {KINDS_MAX} items, got {}", asked.len())));
    }
    if let Some(at) = asked.iter().position(|kind| !is_kind(kind)) {
        return Err(Problem::invalid(format!("kinds[{at}]"), "must be 1 to 128 printable ASCII characters"));
    }
    if let Some(other) = asked.iter().find(|kind| registered.is_some_and(|kinds| !kinds.contains(kind))) {
        return Err(Problem::invalid("kinds", format!("{other} is not a kind this worker registered for")));
    }
    Ok(Kinds::of(asked))
}

impl Facts {
    fn hear(&mut self) {
        self.last_word = Instant::now();
        self.heard = true;
        self.cut_off = None;
    }

    /// A request that kept the worker there is over; the last one, cut off, may be the end of its process.
    fn left(&mut self, answered: bool) {
        self.polls -= 1;
        if !answered {
            self.last_word = Instant::now();
            if self.polls == 0 {
                self.cut_off = Some(Instant::now());
            }
        }
    }
}

impl Poll {
    /// The claim is over with these.
    pub fn answer(mut self, executions: Vec<ExecutionId>) {
        self.answered = true;
        let mut facts = self.worker.facts();
        let (request_id, serial, kept_as) = (self.request_id, self.serial, self.kept_as);
        facts.requests.retain(|(id, seen)| {
            *id != request_id || !matches!(seen, Seen::Waiting { serial: mine, .. } if *mine == serial)
        });
        if !executions.is_empty() {
            facts.requests.retain(|(id, _)| *id != request_id);
            facts.requests.push_back((request_id, Seen::Answered { kept_as, executions }));
        }
        facts.hear();
    }
}

/// A request that only says that its worker is there; dropped before it is answered, the worker has gone away.
struct Attending {
    worker: Arc<Worker>,
    answered: bool,
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.worker.facts().left(self.answered);
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let mut facts = self.worker.facts();
        facts.left(self.answered);
        if self.answered {
            return;
        }
        let serial = self.serial;
        for (_, seen) in &mut facts.requests {
            if matches!(seen, Seen::Waiting { serial: mine, .. } if *mine == serial) {
                *seen = Seen::CutOff;
            }
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.worker.facts().reserved -= usize::from(self.count);
        self.worker.freed.notify_waiters();
    }
}
