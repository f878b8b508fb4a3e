//! The store as bytes: every index entry has its reason in a known record, and every record has its entries.

use std::collections::{BTreeMap, BTreeSet};

use ff_backend_embedded::DumpValue;
use ff_core::types::ExecutionId;
use ff_script::Route;
use ff_script::generated::*;

use super::shadow::needs_admission;
use super::{Check, Checker, Violation, require};

/// Lower bounds for the scores of granted and of active work.
const GRANTED_FROM: i64 = 2_000_000_000_000_000;
const ACTIVE_FROM: i64 = 4_000_000_000_000_000;

type Dump = BTreeMap<String, DumpValue>;

impl Checker {
    pub fn check_indexes(&self, dump: &Dump) -> Check {
        for partition in 0..self.partitions.executions {
            self.check_places(dump, partition)?;
            check_heads(dump, partition)?;
            self.check_timers(dump, partition)?;
            self.check_leases(dump, partition)?;
            self.check_records(dump, partition)?;
        }
        self.check_deliveries(dump)?;
        Ok(())
    }

    /// Each execution is in exactly one index of its lane, with the score of its state.
    fn check_places(&self, dump: &Dump, partition: u16) -> Check {
        let prefix = format!("ff:idx:{}:lane:", tag(partition));
        let mut found: BTreeMap<String, Vec<(&str, i64)>> = BTreeMap::new();
        for (key, value) in range(dump, &prefix) {
            let DumpValue::Zset(members) = value else {
                continue;
            };
            if key.ends_with(":heads") {
                continue;
            }
            for (member, score) in members {
                let id = String::from_utf8_lossy(member).into_owned();
                found.entry(id).or_default().push((&key[prefix.len()..], *score as i64));
            }
        }
        for (id, _, seen) in self.live_in(partition) {
            let places = found.remove(&id.to_string()).unwrap_or_default();
            require!(10, places.len() == 1, "{id} ({}) is in {places:?}", seen.state);
            let (place, score) = places[0];
            let (wanted, wanted_score) = place_of(seen);
            let path = format!("{}/{}:", seen.namespace, seen.lane);
            let fits = place.strip_prefix(&path).is_some_and(|rest| match wanted {
                Place::Exactly(name) => rest == name,
                Place::Queue => rest.starts_with("queue:") && rest.starts_with("queue:admit.") == needs_admission(seen),
            });
            require!(10, fits, "{id} ({} {:?}) is in {place}", seen.state, seen.blocking_reason);
            if let Some(wanted_score) = wanted_score {
                require!(
                    10,
                    score == wanted_score,
                    "{id} ({}) has score {score} in {place}, must be {wanted_score}",
                    seen.state
                );
            }
        }
        found.retain(|id, places| {
            !(self.is_hidden(id) && matches!(places[..], [(place, _)] if place.ends_with("blocked:dependencies")))
        });
        require!(37, found.is_empty(), "entries without a record: {found:?}");
        Ok(())
    }

