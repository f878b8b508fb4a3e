//! Compares a store with a journal: what was acknowledged is true, nothing happened twice, and no invariant is broken.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ff_core::state::{LifecyclePhase, PublicState};
use ff_core::types::ExecutionId;
use ff_engine::{Fsck, Operations};
use ff_script::generated::Execution;
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio_util::sync::CancellationToken;

use crate::journal::{Entry, Reader};
use crate::load::{Load, input_of, result_of};

const AT_ONCE: usize = 16;

/// Everything acknowledged so far, to any caller.
#[derive(Default)]
pub struct History {
    submitted: BTreeSet<ExecutionId>,
    cancelled: BTreeSet<ExecutionId>,
    /// Epoch of each claimed attempt.
    claimed: BTreeMap<ExecutionId, BTreeMap<i64, i64>>,
    completed: BTreeMap<ExecutionId, i64>,
    /// Number of refusals because a lease had ended.
    pub refused: usize,
    /// Executions touched since the last check.
    fresh: BTreeSet<ExecutionId>,
}

impl History {
    /// Reads the new entries of a journal. Two contradicting entries are an error.
    pub fn read(&mut self, reader: &mut Reader) -> Result<()> {
        for entry in reader.fresh()? {
            match entry {
                Entry::Submitted(id) => {
                    self.submitted.insert(id);
                    self.fresh.insert(id);
                }
                Entry::Cancelled(id) => {
                    ensure!(!self.completed.contains_key(&id), "{id} was cancelled after it had completed");
                    self.cancelled.insert(id);
                    self.fresh.insert(id);
                }
                Entry::Claimed { id, attempt, epoch } => {
                    let attempts = self.claimed.entry(id).or_default();
                    let earlier = attempts.range(..attempt).next_back().map(|(_, epoch)| *epoch);
                    let later = attempts.range(attempt + 1..).next().map(|(_, epoch)| *epoch);
                    ensure!(
                        earlier.is_none_or(|earlier| earlier < epoch),
                        "{id}: epoch {epoch} of attempt {attempt} is not above {earlier:?}"
                    );
                    ensure!(
                        later.is_none_or(|later| later > epoch),
                        "{id}: epoch {epoch} of attempt {attempt} is not below {later:?}"
                    );
                    let twice = attempts.insert(attempt, epoch);
                    ensure!(twice.is_none(), "{id}: attempt {attempt} was given out twice, as {twice:?} and {epoch}");
                }
                Entry::Completed { id, epoch } => {
                    let twice = self.completed.insert(id, epoch);
                    ensure!(twice.is_none(), "{id} was completed twice, by {twice:?} and {epoch}");
                    ensure!(!self.cancelled.contains(&id), "{id} completed after it had been cancelled");
                    self.fresh.insert(id);
                }
                Entry::Refused { .. } => self.refused += 1,
                Entry::Broken(text) => bail!("a caller got: {text}"),
                Entry::Note(_) => {}
            }
        }
        Ok(())
    }

