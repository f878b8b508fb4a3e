//! Children: spawned by a running attempt, waited for without a worker.

use std::collections::BTreeSet;

use ff_core::types::{ExecutionId, SuspensionId};
use ff_script::Error;
use ff_script::generated::{
    self as wire, Child, Fence, ParentClose, ReadChildren, ReadChildrenReply, SpawnChildren, SpawnChildrenReply,
    Submission, WaitChildren, WaitChildrenReply,
};
use uuid::Uuid;

use super::Operations;
use super::flow::derived_id;
use super::places::Places;
use super::submission::body_digest;

const CHILDREN: usize = 64;
const TRIES: usize = 4;

/// A child to spawn.
///
/// Its partition is its parent's. What is not said about namespace and lane is as the caller fills it in; the parent's budgets
/// and deadline hold for it as well.
#[derive(Clone, Debug)]
pub struct NewChild {
    /// The fields of its execution; see [`child_id`] for an id that makes the call safe to repeat.
    pub fields: Submission,
    /// A name the parent knows it by.
    pub key: Option<String>,
    /// What the parent's end means for it; cancelled unless said otherwise.
    pub parent_close: Option<ParentClose>,
}

impl NewChild {
    /// A child in a lane.
    #[must_use]
    pub fn new(
        id: ExecutionId,
        namespace: impl Into<String>,
        lane: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        let fields = Submission::new(id, namespace.into(), lane.into(), kind.into(), String::new());
        Self { fields, key: None, parent_close: None }
    }
}

/// The id of the `index`-th child of one request: the same when the request is repeated.
#[must_use]
pub fn child_id(parent: ExecutionId, request: Uuid, index: usize) -> ExecutionId {
    derived_id(parent.as_uuid(), &[b"child", request.as_bytes(), &(index as u64).to_be_bytes()])
}

/// What became of one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawned {
    /// Its id; with an idempotency key that of the first one.
    pub execution_id: ExecutionId,
    /// It had been spawned before.
    pub duplicate: bool,
}

impl Operations {
    /// Spawns children of a running attempt; up to 64 in one call, all or none, more in several. `step` makes it a step: once
    /// it is done, it answers the same children. Calls after the first record steps of their own, `step/2` and so on.
    pub async fn spawn(
        &self,
        parent: ExecutionId,
        fence: &Fence,
        children: Vec<NewChild>,
        step: Option<&str>,
    ) -> Result<Vec<Spawned>, Error> {
        let mut spawned = Vec::with_capacity(children.len());
        let mut children = children.into_iter();
        loop {
            let batch: Vec<NewChild> = children.by_ref().take(CHILDREN).collect();
            if batch.is_empty() {
                return Ok(spawned);
            }
            let places = Places { children: (spawned.len()..).take(batch.len()).collect(), ..Places::default() };
            let nth = spawned.len() / CHILDREN + 1;
            let step = step.map(|step| if nth == 1 { step.to_owned() } else { format!("{step}/{nth}") });
            let answer = self.spawn_batch(parent, fence, batch, step).await;
            spawned.extend(answer.map_err(|error| places.named(error))?);
        }
    }

    async fn spawn_batch(
        &self,
        parent: ExecutionId,
        fence: &Fence,
        batch: Vec<NewChild>,
        step: Option<String>,
    ) -> Result<Vec<Spawned>, Error> {
        for (at, child) in batch.iter().enumerate() {
            let field = || format!("children[{at}].completion_webhook");
            self.check_webhook(field, child.fields.completion_webhook.as_deref())?;
            self.check_quotas(&child.fields.namespace, child.fields.quotas.as_deref()).await?;
        }
        let route = self.client.route_of(&parent);
        let children = batch.into_iter().map(|child| {
            let mut submission = child.fields;
            submission.body_digest = body_digest(&submission);
            wire::NewChild { key: child.key, parent_close: child.parent_close, submission }
        });
        let mut children: Vec<wire::NewChild> = children.collect();
        for child in &mut children {
            self.attach_budgets(&mut child.submission, &[]).await?;
        }
        let mut call = SpawnChildren { step, ..SpawnChildren::new(children, parent, *fence) };
        let mut tries = 1;
        let items = loop {
            let error = match self.client.call(route, &call).await {
                Ok(SpawnChildrenReply::Spawned { items }) => break items,
                Err(error) if tries < TRIES => error,
                Err(error) => return Err(error),
            };
            tries += 1;
            let lanes: BTreeSet<(String, String)> =
                call.children.iter().map(|c| (c.submission.namespace.clone(), c.submission.lane.clone())).collect();
            self.tell_lanes(route, &error, &lanes, |lane, depth| {
                for child in call.children.iter_mut().filter(|child| child.submission.lane == *lane) {
                    child.submission.lane_depth = Some(depth);
                }
            })
            .await?;
        };
        items
            .into_iter()
            .map(|item| {
                let missing =
                    || Error::Decode { function: "ff_spawn_children", detail: "execution_id: is missing".to_owned() };
                let execution_id = item.execution_id.ok_or_else(missing)?;
                Ok(Spawned { execution_id, duplicate: item.duplicate == Some(true) })
            })
            .collect()
    }

    /// Sets the attempt aside until its children have ended. With none open the lease stays and their outcomes are the answer,
    /// unless it goes `aside` all the same and the next claim brings them. `step` makes it a step: once it is done, it answers
    /// the same outcomes.
    pub async fn wait_children(
        &self,
        parent: ExecutionId,
        fence: Fence,
        wait_id: SuspensionId,
        aside: bool,
        step: Option<&str>,
    ) -> Result<WaitChildrenReply, Error> {
        let named = step.map(str::to_owned);
        let call = WaitChildren { aside: Some(aside), step: named, ..WaitChildren::new(parent, fence, wait_id) };
        let reply = self.client.call(self.client.route_of(&parent), &call).await?;
        // The rest of a step's outcomes is read with the step: children that came later are no part of it.
        if let (WaitChildrenReply::Ended { more: true, .. }, Some(step)) = (&reply, step) {
            let resume = self.step(parent, step).await?.resume;
            let children = resume.and_then(|resume| resume.children).unwrap_or_default();
            return Ok(WaitChildrenReply::Ended { children, more: false });
        }
        Ok(reply)
    }

    /// Children in the order they were spawned, from a number on, and where to go on.
    pub async fn children(
        &self,
        parent: ExecutionId,
        from: Option<i64>,
        limit: i64,
    ) -> Result<(Vec<Child>, Option<i64>), Error> {
        let call = ReadChildren { execution_id: parent, from, limit };
        let ReadChildrenReply::Page { children, next } = self.client.call(self.client.route_of(&parent), &call).await?;
        Ok((children, next))
    }
}
