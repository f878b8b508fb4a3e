//! Reads the store without the library: versions, configuration, keys, counters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ff_script::dump::{Dump, DumpValue, StreamEntry};
use ff_script::{Content, HostError, ScanCursor, ScanPage};
use futures::stream::{StreamExt, TryStreamExt};
use redis::{Cmd, FromRedisValue, Value};

use crate::address::Endpoint;
use crate::durability::{Aof, Capability};
use crate::fault::Fault;
use crate::node::Node;
use crate::patience::patiently;
use crate::topology::Topology;
use crate::version::Version;

const LIMIT: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 32;
/// How many elements of a key one command reads, because the content of a key has no bound.
const PIECES: usize = 512;

async fn ask<T: FromRedisValue>(node: &Node, command: &Cmd) -> Result<T, Fault> {
    let value = node.send(command, LIMIT).await?;
    T::from_redis_value(value).map_err(|error| Fault::Corrupt(error.to_string()))
}

async fn info(node: &Node, section: &str) -> Result<String, Fault> {
    ask(node, redis::cmd("INFO").arg(section)).await
}

fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The abilities of the weakest primary. Fails if a primary is too old, or if the URL names the wrong kind of store.
pub(crate) async fn capability(topology: &Topology) -> Result<Capability, Fault> {
    let mut weakest = Capability { aof: Some(Aof::Always), waitaof: true, replicas: u64::MAX };
    for node in topology.map().primaries.values() {
        let server = info(node, "server").await?;
        let version = Version::of_info(&server)
            .ok_or_else(|| Fault::Refused(format!("{} does not report its version", node.endpoint)))?;
        if let Some(refusal) = version.refusal() {
            return Err(Fault::Refused(format!("{}: {refusal}", node.endpoint)));
        }
        if let Some(warning) = version.warning() {
            tracing::warn!("{}: {warning}", node.endpoint);
        }
        let mode = info_field(&server, "server_mode").or_else(|| info_field(&server, "redis_mode"));
        if mode == Some("cluster") && !topology.is_cluster() {
            let detail = format!("{0} is a node of a cluster; use valkey-cluster://{0}", node.endpoint);
            return Err(Fault::Refused(detail));
        }
        let replication = info(node, "replication").await?;
        let replicas = info_field(&replication, "connected_slaves").and_then(|count| count.parse().ok()).unwrap_or(0);
        weakest = Capability {
            aof: match (weakest.aof, aof(node).await?) {
                (Some(one), Some(other)) => Some(one.min(other)),
                _ => None,
            },
            waitaof: weakest.waitaof && version.has_waitaof(),
            replicas: weakest.replicas.min(replicas),
        };
    }
    Ok(weakest)
}

/// What a node writes to disk; `None` if it does not tell.
async fn aof(node: &Node) -> Result<Option<Aof>, Fault> {
    let mut settings = BTreeMap::new();
    for name in ["appendonly", "appendfsync"] {
        let answer: Result<BTreeMap<String, String>, Fault> =
            ask(node, redis::cmd("CONFIG").arg("GET").arg(name)).await;
        match answer {
            Ok(setting) => settings.extend(setting),
            // No permission, or a service that disabled the command.
            Err(Fault::Refused(_) | Fault::Raised(_)) => return Ok(None),
            Err(fault) => return Err(fault),
        }
    }
    let setting = |name: &str| settings.get(name).map(String::as_str);
    Ok(match (setting("appendonly"), setting("appendfsync")) {
        (Some("no"), _) => Some(Aof::Off),
        (Some("yes"), Some("always")) => Some(Aof::Always),
        (Some("yes"), Some("everysec")) => Some(Aof::EverySecond),
        (Some("yes"), Some("no")) => Some(Aof::KernelFlush),
        _ => None,
    })
}

/// The number of commands processed by all primaries, including inner ones.
pub(crate) async fn commands(topology: &Topology) -> Result<u64, Fault> {
    topology.refresh().await?;
    let mut sum = 0;
    for node in topology.map().primaries.values() {
        let stats = info(node, "stats").await?;
        let count = info_field(&stats, "total_commands_processed").and_then(|count| count.parse::<u64>().ok());
        sum +=
            count.ok_or_else(|| Fault::Corrupt(format!("{} does not report its number of commands", node.endpoint)))?;
    }
    Ok(sum)
}