    /// The numbers of acknowledged submissions, claims and completions.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.submitted.len(), self.claimed.values().map(BTreeMap::len).sum(), self.completed.len())
    }

    /// Checks everything acknowledged since the last check.
    pub async fn check_fresh(&mut self, operations: &Operations) -> Result<()> {
        let fresh: Vec<ExecutionId> = std::mem::take(&mut self.fresh).into_iter().collect();
        self.check(operations, &fresh).await
    }

    /// Checks everything ever acknowledged.
    pub async fn check_all(&self, operations: &Operations) -> Result<()> {
        let all: Vec<ExecutionId> =
            self.submitted.iter().chain(self.completed.keys()).copied().collect::<BTreeSet<_>>().into_iter().collect();
        self.check(operations, &all).await
    }

    async fn check(&self, operations: &Operations, ids: &[ExecutionId]) -> Result<()> {
        stream::iter(ids)
            .map(|id| async move {
                let execution =
                    operations.describe(*id).await.with_context(|| format!("{id} was accepted and is gone"))?;
                self.check_one(&execution)
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }

    fn check_one(&self, execution: &Execution) -> Result<()> {
        let id = execution.execution_id;
        ensure!(execution.input.0 == input_of(id), "{id} holds other bytes than were sent");
        if let Some(epoch) = self.completed.get(&id) {
            ensure!(execution.state == PublicState::Completed, "{id} was completed and is {}", execution.state);
            let result = execution.result.as_ref().map(|bytes| bytes.0.as_slice());
            ensure!(result == Some(&result_of(id, *epoch)), "{id} was completed by {epoch} and has another result");
            let last = execution.attempts.last().context("a completed execution has an attempt")?;
            ensure!(
                last.lease_epoch == *epoch,
                "{id} was completed by {epoch}, its last attempt is {}",
                last.lease_epoch
            );
        }
        if self.cancelled.contains(&id) {
            ensure!(execution.state == PublicState::Cancelled, "{id} was cancelled and is {}", execution.state);
        }
        for (attempt, epoch) in self.claimed.get(&id).into_iter().flatten() {
            if let Some(stored) = execution.attempts.iter().find(|stored| stored.index == *attempt) {
                ensure!(
                    stored.lease_epoch == *epoch,
                    "{id}: attempt {attempt} was given {epoch}, stored is {}",
                    stored.lease_epoch
                );
            } else {
                ensure!(
                    *attempt < execution.attempts_spilled,
                    "{id}: attempt {attempt} was given out and is not stored"
                );
            }
        }
        Ok(())
    }

    /// Lets workers finish the rest, and checks everything: each accepted submission has one outcome, and its events
    /// are consistent. The remaining work must keep decreasing; only a hang reaches the time limit.
    pub async fn settle(&mut self, load: &Load, readers: &mut [&mut Reader], operations: &Operations) -> Result<()> {
        let limit = Duration::from_secs(180);
        let stop = CancellationToken::new();
        let mut workers = load.finish(&stop);
        let (mut least, mut since) = (i64::MAX, Instant::now());
        loop {
            let mut open = 0;
            for counts in operations.stats().await? {
                let ff_script::generated::PartitionStatsReply::Stats { lanes, executions, .. } = counts.stats;
                open += executions - lanes.iter().map(|lane| lane.terminal).sum::<i64>();
            }
            if open == 0 {
                break;
            }
            if open < least {
                (least, since) = (open, Instant::now());
            }
            ensure!(since.elapsed() < limit, "{open} executions have not ended, and none did within {limit:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        stop.cancel();
        while workers.join_next().await.transpose()?.is_some() {}
        for reader in readers {
            self.read(reader)?;
        }
        self.check_all(operations).await?;
        clean(operations).await?;
        self.check_events(operations).await
    }

    /// Each execution has one submission and one end in its events, and as many starts as attempts.
    async fn check_events(&self, operations: &Operations) -> Result<()> {
        let mut stories: BTreeMap<ExecutionId, BTreeMap<String, usize>> = BTreeMap::new();
        for route in operations.client().execution_routes() {
            let mut after: Option<String> = None;
            loop {
                let items = operations.client().events(route, after.as_deref(), 1_000).await?;
                let Some(last) = items.last() else { break };
                after = Some(last.id.clone());
                for event in &items {
                    if let Some(id) = event.execution_id {
                        *stories.entry(id).or_default().entry(event.r#type.clone()).or_default() += 1;
                    }
                }
            }
        }
        for id in &self.submitted {
            let story = stories.get(id).with_context(|| format!("{id} was accepted and has no events"))?;
            let count = |kind: &str| story.get(kind).copied().unwrap_or(0);
            let ends = ["completed", "failed", "cancelled", "expired", "skipped"]
                .map(|end| count(&format!("execution.{end}")));
            ensure!(count("execution.submitted") == 1, "{id} was submitted {} times", count("execution.submitted"));
            ensure!(ends.iter().sum::<usize>() == 1, "{id} ended {} times: {story:?}", ends.iter().sum::<usize>());
            let execution = operations.describe(*id).await?;
            ensure!(execution.phase == LifecyclePhase::Terminal, "{id} has not ended");
            let attempts = usize::try_from(execution.attempts_spilled)? + execution.attempts.len();
            ensure!(count("execution.started") == attempts, "{id} has {attempts} attempts: {story:?}");
        }
        Ok(())
    }
}

/// Fails with every broken invariant of the store.
pub async fn clean(operations: &Operations) -> Result<()> {
    let report = Fsck::run(operations.client(), false).await?;
    let mut lines: Vec<String> = report
        .findings
        .iter()
        .map(|finding| format!("{} {}: {}", finding.invariant, finding.key.0.escape_ascii(), finding.problem))
        .collect();
    lines.extend(report.foreign.iter().map(|key| format!("foreign {key}")));
    ensure!(lines.is_empty(), "broken invariants:\n{}", lines.join("\n"));
    Ok(())
}
