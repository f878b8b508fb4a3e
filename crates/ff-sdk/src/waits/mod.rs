//! Waiting for the world: suspend, signal, resume.
//!
//! A task that suspends gives its lease back and takes none of the worker's time. Whoever holds a token of one of its
//! waitpoints may signal it; once the signals satisfy its condition the same attempt goes on, in whichever worker claims it,
//! with the signals and the continuation it left.

mod behavior;
mod pending;
mod resume;
mod signal;
mod suspend;
mod wire;

pub use behavior::{TimeoutBehavior, UnknownTimeoutBehavior};
pub(crate) use pending::Pending;
pub use resume::{Resume, ResumeCause, ResumeSignal};
pub use signal::{Signal, SignalOutcome};
pub(crate) use suspend::unexpected;
pub use suspend::{ConditionMatcher, SuspendOptions, SuspendOutcome, SuspendWithOutcome, Suspension};

pub use ff_core::condition::{Condition, Matcher, Over};
pub use ff_engine::{IssuedToken, OpenedWaitpoint, WaitpointSpec};
pub use ff_script::generated::{SignalEffect, SuspensionReason};
