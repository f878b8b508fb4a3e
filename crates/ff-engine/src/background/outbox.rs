//! Applies what partitions owe to each other; each effect is safe to repeat and struck when done.
//!
//! What one partition cannot take now holds nothing back that others wait for: every destination is served by itself, what
//! takes several calls runs apart, and what could not be done is read past until it is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ff_core::error_code::ErrorCode;
use ff_core::state::PublicState;
use ff_core::types::{BudgetId, ExecutionId};
use ff_script::generated::{
    AckOutbox, DrainLeases, DrainLeasesReply, Effect, EndFiring, GetBudget, GiveUpCalled, Holder, NoteScope,
    QuotaAbsence, ReadOutbox, ReadOutboxReply, UnblockExecution, UnblockExecutionReply,
};
use ff_script::{Client, Error, HolderSet, HostError, Route, Wake};
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

const BATCH: usize = 64;
const AT_ONCE: usize = 16;
/// Destinations that are served side by side.
const PLACES_AT_ONCE: usize = 128;
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// A partition that was read is not read again for so long: what it owes meanwhile is taken together.
const GATHER: Duration = Duration::from_millis(2);
/// A partition that has not answered by then is not waited for any longer, and is not asked for as long again.
const PATIENCE: Duration = Duration::from_secs(2);
/// Effects that take several calls and are under way at once.
const APART_MAX: usize = 256;

/// What one step did with one partition's effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Effects applied and struck.
    pub struck: usize,
    /// More may be owed.
    pub more: bool,
}

/// What was read of a partition.
struct Batch {
    route: Route,
    /// The last entry; nothing when there is none.
    last: Option<String>,
    /// More may stand behind it.
    full: bool,
    errands: Vec<(String, Errand)>,
    /// What takes several calls.
    apart: Vec<Effect>,
    /// Nothing can be done about these: they are struck.
    void: Vec<String>,
    /// Left alone.
    unknown: usize,
}

/// What one call does.
enum Errand {
    Leave { set: String, leaving: Leaving },
    Call { call: UnblockExecution, set: Option<String> },
    Ended { call: EndFiring },
}

/// One call, and the entries it pays: of which batch, and which.
struct Trip {
    what: What,
    pays: Vec<Entry>,
}

enum What {
    Release { set: String, leaving: Vec<Leaving> },
    Call { call: UnblockExecution, set: Option<String> },
    Ended { call: EndFiring },
}

/// What became of a batch.
struct Done {
    route: Route,
    last: Option<String>,
    full: bool,
    struck: usize,
    /// Entries that stay, because they could not be done.
    failed: usize,
    /// Entries that stay for another reason.
    left: usize,
    apart: Vec<Effect>,
    error: Option<Error>,
}

/// What a call pays: an entry of one of the batches.
type Entry = (usize, String);

/// An execution that was called under a key and will not come.
type Absent = (String, ExecutionId);

/// Applies at most one batch of a partition's effects.
pub async fn run_once(client: &Client, route: Route) -> Result<Drained, Error> {
    let batch = read(client, route, None).await?;
    let mut done = deliver(client, vec![batch], &BTreeSet::new()).await.0.remove(0);
    let apart = std::mem::take(&mut done.apart);
    let results: Vec<Result<(), Error>> =
        stream::iter(&apart).map(|effect| apply_apart(client, route, effect)).buffer_unordered(AT_ONCE).collect().await;
    done.struck += results.iter().filter(|result| result.is_ok()).count();
    match results.into_iter().find_map(Result::err).or(done.error) {
        Some(error) => Err(error),
        None => Ok(Drained { struck: done.struck, more: done.full }),
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| {
        let detail = format!("no answer within {} ms", PATIENCE.as_millis());
        Err(Error::Host(HostError::Unavailable { detail }))
    })
}

async fn read(client: &Client, route: Route, after: Option<String>) -> Result<Batch, Error> {
    let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
    let call = ReadOutbox { after, ..ReadOutbox::new(limit) };
    let ReadOutboxReply::Effects { items } = in_time(client.call(route, &call)).await?;
    let mut batch = Batch {
        route,
        last: items.last().map(|effect| effect.id.clone()),
        full: items.len() == BATCH,
        errands: Vec::new(),
        apart: Vec::new(),
        void: Vec::new(),
        unknown: 0,
    };
    for effect in items {
        match effect.r#type.as_str() {
            "yield_leases" | "revoke_leases" | "apply_usage" | "quota_returned" | "note_scope" => {
                batch.apart.push(effect)
            }
            "release_holder" | "unblock" | "firing_ended" => match errand(&effect) {
                Some(errand) => batch.errands.push((effect.id, errand)),
                None => {
                    tracing::error!(id = %effect.id, effect = effect.r#type, "an effect that lacks something is struck");
                    batch.void.push(effect.id);
                }
            },
            other => {
                // A newer server owes something this one does not know; it stays for that server.
                tracing::warn!(effect = other, id = %effect.id, "an effect of unknown type is left alone");
                batch.unknown += 1;
            }
        }
    }
    Ok(batch)
}

