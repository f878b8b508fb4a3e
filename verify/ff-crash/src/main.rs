//! The process that tests kill or stop, or start on damaged files.
//!
//! `embedded DIRECTORY JOURNAL`: an engine and a load on an embedded store, until killed.
//! `worker URL JOURNAL INSTANCE GO`: claims one execution, waits until the file GO exists, and completes it.
//! `probe DIRECTORY`: opens a store that may be damaged, and reads and writes everywhere in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ff_crash::journal::{Entry, Journal};
use ff_crash::load::{LEASE_MS, Load, result_of};
use ff_crash::open;
use ff_engine::{Claimant, ExecutionFilter, Fsck, NewExecution, fence_of};
use ff_script::Error;
use ff_testkit::Tasks;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let mut next = |what: &str| words.next().with_context(|| format!("{what} is missing"));
    match next("what to do")?.as_str() {
        "embedded" => embedded(Path::new(&next("DIRECTORY")?), Path::new(&next("JOURNAL")?)).await,
        "worker" => {
            let (url, journal) = (next("URL")?, next("JOURNAL")?);
            let (instance, go) = (next("INSTANCE")?, next("GO")?);
            worker(&url, Path::new(&journal), instance, &PathBuf::from(go)).await
        }
        "probe" => {
            match probe(Path::new(&next("DIRECTORY")?)).await {
                Ok(said) => println!("{said}"),
                Err(error) => println!("error: {error:#}"),
            }
            Ok(())
        }
        other => bail!("{other:?} is not a command of this process"),
    }
}

async fn embedded(directory: &Path, journal: &Path) -> Result<()> {
    let journal = Journal::append(journal)?;
    let engine = open::engine(open::embedded(directory)?).await?;
    let name = format!("p{}", std::process::id());
    let load = Load::new(engine.operations().clone(), journal, &name, Duration::from_millis(5));
    let mut tasks = load.start(&CancellationToken::new());
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(())
}

async fn worker(url: &str, journal: &Path, instance: String, go: &Path) -> Result<()> {
    let journal = Journal::append(journal)?;
    let tool = open::tool(open::valkey(url, Some(ff_backend_valkey::Durability::None)).await?).await?;
    let operations = tool.operations();
    let who = Claimant {
        namespace: "default".to_owned(),
        lane: "one".to_owned(),
        worker_id: "crash".to_owned(),
        instance,
        kinds: None,
        capabilities: Vec::new(),
        lease_ttl_ms: LEASE_MS,
    };
    let task = 'found: loop {
        for route in operations.client().execution_routes() {
            let claimed = operations.claim(route, &who, 1, Uuid::now_v7()).await?;
            if let Some(task) = claimed.tasks.into_iter().next() {
                break 'found task;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let (id, epoch) = (task.execution_id, task.lease_epoch);
    journal.write(&Entry::Claimed { id, attempt: task.attempt_index, epoch });
    while !go.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    match operations.client().complete(id, fence_of(&task), Some(result_of(id, epoch))).await {
        Ok(_) => journal.write(&Entry::Completed { id, epoch }),
        Err(Error::Engine(error)) => journal.write(&Entry::Refused { id, epoch, code: error.code().to_owned() }),
        Err(error) => journal.write(&Entry::Broken(error.to_string())),
    }
    Ok(())
}

/// Returns what it found: `sound`, findings, or the first error.
async fn probe(directory: &Path) -> Result<String> {
    let host = open::embedded(directory)?;
    let tool = open::tool(host.clone()).await?;
    let operations = tool.operations();
    let (mut seen, mut after) = (0, None);
    loop {
        let page = operations.list(&ExecutionFilter::default(), after, 50).await?;
        for item in &page.items {
            let execution = operations.describe(item.execution_id).await?;
            let last = execution.attempts.last().map(|attempt| attempt.lease_epoch);
            if let (Some(result), Some(epoch)) = (&execution.result, last)
                && result.0 != result_of(item.execution_id, epoch)
            {
                bail!("{} has another result than it was given", item.execution_id);
            }
            if execution.input.0 != ff_crash::load::input_of(item.execution_id) {
                bail!("{} has another input than it was given", item.execution_id);
            }
            seen += 1;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut new = NewExecution::new("default", "one", "probe");
    new.fields.input = Some(ff_crash::load::input_of(new.fields.execution_id).into());
    operations.submit(new).await?;
    let report = Fsck::run(operations.client(), true).await?;
    tool.stop().await;
    host.close().await;
    Ok(if report.is_clean() { format!("sound {seen}") } else { format!("findings {}", report.findings.len()) })
}