/// One page of keys. Primaries are read in the order of their addresses.
pub(crate) async fn scan(topology: &Topology, cursor: ScanCursor, limit: usize) -> Result<ScanPage, Fault> {
    let (node, position) = match cursor {
        ScanCursor::End => {
            return Ok(ScanPage { keys: Vec::new(), next: ScanCursor::End });
        }
        ScanCursor::Start => {
            topology.refresh().await?;
            (topology.map().primaries.values().next().cloned(), 0)
        }
        ScanCursor::After(bytes) => {
            let (endpoint, position) = read_cursor(&bytes)
                .ok_or_else(|| Fault::Corrupt(format!("not a scan cursor: {}", String::from_utf8_lossy(&bytes))))?;
            // A primary that is gone has no more keys to show, so the next one follows.
            let map = topology.map();
            match map.primaries.get(&endpoint) {
                Some(node) => (Some(Arc::clone(node)), position),
                None => (map.primaries.range(endpoint..).next().map(|(_, node)| Arc::clone(node)), 0),
            }
        }
    };
    let Some(node) = node else {
        return Ok(ScanPage { keys: Vec::new(), next: ScanCursor::End });
    };
    let mut command = redis::cmd("SCAN");
    command.arg(position).arg("MATCH").arg("ff:*").arg("COUNT").arg(limit.max(1));
    let (next, keys): (u64, Vec<Vec<u8>>) = ask(&node, &command).await?;
    let next = match next {
        0 => {
            let map = topology.map();
            let later = map.primaries.keys().find(|endpoint| **endpoint > node.endpoint);
            later.map_or(ScanCursor::End, |endpoint| write_cursor(endpoint, 0))
        }
        position => write_cursor(&node.endpoint, position),
    };
    Ok(ScanPage { keys, next })
}

fn write_cursor(endpoint: &Endpoint, position: u64) -> ScanCursor {
    ScanCursor::After(format!("{} {} {position}", endpoint.host, endpoint.port).into_bytes())
}

fn read_cursor(bytes: &[u8]) -> Option<(Endpoint, u64)> {
    let mut parts = std::str::from_utf8(bytes).ok()?.split(' ');
    let (host, port, position) = (parts.next()?, parts.next()?, parts.next()?);
    Some((Endpoint { host: host.to_owned(), port: port.parse().ok()? }, position.parse().ok()?))
}

/// The content of these keys. Each command has the full time limit.
pub(crate) async fn contents(
    topology: &Topology,
    keys: &[Vec<u8>],
    patience: Duration,
) -> Result<Vec<Option<Content>>, HostError> {
    let reading: Vec<_> = keys.iter().map(|key| Key { topology, key, patience }.content()).collect();
    futures::stream::iter(reading).buffered(AT_ONCE).try_collect().await
}

fn stream_id(text: &str) -> Result<(u64, u64), HostError> {
    let id = text.split_once('-').and_then(|(ms, seq)| Some((ms.parse().ok()?, seq.parse().ok()?)));
    id.ok_or_else(|| Fault::Corrupt(format!("{text} is not a stream id")).into_error("export"))
}

/// Writes the content of keys. The commands of one key are sent in order; several keys are written concurrently.
pub(crate) async fn load(topology: &Topology, keys: &[(Vec<u8>, Content)]) -> Result<(), Fault> {
    let writing: Vec<_> = keys.iter().map(|(key, content)| load_key(topology, key, content)).collect();
    futures::stream::iter(writing).buffer_unordered(AT_ONCE).try_collect().await
}

async fn load_key(topology: &Topology, key: &[u8], content: &Content) -> Result<(), Fault> {
    let node = topology.node(key).ok_or_else(|| Fault::Elsewhere("a key without a node".to_owned()))?;
    for words in content.commands(key) {
        let mut command = Cmd::new();
        for word in &words {
            command.arg(word.as_slice());
        }
        node.send(&command, LIMIT).await?;
    }
    Ok(())
}

