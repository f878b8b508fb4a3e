//! The operator's and submitter's side: submit, look, cancel, replay, grant.

use std::sync::Arc;
use std::time::Duration;

use ff_api::Ask;
use ff_api::budgets::{ApproveBudget, ChangeBudget, CreateBudget, GetBudget, ResetBudget};
use ff_api::explain::{ExplainExecution, Explanation};
use ff_api::explain_lane::{ExplainLane, LaneExplanation};
use ff_api::graph::GetFlowGraph;
use ff_api::lanes::NamespaceQuery;
use ff_api::quotas::{ChangeQuota, CreateQuota, GetQuota, QuotaQuery, ThrottleBody, ThrottleQuota};
use ff_api::steps::{ForkBody, ForkExecution, ReplayFrom, Step};
use ff_api::usage::GetExecutionUsage;
use ff_core::contracts::{ClaimGrant, ReclaimGrant};
use ff_core::types::{BudgetId, ExecutionId, FlowId, LaneId, QuotaPolicyId, TimestampMs, WorkerInstanceId};
use ff_engine::operations::{FlowCursor, FlowFilter, NewFlow};
use ff_engine::{ExecutionFilter, ListCursor, NewExecution};

use crate::backend::Backend;
use crate::flows::CancelPolicy;
use crate::snapshot::{
    BudgetSnapshot, ChildSnapshot, ExecutionPage, ExecutionResult, ExecutionSnapshot, FlowGraph, FlowPage,
    FlowSnapshot, QuotaSnapshot, SubmittedFlow, UsageSnapshot, WorkerSnapshot,
};
use crate::usage::{BudgetChange, BudgetSpec, QuotaChange, QuotaSpec};
use crate::{FlowFabricWorker, SdkError};

/// What a server's API offers beside the worker protocol; cheap to clone.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_sdk::NewExecution;
/// let engine = ff_sdk::testing::TestEngine::start().await?;
/// let admin = engine.admin();
/// let id = admin.submit(NewExecution::new("default", "default", "greet")).await?;
/// assert_eq!(admin.describe_execution(&id).await?.kind, "greet");
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct FlowFabricAdminClient {
    backend: Arc<dyn Backend>,
}

impl FlowFabricAdminClient {
    /// A client of the server at this URL, without credentials.
    #[cfg(feature = "http")]
    pub fn new(url: impl Into<String>) -> Result<Self, SdkError> {
        Ok(Self::over(Arc::new(crate::backend::Http::new(&url.into(), None, None)?)))
    }

    /// A client of the server at this URL, with a bearer token.
    #[cfg(feature = "http")]
    pub fn with_token(url: impl Into<String>, token: impl Into<String>) -> Result<Self, SdkError> {
        let token = crate::config::Secret::new(token);
        Ok(Self::over(Arc::new(crate::backend::Http::new(&url.into(), Some(&token), None)?)))
    }

    /// A client over any backend: admission runs in this process.
    #[must_use]
    pub fn over(backend: Arc<dyn Backend>) -> Self {
        Self { backend }
    }

    /// A client over the backend of a worker.
    #[must_use]
    pub fn of(worker: &FlowFabricWorker) -> Self {
        Self::over(Arc::clone(worker.backend()))
    }

    /// How the engine is reached.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Submits one execution; the same idempotency key answers the first one's id. It belongs to the trace of the current span
    /// unless it names another (feature `otel`).
    pub async fn submit(&self, mut new: NewExecution) -> Result<ExecutionId, SdkError> {
        new.fields.trace_parent = new.fields.trace_parent.or_else(crate::trace::current);
        Ok(self.backend.reach().submit(new).await?.0)
    }

    /// Everything about one execution.
    pub async fn describe_execution(&self, id: &ExecutionId) -> Result<ExecutionSnapshot, SdkError> {
        self.backend.reach().describe(*id).await
    }

    /// Why an execution is not running, and what would change that.
    pub async fn explain(&self, id: &ExecutionId) -> Result<Explanation, SdkError> {
        self.backend.reach().ask(Ask::<ExplainExecution>::at(*id)).await
    }

    /// Why the work of a lane is not running, counted by reason, and what would change that.
    pub async fn explain_lane(&self, namespace: &str, lane: &str) -> Result<LaneExplanation, SdkError> {
        let query = NamespaceQuery { namespace: Some(namespace.to_owned()) };
        self.backend.reach().ask(Ask::<ExplainLane>::by(lane.to_owned(), query)).await
    }