    /// An execution that waits for a time has one timer, and others have none.
    fn check_timers(&self, dump: &Dump, partition: u16) -> Check {
        let mut timers = members(dump, &format!("ff:idx:{}:timers", tag(partition)));
        for (id, shadow, seen) in self.live_in(partition) {
            let entry = timers.remove(&id.to_string());
            let wanted = shadow.wake_at(seen);
            require!(11, entry == wanted, "{id} ({}) wakes at {entry:?}, must be {wanted:?}", seen.state);
        }
        let flows: BTreeMap<String, i64> = {
            let found = timers.iter().filter(|(name, _)| name.starts_with("flow:"));
            found.map(|(name, at)| (name.clone(), *at)).collect()
        };
        let wanted: BTreeMap<String, i64> =
            self.flow_wakes(partition).map(|(at, id)| (format!("flow:{id}"), at)).collect();
        require!(11, flows == wanted, "flows wake at {flows:?}, must be {wanted:?}");
        timers.retain(|name, _| !name.starts_with("flow:") && !name.starts_with("owed:"));
        let reporting = |name: &str| {
            let id = name.strip_prefix("usage:").and_then(|id| id.parse().ok());
            id.and_then(|id: ExecutionId| self.executions.get(&id)).is_some_and(|shadow| shadow.usage.is_pending())
        };
        let waiting = self.live_in(partition).filter(|(_, shadow, _)| shadow.usage.is_pending()).count();
        let before = timers.len();
        timers.retain(|name, _| !reporting(name));
        require!(
            11,
            before - timers.len() == waiting,
            "{waiting} executions wait for answers to reports, {} timers",
            before - timers.len()
        );
        // An expired key may or may not have been swept.
        let mut ends: Vec<i64> = self
            .keys
            .values()
            .filter(|key| key.partition == partition && key.until_ms > self.now)
            .map(|key| key.until_ms)
            .collect();
        let mut found: Vec<i64> = timers.values().copied().filter(|at| *at > self.now).collect();
        ends.sort_unstable();
        found.sort_unstable();
        let named = timers.keys().all(|member| member.starts_with("idem:"));
        require!(11, named && ends == found, "timers of nothing: {timers:?}, keys end at {ends:?}");
        Ok(())
    }

    /// The leases of each worker are the executions it runs.
    fn check_leases(&self, dump: &Dump, partition: u16) -> Check {
        let prefix = format!("ff:idx:{}:workers:", tag(partition));
        let mut found = BTreeSet::new();
        for (key, value) in range(dump, &prefix) {
            if let DumpValue::Hash(fields) = value {
                let worker = &key[prefix.len()..];
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                found.extend(fields.iter().map(|(lease, id)| (worker.to_owned(), text(lease), text(id))));
            }
        }
        let expected: BTreeSet<(String, String, String)> = self
            .live_in(partition)
            .filter_map(|(id, _, seen)| {
                let lease = seen.lease.as_ref()?;
                Some((lease.worker_instance.clone(), lease.lease_id.to_string(), id.to_string()))
            })
            .collect();
        require!(7, found == expected, "leases kept {found:?}, leases held {expected:?}");
        Ok(())
    }

    /// Records match the list of all records.
    fn check_records(&self, dump: &Dump, partition: u16) -> Check {
        let expected: BTreeSet<String> = self.live_in(partition).map(|(id, ..)| id.to_string()).collect();
        let hidden = self.hidden.keys().filter(|id| self.partitions.of_execution(id) == partition);
        let kept: BTreeSet<String> = expected.iter().cloned().chain(hidden.map(ToString::to_string)).collect();
        let prefix = format!("ff:exec:{}:", tag(partition));
        let stored: BTreeSet<String> =
            range(dump, &prefix).map(|(key, _)| key[prefix.len()..prefix.len() + 36].to_owned()).collect();
        require!(8, stored == kept, "stored {stored:?}, expected {kept:?}");
        let listed: BTreeSet<String> = members(dump, &format!("ff:idx:{}:all", tag(partition))).into_keys().collect();
        require!(10, listed == expected, "listed {listed:?}, expected {expected:?}");
        Ok(())
    }

    fn is_hidden(&self, id: &str) -> bool {
        self.hidden.keys().any(|hidden| hidden.to_string() == id)
    }

    /// At the very end, only the description of the installation may be left.
    pub fn nothing_left(&self, dump: &Dump) -> Check {
        for (key, value) in dump {
            let known = key == "ff:config:partitions"
                || key.starts_with("ff:lane:")
                || key.starts_with("ff:events:")
                || (key.starts_with("ff:idx:") && (key.ends_with(":lanes") || key.ends_with(":gone")))
                || (key.starts_with("ff:outbox:") && matches!(value, DumpValue::Stream(entries) if entries.is_empty()));
            require!(37, known, "{key} is left behind: {value:?}");
        }
        Ok(())
    }

