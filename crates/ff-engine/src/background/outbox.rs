//! Applies what partitions owe to each other; each effect is safe to repeat and struck when done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ff_core::error_code::ErrorCode;
use ff_core::types::BudgetId;
use ff_script::generated::{
    AckOutbox, DrainLeases, DrainLeasesReply, Effect, GetBudget, Holder, NoteScope, ReadOutbox, ReadOutboxReply,
    UnblockExecution,
};
use ff_script::{Client, Error, Route, Wake};
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::holders::{self, Leaving};
use super::share::Owned;
use super::unblock;
use crate::news::{Listener, News};
use crate::operations::{finish_usage, refused_with};

const BATCH: i64 = 64;
const AT_ONCE: usize = 16;
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// A partition that was read is not read again for so long: what it owes meanwhile is taken together.
const GATHER: Duration = Duration::from_millis(2);

/// What one step did with one partition's effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Effects applied and struck.
    pub struck: usize,
    /// More may be owed.
    pub more: bool,
}

/// What was read of a partition and is done together with what others owe.
#[derive(Default)]
struct Owed {
    /// Struck when all of it is done.
    ids: Vec<String>,
    /// The sets that holders leave.
    sets: BTreeSet<String>,
    calls: Vec<UnblockExecution>,
}

/// Who leaves each set, from whatever partition.
type Releases = BTreeMap<String, Vec<Leaving>>;

/// Applies at most one batch of a partition's effects.
pub async fn run_once(client: &Client, route: Route) -> Result<Drained, Error> {
    let mut all = run_all(client, vec![route]).await;
    all.pop().map_or(Ok(Drained { struck: 0, more: false }), |(_, drained)| drained)
}

