//! Store calls of each function on the common path, next to their bounds.

use anyhow::Result;
use ff_engine::fence_of;
use ff_script::Route;
use ff_script::generated::{
    ClaimExecutions, ClaimExecutionsReply, CompleteExecution, RenewLease, Submission, SubmitExecution,
};

use super::phases::{claimant, new_execution};
use super::store::Store;

const ROUNDS: usize = 25;

/// The calls one function made, over several rounds.
#[derive(Clone, Debug)]
pub struct Cost {
    pub function: &'static str,
    pub budget: u32,
    /// Sorted.
    pub calls: Vec<u32>,
}

impl Cost {
    pub fn typical(&self) -> u32 {
        self.calls.get(self.calls.len() / 2).copied().unwrap_or_default()
    }

    pub fn most(&self) -> u32 {
        self.calls.last().copied().unwrap_or_default()
    }

    pub fn within(&self) -> bool {
        self.typical() <= self.budget
    }
}

/// Counts on one partition with waiting work, like a busy lane.
pub async fn count(store: &Store) -> Result<Vec<Cost>> {
    let client = store.client();
    let (mut submits, mut claims, mut renews, mut completes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + 5 {
        let fields = new_execution(0).fields;
        let submission = Submission { body_digest: "0".repeat(32), ..fields };
        let submit = client.call_counted(Route::Execution(0), &SubmitExecution { submission }).await?;
        // The first rounds only submit, so that work is always waiting.
        if round < 5 {
            continue;
        }
        let who = claimant("counted".to_owned());
        let call = ClaimExecutions {
            kinds: None,
            capabilities: who.capabilities,
            attempt_ids: vec![ff_core::types::AttemptId::mint()],
            lease_ids: vec![ff_core::types::LeaseId::mint()],
            instance: who.instance,
            lane: who.lane,
            lease_ttl_ms: who.lease_ttl_ms,
            max: 1,
            namespace: who.namespace,
            worker_id: who.worker_id,
        };
        let claim = client.call_counted(Route::Execution(0), &call).await?;
        let ClaimExecutionsReply::Claimed { tasks, .. } = &claim.reply else {
            anyhow::bail!("a claim returned {:?}", claim.reply);
        };
        let task = tasks.first().ok_or_else(|| anyhow::anyhow!("nothing was claimed"))?;
        let (execution_id, fence) = (task.execution_id, fence_of(task));
        let renew = RenewLease { execution_id, fence, lease_ttl_ms: None };
        let renew = client.call_counted(Route::Execution(0), &renew).await?;
        let complete = CompleteExecution { execution_id, fence, result: None, result_encoding: None };
        let complete = client.call_counted(Route::Execution(0), &complete).await?;
        submits.push(submit.calls);
        claims.push(claim.calls);
        renews.push(renew.calls);
        completes.push(complete.calls);
    }
    let cost = |function, budget, mut calls: Vec<u32>| {
        calls.sort_unstable();
        Cost { function, budget, calls }
    };
    Ok(vec![
        cost("submit", 9, submits),
        cost("claim", 11, claims),
        cost("renew", 4, renews),
        cost("complete", 8, completes),
    ])
}
