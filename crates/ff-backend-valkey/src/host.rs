//! The host itself. It sends lists of calls to the right primary, and retries them until they get a reply or the time
//! is up.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ff_script::list::{self, Class, Marks};
use ff_script::{Content, Contents, Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, Watch};
use redis::{Cmd, Value};

use crate::address::Address;
use crate::backoff::Backoff;
use crate::connect::Connector;
use crate::durability::{Confirmation, Promise};
use crate::fault::Fault;
use crate::gather::{Gather, Job, OUT, Place};
use crate::inspect;
use crate::library::{self, Ensured};
use crate::node::Node;
use crate::options::Options;
use crate::patience::{gave_up, patiently};
use crate::topology::Topology;
use crate::wake::Wakes;

/// Lists that share one confirmation. In the worst case one confirmation comes per second, so many lists must share it.
const LISTS_CONFIRMED: usize = 64;
/// Lists in flight at once if each waits for a confirmation: one for each connection that can wait.
const OUT_CONFIRMED: usize = crate::lane::LANES;
/// How long a confirmed call may take beyond its limit, because a flush comes once a second.
const CONFIRM_SLACK: Duration = Duration::from_secs(5);

/// Runs the library on Valkey or Redis; see the documentation of this crate.
pub struct ValkeyHost {
    carrier: Arc<Carrier>,
    wakes: Wakes,
}

/// Carries lists to the store. It outlives the caller of any single operation.
struct Carrier {
    options: Options,
    topology: Arc<Topology>,
    promise: Promise,
    gather: Gather,
    listening: AtomicBool,
    healthy: AtomicBool,
}

impl fmt::Debug for ValkeyHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.facts();
        f.debug_struct("ValkeyHost").field("kind", &facts.kind).field("durability", &facts.durability).finish()
    }
}

impl ValkeyHost {
    /// Connects, checks version and durability of every primary, and loads the library where it is missing or older.
    ///
    /// Retries until the deadline while the store is starting. Fails if a server is too old, would lose more than the
    /// durability allows, or has another library under the same number.
    pub async fn connect(options: Options) -> Result<ValkeyHost, HostError> {
        let address = Address::parse(&options.url).map_err(|detail| HostError::Refused { detail })?;
        let connector = Connector::new(address, options.root_certificate.clone());
        let topology = Arc::new(Topology::new(connector));
        let promise = patiently(options.deadline, "connect", || async {
            topology.refresh().await?;
            let capability = inspect::capability(&topology).await?;
            let promise = Promise::decide(options.durability, capability).map_err(Fault::Refused)?;
            library::refuse_format(&topology).await?;
            library::ensure_everywhere(&topology, &options.library).await?;
            Ok(promise)
        })
        .await?;
        if let Some(warning) = promise.warning {
            tracing::warn!("{warning}");
        }
        tracing::info!(durability = %promise.durability, loss_window = promise.loss_window, "connected");
        let wakes = Wakes::start(Arc::clone(&topology));
        let carrier = Carrier {
            options,
            topology,
            gather: Gather::new(if promise.confirmation.is_some() { OUT_CONFIRMED } else { OUT }),
            promise,
            listening: AtomicBool::new(false),
            healthy: AtomicBool::new(true),
        };
        Ok(ValkeyHost { carrier: Arc::new(carrier), wakes })
    }

    /// Every key that starts with `ff:` with its content, for tests. The keys are read one after the other, not at one
    /// moment.
    pub async fn dump(&self) -> Result<ff_script::dump::Dump, HostError> {
        inspect::dump(&self.carrier.topology, self.carrier.options.deadline).await
    }
}