fn errand(effect: &Effect) -> Option<Errand> {
    if effect.r#type == "firing_ended" {
        return Some(Errand::Ended { call: firing_ended(effect)? });
    }
    let set = effect.data.get("set").cloned();
    if effect.r#type == "unblock" {
        return Some(Errand::Call { call: unblocking(effect)?, set });
    }
    Some(Errand::Leave { set: set?, leaving: holder(effect)? })
}

/// The calls that pay the batches, by where they go. What they owe to one set goes there together.
fn trips(client: &Client, batches: &mut [Batch]) -> BTreeMap<Route, Vec<Trip>> {
    let mut leaving: BTreeMap<String, Vec<(Leaving, Entry)>> = BTreeMap::new();
    let mut trips: BTreeMap<Route, Vec<Trip>> = BTreeMap::new();
    for (index, batch) in batches.iter_mut().enumerate() {
        for (id, errand) in std::mem::take(&mut batch.errands) {
            let pays = (index, id);
            match errand {
                Errand::Leave { set, leaving: one } => leaving.entry(set).or_default().push((one, pays)),
                Errand::Call { call, set } => {
                    let to = client.route_of(&call.execution_id);
                    trips.entry(to).or_default().push(Trip { what: What::Call { call, set }, pays: vec![pays] });
                }
                Errand::Ended { call } => {
                    let to = client.route_of_schedule(&call.namespace, &call.name);
                    trips.entry(to).or_default().push(Trip { what: What::Ended { call }, pays: vec![pays] });
                }
            }
        }
    }
    for (set, all) in leaving {
        let to = trips.entry(client.route_of_holder_set(&set)).or_default();
        for some in all.chunks(BATCH) {
            let (leaving, pays) = some.iter().cloned().unzip();
            to.push(Trip { what: What::Release { set: set.clone(), leaving }, pays });
        }
    }
    trips
}

/// Makes the calls and strikes what they paid; also answers the destinations that could not be served.
async fn deliver(client: &Client, mut batches: Vec<Batch>, shut: &BTreeSet<Route>) -> (Vec<Done>, Vec<Route>) {
    let trips = trips(client, &mut batches);
    let served: Vec<Served> = stream::iter(trips)
        .map(|(to, trips)| async move {
            let open = !shut.contains(&to);
            serve(client, to, trips, open).await
        })
        .buffer_unordered(PLACES_AT_ONCE)
        .collect()
        .await;
    let mut paid: Vec<Vec<String>> = batches.iter_mut().map(|batch| std::mem::take(&mut batch.void)).collect();
    let mut failed: Vec<(usize, Option<Error>)> = vec![(0, None); batches.len()];
    let (mut unserved, mut absent) = (Vec::new(), Vec::new());
    for one in served {
        one.paid.into_iter().for_each(|(index, id)| paid[index].push(id));
        for (index, _) in one.unpaid {
            failed[index].0 += 1;
            failed[index].1 = failed[index].1.take().or_else(|| one.error.clone());
        }
        absent.extend(one.absent);
        // One that was shut before is asked again when its time has come.
        unserved.extend((one.shut && one.error.is_some()).then_some(one.to));
    }
    give_up(client, absent).await;
    let strikes = batches.into_iter().zip(paid).zip(failed).map(|((batch, ids), (unpaid, error))| async move {
        let struck = ids.len();
        let acked = match ids.is_empty() {
            true => Ok(()),
            false => in_time(client.call(batch.route, &AckOutbox { ids })).await.map(|_| ()),
        };
        let lost = if acked.is_err() { struck } else { 0 };
        Done {
            route: batch.route,
            last: batch.last,
            full: batch.full,
            struck: struck - lost,
            failed: unpaid + lost,
            left: batch.unknown,
            apart: batch.apart,
            error: acked.err().or(error),
        }
    });
    (stream::iter(strikes).buffer_unordered(PLACES_AT_ONCE).collect().await, unserved)
}

