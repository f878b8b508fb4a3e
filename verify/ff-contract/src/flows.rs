//! Flows and children: what is passed, what is spawned, and how an operator sees it.

use std::collections::HashMap;

use anyhow::ensure;
use ff_core::error::ContentionKind;
use ff_core::state::Outcome;
use ff_core::types::{ExecutionId, FlowId};
use ff_sdk::snapshot::{ChildSnapshot, FlowSnapshot, FlowState, MemberState};
use ff_sdk::task::{CancelPolicy, ResumeCause};
use ff_sdk::{ChildSpec, EngineError, FlowSpec, MemberSpec, SdkError};

use crate::{LANE, Reach, SOON, next};

async fn passes(reach: &Reach) -> anyhow::Result<()> {
    let worker = reach.worker("passes").await?;
    let flow = FlowSpec::new("default", "pipeline")
        .lane(LANE)
        .member(MemberSpec::new("make", "make"))
        .member(MemberSpec::new("use", "use").takes("make", "part"));
    let submitted = reach.admin.submit_flow(flow).await?;
    next(&worker).await?.complete(Some(b"\x00\xff part".to_vec())).await?;
    let task = next(&worker).await?;
    let passed: &HashMap<String, Vec<u8>> = task.passed();
    ensure!(passed.len() == 1 && passed["part"] == b"\x00\xff part", "{passed:?}");
    let (flow_id, key): (Option<&FlowId>, Option<&str>) = (task.flow_id(), task.key());
    ensure!(flow_id == Some(&submitted.flow_id) && key == Some("use"));

    let seen: FlowSnapshot = worker.describe_flow(&submitted.flow_id).await?;
    ensure!(seen.state == FlowState::Running && seen.count(MemberState::Completed) == 1, "{seen:?}");
    task.complete(None).await?;
    let ended = reach.admin.wait_flow(&submitted.flow_id, SOON).await?;
    ensure!(ended.is_some_and(|flow| flow.state == FlowState::Completed));
    worker.disconnect().await?;
    Ok(())
}

async fn waits(reach: &Reach) -> anyhow::Result<()> {
    let worker = reach.worker("waits").await?;
    let id = reach.submit("parent", b"{}").await?;
    let task = next(&worker).await?;
    let attempt = *task.attempt_id();
    let spawned: Vec<ExecutionId> = task.spawn(vec![ChildSpec::new("child").key("a"), ChildSpec::new("child")]).await?;
    task.move_to_waiting_children().await?;
    for _ in &spawned {
        let child = next(&worker).await?;
        ensure!(child.parent_id() == Some(&id));
        let key = child.key().map(|key| key.as_bytes().to_vec());
        child.complete(key).await?;
    }
    let task = next(&worker).await?;
    ensure!(task.execution_id() == &id && task.attempt_id() == &attempt, "the same attempt goes on");
    ensure!(task.resume().map(|resume| resume.cause) == Some(ResumeCause::Children));
    let children: Vec<ChildSnapshot> = task.resume_children().await?;
    ensure!(children.iter().map(|child| child.execution_id).collect::<Vec<_>>() == spawned);
    ensure!(children.iter().all(|child| child.outcome == Some(Outcome::Success)), "{children:?}");
    ensure!(children[0].result.as_deref() == Some(b"a".as_slice()) && children[1].result.is_none());
    task.complete(None).await?;
    worker.disconnect().await?;
    Ok(())
}

async fn is_cancelled(reach: &Reach) -> anyhow::Result<()> {
    let worker = reach.worker("is-cancelled").await?;
    let flow = FlowSpec::new("default", "unwanted").lane(LANE).member(MemberSpec::new("a", "a"));
    let submitted = reach.admin.submit_flow(flow).await?;
    let task = next(&worker).await?;
    let cancelled = reach.admin.cancel_flow(&submitted.flow_id, "not wanted", CancelPolicy::CancelAll, true).await?;
    ensure!(cancelled.state == FlowState::Cancelled, "{cancelled:?}");
    match task.complete(None).await {
        Err(SdkError::Engine(error)) => match *error {
            EngineError::Contention(ContentionKind::ExecutionNotActive { terminal_outcome, .. }) => {
                ensure!(terminal_outcome == Some(Outcome::Cancelled));
            }
            other => anyhow::bail!("{other:?}"),
        },
        other => anyhow::bail!("its flow was cancelled, and yet {other:?}"),
    }
    worker.disconnect().await?;
    Ok(())
}

pub async fn run(reach: &Reach) -> anyhow::Result<()> {
    passes(reach).await?;
    waits(reach).await?;
    is_cancelled(reach).await
}
