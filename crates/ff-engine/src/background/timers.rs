//! Fires what is due: sleeps until a partition's next timer, and wakes for an earlier one.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use ff_script::generated::{FireDue, FireDueReply, NextDue, NextDueReply};
use ff_script::list::LIST_MAX;
use ff_script::{Client, Error, Route, Wake};
use futures::stream::{self, StreamExt};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Clock;
use super::share::Owned;
use crate::news::{Listener, News};

/// A quarter of a list, as all background work.
const BATCH: i64 = LIST_MAX as i64 / 4;
const AT_ONCE: usize = 16;
const AFTER_FAILURE: Duration = Duration::from_millis(250);

/// What one step did in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fired {
    /// Entries applied.
    pub count: i64,
    /// Entries that raised and were set aside.
    pub stuck: i64,
    /// More is due already.
    pub more: bool,
    /// When the next entry is due, by the host's clock.
    pub next_at: Option<i64>,
    /// The host's time.
    pub now: i64,
}

/// Fires at most one batch of one partition.
pub async fn run_once(client: &Client, route: Route) -> Result<Fired, Error> {
    let call = FireDue { limit: BATCH, draw: rand::random_range(0..=1000) };
    let FireDueReply::Fired { count, stuck, more, next_at, now } = client.call(route, &call).await?;
    if stuck > 0 {
        tracing::error!(%route, stuck, "timer entries raised and were set aside; run fsck");
    }
    Ok(Fired { count, stuck, more, next_at, now })
}

/// Starts the timers of the partitions this server owns.
pub fn start(
    client: Client,
    clock: Clock,
    owned: Owned,
    sweep_every: Duration,
    tasks: &mut JoinSet<()>,
    stop: CancellationToken,
) {
    let news = Listener::new(client.host().as_ref());
    let timers = Timers { client, clock, due: Due::default(), owned, sweep_next: 0 };
    tasks.spawn(timers.run(news, sweep_every, stop));
}

/// When to look at which partition.
#[derive(Default)]
pub(super) struct Due {
    order: BTreeSet<(Instant, Route)>,
    at: HashMap<Route, Instant>,
}

impl Due {
    fn set(&mut self, route: Route, at: Option<Instant>) {
        if let Some(before) = self.at.remove(&route) {
            self.order.remove(&(before, route));
        }
        if let Some(at) = at {
            self.at.insert(route, at);
            self.order.insert((at, route));
        }
    }

    pub(super) fn no_later_than(&mut self, route: Route, at: Instant) {
        if self.at.get(&route).is_none_or(|before| at < *before) {
            self.set(route, Some(at));
        }
    }

    pub(super) fn first(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    pub(super) fn take_due(&mut self, now: Instant, max: usize) -> Vec<Route> {
        let routes: Vec<Route> =
            self.order.iter().take_while(|(at, _)| *at <= now).take(max).map(|(_, route)| *route).collect();
        for route in &routes {
            self.set(*route, None);
        }
        routes
    }
}

struct Timers {
    client: Client,
    clock: Clock,
    due: Due,
    owned: Owned,
    sweep_next: usize,
}

impl Timers {
    async fn run(mut self, mut news: Listener, sweep_every: Duration, stop: CancellationToken) {
        let mut sweep = tokio::time::interval(sweep_every);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let next = self.due.first().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                heard = news.next() => match heard {
                    Some(heard) => self.hear(heard),
                    None => return,
                },
                changed = self.owned.changed() => match changed {
                    Ok(()) => self.look_at_all(),
                    Err(_) => return,
                },
                _ = sweep.tick() => self.sweep().await,
                () = tokio::time::sleep_until(next) => self.fire().await,
            }
        }
    }

    fn hear(&mut self, heard: Vec<News>) {
        for item in heard {
            match item {
                News::Said(route, Wake::Timer { at_ms }) => {
                    if self.owns(route) {
                        let at = self.clock.instant(at_ms);
                        self.due.no_later_than(route, at);
                    }
                }
                News::Said(..) => {}
                News::Lost(routes) => {
                    for route in routes {
                        if self.owns(route) {
                            self.due.no_later_than(route, Instant::now());
                        }
                    }
                }
                News::LostAny => self.look_at_all(),
            }
        }
    }

    fn owns(&self, route: Route) -> bool {
        self.owned.borrow().contains(&route)
    }

    /// Forgets what is no longer ours and looks at everything that is.
    fn look_at_all(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        self.due = Due::default();
        for route in owned.iter() {
            self.due.no_later_than(*route, Instant::now());
        }
    }

    /// Looks at the next partition's head, in case an announcement was lost.
    async fn sweep(&mut self) {
        let owned = self.owned.borrow().clone();
        if owned.is_empty() {
            return;
        }
        self.sweep_next = (self.sweep_next + 1) % owned.len();
        let route = *owned.iter().nth(self.sweep_next).expect("the index is below the length");
        match self.client.call(route, &NextDue {}).await {
            Ok(NextDueReply::Next { next_at, now }) => {
                self.clock.heard(now);
                if let Some(at) = next_at {
                    let at = self.clock.instant(at);
                    self.due.no_later_than(route, at);
                }
            }
            Err(error) => tracing::warn!(%route, %error, "a sweep failed"),
        }
    }

    async fn fire(&mut self) {
        let routes = self.due.take_due(Instant::now(), AT_ONCE);
        let client = &self.client;
        let results: Vec<_> = stream::iter(routes)
            .map(|route| async move { (route, run_once(client, route).await) })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        for (route, result) in results {
            match result {
                Ok(fired) => {
                    self.clock.heard(fired.now);
                    let next =
                        if fired.more { Some(Instant::now()) } else { fired.next_at.map(|at| self.clock.instant(at)) };
                    if let Some(next) = next {
                        self.due.no_later_than(route, next);
                    }
                }
                Err(error) => {
                    tracing::warn!(%route, %error, "timers could not be fired");
                    self.due.no_later_than(route, Instant::now() + AFTER_FAILURE);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_wake_up_replaces_a_later_one_and_never_the_reverse() {
        let now = Instant::now();
        let (soon, later) = (now + Duration::from_millis(5), now + Duration::from_secs(5));
        let mut due = Due::default();
        due.no_later_than(Route::Fleet, later);
        due.no_later_than(Route::Fleet, soon);
        due.no_later_than(Route::Fleet, later);
        due.no_later_than(Route::Execution(3), later);
        assert_eq!(due.first(), Some(soon));
        assert_eq!(due.take_due(soon, 8), vec![Route::Fleet]);
        assert_eq!(due.first(), Some(later));
        assert_eq!(due.take_due(soon, 8), vec![]);
    }
}
