//! A cluster of loopback servers. Its slots can be moved step by step, and its nodes can be killed.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::binary::ServerBinary;
use crate::server::{Aof, Options, TestServer};

const LIMIT: Duration = Duration::from_secs(30);
const SLOTS: u32 = 16_384;

/// How to build a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Number of primaries that share the slots.
    pub primaries: usize,
    /// Number of replicas per primary.
    pub replicas_each: usize,
    /// What the nodes write to disk.
    pub aof: Aof,
    /// The program (default: the Valkey found on this machine).
    pub binary: Option<ServerBinary>,
    /// More arguments for every node.
    pub extra: Vec<String>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        ClusterOptions { primaries: 3, replicas_each: 0, aof: Aof::EverySecond, binary: None, extra: Vec::new() }
    }
}

/// One node: its server and its id in the cluster.
pub struct Member {
    pub server: TestServer,
    /// The id of the node, which never changes.
    pub id: String,
}

/// A running cluster: the first primaries, then their replicas in the same order.
pub struct TestCluster {
    pub members: Vec<Member>,
    primaries: usize,
}

impl TestCluster {
    /// Starts the nodes, distributes the slots evenly, and waits until every node reports a healthy cluster.
    pub fn start(options: ClusterOptions) -> Result<TestCluster> {
        let mut members = Vec::new();
        for _ in 0..options.primaries * (1 + options.replicas_each) {
            let server = TestServer::start(Options {
                binary: options.binary.clone(),
                aof: options.aof,
                cluster: true,
                password: None,
                extra: options.extra.clone(),
            })?;
            let id = server.command::<String>(&["CLUSTER", "MYID"])?;
            members.push(Member { server, id });
        }
        let cluster = TestCluster { members, primaries: options.primaries };
        let share = |index: usize| SLOTS * index as u32 / options.primaries as u32;
        for (index, member) in cluster.primaries().iter().enumerate() {
            let (first, last) = (share(index).to_string(), (share(index + 1) - 1).to_string());
            member.server.command::<String>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])?;
            // Distinct epochs from the start avoid an election among the nodes.
            member.server.command::<String>(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        }
        for member in &cluster.members[1..] {
            let (port, bus) = (member.server.port().to_string(), member.server.bus_port().to_string());
            cluster.members[0].server.command::<String>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
        }
        cluster.wait("every node to know every other", |member| {
            let nodes: String = member.server.command(&["CLUSTER", "NODES"])?;
            let known = nodes.lines().filter(|line| !line.contains("handshake")).count();
            Ok(known == cluster.members.len())
        })?;
        for (index, member) in cluster.members[options.primaries..].iter().enumerate() {
            let primary = &cluster.members[index % options.primaries].id;
            member.server.command::<String>(&["CLUSTER", "REPLICATE", primary])?;
        }
        cluster.wait_until_ok()?;
        Ok(cluster)
    }

    /// `valkey-cluster://H:P,H:P,…` with every node.
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.members.iter().map(|member| member.server.address()).collect();
        format!("valkey-cluster://{}", nodes.join(","))
    }

    /// The nodes that started as primaries.
    pub fn primaries(&self) -> &[Member] {
        &self.members[..self.primaries]
    }

    /// Waits until every running node reports a healthy cluster and every replica follows its primary.
    pub fn wait_until_ok(&self) -> Result<()> {
        self.wait("a healthy cluster", |member| {
            let info: String = member.server.command(&["CLUSTER", "INFO"])?;
            if !info.contains("cluster_state:ok") || !info.contains("cluster_slots_ok:16384") {
                return Ok(false);
            }
            let replication: String = member.server.command(&["INFO", "replication"])?;
            Ok(replication.contains("role:master") || replication.contains("master_link_status:up"))
        })
    }

    /// The running member that owns the slot, as the cluster's other nodes see it.
    pub fn owner(&self, slot: u16) -> Result<usize> {
        let started = Instant::now();
        loop {
            for (index, member) in self.running() {
                // In its own list, a node marks its line with `myself` and gives no address.
                let nodes: String = member.server.command(&["CLUSTER", "NODES"])?;
                let mine = nodes.lines().find(|line| line.contains("myself")).unwrap_or_default();
                let owned = mine.split_whitespace().skip(8).any(|range| covers(range, slot));
                if mine.contains("master") && owned {
                    return Ok(index);
                }
            }
            if started.elapsed() > LIMIT {
                bail!("no node owned slot {slot} within {LIMIT:?}");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Begins to move a slot between two members. The returned value moves it step by step.
    pub fn migrate_slot(&self, slot: u16, from: usize, to: usize) -> Result<SlotMigration<'_>> {
        let (text, source, target) = (slot.to_string(), &self.members[from], &self.members[to]);
        target.server.command::<String>(&["CLUSTER", "SETSLOT", &text, "IMPORTING", &source.id])?;
        source.server.command::<String>(&["CLUSTER", "SETSLOT", &text, "MIGRATING", &target.id])?;
        Ok(SlotMigration { cluster: self, slot, from, to })
    }

    /// Promotes a replica by an orderly failover, and waits until it is primary.
    pub fn failover(&self, replica: usize) -> Result<()> {
        let member = &self.members[replica];
        let started = Instant::now();
        loop {
            // Fails while the replica's link is down, so it is repeated until it succeeds.
            let _ = member.server.command::<String>(&["CLUSTER", "FAILOVER"]);
            let asked = Instant::now();
            while asked.elapsed() < Duration::from_secs(5) {
                let role: String = member.server.command(&["INFO", "replication"])?;
                if role.contains("role:master") {
                    return Ok(());
                }
                thread::sleep(Duration::from_millis(20));
            }
            if started.elapsed() > LIMIT {
                bail!("node {replica} did not become primary within {LIMIT:?}");
            }
        }
    }

    /// Kills one node without a warning.
    pub fn kill_9(&mut self, index: usize) {
        self.members[index].server.kill_9();
    }

    /// Starts a killed node again with its files.
    pub fn restart(&mut self, index: usize) -> Result<()> {
        self.members[index].server.restart()
    }

    fn running(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.members.iter().enumerate().filter(|(_, member)| member.server.pid().is_some())
    }

    fn wait(&self, what: &str, ready: impl Fn(&Member) -> Result<bool>) -> Result<()> {
        let started = Instant::now();
        for (index, member) in self.running() {
            while !ready(member)? {
                if started.elapsed() > LIMIT {
                    let info: String = member.server.command(&["CLUSTER", "INFO"])?;
                    bail!("node {index} waited {LIMIT:?} for {what}:\n{info}\n{}", member.server.log());
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

/// True if a slot range of CLUSTER NODES (`17` or `0-5460`) contains the slot. Migrations in brackets do not count.
fn covers(range: &str, slot: u16) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.parse::<u16>(), last.parse::<u16>()) {
        (Ok(first), Ok(last)) => (first..=last).contains(&slot),
        _ => false,
    }
}

/// A slot on its way from one member to another. Unless it is finished, it stays half moved.
pub struct SlotMigration<'a> {
    cluster: &'a TestCluster,
    slot: u16,
    from: usize,
    to: usize,
}

impl SlotMigration<'_> {
    /// The keys of the slot that are still at the source, at most `limit`.
    pub fn remaining(&self, limit: usize) -> Result<Vec<Vec<u8>>> {
        let source = &self.cluster.members[self.from].server;
        let mut connection = source.connection()?;
        redis::cmd("CLUSTER")
            .arg("GETKEYSINSLOT")
            .arg(self.slot)
            .arg(limit)
            .query(&mut connection)
            .with_context(|| format!("cannot list the keys of slot {}", self.slot))
    }

    /// Moves the given key.
    pub fn move_key(&self, key: &[u8]) -> Result<()> {
        let (source, target) = (&self.cluster.members[self.from].server, &self.cluster.members[self.to].server);
        let mut connection = source.connection()?;
        redis::cmd("MIGRATE")
            .arg("127.0.0.1")
            .arg(target.port())
            .arg(key)
            .arg(0)
            .arg(5_000)
            .query::<String>(&mut connection)
            .with_context(|| format!("cannot move {}", String::from_utf8_lossy(key)))?;
        Ok(())
    }

    /// Moves one key; false if there was none.
    pub fn move_one(&self) -> Result<bool> {
        match self.remaining(1)?.first() {
            Some(key) => self.move_key(key).map(|()| true),
            None => Ok(false),
        }
    }

    /// Moves the remaining keys, assigns the slot to the target, and waits until every node knows.
    pub fn finish(self) -> Result<()> {
        while self.move_one()? {}
        let (slot, cluster) = (self.slot.to_string(), self.cluster);
        let (source, target) = (&cluster.members[self.from], &cluster.members[self.to]);
        for member in [target, source] {
            member.server.command::<String>(&["CLUSTER", "SETSLOT", &slot, "NODE", &target.id])?;
        }
        cluster.wait("the new owner to be known", |member| {
            let nodes: String = member.server.command(&["CLUSTER", "NODES"])?;
            let line = nodes.lines().find(|line| line.starts_with(&target.id)).unwrap_or_default();
            Ok(line.split_whitespace().skip(8).any(|range| covers(range, self.slot)))
        })
    }
}
