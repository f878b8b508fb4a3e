//! Verifies the invariants on a live store; repairs are listed, never silent.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::error_code::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::generated::{
    AdoptHolders, AdoptHoldersReply, CheckExecutions, CheckExecutionsReply, CheckKeys, CheckKeysReply, Finding, Holder,
    HolderState, LaneEntry, ListHolders, ListHoldersReply, QuotaSlot,
};
use ff_script::{Client, Error, HolderSet, Route, ScanCursor};
use uuid::Uuid;

use crate::background::holders::{self, Leaving};
use crate::fsck_budgets;
use crate::operations::{Operations, refused_with, set_of_lane};

const PAGE: i64 = 64;
const HOLDERS_PAGE: i64 = 1_000;
const BATCH: usize = 64;
/// How long a passed deadline is left to the reconciler, in milliseconds.
const OVERDUE_MS: i64 = 10_000;
const SCAN_PAGE: usize = 512;
const KEYS_PER_CALL: usize = 64;

/// What a check of the whole store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fsck {
    /// Executions looked at.
    pub executions: i64,
    /// Keys looked at.
    pub keys: usize,
    /// Broken invariants, each with whether it was repaired.
    pub findings: Vec<Finding>,
    /// Keys that begin like ours and belong to no partition of this store.
    pub foreign: Vec<String>,
}

impl Fsck {
    /// True when nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.foreign.is_empty()
    }

    /// Looks at every record and every key; with `repair` puts right what has one right answer.
    pub async fn run(client: &Client, repair: bool) -> Result<Self, Error> {
        let mut report = Self::default();
        let mut slots: BTreeMap<String, Vec<Holder>> = BTreeMap::new();
        for route in client.execution_routes() {
            for QuotaSlot { set, execution_id, holder_id } in report.check_executions(client, route, repair).await? {
                slots.entry(set).or_default().push(Holder { execution_id, expires_at: None, holder_id });
            }
        }
        report.check_keys(client, repair).await?;
        let operations = Operations::new(client.clone());
        for lane in operations.lanes().await? {
            report.check_slots(&operations, &lane, repair).await?;
        }
        for entry in operations.quotas(None).await? {
            for key in operations.quota_keys(entry.quota.quota_id, usize::MAX).await? {
                report.check_holders(client, &key.set, repair).await?;
            }
        }
        for (set, running) in slots {
            report.check_counted(&operations, &set, running, repair).await?;
        }
        report.findings.extend(fsck_budgets::check(&operations, repair).await?);
        Ok(report)
    }

    /// The holders of a lane's slots are exactly its executions that are granted or run.
    async fn check_slots(&mut self, operations: &Operations, lane: &LaneEntry, repair: bool) -> Result<(), Error> {
        let client = operations.client();
        let set = set_of_lane(&lane.namespace, &lane.lane);
        let before = holders_of(client, &set).await?;
        if before.holders.is_empty() && lane.definition.max_active.is_none() {
            return Ok(());
        }
        let after = self.check_holders(client, &set, repair).await?;
        let mut found = |problem: String| self.found(&set, problem, repair);

        // An execution that runs as a holder and is not counted, unless it has ended meanwhile.
        let counted = names(&after.holders);
        for route in client.execution_routes() {
            let (mut missing, unnoted) = running(client, route, lane, false).await?;
            // Without a limit nothing needs a slot to run.
            if unnoted > 0 && after.limited {
                found(format!("{unnoted} executions of {route} run without a slot"));
                if repair {
                    missing = running(client, route, lane, true).await?.0;
                }
            }
            missing.retain(|runs| !counted.contains(&name(runs)));
            if missing.is_empty() {
                continue;
            }
            let counted = names(&holders_of(client, &set).await?.holders);
            let still = names(&running(client, route, lane, false).await?.0);
            missing.retain(|runs| !counted.contains(&name(runs)) && still.contains(&name(runs)));
            for holder in &missing {
                found(format!("{} runs and is not counted", holder.execution_id));
            }
            if repair {
                for holders in missing.chunks(BATCH) {
                    operations.enter_running(&set, holders.to_vec()).await?;
                }
            }
        }
        Ok(())
    }

    fn found(&mut self, set: &str, problem: String, repaired: bool) {
        self.findings.push(Finding { invariant: 32, key: set.as_bytes().to_vec().into(), problem, repaired });
    }

    /// Nobody is in a set whose execution is gone, unless it has left meanwhile or is about to be asked for anyway. Answers who is.
    async fn check_holders(&mut self, client: &Client, set: &str, repair: bool) -> Result<Holders, Error> {
        let before = holders_of(client, set).await?;
        let mut gone = Vec::new();
        for holders in before.holders.chunks(BATCH) {
            let slots = holders::ask(client, set, holders.to_vec()).await?;
            gone.extend(slots.into_iter().filter(|slot| slot.state == HolderState::Gone));
        }
        let after = holders_of(client, set).await?;
        let gone: BTreeSet<Name> = gone.iter().map(|slot| (slot.execution_id, slot.holder_id)).collect();
        let overdue = |holder: &Holder| holder.expires_at.is_none_or(|at| at + OVERDUE_MS <= after.now);
        let stays = |holder: &&Holder| gone.contains(&name(holder)) && overdue(holder);
        let gone: Vec<Holder> = after.holders.iter().filter(stays).cloned().collect();
        for holder in &gone {
            self.found(set, format!("{} holds a slot and does not run", holder.execution_id), repair);
        }
        if repair {
            for holders in gone.chunks(BATCH) {
                let leaving = holders.iter().cloned().map(|holder| Leaving { holder, unused: false }).collect();
                holders::release(client, set, leaving).await?;
            }
        }
        Ok(after)
    }

    /// Whoever has a slot of a quota is counted in it, unless it has ended meanwhile; a quota that is gone counts nobody.
    async fn check_counted(
        &mut self,
        operations: &Operations,
        set: &str,
        mut running: Vec<Holder>,
        repair: bool,
    ) -> Result<(), Error> {
        let client = operations.client();
        let counted = names(&holders_of(client, set).await?.holders);
        running.retain(|holder| !counted.contains(&name(holder)));
        let Some(HolderSet::Quota { id, .. }) = HolderSet::read(set).filter(|_| !running.is_empty()) else {
            return Ok(());
        };
        match operations.quota(id, None).await {
            Err(error) if refused_with(&error) == Some(ErrorCode::QuotaNotFound) => return Ok(()),
            found => drop(found?),
        }
        let mut missing = Vec::new();
        for holders in running.chunks(BATCH) {
            let slots = holders::ask(client, set, holders.to_vec()).await?;
            missing.extend(slots.into_iter().filter(|slot| slot.state == HolderState::Running).map(|slot| Holder {
                execution_id: slot.execution_id,
                expires_at: None,
                holder_id: slot.holder_id,
            }));
        }
        for holder in &missing {
            self.found(set, format!("{} runs and is not counted", holder.execution_id), repair);
        }
        if repair {
            for holders in missing.chunks(BATCH) {
                operations.enter_running(set, holders.to_vec()).await?;
            }
        }
        Ok(())
    }

    /// Looks at every record of a partition. Answers the slots of quotas they have.
    async fn check_executions(&mut self, client: &Client, route: Route, repair: bool) -> Result<Vec<QuotaSlot>, Error> {
        let (mut offset, mut all) = (0, Vec::new());
        loop {
            let call = CheckExecutions { limit: PAGE, offset, repair };
            let CheckExecutionsReply::Checked { findings, looked, more, slots } = client.call(route, &call).await?;
            self.executions += looked;
            self.findings.extend(findings);
            all.extend(slots);
            if !more {
                return Ok(all);
            }
            offset += looked;
        }
    }

    async fn check_keys(&mut self, client: &Client, repair: bool) -> Result<(), Error> {
        let routes: BTreeMap<String, Route> = client
            .execution_routes()
            .chain(client.quota_routes())
            .chain(client.budget_routes())
            .chain(client.schedule_routes())
            .chain([Route::Fleet])
            .map(|route| (route.tag().expect("only the configuration has no tag"), route))
            .collect();
        let mut cursor = ScanCursor::Start;
        while cursor != ScanCursor::End {
            let page = client.host().scan(cursor, SCAN_PAGE).await?;
            cursor = page.next;
            let mut by_route: BTreeMap<Route, Vec<Vec<u8>>> = BTreeMap::new();
            for key in page.keys {
                self.keys += 1;
                match tag_of(&key).and_then(|tag| routes.get(tag)) {
                    Some(route) => by_route.entry(*route).or_default().push(key),
                    None if key == Route::Config.to_string().as_bytes() => {}
                    None => self.foreign.push(key.escape_ascii().to_string()),
                }
            }
            for (route, keys) in by_route {
                for keys in keys.chunks(KEYS_PER_CALL) {
                    let call = CheckKeys { keys: keys.iter().cloned().map(Into::into).collect(), repair };
                    let CheckKeysReply::Checked { findings, .. } = client.call(route, &call).await?;
                    self.findings.extend(findings);
                }
            }
        }
        Ok(())
    }
}

