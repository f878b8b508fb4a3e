//! A cluster under load: slots move, and primaries lose the library or die.

use std::time::Duration;

use anyhow::{Result, ensure};
use ff_backend_valkey::Durability;
use ff_crash::check::{History, clean};
use ff_crash::journal::{Journal, Reader};
use ff_crash::load::Load;
use ff_crash::{open, rounds};
use ff_engine::Engine;
use ff_script::Route;
use ff_testkit::{ClusterOptions, TestCluster};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::kit::eventually;

/// An engine and a load on a cluster, each with its own host.
struct Running {
    engine: Engine,
    client: Engine,
    load: Load,
    reader: Reader,
    history: History,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _place: TempDir,
}

impl Running {
    async fn start(cluster: &TestCluster, durability: Durability) -> Result<Running> {
        let place = tempfile::tempdir()?;
        let path = place.path().join("journal");
        let engine = open::engine(open::valkey(&cluster.url(), Some(durability)).await?).await?;
        let client = open::tool(open::valkey(&cluster.url(), Some(durability)).await?).await?;
        let load = Load::new(client.operations().clone(), Journal::append(&path)?, "load", Duration::from_millis(3));
        let stop = CancellationToken::new();
        let tasks = load.start(&stop);
        let (reader, history) = (Reader::new(&path), History::default());
        let mut running = Running { engine, client, load, reader, history, stop, tasks, _place: place };
        running.goes_on(30).await?;
        Ok(running)
    }

    /// Waits for this number of further completions.
    async fn goes_on(&mut self, more: usize) -> Result<()> {
        self.history.read(&mut self.reader)?;
        let before = self.history.counts().2;
        eventually("the load goes on", async || {
            self.history.read(&mut self.reader)?;
            Ok((self.history.counts().2 >= before + more).then_some(()))
        })
        .await
    }

    async fn check(&mut self) -> Result<()> {
        self.history.read(&mut self.reader)?;
        self.history.check_fresh(self.client.operations()).await?;
        clean(self.client.operations()).await
    }

    /// Runs until enough has happened for a result, and then lets all work end.
    async fn settle(mut self) -> Result<()> {
        eventually("enough happens", async || {
            self.history.read(&mut self.reader)?;
            let (_, claimed, completed) = self.history.counts();
            Ok((completed >= 100 && claimed > completed).then_some(()))
        })
        .await?;
        self.stop.cancel();
        while self.tasks.join_next().await.transpose()?.is_some() {}
        self.history.settle(&self.load, &mut [&mut self.reader], self.client.operations()).await?;
        let (submitted, claimed, completed) = self.history.counts();
        eprintln!("{submitted} submitted, {claimed} claimed, {completed} completed, {} refused", self.history.refused);
        self.engine.stop().await;
        self.client.stop().await;
        Ok(())
    }
}

fn slot_of(cluster: &TestCluster, route: Route) -> Result<u16> {
    cluster.members[0].server.command(&["CLUSTER", "KEYSLOT", &route.to_string()])
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_of_a_cluster_move_and_libraries_are_lost_under_load_and_nothing_else_is() -> Result<()> {
    let cluster = TestCluster::start(ClusterOptions::default())?;
    let mut running = Running::start(&cluster, Durability::Relaxed).await?;
    for round in 0..rounds(1, 3, 20) {
        let route = Route::Execution(u16::try_from(round % 16)?);
        let slot = slot_of(&cluster, route)?;
        let from = cluster.owner(slot)?;
        let to = (from + 1) % cluster.primaries().len();
        eventually("the partition is in use", async || {
            let stats = ff_script::generated::PartitionStats::default();
            let ff_script::generated::PartitionStatsReply::Stats { executions, .. } =
                running.client.operations().client().call(route, &stats).await?;
            Ok((executions > 0).then_some(()))
        })
        .await?;
        let migration = tokio::task::block_in_place(|| cluster.migrate_slot(slot, from, to))?;
        for _ in 0..5 {
            tokio::task::block_in_place(|| migration.move_one())?;
        }
        // Half moved: other partitions go on, and calls to this one wait.
        tokio::time::sleep(Duration::from_millis(700)).await;
        tokio::task::block_in_place(|| migration.finish())?;
        ensure!(cluster.owner(slot)? == to);
        running.goes_on(20).await?;
        running.check().await?;
    }
    for _ in 0..rounds(1, 5, 50) {
        for member in cluster.primaries() {
            member.server.command::<String>(&["FUNCTION", "FLUSH", "SYNC"])?;
        }
        running.goes_on(10).await?;
    }
    running.check().await?;
    running.settle().await
}

/// Replies wait for a replica, so a primary that dies loses nothing acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn primaries_of_a_cluster_die_under_load_and_nothing_answered_is_lost() -> Result<()> {
    let mut cluster = TestCluster::start(ClusterOptions { replicas_each: 1, ..Default::default() })?;
    let mut running = Running::start(&cluster, Durability::Replicated).await?;
    for round in 0..rounds(1, 2, 20) {
        let slot = slot_of(&cluster, Route::Execution(u16::try_from(round % 16)?))?;
        let victim = cluster.owner(slot)?;
        cluster.kill_9(victim);
        eventually("a replica takes over", async || {
            Ok(tokio::task::block_in_place(|| cluster.owner(slot)).ok().filter(|owner| *owner != victim))
        })
        .await?;
        // Without a replica, the new primary gets no confirmation. The dead primary returns as its replica.
        tokio::task::block_in_place(|| -> Result<()> {
            cluster.restart(victim)?;
            cluster.wait_until_ok()
        })?;
        running.goes_on(20).await?;
        running.check().await?;
    }
    running.settle().await
}