/// What was done at one destination.
struct Served {
    to: Route,
    paid: Vec<Entry>,
    unpaid: Vec<Entry>,
    absent: Vec<Absent>,
    error: Option<Error>,
    /// It does not answer.
    shut: bool,
}

/// Makes the calls to one destination; when it does not answer, those that have not begun fail as well.
async fn serve(client: &Client, to: Route, trips: Vec<Trip>, open: bool) -> Served {
    let mut all = Served { to, paid: Vec::new(), unpaid: Vec::new(), absent: Vec::new(), error: None, shut: !open };
    let mut rest = trips.into_iter();
    while !all.shut {
        let some: Vec<Trip> = rest.by_ref().take(AT_ONCE).collect();
        if some.is_empty() {
            return all;
        }
        let made = futures::future::join_all(some.into_iter().map(|Trip { what, pays }| async move {
            let answer = in_time(make(client, what)).await;
            (pays, answer)
        }));
        for (pays, answer) in made.await {
            match answer {
                Ok(absent) => {
                    all.paid.extend(pays);
                    all.absent.extend(absent);
                }
                Err(error) => {
                    all.unpaid.extend(pays);
                    all.shut |= matches!(error, Error::Host(_));
                    all.error = Some(error);
                }
            }
        }
    }
    all.unpaid.extend(rest.flat_map(|trip| trip.pays));
    all
}

async fn make(client: &Client, what: What) -> Result<Option<Absent>, Error> {
    match what {
        What::Release { set, leaving } => holders::release(client, &set, leaving).await.map(|()| None),
        What::Call { call, set } => {
            let comes = let_ask(client, &call).await?;
            Ok(set.filter(|_| !comes).map(|set| (set, call.execution_id)))
        }
        What::Ended { call } => {
            let to = client.route_of_schedule(&call.namespace, &call.name);
            client.call(to, &call).await.map(|_| None)
        }
    }
}

/// Quotas wait for those they called: they hear of those that will not come. One that cannot be told finds out by itself.
async fn give_up(client: &Client, absent: Vec<Absent>) {
    let mut by_quota: BTreeMap<_, Vec<QuotaAbsence>> = BTreeMap::new();
    for (set, execution_id) in &absent {
        if let Some(HolderSet::Quota { id, digest }) = HolderSet::read(set) {
            let one = QuotaAbsence { execution_id: *execution_id, key_digest: digest.to_owned() };
            by_quota.entry(id).or_default().push(one);
        }
    }
    let calls = by_quota.into_iter().flat_map(|(quota_id, items)| {
        let some: Vec<_> = items.chunks(BATCH).map(<[_]>::to_vec).collect();
        some.into_iter().map(move |items| GiveUpCalled { items, quota_id })
    });
    stream::iter(calls)
        .for_each_concurrent(AT_ONCE, |call| async move {
            let to = client.route_of_quota(&call.quota_id);
            if let Err(error) = in_time(client.call(to, &call)).await {
                tracing::debug!(%error, quota = %call.quota_id, "a quota waits for executions that do not come");
            }
        })
        .await;
}

/// Does what takes several calls, and strikes it.
async fn apply_apart(client: &Client, route: Route, effect: &Effect) -> Result<(), Error> {
    match effect.r#type.as_str() {
        "yield_leases" => drain(client, effect, false).await?,
        "revoke_leases" => drain(client, effect, true).await?,
        "apply_usage" => apply_usage(client, effect).await?,
        "note_scope" => note_scope(client, effect).await?,
        _ => quota_returned(client, effect).await?,
    }
    client.call(route, &AckOutbox { ids: vec![effect.id.clone()] }).await.map(|_| ())
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

/// The end of what a schedule submitted.
fn firing_ended(effect: &Effect) -> Option<EndFiring> {
    let text = |name: &str| effect.data.get(name).cloned();
    Some(EndFiring {
        name: text("schedule")?,
        namespace: text("namespace")?,
        number: text("number")?.parse().ok()?,
        outcome: text("outcome")?,
        run_id: text("run_id")?.parse().ok()?,
    })
}

