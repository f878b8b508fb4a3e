//! The embedded host in the simulation: virtual time, injected faults, deaths and restarts.

use std::collections::BTreeMap;
use std::sync::Arc;

use ff_backend_embedded::{DumpValue, Durability, Embedded, Options, VirtualClock};
use ff_core::PartitionConfig;
use ff_core::types::{BudgetId, ExecutionId, FlowId, QuotaPolicyId};
use ff_script::generated::*;
use ff_script::{Bytes, Call, Client, Error, Host, HostError, Route, ScanCursor, Wake, WakeUp, Watch};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::check::Violation;
use crate::request::{Failure, Outcome, Request};

/// A fault during the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process dies at the n-th store command, if the call has that many.
    CrashAt(u64),
    /// The process dies after the commit, before the reply.
    CrashAfterCommit,
    /// The n-th store command fails like a disk error.
    BreakAt(u64),
}

/// A flow's members and edges.
pub(crate) struct Page {
    pub members: Vec<Member>,
    pub edges: Vec<Edge>,
}

pub(crate) struct Store {
    runtime: Runtime,
    directory: TempDir,
    library: String,
    clock: Arc<VirtualClock>,
    partitions: PartitionConfig,
    /// `None` only while it is opened again.
    open: Option<(Arc<Embedded>, Client)>,
    watch: Option<Watch>,
    full: bool,
}

