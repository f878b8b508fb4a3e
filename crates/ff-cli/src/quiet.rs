//! Whether anybody works on a store, by the store's own clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use ff_engine::offline;
use ff_script::{Content, Contents};

use crate::times::moment;

/// The live servers of a store, and the ends of its workers' registrations.
const SERVERS: &[u8] = b"ff:idx:{w}:servers";
const WORKERS: &[u8] = b"ff:idx:{w}:workers";
/// How often a registration is looked at that may run out or be renewed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Who is alive, and until when unless they say so again.
#[derive(Debug, PartialEq)]
struct Alive {
    /// The store's time, from before the rest was read.
    now: i64,
    servers: BTreeMap<String, i64>,
    workers: BTreeMap<String, i64>,
}

/// Waits until nobody works on the store; refuses one that a server or a worker of its own keeps on working on.
///
/// A worker that talked to a server which has stopped cannot renew its registration: it runs out meanwhile. One that is on the store
/// itself renews it, and is refused.
pub async fn wait_until_quiet(host: &Arc<dyn Contents>) -> anyhow::Result<()> {
    let mut known: Option<BTreeMap<String, i64>> = None;
    loop {
        let alive = look(host).await?;
        alive.no_server()?;
        if alive.workers.is_empty() {
            return Ok(());
        }
        match &known {
            None => eprintln!(
                "waiting up to {} s for the registrations of {} to run out, in case they are on the store itself",
                alive.seconds(alive.workers.values().copied().max().unwrap_or_default()),
                alive.workers.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
            ),
            Some(known) => alive.nobody_new(known)?,
        }
        let next = alive.workers.values().copied().min().unwrap_or_default().saturating_sub(alive.now);
        tokio::time::sleep(LOOK_EVERY.min(Duration::from_millis(u64::try_from(next).unwrap_or_default() + 1))).await;
        known.get_or_insert(alive.workers);
    }
}

/// Refuses a store that somebody works on.
pub async fn still_quiet(host: &Arc<dyn Contents>) -> anyhow::Result<()> {
    let alive = look(host).await?;
    alive.no_server()?;
    alive.nobody_new(&BTreeMap::new())
}

async fn look(host: &Arc<dyn Contents>) -> anyhow::Result<Alive> {
    let now = offline::time_of(Arc::clone(host) as _).await?;
    let mut contents = host.read_keys(vec![SERVERS.to_vec(), WORKERS.to_vec()]).await?.into_iter();
    let mut alive = Alive { now, servers: BTreeMap::new(), workers: BTreeMap::new() };
    if let Some(Content::Hash(servers)) = contents.next().flatten() {
        for (server, record) in servers {
            let until = read_expiry(&record)
                .with_context(|| format!("the record of server {} cannot be read", server.escape_ascii()))?;
            alive.servers.insert(server.escape_ascii().to_string(), until);
        }
    }
    if let Some(Content::Zset(workers)) = contents.next().flatten() {
        alive.workers =
            workers.into_iter().map(|(instance, until)| (instance.escape_ascii().to_string(), until as i64)).collect();
    }
    alive.servers.retain(|_, until| *until > alive.now);
    alive.workers.retain(|_, until| *until > alive.now);
    Ok(alive)
}

impl Alive {
    /// How long it is until then, in whole seconds.
    fn seconds(&self, until: i64) -> i64 {
        (until - self.now + 999) / 1_000
    }

    fn no_server(&self) -> anyhow::Result<()> {
        if let Some((server, until)) = self.servers.iter().next() {
            bail!(
                "server {server} is alive on this store; stop it first (one that was killed counts for {} s more)",
                self.seconds(*until)
            );
        }
        Ok(())
    }

    /// Refuses workers that were not there before, or have renewed since.
    fn nobody_new(&self, known: &BTreeMap<String, i64>) -> anyhow::Result<()> {
        let mut new = self.workers.iter().filter(|(instance, until)| known.get(*instance) != Some(until));
        if let Some((instance, until)) = new.next() {
            bail!(
                "worker {instance} is alive on this store without a server; stop it first (it is registered until {} UTC, for {} s more)",
                moment(*until),
                self.seconds(*until)
            );
        }
        Ok(())
    }
}

/// The first field of a server's record: until when it is alive.
fn read_expiry(mut record: &[u8]) -> anyhow::Result<i64> {
    rmp::decode::read_array_len(&mut record)?;
    // Lua packs whole numbers as integers, and those that are not as floats.
    match rmp::decode::read_int::<i64, _>(&mut { record }) {
        Ok(at) => Ok(at),
        Err(_) => Ok(rmp::decode::read_f64(&mut record)? as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers(list: &[(&str, i64)]) -> BTreeMap<String, i64> {
        list.iter().map(|(instance, until)| ((*instance).to_owned(), *until)).collect()
    }

    #[test]
    fn a_registration_that_only_runs_out_is_waited_for_and_one_that_moves_is_refused() {
        let alive = Alive { now: 10_000, servers: BTreeMap::new(), workers: workers(&[("w-1", 30_000)]) };
        assert!(alive.nobody_new(&workers(&[("w-1", 30_000), ("w-2", 9_000)])).is_ok());
        for known in [workers(&[]), workers(&[("w-1", 29_000)])] {
            let refused = alive.nobody_new(&known).expect_err("it is alive").to_string();
            assert!(
                refused.contains("worker w-1") && refused.contains("until 1970-01-01 00:00:30.000 UTC, for 20 s"),
                "{refused}"
            );
        }
        assert!(alive.no_server().is_ok());
        let refused = Alive { servers: workers(&[("s-1", 11_500)]), ..alive }.no_server().expect_err("it is alive");
        assert!(refused.to_string().contains("server s-1") && refused.to_string().contains("2 s more"), "{refused}");
    }
}