pub(crate) async fn remove(topology: &Topology, keys: &[Vec<u8>]) -> Result<(), Fault> {
    let removing = keys.iter().map(|key| async move {
        let node = topology.node(key).ok_or_else(|| Fault::Elsewhere("a key without a node".to_owned()))?;
        node.send(redis::cmd("UNLINK").arg(key), LIMIT).await.map(drop)
    });
    futures::stream::iter(removing.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect().await
}

/// Every `ff:` key of the store with its content.
pub(crate) async fn dump(topology: &Topology, patience: Duration) -> Result<Dump, HostError> {
    let mut dump = Dump::new();
    let mut cursor = ScanCursor::Start;
    while cursor != ScanCursor::End {
        let page = patiently(patience, "scan", || scan(topology, cursor.clone(), 1_000)).await?;
        for key in page.keys {
            if let Some(value) = (Key { topology, key: &key, patience }).read().await? {
                let name = String::from_utf8(key)
                    .map_err(|error| Fault::Corrupt(format!("a key is not text: {error}")).into_error("dump"))?;
                dump.insert(name, value);
            }
        }
        cursor = page.next;
    }
    Ok(dump)
}

/// The key being read.
struct Key<'a> {
    topology: &'a Topology,
    key: &'a [u8],
    patience: Duration,
}

impl Key<'_> {
    /// Sends one command to the node of the key.
    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, HostError> {
        patiently(self.patience, "read", || async {
            let node = self.topology.node(self.key);
            let node = node.ok_or_else(|| Fault::Elsewhere("a key without a node".to_owned()))?;
            ask(&node, command).await
        })
        .await
    }

    async fn content(self) -> Result<Option<Content>, HostError> {
        Ok(match self.read().await? {
            None => None,
            Some(DumpValue::Hash(fields)) => Some(Content::Hash(fields.into_iter().collect())),
            Some(DumpValue::Zset(members)) => Some(Content::Zset(members.into_iter().collect())),
            Some(DumpValue::String(text)) => Some(Content::Text(text)),
            Some(DumpValue::Stream(entries)) => {
                let about: BTreeMap<String, Value> = self.ask(redis::cmd("XINFO").arg("STREAM").arg(self.key)).await?;
                let last = about.get("last-generated-id").cloned().unwrap_or(Value::Nil);
                let last = String::from_redis_value(last)
                    .map_err(|error| Fault::Corrupt(error.to_string()).into_error("export"))?;
                let entries: Result<Vec<_>, HostError> =
                    entries.into_iter().map(|(at, pairs)| Ok((stream_id(&at)?, pairs))).collect();
                Some(Content::Stream { entries: entries?, last: stream_id(&last)? })
            }
        })
    }

    async fn read(&self) -> Result<Option<DumpValue>, HostError> {
        let kind: String = self.ask(redis::cmd("TYPE").arg(self.key)).await?;
        let value = match kind.as_str() {
            "none" => return Ok(None),
            "hash" => DumpValue::Hash(self.scan("HSCAN").await?),
            "string" => DumpValue::String(self.ask(redis::cmd("GET").arg(self.key)).await?),
            "zset" => DumpValue::Zset(self.scan("ZSCAN").await?),
            "stream" => DumpValue::Stream(self.entries().await?),
            other => {
                let key = String::from_utf8_lossy(self.key);
                let detail = format!("{key} holds a {other}, which the library never writes");
                return Err(Fault::Corrupt(detail).into_error("read"));
            }
        };
        Ok(Some(value))
    }

    /// Fields and values, or members and scores. A scan may return one twice.
    async fn scan<T: FromRedisValue>(&self, command: &str) -> Result<BTreeMap<Vec<u8>, T>, HostError> {
        let (mut all, mut cursor) = (BTreeMap::new(), 0_u64);
        loop {
            let mut page = redis::cmd(command);
            page.arg(self.key).arg(cursor).arg("COUNT").arg(PIECES);
            let (next, pairs): (u64, Vec<(Vec<u8>, T)>) = self.ask(&page).await?;
            all.extend(pairs);
            if next == 0 {
                return Ok(all);
            }
            cursor = next;
        }
    }

    async fn entries(&self) -> Result<Vec<StreamEntry>, HostError> {
        let (mut all, mut from): (Vec<StreamEntry>, String) = (Vec::new(), "-".to_owned());
        loop {
            let mut page = redis::cmd("XRANGE");
            page.arg(self.key).arg(&from).arg("+").arg("COUNT").arg(PIECES);
            let entries: Vec<StreamEntry> = self.ask(&page).await?;
            let count = entries.len();
            all.extend(entries);
            match all.last() {
                Some((last, _)) if count == PIECES => from = format!("({last}"),
                _ => return Ok(all),
            }
        }
    }
}
