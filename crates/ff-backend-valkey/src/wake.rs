//! Keeps the subscriptions to the partitions' channels alive, and passes messages on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ff_script::{HostError, Route, WakeUp, Watch};
use redis::aio::{AsyncPushSender, MultiplexedConnection, SendError};
use redis::{Pipeline, PushInfo, PushKind, Value};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;

use crate::address::Endpoint;
use crate::backoff::Backoff;
use crate::fault::Fault;
use crate::topology::Topology;

/// How many wake-ups a slow receiver may lag behind.
const CAPACITY: usize = 65_536;
/// How long a node may take to accept subscriptions.
const LIMIT: Duration = Duration::from_secs(3);

/// The host's side: the wanted routes, the state of the keeper, and the channel to the receivers.
pub(crate) struct Wakes {
    announcements: broadcast::Sender<WakeUp>,
    wanted: watch::Sender<BTreeSet<Route>>,
    standing: watch::Receiver<Standing>,
    keeper: JoinHandle<()>,
}

/// The state that the keeper has reached.
#[derive(Default)]
struct Standing {
    subscribed: BTreeSet<Route>,
    /// The connections that carry the subscriptions.
    connections: Vec<MultiplexedConnection>,
    /// Why the server refuses subscriptions.
    refusal: Option<String>,
}

impl Wakes {
    pub(crate) fn start(topology: Arc<Topology>) -> Wakes {
        let (announcements, _) = broadcast::channel(CAPACITY);
        let (wanted, wanted_here) = watch::channel(BTreeSet::new());
        let (standing_here, standing) = watch::channel(Standing::default());
        let (trouble, troubles) = mpsc::unbounded_channel();
        let keeper = Keeper {
            topology,
            wanted: wanted_here,
            standing: standing_here,
            announcements: announcements.clone(),
            trouble,
            troubles,
            sessions: BTreeMap::new(),
        };
        Wakes { announcements, wanted, standing, keeper: tokio::spawn(keeper.run()) }
    }

    pub(crate) fn watch(&self) -> Watch {
        self.announcements.subscribe()
    }

    /// Adds routes and waits until they are subscribed. Routes stay wanted if the deadline passes.
    pub(crate) async fn subscribe(&self, routes: &[Route], deadline: Duration) -> Result<(), HostError> {
        let routes: BTreeSet<Route> = routes.iter().copied().filter(|route| route.channel().is_some()).collect();
        self.wanted.send_if_modified(|wanted| {
            let before = wanted.len();
            wanted.extend(&routes);
            wanted.len() > before
        });
        let mut standing = self.standing.clone();
        let settled =
            standing.wait_for(|standing| routes.is_subset(&standing.subscribed) || standing.refusal.is_some());
        match tokio::time::timeout(deadline, settled).await {
            Ok(Ok(standing)) => match &standing.refusal {
                Some(detail) if !routes.is_subset(&standing.subscribed) => {
                    Err(HostError::Refused { detail: detail.clone() })
                }
                _ => Ok(()),
            },
            Ok(Err(_)) => Err(HostError::Closed),
            Err(_) => Err(HostError::Unavailable { detail: format!("no subscription within {deadline:?}") }),
        }
    }
}

