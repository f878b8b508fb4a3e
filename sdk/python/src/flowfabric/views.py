"""The shapes of what the API shows, as typed dictionaries: the server's own fields, new ones included."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class FailureView(TypedDict):
    """Why something failed."""

    reason: str
    category: str


class AttemptView(TypedDict, total=False):
    """One attempt of an execution."""

    index: int
    attempt_id: str
    type: str
    state: str
    worker_instance: str
    started_at: int
    ended_at: Optional[int]
    lease_epoch: int
    failure: Optional[FailureView]
    frames: int


class LeaseView(TypedDict, total=False):
    """Who runs an execution, and until when; never the fence."""

    worker_id: str
    worker_instance: str
    lease_epoch: int
    expires_at: int
    cancel_requested: bool
    yield_requested: bool


class ProgressView(TypedDict):
    """How far a handler says it is."""

    pct: int
    message: Optional[str]


class SummaryView(TypedDict, total=False):
    """An execution in a list."""

    execution_id: str
    namespace: str
    lane: str
    kind: str
    state: str
    lifecycle_phase: str
    blocking_reason: Optional[str]
    outcome: Optional[str]
    priority: int
    created_at: int
    updated_at: int
    ended_at: Optional[int]
    attempt_index: Optional[int]
    worker_instance: Optional[str]
    flow_id: Optional[str]
    parent_id: Optional[str]
    key: Optional[str]


class ExecutionView(SummaryView, total=False):
    """Everything about one execution. `input` and `result` are as the API encodes them; `Client.result` decodes."""

    blocking_detail: Optional[Dict[str, str]]
    delay_until: Optional[int]
    deadline_at: Optional[int]
    tags: Dict[str, str]
    requires: List[str]
    prefers: List[str]
    input: Any
    input_encoding: str
    result: Any
    result_encoding: Optional[str]
    failure: Optional[FailureView]
    attempts: List[AttemptView]
    attempts_omitted: int
    lease: Optional[LeaseView]
    progress: Optional[ProgressView]
    suspension: Optional[Dict[str, Any]]
    waitpoints: List[Dict[str, Any]]
    reclaim_count: int
    replay_count: int


class DoneView(TypedDict, total=False):
    """What became of an operator's request."""

    execution_id: str
    outcome: str
    state: str
    terminal_outcome: str
    cancel_by: int
    replay_count: int


class BulkView(TypedDict, total=False):
    """What a request about many executions did."""

    matched: int
    cancelled: int
    requested: int
    replayed: int
    unchanged: int
    refused: int
    next_cursor: Optional[str]


class HistoryView(TypedDict, total=False):
    """What happened to an execution."""

    execution_id: str
    attempts: List[AttemptView]
    suspension: Optional[Dict[str, Any]]
    past_suspensions: List[Dict[str, Any]]
    operator_actions: List[Dict[str, Any]]


class ReasonView(TypedDict, total=False):
    """One reason why an execution does not run, and what would change that."""

    reason: str
    detail: Dict[str, str]
    remedy: str


class ExplainView(TypedDict, total=False):
    """Why an execution is not running."""

    execution_id: str
    state: str
    can_run: bool
    reasons: List[ReasonView]
    lane: Dict[str, Any]
    place: Optional[Dict[str, Any]]
    requires: Optional[Dict[str, Any]]
    quotas: List[Dict[str, Any]]
    budgets: List[Dict[str, Any]]
    suspension: Optional[Dict[str, Any]]
    dependencies: Dict[str, Any]
    children: Dict[str, Any]


class UsageView(TypedDict, total=False):
    """What an execution used."""

    execution_id: str
    ledger: List[Dict[str, Any]]
    used: Dict[str, int]
    pending: int


class WaitpointView(TypedDict, total=False):
    """A waitpoint as an operator sees it; never its tokens."""

    waitpoint_id: str
    execution_id: str
    namespace: str
    lane: str
    kind: str
    key: str
    state: str
    suspension_id: Optional[str]
    reason: Optional[str]
    created_at: int
    expires_at: Optional[int]
    closed_at: Optional[int]
    closed_reason: Optional[str]
    allowed_signals: Optional[List[str]]
    approvers: List[Dict[str, Any]]
    signals: int
    condition: Any
    progress: Optional[str]


class MemberView(TypedDict, total=False):
    """A member of a flow."""

    key: str
    execution_id: str
    state: str
    kind: str
    lane: str
    inbound: Dict[str, Any]
    nested_flow_id: str
    edges_in: int
    edges_out: int
    duplicate: bool


#: An edge of a flow.
EdgeView = TypedDict("EdgeView", {"from": str, "to": str, "on": str, "pass_as": str, "state": str}, total=False)


class FlowView(TypedDict, total=False):
    """A flow; its first members when it was asked for alone."""

    flow_id: str
    namespace: str
    kind: str
    state: str
    counts: Dict[str, int]
    created_at: int
    finished_at: Optional[int]
    members: List[MemberView]
    members_next_cursor: Optional[str]
    edges: List[EdgeView]
    outcome: str
    duplicate: bool


class GraphView(TypedDict, total=False):
    """Every member and every edge of a flow, at one version."""

    flow_id: str
    state: str
    version: int
    nodes: List[MemberView]
    edges: List[EdgeView]


class LaneView(TypedDict, total=False):
    """A lane's definition, and what it holds when it was asked for alone."""

    namespace: str
    lane: str
    version: int
    state: str
    priority_weight: int
    fairness: str
    fairness_weights: Optional[Dict[str, int]]
    max_depth: Optional[int]
    max_active: Optional[int]
    weight: int
    retry: Optional[Dict[str, Any]]
    attempt_timeout_ms: Optional[int]
    retention_ms: Optional[int]
    lease_ttl_ms: Optional[int]
    counts: Dict[str, int]


class WorkerView(TypedDict, total=False):
    """A registered worker."""

    instance: str
    worker_id: str
    namespace: str
    lanes: List[str]
    capabilities: List[str]
    slots: int
    state: str
    registered_at: int
    expires_at: int


class BudgetView(TypedDict, total=False):
    """A budget as it stands."""

    budget_id: str
    namespace: str
    parent: Optional[str]
    scope: Dict[str, Any]
    dimensions: Dict[str, Dict[str, Optional[int]]]
    reset: Any
    on_soft: str
    on_hard: str
    version: int
    created_at: int
    next_reset_at: Optional[int]
    approved: bool


class QuotaView(TypedDict, total=False):
    """A quota, and its keys when it was asked for alone."""

    quota_id: str
    namespace: str
    version: int
    created_at: int
    rate: Optional[Dict[str, Any]]
    concurrency: Optional[int]
    weighted: Optional[Dict[str, Any]]
    hold_while_suspended: bool
    keys_in_use: int
    keys: List[Dict[str, Any]]