struct Holders {
    holders: Vec<Holder>,
    /// The set has a limit.
    limited: bool,
    now: i64,
}

/// Everyone in a holder set.
async fn holders_of(client: &Client, set: &str) -> Result<Holders, Error> {
    let mut all: Vec<Holder> = Vec::new();
    loop {
        let offset = i64::try_from(all.len()).unwrap_or(i64::MAX);
        let call = ListHolders { limit: HOLDERS_PAGE, offset, set: set.to_owned() };
        let ListHoldersReply::Holders { capacity, items, now, .. } =
            client.call(client.route_of_holder_set(set), &call).await?;
        let more = i64::try_from(items.len()) == Ok(HOLDERS_PAGE);
        all.extend(items);
        if !more {
            return Ok(Holders { holders: all, limited: capacity.is_some(), now });
        }
    }
}

/// The executions of a lane that run as holders in one partition, and how many run without being one.
async fn running(client: &Client, route: Route, lane: &LaneEntry, note: bool) -> Result<(Vec<Holder>, i64), Error> {
    let (mut all, mut unnoted) = (Vec::new(), 0);
    let mut after = None;
    loop {
        let (namespace, lane) = (lane.namespace.clone(), lane.lane.clone());
        let call = AdoptHolders { after, lane, limit: PAGE, namespace, note };
        let AdoptHoldersReply::Adopted { holders, next, unnoted: not } = client.call(route, &call).await?;
        all.extend(holders);
        unnoted += not;
        after = next;
        if after.is_none() {
            return Ok((all, unnoted));
        }
    }
}

type Name = (ExecutionId, Uuid);

fn name(holder: &Holder) -> Name {
    (holder.execution_id, holder.holder_id)
}

fn names(holders: &[Holder]) -> BTreeSet<Name> {
    holders.iter().map(name).collect()
}

fn tag_of(key: &[u8]) -> Option<&str> {
    let key = std::str::from_utf8(key).ok()?;
    let from = key.find('{')?;
    let to = key[from..].find('}')? + from;
    Some(&key[from..=to])
}
