//! Applies what partitions owe to each other; each effect is safe to repeat and struck when done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ff_core::error_code::ErrorCode;
use ff_script::generated::{
    AckOutbox, DrainLeases, DrainLeasesReply, Effect, Holder, ReadOutbox, ReadOutboxReply, UnblockExecution,
};
use ff_script::{Client, Error, Route, Wake};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::holders::{self, Leaving};
use super::share::Owned;
use super::unblock;
use crate::news::{Listener, News};
use crate::operations::{finish_usage, refused_with};

const BATCH: i64 = 64;
const AT_ONCE: usize = 16;
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// What one step did with one partition's effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Effects applied and struck.
    pub struck: usize,
    /// More may be owed.
    pub more: bool,
}

/// Applies at most one batch of a partition's effects.
pub async fn run_once(client: &Client, route: Route) -> Result<Drained, Error> {
    let ReadOutboxReply::Effects { items } = client.call(route, &ReadOutbox { limit: BATCH }).await?;
    let mut done = Vec::new();
    let mut releases: BTreeMap<String, Vec<Leaving>> = BTreeMap::new();
    let mut calls: Vec<UnblockExecution> = Vec::new();
    for effect in &items {
        let known = match effect.r#type.as_str() {
            "yield_leases" => drain(client, effect, false).await?,
            "revoke_leases" => drain(client, effect, true).await?,
            "apply_usage" => apply_usage(client, effect).await?,
            "quota_returned" => quota_returned(client, effect).await?,
            "release_holder" => {
                match (effect.data.get("set"), holder(effect)) {
                    (Some(set), Some(holder)) => releases.entry(set.clone()).or_default().push(holder),
                    _ => tracing::error!(id = %effect.id, "a release without set or holder is struck"),
                }
                true
            }
            "unblock" => {
                match unblocking(effect) {
                    Some(call) => calls.push(call),
                    None => tracing::error!(id = %effect.id, "a call without execution or reason is struck"),
                }
                true
            }
            other => {
                // A newer server owes something this one does not know; it stays for that server.
                tracing::warn!(effect = other, id = %effect.id, "an effect of unknown type is left alone");
                false
            }
        };
        if known {
            done.push(effect.id.clone());
        }
    }
    for (set, leaving) in releases {
        holders::release(client, &set, leaving).await?;
    }
    let called = stream::iter(calls).map(|call| let_ask(client, call)).buffer_unordered(AT_ONCE);
    called.try_collect::<Vec<()>>().await?;
    let struck = done.len();
    if struck > 0 {
        client.call(route, &AckOutbox { ids: done }).await?;
    }
    Ok(Drained { struck, more: i64::try_from(struck) == Ok(BATCH) })
}

fn holder(effect: &Effect) -> Option<Leaving> {
    let execution_id = effect.data.get("execution_id")?.parse().ok()?;
    let holder_id = effect.data.get("holder_id")?.parse().ok()?;
    let holder = Holder { execution_id, expires_at: None, holder_id };
    Some(Leaving { holder, unused: effect.data.contains_key("unused") })
}

fn unblocking(effect: &Effect) -> Option<UnblockExecution> {
    let execution_id = effect.data.get("execution_id")?.parse().ok()?;
    let holder_id = effect.data.get("holder_id").and_then(|id| id.parse().ok());
    Some(UnblockExecution { execution_id, holder_id, reason: effect.data.get("reason")?.parse().ok()? })
}

/// Lets an execution ask again. One that is gone or was moved meanwhile needs no call.
async fn let_ask(client: &Client, call: UnblockExecution) -> Result<(), Error> {
    match client.call(client.route_of(&call.execution_id), &call).await {
        Err(error) if refused_with(&error) == Some(ErrorCode::ExecutionNotFound) => Ok(()),
        answer => answer.map(|_| ()),
    }
}

/// A quota of this name is there again: who was refused because there was none may ask.
async fn quota_returned(client: &Client, effect: &Effect) -> Result<bool, Error> {
    let Some(quota_id) = effect.data.get("quota_id").and_then(|id| id.parse().ok()) else {
        tracing::error!(id = %effect.id, "a returned quota without id is struck");
        return Ok(true);
    };
    let told = stream::iter(client.execution_routes()).map(|route| unblock::tell_of_quota(client, route, quota_id));
    told.buffer_unordered(AT_ONCE).try_collect::<Vec<i64>>().await?;
    Ok(true)
}

