//! Children: a running task spawns them, waits for them without a worker, and anyone may list them.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use ff_api::children::{
    Child, SpawnChildren, Spawned, SpawnedChild, WaitChildrenBody, WaitForChildren, WaitedForChildren,
};
use ff_api::tasks::SpawnBody;
use ff_core::types::{ExecutionId, SuspensionId};
use ff_engine::{NewChild, child_id};
use ff_script::generated::{self, Fence, Submission, Task, WaitChildrenReply};
use ff_script::wire::Wire;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::submit::trace_of;
use super::suspend::{request_of, settled};
use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::{BATCH, Body};
use crate::openapi::Described;
use crate::problem::{Answer, Problem};

/// Children of one request.
const SPAWN_MAX: usize = 1_000;
const PAGE: i64 = 1_000;
/// How many bytes of results one answer carries; whoever needs the others reads them apart.
const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

pub fn routes() -> Described {
    Described::new().serving::<SpawnChildren, _>(spawn).serving::<WaitForChildren, _>(wait)
}

async fn spawn(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    headers: HeaderMap,
    Body(body): Body<SpawnBody, BATCH>,
) -> JsonAnswer<Spawned> {
    let count = body.children.len();
    if !(1..=SPAWN_MAX).contains(&count) {
        return Err(Problem::invalid("children", format!("must hold 1 to {SPAWN_MAX} items, got {count}")));
    }
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let parent = app.operations.describe(id).await.map_err(|error| Problem::from(error).about(id))?;
    let nil = || ExecutionId::from_uuid(Uuid::nil());
    // A child belongs to the trace of the attempt that spawns it, or at least to that of its parent.
    let trace = trace_of(&headers).or(parent.trace_parent);
    let mut children = Vec::with_capacity(count);
    for (at, mut child) in body.children.into_iter().enumerate() {
        let (kind, key, parent_close) = (std::mem::take(&mut child.kind), child.key.take(), child.parent_close);
        let mut fields = child.submission(&format!("children[{at}]."), kind, nil, &parent.namespace, &parent.lane)?;
        fields.trace_parent = fields.trace_parent.or_else(|| trace.clone());
        app.check_submission(&caller, &fields).await?;
        children.push(NewChild { fields, key, parent_close });
    }
    let fence = body.fence;
    let request = request_of(body.request_id.as_deref()).unwrap_or_else(|| request_under(&fence, &children));
    for (at, child) in children.iter_mut().enumerate() {
        if child.fields.execution_id.as_uuid().is_nil() {
            child.fields.execution_id = child_id(id, request, at);
        }
    }
    let spawned = app.operations.spawn(id, &fence, children).await.map_err(Problem::from);
    let spawned = settled(&app, id, body.fence, spawned, false)?;
    let shown = |one: ff_engine::Spawned| SpawnedChild { execution_id: one.execution_id, duplicate: one.duplicate };
    Ok(Json(Spawned { children: spawned.into_iter().map(shown).collect() }))
}

/// The request that these children under this fence are.
fn request_under(fence: &Fence, children: &[NewChild]) -> Uuid {
    let mut bytes = Vec::new();
    fence.write(&mut bytes);
    for child in children {
        // Where a trace came from does not make it another request.
        Submission { trace_parent: None, ..child.fields.clone() }.write(&mut bytes);
        bytes.extend_from_slice(child.key.as_deref().unwrap_or_default().as_bytes());
        bytes.push(0);
    }
    let mut id = [0; 16];
    id.copy_from_slice(&Sha256::digest(&bytes)[..16]);
    uuid::Builder::from_custom_bytes(id).into_uuid()
}

async fn wait(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<WaitChildrenBody>,
) -> JsonAnswer<WaitedForChildren> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let wait_id = SuspensionId::from_uuid(request_of(body.request_id.as_deref()).unwrap_or_else(Uuid::now_v7));
    let reply =
        app.operations.wait_children(id, body.fence, wait_id, body.aside == Some(true)).await.map_err(Problem::from);
    let lets_go = matches!(reply, Ok(WaitChildrenReply::Waiting { .. }));
    Ok(Json(match settled(&app, id, body.fence, reply, lets_go)? {
        WaitChildrenReply::Waiting { open } => WaitedForChildren::Waiting { open },
        WaitChildrenReply::Ended { mut children, more } => {
            let more_children = more && read_on(&app, id, &mut children).await?;
            WaitedForChildren::Ended { children: children.into_iter().map(Child::from).collect(), more_children }
        }
    }))
}

/// Brings the outcomes a claim left out, as far as they fit into an answer.
pub async fn complete_children(app: &App, task: &mut Task) -> Answer<()> {
    let id = task.execution_id;
    if let Some(resume) = task.resume.as_mut().filter(|resume| resume.more_children == Some(true)) {
        resume.more_children = Some(read_on(app, id, resume.children.get_or_insert_default()).await?);
    }
    Ok(())
}

/// Reads the children behind those given; true when some did not fit.
async fn read_on(app: &App, id: ExecutionId, children: &mut Vec<generated::Child>) -> Answer<bool> {
    let size = |children: &[generated::Child]| -> usize {
        children.iter().filter_map(|child| child.result.as_ref()).map(|result| result.0.len()).sum()
    };
    let mut bytes = size(children);
    let mut from = children.last().map(|child| child.number + 1);
    while bytes <= RESULT_BYTES_MAX {
        let (page, next) = app.operations.children(id, from, PAGE).await?;
        bytes += size(&page);
        children.extend(page);
        if next.is_none() {
            return Ok(false);
        }
        from = next;
    }
    Ok(true)
}
