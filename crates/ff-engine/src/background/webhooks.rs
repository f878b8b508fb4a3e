//! Hands webhooks that are due to whoever carries them, and notes what became of each try.
//!
//! **Invariant:** a webhook leaves the store only when its delivery was noted or it was given up, so a crash loses none; what was
//! under way then is tried again under the same id when its hold is over. No receiver is tried more than a few times at once, so
//! one that does not answer holds up nobody else.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ff_core::webhook::WebhookUrl;
use ff_script::generated::{NoteWebhook, NoteWebhookReply, TakeWebhooks, TakeWebhooksReply, Webhook, WebhookResult};
use ff_script::{Client, Error, Route, Wake};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Clock;
use super::share::Owned;
use super::timers::Due;
use crate::news::{Listener, News};

/// Tries under way at once in this process, to whomever.
const IN_FLIGHT_MAX: usize = 64;
/// Tries under way at once to one receiver.
const PER_RECEIVER_MAX: i64 = 8;
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// How often what became of a try is told to a store that does not answer; then the try is made again.
const NOTES: usize = 6;
/// What is under way when the engine stops may take so long.
const GRACE: Duration = Duration::from_secs(2);
const ERROR_BYTES_MAX: usize = ff_core::limits::WEBHOOK_ERROR_BYTES_MAX;

/// Who carries webhooks to their receivers.
#[async_trait]
pub trait Courier: Send + Sync + 'static {
    /// Why nothing is ever carried to this address, if that can be said without asking anybody.
    fn refusal(&self, url: &WebhookUrl) -> Option<String>;

    /// Makes one try; bounded in time, well below the 20 s for which nobody else makes one.
    async fn carry(&self, webhook: &Webhook) -> Carried;
}

/// What one try came to. Texts are shown to whoever may read the execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// The receiver has it.
    Delivered {
        /// What it answered.
        status: u16,
    },
    /// It is tried again later.
    Failed {
        /// What the receiver answered, if it did.
        status: Option<u16>,
        /// What went wrong.
        error: String,
        /// The receiver asked to be left alone for so long.
        retry_after: Option<Duration>,
    },
    /// The receiver wants none of it: it is not tried again.
    Refused {
        /// What it answered.
        status: u16,
        /// In words.
        error: String,
    },
}

/// Takes what is due in one partition, carries it and notes what became of it. Answers how many tries were made.
pub async fn run_once(client: &Client, courier: &dyn Courier, route: Route) -> Result<usize, Error> {
    let call = TakeWebhooks { each: PER_RECEIVER_MAX, in_flight: BTreeMap::new(), limit: 64 };
    let TakeWebhooksReply::Taken { items, .. } = client.call(route, &call).await?;
    for webhook in &items {
        note(client, route, webhook, courier.carry(webhook).await).await?;
    }
    Ok(items.len())
}

async fn note(client: &Client, route: Route, webhook: &Webhook, carried: Carried) -> Result<NoteWebhookReply, Error> {
    let (result, status, error, retry_after) = match carried {
        Carried::Delivered { status } => (WebhookResult::Delivered, Some(status), None, None),
        Carried::Failed { status, error, retry_after } => (WebhookResult::Failed, status, Some(error), retry_after),
        Carried::Refused { status, error } => (WebhookResult::Refused, Some(status), Some(error), None),
    };
    let call = NoteWebhook {
        delivery_id: webhook.delivery_id,
        draw: rand::random_range(0..=1000),
        error: error.map(|error| error[..error.floor_char_boundary(ERROR_BYTES_MAX)].to_owned()),
        result,
        retry_after_ms: retry_after.map(|after| i64::try_from(after.as_millis()).unwrap_or(i64::MAX).min(3_600_000)),
        status: status.map(i64::from).filter(|status| (100..=999).contains(status)),
        tries: webhook.tries,
    };
    client.call(route, &call).await
}

/// Starts carrying the webhooks of the partitions this server owns.
pub fn start(
    client: Client,
    courier: Arc<dyn Courier>,
    owned: Owned,
    sweep_every: Duration,
    tasks: &mut JoinSet<()>,
    stop: CancellationToken,
) {
    let news = Listener::new(client.host().as_ref());
    let round = Round {
        client,
        courier,
        owned,
        clock: Clock::default(),
        due: Due::default(),
        held: BTreeSet::new(),
        under_way: JoinSet::new(),
        whose: HashMap::new(),
        in_flight: BTreeMap::new(),
        sweep_next: 0,
    };
    tasks.spawn(round.run(news, sweep_every, stop));
}

struct Round {
    client: Client,
    courier: Arc<dyn Courier>,
    owned: Owned,
    clock: Clock,
    /// When to look at which partition.
    due: Due,
    /// Partitions where more is due for receivers that are busy.
    held: BTreeSet<Route>,
    /// Each answers when its partition has the next try of it, if it said so.
    under_way: JoinSet<Option<i64>>,
    whose: HashMap<Id, (Route, String)>,
    /// Tries under way by receiver.
    in_flight: BTreeMap<String, i64>,
    sweep_next: usize,
}