impl Carrier {
    async fn patiently<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        what: &str,
        attempt: impl FnMut() -> F,
    ) -> Result<T, HostError> {
        let outcome = patiently(self.options.deadline, what, attempt).await;
        self.note(&outcome);
        outcome
    }

    /// Updates the health: the last call that says something about it counts.
    fn note<T>(&self, outcome: &Result<T, HostError>) {
        match outcome {
            Ok(_) => self.healthy.store(true, Ordering::Relaxed),
            Err(HostError::Unavailable { .. } | HostError::Full { .. }) => self.healthy.store(false, Ordering::Relaxed),
            Err(_) => {}
        }
    }

    /// Queues jobs and starts the carriers they need.
    fn queue(self: &Arc<Self>, jobs: impl IntoIterator<Item = Job>) {
        let by_route = self.topology.is_cluster();
        let placed = jobs.into_iter().map(|job| {
            let place = Place { route: by_route.then_some(job.invocation.route), reads: job.class == Class::Read };
            (place, job)
        });
        for place in self.gather.queue(placed) {
            tokio::spawn(Arc::clone(self).carry(place));
        }
    }

    /// Carries the lists of a place until its queue is empty.
    async fn carry(self: Arc<Self>, place: Place) {
        let confirm = if place.reads { None } else { self.promise.confirmation };
        let mut place_kept = PlaceKept { carrier: &self, place, done: false };
        loop {
            let mut lists =
                self.gather.next(place, if confirm.is_some() { LISTS_CONFIRMED } else { 1 }, self.options.deadline);
            match lists.pop() {
                None => {
                    place_kept.done = true;
                    return;
                }
                Some(list) if lists.is_empty() => self.run_list(list, confirm).await,
                Some(last) => {
                    lists.push(last);
                    futures::future::join_all(lists.into_iter().map(|list| self.run_list(list, confirm))).await;
                }
            }
        }
    }

    /// One attempt at one node.
    async fn attempt(
        &self,
        node: &Node,
        command: &Cmd,
        confirm: Option<Confirmation>,
        left: Duration,
    ) -> Result<Vec<list::Answer>, Fault> {
        let value = match confirm {
            None => {
                let sent = Instant::now();
                let value = node.send(command, self.options.attempt_limit.min(left)).await?;
                self.gather.took(sent.elapsed());
                value
            }
            Some(confirmation) => {
                let limit = (self.options.attempt_limit + CONFIRM_SLACK).min(left);
                node.send_confirmed(command.clone(), confirmation, limit).await?
            }
        };
        let unreadable = |value: &Value| Fault::Corrupt(format!("the reply to a list is {value:?} instead of bytes"));
        let Value::Array(values) = value else {
            return Err(unreadable(&value));
        };
        let answers = values.into_iter().map(|value| match value {
            Value::BulkString(bytes) => Ok(list::Answer::read(bytes)),
            other => Err(unreadable(&other)),
        });
        answers.collect()
    }

    /// Retries the list until each of its operations has a reply, a refusal, or no time left.
    async fn run_list(&self, mut jobs: Vec<Job>, confirm: Option<Confirmation>) {
        let mut backoff = Backoff::new();
        let mut kept = 0;
        while !jobs.is_empty() {
            let route = jobs[0].invocation.route.to_string();
            let oldest = jobs.iter().map(|job| job.queued).min().unwrap_or_else(Instant::now);
            let left = self.options.deadline.saturating_sub(oldest.elapsed());
            let node = self.topology.node(route.as_bytes());
            let outcome = match &node {
                Some(node) => self.attempt(node, &self.command(&route, &jobs), confirm, left).await,
                None => Err(Fault::Elsewhere(format!("no node serves {route}"))),
            };
            let Some(mut fault) = self.answer(&mut jobs, outcome) else {
                continue;
            };
            if fault == Fault::NoFunction
                && let Some(node) = &node
            {
                // Other nodes that lost the library load it when they are called.
                let loaded = library::ensure(&self.topology, node, &self.options.library);
                match tokio::time::timeout(left, loaded).await {
                    Ok(Ok(Ensured::Loaded)) => {
                        kept = 0;
                        continue;
                    }
                    // Another caller loaded it, or it lacks this operation; a few more checks tell.
                    Ok(Ok(Ensured::Kept)) if kept < 3 => {
                        kept += 1;
                        continue;
                    }
                    Ok(Ok(Ensured::Kept)) => return self.fail(jobs, &fault),
                    Ok(Err(worse)) => fault = worse,
                    Err(_) => fault = Fault::Lost(format!("{} did not load the library in time", node.endpoint)),
                }
            }
            if !matches!(fault, Fault::Lost(_) | Fault::Elsewhere(_)) {
                return self.fail(jobs, &fault);
            }
            let pause = backoff.next();
            jobs = self.give_up_late(jobs, &fault, pause);
            if jobs.is_empty() {
                return;
            }
            tracing::debug!(operations = jobs.len(), route, ?fault, "repeating");
            if fault.is_read_only()
                && let Some(node) = &node
            {
                // The name may now resolve to another server.
                node.reconnect();
            }
            tokio::time::sleep(pause).await;
            let refreshed = tokio::time::timeout(self.options.deadline, self.topology.refresh()).await;
            if let Ok(Err(refusal @ Fault::Refused(_))) = refreshed {
                return self.fail(jobs, &refusal);
            }
            // The list is retried without callers that have gone.
            jobs.retain(|job| !job.is_left());
        }
    }

    fn command(&self, route: &str, jobs: &[Job]) -> Cmd {
        let class = Class::of_all(jobs.iter().map(|job| job.class));
        let marks = Marks {
            guard: self.topology.is_cluster(),
            listen: self.listening.load(Ordering::Relaxed),
            ..Marks::default()
        }
        .of(jobs.iter().map(|job| &job.invocation));
        let mut command = redis::cmd(if class == Class::Read { "FCALL_RO" } else { "FCALL" });
        command.arg(class.function()).arg(1).arg(route).arg(list::write_head(marks));
        for job in jobs {
            command.arg(list::write_operation(&job.invocation));
        }
        command
    }

    /// Replies to the jobs that are done, and keeps the others for a retry. If it returns a fault, the retry comes
    /// after a pause, otherwise at once.
    fn answer(&self, jobs: &mut Vec<Job>, outcome: Result<Vec<list::Answer>, Fault>) -> Option<Fault> {
        let answers = match outcome {
            Ok(answers) if answers.len() == jobs.len() => answers,
            Ok(answers) => {
                return Some(Fault::Corrupt(format!("{} replies to {} operations", answers.len(), jobs.len())));
            }
            // None of the list ran. Operations that end work are retried in a list that a full store accepts.
            Err(Fault::Full(detail)) if is_mixed(jobs) => {
                let (wait, go_on): (Vec<Job>, Vec<Job>) = jobs.drain(..).partition(|job| job.class == Class::Run);
                self.fail(wait, &Fault::Full(detail));
                jobs.extend(go_on);
                return None;
            }
            Err(fault) => return Some(fault),
        };
        let mut again = None;
        let mut rest = Vec::new();
        for (job, answer) in jobs.drain(..).zip(answers) {
            let fault = match answer {
                list::Answer::Reply(bytes) => {
                    self.healthy.store(true, Ordering::Relaxed);
                    job.answer(Ok(bytes));
                    continue;
                }
                list::Answer::Raised(text) => Fault::of_raise(text),
                list::Answer::Unknown => Fault::NoFunction,
            };
            if matches!(fault, Fault::Elsewhere(_) | Fault::NoFunction) {
                rest.push(job);
                again = Some(fault);
            } else {
                self.fail(vec![job], &fault);
            }
        }
        *jobs = rest;
        again
    }

    fn fail(&self, jobs: Vec<Job>, fault: &Fault) {
        for job in jobs {
            let outcome = Err(fault.clone().into_error(job.invocation.function));
            self.note(&outcome);
            job.answer(outcome);
        }
    }

    /// Fails the jobs whose deadline comes before the end of the pause. Returns the others.
    fn give_up_late(&self, jobs: Vec<Job>, fault: &Fault, pause: Duration) -> Vec<Job> {
        let (late, rest): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| job.queued.elapsed() + pause >= self.options.deadline);
        for job in late {
            let outcome = Err(gave_up(fault.clone(), job.invocation.function, job.queued.elapsed()));
            self.note(&outcome);
            job.answer(outcome);
        }
        rest
    }
}

