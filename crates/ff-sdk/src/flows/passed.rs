//! What a claimed member finds of its upstreams.

use std::collections::HashMap;

use ff_core::state::Outcome;
use ff_core::types::{ExecutionId, FlowId};

use crate::ClaimedTask;
use crate::snapshot::Failure;

/// Who passed something on, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The execution.
    pub execution_id: ExecutionId,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed, when it did.
    pub failure: Option<Failure>,
}

/// The place of a claimed execution among others: its flow or parent, and what was passed to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The flow it is a member of.
    pub flow_id: Option<FlowId>,
    /// The execution that spawned it.
    pub parent_id: Option<ExecutionId>,
    /// Its key among the flow's members or the parent's children.
    pub key: Option<String>,
    /// The results passed to it, by name; an upstream without a result is not among them.
    pub passed: HashMap<String, Vec<u8>>,
    /// Who passed each name on, also without a result.
    pub upstreams: HashMap<String, Upstream>,
}

impl ClaimedTask {
    /// What upstream members of its flow passed on, by name; an execution of no flow was passed nothing.
    ///
    /// Only results are here: [`ClaimedTask::upstreams`] also knows who ended without one, and how.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use ff_sdk::{FlowSpec, MemberSpec};
    /// # let engine = ff_sdk::testing::TestEngine::start().await?;
    /// # let worker = engine.worker("w-1").await?;
    /// let flow = FlowSpec::new("default", "report")
    ///     .member(MemberSpec::new("fetch", "http.get"))
    ///     .member(MemberSpec::new("render", "render").takes("fetch", "page"));
    /// engine.admin().submit_flow(flow).await?;
    ///
    /// let fetch = worker.claim_next().await?.expect("the first member may run");
    /// fetch.complete(Some(b"<html>".to_vec())).await?;
    /// let render = worker.claim_next().await?.expect("its edge is met");
    /// assert_eq!((render.key(), render.passed()["page"].as_slice()), (Some("render"), b"<html>".as_slice()));
    /// render.complete(None).await?;
    /// # Ok::<(), ff_sdk::SdkError>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn passed(&self) -> &HashMap<String, Vec<u8>> {
        &self.core().claim.place.passed
    }

    /// Who passed each name on and how it ended: a member that runs after a failure finds the failure here.
    #[must_use]
    pub fn upstreams(&self) -> &HashMap<String, Upstream> {
        &self.core().claim.place.upstreams
    }

    /// The flow it is a member of.
    #[must_use]
    pub fn flow_id(&self) -> Option<&FlowId> {
        self.core().claim.place.flow_id.as_ref()
    }

    /// The execution that spawned it.
    #[must_use]
    pub fn parent_id(&self) -> Option<&ExecutionId> {
        self.core().claim.place.parent_id.as_ref()
    }

    /// Its key among the members of its flow, or among the children of its parent when it was given one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.core().claim.place.key.as_deref()
    }
}
