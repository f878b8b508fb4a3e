//! Store calls of each function in a wait and in writing frames.

use anyhow::{Context, Result};
use ff_core::types::{AttemptId, LeaseId, SignalId, SuspensionId, WaitpointId};
use ff_engine::fence_of;
use ff_script::generated::{
    AppendFrames, ClaimExecutions, ClaimExecutionsReply, CloseWaitpoint, CreateWaitpoint, DeliverSignal,
    DeliverSignalReply, FollowStream, NewWaitpoint, ReadStream, SuspendExecution, SuspensionReason, TimeoutBehavior,
    Token,
};
use uuid::Uuid;

use super::super::phases::{LANE, NAMESPACE};
use super::frames::{BATCH, frames};
use super::world::{LEASE_TTL_MS, World};
use ff_testkit::Tasks;

const ROUNDS: usize = 11;

/// The calls one function made, over several rounds.
pub struct Calls {
    pub function: &'static str,
    /// Sorted.
    pub calls: Vec<u32>,
}

impl Calls {
    pub fn typical(&self) -> u32 {
        self.calls.get(self.calls.len() / 2).copied().unwrap_or_default()
    }

    pub fn most(&self) -> u32 {
        self.calls.last().copied().unwrap_or_default()
    }
}

fn waitpoint(seed: u16, key: &str) -> NewWaitpoint {
    let waitpoint_id = WaitpointId::mint_with_seed(seed);
    let token = Token { approver: None, digest: waitpoint_id.as_uuid().simple().to_string().repeat(2) };
    NewWaitpoint::new(waitpoint_id, key.to_owned(), vec![token])
}

/// Runs one execution through a wait and a few frames, several times.
pub async fn count(world: &World) -> Result<Vec<Calls>> {
    let mut all: Vec<Calls> = Vec::new();
    let mut note = |function: &'static str, count: u32| match all.iter_mut().find(|calls| calls.function == function) {
        Some(calls) => calls.calls.push(count),
        None => all.push(Calls { function, calls: vec![count] }),
    };
    let client = world.operations().client();
    for _ in 0..ROUNDS {
        let task = world.task(None).await?;
        let (id, fence, seed) = (task.execution_id, fence_of(&task), task.execution_id.seed());
        let route = client.route_of(&id);

        let early = waitpoint(seed, "early");
        let waitpoint_id = early.waitpoint_id;
        let create = CreateWaitpoint::new(id, fence, early);
        note("create waitpoint", client.call_counted(route, &create).await?.calls);
        let close = CloseWaitpoint { execution_id: id, fence, waitpoint_id };
        note("close waitpoint", client.call_counted(route, &close).await?.calls);
        for (name, count) in [("append 1, first", 1), ("append 1", 1), ("append 16", BATCH)] {
            let append =
                AppendFrames { request_id: Some(Uuid::now_v7()), ..AppendFrames::new(id, fence, frames(count)) };
            note(name, client.call_counted(route, &append).await?.calls);
        }
        let read = ReadStream { attempt_index: Some(0), ..ReadStream::new(id, 100) };
        note("read 18 frames", client.call_counted(route, &read).await?.calls);
        note("follow", client.call_counted(route, &FollowStream { execution_id: id }).await?.calls);

        let open = waitpoint(seed, "approval");
        let suspend = SuspendExecution {
            timeout_ms: Some(60_000),
            ..SuspendExecution::new(
                Vec::new(),
                id,
                fence,
                SuspensionReason::WaitingForSignal,
                SuspensionId::mint(),
                TimeoutBehavior::Fail,
                vec![open.clone()],
            )
        };
        note("suspend", client.call_counted(route, &suspend).await?.calls);
        let signal = DeliverSignal {
            payload: Some(vec![b'x'; 256].into()),
            ..DeliverSignal::new(
                id,
                "approved".to_owned(),
                SignalId::mint(),
                open.tokens[0].digest.clone(),
                open.waitpoint_id,
            )
        };
        let signalled = client.call_counted(route, &signal).await?;
        let resumed = matches!(signalled.reply, DeliverSignalReply::TriggeredResume { .. });
        anyhow::ensure!(resumed, "a signal returned {:?}", signalled.reply);
        note("signal that resumes", signalled.calls);

        let claim = ClaimExecutions {
            kinds: None,
            capabilities: Vec::new(),
            attempt_ids: vec![AttemptId::mint()],
            lease_ids: vec![LeaseId::mint()],
            instance: "counted".to_owned(),
            lane: LANE.to_owned(),
            lease_ttl_ms: LEASE_TTL_MS,
            max: 1,
            namespace: NAMESPACE.to_owned(),
            worker_id: "bench".to_owned(),
        };
        let claimed = client.call_counted(route, &claim).await?;
        note("claim that continues", claimed.calls);
        let ClaimExecutionsReply::Claimed { tasks, .. } = claimed.reply else {
            anyhow::bail!("a claim returned {:?}", claimed.reply);
        };
        let task = tasks.first().context("nothing was claimed")?;
        world.operations().client().complete(id, fence_of(task), None).await?;
    }
    all.iter_mut().for_each(|calls| calls.calls.sort_unstable());
    Ok(all)
}