impl Store {
    pub fn new(library: &str, partitions: PartitionConfig, now_ms: i64) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime without I/O and timers needs nothing");
        let memory = std::path::Path::new("/dev/shm");
        let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let mut store = Store {
            runtime,
            directory: directory.expect("a place for a temporary store"),
            library: library.to_owned(),
            clock: Arc::new(VirtualClock::at_ms(now_ms)),
            partitions,
            open: None,
            watch: None,
            full: false,
        };
        store.reopen();
        store
    }

    /// Drops the host, dead or alive, and opens its directory again.
    pub fn reopen(&mut self) {
        self.open = None;
        self.watch = None;
        let mut options = Options::new(self.directory.path(), self.library.as_str());
        options.clock = self.clock.clone();
        options.durability = Durability::Relaxed;
        options.reserve_bytes = 0;
        options.map_size = 256 << 20;
        options.strict = true;
        let host = Embedded::open(options).unwrap_or_else(|error| panic!("the store does not open again: {error}"));
        let host = Arc::new(host);
        host.faults().set_full(self.full);
        let routes: Vec<Route> = (0..self.partitions.executions).map(Route::Execution).collect();
        self.runtime.block_on(host.subscribe(&routes)).expect("a host that just opened takes subscriptions");
        self.watch = Some(host.watch());
        // The checker follows one call at a time, so debts to other partitions are paid by separate calls.
        let client = Client::new(host.clone(), self.partitions).without_visits();
        self.open = Some((host, client));
    }

    fn host(&self) -> &Arc<Embedded> {
        &self.open.as_ref().expect("open between calls").0
    }

    fn client(&self) -> &Client {
        &self.open.as_ref().expect("open between calls").1
    }

    pub fn set_now(&self, now_ms: i64) {
        self.clock.set_ms(now_ms);
    }

    /// While on, every write fails because the disk is full.
    pub fn set_full(&mut self, on: bool) {
        self.full = on;
        self.host().faults().set_full(on);
    }

    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Runs one request, possibly with a fault. If the host died, it is opened again.
    pub fn run(&mut self, route: Route, request: &Request, fault: Option<Fault>) -> Result<Outcome, Violation> {
        let faults = self.host().faults();
        match fault {
            Some(Fault::CrashAt(n)) => faults.crash_at_command(n),
            Some(Fault::CrashAfterCommit) => faults.crash_after_commit(),
            Some(Fault::BreakAt(n)) => faults.fail_command(n),
            None => {}
        }
        let result = self.runtime.block_on(request.call(self.client(), route));
        if fault.is_some() {
            faults.clear();
            faults.set_full(self.full);
        }
        match result {
            Ok(reply) => Ok(Outcome::Reply(reply)),
            Err(Error::Engine(error)) => Ok(Outcome::Refused(error)),
            Err(Error::Host(HostError::Closed)) if fault.is_some() => {
                self.reopen();
                Ok(Outcome::Failed(if fault == Some(Fault::CrashAfterCommit) {
                    Failure::Died
                } else {
                    Failure::Crashed
                }))
            }
            Err(Error::Host(HostError::Full { .. })) if self.full => Ok(Outcome::Failed(Failure::Full)),
            Err(Error::Host(HostError::Unavailable { .. })) if matches!(fault, Some(Fault::BreakAt(_))) => {
                Ok(Outcome::Failed(Failure::Broken))
            }
            Err(error) => Err(Violation::new(38, format!("{}: {error}", request.name()))),
        }
    }

    /// A call of the simulation itself, which must succeed.
    fn ask<C: Call>(&self, route: Route, call: &C) -> Result<C::Reply, Violation> {
        self.runtime
            .block_on(self.client().call(route, call))
            .map_err(|error| Violation::new(38, format!("{}: {error}", C::FUNCTION)))
    }

    pub fn fix_partitions(&self) -> Result<(), Violation> {
        let p = self.partitions;
        let defaults = PartitionDefaults {
            executions: p.executions.into(),
            budgets: p.budgets.into(),
            quotas: p.quotas.into(),
            schedules: p.schedules.into(),
        };
        self.ask(Route::Config, &FixPartitions::new(defaults)).map(drop)
    }

    /// The full description of an execution.
    pub fn describe(&self, id: ExecutionId) -> Result<Option<Execution>, Violation> {
        let route = self.client().route_of(&id);
        let call = DescribeExecution { execution_id: id };
        match self.runtime.block_on(self.client().call(route, &call)) {
            Ok(DescribeExecutionReply::Found { execution }) => Ok(Some(execution)),
            Err(Error::Engine(error)) if error.code() == "execution_not_found" => Ok(None),
            Err(error) => Err(Violation::new(38, format!("describe_execution {id}: {error}"))),
        }
    }

    /// The description of a flow.
    pub fn describe_flow(&self, id: FlowId) -> Result<Option<Flow>, Violation> {
        let route = Route::Execution(self.partitions.of_flow(&id));
        match self.runtime.block_on(self.client().call(route, &DescribeFlow { flow_id: id })) {
            Ok(DescribeFlowReply::Found { flow }) => Ok(Some(flow)),
            Err(Error::Engine(error)) if error.code() == "flow_not_found" => Ok(None),
            Err(error) => Err(Violation::new(38, format!("describe_flow {id}: {error}"))),
        }
    }

    /// The members and edges of a flow.
    pub fn read_flow(&self, id: FlowId) -> Result<Option<Page>, Violation> {
        let route = Route::Execution(self.partitions.of_flow(&id));
        let call = ReadFlow { after: None, edges: true, flow_id: id, limit: 1000 };
        match self.runtime.block_on(self.client().call(route, &call)) {
            Ok(ReadFlowReply::Page { members, edges, .. }) => Ok(Some(Page { members, edges })),
            Err(Error::Engine(error)) if error.code() == "flow_not_found" => Ok(None),
            Err(error) => Err(Violation::new(38, format!("read_flow {id}: {error}"))),
        }
    }

    /// The current state of a budget.
    pub fn budget(&self, id: BudgetId) -> Result<Option<Budget>, Violation> {
        match self.runtime.block_on(self.client().call(Route::Budget(0), &GetBudget { budget_id: id })) {
            Ok(GetBudgetReply::Found { budget, .. }) => Ok(Some(budget)),
            Err(Error::Engine(error)) if error.code() == "budget_not_found" => Ok(None),
            Err(error) => Err(Violation::new(38, format!("get_budget {id}: {error}"))),
        }
    }

    /// The state of a quota's key.
    pub fn quota_key(&self, id: QuotaPolicyId, key: &str) -> Result<Option<QuotaKeyState>, Violation> {
        let call = GetQuota { key: Some(key.to_owned()), quota_id: id };
        match self.runtime.block_on(self.client().call(Route::Quota(0), &call)) {
            Ok(GetQuotaReply::Quota { state, .. }) => Ok(state),
            Err(Error::Engine(error)) if error.code() == "quota_not_found" => Ok(None),
            Err(error) => Err(Violation::new(38, format!("get_quota {id}: {error}"))),
        }
    }

    /// The holders in a set.
    pub fn holders(&self, route: Route, set: String) -> Result<Vec<Holder>, Violation> {
        let ListHoldersReply::Holders { items, .. } = self.ask(route, &ListHolders { limit: 1000, offset: 0, set })?;
        Ok(items)
    }

    /// The effects that a partition owes.
    pub fn owed(&self, route: Route) -> Result<Vec<Effect>, Violation> {
        let ReadOutboxReply::Effects { items } = self.ask(route, &ReadOutbox::new(1000))?;
        Ok(items)
    }

    /// Budgets that have room and whose waiting work was not unblocked yet.
    pub fn cleared(&self) -> Result<Vec<ClearedBudget>, Violation> {
        let ClearedBudgetsReply::Cleared { items, .. } = self.ask(Route::Budget(0), &ClearedBudgets::new(64))?;
        Ok(items)
    }

    /// When a flow's timer is due.
    pub fn flow_timer(&self, route: Route, id: FlowId) -> Result<Option<i64>, Violation> {
        let tag = route.tag().expect("partitions have tags");
        let name = format!("flow:{id}").into_bytes();
        Ok(match self.dump()?.get(&format!("ff:idx:{tag}:timers")) {
            Some(DumpValue::Zset(members)) => {
                members.iter().find(|(member, _)| **member == name).map(|(_, score)| *score as i64)
            }
            _ => None,
        })
    }

    /// The events of a partition after this one.
    pub fn events(&self, route: Route, after: Option<&str>) -> Result<Vec<Event>, Violation> {
        let mut call = ReadEvents::new(1000);
        call.after = after.map(str::to_owned);
        let ReadEventsReply::Events { entries, .. } = self.ask(route, &call)?;
        Event::read_all(&entries, after, 1000)
            .map_err(|error| Violation::new(41, format!("events of {route} cannot be read: {error}")))
    }

    /// The announcements of the partitions since the last call. They are complete once any later call has returned.
    pub fn heard(&mut self) -> Result<Vec<(Route, Wake)>, Violation> {
        let mut heard = Vec::new();
        let watch = self.watch.as_mut().expect("open between calls");
        while let Ok(wake_up) = watch.try_recv() {
            if let WakeUp::Message { route, payload } = wake_up {
                let wakes = Wake::read_all(&payload)
                    .map_err(|error| Violation::new(38, format!("an announcement of {route}: {error}")))?;
                heard.extend(wakes.into_iter().map(|wake| (route, wake)));
            }
        }
        Ok(heard)
    }

    pub fn next_due(&self, route: Route) -> Result<Option<i64>, Violation> {
        let NextDueReply::Next { next_at, .. } = self.ask(route, &NextDue {})?;
        Ok(next_at)
    }

    pub fn dump(&self) -> Result<BTreeMap<String, DumpValue>, Violation> {
        let host = self.host().clone();
        self.runtime
            .block_on(async move { host.dump().await })
            .map_err(|error| Violation::new(38, format!("dump: {error}")))
    }

    /// All findings of the library's own check.
    pub fn fsck(&self) -> Result<Vec<Finding>, Violation> {
        let mut found = Vec::new();
        let others = [Route::Fleet, Route::Quota(0), Route::Budget(0)];
        let routes: Vec<Route> = (0..self.partitions.executions).map(Route::Execution).chain(others).collect();
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut cursor = ScanCursor::Start;
        while cursor != ScanCursor::End {
            let page = self
                .runtime
                .block_on(self.host().scan(cursor, 512))
                .map_err(|error| Violation::new(38, format!("scan: {error}")))?;
            keys.extend(page.keys);
            cursor = page.next;
        }
        for route in routes {
            let tag = route.tag().expect("partitions have tags").into_bytes();
            let own: Vec<Bytes> = keys
                .iter()
                .filter(|key| key.windows(tag.len()).any(|part| part == tag))
                .map(|key| Bytes(key.clone()))
                .collect();
            for page in own.chunks(512) {
                let call = CheckKeys { keys: page.to_vec(), repair: false };
                let CheckKeysReply::Checked { findings, foreign } = self.ask(route, &call)?;
                if foreign != 0 {
                    return Err(Violation::new(39, format!("{foreign} keys of {route} carry another tag")));
                }
                found.extend(findings);
            }
            if !matches!(route, Route::Execution(_)) {
                continue;
            }
            let mut offset = 0;
            loop {
                let call = CheckExecutions { limit: 64, offset, repair: false };
                let CheckExecutionsReply::Checked { findings, looked, more, .. } = self.ask(route, &call)?;
                found.extend(findings);
                offset += looked;
                if !more {
                    break;
                }
            }
        }
        Ok(found)
    }
}
