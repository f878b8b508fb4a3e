//! Writers of one execution in this process: most write side by side, some only when nobody else does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ff_core::types::ExecutionId;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

type Queues = HashMap<ExecutionId, (usize, Arc<RwLock<()>>)>;

/// Who writes to what; an execution nobody writes to is not known.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Queues>);

/// A writer's turn, over when dropped.
pub(crate) struct Turn<'a> {
    _guard: Guard,
    _ticket: Ticket<'a>,
}

enum Guard {
    Beside(#[expect(dead_code, reason = "held, not read")] OwnedRwLockReadGuard<()>),
    Alone(#[expect(dead_code, reason = "held, not read")] OwnedRwLockWriteGuard<()>),
}

struct Ticket<'a> {
    turns: &'a Turns,
    id: ExecutionId,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn beside others, or for one alone.
    pub(crate) async fn take(&self, id: ExecutionId, alone: bool) -> Turn<'_> {
        let (ticket, queue) = {
            let mut queues = self.lock();
            let (count, queue) = queues.entry(id).or_default();
            *count += 1;
            (Ticket { turns: self, id }, Arc::clone(queue))
        };
        let guard =
            if alone { Guard::Alone(queue.write_owned().await) } else { Guard::Beside(queue.read_owned().await) };
        Turn { _guard: guard, _ticket: ticket }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut queues = self.turns.lock();
        if let Some((count, _)) = queues.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                queues.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_writes_alone_waits_for_the_others_and_nobody_is_kept() {
        let (turns, id, other) = (Turns::default(), ExecutionId::mint(), ExecutionId::mint());
        let beside = [turns.take(id, false).await, turns.take(id, false).await];
        let mut alone = Box::pin(turns.take(id, true));
        assert!(alone.as_mut().now_or_never().is_none());
        let _elsewhere = turns.take(other, true).await;
        drop(beside);
        let turn = alone.await;
        assert!(turns.take(id, false).now_or_never().is_none());
        drop(turn);
        drop(turns.take(id, false).await);
        assert_eq!(turns.lock().keys().copied().collect::<Vec<_>>(), [other]);
    }
}