/// Finishes a report of usage whose reporter did not get that far.
async fn apply_usage(client: &Client, effect: &Effect) -> Result<bool, Error> {
    let execution_id = effect.data.get("execution_id").and_then(|id| id.parse().ok());
    let sequence = effect.data.get("sequence").and_then(|sequence| sequence.parse().ok());
    match (execution_id, sequence) {
        (Some(execution_id), Some(sequence)) => finish_usage(client, execution_id, sequence).await?,
        _ => tracing::error!(id = %effect.id, "usage without execution or sequence is struck"),
    }
    Ok(true)
}

async fn drain(client: &Client, effect: &Effect, revoke: bool) -> Result<bool, Error> {
    let (Some(instance), Some(actor)) = (effect.data.get("instance"), effect.data.get("actor")) else {
        tracing::error!(id = %effect.id, "an effect without instance or actor is struck");
        return Ok(true);
    };
    for route in client.execution_routes() {
        loop {
            let call = DrainLeases { instance: instance.clone(), revoke, limit: BATCH, actor: actor.clone() };
            let DrainLeasesReply::Drained { changed, more } = client.call(route, &call).await?;
            if !more || changed == 0 {
                break;
            }
        }
    }
    Ok(true)
}

/// Starts the outboxes of the partitions this server owns.
pub fn start(client: Client, owned: Owned, sweep_every: Duration, tasks: &mut JoinSet<()>, stop: CancellationToken) {
    let news = Listener::new(client.host().as_ref());
    let outboxes = Outboxes { client, owned, pending: BTreeSet::new(), turn: 0 };
    tasks.spawn(outboxes.run(news, sweep_every, stop));
}

struct Outboxes {
    client: Client,
    owned: Owned,
    /// Partitions that may owe something.
    pending: BTreeSet<Route>,
    turn: usize,
}

impl Outboxes {
    async fn run(mut self, mut news: Listener, sweep_every: Duration, stop: CancellationToken) {
        let mut sweep = tokio::time::interval(sweep_every);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        sweep.reset();
        loop {
            let pause = if self.step().await { Duration::ZERO } else { AFTER_FAILURE };
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
                _ = sweep.tick() => self.sweep(),
                () = tokio::time::sleep(pause), if !self.pending.is_empty() => {}
            }
        }
    }

    /// Takes one batch of every partition that may owe something; false when one could not be drained.
    async fn step(&mut self) -> bool {
        let owned = self.owned.borrow().clone();
        let due: Vec<Route> = std::mem::take(&mut self.pending).into_iter().filter(|r| owned.contains(r)).collect();
        let client = &self.client;
        let results: Vec<_> = stream::iter(due)
            .map(|route| async move { (route, run_once(client, route).await) })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut fine = true;
        for (route, result) in results {
            match result {
                Ok(Drained { more: false, .. }) => {}
                Ok(_) => drop(self.pending.insert(route)),
                Err(error) => {
                    tracing::warn!(%route, %error, "the outbox could not be drained");
                    self.pending.insert(route);
                    fine = false;
                }
            }
        }
        fine
    }

    fn hear(&mut self, item: News) {
        match item {
            News::Said(route, Wake::Fleet) => drop(self.pending.insert(route)),
            News::Said(..) => {}
            News::Lost(routes) => self.pending.extend(routes.into_iter().filter(|route| owes(*route))),
            News::LostAny => self.look_at_all(),
        }
    }

    fn look_at_all(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        self.pending.extend(owned.iter().copied().filter(|route| owes(*route)));
    }

    /// Looks at the next partition, in case an announcement was lost.
    fn sweep(&mut self) {
        let owned: Vec<Route> = self.owned.borrow().iter().copied().filter(|route| owes(*route)).collect();
        self.turn = self.turn.wrapping_add(1);
        if let Some(route) = owned.get(self.turn % owned.len().max(1)) {
            self.pending.insert(*route);
        }
    }
}

/// Which partitions may owe others something.
fn owes(route: Route) -> bool {
    matches!(route, Route::Execution(_) | Route::Quota(_) | Route::Budget(_) | Route::Fleet)
}