    /// One page of executions, newest first.
    pub async fn list_executions(
        &self,
        filter: &ExecutionFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<ExecutionPage, SdkError> {
        self.backend.reach().list(filter, after, limit).await
    }

    /// The outcome, or nothing when it is not there after `wait`.
    pub async fn result(&self, id: &ExecutionId, wait: Duration) -> Result<Option<ExecutionResult>, SdkError> {
        self.backend.reach().result(*id, wait).await
    }

    /// Cancels an execution; a running attempt ends at once, or within `grace_ms` after its worker was asked.
    pub async fn cancel(&self, id: &ExecutionId, reason: &str, grace_ms: Option<u64>) -> Result<(), SdkError> {
        self.backend.reach().cancel(*id, reason, grace_ms).await
    }

    /// Runs an ended execution again; it keeps its steps.
    pub async fn replay(&self, id: &ExecutionId) -> Result<(), SdkError> {
        self.backend.reach().replay(*id, None).await
    }

    /// Runs an ended execution again, without its steps or with those before a named one.
    pub async fn replay_from(&self, id: &ExecutionId, from: ReplayFrom) -> Result<(), SdkError> {
        self.backend.reach().replay(*id, Some(from)).await
    }

    /// Every step of an execution, in the order in which they were first recorded.
    pub async fn steps(&self, id: &ExecutionId) -> Result<Vec<Step>, SdkError> {
        self.backend.reach().steps(*id).await
    }

    /// Submits a new execution that starts with copies of another one's finished steps.
    pub async fn fork(&self, id: &ExecutionId, fork: ForkBody) -> Result<ExecutionId, SdkError> {
        let forked = self.backend.reach().ask(Ask::<ForkExecution>::with(*id, fork)).await?;
        Ok(forked.execution_id)
    }

    /// Takes a lease away, at once or by asking the worker to yield.
    pub async fn revoke_lease(&self, id: &ExecutionId, grace: bool) -> Result<(), SdkError> {
        self.backend.reach().revoke(*id, grace).await
    }

    /// Reserves the best admitted execution of a lane for a worker; nothing when none is ready.
    pub async fn grant_claim(
        &self,
        worker: &FlowFabricWorker,
        lane: &LaneId,
        ttl_ms: u64,
    ) -> Result<Option<ClaimGrant>, SdkError> {
        self.backend.reach().grant(&worker.shared().who(), lane.as_str(), ttl_ms).await
    }

    /// Hands an interrupted execution to a chosen worker.
    pub async fn grant_reclaim(
        &self,
        id: &ExecutionId,
        worker: &WorkerInstanceId,
        ttl_ms: u64,
    ) -> Result<ReclaimGrant, SdkError> {
        self.backend.reach().grant_reclaim(*id, worker.as_str(), ttl_ms).await
    }

    /// Every live worker.
    pub async fn list_workers(&self) -> Result<Vec<WorkerSnapshot>, SdkError> {
        self.backend.reach().workers().await
    }

    /// Asks a worker to take nothing new and to yield what it holds.
    pub async fn drain_worker(&self, worker: &WorkerInstanceId) -> Result<(), SdkError> {
        self.backend.reach().drain_worker(worker.as_str()).await
    }
}

/// Flows and children.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_sdk::task::CancelPolicy;
/// use ff_sdk::{FlowSpec, MemberSpec};
/// # use std::time::Duration;
/// # let engine = ff_sdk::testing::TestEngine::start().await?;
/// let admin = engine.admin();
/// let flow = FlowSpec::new("default", "report")
///     .member(MemberSpec::new("fetch", "fetch"))
///     .member(MemberSpec::new("render", "render").takes("fetch", "page"));
/// let submitted = admin.submit_flow(flow).await?;
/// assert_eq!(admin.describe_execution(&submitted.members["fetch"]).await?.kind, "fetch");
///
/// admin.cancel_flow(&submitted.flow_id, "not needed", CancelPolicy::CancelAll, true).await?;
/// let ended = admin.wait_flow(&submitted.flow_id, Duration::from_secs(10)).await?.expect("it was cancelled");
/// assert_eq!(ended.state.as_str(), "cancelled");
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
impl FlowFabricAdminClient {
    /// Submits a flow: checked whole, written, then released. The same id answers the first one's members.
    pub async fn submit_flow(&self, flow: impl Into<NewFlow>) -> Result<SubmittedFlow, SdkError> {
        self.backend.reach().submit_flow(flow.into()).await
    }

    /// A flow with its state and the counts of its members.
    pub async fn describe_flow(&self, id: &FlowId) -> Result<FlowSnapshot, SdkError> {
        self.backend.reach().flow(*id, Duration::ZERO).await
    }

    /// Members and edges of a flow.
    pub async fn flow_graph(&self, id: &FlowId) -> Result<FlowGraph, SdkError> {
        Ok(self.backend.reach().ask(Ask::<GetFlowGraph>::at(*id)).await?.into())
    }

    /// One page of flows, newest first.
    pub async fn list_flows(
        &self,
        filter: &FlowFilter,
        after: Option<FlowCursor>,
        limit: usize,
    ) -> Result<FlowPage, SdkError> {
        self.backend.reach().list_flows(filter, after, limit).await
    }

    /// The flow once every member has ended, or nothing when that is not so after `wait`.
    pub async fn wait_flow(&self, id: &FlowId, wait: Duration) -> Result<Option<FlowSnapshot>, SdkError> {
        self.backend.reach().await_flow(*id, wait).await
    }

