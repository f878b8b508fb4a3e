//! Failures that a test can inject: a failing command, a full disk, a process that dies at the worst moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Injects failures into a running host. Without any, it costs one relaxed load per store command.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    armed: AtomicBool,
    fail_in: AtomicI64,
    crash_in: AtomicI64,
    full: AtomicBool,
    crash_after_commit: AtomicBool,
    poison: AtomicBool,
}

/// What an injected failure does to its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Eio,
    Full,
    Crash,
}

impl Faults {
    /// Makes the `n`-th store command from now fail like a disk error (1 = the next one).
    pub fn fail_command(&self, n: u64) {
        self.0.fail_in.store(n as i64, Ordering::SeqCst);
        self.0.armed.store(true, Ordering::SeqCst);
    }

    /// Simulates a death at the `n`-th store command from now: the open transaction is lost and the host is closed.
    pub fn crash_at_command(&self, n: u64) {
        self.0.crash_in.store(n as i64, Ordering::SeqCst);
        self.0.armed.store(true, Ordering::SeqCst);
    }

    /// Simulates a death after the next commit, before any caller gets a reply.
    pub fn crash_after_commit(&self) {
        self.0.crash_after_commit.store(true, Ordering::SeqCst);
    }

    /// Makes the environment unusable for the next writing group, as after a failed write of its header.
    pub fn poison(&self) {
        self.0.poison.store(true, Ordering::SeqCst);
    }

    /// While on, every write fails because the disk is full.
    pub fn set_full(&self, on: bool) {
        self.0.full.store(on, Ordering::SeqCst);
        self.0.armed.store(true, Ordering::SeqCst);
    }

    /// Removes all injected failures.
    pub fn clear(&self) {
        self.0.fail_in.store(0, Ordering::SeqCst);
        self.0.crash_in.store(0, Ordering::SeqCst);
        self.0.full.store(false, Ordering::SeqCst);
        self.0.crash_after_commit.store(false, Ordering::SeqCst);
        self.0.poison.store(false, Ordering::SeqCst);
        self.0.armed.store(false, Ordering::SeqCst);
    }

    /// Called once per store command, only by the worker thread.
    pub(crate) fn meet(&self, writes: bool) -> Option<Fault> {
        if !self.0.armed.load(Ordering::Relaxed) {
            return None;
        }
        let due =
            |counter: &AtomicI64| counter.load(Ordering::SeqCst) > 0 && counter.fetch_sub(1, Ordering::SeqCst) == 1;
        if due(&self.0.crash_in) {
            return Some(Fault::Crash);
        }
        if due(&self.0.fail_in) {
            return Some(Fault::Eio);
        }
        (writes && self.0.full.load(Ordering::SeqCst)).then_some(Fault::Full)
    }

    pub(crate) fn poisons(&self) -> bool {
        self.0.poison.load(Ordering::Relaxed) && self.0.poison.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn dies_after_commit(&self) -> bool {
        self.0.crash_after_commit.load(Ordering::Relaxed) && self.0.crash_after_commit.swap(false, Ordering::SeqCst)
    }
}