/// Applies at most one batch of each partition's effects. What they owe to one set goes there together.
pub async fn run_all(client: &Client, routes: Vec<Route>) -> Vec<(Route, Result<Drained, Error>)> {
    let read: Vec<_> = stream::iter(routes)
        .map(|route| async move { (route, read(client, route).await) })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let (mut releases, mut all) = (Releases::new(), Vec::new());
    for (route, found) in read {
        all.push((
            route,
            found.map(|(owed, leaving)| {
                for (set, leaving) in leaving {
                    releases.entry(set).or_default().extend(leaving);
                }
                owed
            }),
        ));
    }
    let failed: BTreeMap<String, Error> = stream::iter(releases)
        .map(|(set, leaving)| async move {
            for batch in leaving.chunks(BATCH as usize) {
                if let Err(error) = holders::release(client, &set, batch.to_vec()).await {
                    return Some((set, error));
                }
            }
            None
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(std::future::ready)
        .collect()
        .await;
    let failed = &failed;
    stream::iter(all)
        .map(|(route, owed)| async move {
            let drained = match owed {
                Ok(owed) => strike(client, route, owed, failed).await,
                Err(error) => Err(error),
            };
            (route, drained)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

/// Reads a batch, and does what concerns no set and no other execution.
async fn read(client: &Client, route: Route) -> Result<(Owed, Releases), Error> {
    let ReadOutboxReply::Effects { items } = client.call(route, &ReadOutbox { limit: BATCH }).await?;
    let (mut owed, mut releases) = (Owed::default(), Releases::new());
    for effect in &items {
        let known = match effect.r#type.as_str() {
            "yield_leases" => drain(client, effect, false).await?,
            "revoke_leases" => drain(client, effect, true).await?,
            "apply_usage" => apply_usage(client, effect).await?,
            "quota_returned" => quota_returned(client, effect).await?,
            "note_scope" => note_scope(client, effect).await?,
            "release_holder" => {
                match (effect.data.get("set"), holder(effect)) {
                    (Some(set), Some(holder)) => {
                        owed.sets.insert(set.clone());
                        releases.entry(set.clone()).or_default().push(holder);
                    }
                    _ => tracing::error!(id = %effect.id, "a release without set or holder is struck"),
                }
                true
            }
            "unblock" => {
                match unblocking(effect) {
                    Some(call) => owed.calls.push(call),
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
            owed.ids.push(effect.id.clone());
        }
    }
    Ok((owed, releases))
}

/// Calls whom the partition owes a call, and strikes its batch, unless a set could not be left.
async fn strike(client: &Client, route: Route, owed: Owed, failed: &BTreeMap<String, Error>) -> Result<Drained, Error> {
    if let Some(error) = owed.sets.iter().find_map(|set| failed.get(set)) {
        return Err(error.clone());
    }
    let called = stream::iter(owed.calls).map(|call| let_ask(client, call)).buffer_unordered(AT_ONCE);
    called.try_collect::<Vec<()>>().await?;
    let struck = owed.ids.len();
    if struck > 0 {
        client.call(route, &AckOutbox { ids: owed.ids }).await?;
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

/// A budget of a scope came or went: what is noted there follows what is so now, in whatever order the effects come.
async fn note_scope(client: &Client, effect: &Effect) -> Result<bool, Error> {
    let (Some(scope), Some(budget_id)) =
        (effect.data.get("scope").cloned(), effect.data.get("budget_id").and_then(|id| id.parse::<BudgetId>().ok()))
    else {
        tracing::error!(id = %effect.id, "a scope without name or budget is struck");
        return Ok(true);
    };
    let gone = match client.call(client.route_of_budget(&budget_id), &GetBudget { budget_id }).await {
        Ok(_) => None,
        Err(error) if refused_with(&error) == Some(ErrorCode::BudgetNotFound) => Some(true),
        Err(error) => return Err(error),
    };
    match client.call(Route::Fleet, &NoteScope { budget_id, gone, scope: scope.clone() }).await {
        Err(error) if refused_with(&error) == Some(ErrorCode::BudgetInUse) => {
            tracing::error!(%budget_id, scope, %error, "the budget does not apply in its scope");
            Ok(true)
        }
        answer => answer.map(|_| true),
    }
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
    let outboxes = Outboxes { client, owned, pending: BTreeMap::new(), drained: BTreeMap::new(), turn: 0 };
    tasks.spawn(outboxes.run(news, sweep_every, stop));
}

struct Outboxes {
    client: Client,
    owned: Owned,
    /// Partitions that may owe something, and when they are read.
    pending: BTreeMap<Route, Instant>,
    /// When partitions were read last, as far as that is not long ago.
    drained: BTreeMap<Route, Instant>,
    turn: usize,
}

impl Outboxes {
    async fn run(mut self, mut news: Listener, sweep_every: Duration, stop: CancellationToken) {
        let mut sweep = tokio::time::interval(sweep_every);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        sweep.reset();
        loop {
            self.step().await;
            let next = self.pending.values().min().copied();
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
                        // Whatever else has been said by now is done in the same step.
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

    /// Takes one batch of every partition that is due.
    async fn step(&mut self) {
        let (owned, now) = (self.owned.borrow().clone(), Instant::now());
        self.pending.retain(|route, _| owned.contains(route));
        self.drained.retain(|_, at| *at + GATHER > now);
        let due: Vec<Route> = self.pending.iter().filter(|(_, at)| **at <= now).map(|(route, _)| *route).collect();
        for route in &due {
            self.pending.remove(route);
            self.drained.insert(*route, now);
        }
        for (route, result) in run_all(&self.client, due).await {
            match result {
                Ok(Drained { more: false, .. }) => {}
                Ok(_) => drop(self.pending.insert(route, now)),
                Err(error) => {
                    tracing::warn!(%route, %error, "the outbox could not be drained");
                    self.pending.insert(route, Instant::now() + AFTER_FAILURE);
                }
            }
        }
    }

    /// The partition is read: at once, or together with what else comes while it was read a moment ago.
    fn owes(&mut self, route: Route) {
        let at = self.drained.get(&route).map_or_else(Instant::now, |at| *at + GATHER);
        self.pending.entry(route).or_insert(at);
    }

    fn hear(&mut self, item: News) {
        match item {
            News::Said(route, Wake::Fleet) => self.owes(route),
            News::Said(..) => {}
            News::Lost(routes) => routes.into_iter().filter(|route| owes(*route)).for_each(|route| self.owes(route)),
            News::LostAny => self.look_at_all(),
        }
    }

    fn look_at_all(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        owned.iter().copied().filter(|route| owes(*route)).for_each(|route| self.owes(route));
    }

    /// Looks at the next partition, in case an announcement was lost.
    fn sweep(&mut self) {
        let owned: Vec<Route> = self.owned.borrow().iter().copied().filter(|route| owes(*route)).collect();
        self.turn = self.turn.wrapping_add(1);
        if let Some(route) = owned.get(self.turn % owned.len().max(1)) {
            self.owes(*route);
        }
    }
}

/// Which partitions may owe others something.
fn owes(route: Route) -> bool {
    matches!(route, Route::Execution(_) | Route::Quota(_) | Route::Budget(_) | Route::Fleet)
}
