//! A test of the check itself: it notices every journal entry that is not true of the store.

use anyhow::Result;
use ff_core::types::ExecutionId;
use ff_crash::check::History;
use ff_crash::journal::{Entry, Journal, Reader};
use ff_crash::load::{input_of, result_of};
use ff_crash::open;
use ff_engine::{Claimant, NewExecution, Operations, fence_of};
use ff_testkit::Tasks;
use uuid::Uuid;

/// A store with one completed execution, and the matching journal entries.
async fn truth(operations: &Operations) -> Result<(ExecutionId, Vec<Entry>)> {
    let mut new = NewExecution::new("default", "one", "judged");
    let id = new.fields.execution_id;
    new.fields.input = Some(input_of(id).into());
    operations.submit(new).await?;
    let who = Claimant {
        namespace: "default".to_owned(),
        lane: "one".to_owned(),
        worker_id: "crash".to_owned(),
        instance: "w".to_owned(),
        kinds: None,
        capabilities: Vec::new(),
        lease_ttl_ms: 60_000,
    };
    let route = operations.client().route_of(&id);
    let task = operations.claim(route, &who, 1, Uuid::now_v7()).await?.tasks.remove(0);
    let epoch = task.lease_epoch;
    operations.client().complete(id, fence_of(&task), Some(result_of(id, epoch))).await?;
    Ok((id, vec![Entry::Submitted(id), Entry::Claimed { id, attempt: 0, epoch }, Entry::Completed { id, epoch }]))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_lie_is_noticed() -> Result<()> {
    let place = tempfile::tempdir()?;
    let host = open::embedded(&place.path().join("store"))?;
    let tool = open::tool(host.clone()).await?;
    let (id, truth) = truth(tool.operations()).await?;
    let Entry::Claimed { epoch, .. } = truth[1] else { unreachable!("the second entry is the claim") };
    let lies: Vec<(&str, Vec<Entry>)> = vec![
        ("", vec![]),
        ("is gone", vec![Entry::Submitted(ExecutionId::mint())]),
        ("is gone", vec![Entry::Completed { id: ExecutionId::mint(), epoch }]),
        ("completed twice", vec![Entry::Completed { id, epoch: epoch + 1 }]),
        ("cancelled after it had completed", vec![Entry::Cancelled(id)]),
        ("given out twice", vec![Entry::Claimed { id, attempt: 0, epoch: epoch + 1 }]),
        ("is not above", vec![Entry::Claimed { id, attempt: 1, epoch }]),
        ("given out and is not stored", vec![Entry::Claimed { id, attempt: 1, epoch: epoch + 1 }]),
        ("function not found", vec![Entry::Broken("claim: function not found".to_owned())]),
    ];
    for (n, (expected, lie)) in lies.into_iter().enumerate() {
        let path = place.path().join(format!("journal-{n}"));
        let journal = Journal::append(&path)?;
        truth.iter().chain(&lie).for_each(|entry| journal.write(entry));
        let mut history = History::default();
        let judged = match history.read(&mut Reader::new(&path)) {
            Ok(()) => history.check_all(tool.operations()).await,
            refused => refused,
        };
        match judged {
            Ok(()) => assert_eq!(expected, "", "{lie:?} was not noticed"),
            Err(error) => {
                assert!(!expected.is_empty() && format!("{error:#}").contains(expected), "{lie:?}: {error:#}")
            }
        }
    }
    tool.stop().await;
    host.close().await;
    Ok(())
}

#[test]
fn a_line_cut_short_by_a_kill_is_left_out() -> Result<()> {
    let place = tempfile::tempdir()?;
    let path = place.path().join("journal");
    let (one, two) = (Entry::Submitted(ExecutionId::mint()), Entry::Cancelled(ExecutionId::mint()));
    Journal::append(&path)?.write(&one);
    let mut torn = std::fs::read(&path)?;
    torn.extend_from_slice(b"submitted 01a1e");
    std::fs::write(&path, torn)?;
    let mut reader = Reader::new(&path);
    assert_eq!(reader.fresh()?, [one]);
    reader.forget_torn_line()?;
    Journal::append(&path)?.write(&two);
    assert_eq!(reader.fresh()?, [two]);
    Ok(())
}