impl Wakes {
    /// Waits until every connection has passed on what its node published before. A node replies in order.
    pub(crate) async fn hear_out(&self, deadline: Duration) -> Result<(), HostError> {
        let connections = self.standing.borrow().connections.clone();
        let asked = futures::future::join_all(
            connections
                .into_iter()
                .map(|mut connection| async move { connection.send_packed_command(&redis::cmd("PING")).await }),
        );
        match tokio::time::timeout(deadline, asked).await {
            // A broken connection is subscribed again, and missed messages are looked up then.
            Ok(_) => Ok(()),
            Err(_) => Err(HostError::Unavailable { detail: format!("no reply to PING within {deadline:?}") }),
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// A connection to one node, with its subscribed routes.
struct Session {
    number: u64,
    connection: MultiplexedConnection,
    routes: BTreeSet<Route>,
}

/// The task that owns the connections.
///
/// **Invariant:** a route is in `standing` only while a live connection to its node is subscribed to it. Anything
/// unexpected on a connection ends the whole connection: subscribing again is cheap, a missed message is not.
struct Keeper {
    topology: Arc<Topology>,
    wanted: watch::Receiver<BTreeSet<Route>>,
    standing: watch::Sender<Standing>,
    announcements: broadcast::Sender<WakeUp>,
    trouble: mpsc::UnboundedSender<u64>,
    troubles: mpsc::UnboundedReceiver<u64>,
    sessions: BTreeMap<Endpoint, Session>,
}

impl Keeper {
    async fn run(mut self) {
        let mut changes = self.topology.changes();
        let mut backoff = Backoff::new();
        loop {
            while let Ok(number) = self.troubles.try_recv() {
                self.end(|session| session.number == number);
            }
            changes.mark_unchanged();
            let complete = self.subscribe_missing().await;
            self.publish_standing(complete.as_ref().err());
            match complete {
                Ok(()) => {
                    backoff = Backoff::new();
                    tokio::select! {
                        wanted = self.wanted.changed() => if wanted.is_err() { return },
                        number = self.troubles.recv() => {
                            // The keeper holds a sender itself, so the channel never closes.
                            let number = number.unwrap_or_default();
                            self.end(|session| session.number == number);
                            self.publish_standing(None);
                            let _ = self.topology.refresh().await;
                        }
                        moved = changes.changed() => if moved.is_err() { return },
                    }
                }
                Err(fault) => {
                    tracing::debug!(?fault, "subscribing again");
                    tokio::time::sleep(backoff.next()).await;
                    let _ = self.topology.refresh().await;
                }
            }
        }
    }

    fn end(&mut self, which: impl Fn(&Session) -> bool) {
        self.sessions.retain(|_, session| !which(session));
    }

    fn subscribed(&self) -> BTreeSet<Route> {
        self.sessions.values().flat_map(|session| session.routes.iter().copied()).collect()
    }

    fn publish_standing(&self, fault: Option<&Fault>) {
        let refusal = match fault {
            Some(Fault::Refused(detail)) => Some(detail.clone()),
            _ => None,
        };
        let connections = self.sessions.values().map(|session| session.connection.clone()).collect();
        self.standing.send_replace(Standing { subscribed: self.subscribed(), connections, refusal });
    }

    /// Subscribes wanted routes that are not subscribed at their node. Returns the first fault if some are left.
    async fn subscribe_missing(&mut self) -> Result<(), Fault> {
        let map = self.topology.map();
        let owner = |route: &Route| map.node(route.to_string().as_bytes()).map(|node| node.endpoint.clone());
        // A partition that moved is subscribed at its new node only.
        self.sessions
            .retain(|endpoint, session| session.routes.iter().all(|route| owner(route).as_ref() == Some(endpoint)));
        let heard = self.subscribed();
        let wanted = self.wanted.borrow_and_update().clone();
        let mut missing: BTreeMap<Endpoint, Vec<Route>> = BTreeMap::new();
        let mut outcome = Ok(());
        for route in wanted.difference(&heard) {
            match owner(route) {
                Some(endpoint) => missing.entry(endpoint).or_default().push(*route),
                None => outcome = Err(Fault::Elsewhere(format!("no node serves {route}"))),
            }
        }
        for (endpoint, routes) in missing {
            if let Err(fault) = self.subscribe_at(&endpoint, &routes).await {
                outcome = Err(fault);
            }
        }
        outcome
    }

    async fn subscribe_at(&mut self, endpoint: &Endpoint, routes: &[Route]) -> Result<(), Fault> {
        let mut session = match self.sessions.remove(endpoint) {
            Some(session) => session,
            None => self.open(endpoint).await?,
        };
        let mut pipeline = Pipeline::with_capacity(routes.len());
        let channels: Vec<String> = routes.iter().filter_map(|route| route.channel()).collect();
        for channel in &channels {
            pipeline.cmd("SSUBSCRIBE").arg(channel);
        }
        // Without a reply in time, or with one that matches no request, the connection ends here.
        let sent = session.connection.send_packed_commands(&pipeline, 0, channels.len());
        let replies = match tokio::time::timeout(LIMIT, sent).await {
            Ok(replies) => replies.map_err(|error| Fault::of_client(&error))?,
            Err(_) => {
                return Err(Fault::Lost(format!("{endpoint} accepted no subscriptions within {LIMIT:?}")));
            }
        };
        let mut fresh = Vec::new();
        let mut outcome = Ok(());
        for ((route, channel), reply) in routes.iter().zip(&channels).zip(replies) {
            match reply {
                Value::Push { kind: PushKind::SSubscribe, data } if names(&data, channel) => fresh.push(*route),
                Value::ServerError(error) => {
                    outcome = Err(Fault::of_reply(error.code(), error.details().unwrap_or_default()));
                }
                other => {
                    return Err(Fault::Lost(format!("{endpoint} replied to SSUBSCRIBE {channel} with {other:?}")));
                }
            }
        }
        session.routes.extend(&fresh);
        self.sessions.insert(endpoint.clone(), session);
        if !fresh.is_empty() {
            // There may be no receiver yet.
            let _ = self.announcements.send(WakeUp::Resubscribed { routes: fresh });
        }
        outcome
    }

    async fn open(&self, endpoint: &Endpoint) -> Result<Session, Fault> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let pushes = Pushes { number, trouble: self.trouble.clone(), announcements: self.announcements.clone() };
        let connection = self.topology.connector().listen(endpoint, pushes).await?;
        Ok(Session { number, connection, routes: BTreeSet::new() })
    }
}

fn names(data: &[Value], channel: &str) -> bool {
    matches!(data.first(), Some(Value::BulkString(name)) if name == channel.as_bytes())
}

/// Where the pushes of one connection go: messages to the receivers, ended subscriptions to the keeper.
struct Pushes {
    number: u64,
    trouble: mpsc::UnboundedSender<u64>,
    announcements: broadcast::Sender<WakeUp>,
}

impl AsyncPushSender for Pushes {
    fn send(&self, info: PushInfo) -> Result<(), SendError> {
        match info.kind {
            PushKind::SMessage => {
                if let [Value::BulkString(channel), Value::BulkString(payload)] = info.data.as_slice()
                    && let Some(route) = std::str::from_utf8(channel).ok().and_then(Route::from_channel)
                {
                    let _ = self.announcements.send(WakeUp::Message { route, payload: payload.clone() });
                }
            }
            // The node lost the slot, or the connection is gone.
            PushKind::SUnsubscribe | PushKind::Disconnection => {
                let _ = self.trouble.send(self.number);
            }
            _ => {}
        }
        Ok(())
    }
}
