//! A worker that is stopped past the end of its lease and continues.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use ff_core::state::PublicState;
use ff_core::types::ExecutionId;
use ff_crash::check::clean;
use ff_crash::journal::{Entry, Reader};
use ff_crash::load::{input_of, result_of};
use ff_crash::open;
use ff_engine::{NewExecution, Operations};
use ff_testkit::TestServer;

use crate::kit::{Process, eventually};

fn worker(url: &str, journal: &Path, instance: &str, go: &Path) -> Result<Process> {
    Process::start(&[OsStr::new("worker"), OsStr::new(url), journal.as_os_str(), OsStr::new(instance), go.as_os_str()])
}

/// The epoch with which the journal's worker claimed the execution.
async fn claimed(reader: &mut Reader, expected: ExecutionId) -> Result<i64> {
    eventually("the worker claims", async || match reader.fresh()?.first() {
        Some(Entry::Claimed { id, epoch, .. }) if *id == expected => Ok(Some(*epoch)),
        Some(other) => anyhow::bail!("{other:?}"),
        None => Ok(None),
    })
    .await
}

async fn answer(reader: &mut Reader) -> Result<Entry> {
    eventually("the worker gets a reply", async || Ok(reader.fresh()?.into_iter().next())).await
}

async fn is(operations: &Operations, id: ExecutionId, state: PublicState) -> Result<()> {
    eventually(&format!("{id} is {state}"), async || Ok((operations.describe(id).await?.state == state).then_some(())))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_worker_that_comes_back_cannot_complete() -> Result<()> {
    let place = tempfile::tempdir()?;
    let server = TestServer::start(ff_testkit::Options::default())?;
    let engine = open::engine(open::valkey(&server.url(), None).await?).await?;
    let operations = engine.operations();
    for (round, back_before_the_other) in [(0, false), (1, true)] {
        let mut new = NewExecution::new("default", "one", "crash");
        let id = new.fields.execution_id;
        new.fields.input = Some(input_of(id).into());
        operations.submit(new).await?;
        let file = |name: &str| place.path().join(format!("{name}-{round}"));
        let (go_one, go_two) = (file("go-one"), file("go-two"));

        let zombie = worker(&server.url(), &file("one"), "zombie", &go_one)?;
        let mut of_zombie = Reader::new(&file("one"));
        let first = claimed(&mut of_zombie, id).await?;
        zombie.signal("STOP")?;
        is(operations, id, PublicState::Waiting).await?;

        let wake = async |of_zombie: &mut Reader| -> Result<Entry> {
            std::fs::write(&go_one, "")?;
            zombie.signal("CONT")?;
            answer(of_zombie).await
        };
        let mut refused = None;
        if back_before_the_other {
            refused = Some(wake(&mut of_zombie).await?);
        }
        let _other = worker(&server.url(), &file("two"), "other", &go_two)?;
        let mut of_other = Reader::new(&file("two"));
        let second = claimed(&mut of_other, id).await?;
        ensure!(second > first, "the epoch rises: {first}, {second}");
        if !back_before_the_other {
            refused = Some(wake(&mut of_zombie).await?);
        }
        let code = if back_before_the_other { "lease_expired" } else { "stale_lease" };
        assert_eq!(refused, Some(Entry::Refused { id, epoch: first, code: code.to_owned() }));
        std::fs::write(&go_two, "")?;
        // The lease may have expired during the check of the zombie. Then no worker has completed the execution, and
        // the next one does.
        match answer(&mut of_other).await? {
            Entry::Completed { epoch, .. } => ensure!(epoch == second),
            other => anyhow::bail!("the other worker's call returned {other:?}"),
        }
        let execution = operations.describe(id).await?;
        assert_eq!(execution.state, PublicState::Completed);
        assert_eq!(execution.result.context("it has a result")?.0, result_of(id, second));
        assert_eq!(execution.attempts.len(), 2);
    }
    engine.stop().await;
    let tool = open::tool(open::valkey(&server.url(), None).await?).await?;
    clean(tool.operations()).await
}
