//! Does what schedules owe: submits their firings, supplies their times, and cancels what a new firing replaces.
//!
//! A schedule's partition decides what fires and owes the rest to its outbox. Each effect is safe to repeat: a firing's
//! id is made of schedule and nominal time, and times are supplied as the schedule is then. So two servers may do the same,
//! and a crash between two calls only repeats one.

use std::collections::BTreeMap;
use std::time::Duration;

use ff_core::error_code::ErrorCode;
use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{AckOutbox, CancelPolicy, Effect, ReadOutbox, ReadOutboxReply, TakeFiring, TakeFiringReply};
use ff_script::{Error, Route, Wake};
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::share::Owned;
use crate::news::{Listener, News};
use crate::operations::{Operations, refused_with, settling};
use crate::schedules::{self, Run};

const BATCH: usize = 64;
/// Actions that are read at once: each may have two megabytes.
const FIRINGS: usize = 16;
const AT_ONCE: usize = 8;
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// Who cancels what a new firing replaces.
const ACTOR: &str = "schedule";

/// What one step did with one partition's effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Effects applied and struck.
    pub struck: usize,
    /// Effects that stay, because they could not be applied.
    pub left: usize,
}

/// An effect as this reads it.
enum Owed {
    Fire { namespace: String, schedule: String, number: i64 },
    Plan { namespace: String, schedule: String },
    Backfill { namespace: String, schedule: String },
    Cancel { schedule: String, run: Uuid },
}

fn read(effect: &Effect) -> Option<Owed> {
    let text = |name: &str| effect.data.get(name).cloned();
    let (namespace, schedule) = (text("namespace")?, text("schedule")?);
    Some(match effect.r#type.as_str() {
        "fire_schedule" => Owed::Fire { namespace, schedule, number: text("number")?.parse().ok()? },
        "plan_schedule" => Owed::Plan { namespace, schedule },
        "plan_backfill" => Owed::Backfill { namespace, schedule },
        "cancel_run" => Owed::Cancel { schedule, run: text("run_id")?.parse().ok()? },
        _ => return None,
    })
}

/// Applies everything that a partition of schedules owes now, in batches. What fails stays and holds nothing else back.
pub async fn run_once(operations: &Operations, route: Route) -> Result<Done, Error> {
    let mut done = Done::default();
    let mut after = None;
    loop {
        let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
        let call = ReadOutbox { after, ..ReadOutbox::new(limit) };
        let ReadOutboxReply::Effects { items } = operations.client().call(route, &call).await?;
        let (full, last) = (items.len() == BATCH, items.last().map(|effect| effect.id.clone()));
        let ids = apply(operations, route, &items).await;
        done.left += items.len() - ids.len();
        if !ids.is_empty() {
            done.struck += ids.len();
            operations.client().call(route, &AckOutbox { ids }).await?;
        }
        if !full {
            return Ok(done);
        }
        after = last;
    }
}

