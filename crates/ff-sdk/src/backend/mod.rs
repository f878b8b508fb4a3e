//! The seam between the SDK and the engine: what a worker and its operator ask for, however it travels.
//!
//! [`Direct`] calls the library through a host of this process, embedded or Valkey; [`Http`] asks `ff server`. Everything above
//! is the same code for both.

mod claims;
mod direct;
mod executions;
mod flows;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
#[cfg(feature = "http")]
mod http_submissions;
mod keys;
mod reach;
mod streams;
mod tasks;
mod waits;
mod workers;

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use ff_core::types::{AttemptId, AttemptIndex, ExecutionId, LaneId, LeaseEpoch, LeaseId, Namespace, TimestampMs};
use ff_core::{EngineError, PartitionConfig};
use ff_script::Kinds;
use uuid::Uuid;

use crate::SdkError;
use crate::snapshot::ExecutionResult;
use crate::steps::RecordedStep;
use crate::waits::Resume;

pub use crate::flows::Place;
pub use direct::Direct;
pub(crate) use ff_api::payload::is_json;
pub use ff_engine::fleet::Standing;
#[cfg(feature = "http")]
pub use http::Http;
pub use keys::KeyPlaces;
#[cfg(feature = "embedded")]
pub(crate) use reach::Crossing;
pub use reach::Reach;
pub(crate) use streams::FrameSpan;
pub(crate) use waits::{Suspended, Suspending};

/// How a backend reaches the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Calls within this process.
    Embedded,
    /// Calls to Valkey.
    Valkey,
    /// Requests to `ff server`.
    Http,
}

/// A worker process as the engine knows it.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The kind of worker.
    pub worker_id: String,
    /// The process.
    pub instance: String,
    /// The namespace of its lanes.
    pub namespace: String,
    /// The lanes it serves.
    pub lanes: Vec<String>,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// The kinds it takes; `None` is all.
    pub kinds: Option<Kinds>,
    /// How many leases it may hold.
    pub slots: usize,
    /// How long each lasts without renewal.
    pub lease_ttl_ms: u64,
    /// Random per process: tells two processes with one instance id apart.
    pub incarnation: Uuid,
}

/// How long the leases of a worker last, as the API and the library take it.
fn ttl(who: &Identity) -> i64 {
    as_i64(who.lease_ttl_ms)
}

/// A number as the API takes it.
fn as_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A duration as the API takes it.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A lease with its fence: what every write of a worker presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRef {
    /// The execution it is on.
    pub execution_id: ExecutionId,
    /// The attempt it covers.
    pub attempt_id: AttemptId,
    /// The lease.
    pub lease_id: LeaseId,
    /// Its epoch.
    pub lease_epoch: LeaseEpoch,
}

impl LeaseRef {
    /// The lease of an execution that this fence proves.
    pub(crate) fn new(execution_id: ExecutionId, fence: ff_api::tasks::Fence) -> Self {
        let ff_api::tasks::Fence { attempt_id, lease_id, lease_epoch } = fence;
        Self { execution_id, attempt_id, lease_id, lease_epoch: LeaseEpoch::new(lease_epoch.unsigned_abs()) }
    }

    /// Proof of the lease.
    #[must_use]
    pub fn fence(&self) -> ff_api::tasks::Fence {
        let lease_epoch = i64::try_from(self.lease_epoch.get()).unwrap_or(i64::MAX);
        ff_api::tasks::Fence { attempt_id: self.attempt_id, lease_id: self.lease_id, lease_epoch }
    }
}

/// A claimed execution as it arrives.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The lease and its fence.
    pub lease: LeaseRef,
    /// Which attempt this is.
    pub attempt_index: AttemptIndex,
    /// The namespace.
    pub namespace: Namespace,
    /// The lane.
    pub lane: LaneId,
    /// The kind.
    pub kind: String,
    /// The input.
    pub input: Vec<u8>,
    /// How the input is encoded, `json` unless the submitter said otherwise.
    pub input_encoding: String,
    /// The tags.
    pub tags: HashMap<String, String>,
    /// The fallback tier of this attempt, when the submission has tiers.
    pub fallback: Option<Vec<u8>>,
    /// The trace the submitter continues.
    pub trace_parent: Option<String>,
    /// When the whole execution ends, at the latest.
    pub deadline_at: Option<TimestampMs>,
    /// Why the attempt goes on, when it was suspended.
    pub resume: Option<Resume>,
    /// How many frames the attempt has written.
    pub frames: Option<u64>,
    /// Its flow or parent, and what was passed to it.
    pub place: Place,
    /// When the lease ends unless it is renewed.
    pub lease_expires_at: i64,
    /// What earlier runs of the handler recorded.
    pub steps: Vec<RecordedStep>,
    /// More is recorded than came with the claim.
    pub steps_more: bool,
}