/// Frees the carrier's place if its task ends early, by a panic or with its runtime.
struct PlaceKept<'a> {
    carrier: &'a Carrier,
    place: Place,
    /// The queue was empty, and the place is already free.
    done: bool,
}

impl Drop for PlaceKept<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.carrier.gather.lost(self.place);
        }
    }
}

/// True if a full store refuses some of them and not others.
fn is_mixed(jobs: &[Job]) -> bool {
    let runs = jobs.iter().filter(|job| job.class == Class::Run).count();
    (1..jobs.len()).contains(&runs)
}

#[async_trait]
impl Contents for ValkeyHost {
    async fn read_keys(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Content>>, HostError> {
        let read = inspect::contents(&self.carrier.topology, &keys, self.carrier.options.deadline).await;
        self.carrier.note(&read);
        read
    }

    async fn write_keys(&self, keys: Vec<(Vec<u8>, Content)>) -> Result<(), HostError> {
        // Not retried: after a lost reply it is unknown whether a stream has taken an entry.
        let written = inspect::load(&self.carrier.topology, &keys).await.map_err(|fault| fault.into_error("import"));
        self.carrier.note(&written);
        written
    }

    async fn remove_keys(&self, keys: Vec<Vec<u8>>) -> Result<(), HostError> {
        self.carrier.patiently("remove", || inspect::remove(&self.carrier.topology, &keys)).await
    }
}

#[async_trait]
impl Host for ValkeyHost {
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        list::checked(&invocation)?;
        let (job, answered) = Job::new(invocation);
        self.carrier.queue([job]);
        answered.await.unwrap_or(Err(HostError::Closed))
    }

