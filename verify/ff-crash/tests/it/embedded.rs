//! kill -9 of a process with an embedded store.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::{Result, ensure};
use ff_crash::check::{History, clean};
use ff_crash::journal::{Journal, Reader};
use ff_crash::load::Load;
use ff_crash::{open, rounds};
use rand::Rng;

use crate::kit::{Process, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_moment_loses_nothing_it_answered() -> Result<()> {
    let place = tempfile::tempdir()?;
    let (store, path) = (place.path().join("store"), place.path().join("journal"));
    let mut reader = Reader::new(&path);
    let mut history = History::default();
    let kills = rounds(4, 20, 300);
    for round in 0..kills {
        let mut child = Process::start(&[OsStr::new("embedded"), store.as_os_str(), path.as_os_str()])?;
        let early = round % 4 == 3;
        if !early {
            let before = history.counts();
            eventually("the child works", async || {
                ensure!(child.is_running()?, "the child ended by itself in round {round}");
                history.read(&mut reader)?;
                let now = history.counts();
                Ok((now.0 > before.0 + 20 && now.2 > before.2 + 20).then_some(()))
            })
            .await?;
        }
        // Sometimes while it opens the store, otherwise during its work.
        let moment = rand::rng().random_range(0..if early { 60 } else { 300 });
        tokio::time::sleep(Duration::from_millis(moment)).await;
        child.kill_9()?;
        history.read(&mut reader)?;
        reader.forget_torn_line()?;

        let host = open::embedded(&store)?;
        let tool = open::tool(host.clone()).await?;
        history.check_fresh(tool.operations()).await?;
        // A full check takes longer in every round.
        if round < 10 || round % 5 == 0 {
            clean(tool.operations()).await?;
        }
        tool.stop().await;
        host.close().await;
    }

    let host = open::embedded(&store)?;
    let engine = open::engine(host.clone()).await?;
    let load = Load::new(engine.operations().clone(), Journal::append(&path)?, "finisher", Duration::from_millis(5));
    history.settle(&load, &mut [&mut reader], engine.operations()).await?;
    engine.stop().await;
    host.close().await;
    let (submitted, claimed, completed) = history.counts();
    eprintln!(
        "{kills} kills: {submitted} submitted, {claimed} claimed, {completed} completed, {} refused",
        history.refused
    );
    Ok(())
}
