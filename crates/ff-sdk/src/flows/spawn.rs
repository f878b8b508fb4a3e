//! Children to spawn, and how a call that is made again finds those of the first.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use ff_core::types::{ExecutionId, FlowId};
use ff_engine::operations::{NewChild, child_id, member_id};
use ff_script::generated::{ParentClose, Retry, Submission};
use uuid::Uuid;

use crate::task::TaskCore;
use crate::{ClaimedTask, SdkError};

/// A child to spawn. What it does not say about namespace and lane is as with its parent, whose budgets and deadline it shares.
///
/// A child with a key is spawned once per parent: the same key again, by whichever attempt, answers the first one. The same key
/// with another body is refused as `idempotency_conflict`.
///
/// ```
/// use ff_sdk::ChildSpec;
/// let child = ChildSpec::new("search").key("search-1").input(br#"{"q":"rust"}"#).lane("tools").abandoned();
/// assert_eq!((child.fields.kind.as_str(), child.key.as_deref()), ("search", Some("search-1")));
/// ```
#[derive(Clone, Debug)]
pub struct ChildSpec {
    /// The fields of its execution. An empty namespace or lane is the parent's; a nil id is derived.
    pub fields: Submission,
    /// The name its parent knows it by.
    pub key: Option<String>,
    /// What the parent's end means for it; it is cancelled unless said otherwise.
    pub parent_close: Option<ParentClose>,
}

impl ChildSpec {
    /// A child of a kind.
    #[must_use]
    pub fn new(kind: impl Into<String>) -> Self {
        let id = ExecutionId::from_uuid(Uuid::nil());
        let fields = Submission::new(id, String::new(), String::new(), kind.into(), String::new());
        Self { fields, key: None, parent_close: None }
    }

    /// Names it among its siblings.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Gives it an input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.fields.input = Some(input.into().into());
        self
    }

    /// Runs it in another lane than its parent's.
    #[must_use]
    pub fn lane(mut self, lane: impl Into<String>) -> Self {
        self.fields.lane = lane.into();
        self
    }

    /// Says how it is tried again.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.fields.retry = Some(retry);
        self
    }

    /// Lets it go on when its parent ends.
    #[must_use]
    pub fn abandoned(mut self) -> Self {
        self.parent_close = Some(ParentClose::Abandon);
        self
    }

    fn resolved(mut self, core: &TaskCore, request: Uuid, index: usize) -> NewChild {
        let parent = core.claim.lease.execution_id;
        if self.fields.namespace.is_empty() {
            self.fields.namespace = core.claim.namespace.as_str().to_owned();
        }
        if self.fields.lane.is_empty() {
            self.fields.lane = core.claim.lane.as_str().to_owned();
        }
        // A child belongs to the trace of the attempt that spawns it, or at least to that of its parent.
        if self.fields.trace_parent.is_none() {
            self.fields.trace_parent = crate::trace::current().or_else(|| core.claim.trace_parent.clone());
        }
        if self.fields.execution_id.as_uuid().is_nil() {
            self.fields.execution_id = match &self.key {
                // Ids by key are derived the same way whether a flow or a parent stands above.
                Some(key) => member_id(FlowId::from_uuid(*parent.as_uuid()), key),
                None => child_id(parent, request, index),
            };
        }
        NewChild { fields: self.fields, key: self.key, parent_close: self.parent_close }
    }
}

/// How often a run of a handler has spawned.
#[derive(Default)]
pub(crate) struct Spawns(AtomicU64);

impl Spawns {
    /// The place of this call among the run's calls: the same in every run of the handler, so the children are too.
    pub(crate) fn next_request(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::SeqCst)))
    }

    /// The handler is entered from its top.
    pub(crate) fn begin_run(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    pub(crate) fn none_yet(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

impl TaskCore {
    /// Spawns under this task's lease. Every repetition of one call asks for the same ids, and so spawns once.
    /// Under a step's name, a later run of the handler is answered the same children.
    pub(crate) async fn spawn(
        &self,
        children: Vec<ChildSpec>,
        request: Uuid,
        step: Option<&str>,
    ) -> Result<Vec<ExecutionId>, SdkError> {
        let mut keys = BTreeSet::new();
        for (at, child) in children.iter().enumerate() {
            if let Some(key) = child.key.as_deref().filter(|key| !keys.insert(*key)) {
                let message = format!("{key:?} is used by another child");
                return Err(SdkError::config("spawn", &format!("children[{at}].key"), message));
            }
        }
        if children.is_empty() {
            return Ok(Vec::new());
        }
        let resolved = |(index, child): (usize, ChildSpec)| child.resolved(self, request, index);
        let children: Vec<NewChild> = children.into_iter().enumerate().map(resolved).collect();
        let reach = self.backend.reach();
        self.repeat(|| reach.spawn(self.lease.at, &children, request, step)).await
    }
}

impl ClaimedTask {
    /// Spawns children of this execution and answers their ids, in order. Up to 64 are spawned all or none, more in several steps.
    ///
    /// The children share the parent's budgets and deadline, and are cancelled when it ends unless they are
    /// [`ChildSpec::abandoned`]. A call that is lost on the way is repeated as the same one; to spawn once whatever happens to
    /// this attempt, give the children keys.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use ff_sdk::ChildSpec;
    /// # let engine = ff_sdk::testing::TestEngine::start().await?;
    /// # let id = engine.submit("plan", b"{}").await?;
    /// # let worker = engine.worker("w-1").await?;
    /// let task = worker.claim_next().await?.expect("one execution waits");
    /// let ids = task.spawn(vec![ChildSpec::new("step").key("a"), ChildSpec::new("step").key("b")]).await?;
    /// task.move_to_waiting_children().await?;
    ///
    /// for _ in &ids {
    ///     let child = worker.claim_next().await?.expect("a child waits");
    ///     assert!(ids.contains(child.execution_id()) && child.parent_id().is_some());
    ///     child.complete(Some(b"1".to_vec())).await?;
    /// }
    /// let task = worker.claim_next().await?.expect("the parent goes on");
    /// assert!(task.resume_children().await?.iter().all(|child| child.succeeded()));
    /// task.complete(None).await?;
    /// # Ok::<(), ff_sdk::SdkError>(())
    /// # }).unwrap();
    /// ```
    pub async fn spawn(&self, children: Vec<ChildSpec>) -> Result<Vec<ExecutionId>, SdkError> {
        self.core().spawn(children, Uuid::now_v7(), None).await
    }
}
