//! When each execution was submitted and its handler started, and how many have run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ff_core::types::ExecutionId;
use ff_sdk::runtime::{Ctx, Data, HandlerResult};
use tokio::sync::watch;

/// Work that has not run within this time has hung.
const LIMIT: Duration = Duration::from_secs(120);

/// The records of the handlers; cheap to clone.
#[derive(Clone)]
pub struct Seen {
    starts: Arc<Mutex<HashMap<ExecutionId, Vec<Instant>>>>,
    count: watch::Sender<usize>,
}

impl Seen {
    pub fn new() -> Seen {
        Seen { starts: Arc::default(), count: watch::Sender::new(0) }
    }

    fn note(&self, id: ExecutionId) {
        let now = Instant::now();
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_default().push(now);
        self.count.send_modify(|count| *count += 1);
    }

    /// Waits until this many handlers have started.
    pub async fn started(&self, count: usize) -> Result<()> {
        let mut watching = self.count.subscribe();
        let reached = watching.wait_for(|seen| *seen >= count);
        match tokio::time::timeout(LIMIT, reached).await {
            Ok(reached) => reached.map(|_| ()).context("the handlers are gone"),
            Err(_) => anyhow::bail!("{} of {count} have started within {LIMIT:?}", *self.count.borrow()),
        }
    }

    /// When the handler of an execution started. Fails unless it started exactly once.
    pub fn start_of(&self, id: &ExecutionId) -> Result<Instant> {
        let starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        match starts.get(id).map(Vec::as_slice) {
            Some([start]) => Ok(*start),
            starts => anyhow::bail!("{id} started {} times", starts.map_or(0, <[Instant]>::len)),
        }
    }
}

/// A handler that only records its start.
pub async fn noop(Data(seen): Data<Seen>, ctx: Ctx) -> HandlerResult {
    seen.note(*ctx.execution_id());
    Ok(None)
}