/// What became of one renewal.
#[derive(Clone, Debug, PartialEq)]
pub enum Renewal {
    /// The lease goes on.
    Renewed {
        /// An operator or submitter asks the attempt to end.
        cancel_requested: bool,
        /// An operator asks the worker to hand it back.
        yield_requested: bool,
    },
    /// It does not: the engine says why.
    Refused(EngineError),
    /// Nobody answered; the lease may or may not have been renewed.
    Unanswered(String),
}

/// What an engine says to a worker that registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// How often to say that it lives.
    pub heartbeat: Duration,
    /// The partition counts of the store.
    pub partitions: PartitionConfig,
}

/// What a failing worker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Why, for people.
    pub reason: String,
    /// What kind of failure, for policies.
    pub category: String,
    /// `false` ends the execution whatever its policy.
    pub retryable: Option<bool>,
    /// Overrides the policy's backoff.
    pub retry_after_ms: Option<u64>,
}

/// A completion.
#[derive(Clone, Debug)]
pub struct End {
    /// What ends.
    pub lease: LeaseRef,
    /// The lane it is of.
    pub lane: String,
    /// The result.
    pub result: Option<Vec<u8>>,
}

impl End {
    /// The bytes it takes on the way, as base64 if need be.
    pub(crate) fn size(&self) -> usize {
        self.result.as_ref().map_or(0, |result| result.len().div_ceil(3) * 4)
    }
}

/// What a worker that ends something takes next. The same request id again brings the same tasks.
#[derive(Clone, Debug)]
pub struct Take {
    /// The lanes it takes from.
    pub lanes: Vec<String>,
    /// How many at most.
    pub max: u16,
    /// The request.
    pub request_id: Uuid,
}

/// What became of completions, in their order, and the tasks that came with them.
#[derive(Debug)]
pub struct Finished {
    /// One answer for each.
    pub ends: Vec<Result<(), SdkError>>,
    /// The next tasks.
    pub tasks: Vec<Claim>,
}

/// Everything the SDK asks of an engine. Object safe; nothing has a default body.
pub trait Backend: Send + Sync + 'static {
    /// How it travels.
    fn transport(&self) -> Transport;

    /// The way on which every declared operation can be asked for.
    fn reach(&self) -> Reach;

    /// True when a short rest may be spent in this process; false when only the engine's time counts.
    fn rests_in_place(&self) -> bool;
}

/// Waits for the ends of executions; every [`Backend`] is one.
#[async_trait]
pub trait CompletionBackend: Send + Sync + 'static {
    /// The outcome, or nothing when it is not there after `wait`.
    async fn result(&self, id: ExecutionId, wait: Duration) -> Result<Option<ExecutionResult>, SdkError>;
}

#[async_trait]
impl<B: Backend + ?Sized> CompletionBackend for std::sync::Arc<B> {
    async fn result(&self, id: ExecutionId, wait: Duration) -> Result<Option<ExecutionResult>, SdkError> {
        self.reach().result(id, wait).await
    }
}

/// The backends of this process by runtime, store, sweep and keys. Workers of one process share a connection and a dispatcher, so that
/// one piece of work wakes one of them.
#[cfg(feature = "valkey")]
type Shared = HashMap<(tokio::runtime::Id, String, Duration, KeyPlaces), std::sync::Weak<Direct>>;

/// A backend connected to Valkey; the library is checked, and loaded when the store has none.
#[cfg(feature = "valkey")]
pub(crate) async fn valkey(
    url: &str,
    sweep_every: Duration,
    keys: KeyPlaces,
) -> Result<std::sync::Arc<Direct>, SdkError> {
    use ff_engine::{Engine, EngineOptions};
    static SHARED: std::sync::LazyLock<tokio::sync::Mutex<Shared>> = std::sync::LazyLock::new(Default::default);
    let mut shared = SHARED.lock().await;
    let key = (tokio::runtime::Handle::current().id(), url.to_owned(), sweep_every, keys.clone());
    if let Some(direct) = shared.get(&key).and_then(std::sync::Weak::upgrade) {
        return Ok(direct);
    }
    let options = ff_backend_valkey::Options::new(url, ff_script::Library::shipped());
    let host = std::sync::Arc::new(ff_backend_valkey::ValkeyHost::connect(options).await?);
    // Timers and reconcilers run in servers; this process only makes calls.
    let engine = Engine::start(host, EngineOptions::tool()).await?;
    let options = ff_engine::dispatch::DispatcherOptions { sweep_every };
    let direct = Direct::with_options(std::sync::Arc::new(engine), Transport::Valkey, options);
    direct.look_for_keys_in(keys)?;
    shared.retain(|_, known| known.strong_count() > 0);
    shared.insert(key, std::sync::Arc::downgrade(&direct));
    Ok(direct)
}