    /// Cancels a flow: when this answers, none of its members can be claimed any more. With `wait` it answers when the flow has
    /// ended, or after 30 s with how it stands.
    pub async fn cancel_flow(
        &self,
        id: &FlowId,
        reason: &str,
        policy: CancelPolicy,
        wait: bool,
    ) -> Result<FlowSnapshot, SdkError> {
        self.backend.reach().cancel_flow(*id, policy, reason, wait).await
    }

    /// Every child an execution has spawned, in order, and what became of it so far.
    pub async fn children(&self, id: &ExecutionId) -> Result<Vec<ChildSnapshot>, SdkError> {
        self.backend.reach().children(*id).await
    }
}

/// Budgets and quotas.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_sdk::{BudgetChange, BudgetSpec, NewExecution, QuotaSpec};
/// # let engine = ff_sdk::testing::TestEngine::start().await?;
/// let admin = engine.admin();
/// let budget = admin.create_budget(BudgetSpec::new("default").hard("tokens", 10_000)).await?.budget_id;
/// let quota = admin.create_quota(QuotaSpec::new("default").concurrency(2)).await?.quota_id;
/// let new = NewExecution::new("default", "default", "ask").estimate(&budget, &[("tokens", 500)]).quota(&quota, "acme");
/// admin.submit(new).await?;
///
/// let task = engine.worker("w-1").await?.claim_next().await?.expect("both let it start");
/// assert_eq!(admin.describe_budget(&budget).await?.dimensions["tokens"].held, 500);
/// assert_eq!(admin.describe_quota(&quota, Some("acme")).await?.key("acme").map(|key| key.held), Some(1));
/// # task.complete(None).await?;
/// let raised = admin.change_budget(&budget, BudgetChange::default().hard("tokens", Some(20_000))).await?;
/// assert_eq!(raised.dimensions["tokens"].hard, Some(20_000));
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
impl FlowFabricAdminClient {
    /// Makes a budget; the same again is the one that is there.
    pub async fn create_budget(&self, budget: BudgetSpec) -> Result<BudgetSnapshot, SdkError> {
        Ok(self.backend.reach().ask(Ask::<CreateBudget>::with((), budget.fields)).await?.thing)
    }

    /// A budget as it stands: used, held and limits of each dimension.
    pub async fn describe_budget(&self, id: &BudgetId) -> Result<BudgetSnapshot, SdkError> {
        self.backend.reach().ask(Ask::<GetBudget>::at(*id)).await
    }

    /// Changes limits and actions; what is not named stays. Work that waits for room goes on when there is some.
    pub async fn change_budget(&self, id: &BudgetId, change: BudgetChange) -> Result<BudgetSnapshot, SdkError> {
        self.backend.reach().ask(Ask::<ChangeBudget>::with(*id, change.patch)).await
    }

    /// Starts a new period now: nothing is used.
    pub async fn reset_budget(&self, id: &BudgetId) -> Result<BudgetSnapshot, SdkError> {
        self.backend.reach().ask(Ask::<ResetBudget>::at(*id)).await
    }

    /// Lets work start past the soft limits of a budget that requires approval, until its period ends.
    pub async fn approve_budget(&self, id: &BudgetId) -> Result<BudgetSnapshot, SdkError> {
        self.backend.reach().ask(Ask::<ApproveBudget>::at(*id)).await
    }

    /// Makes a quota; the same again is the one that is there.
    pub async fn create_quota(&self, quota: QuotaSpec) -> Result<QuotaSnapshot, SdkError> {
        Ok(self.backend.reach().ask(Ask::<CreateQuota>::with((), quota.fields)).await?.thing)
    }

    /// A quota, and how far one key is used, or each key in use when none is named.
    pub async fn describe_quota(&self, id: &QuotaPolicyId, key: Option<&str>) -> Result<QuotaSnapshot, SdkError> {
        let query = QuotaQuery { key: key.map(str::to_owned) };
        self.backend.reach().ask(Ask::<GetQuota>::by(*id, query)).await
    }

    /// Changes a quota; what is not named stays.
    pub async fn change_quota(&self, id: &QuotaPolicyId, change: QuotaChange) -> Result<QuotaSnapshot, SdkError> {
        self.backend.reach().ask(Ask::<ChangeQuota>::with(*id, change)).await
    }

    /// Nothing starts under a key until then; a time that has passed changes nothing, 0 ends the throttle. Answers until when.
    pub async fn throttle_quota(
        &self,
        id: &QuotaPolicyId,
        key: &str,
        until: TimestampMs,
    ) -> Result<Option<TimestampMs>, SdkError> {
        let body = ThrottleBody { key: key.to_owned(), until: until.as_millis() };
        let throttled = self.backend.reach().ask(Ask::<ThrottleQuota>::with(*id, body)).await?;
        Ok(throttled.throttled_until.map(TimestampMs))
    }

    /// What an execution used, by attempt, budget and dimension.
    pub async fn usage(&self, id: &ExecutionId) -> Result<UsageSnapshot, SdkError> {
        self.backend.reach().ask(Ask::<GetExecutionUsage>::at(*id)).await
    }
}
