//! Which node serves which key: the only node of a single server, or the owner of the slot in a cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use redis::Value;
use tokio::sync::{Mutex, watch};

use crate::address::Endpoint;
use crate::connect::Connector;
use crate::fault::Fault;
use crate::node::Node;
use crate::slot::{SLOTS, slot};

/// How long one node may take to return the slots.
const ASK_LIMIT: Duration = Duration::from_millis(1_500);
/// Callers that notice the same change share one query of the cluster.
const FRESH: Duration = Duration::from_millis(50);

/// The nodes of the store and their slots.
pub(crate) struct Topology {
    connector: Connector,
    map: RwLock<Arc<Map>>,
    refreshing: Mutex<Option<Instant>>,
    changes: watch::Sender<()>,
}

/// One view of the store.
#[derive(Default)]
pub(crate) struct Map {
    /// Primaries with slots; the only server if there is no cluster.
    pub(crate) primaries: BTreeMap<Endpoint, Arc<Node>>,
    /// The owner of each slot; empty if there is no cluster.
    owners: Vec<Option<Arc<Node>>>,
}

impl Map {
    fn same_owners(&self, other: &Map) -> bool {
        let owner = |node: &Option<Arc<Node>>| node.as_ref().map(|node| node.endpoint.clone());
        self.owners.len() == other.owners.len()
            && self.owners.iter().zip(&other.owners).all(|(one, two)| owner(one) == owner(two))
    }

    /// The node that serves a key.
    pub(crate) fn node(&self, key: &[u8]) -> Option<&Arc<Node>> {
        if self.owners.is_empty() {
            return self.primaries.values().next();
        }
        self.owners.get(usize::from(slot(key)))?.as_ref()
    }
}

impl Topology {
    pub(crate) fn new(connector: Connector) -> Topology {
        let mut map = Map::default();
        if !connector.address.cluster {
            for endpoint in &connector.address.seeds {
                map.primaries.insert(endpoint.clone(), Node::new(endpoint.clone(), connector.clone()));
            }
        }
        Topology {
            connector,
            map: RwLock::new(Arc::new(map)),
            refreshing: Mutex::new(None),
            changes: watch::Sender::new(()),
        }
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.connector.address.cluster
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(crate) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notifies when slots have changed their owner.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The node that serves a key, as far as it is known.
    pub(crate) fn node(&self, key: &[u8]) -> Option<Arc<Node>> {
        self.map().node(key).cloned()
    }

    /// Asks the cluster for the owners of its slots. Does nothing for a single server.
    ///
    /// Nodes are asked in random order, so that a node with an outdated view does not block for long.
    pub(crate) async fn refresh(&self) -> Result<(), Fault> {
        if !self.is_cluster() {
            return Ok(());
        }
        let asked = Instant::now();
        let mut last = self.refreshing.lock().await;
        if last.is_some_and(|at| at > asked || at.elapsed() < FRESH) {
            return Ok(());
        }
        let known = self.map();
        let mut candidates: Vec<Endpoint> = known.primaries.keys().cloned().collect();
        candidates
            .extend(self.connector.address.seeds.iter().filter(|seed| !known.primaries.contains_key(seed)).cloned());
        candidates.shuffle(&mut rand::rng());
        let mut failure = Fault::Lost("the cluster has no known node".to_owned());
        for endpoint in candidates {
            let node = match known.primaries.get(&endpoint) {
                Some(node) => Arc::clone(node),
                None => Node::new(endpoint.clone(), self.connector.clone()),
            };
            let shards = node.send(redis::cmd("CLUSTER").arg("SLOTS"), ASK_LIMIT).await;
            match shards.and_then(|value| owners(value, &endpoint)) {
                Ok(ranges) if ranges.is_empty() => {
                    failure = Fault::Elsewhere(format!("{endpoint} knows no slots"));
                }
                Ok(ranges) => {
                    self.install(ranges, &known);
                    *last = Some(Instant::now());
                    return Ok(());
                }
                Err(Fault::Raised(detail)) => {
                    return Err(Fault::Refused(format!("{endpoint} is not a cluster node ({detail}); use valkey://")));
                }
                Err(fault @ Fault::Refused(_)) => return Err(fault),
                Err(fault) => failure = fault,
            }
        }
        Err(failure)
    }

    /// Replaces the view. Nodes that stay keep their connections.
    fn install(&self, ranges: Vec<(u16, u16, Endpoint)>, known: &Map) {
        let mut map = Map { primaries: BTreeMap::new(), owners: vec![None; SLOTS] };
        for (first, last, endpoint) in ranges {
            let node = map.primaries.entry(endpoint.clone()).or_insert_with(|| match known.primaries.get(&endpoint) {
                Some(node) => Arc::clone(node),
                None => Node::new(endpoint, self.connector.clone()),
            });
            for owner in &mut map.owners[usize::from(first)..=usize::from(last)] {
                *owner = Some(Arc::clone(node));
            }
        }
        let moved = !known.same_owners(&map);
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        if moved {
            self.changes.send_replace(());
        }
    }
}

/// Parses slot ranges and owners from `CLUSTER SLOTS`. A node that does not know its own name leaves it out.
fn owners(value: Value, asked: &Endpoint) -> Result<Vec<(u16, u16, Endpoint)>, Fault> {
    let corrupt = || Fault::Corrupt(format!("{asked} returned an unexpected reply to CLUSTER SLOTS"));
    let Value::Array(ranges) = value else {
        return Err(corrupt());
    };
    let mut owners = Vec::new();
    for range in ranges {
        let Value::Array(parts) = range else {
            return Err(corrupt());
        };
        let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice() else {
            return Err(corrupt());
        };
        let [host, Value::Int(port), ..] = primary.as_slice() else {
            return Err(corrupt());
        };
        let host = match host {
            Value::BulkString(bytes) if !bytes.is_empty() && bytes != b"?" => {
                String::from_utf8(bytes.clone()).map_err(|_| corrupt())?
            }
            _ => asked.host.clone(),
        };
        let limit = SLOTS as u16 - 1;
        let slots = u16::try_from(*first).ok().zip(u16::try_from(*last).ok());
        let (first, last) = slots.filter(|(first, last)| first <= last && *last <= limit).ok_or_else(corrupt)?;
        let port = u16::try_from(*port).map_err(|_| corrupt())?;
        owners.push((first, last, Endpoint { host, port }));
    }
    Ok(owners)
}