impl Round {
    async fn run(mut self, mut news: Listener, sweep_every: Duration, stop: CancellationToken) {
        let mut sweep = tokio::time::interval(sweep_every);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        sweep.reset();
        self.look_at_all();
        loop {
            self.fill().await;
            let next = self.due.first().filter(|_| self.room() > 0);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                changed = self.owned.changed() => match changed {
                    Ok(()) => self.look_at_all(),
                    Err(_) => break,
                },
                Some(ended) = self.under_way.join_next_with_id() => match ended {
                    Ok((id, next_at)) => self.ended(id, next_at),
                    Err(error) => {
                        tracing::error!(%error, "a webhook's try did not end well; it is made again");
                        self.ended(error.id(), None);
                    }
                },
                heard = news.next() => match heard {
                    Some(heard) => heard.into_iter().for_each(|item| self.hear(item)),
                    None => break,
                },
                _ = sweep.tick() => self.sweep(),
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
        }
        // What does not end in time is aborted and made again by whoever owns the partition then.
        let rest = async { while self.under_way.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GRACE, rest).await;
    }

    fn room(&self) -> usize {
        IN_FLIGHT_MAX - self.under_way.len()
    }

    /// Begins tries while there is room for them and something is due.
    async fn fill(&mut self) {
        while self.room() > 0 {
            let Some(route) = self.due.take_due(Instant::now(), 1).pop() else { return };
            if !self.owned.borrow().contains(&route) {
                continue;
            }
            let limit = i64::try_from(self.room()).unwrap_or(1);
            let call = TakeWebhooks { each: PER_RECEIVER_MAX, in_flight: self.in_flight.clone(), limit };
            match self.client.call(route, &call).await {
                Ok(TakeWebhooksReply::Taken { items, more, held, next_at, now }) => {
                    self.clock.heard(now);
                    let next = if more { Some(Instant::now()) } else { next_at.map(|at| self.clock.instant(at)) };
                    if let Some(next) = next {
                        self.due.no_later_than(route, next);
                    }
                    if held {
                        self.held.insert(route);
                    }
                    items.into_iter().for_each(|webhook| self.begin(route, webhook));
                }
                Err(error) => {
                    tracing::warn!(%route, %error, "webhooks could not be taken");
                    self.due.no_later_than(route, Instant::now() + AFTER_FAILURE);
                    return;
                }
            }
        }
    }

    fn begin(&mut self, route: Route, webhook: Webhook) {
        let receiver = webhook.receiver.clone();
        *self.in_flight.entry(receiver.clone()).or_default() += 1;
        let (client, courier) = (self.client.clone(), Arc::clone(&self.courier));
        let task = self.under_way.spawn(carry(client, courier, route, webhook));
        self.whose.insert(task.id(), (route, receiver));
    }

    /// A receiver is less busy: what was held back for it may go.
    fn ended(&mut self, id: Id, next_at: Option<i64>) {
        let Some((route, receiver)) = self.whose.remove(&id) else { return };
        if let Some(count) = self.in_flight.get_mut(&receiver) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(&receiver);
            }
        }
        if let Some(next_at) = next_at {
            let at = self.clock.instant(next_at);
            self.due.no_later_than(route, at);
        }
        for route in std::mem::take(&mut self.held) {
            self.due.no_later_than(route, Instant::now());
        }
    }

    fn hear(&mut self, item: News) {
        match item {
            News::Said(route, Wake::Webhook) => self.due.no_later_than(route, Instant::now()),
            News::Said(..) => {}
            News::Lost(routes) => {
                for route in routes.into_iter().filter(|route| matches!(route, Route::Execution(_))) {
                    self.due.no_later_than(route, Instant::now());
                }
            }
            News::LostAny => self.look_at_all(),
        }
    }

    fn look_at_all(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        for route in owned.iter().filter(|route| matches!(route, Route::Execution(_))) {
            self.due.no_later_than(*route, Instant::now());
        }
    }

    /// Looks at the next partition, in case an announcement was lost.
    fn sweep(&mut self) {
        let owned = self.owned.borrow().clone();
        let routes: Vec<&Route> = owned.iter().filter(|route| matches!(route, Route::Execution(_))).collect();
        self.sweep_next = self.sweep_next.wrapping_add(1);
        if let Some(route) = routes.get(self.sweep_next % routes.len().max(1)) {
            self.due.no_later_than(**route, Instant::now());
        }
    }
}

/// Makes one try and notes what became of it. Answers when the next one is due.
async fn carry(client: Client, courier: Arc<dyn Courier>, route: Route, webhook: Webhook) -> Option<i64> {
    let (id, tries) = (webhook.delivery_id, webhook.tries);
    let carried = courier.carry(&webhook).await;
    for _ in 0..NOTES {
        match note(&client, route, &webhook, carried.clone()).await {
            Ok(NoteWebhookReply::PutOff { next_at, .. }) => {
                tracing::debug!(delivery_id = %id, tries, ?carried, "a webhook is tried again later");
                return Some(next_at);
            }
            Ok(NoteWebhookReply::Failed) => {
                tracing::warn!(delivery_id = %id, tries, ?carried, "a webhook was given up");
                return None;
            }
            Ok(NoteWebhookReply::Delivered | NoteWebhookReply::Stale) => return None,
            Err(error) => {
                tracing::warn!(delivery_id = %id, %error, "what became of a webhook could not be noted");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
    None
}