/// Lets an execution ask again; false when it has ended or waits for something else by now, and will not ask.
async fn let_ask(client: &Client, call: &UnblockExecution) -> Result<bool, Error> {
    match client.call(client.route_of(&call.execution_id), call).await {
        Ok(UnblockExecutionReply::Unblocked { .. }) => Ok(true),
        Ok(UnblockExecutionReply::Already { state }) => {
            Ok(matches!(state, PublicState::Waiting | PublicState::Resumable))
        }
        Err(error) if refused_with(&error) == Some(ErrorCode::ExecutionNotFound) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A quota of this name is there again: who was refused because there was none may ask.
async fn quota_returned(client: &Client, effect: &Effect) -> Result<(), Error> {
    let Some(quota_id) = effect.data.get("quota_id").and_then(|id| id.parse().ok()) else {
        tracing::error!(id = %effect.id, "a returned quota without id is struck");
        return Ok(());
    };
    let told = stream::iter(client.execution_routes()).map(|route| unblock::tell_of_quota(client, route, quota_id));
    told.buffer_unordered(AT_ONCE).try_collect::<Vec<i64>>().await?;
    Ok(())
}

/// A budget of a scope came or went: what is noted there follows what is so now, in whatever order the effects come.
async fn note_scope(client: &Client, effect: &Effect) -> Result<(), Error> {
    let (Some(scope), Some(budget_id)) =
        (effect.data.get("scope").cloned(), effect.data.get("budget_id").and_then(|id| id.parse::<BudgetId>().ok()))
    else {
        tracing::error!(id = %effect.id, "a scope without name or budget is struck");
        return Ok(());
    };
    let gone = match client.call(client.route_of_budget(&budget_id), &GetBudget { budget_id }).await {
        Ok(_) => None,
        Err(error) if refused_with(&error) == Some(ErrorCode::BudgetNotFound) => Some(true),
        Err(error) => return Err(error),
    };
    match client.call(Route::Fleet, &NoteScope { budget_id, gone, scope: scope.clone() }).await {
        Err(error) if refused_with(&error) == Some(ErrorCode::BudgetInUse) => {
            tracing::error!(%budget_id, scope, %error, "the budget does not apply in its scope");
            Ok(())
        }
        answer => answer.map(|_| ()),
    }
}

/// Finishes a report of usage whose reporter did not get that far.
async fn apply_usage(client: &Client, effect: &Effect) -> Result<(), Error> {
    let execution_id = effect.data.get("execution_id").and_then(|id| id.parse().ok());
    let sequence = effect.data.get("sequence").and_then(|sequence| sequence.parse().ok());
    match (execution_id, sequence) {
        (Some(execution_id), Some(sequence)) => finish_usage(client, execution_id, sequence).await?,
        _ => tracing::error!(id = %effect.id, "usage without execution or sequence is struck"),
    }
    Ok(())
}

async fn drain(client: &Client, effect: &Effect, revoke: bool) -> Result<(), Error> {
    let (Some(instance), Some(actor)) = (effect.data.get("instance"), effect.data.get("actor")) else {
        tracing::error!(id = %effect.id, "an effect without instance or actor is struck");
        return Ok(());
    };
    for route in client.execution_routes() {
        loop {
            let call = DrainLeases { instance: instance.clone(), revoke, limit: 64, actor: actor.clone() };
            let DrainLeasesReply::Drained { changed, more } = client.call(route, &call).await?;
            if !more || changed == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Starts the outboxes of the partitions this server owns.
pub fn start(client: Client, owned: Owned, sweep_every: Duration, tasks: &mut JoinSet<()>, stop: CancellationToken) {
    let news = Listener::new(client.host().as_ref());
    let outboxes = Outboxes {
        client,
        owned,
        pending: BTreeMap::new(),
        drained: BTreeMap::new(),
        passed: BTreeMap::new(),
        shut: BTreeMap::new(),
        apart: JoinSet::new(),
        under_way: BTreeSet::new(),
        turn: 0,
    };
    tasks.spawn(outboxes.run(news, sweep_every, stop));
}

struct Outboxes {
    client: Client,
    owned: Owned,
    /// Partitions that may owe something, and when they are read.
    pending: BTreeMap<Route, Instant>,
    /// When partitions were read last, as far as that is not long ago.
    drained: BTreeMap<Route, Instant>,
    /// Up to where partitions are read past what could not be done, and until when.
    passed: BTreeMap<Route, Passed>,
    /// Destinations that did not answer, and until when they are not asked.
    shut: BTreeMap<Route, Instant>,
    /// What takes several calls; answers which entry it was, and whether it is struck.
    apart: JoinSet<(Route, String, bool)>,
    under_way: BTreeSet<(Route, String)>,
    turn: usize,
}

/// The entries up to one were looked at and stay.
struct Passed {
    last: String,
    until: Instant,
    /// Some of them have to be tried again.
    failed: bool,
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
                Some(ended) = self.apart.join_next() => self.ended(ended),
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
        }
    }

    /// Takes one batch of every partition that is due.
    async fn step(&mut self) {
        let (owned, now) = (self.owned.borrow().clone(), Instant::now());
        self.pending.retain(|route, _| owned.contains(route));
        self.drained.retain(|_, at| *at + GATHER > now);
        self.shut.retain(|_, until| *until > now);
        for (route, until) in &self.shut {
            self.pending.entry(*route).and_modify(|at| *at = (*at).max(*until));
        }
        let due: Vec<Route> = self.pending.iter().filter(|(_, at)| **at <= now).map(|(route, _)| *route).collect();
        for route in &due {
            self.pending.remove(route);
            self.drained.insert(*route, now);
        }
        if due.is_empty() {
            return;
        }
        self.passed.retain(|route, passed| owned.contains(route) && passed.until > now);
        let shut: BTreeSet<Route> = self.shut.keys().copied().collect();
        let from = due.into_iter().map(|route| (route, self.passed.get(&route).map(|passed| passed.last.clone())));
        let from: Vec<_> = from.collect();
        let client = &self.client;
        let read: Vec<_> = stream::iter(from)
            .map(|(route, after)| async move { (route, read(client, route, after).await) })
            .buffer_unordered(PLACES_AT_ONCE)
            .collect()
            .await;
        let mut batches = Vec::new();
        for (route, found) in read {
            match found {
                Ok(batch) => batches.push(batch),
                Err(error) => {
                    tracing::warn!(%route, %error, "the outbox could not be read");
                    self.shut.insert(route, Instant::now() + AFTER_FAILURE);
                    self.look_at(route, Instant::now() + AFTER_FAILURE);
                }
            }
        }
        let (all, unserved) = deliver(&self.client, batches, &shut).await;
        let until = Instant::now() + PATIENCE;
        self.shut.extend(unserved.into_iter().map(|route| (route, until)));
        all.into_iter().for_each(|done| self.go_on(done));
    }

    /// Says when a partition is read again, and from where.
    fn go_on(&mut self, done: Done) {
        let Done { route, last, full, mut failed, mut left, apart, error, .. } = done;
        if let Some(error) = error {
            tracing::warn!(%route, %error, "not all that is owed could be done");
        }
        for effect in apart {
            left += 1;
            if self.under_way.len() >= APART_MAX && !self.under_way.contains(&(route, effect.id.clone())) {
                failed += 1;
            } else if self.under_way.insert((route, effect.id.clone())) {
                let client = self.client.clone();
                self.apart.spawn(async move {
                    let applied = apply_apart(&client, route, &effect).await;
                    if let Err(error) = &applied {
                        tracing::warn!(%route, %error, effect = effect.r#type, "what is owed could not be done");
                    }
                    (route, effect.id, applied.is_ok())
                });
            }
        }
        let now = Instant::now();
        if let Some(last) = last.filter(|_| failed + left > 0) {
            // The first that stays says when all of them are looked at again.
            let before = self.passed.get(&route).map(|passed| (passed.until, passed.failed));
            let (until, again) = before.unwrap_or((now + AFTER_FAILURE, false));
            self.passed.insert(route, Passed { last, until, failed: again || failed > 0 });
        }
        let again = self.passed.get(&route).filter(|passed| passed.failed).map(|passed| passed.until);
        if let Some(at) = full.then_some(now).or(again) {
            self.look_at(route, at);
        }
    }

    /// One that takes several calls is struck, or tried again after a while.
    fn ended(&mut self, ended: Result<(Route, String, bool), tokio::task::JoinError>) {
        let Ok((route, id, struck)) = ended else { return };
        self.under_way.remove(&(route, id));
        if !struck {
            if let Some(passed) = self.passed.get_mut(&route) {
                passed.failed = true;
            }
            self.look_at(route, Instant::now() + AFTER_FAILURE);
        }
    }

    /// The partition is read: at once, or together with what else comes while it was read a moment ago.
    fn owes(&mut self, route: Route) {
        let at = self.drained.get(&route).map_or_else(Instant::now, |at| *at + GATHER);
        self.look_at(route, at);
    }

    fn look_at(&mut self, route: Route, at: Instant) {
        let due = self.pending.entry(route).or_insert(at);
        *due = at.min(*due);
    }

    fn hear(&mut self, item: News) {
        match item {
            News::Said(route, Wake::Fleet) if owes(route) => self.owes(route),
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
