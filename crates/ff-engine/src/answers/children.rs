//! Children that a running task spawns and waits for.

use ff_api::children::{Child, SpawnChildren, Spawned, SpawnedChild, WaitForChildren, WaitedForChildren};
use ff_api::steps::check_name;
use ff_api::tasks::ChildBody;
use ff_api::{Ask, Problem};
use ff_core::types::{ExecutionId, SuspensionId};
use ff_script::generated::{self, Fence, Submission, Task, WaitChildrenReply};
use ff_script::wire::Wire;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{about, request_id_of};
use crate::operations::{NewChild, child_id};
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// The most children of one request.
const SPAWN_MAX: usize = 1_000;
const PAGE: i64 = 1_000;
/// How many bytes of results one answer carries. A caller reads the others page by page.
const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What children inherit where they name nothing themselves.
#[derive(Default)]
struct Inherited {
    namespace: String,
    lane: String,
    trace_parent: Option<String>,
}

impl Handle<SpawnChildren> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<SpawnChildren>) -> Result<Spawned, Problem> {
        let Ask { at: id, body, .. } = ask;
        let count = body.children.len();
        if !(1..=SPAWN_MAX).contains(&count) {
            return Err(Problem::invalid("children", format!("must hold 1 to {SPAWN_MAX} items, got {count}")));
        }
        let (fence, request_id, children, step) = (body.fence, body.request_id, body.children, body.step);
        step.as_deref().map_or(Ok(()), |step| check_name("step", step))?;
        let spawning = async {
            let inherited = self.inherited_from(id, &children).await?;
            let mut new = Vec::with_capacity(count);
            for (at, child) in children.into_iter().enumerate() {
                let child = new_child(child, &format!("children[{at}]."), &inherited)?;
                self.check_submission(by, &child.fields).await?;
                new.push(child);
            }
            let request = request_id_of(request_id.as_deref()).unwrap_or_else(|| request_under(&fence, &new));
            for (at, child) in new.iter_mut().enumerate() {
                if child.fields.execution_id.as_uuid().is_nil() {
                    child.fields.execution_id = child_id(id, request, at);
                }
            }
            self.operations.spawn(id, &fence, new, step.as_deref()).await.map_err(about(id))
        };
        let spawned = self.fenced(by, id, fence, |_| false, spawning).await?;
        let shown =
            spawned.into_iter().map(|one| SpawnedChild { execution_id: one.execution_id, duplicate: one.duplicate });
        Ok(Spawned { children: shown.collect() })
    }
}

impl Handle<WaitForChildren> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<WaitForChildren>) -> Result<WaitedForChildren, Problem> {
        let Ask { at: id, body, .. } = ask;
        let wait_id = request_id_of(body.request_id.as_deref()).unwrap_or_else(Uuid::now_v7);
        let (wait_id, aside) = (SuspensionId::from_uuid(wait_id), body.aside == Some(true));
        let step = body.step.as_deref();
        step.map_or(Ok(()), |step| check_name("step", step))?;
        let waiting =
            async { self.operations.wait_children(id, body.fence, wait_id, aside, step).await.map_err(about(id)) };
        let is_waiting = |reply: &WaitChildrenReply| matches!(reply, WaitChildrenReply::Waiting { .. });
        Ok(match self.fenced(by, id, body.fence, is_waiting, waiting).await? {
            WaitChildrenReply::Waiting { open } => WaitedForChildren::Waiting { open },
            WaitChildrenReply::Ended { mut children, more } => {
                let more_children = more && self.read_further_children(id, &mut children).await?;
                WaitedForChildren::Ended { children: children.into_iter().map(Child::from).collect(), more_children }
            }
        })
    }
}

fn new_child(mut body: ChildBody, place: &str, inherited: &Inherited) -> Result<NewChild, Problem> {
    let (kind, key, parent_close) = (std::mem::take(&mut body.kind), body.key.take(), body.parent_close);
    let nil = || ExecutionId::from_uuid(Uuid::nil());
    let mut fields = body.submission(place, kind, nil, &inherited.namespace, &inherited.lane)?;
    fields.trace_parent = fields.trace_parent.or_else(|| inherited.trace_parent.clone());
    Ok(NewChild { fields, key, parent_close })
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

impl Service {
    /// Namespace, lane and trace of the parent. Children that name namespace, lane and id (or key) are complete: the
    /// caller has read the parent already, and it is not read again.
    async fn inherited_from(&self, parent: ExecutionId, children: &[ChildBody]) -> Result<Inherited, Problem> {
        let is_complete = |child: &ChildBody| {
            let is_named = child.execution_id.is_some() || child.idempotency_key.is_some();
            is_named && child.namespace.is_some() && child.lane.is_some()
        };
        if children.iter().all(is_complete) {
            return Ok(Inherited::default());
        }
        let parent = self.operations.describe(parent).await.map_err(about(parent))?;
        Ok(Inherited { namespace: parent.namespace, lane: parent.lane, trace_parent: parent.trace_parent })
    }

    /// Reads the outcomes of children that a claim left out, as far as they fit into an answer.
    pub async fn complete_children(&self, task: &mut Task) -> Result<(), Problem> {
        let id = task.execution_id;
        if let Some(resume) = task.resume.as_mut().filter(|resume| resume.more_children == Some(true)) {
            let children = resume.children.get_or_insert_default();
            resume.more_children = Some(self.read_further_children(id, children).await?);
        }
        Ok(())
    }

    /// Reads the children behind those given; true when some did not fit.
    async fn read_further_children(
        &self,
        id: ExecutionId,
        children: &mut Vec<generated::Child>,
    ) -> Result<bool, Problem> {
        let size = |children: &[generated::Child]| -> usize {
            children.iter().filter_map(|child| child.result.as_ref()).map(|result| result.0.len()).sum()
        };
        let mut bytes = size(children);
        let mut from = children.last().map(|child| child.number + 1);
        while bytes <= RESULT_BYTES_MAX {
            let (page, next) = self.operations.children(id, from, PAGE).await?;
            bytes += size(&page);
            children.extend(page);
            if next.is_none() {
                return Ok(false);
            }
            from = next;
        }
        Ok(true)
    }
}
