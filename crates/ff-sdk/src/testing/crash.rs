//! A backend whose process can die at a chosen call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use ff_core::EngineError;
use ff_core::error::TransportKind;

use crate::SdkError;
use crate::backend::{Backend, Crossing, Reach, Transport};
use crate::worker::Shared;

/// A call of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// A claim.
    Claim,
    /// The use of a grant.
    ConsumeGrant,
    /// A renewal of leases.
    Renew,
    /// A completion.
    Complete,
    /// A failure.
    Fail,
    /// The worker's own cancel.
    Cancel,
    /// A delay.
    Delay,
    /// A yield.
    Yield,
    /// A word about progress.
    Progress,
    /// A heartbeat.
    Heartbeat,
    /// A word about a step: its result, or how a try failed.
    Step,
    /// A rest.
    Sleep,
    /// A suspend.
    Suspend,
    /// The opening of a pending waitpoint.
    Waitpoint,
    /// The delivery of a signal.
    Signal,
    /// An append of frames.
    Frames,
    /// A spawn of children.
    Spawn,
    /// A wait for children.
    WaitChildren,
    /// A report of usage.
    Usage,
    /// A reservation.
    Reserve,
    /// The settlement of a reservation.
    Settle,
    /// The release of a reservation.
    Release,
    /// A word about a provider's limit.
    Throttle,
    /// A word about what was weighed.
    Weight,
}

/// When a worker's process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// At once.
    Now,
    /// Before its next call of this kind reaches the engine.
    BeforeCall(Call),
    /// After its next call of this kind was committed, before it hears so.
    AfterCall(Call),
}

impl Call {
    /// The kind of call that an operation is, when a worker can die at it.
    fn of(operation: &str) -> Option<Self> {
        Some(match operation {
            "worker_claim" => Self::Claim,
            "worker_consume" => Self::ConsumeGrant,
            "worker_heartbeat" => Self::Heartbeat,
            "lease_renew" => Self::Renew,
            "worker_results" => Self::Complete,
            "task_fail" => Self::Fail,
            "task_cancel" => Self::Cancel,
            "task_delay" => Self::Delay,
            "task_yield" => Self::Yield,
            "task_report_progress" => Self::Progress,
            "step_put" => Self::Step,
            "task_sleep" => Self::Sleep,
            "task_suspend" => Self::Suspend,
            "waitpoint_create" => Self::Waitpoint,
            "signal_deliver" => Self::Signal,
            "task_append_frames" => Self::Frames,
            "task_spawn" => Self::Spawn,
            "task_wait_children" => Self::WaitChildren,
            "task_report_usage" => Self::Usage,
            "task_reserve" => Self::Reserve,
            "task_settle" => Self::Settle,
            "task_release" => Self::Release,
            "task_throttle" => Self::Throttle,
            "task_settle_weight" => Self::Weight,
            _ => return None,
        })
    }
}

/// When a worker's process dies, and which answers are lost on the way to it.
#[derive(Default)]
pub(super) struct Fate {
    dead: AtomicBool,
    point: Mutex<Option<CrashPoint>>,
    owner: OnceLock<Weak<Shared>>,
    lost: Mutex<Vec<Call>>,
}

/// The backend of a worker that can be made to die.
pub(super) struct Mortal {
    pub(super) inner: Arc<dyn Backend>,
    fate: Arc<Fate>,
}

impl Fate {
    fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
        if let Some(owner) = self.owner.get().and_then(Weak::upgrade) {
            owner.die();
        }
    }

    fn meet(&self, point: CrashPoint) -> Result<(), SdkError> {
        let mut waiting = self.point.lock().unwrap_or_else(PoisonError::into_inner);
        if *waiting == Some(point) {
            *waiting = None;
            drop(waiting);
            self.die();
        }
        self.alive()
    }

    fn alive(&self) -> Result<(), SdkError> {
        if self.dead.load(Ordering::SeqCst) {
            let detail = "the worker's process has died".to_owned();
            return Err(EngineError::Transport { kind: TransportKind::Closed, detail }.into());
        }
        Ok(())
    }

    /// Fails when the answer of this call is to be lost.
    fn deliver(&self, call: Call) -> Result<(), SdkError> {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = lost.iter().position(|lost| *lost == call) {
            lost.swap_remove(at);
            let detail = "the answer was lost on the way".to_owned();
            return Err(EngineError::Transport { kind: TransportKind::Unavailable, detail }.into());
        }
        Ok(())
    }
}

impl Crossing for Fate {
    fn before(&self, operation: &'static str) -> Result<(), SdkError> {
        match Call::of(operation) {
            Some(call) => self.meet(CrashPoint::BeforeCall(call)),
            None => self.alive(),
        }
    }

    fn after(&self, operation: &'static str) -> Result<(), SdkError> {
        let Some(call) = Call::of(operation) else { return Ok(()) };
        self.meet(CrashPoint::AfterCall(call))?;
        self.deliver(call)
    }
}

impl Mortal {
    pub(super) fn new(inner: Arc<dyn Backend>) -> Self {
        Self { inner, fate: Arc::default() }
    }

    pub(super) fn belongs_to(&self, owner: Weak<Shared>) {
        // Set once, right after the worker is made.
        let _ = self.fate.owner.set(owner);
    }

    pub(super) fn dies_at(&self, point: CrashPoint) {
        match point {
            CrashPoint::Now => self.fate.die(),
            later => *self.fate.point.lock().unwrap_or_else(PoisonError::into_inner) = Some(later),
        }
    }

    /// The answer of the next call of this kind is lost: it was committed, and its caller does not hear so.
    pub(super) fn loses(&self, call: Call) {
        self.fate.lost.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

impl Backend for Mortal {
    fn reach(&self) -> Reach {
        self.inner.reach().watched(Arc::clone(&self.fate) as Arc<dyn Crossing>)
    }

    fn transport(&self) -> Transport {
        self.inner.transport()
    }

    fn rests_in_place(&self) -> bool {
        // The test moves the time.
        false
    }
}
