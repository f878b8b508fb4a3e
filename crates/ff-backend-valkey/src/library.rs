//! Keeps the library loaded on every primary, and never replaces a newer one.

use std::time::Duration;

use ff_script::{Library, Route};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};

use crate::fault::Fault;
use crate::node::{Node, reply};
use crate::topology::{Map, Topology};

/// The function of every library that returns its number and hash.
const PROBE: &str = "ff_library";
/// How often a load is retried because another process is loading too.
const ROUNDS: usize = 20;
const LIMIT: Duration = Duration::from_secs(5);

/// The library that a node has.
#[derive(Debug, PartialEq, Eq)]
enum Loaded {
    Nothing,
    Library { number: u32, hash: String },
}

/// The next step for a node.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Keep,
    Load,
    Refuse(String),
}

/// The result for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ensured {
    /// The node already had this library or a newer one, or serves no partition.
    Kept,
    /// The node has this library now.
    Loaded,
}

fn step(ours: &Library, loaded: &Loaded) -> Step {
    match loaded {
        Loaded::Nothing => Step::Load,
        Loaded::Library { number, .. } if *number < ours.number => Step::Load,
        Loaded::Library { number, hash } if *number == ours.number && *hash != ours.hash => Step::Refuse(format!(
            "the server has library number {number} with hash {hash}, this program has the same number with hash {}; \
             one of them was built from changed sources without raising the number",
            ours.hash
        )),
        Loaded::Library { .. } => Step::Keep,
    }
}

/// Refuses a store of another format, before this library could replace one that can read it.
pub(crate) async fn refuse_format(topology: &Topology) -> Result<(), Fault> {
    let key = Route::Config.to_string();
    let Some(node) = topology.node(key.as_bytes()) else {
        return Err(Fault::Elsewhere(format!("no node serves {key}")));
    };
    let value = node.send(redis::cmd("HMGET").arg(&key).arg("executions").arg("format"), LIMIT).await?;
    let Value::Array(values) = value else {
        return Err(Fault::Corrupt(format!("HMGET returned {value:?}")));
    };
    let named = [&b"executions"[..], b"format"].into_iter().zip(&values);
    let fields = named.filter_map(|(name, value)| match value {
        Value::BulkString(bytes) => Some((name, bytes.as_slice())),
        _ => None,
    });
    match ff_script::library::format_refusal(fields) {
        Some(detail) => Err(Fault::Refused(detail)),
        None => Ok(()),
    }
}

/// Loads the library on every primary that has none or an older one.
pub(crate) async fn ensure_everywhere(topology: &Topology, library: &Library) -> Result<(), Fault> {
    for node in topology.map().primaries.values() {
        ensure(topology, node, library).await?;
    }
    Ok(())
}

/// Loads the library on one node unless it has this one or a newer one.
///
/// **Invariant:** of two processes that load at the same time, the one with the higher number wins. The check and the
/// load are one transaction. It is guarded by a key that only loaders touch and that is deleted with the transaction.
pub(crate) async fn ensure(topology: &Topology, node: &Node, library: &Library) -> Result<Ensured, Fault> {
    // All loaders use the node's first partition. A node that serves none is never called.
    let Some(route) = first_route(&topology.map(), node) else {
        return Ok(Ensured::Kept);
    };
    let mut connection = topology.connector().open(&node.endpoint).await?;
    let work = async {
        for _ in 0..ROUNDS {
            if let Some(ensured) = ensure_once(&mut connection, &route, library).await? {
                return Ok(ensured);
            }
        }
        Err(Fault::Elsewhere(format!("{}: other processes kept loading the library", node.endpoint)))
    };
    match tokio::time::timeout(LIMIT, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Fault::Lost(format!("{} did not load the library within {LIMIT:?}", node.endpoint))),
    }
}

fn first_route(map: &Map, node: &Node) -> Option<String> {
    (0..u16::MAX)
        .map(|partition| Route::Execution(partition).to_string())
        .find(|route| map.node(route.as_bytes()).is_some_and(|owner| owner.endpoint == node.endpoint))
}

