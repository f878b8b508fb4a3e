//! A handler's side of flows: what was passed to it, and the children it spawns and waits for.

use std::any::type_name;
use std::collections::HashMap;
use std::ops::Deref;

use ff_core::types::ExecutionId;
use serde::de::DeserializeOwned;

use super::waits::SuspendError;
use super::{Ctx, FromTask};
use crate::SdkError;
use crate::backend::is_json;
use crate::flows::{ChildSpec, Upstream, Waited};
use crate::middleware::{TaskError, TaskRequest};
use crate::snapshot::ChildSnapshot;
use crate::waits::ResumeCause;

/// What upstreams passed, decoded from JSON: each name is a field of `T`, or an entry when `T` is a map.
///
/// An upstream that ended without a result passes `null`. What does not decode fails the task with
/// `extractor_payload_decode`.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_sdk::runtime::{HandlerResult, Passed, WorkerRuntime};
/// use ff_sdk::{FlowSpec, MemberSpec};
///
/// #[derive(serde::Deserialize)]
/// struct Sides {
///     left: u64,
///     right: u64,
/// }
///
/// async fn number() -> HandlerResult {
///     Ok(Some(b"21".to_vec()))
/// }
/// async fn add(Passed(Sides { left, right }): Passed<Sides>) -> HandlerResult {
///     Ok(Some((left + right).to_string().into_bytes()))
/// }
///
/// # let engine = ff_sdk::testing::TestEngine::start().await?;
/// let flow = FlowSpec::new("default", "sum")
///     .member(MemberSpec::new("a", "number"))
///     .member(MemberSpec::new("b", "number"))
///     .member(MemberSpec::new("sum", "add").takes("a", "left").takes("b", "right"));
/// let submitted = engine.admin().submit_flow(flow).await?;
/// let runtime = WorkerRuntime::new(engine.worker("w-1").await?).on("number", number).on("add", add);
/// let running = engine.run(runtime);
/// assert_eq!(engine.result(&submitted.members["sum"]).await?.result.as_deref(), Some(b"42".as_slice()));
/// # running.stop().await?;
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed<T>(pub T);

impl<T> Passed<T> {
    /// What was passed.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Passed<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: DeserializeOwned + Send> FromTask for Passed<T> {
    fn from_task(request: &TaskRequest) -> Result<Self, TaskError> {
        request.ctx().passed_as().map(Passed)
    }
}

fn undecodable(what: &str, problem: impl std::fmt::Display) -> TaskError {
    TaskError::new(format!("{what}: {problem}"), TaskError::PAYLOAD_DECODE).fatal()
}

impl Ctx {
    /// What upstreams passed, by name, byte for byte; see [`crate::ClaimedTask::passed`].
    #[must_use]
    pub fn passed(&self) -> &HashMap<String, Vec<u8>> {
        &self.0.claim.place.passed
    }

    /// Who passed each name on and how it ended; see [`crate::ClaimedTask::upstreams`].
    #[must_use]
    pub fn upstreams(&self) -> &HashMap<String, Upstream> {
        &self.0.claim.place.upstreams
    }

    /// All that was passed as one value, written as JSON so that numbers keep their digits.
    fn passed_as<T: DeserializeOwned>(&self) -> Result<T, TaskError> {
        let mut text = b"{".to_vec();
        for name in self.upstreams().keys() {
            let value = self.passed().get(name).map_or(b"null".as_slice(), Vec::as_slice);
            if !is_json(value) {
                return Err(undecodable(&format!("what was passed as {name:?} is not JSON"), "take it as bytes"));
            }
            if text.len() > 1 {
                text.push(b',');
            }
            text.extend(serde_json::to_vec(name).map_err(|error| undecodable(name, error))?);
            text.push(b':');
            text.extend(value);
        }
        text.push(b'}');
        let what = format!("what was passed is not {}", type_name::<T>());
        serde_json::from_slice(&text).map_err(|error| undecodable(&what, error))
    }

    /// Spawns children of this execution and answers their ids, in order.
    ///
    /// A handler that waits is called again from its beginning, and so is one whose worker died: the n-th spawn of every run is the
    /// same spawn, and answers the children of the first run. A child with a key is found again by its key, wherever it is spawned.
    /// Either must ask for the same children again, else it is refused as `idempotency_conflict`. An attempt that should have
    /// children of its own gives them keys with its [`TaskInfo::attempt_index`](super::TaskInfo::attempt_index).
    pub async fn spawn(&self, children: Vec<ChildSpec>) -> Result<Vec<ExecutionId>, SdkError> {
        self.0.spawn(children, self.0.spawns.next_request(), None).await
    }

    /// Waits until every child has ended, without holding a worker, and answers what became of them, in the order they were spawned.
    ///
    /// While one has not, the answer is [`SuspendError::WaitingForChildren`]: the handler returns it with `?`, and is called
    /// again from its beginning when all have ended.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use ff_sdk::ChildSpec;
    /// use ff_sdk::runtime::{Ctx, HandlerResult, Payload, WorkerRuntime};
    ///
    /// async fn plan(ctx: Ctx) -> HandlerResult {
    ///     ctx.spawn((1..=3).map(|n| ChildSpec::new("square").input(n.to_string())).collect()).await?;
    ///     let children = ctx.wait_children().await?;
    ///     let squares = children.iter().filter_map(|child| child.result.as_deref());
    ///     Ok(Some(squares.collect::<Vec<_>>().join(b",".as_slice())))
    /// }
    /// async fn square(Payload(n): Payload<u64>) -> HandlerResult {
    ///     Ok(Some((n * n).to_string().into_bytes()))
    /// }
    ///
    /// # let engine = ff_sdk::testing::TestEngine::start().await?;
    /// # let id = engine.submit("plan", b"{}").await?;
    /// let runtime = WorkerRuntime::new(engine.worker("w-1").await?).on("plan", plan).on("square", square);
    /// let running = engine.run(runtime);
    /// assert_eq!(engine.result(&id).await?.result.as_deref(), Some(b"1,4,9".as_slice()));
    /// # running.stop().await?;
    /// # Ok::<(), ff_sdk::SdkError>(())
    /// # }).unwrap();
    /// ```
    pub async fn wait_children(&self) -> Result<Vec<ChildSnapshot>, SuspendError> {
        let woken = self.resume().is_some_and(|resume| resume.cause == ResumeCause::Children);
        if woken && self.0.spawns.none_yet() {
            return Ok(self.0.resume_children().await?);
        }
        match self.0.wait_children(false, None).await? {
            Waited::Ended(children) => Ok(children),
            Waited::Aside { open } => Err(SuspendError::WaitingForChildren { open }),
        }
    }

    /// Every child this execution has spawned, in any attempt, and what became of it so far.
    pub async fn children(&self) -> Result<Vec<ChildSnapshot>, SdkError> {
        self.0.children().await
    }
}