    async fn run(&self, operations: Vec<Invocation>) -> Vec<Result<Vec<u8>, HostError>> {
        let mut waiting = Vec::with_capacity(operations.len());
        let mut jobs = Vec::with_capacity(operations.len());
        for invocation in operations {
            waiting.push(list::checked(&invocation).map(|()| {
                let (job, answered) = Job::new(invocation);
                jobs.push(job);
                answered
            }));
        }
        // Operations sent together keep their order.
        if jobs.iter().any(|job| job.class != Class::End) {
            jobs.iter_mut().for_each(|job| job.goes_first = false);
        }
        self.carrier.queue(jobs);
        let mut answers = Vec::with_capacity(waiting.len());
        for one in waiting {
            answers.push(match one {
                Ok(answered) => answered.await.unwrap_or(Err(HostError::Closed)),
                Err(refusal) => Err(refusal),
            });
        }
        answers
    }

    fn watch(&self) -> Watch {
        self.wakes.watch()
    }

    async fn subscribe(&self, routes: &[Route]) -> Result<(), HostError> {
        self.wakes.subscribe(routes, self.carrier.options.deadline).await
    }

    async fn hear_out(&self) -> Result<(), HostError> {
        self.wakes.hear_out(self.carrier.options.deadline).await
    }

    async fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, HostError> {
        self.carrier.patiently("scan", || inspect::scan(&self.carrier.topology, cursor.clone(), limit)).await
    }

    fn set_listening(&self, on: bool) {
        self.carrier.listening.store(on, Ordering::Relaxed);
    }

    async fn store_commands(&self) -> Result<u64, HostError> {
        self.carrier.patiently("INFO", || inspect::commands(&self.carrier.topology)).await
    }

    fn facts(&self) -> HostFacts {
        HostFacts {
            kind: if self.carrier.topology.is_cluster() { "valkey-cluster" } else { "valkey" },
            durability: self.carrier.promise.durability.to_string(),
            loss_window: self.carrier.promise.loss_window.to_owned(),
            healthy: self.carrier.healthy.load(Ordering::Relaxed),
            // Valkey frees memory by itself as work ends. Calls that do not fit fail one by one.
            full: false,
        }
    }
}