/// One try; `None` if another loader was faster.
async fn ensure_once(
    connection: &mut MultiplexedConnection,
    route: &str,
    library: &Library,
) -> Result<Option<Ensured>, Fault> {
    let latch = format!("{route}:library-load");
    send(connection, redis::cmd("WATCH").arg(&latch)).await?;
    let loaded = probe(connection, route).await?;
    match step(library, &loaded) {
        Step::Keep => return Ok(Some(Ensured::Kept)),
        Step::Refuse(detail) => return Err(Fault::Refused(detail)),
        Step::Load => {}
    }
    tracing::info!(name = library.name, number = library.number, ?loaded, "loading the library");
    let mut load = redis::pipe();
    load.cmd("MULTI")
        .cmd("SET")
        .arg(&latch)
        .arg(library.number)
        .cmd("FUNCTION")
        .arg("LOAD")
        .arg("REPLACE")
        .arg(&library.text)
        .cmd("DEL")
        .arg(&latch)
        .cmd("EXEC");
    let replies = connection.send_packed_commands(&load, 0, 5).await.map_err(|error| Fault::of_client(&error))?;
    let mut executed = Value::Nil;
    for value in replies {
        executed = reply(Ok(value)).map_err(|fault| refused(library, fault))?;
    }
    match executed {
        Value::Nil => Ok(None),
        Value::Array(results) => {
            for result in results {
                reply(Ok(result)).map_err(|fault| refused(library, fault))?;
            }
            Ok(Some(Ensured::Loaded))
        }
        other => Err(Fault::Corrupt(format!("EXEC returned {other:?}"))),
    }
}

/// A text that the server refuses to load is a defect of this program, not a raise.
fn refused(library: &Library, fault: Fault) -> Fault {
    match fault {
        Fault::Raised(detail) => Fault::Refused(format!("cannot load library {}: {detail}", library.name)),
        other => other,
    }
}

async fn probe(connection: &mut MultiplexedConnection, route: &str) -> Result<Loaded, Fault> {
    const EMPTY_MAP: &[u8] = &[0x80];
    let answer = send(connection, redis::cmd("FCALL_RO").arg(PROBE).arg(1).arg(route).arg(EMPTY_MAP)).await;
    let bytes = match answer {
        Ok(Value::BulkString(bytes)) => bytes,
        Ok(other) => return Err(Fault::Corrupt(format!("{PROBE} returned {other:?}"))),
        Err(Fault::NoFunction) => return Ok(Loaded::Nothing),
        Err(fault) => return Err(fault),
    };
    identity(&bytes).ok_or_else(|| Fault::Corrupt(format!("{PROBE} returned {bytes:02x?}")))
}

fn identity(bytes: &[u8]) -> Option<Loaded> {
    let reply = rmpv::decode::read_value(&mut &*bytes).ok()?;
    let ok = field(&reply, "ok")?;
    let number = field(ok, "number")?.as_u64()?.try_into().ok()?;
    let hash = match field(ok, "hash")? {
        rmpv::Value::String(text) => String::from_utf8(text.as_bytes().to_vec()).ok()?,
        _ => return None,
    };
    Some(Loaded::Library { number, hash })
}

fn field<'a>(value: &'a rmpv::Value, name: &str) -> Option<&'a rmpv::Value> {
    value.as_map()?.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
}

async fn send(connection: &mut MultiplexedConnection, command: &Cmd) -> Result<Value, Fault> {
    reply(connection.send_packed_command(command).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lower_number_is_replaced() {
        let ours = Library { name: "l", number: 5, hash: "aa".into(), text: String::new() };
        let has = |number, hash: &str| Loaded::Library { number, hash: hash.to_owned() };
        assert_eq!(step(&ours, &Loaded::Nothing), Step::Load);
        assert_eq!(step(&ours, &has(4, "zz")), Step::Load);
        assert_eq!(step(&ours, &has(5, "aa")), Step::Keep);
        assert_eq!(step(&ours, &has(6, "zz")), Step::Keep);
        match step(&ours, &has(5, "bb")) {
            Step::Refuse(detail) => {
                assert!(detail.contains("aa") && detail.contains("bb"), "{detail}")
            }
            other => panic!("{other:?}"),
        }
    }
}
