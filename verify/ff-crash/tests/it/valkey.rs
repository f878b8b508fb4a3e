//! kill -9 of a Valkey server that flushes before it replies.

use std::time::Duration;

use anyhow::Result;
use ff_crash::check::{History, clean};
use ff_crash::journal::{Journal, Reader};
use ff_crash::load::Load;
use ff_crash::{open, rounds};
use ff_testkit::{Aof, TestServer};
use rand::Rng;
use tokio_util::sync::CancellationToken;

use crate::kit::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_under_load_loses_nothing_it_answered() -> Result<()> {
    let place = tempfile::tempdir()?;
    let path = place.path().join("journal");
    let mut server = TestServer::start(ff_testkit::Options { aof: Aof::Always, ..Default::default() })?;
    // One host for the engine and one for the load: both must find the server again by themselves.
    let engine = open::engine(open::valkey(&server.url(), None).await?).await?;
    let client = open::tool(open::valkey(&server.url(), None).await?).await?;
    let load = Load::new(client.operations().clone(), Journal::append(&path)?, "load", Duration::from_millis(3));
    let stop = CancellationToken::new();
    let mut tasks = load.start(&stop);
    let mut reader = Reader::new(&path);
    let mut history = History::default();
    let kills = rounds(3, 10, 300);
    for round in 0..kills {
        let before = history.counts();
        eventually("the load goes on", async || {
            history.read(&mut reader)?;
            let now = history.counts();
            Ok((now.0 > before.0 + 20 && now.2 > before.2 + 20).then_some(()))
        })
        .await?;
        tokio::time::sleep(Duration::from_millis(rand::rng().random_range(0..200))).await;
        server.kill_9();
        history.read(&mut reader)?;
        let down = rand::rng().random_range(0..300);
        tokio::time::sleep(Duration::from_millis(down)).await;
        tokio::task::block_in_place(|| server.restart())?;
        history.check_fresh(client.operations()).await?;
        if round < 10 || round % 5 == 0 {
            clean(client.operations()).await?;
        }
    }
    stop.cancel();
    while tasks.join_next().await.transpose()?.is_some() {}
    history.settle(&load, &mut [&mut reader], client.operations()).await?;
    let (submitted, claimed, completed) = history.counts();
    eprintln!(
        "{kills} kills: {submitted} submitted, {claimed} claimed, {completed} completed, {} refused",
        history.refused
    );
    engine.stop().await;
    client.stop().await;
    Ok(())
}
