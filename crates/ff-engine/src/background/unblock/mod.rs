//! The unblock reconciler: tells executions that wait for a budget when it lets work start again. Each then asks once more.
//!
//! A budget that refused something counts its *openings*: how often it let work start again since. A waiter remembers the
//! opening at which it was refused, so it is told of later ones only. There are two kinds:
//!
//! - A *wide* opening changes what fits: a limit was raised, or a new period began. Everyone who waits is told.
//! - A *narrow* one only gives something back. As many are told as may fit, the first in line first.
//!
//! The store marks a budget until everyone was told, so neither a lost announcement nor a crash forgets an opening:
//!
//! ```text
//!   budget opens ──► marked ──► first walk ──► SECOND_WALK later ──► second walk ──► mark removed
//!                               (walk.rs)                            (acknowledged)
//!                                  │
//!                                  └─ tell.rs: everyone, or some of each partition's waiters, best head first;
//!                                     what is left over is looked at again NEXT_SHARE later
//!
//!   every SWEEP_EVERY: one partition of executions ──► sweep.rs: tells those the walks have missed
//! ```
//!
//! The second walk meets executions that were refused before the opening and came to wait only after the first walk. It comes
//! when no grant of that time is open any more. What cannot be read stays blocked.

mod sweep;
mod tell;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ff_script::{Error, Route, Wake};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::share::Owned;
use crate::news::{Listener, News};
use crate::operations::Operations;

use sweep::{sweep_budgets, sweep_quotas};
use walk::{Progress, walk};

pub use sweep::sweep_once;
pub(super) use sweep::tell_of_quota;
pub use walk::Unblocked;

/// Entries that one call reads or tells.
const BATCH: i64 = 64;
/// Partitions that are asked at once.
const AT_ONCE: usize = 16;
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// Executions that were told of a narrow opening have this long to use it before more are told.
const NEXT_SHARE: Duration = Duration::from_millis(100);
/// Between the two walks for one opening: longer than the grants of the dispatcher, under which a refusal may still be recorded.
const SECOND_WALK: Duration = Duration::from_secs(6);
/// This often one partition of executions is looked at, for budgets and for quotas in turn.
const SWEEP_EVERY: Duration = Duration::from_secs(8);

/// Tells those who wait for the marked budgets of a partition. With `acknowledge` the marks go.
pub async fn run_once(operations: &Operations, route: Route, acknowledge: bool) -> Result<Unblocked, Error> {
    let patience = acknowledge.then_some(Duration::ZERO);
    walk(operations, route, &mut Progress::new(patience)).await
}

/// Starts the reconciler for the partitions this server owns.
pub fn start(operations: Operations, owned: Owned, tasks: &mut JoinSet<()>, stop: CancellationToken) {
    let news = Listener::new(operations.client().host().as_ref());
    let unblock = Unblock {
        operations,
        owned,
        pending: BTreeSet::new(),
        second: BTreeMap::new(),
        next_share: BTreeMap::new(),
        progress: Progress::new(Some(SECOND_WALK)),
        turn: 0,
    };
    tasks.spawn(unblock.run(news, stop));
}

struct Unblock {
    operations: Operations,
    owned: Owned,
    /// Partitions whose budgets may be marked.
    pending: BTreeSet<Route>,
    /// When to walk once more, and remove the marks.
    second: BTreeMap<Route, Instant>,
    /// When to tell more of those that may fit.
    next_share: BTreeMap<Route, Instant>,
    progress: Progress,
    /// Counts the sweeps.
    turn: usize,
}

impl Unblock {
    async fn run(mut self, mut news: Listener, stop: CancellationToken) {
        let mut sweep = tokio::time::interval(SWEEP_EVERY);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        sweep.reset();
        loop {
            let pause = if self.step().await { Duration::ZERO } else { AFTER_FAILURE };
            let second = self.second.values().chain(self.next_share.values()).min().copied();
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = self.owned.changed() => match changed {
                    Ok(()) => self.look_at_all(),
                    Err(_) => return,
                },
                heard = news.next() => match heard {
                    Some(heard) => heard.into_iter().for_each(|item| self.hear(item)),
                    None => return,
                },
                _ = sweep.tick() => self.sweep().await,
                () = tokio::time::sleep_until(second.unwrap_or_else(Instant::now)), if second.is_some() => {}
                () = tokio::time::sleep(pause), if !self.pending.is_empty() => {}
            }
        }
    }

    /// Takes a batch of every partition that is due; false when one failed.
    async fn step(&mut self) -> bool {
        let owned = self.owned.borrow().clone();
        self.second.retain(|route, _| owned.contains(route));
        self.next_share.retain(|route, _| owned.contains(route));
        let now = Instant::now();
        let passed = |times: &BTreeMap<Route, Instant>| -> Vec<Route> {
            times.iter().filter(|(_, at)| **at <= now).map(|(route, _)| *route).collect()
        };
        let first = std::mem::take(&mut self.pending).into_iter().filter(|route| owned.contains(route));
        let due: BTreeSet<Route> = first.chain(passed(&self.second)).chain(passed(&self.next_share)).collect();
        let mut fine = true;
        for route in due {
            self.next_share.remove(&route);
            self.second.remove(&route);
            match walk(&self.operations, route, &mut self.progress).await {
                Ok(done) => {
                    if done.unfinished {
                        self.next_share.insert(route, Instant::now() + NEXT_SHARE);
                    }
                    self.second.extend(done.again.map(|at| (route, at)));
                }
                Err(error) => {
                    tracing::warn!(%route, %error, "what waits for budgets could not be told");
                    self.pending.insert(route);
                    fine = false;
                }
            }
        }
        fine
    }

    fn hear(&mut self, item: News) {
        match item {
            News::Said(route, Wake::Budget { .. }) => drop(self.pending.insert(route)),
            News::Said(..) => {}
            News::Lost(routes) => self.pending.extend(routes.into_iter().filter(|r| matches!(r, Route::Budget(_)))),
            News::LostAny => self.look_at_all(),
        }
    }

    fn look_at_all(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        self.pending.extend(owned.iter().copied().filter(|route| matches!(route, Route::Budget(_))));
    }

    /// Looks at the next partition of executions.
    async fn sweep(&mut self) {
        let owned: Vec<Route> =
            self.owned.borrow().iter().copied().filter(|route| matches!(route, Route::Execution(_))).collect();
        self.turn = self.turn.wrapping_add(1);
        let Some(route) = owned.get(self.turn / 2 % owned.len().max(1)).copied() else { return };
        let swept = match self.turn % 2 {
            0 => sweep_budgets(&self.operations, route).await,
            _ => sweep_quotas(&self.operations, route).await,
        };
        if let Err(error) = swept {
            tracing::warn!(%route, %error, "a sweep over what waits for budgets and quotas failed");
        }
    }
}