    /// Executions that should have ended by now and have not.
    pub fn unfinished(&self, except: impl Fn(&Execution) -> bool) -> Option<(ExecutionId, &Execution)> {
        self.live()
            .find(|(_, _, seen)| seen.phase != LifecyclePhase::Terminal && !except(seen))
            .map(|(id, _, seen)| (*id, seen))
    }

    /// The earliest wake-up in these partitions.
    pub fn next_wake(&self) -> Option<i64> {
        let unfinished = self.live().filter(|(_, _, seen)| seen.phase != LifecyclePhase::Terminal);
        unfinished.filter_map(|(_, shadow, seen)| shadow.wake_at(seen)).min()
    }
}

/// Each queue with eligible work stands among the heads of its lane, no later than the first of that work. Only the
/// lane's main queue does not.
fn check_heads(dump: &Dump, partition: u16) -> Check {
    let prefix = format!("ff:idx:{}:lane:", tag(partition));
    let mut without_head: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, _) in range(dump, &prefix) {
        let Some((lane, queue)) = key[prefix.len()..].split_once(":queue:") else { continue };
        let Some(first) = members(dump, key).into_values().filter(|score| *score < GRANTED_FROM).min() else {
            continue;
        };
        match members(dump, &format!("{prefix}{lane}:heads")).get(queue) {
            Some(head) => {
                require!(10, *head <= first, "the head of {queue} in {lane} is {head}, its first work {first}")
            }
            None => {
                let other = without_head.insert(lane, queue);
                require!(10, other.is_none(), "{lane} has two queues without a head: {other:?} and {queue}");
            }
        }
    }
    Ok(())
}

enum Place {
    Exactly(&'static str),
    Queue,
}

fn place_of(seen: &Execution) -> (Place, Option<i64>) {
    let created = seen.created_at;
    match (seen.phase, seen.blocking_reason) {
        (LifecyclePhase::Terminal, _) => (Place::Exactly("terminal"), Some(created)),
        (LifecyclePhase::Suspended, _) => (Place::Exactly("suspended"), Some(created)),
        (LifecyclePhase::Active, _) => (Place::Queue, Some(ACTIVE_FROM + created)),
        (LifecyclePhase::Runnable, Some(reason)) => {
            let name = match reason {
                BlockingReason::WaitingForCapableWorker => "blocked:route",
                BlockingReason::WaitingForQuota => "blocked:quota",
                BlockingReason::WaitingForBudget => "blocked:budget",
                BlockingReason::WaitingForDependencies => "blocked:dependencies",
                BlockingReason::WaitingForChildren => "blocked:children",
                BlockingReason::HeldByOperator => "blocked:operator",
            };
            (Place::Exactly(name), None)
        }
        (LifecyclePhase::Runnable, None) if seen.delay_until.is_some() => (Place::Exactly("delayed"), Some(created)),
        (LifecyclePhase::Runnable, None) if seen.granted_until.is_some() => {
            (Place::Queue, Some(GRANTED_FROM + created))
        }
        (LifecyclePhase::Runnable, None) => (Place::Queue, Some(seen.score)),
    }
}

fn tag(partition: u16) -> String {
    Route::Execution(partition).tag().expect("partitions have tags")
}

fn range<'a>(dump: &'a Dump, prefix: &'a str) -> impl Iterator<Item = (&'a String, &'a DumpValue)> {
    dump.range(prefix.to_owned()..).take_while(move |(key, _)| key.starts_with(prefix))
}

fn members(dump: &Dump, key: &str) -> BTreeMap<String, i64> {
    match dump.get(key) {
        Some(DumpValue::Zset(members)) => members
            .iter()
            .map(|(member, score)| (String::from_utf8_lossy(member).into_owned(), *score as i64))
            .collect(),
        _ => BTreeMap::new(),
    }
}

impl Violation {
    /// Something did not end in time.
    pub(crate) fn liveness(detail: impl Into<String>) -> Self {
        Violation::new(0, detail)
    }
}