/// Applies effects; answers the ids of those that are done.
async fn apply(operations: &Operations, route: Route, effects: &[Effect]) -> Vec<String> {
    let (mut firings, mut others, mut paid) = (Vec::new(), Vec::new(), Vec::new());
    for effect in effects {
        match read(effect) {
            Some(Owed::Fire { namespace, schedule, number }) => firings.push((effect, namespace, schedule, number)),
            Some(other) => others.push((effect.id.clone(), effect.r#type.clone(), other)),
            None => tracing::warn!(id = %effect.id, effect = effect.r#type, "an effect of unknown type is left alone"),
        }
    }
    for some in firings.chunks(FIRINGS) {
        let takes: Vec<(Route, TakeFiring)> = some
            .iter()
            .map(|(_, namespace, name, number)| {
                (route, TakeFiring { name: name.clone(), namespace: namespace.clone(), number: *number })
            })
            .collect();
        let taken = operations.client().call_all(&takes).await;
        let (mut runs, mut entries) = (Vec::new(), Vec::new());
        for ((effect, namespace, schedule, _), answer) in some.iter().zip(taken) {
            match answer {
                Ok(TakeFiringReply::Due { action, firing }) => {
                    let (namespace, schedule) = (namespace.clone(), schedule.clone());
                    runs.push(Run { namespace, schedule, firing, action: action.0 });
                    entries.push(effect.id.clone());
                }
                Ok(TakeFiringReply::Settled) => paid.push(effect.id.clone()),
                Err(error) => tracing::warn!(%route, %error, schedule, "a firing could not be read"),
            }
        }
        let answers = schedules::submit(operations, &runs).await;
        let (mut settles, mut settled) = (Vec::new(), Vec::new());
        for ((run, answer), id) in runs.iter().zip(&answers).zip(entries) {
            match settling(run, answer, false) {
                Ok(call) => {
                    settles.push((route, call));
                    settled.push(id);
                }
                Err(error) => {
                    tracing::warn!(%route, %error, schedule = run.schedule, "a firing could not be submitted")
                }
            }
        }
        for (id, answer) in settled.into_iter().zip(operations.client().call_all(&settles).await) {
            match answer {
                Ok(_) => paid.push(id),
                Err(error) => tracing::warn!(%route, %error, "a firing could not be settled"),
            }
        }
    }
    let applied = stream::iter(others).map(|(id, kind, owed)| async move {
        let done = apply_one(operations, &owed).await;
        if let Err(error) = &done {
            tracing::warn!(%route, %error, effect = kind, "what a schedule owes could not be done");
        }
        done.is_ok().then_some(id)
    });
    paid.extend(applied.buffered(AT_ONCE).collect::<Vec<_>>().await.into_iter().flatten());
    paid
}

async fn apply_one(operations: &Operations, owed: &Owed) -> Result<(), Error> {
    match owed {
        Owed::Plan { namespace, schedule } => operations.supply_times(namespace, schedule).await,
        Owed::Backfill { namespace, schedule } => operations.supply_backfill(namespace, schedule).await,
        Owed::Cancel { schedule, run } => cancel(operations, schedule, *run).await,
        Owed::Fire { .. } => Ok(()),
    }
}

/// Cancels an execution or a flow; one that is not there has ended.
async fn cancel(operations: &Operations, schedule: &str, run: Uuid) -> Result<(), Error> {
    let reason = format!("schedule {schedule} fires again");
    match operations.cancel(ExecutionId::from_uuid(run), ACTOR, Some(&reason), None).await {
        Ok(_) => return Ok(()),
        Err(error) => match refused_with(&error) {
            Some(ErrorCode::ExecutionNotFound) => {}
            Some(ErrorCode::ExecutionTerminal | ErrorCode::ExecutionNotActive) => return Ok(()),
            _ => return Err(error),
        },
    }
    let id = FlowId::from_uuid(run);
    match operations.cancel_flow(id, CancelPolicy::CancelAll, ACTOR, Some(&reason), false).await {
        Err(error) if refused_with(&error) != Some(ErrorCode::FlowNotFound) => Err(error),
        _ => Ok(()),
    }
}

/// Starts what does this for the partitions that this server owns.
pub fn start(
    operations: Operations,
    owned: Owned,
    sweep_every: Duration,
    tasks: &mut JoinSet<()>,
    stop: CancellationToken,
) {
    let news = Listener::new(operations.client().host().as_ref());
    let schedules = Schedules { operations, owned, due: BTreeMap::new(), turn: 0 };
    tasks.spawn(schedules.run(news, sweep_every, stop));
}

struct Schedules {
    operations: Operations,
    owned: Owned,
    /// Partitions that may owe something, and when they are read.
    due: BTreeMap<Route, Instant>,
    turn: usize,
}

impl Schedules {
    async fn run(mut self, mut news: Listener, sweep_every: Duration, stop: CancellationToken) {
        let mut sweep = tokio::time::interval(sweep_every);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        sweep.reset();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.step() => {}
            }
            let next = self.due.values().min().copied();
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = self.owned.changed() => match changed {
                    Ok(()) => self.look_at_all(),
                    Err(_) => return,
                },
                heard = news.next() => match heard {
                    Some(heard) => {
                        heard.into_iter().for_each(|item| self.hear(item));
                        while let Some(Some(heard)) = news.next().now_or_never() {
                            heard.into_iter().for_each(|item| self.hear(item));
                        }
                    }
                    None => return,
                },
                _ = sweep.tick() => self.sweep(),
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
        }
    }

    async fn step(&mut self) {
        let (owned, now) = (self.owned.borrow().clone(), Instant::now());
        self.due.retain(|route, _| owned.contains(route));
        let routes: Vec<Route> = self.due.iter().filter(|(_, at)| **at <= now).map(|(route, _)| *route).collect();
        let operations = &self.operations;
        let results: Vec<_> = stream::iter(routes)
            .map(|route| async move { (route, run_once(operations, route).await) })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        for (route, result) in results {
            self.due.remove(&route);
            match result {
                Ok(Done { left: 0, .. }) => {}
                Ok(_) => self.look_at(route, Instant::now() + AFTER_FAILURE),
                Err(error) => {
                    tracing::warn!(%route, %error, "what schedules owe could not be read");
                    self.look_at(route, Instant::now() + AFTER_FAILURE);
                }
            }
        }
    }

    fn look_at(&mut self, route: Route, at: Instant) {
        let due = self.due.entry(route).or_insert(at);
        *due = at.min(*due);
    }

    fn hear(&mut self, item: News) {
        let now = Instant::now();
        match item {
            News::Said(route @ Route::Schedule(_), Wake::Fleet) => self.look_at(route, now),
            News::Said(..) => {}
            News::Lost(routes) => {
                let schedules = routes.into_iter().filter(|route| matches!(route, Route::Schedule(_)));
                schedules.for_each(|route| self.look_at(route, now));
            }
            News::LostAny => self.look_at_all(),
        }
    }

    fn own(&self) -> Vec<Route> {
        self.owned.borrow().iter().copied().filter(|route| matches!(route, Route::Schedule(_))).collect()
    }

    fn look_at_all(&mut self) {
        self.owned.borrow_and_update();
        let now = Instant::now();
        self.own().into_iter().for_each(|route| self.look_at(route, now));
    }

    /// Looks at the next partition, in case an announcement was lost.
    fn sweep(&mut self) {
        let own = self.own();
        self.turn = self.turn.wrapping_add(1);
        if let Some(route) = own.get(self.turn % own.len().max(1)) {
            self.look_at(*route, Instant::now());
        }
    }
}
