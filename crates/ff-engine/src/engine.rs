//! Opens a store and keeps it moving.

use std::sync::Arc;
use std::time::Duration;

use ff_core::PartitionConfig;
use ff_script::generated::{FixPartitions, FixPartitionsReply, HeartbeatServer, PartitionDefaults};
use ff_script::{Client, Error, Host, Route};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::background::share::Owned;
use crate::background::webhooks::{self, Courier};
use crate::background::{Clock, events, holders, outbox, routes, schedules, share, timers, unblock};
use crate::feed::{Cursor, Feed, FeedFilter, Readers};
use crate::operations::Operations;
use crate::streams::Streams;
use crate::waiting::Waiting;

/// How an engine is started.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The partition counts to set up, or to insist on; a store that has others is refused. Unless said, a new store gets those that
    /// fit it.
    pub partitions: Option<PartitionConfig>,
    /// How often one partition is looked at in case an announcement was lost.
    pub sweep_every: Duration,
    /// Run timers, reconcilers and the outbox; without them this process only makes calls.
    pub background: bool,
}

impl EngineOptions {
    /// An engine that only makes calls: its process runs no timers, no reconcilers and no outbox.
    #[must_use]
    pub fn tool() -> Self {
        Self { background: false, ..Self::default() }
    }
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { partitions: None, sweep_every: Duration::from_secs(20), background: true }
    }
}

/// A running engine over one store.
pub struct Engine {
    operations: Operations,
    waiting: Arc<Waiting>,
    streams: Arc<Streams>,
    readers: Readers,
    server_id: Uuid,
    /// The partitions this server looks after; none when it only makes calls.
    owners: Option<Owned>,
    sweep_every: Duration,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Engine {
    /// Fixes or checks the partition counts, subscribes to every partition, and starts the background work.
    pub async fn start(host: Arc<dyn Host>, options: EngineOptions) -> Result<Self, Error> {
        let partitions = fix_partitions(&host, &options).await?;
        let client = Client::new(Arc::clone(&host), partitions);
        let operations = Operations::new(client.clone());
        let server_id = Uuid::now_v7();
        let readers = Readers::default();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();

        // Components listen before the subscription, so that its `Resubscribed` reaches each of them.
        let waiting = Waiting::start(operations.clone(), &mut tasks, stop.clone());
        let streams = Streams::start(operations.clone(), &mut tasks, stop.clone());
        let mut looks_after = None;
        let mut first_beat = None;
        if options.background {
            let clock = Clock::default();
            // No caller waits for background work: it leaves three quarters of each list to calls that have one.
            let background = client.in_background();
            let (owned, owners) = share::start(client.clone(), server_id, readers.clone(), &mut tasks, stop.clone());
            timers::start(background.clone(), clock, owners.clone(), options.sweep_every, &mut tasks, stop.clone());
            routes::start(operations.clone(), owners.clone(), options.sweep_every, &mut tasks, stop.clone());
            outbox::start(background.clone(), owners.clone(), options.sweep_every, &mut tasks, stop.clone());
            holders::start(background.clone(), owners.clone(), &mut tasks, stop.clone());
            unblock::start(operations.clone(), owners.clone(), &mut tasks, stop.clone());
            schedules::start(operations.in_background(), owners.clone(), options.sweep_every, &mut tasks, stop.clone());
            events::start(background, owners.clone(), &mut tasks, stop.clone());
            looks_after = Some(owners);
            first_beat = Some(owned);
        }
        let mut watched: Vec<Route> = client.execution_routes().collect();
        watched.extend(client.quota_routes());
        watched.extend(client.budget_routes());
        watched.extend(client.schedule_routes());
        watched.push(Route::Fleet);
        host.subscribe(&watched).await?;
        // Behind the subscription: what is owned is looked at once, and from then on announcements tell.
        if let Some(owned) = first_beat {
            owned.first_beat().await?;
        }
        let (owners, sweep_every) = (looks_after, options.sweep_every);
        Ok(Self { operations, waiting, streams, readers, server_id, owners, sweep_every, stop, tasks })
    }

    /// Has webhooks carried by this courier from now on, once per engine: those of the partitions this server owns. Without one
    /// they stay owed.
    pub fn carry_webhooks(&mut self, courier: Arc<dyn Courier>) {
        let first = self.operations.ask_courier(Arc::clone(&courier));
        if let Some(owned) = self.owners.clone().filter(|_| first) {
            let client = self.operations.client().clone();
            webhooks::start(client, courier, owned, self.sweep_every, &mut self.tasks, self.stop.clone());
        }
    }

    /// Typed operations on this store.
    #[must_use]
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Waits for results.
    #[must_use]
    pub fn waiting(&self) -> &Arc<Waiting> {
        &self.waiting
    }

    /// Reads, writes and follows streams.
    #[must_use]
    pub fn streams(&self) -> &Arc<Streams> {
        &self.streams
    }

    /// Reads events on from a cursor.
    #[must_use]
    pub fn feed(&self, filter: FeedFilter, cursor: Cursor) -> Feed {
        Feed::new(self.operations.client().clone(), self.readers.clone(), filter, cursor)
    }

    /// Has this process announce events while a server wants them; for a process that runs no background work, which would hear so.
    pub(crate) async fn follow_listeners(&self) -> Result<(), Error> {
        if self.owners.is_none() {
            let servers = self.operations.servers().await?;
            self.operations.client().host().set_listening(servers.iter().any(|server| server.listening));
        }
        Ok(())
    }

    /// Cancelled once this engine stops.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Stops the background work and gives up this server's share; the store stays as it is.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        if self.owners.is_some() {
            let leave = HeartbeatServer { server_id: self.server_id, listening: false, leave: Some(true) };
            if let Err(error) = self.operations.client().call(Route::Fleet, &leave).await {
                tracing::debug!(%error, "the server's record is left to run out");
            }
        }
    }
}

async fn fix_partitions(host: &Arc<dyn Host>, options: &EngineOptions) -> Result<PartitionConfig, Error> {
    let asked = options.partitions;
    let default = match host.facts().kind {
        "valkey-cluster" => PartitionConfig::cluster(),
        _ => PartitionConfig::standalone(),
    };
    let call = FixPartitions {
        executions: asked.map(|p| i64::from(p.executions)),
        budgets: asked.map(|p| i64::from(p.budgets)),
        quotas: asked.map(|p| i64::from(p.quotas)),
        schedules: asked.map(|p| i64::from(p.schedules)),
        defaults: PartitionDefaults {
            executions: i64::from(default.executions),
            budgets: i64::from(default.budgets),
            quotas: i64::from(default.quotas),
            schedules: i64::from(default.schedules),
        },
        importing: None,
    };
    let client = Client::new(Arc::clone(host), default);
    let FixPartitionsReply::Partitions { executions, budgets, quotas, schedules } =
        client.call(Route::Config, &call).await?;
    let count = |n: i64| {
        u16::try_from(n).map_err(|_| Error::Decode {
            function: "ff_fix_partitions",
            detail: format!("{n} is not a partition count"),
        })
    };
    Ok(PartitionConfig {
        executions: count(executions)?,
        budgets: count(budgets)?,
        quotas: count(quotas)?,
        schedules: count(schedules)?,
    })
}
