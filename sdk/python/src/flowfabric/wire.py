# Generated from docs/reference/openapi.json by tools/wire.py; change it there.
"""The types of requests and responses, as typed dictionaries.

An optional field is `NotRequired`. A payload in a request is any JSON value or bytes. The client
writes its encoding.
"""

from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Union

from typing_extensions import NotRequired, TypedDict


Role = Literal["read", "submit", "signal", "worker", "operator", "admin", "metrics"]


class AccessToken(TypedDict):
    """What the bearer of a token may do."""

    capabilities: NotRequired[Optional[List[str]]]
    """The capabilities its workers may have; all when absent."""
    created_at: int
    """When it was made."""
    created_by: str
    """The actor that made it."""
    expires_at: NotRequired[Optional[int]]
    """When it ends by itself."""
    lanes: NotRequired[Optional[List[str]]]
    """The lanes it is for; all when absent."""
    name: str
    """The actor of what is done with it."""
    namespaces: NotRequired[Optional[List[str]]]
    """The namespaces it is for; all when absent."""
    roles: List[Role]
    """What its bearer may do."""
    token_id: str
    """Names the token; it is no secret."""


class AccessTokenPage(TypedDict):
    """A page of a list."""

    items: List[AccessToken]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


#: What an action did to an execution.
ActionOutcome = Literal["cancelled", "requested", "already", "replayed", "held", "released", "revoked"]


EdgeOn = Literal["success", "completion", "failure"]


#: An edge between two members, by their keys.
EdgeBody = TypedDict(
    "EdgeBody",
    {
        "from": str,
        "on": NotRequired[Optional[EdgeOn]],
        "pass_as": NotRequired[Optional[str]],
        "to": str,
    },
)


class AddEdgesBody(TypedDict):
    """Edges to add."""

    edges: Sequence[EdgeBody]
    """The edges."""


class BudgetRef(TypedDict):
    """The contract type `budget_ref`."""

    budget_id: str
    """`uuid`: a UUID in lower case"""
    estimate: NotRequired[Optional[Mapping[str, int]]]
    """`estimate?`: map from `dimension` to `amount`, at most 32"""


BackoffType = Literal["fixed", "exponential"]


class Backoff(TypedDict):
    """The contract type `backoff`."""

    delay_ms: NotRequired[Optional[int]]
    """`duration_ms?`: 0 to 315360000000"""
    factor: NotRequired[Optional[int]]
    """`backoff_factor?`: 1 to 100"""
    initial_ms: NotRequired[Optional[int]]
    """`duration_ms?`: 0 to 315360000000"""
    max_ms: NotRequired[Optional[int]]
    """`duration_ms?`: 0 to 315360000000"""
    type: BackoffType
    """`backoff_type`: `fixed`, `exponential`"""


Jitter = Literal["full", "none"]


class Retry(TypedDict):
    """When and how often a failed attempt is tried again."""

    backoff: NotRequired[Optional[Backoff]]
    """`backoff?`"""
    jitter: NotRequired[Optional[Jitter]]
    """`jitter?`: `full`, `none`"""
    max_attempts: NotRequired[Optional[int]]
    """`attempts_limit?`: 1 to 10000"""
    never_on: NotRequired[Optional[Sequence[str]]]
    """`categories?`: list of `category`, at most 64"""
    retry_on: NotRequired[Optional[Sequence[str]]]
    """`categories?`: list of `category`, at most 64"""


OnMemberFailure = Literal["continue", "fail_flow", "isolate_branch"]


class NamedPolicy(TypedDict):
    """What a flow does when a member fails, by name."""

    on_member_failure: NotRequired[Optional[OnMemberFailure]]
    """What it does; the default is to continue."""


#: What a flow does when a member fails: the word, or an object with it.
FlowPolicy = Union[OnMemberFailure, NamedPolicy]


class SubmitFlowBody(TypedDict):
    """Everything a submitter may say about a flow."""

    budgets: NotRequired[Optional[Sequence[BudgetRef]]]
    """What its members spend from."""
    completion_webhook: NotRequired[Optional[str]]
    """Told when it has ended."""
    deadline_at: NotRequired[Optional[int]]
    """Expired if it has not ended by then."""
    deadline_ms: NotRequired[Optional[int]]
    """Expired if it has not ended so long from now."""
    default_lane: NotRequired[Optional[str]]
    """The lane of members that name none."""
    default_retry: NotRequired[Optional[Retry]]
    """The retry policy of members that name none."""
    edges: NotRequired[Optional[Sequence[EdgeBody]]]
    """What each member waits for."""
    flow_id: NotRequired[Optional[str]]
    """Chosen by the client, or minted."""
    idempotency_key: NotRequired[Optional[str]]
    """The same key with the same body is the same flow, for as long as the flow is kept."""
    kind: str
    """What it is."""
    members: NotRequired[Optional[Sequence["MemberBody"]]]
    """Its members."""
    namespace: NotRequired[Optional[str]]
    """The default is `default`."""
    policy: NotRequired[Optional[FlowPolicy]]
    """What it does when a member fails."""
    retention_ms: NotRequired[Optional[int]]
    """How long it is kept once it has ended."""
    seal: NotRequired[Optional[bool]]
    """`false` leaves it open for more members; the default is `true`."""


OnSatisfied = Literal["cancel_remaining", "let_run"]


InboundPolicy = Literal["all_of", "any_of", "quorum"]


class Inbound(TypedDict):
    """When a member may run: after all, any or `k` of its edges."""

    k: NotRequired[Optional[int]]
    """`quorum?`: 1 to 100000"""
    on_satisfied: NotRequired[Optional[OnSatisfied]]
    """`on_satisfied?`: `cancel_remaining`, `let_run`"""
    policy: InboundPolicy
    """`inbound_policy`: `all_of`, `any_of`, `quorum`"""


class QuotaRef(TypedDict):
    """The contract type `quota_ref`."""

    key: str
    """`quota_key`: 1 to 256 bytes"""
    quota_id: str
    """`uuid`: a UUID in lower case"""
    weight: NotRequired[Optional[int]]
    """`amount?`: 1 to 9007199254740991"""


class StreamOptions(TypedDict):
    """The contract type `stream_options`."""

    max_frames: NotRequired[Optional[int]]
    """`frames_limit?`: 1 to 1000000"""


class MemberBody(TypedDict):
    """A member of a flow: an execution, or a flow that runs in its place."""

    attempt_timeout_ms: NotRequired[Optional[int]]
    """How long one attempt may take."""
    budgets: NotRequired[Optional[Sequence[BudgetRef]]]
    """What it spends from."""
    completion_webhook: NotRequired[Optional[str]]
    """Told when it has ended."""
    deadline_at: NotRequired[Optional[int]]
    """Expired if it has not ended by then."""
    deadline_ms: NotRequired[Optional[int]]
    """Expired if it has not ended so long from now."""
    delay_ms: NotRequired[Optional[int]]
    """Not before so long from now."""
    delay_until: NotRequired[Optional[int]]
    """Not before this time."""
    execution_id: NotRequired[Optional[str]]
    """Chosen by the client, or minted."""
    fairness_key: NotRequired[Optional[str]]
    """Executions of one key share their turn in a fair lane."""
    fallbacks: NotRequired[Optional[Sequence[Any]]]
    """What its worker may try instead, in order."""
    flow: NotRequired[Optional[SubmitFlowBody]]
    """The flow that runs in its place."""
    idempotency_key: NotRequired[Optional[str]]
    """The same key with the same body is the same execution."""
    idempotency_ttl_ms: NotRequired[Optional[int]]
    """How long the key is known; the default is a day."""
    inbound: NotRequired[Optional[Inbound]]
    """When it may run."""
    input: NotRequired[Any]
    """What the worker gets."""
    key: str
    """Its name in the flow."""
    kind: NotRequired[Optional[str]]
    """What it is; a flow in its place says so for it."""
    lane: NotRequired[Optional[str]]
    """Where it queues; the default is `default`."""
    max_reclaims: NotRequired[Optional[int]]
    """How often a lost lease is tried again; the default is 5."""
    max_replays: NotRequired[Optional[int]]
    """How often it may be replayed; the default is 10."""
    namespace: NotRequired[Optional[str]]
    """The default is `default`."""
    prefers: NotRequired[Optional[Sequence[str]]]
    """What its worker had better be able to do."""
    priority: NotRequired[Optional[int]]
    """Higher comes first; the default is 0."""
    quotas: NotRequired[Optional[Sequence[QuotaRef]]]
    """What it counts against."""
    requires: NotRequired[Optional[Sequence[str]]]
    """What its worker must be able to do."""
    retention_ms: NotRequired[Optional[int]]
    """How long it is kept once it has ended; the default is a week."""
    retry: NotRequired[Optional[Retry]]
    """When a failed attempt is tried again."""
    start_within_ms: NotRequired[Optional[int]]
    """Expired if it has not started so long from now."""
    stream: NotRequired[Optional[StreamOptions]]
    """How its streams are kept."""
    tags: NotRequired[Optional[Mapping[str, str]]]
    """What to find it by."""
    trace_parent: NotRequired[Optional[str]]
    """The trace it belongs to."""


class AddMembersBody(TypedDict):
    """What is added to a flow."""

    edges: NotRequired[Optional[Sequence[EdgeBody]]]
    """The edges into them."""
    members: NotRequired[Optional[Sequence[MemberBody]]]
    """The members."""


class AddedEdges(TypedDict):
    """The edges were added."""

    added: int
    """How many were new."""
    flow_id: str
    """The flow."""


MemberState = Literal[
    "held",
    "waiting",
    "delayed",
    "rate_limited",
    "waiting_children",
    "active",
    "suspended",
    "resumable",
    "completed",
    "failed",
    "cancelled",
    "expired",
    "skipped",
]


class AddedMember(TypedDict):
    """A member that was added."""

    duplicate: bool
    """The same member had been added before."""
    execution_id: str
    """The execution."""
    key: str
    """Its name in the flow."""
    state: MemberState
    """Where it stands."""


class AddedMembers(TypedDict):
    """The members that were added."""

    flow_id: str
    """The flow."""
    members: List[AddedMember]
    """The members."""


class AppendedFrames(TypedDict):
    """What an append wrote."""

    execution_id: str
    """The task's execution."""
    ids: List[str]
    """The id of each frame, in order."""
    next_sequence: int
    """The number the next frame of the attempt gets."""
    replayed: bool
    """The same call had been made before; nothing was written twice."""


class ApproverState(TypedDict):
    """Who may answer; no label means whoever holds the one token."""

    answered: bool
    """`bool`: true or false"""
    approver: NotRequired[Optional[str]]
    """`approver?`: 1 to 128 bytes"""
    uses_left: NotRequired[Optional[int]]
    """`count?`: 0 to 9007199254740991"""


class Failure(TypedDict):
    """The contract type `failure`."""

    category: str
    """`category`: 1 to 128 bytes"""
    reason: str
    """`reason`: 0 to 4096 bytes"""


AttemptState = Literal["started", "suspended", "succeeded", "failed", "cancelled", "interrupted", "timed_out"]


AttemptType = Literal["initial", "retry", "reclaim", "replay"]


class Attempt(TypedDict):
    """One attempt."""

    attempt_id: str
    """The attempt."""
    ended_at: NotRequired[Optional[int]]
    """When it ended."""
    failure: NotRequired[Optional[Failure]]
    """Why it failed."""
    frames: int
    """How many frames it has written."""
    index: int
    """Which one it is, counted from 0."""
    lease_epoch: int
    """The epoch of its last lease."""
    started_at: int
    """When it started."""
    state: AttemptState
    """Where it stands."""
    type: AttemptType
    """Why there is this attempt."""
    worker_instance: str
    """The process that ran it."""


class AttendBody(TypedDict):
    """A worker that waits for its standing to change."""

    draining: NotRequired[Optional[bool]]
    """What the worker knows: it gets an answer as soon as this is wrong."""
    incarnation: NotRequired[Optional[str]]
    """The process that asks."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used."""
    wait_ms: NotRequired[Optional[int]]
    """How long to wait for that; the default is not at all."""


class Attended(TypedDict):
    """The standing of a worker."""

    draining: bool
    """The worker takes nothing new."""


Overlap = Literal["skip", "queue_one", "queue_all", "cancel_previous", "allow"]


#: A backfill and how far it is: times up to `cursor` are decided.
Backfill = TypedDict(
    "Backfill",
    {
        "actor": str,
        "cursor": int,
        "ended_at": NotRequired[Optional[int]],
        "fired": int,
        "from": int,
        "overlap": Overlap,
        "skipped": int,
        "started_at": int,
        "stopped": bool,
        "to": int,
        "total": int,
    },
)


#: A time in the past that is to be made up for.
BackfillBody = TypedDict(
    "BackfillBody",
    {
        "from": int,
        "overlap": NotRequired[Optional[Overlap]],
        "to": int,
    },
)


#: An array of executions as `POST /v1/executions` takes them, or one of them.
BatchBody = Union[Sequence[Mapping[str, Any]], Mapping[str, Any]]


PublicState = Literal[
    "waiting",
    "delayed",
    "rate_limited",
    "waiting_children",
    "active",
    "suspended",
    "resumable",
    "completed",
    "failed",
    "cancelled",
    "expired",
    "skipped",
]


class Submitted(TypedDict):
    """What became of a submission."""

    duplicate: bool
    """The same id or key had been submitted before."""
    execution_id: str
    """The execution; the first one's when it was there already."""
    state: NotRequired[Optional[PublicState]]
    """Its state; null when the first one is gone."""


class ItemProblem(TypedDict):
    """A problem as it is written, that of one item of a batch for example."""

    code: str
    """What happened, for programs: it never changes its meaning."""
    detail: str
    """What happened, for people."""
    facts: NotRequired[Dict[str, str]]
    """What the code says more precisely, by name."""
    fields: NotRequired[Dict[str, str]]
    """What is wrong, by field of the request."""
    retryable: bool
    """True when asking again later, the same way, may succeed."""
    status: int
    """The status of an answer about this alone."""


class BatchLineError(TypedDict):
    error: ItemProblem


#: One line of the answer.
BatchLine = Union[Submitted, BatchLineError]


class BlockedCounts(TypedDict):
    """How many executions are blocked, by reason."""

    held_by_operator: int
    """An operator holds them."""
    waiting_for_budget: int
    """A budget is spent."""
    waiting_for_capable_worker: int
    """No live worker has what they require."""
    waiting_for_children: int
    """Children have not ended."""
    waiting_for_dependencies: int
    """Upstream members have not ended."""
    waiting_for_quota: int
    """A quota is full."""


class BlockedExecution(TypedDict):
    """An execution that waits."""

    blocked_since: NotRequired[Optional[int]]
    """Since when it waits."""
    continues: bool
    """It was parked while it ran, and goes on with the same attempt."""
    detail: Dict[str, str]
    """What was in the way."""
    execution_id: str
    """The execution."""
    kind: str
    """Its kind."""
    lane: str
    """Its lane."""
    namespace: str
    """Its namespace."""


class BlockedPage(TypedDict):
    """A page of executions that wait."""

    count: int
    """How many wait in all."""
    items: List[BlockedExecution]
    """The page, the first to go on first. It may be short while more follows."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next page begins."""


class BlockingCause(TypedDict):
    """One thing in the way of an execution."""

    detail: Dict[str, str]
    """What is known of it, by name. Times are texts of epoch milliseconds."""
    reason: str
    """What it is, as one word."""
    remedy: str
    """What would unblock it."""


BlockingReason = Literal[
    "waiting_for_capable_worker",
    "waiting_for_quota",
    "waiting_for_budget",
    "waiting_for_dependencies",
    "waiting_for_children",
    "held_by_operator",
]


class BudgetAction(TypedDict):
    """What an operator did to a budget."""

    action: str
    """`text`: 0 to 65536 bytes"""
    actor: str
    """`actor`: 1 to 128 bytes"""
    at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    delta: NotRequired[Optional[int]]
    """`delta?`: -9007199254740991 to 9007199254740991"""
    dimension: NotRequired[Optional[str]]
    """`dimension?`: 1 to 64 bytes"""
    reason: NotRequired[Optional[str]]
    """`reason?`: 0 to 4096 bytes"""


class DimensionStatus(TypedDict):
    """One dimension as it stands."""

    hard: NotRequired[Optional[int]]
    """Never more than this is used."""
    held: int
    """How much is held for work that was admitted or has reserved it."""
    remaining: NotRequired[Optional[int]]
    """What is left below the hard limit; `null` without one."""
    soft: NotRequired[Optional[int]]
    """At this much, `on_soft` says what happens."""
    used: int
    """How much is used in this period."""


OnHard = Literal["suspend", "block", "cancel", "fail"]


OnSoft = Literal["notify", "require_approval"]


class BudgetPeriod(TypedDict):
    """A period that ended, and what was used in it."""

    ended_at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    since: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    used: Dict[str, int]
    """`free`: map from `dimension` to `count`, at most 32"""


class IntervalReset(TypedDict):
    """A period that lasts so long."""

    interval_ms: int
    """How long a period is."""


#: How long a period of the calendar is.
CalendarUnit = Literal["day", "month"]


class CalendarReset(TypedDict):
    """A period that is a day or a month of a time zone."""

    calendar: CalendarUnit
    """How long a period is."""
    zone: NotRequired[Optional[str]]
    """The time zone by its IANA name; the default is UTC."""


#: A budget that is never reset.
NoReset = Literal["none"]


#: When the period of a budget ends.
BudgetReset = Union[IntervalReset, CalendarReset, NoReset]


ScopeType = Literal["namespace", "tenant", "flow", "lane", "custom"]


class BudgetScope(TypedDict):
    """The contract type `budget_scope`."""

    id: NotRequired[Optional[str]]
    """`scope_id?`: 1 to 256 bytes"""
    type: ScopeType
    """`scope_type`: `namespace`, `tenant`, `flow`, `lane`, `custom`"""


class Budget(TypedDict):
    """A budget as it stands."""

    actions: List[BudgetAction]
    """What operators did to it, oldest first."""
    approved: bool
    """An operator lets work start past the soft limits."""
    budget_id: str
    """The budget."""
    children: NotRequired[Optional[int]]
    """How many budgets are right below it. Shown for one budget, not in lists."""
    created_at: int
    """When it was made."""
    dimensions: Dict[str, DimensionStatus]
    """What it measures."""
    holders: NotRequired[Optional[int]]
    """How many hold something against it. Shown for one budget, not in lists."""
    namespace: str
    """The namespace it belongs to."""
    next_reset_at: NotRequired[Optional[int]]
    """When its period ends."""
    on_hard: OnHard
    """What happens at a hard limit."""
    on_soft: OnSoft
    """What happens at a soft limit."""
    parent: NotRequired[Optional[str]]
    """The budget it stands under."""
    past: List[BudgetPeriod]
    """Periods that ended."""
    period_since: int
    """When its period began."""
    reset: BudgetReset
    """When its period ends."""
    scope: BudgetScope
    """What it applies to."""
    version: int
    """Counts its changes."""


class BudgetChanges(TypedDict):
    """Fields of `ChangeBudgetBody` as keyword arguments."""

    on_hard: NotRequired[Optional[OnHard]]
    """What happens at a hard limit."""
    on_soft: NotRequired[Optional[OnSoft]]
    """What happens at a soft limit."""


#: One of the two limits of a dimension.
LimitKind = Literal["hard", "soft"]


class BudgetInTheWay(TypedDict):
    """The first limit that does not let an execution pass."""

    budget_id: str
    """The budget."""
    dimension: str
    """The dimension."""
    limit: LimitKind
    """Which of its limits."""
    remedy: str
    """What would let it pass."""


class BudgetLevel(TypedDict):
    """One of the budgets that have to let an execution pass."""

    approved: bool
    """Work may start past its soft limits in this period."""
    budget_id: str
    """The budget."""
    dimensions: Dict[str, DimensionStatus]
    """Its dimensions by name."""
    next_reset_at: NotRequired[Optional[int]]
    """When its next period begins."""


class BudgetFacts(TypedDict):
    """A budget an execution names, and those above it."""

    budget_id: str
    """The budget."""
    estimate: NotRequired[Optional[Dict[str, int]]]
    """What the execution is expected to spend."""
    in_the_way: NotRequired[Optional[BudgetInTheWay]]
    """The limit in the way, while there is one."""
    path: List[BudgetLevel]
    """Itself first, then those above it: each has to let it pass."""
    problem: NotRequired[Optional[str]]
    """`not found` when the budget is gone: nothing starts that names it."""


class BudgetFilter(TypedDict):
    """Parameters of `GET /v1/budgets` as keyword arguments."""

    namespace: NotRequired[Optional[str]]
    """Those of a namespace."""
    scope: NotRequired[Optional[ScopeType]]
    """Those of a type of scope."""


class NamedScope(TypedDict):
    """A type of scope and what it names."""

    id: NotRequired[Optional[str]]
    """The lane, the flow, the tenant."""
    type: ScopeType
    """The type."""


#: What a budget applies to: a type with its id, or the bare type.
ScopeBody = Union[ScopeType, NamedScope]


class BudgetOptions(TypedDict):
    """Fields of `CreateBudgetBody` as keyword arguments."""

    budget_id: NotRequired[Optional[str]]
    """Its id; minted by default."""
    namespace: NotRequired[Optional[str]]
    """The namespace it belongs to; the default is `default`."""
    on_hard: NotRequired[Optional[OnHard]]
    """What happens at a hard limit; the default is `suspend`."""
    on_soft: NotRequired[Optional[OnSoft]]
    """What happens at a soft limit; the default is `notify`."""
    parent: NotRequired[Optional[str]]
    """The budget it stands under: what is used here is used there as well."""
    reset: NotRequired[Optional[BudgetReset]]
    """When its period ends; the default is `none`."""
    scope: NotRequired[Optional[ScopeBody]]
    """What it applies to; the default is `custom`."""


class BudgetPage(TypedDict):
    """A page of a list."""

    items: List[Budget]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class BulkCancelBody(TypedDict):
    """Which executions are cancelled; at least one filter is given, here or in the query."""

    created_after: NotRequired[Optional[int]]
    """Submitted at this time or later."""
    created_before: NotRequired[Optional[int]]
    """Submitted at this time or earlier."""
    cursor: NotRequired[Optional[str]]
    """The `next_cursor` of the request before."""
    flow_id: NotRequired[Optional[str]]
    """Members of a flow; the one added last is the first."""
    grace_ms: NotRequired[Optional[int]]
    """How long a running attempt may take to end by itself."""
    kind: NotRequired[Optional[str]]
    """Those of a kind."""
    lane: NotRequired[Optional[str]]
    """Those of a lane."""
    limit: NotRequired[Optional[int]]
    """How many at most; the default is 1000."""
    namespace: NotRequired[Optional[str]]
    """Those of a namespace."""
    reason: NotRequired[Optional[str]]
    """Why; it is recorded with the action."""
    state: NotRequired[Optional[PublicState]]
    """Those in a state."""
    tag: NotRequired[Optional[str]]
    """Those with a tag: `key:value`."""
    worker: NotRequired[Optional[str]]
    """Those leased by a worker's instance."""


class BulkCounts(TypedDict):
    """What a bulk request did."""

    cancelled: NotRequired[Optional[int]]
    """Those that are cancelled."""
    matched: int
    """Executions that matched and were acted on."""
    next_cursor: NotRequired[Optional[str]]
    """Where to go on; absent when everything that matched was seen."""
    refused: int
    """Those that the store refused."""
    replayed: NotRequired[Optional[int]]
    """Those that run again."""
    requested: NotRequired[Optional[int]]
    """Those whose worker is asked."""
    unchanged: int
    """Ended, or replayed, by another request in the meantime."""


class BulkReplayBody(TypedDict):
    """Which ended executions run again; at least one filter is given, here or in the query."""

    created_after: NotRequired[Optional[int]]
    """Submitted at this time or later."""
    created_before: NotRequired[Optional[int]]
    """Submitted at this time or earlier."""
    cursor: NotRequired[Optional[str]]
    """The `next_cursor` of the request before."""
    flow_id: NotRequired[Optional[str]]
    """Members of a flow; the one added last is the first."""
    kind: NotRequired[Optional[str]]
    """Those of a kind."""
    lane: NotRequired[Optional[str]]
    """Those of a lane."""
    limit: NotRequired[Optional[int]]
    """How many at most; the default is 1000."""
    namespace: NotRequired[Optional[str]]
    """Those of a namespace."""
    reason: NotRequired[Optional[str]]
    """Why; it is recorded with the action."""
    state: NotRequired[Optional[PublicState]]
    """Those in a state."""
    tag: NotRequired[Optional[str]]
    """Those with a tag: `key:value`."""
    worker: NotRequired[Optional[str]]
    """Those leased by a worker's instance."""


class CancelExecutionBody(TypedDict):
    """Why an execution is cancelled, and how."""

    grace_ms: NotRequired[Optional[int]]
    """How long a running attempt may take to end by itself."""
    reason: NotRequired[Optional[str]]
    """Why; it is recorded with the action."""


CancelPolicy = Literal["cancel_all", "cancel_pending", "let_active_finish"]


class CancelFlowBody(TypedDict):
    """A flow is to end."""

    policy: NotRequired[Optional[CancelPolicy]]
    """What happens to running members; the default is that they are cancelled, too."""
    reason: NotRequired[Optional[str]]
    """Why, for people."""
    wait: NotRequired[Optional[bool]]
    """Returns when the flow has ended."""


class Fence(TypedDict):
    """Proof of the current lease."""

    attempt_id: str
    """`attempt_id`: a UUID in lower case"""
    lease_epoch: int
    """`epoch`: 0 to 9007199254740991"""
    lease_id: str
    """`lease_id`: a UUID in lower case"""


class CancelTaskBody(TypedDict):
    """A cancellation by the worker."""

    fence: Fence
    """The fence of the lease."""
    reason: NotRequired[Optional[str]]
    """Why, for people."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: the fence makes a repetition safe."""


class CancelWhere(TypedDict):
    """Fields of `BulkCancelBody` as keyword arguments."""

    created_after: NotRequired[Optional[int]]
    """Submitted at this time or later."""
    created_before: NotRequired[Optional[int]]
    """Submitted at this time or earlier."""
    cursor: NotRequired[Optional[str]]
    """The `next_cursor` of the request before."""
    flow_id: NotRequired[Optional[str]]
    """Members of a flow; the one added last is the first."""
    grace_ms: NotRequired[Optional[int]]
    """How long a running attempt may take to end by itself."""
    kind: NotRequired[Optional[str]]
    """Those of a kind."""
    lane: NotRequired[Optional[str]]
    """Those of a lane."""
    limit: NotRequired[Optional[int]]
    """How many at most; the default is 1000."""
    namespace: NotRequired[Optional[str]]
    """Those of a namespace."""
    reason: NotRequired[Optional[str]]
    """Why; it is recorded with the action."""
    state: NotRequired[Optional[PublicState]]
    """Those in a state."""
    tag: NotRequired[Optional[str]]
    """Those with a tag: `key:value`."""
    worker: NotRequired[Optional[str]]
    """Those leased by a worker's instance."""


class LimitPatchBody(TypedDict):
    """New limits of one dimension. `null` takes a limit away; one that is absent stays."""

    hard: NotRequired[Optional[int]]
    """Never more than this is used."""
    soft: NotRequired[Optional[int]]
    """At this much, `on_soft` says what happens."""


class ChangeBudgetBody(TypedDict):
    """A change of a budget. What is absent stays."""

    dimensions: NotRequired[Mapping[str, LimitPatchBody]]
    """New limits by dimension."""
    on_hard: NotRequired[Optional[OnHard]]
    """What happens at a hard limit."""
    on_soft: NotRequired[Optional[OnSoft]]
    """What happens at a soft limit."""


class ChangeExecutionBody(TypedDict):
    """What may change while an execution has not ended."""

    deadline_at: NotRequired[Optional[int]]
    """Expired if it has not ended by then."""
    delay_until: NotRequired[Optional[int]]
    """Not before this time."""
    lane: NotRequired[Optional[str]]
    """Where it queues."""
    priority: NotRequired[Optional[int]]
    """Higher comes first."""
    tags: NotRequired[Optional[Mapping[str, str]]]
    """All of its tags."""


RateMode = Literal["sliding", "smooth"]


class QuotaRateBody(TypedDict):
    """So many starts in a window."""

    limit: int
    """How many."""
    mode: NotRequired[Optional[RateMode]]
    """Anywhere in the window or evenly spaced; the default is `sliding`."""
    window_ms: int
    """How long the window is."""


class QuotaWeights(TypedDict):
    """So much weight in a window."""

    limit: int
    """`amount`: 1 to 9007199254740991"""
    window_ms: int
    """`window_ms`: 1 to 2678400000"""


class ChangeQuotaBody(TypedDict):
    """A change of a quota. What is absent stays, and `null` takes a part away."""

    concurrency: NotRequired[Optional[int]]
    """How many may run at once."""
    hold_while_suspended: NotRequired[Optional[bool]]
    """Suspended work keeps its place among what runs."""
    rate: NotRequired[Optional[QuotaRateBody]]
    """How many may start."""
    weighted: NotRequired[Optional[QuotaWeights]]
    """How much weight may start."""


Outcome = Literal["success", "failed", "cancelled", "expired", "skipped"]


#: How a field carries bytes.
Encoding = Literal["json", "base64"]


class Child(TypedDict):
    """What became of a child."""

    execution_id: str
    """The child's execution."""
    failure: NotRequired[Optional[Failure]]
    """Why it failed."""
    key: NotRequired[Optional[str]]
    """The name its parent knows it by."""
    outcome: NotRequired[Optional[Outcome]]
    """How it ended."""
    result: NotRequired[Any]
    """The result of a success."""
    result_encoding: NotRequired[Optional[Encoding]]
    state: PublicState
    """What a user calls its state."""


ParentClose = Literal["cancel_children", "abandon"]


class ChildBody(TypedDict):
    """A child to spawn."""

    attempt_timeout_ms: NotRequired[Optional[int]]
    """How long one attempt may take."""
    budgets: NotRequired[Optional[Sequence[BudgetRef]]]
    """What it spends from."""
    completion_webhook: NotRequired[Optional[str]]
    """Told when it has ended."""
    deadline_at: NotRequired[Optional[int]]
    """Expired if it has not ended by then."""
    deadline_ms: NotRequired[Optional[int]]
    """Expired if it has not ended so long from now."""
    delay_ms: NotRequired[Optional[int]]
    """Not before so long from now."""
    delay_until: NotRequired[Optional[int]]
    """Not before this time."""
    execution_id: NotRequired[Optional[str]]
    """Chosen by the client, or minted."""
    fairness_key: NotRequired[Optional[str]]
    """Executions of one key share their turn in a fair lane."""
    fallbacks: NotRequired[Optional[Sequence[Any]]]
    """What its worker may try instead, in order."""
    idempotency_key: NotRequired[Optional[str]]
    """The same key with the same body is the same execution."""
    idempotency_ttl_ms: NotRequired[Optional[int]]
    """How long the key is known; the default is a day."""
    input: NotRequired[Any]
    """What the worker gets."""
    key: NotRequired[Optional[str]]
    """A name its parent knows it by."""
    kind: str
    """What it is."""
    lane: NotRequired[Optional[str]]
    """Where it queues; the default is `default`."""
    max_reclaims: NotRequired[Optional[int]]
    """How often a lost lease is tried again; the default is 5."""
    max_replays: NotRequired[Optional[int]]
    """How often it may be replayed; the default is 10."""
    namespace: NotRequired[Optional[str]]
    """The default is `default`."""
    parent_close: NotRequired[Optional[ParentClose]]
    """What the parent's end means for it."""
    prefers: NotRequired[Optional[Sequence[str]]]
    """What its worker had better be able to do."""
    priority: NotRequired[Optional[int]]
    """Higher comes first; the default is 0."""
    quotas: NotRequired[Optional[Sequence[QuotaRef]]]
    """What it counts against."""
    requires: NotRequired[Optional[Sequence[str]]]
    """What its worker must be able to do."""
    retention_ms: NotRequired[Optional[int]]
    """How long it is kept once it has ended; the default is a week."""
    retry: NotRequired[Optional[Retry]]
    """When a failed attempt is tried again."""
    start_within_ms: NotRequired[Optional[int]]
    """Expired if it has not started so long from now."""
    stream: NotRequired[Optional[StreamOptions]]
    """How its streams are kept."""
    tags: NotRequired[Optional[Mapping[str, str]]]
    """What to find it by."""
    trace_parent: NotRequired[Optional[str]]
    """The trace it belongs to."""


class ChildCounts(TypedDict):
    """How many children an execution has."""

    open: int
    """Of them, those that have not ended."""
    total: int
    """Spawned."""


class ChildPage(TypedDict):
    """A page of a list."""

    items: List[Child]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class ClaimBody(TypedDict):
    """What a claim asks for."""

    incarnation: NotRequired[Optional[str]]
    """The process that asks."""
    kinds: NotRequired[Optional[Sequence[str]]]
    """The kinds to claim, among those the worker registered for; the default is all of them."""
    lanes: NotRequired[Optional[Sequence[str]]]
    """The lanes to claim from; the default is every lane the worker registered for."""
    lease_ttl_ms: NotRequired[Optional[int]]
    """How long the leases hold without a renewal; the default is 30 s."""
    max: NotRequired[Optional[int]]
    """How many tasks; the default is 1."""
    request_id: NotRequired[Optional[str]]
    """The same id again brings the same tasks, as far as they are still leased."""
    wait_ms: NotRequired[Optional[int]]
    """How long to wait for the first one; the default is not at all."""


class Passed(TypedDict):
    """What an upstream member passes under a name: its result, or how it failed."""

    encoding: NotRequired[Optional[Encoding]]
    execution_id: str
    """The upstream member's execution."""
    failure: NotRequired[Optional[Failure]]
    """Why it failed."""
    outcome: Outcome
    """How it ended."""
    value: NotRequired[Any]
    """Its result."""


ResumeCause = Literal["signal", "timeout", "operator", "children", "budget", "timer"]


class Signal(TypedDict):
    """A signal that came."""

    approver: NotRequired[Optional[str]]
    """The approver whose token it came with."""
    category: NotRequired[Optional[str]]
    """What kind of signal it is."""
    correlation_id: NotRequired[Optional[str]]
    """What it belongs to."""
    name: str
    """What it says."""
    payload: NotRequired[Any]
    """What it carries."""
    payload_encoding: NotRequired[Optional[Encoding]]
    received_at: int
    """When it arrived."""
    signal_id: str
    """The signal."""
    source: NotRequired[Optional[str]]
    """Where it came from."""
    source_identity: NotRequired[Optional[str]]
    """Its sender there."""
    waitpoint_id: NotRequired[Optional[str]]
    """The waitpoint at which it arrived."""
    waitpoint_key: NotRequired[Optional[str]]
    """The waitpoint's name."""


class Resume(TypedDict):
    """Why an attempt goes on, for the worker that continues it."""

    actor: NotRequired[Optional[str]]
    """The operator who ended a step's wait."""
    cause: ResumeCause
    """What ended it."""
    children: NotRequired[Optional[List[Child]]]
    """What became of the children it waited for."""
    continuation: NotRequired[Any]
    """What the attempt kept for itself when it was suspended."""
    continuation_encoding: NotRequired[Optional[Encoding]]
    more_children: NotRequired[Optional[bool]]
    """Their results are too much for one answer: the others are read with `GET /v1/executions/{id}/children`."""
    signals: List[Signal]
    """The signals that came, in order of arrival."""
    step: NotRequired[Optional[str]]
    """The wait that ended, by the name it was suspended under."""
    suspension_id: str
    """The suspension that ended."""


StepKind = Literal["run", "sleep", "signal", "children", "spawn"]


StepState = Literal["waiting", "done", "failed"]


class TaskStep(TypedDict):
    """A step as a claimed task carries it."""

    due_at: NotRequired[Optional[int]]
    """When a sleep ends, or when a failed step is tried again."""
    input_digest: NotRequired[Optional[str]]
    """What the handler made of the step's input."""
    kind: StepKind
    """What it is."""
    name: str
    """Its name."""
    result: NotRequired[Any]
    """What it returned. Absent above 4 KiB, and of a step that is no `run`: read it apart."""
    result_encoding: NotRequired[Optional[Encoding]]
    """How `result` carries its bytes."""
    state: StepState
    """What became of it. A sleep stays `waiting` here: it is over at `due_at`."""
    tries: int
    """How often it was tried."""


class Task(TypedDict):
    """A task as its worker gets it."""

    attempt_deadline_at: NotRequired[Optional[int]]
    """When the attempt times out."""
    attempt_id: str
    """The attempt."""
    attempt_index: int
    """The attempt's number, from 0."""
    attempt_type: AttemptType
    """Why there is this attempt."""
    created_at: int
    """When the execution was submitted."""
    deadline_at: NotRequired[Optional[int]]
    """When the whole execution expires."""
    execution_id: str
    """The execution."""
    fallback: NotRequired[Any]
    """What the tier says."""
    fallback_index: NotRequired[Optional[int]]
    """The fallback tier of this attempt, from 0."""
    flow_id: NotRequired[Optional[str]]
    """The flow it is a member of."""
    frames: int
    """How many frames the attempt wrote: the sequence of its next one."""
    input: Any
    """The execution's input."""
    input_encoding: NotRequired[Optional[Encoding]]
    key: NotRequired[Optional[str]]
    """Its name in its flow, or for its parent."""
    kind: str
    """The execution's kind."""
    lane: str
    """The execution's lane."""
    lease_epoch: int
    """The lease's epoch."""
    lease_expires_at: int
    """When the lease ends, unless it is renewed."""
    lease_id: str
    """The lease."""
    namespace: str
    """The execution's namespace."""
    parent_id: NotRequired[Optional[str]]
    """The execution that spawned it."""
    passed: NotRequired[Optional[Dict[str, Passed]]]
    """What upstream members pass to it, by name."""
    priority: int
    """The execution's priority."""
    resume: NotRequired[Optional[Resume]]
    """Why a waiting attempt goes on."""
    steps: NotRequired[List[TaskStep]]
    """What earlier runs of the handler recorded, in the order in which it was recorded first."""
    steps_more: NotRequired[bool]
    """More is recorded than fits here: a step that is not among `steps` is asked for by its name before it runs."""
    tags: Dict[str, str]
    """The execution's tags."""
    trace_parent: NotRequired[Optional[str]]
    """The trace the submitter continues."""


class Claimed(TypedDict):
    """The tasks a claim brought."""

    tasks: List[Task]
    """The tasks; none when nothing came."""


#: What became of a waitpoint.
CloseOutcome = Literal["closed"]


class CloseWaitpointBody(TypedDict):
    """A pending waitpoint that is given up."""

    fence: Fence
    """The fence of the lease."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: a repetition closes the same."""


class CompleteBody(TypedDict):
    """A result."""

    fence: Fence
    """The fence of the lease."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: the fence makes a repetition safe."""
    result: NotRequired[Any]
    """The result; absent for none."""


class ConditionSignal(TypedDict):
    signal: NotRequired[Optional[str]]
    """The name of a signal."""
    waitpoint: NotRequired[Optional[str]]
    """The name of a waitpoint in its suspension."""


class ConditionAnyOf(TypedDict):
    any_of: Sequence["Condition"]


class ConditionAllOf(TypedDict):
    all_of: Sequence["Condition"]


class ConditionCountOf(TypedDict):
    signal: NotRequired[Optional[str]]
    """The name of a signal."""
    waitpoint: NotRequired[Optional[str]]
    """The name of a waitpoint in its suspension."""


class ConditionCount(TypedDict):
    count: int
    of: NotRequired[Optional[ConditionCountOf]]
    over: Literal["signals", "waitpoints", "approvers"]


#: One signal, any or all of several conditions, or a count; nested at most four deep.
Condition = Union[ConditionSignal, ConditionAnyOf, ConditionAllOf, ConditionCount]


class ConsumeBody(TypedDict):
    """The grant to turn into a lease."""

    execution_id: str
    """The reserved execution."""
    grant_id: str
    """The grant."""
    incarnation: NotRequired[Optional[str]]
    """The process that asks."""
    lease_ttl_ms: NotRequired[Optional[int]]
    """How long the lease holds without a renewal; the default is 30 s."""
    request_id: NotRequired[Optional[str]]
    """The same id again brings the same lease."""


class Consumed(TypedDict):
    """The task a grant brought."""

    task: Task
    """The task."""


class CorrectBody(TypedDict):
    """A correction of what is used."""

    delta: int
    """By how much; below 0 gives back."""
    dimension: str
    """The dimension that was counted wrong."""
    reason: str
    """Why, for people."""


class LimitBody(TypedDict):
    """The limits of one dimension; 0 lets nothing pass."""

    hard: NotRequired[Optional[int]]
    """Never more than this is used."""
    soft: NotRequired[Optional[int]]
    """At this much, `on_soft` says what happens."""


class CreateBudgetBody(TypedDict):
    """A budget to make."""

    budget_id: NotRequired[Optional[str]]
    """Its id; minted by default."""
    dimensions: Mapping[str, LimitBody]
    """What it measures, and how much of it may be used."""
    namespace: NotRequired[Optional[str]]
    """The namespace it belongs to; the default is `default`."""
    on_hard: NotRequired[Optional[OnHard]]
    """What happens at a hard limit; the default is `suspend`."""
    on_soft: NotRequired[Optional[OnSoft]]
    """What happens at a soft limit; the default is `notify`."""
    parent: NotRequired[Optional[str]]
    """The budget it stands under: what is used here is used there as well."""
    reset: NotRequired[Optional[BudgetReset]]
    """When its period ends; the default is `none`."""
    scope: NotRequired[Optional[ScopeBody]]
    """What it applies to; the default is `custom`."""


class CreateQuotaBody(TypedDict):
    """A quota to make. It has a rate, a concurrency or a weighted part."""

    concurrency: NotRequired[Optional[int]]
    """How many may run at once."""
    hold_while_suspended: NotRequired[Optional[bool]]
    """Suspended work keeps its place among what runs; the default is `false`."""
    namespace: NotRequired[Optional[str]]
    """The namespace it belongs to; the default is `default`."""
    quota_id: NotRequired[Optional[str]]
    """Its id; minted by default."""
    rate: NotRequired[Optional[QuotaRateBody]]
    """How many may start."""
    weighted: NotRequired[Optional[QuotaWeights]]
    """How much weight may start."""


class CreateTokenBody(TypedDict):
    """A token to make."""

    capabilities: NotRequired[Optional[Sequence[str]]]
    """The capabilities its workers may have; all when absent."""
    expires_at: NotRequired[Optional[int]]
    """When it ends by itself."""
    lanes: NotRequired[Optional[Sequence[str]]]
    """The lanes it is for; all when absent."""
    name: str
    """The actor of what is done with it."""
    namespaces: NotRequired[Optional[Sequence[str]]]
    """The namespaces it is for; all when absent."""
    roles: Sequence[Role]
    """What its bearer may do."""


class CreateWaitpointBody(TypedDict):
    """A waitpoint to open."""

    allowed_signals: NotRequired[Optional[Sequence[str]]]
    """The names of signals it takes; the default is any."""
    approvers: NotRequired[Optional[Sequence[str]]]
    """Each gets a token of its own; by default there is one token."""
    expires_in_ms: NotRequired[Optional[int]]
    """It closes by itself so long from now."""
    fence: Fence
    """The fence of the lease."""
    key: str
    """Its name in the suspension."""
    request_id: NotRequired[Optional[str]]
    """The same id opens the same waitpoint once."""
    step: NotRequired[Optional[str]]
    """The step whose wait it belongs to: it outlives the attempt. One that is open already is answered without
    tokens.
    """
    uses: NotRequired[Optional[int]]
    """How many signals a token delivers."""
    waitpoint_id: NotRequired[Optional[str]]
    """The step's open waitpoint: it gets new tokens, and those it had stop working."""


class CreatedToken(AccessToken):
    """A new token; it is not told again."""

    token: str
    """A secret: the token itself."""


class DelayBody(TypedDict):
    """A task that is handed back until a time. One of `delay_ms` and `delay_until` is given."""

    delay_ms: NotRequired[Optional[int]]
    """How long from now."""
    delay_until: NotRequired[Optional[int]]
    """Until when."""
    fence: Fence
    """The fence of the lease."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: the fence makes a repetition safe."""


#: How a signal was taken.
DeliveryOutcome = Literal["accepted", "triggered_resume", "duplicate"]


class Upstream(TypedDict):
    """An edge a member waits for."""

    execution_id: str
    """`execution_id`: a UUID in lower case"""
    key: str
    """`member_key`: 1 to 128 bytes"""
    on: EdgeOn
    """`edge_on`: `success`, `completion`, `failure`"""
    state: MemberState
    """`member_state`: `held`, `waiting`, `delayed`, `rate_limited`, `waiting_children`, `active`, `suspended`,
    `resumable`, `completed`, `failed`, `cancelled`, `expired`, `skipped`
    """


class Dependencies(TypedDict):
    """How far the edges into a member are."""

    dead: int
    """How many can no longer be."""
    met: int
    """How many are met."""
    needed: int
    """How many edges must be met."""
    open: List[Upstream]
    """The first upstreams that have not ended."""
    policy: InboundPolicy
    """Which of the edges count."""
    total: int
    """How many there are."""


#: What asking a worker to stop did.
DrainOutcome = Literal["draining", "already"]


class Drained(TypedDict):
    """A worker that was asked to stop."""

    instance: str
    """The worker."""
    outcome: DrainOutcome
    """What happened."""


EdgeState = Literal["pending", "met", "dead"]


#: An edge between two members, by their keys.
Edge = TypedDict(
    "Edge",
    {
        "from": str,
        "on": EdgeOn,
        "pass_as": NotRequired[Optional[str]],
        "state": EdgeState,
        "to": str,
    },
)


#: What an event says of one thing.
EventData = Union[str, int, bool]


class Event(TypedDict):
    """An event as readers get it."""

    at: int
    """When."""
    attempt_index: NotRequired[Optional[int]]
    """The attempt by its index, counted from 0."""
    cursor: str
    """Where a reader that has seen it goes on."""
    data: Dict[str, EventData]
    """What else is known of it."""
    execution_id: NotRequired[Optional[str]]
    """The execution it happened to."""
    flow_id: NotRequired[Optional[str]]
    """The flow it happened to, or its execution's."""
    kind: NotRequired[Optional[str]]
    """The kind of the execution or the flow."""
    lane: NotRequired[Optional[str]]
    """The lane it happened in."""
    namespace: NotRequired[Optional[str]]
    """The namespace it happened in."""
    tags: NotRequired[Dict[str, str]]
    """The tags of the execution."""
    type: str
    """What happened, in the past tense."""
    worker_instance: NotRequired[Optional[str]]
    """The worker it happened at."""


class EventFilter(TypedDict):
    """Parameters of `GET /v1/events` as keyword arguments."""

    namespace: NotRequired[Optional[str]]
    """Those of a namespace."""
    lane: NotRequired[Optional[str]]
    """Those of a lane."""
    kind: NotRequired[Optional[str]]
    """Those of a kind."""
    tag: NotRequired[Optional[str]]
    """`key:value`."""
    flow_id: NotRequired[Optional[str]]
    """Those of a flow."""
    execution_id: NotRequired[Optional[str]]
    """Those of an execution."""
    worker: NotRequired[Optional[str]]
    """Those of a worker's instance."""


class Lease(TypedDict):
    """A lease as others than its holder see it."""

    cancel_requested: bool
    """The worker is asked to end the attempt."""
    expires_at: int
    """When it runs out without a renewal."""
    lease_epoch: int
    """Its epoch."""
    worker_id: str
    """The kind of worker."""
    worker_instance: str
    """The process that holds it."""
    yield_requested: bool
    """The worker is asked to hand the execution back."""


LifecyclePhase = Literal["runnable", "active", "suspended", "terminal"]


SuspensionReason = Literal[
    "waiting_for_signal",
    "waiting_for_approval",
    "waiting_for_callback",
    "waiting_for_tool_result",
    "waiting_for_operator_review",
    "paused_by_policy",
    "paused_by_budget",
    "step_boundary",
    "manual_pause",
]


class PastSuspension(TypedDict):
    """The contract type `past_suspension`."""

    actor: NotRequired[Optional[str]]
    """`actor?`: 1 to 128 bytes"""
    attempt_index: int
    """`attempt_index`: 0 to 9007199254740991"""
    cause: str
    """`text`: 0 to 65536 bytes"""
    ended_at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    reason: SuspensionReason
    """`suspension_reason`: `waiting_for_signal`, `waiting_for_approval`, `waiting_for_callback`,
    `waiting_for_tool_result`, `waiting_for_operator_review`, `paused_by_policy`, `paused_by_budget`,
    `step_boundary`, `manual_pause`
    """
    suspended_at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    suspension_id: str
    """`suspension_id`: a UUID in lower case"""


class Progress(TypedDict):
    """The contract type `progress`."""

    message: NotRequired[Optional[str]]
    """`progress_message?`: 0 to 1024 bytes"""
    pct: int
    """`pct`: 0 to 100"""


TimeoutBehavior = Literal["fail", "cancel", "expire", "auto_resume_with_timeout_signal", "escalate"]


WaitpointState = Literal["pending", "active", "closed"]


class OpenWaitpoint(TypedDict):
    """A waitpoint as its owner sees it."""

    expires_at: NotRequired[Optional[int]]
    """`time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch."""
    key: str
    """`waitpoint_key`: 1 to 128 bytes"""
    state: WaitpointState
    """`waitpoint_state`: `pending`, `active`, `closed`"""
    waitpoint_id: str
    """`waitpoint_id`: a UUID in lower case"""


class Suspension(TypedDict):
    """A suspension that has not ended."""

    condition: NotRequired[Optional[Dict[str, Any]]]
    """The condition as it was given, with what counted so far."""
    progress: str
    """The same in words."""
    reason: SuspensionReason
    """Why the execution waits."""
    suspended_at: int
    """Since when."""
    suspension_id: str
    """The suspension."""
    timeout_at: NotRequired[Optional[int]]
    """When it takes too long."""
    timeout_behavior: TimeoutBehavior
    """What happens then."""
    waitpoints: List[OpenWaitpoint]
    """Where signals arrive."""


WebhookState = Literal["pending", "delivered", "failed"]


class WebhookStatus(TypedDict):
    """How far the webhook of the last end is."""

    delivery_id: str
    """`delivery_id`: a UUID in lower case. A webhook that is owed; the same in every try."""
    error: NotRequired[Optional[str]]
    """`webhook_error?`: 0 to 512 bytes"""
    next_at: NotRequired[Optional[int]]
    """`time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch."""
    owed_at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    state: WebhookState
    """`webhook_state`: `pending`, `delivered`, `failed`"""
    status: NotRequired[Optional[int]]
    """`http_status?`: 100 to 999"""
    tries: int
    """`count`: 0 to 9007199254740991"""
    updated_at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""


class Execution(TypedDict):
    """Everything about one execution."""

    attempt_timeout_ms: NotRequired[Optional[int]]
    """How long one attempt may take."""
    attempts: List[Attempt]
    """Its attempts, the oldest first."""
    attempts_omitted: int
    """Older attempts that `/history` and `/attempts/{n}` show."""
    blocked_since: NotRequired[Optional[int]]
    """Since when it cannot start."""
    blocking_detail: NotRequired[Optional[Dict[str, str]]]
    """The facts behind the reason."""
    blocking_reason: NotRequired[Optional[BlockingReason]]
    """Why it cannot start, when it cannot."""
    budgets: List[BudgetRef]
    """What it spends from."""
    children: ChildCounts
    """How many children it has."""
    completion_webhook: NotRequired[Optional[str]]
    """Told when it has ended."""
    created_at: int
    """When it was submitted."""
    deadline_at: NotRequired[Optional[int]]
    """When it expires if it has not ended."""
    delay_until: NotRequired[Optional[int]]
    """Until when it waits."""
    ended_at: NotRequired[Optional[int]]
    """When it ended."""
    execution_id: str
    """The execution."""
    failure: NotRequired[Optional[Failure]]
    """Why it failed."""
    fairness_key: NotRequired[Optional[str]]
    """Executions of one key share their turn in a fair lane."""
    fallback_index: NotRequired[Optional[int]]
    """Which of its fallbacks the next attempt uses."""
    fired_at: NotRequired[Optional[int]]
    """When the schedule fired."""
    flow_id: NotRequired[Optional[str]]
    """The flow it is a member of."""
    forked_from: NotRequired[Optional[str]]
    """The execution whose steps it started with."""
    forks: NotRequired[List[str]]
    """The newest forks of it, the oldest first."""
    inbound: NotRequired[Optional[Inbound]]
    """When it may run, in a flow."""
    input: Any
    """What the worker gets; empty when nothing was given."""
    input_encoding: NotRequired[Optional[Encoding]]
    key: NotRequired[Optional[str]]
    """Its name in its flow, or for its parent."""
    kind: str
    """What it is."""
    lane: str
    """Its lane."""
    lease: NotRequired[Optional[Lease]]
    """The lease of the running attempt."""
    lifecycle_phase: LifecyclePhase
    """Runnable, active, suspended or terminal."""
    max_reclaims: int
    """How often a lost lease is tried again."""
    max_replays: int
    """How often it may be replayed."""
    namespace: str
    """Its namespace."""
    nested_flow_id: NotRequired[Optional[str]]
    """The flow that runs in its place."""
    nominal_at: NotRequired[Optional[int]]
    """The time of the schedule that it belongs to."""
    outcome: NotRequired[Optional[Outcome]]
    """How it ended."""
    parent_id: NotRequired[Optional[str]]
    """The execution that spawned it."""
    past_suspensions: List[PastSuspension]
    """Suspensions that have ended."""
    prefers: List[str]
    """What its worker had better be able to do."""
    priority: int
    """Higher comes first."""
    progress: NotRequired[Optional[Progress]]
    """How far the running attempt is."""
    quotas: List[QuotaRef]
    """What it counts against."""
    reclaim_count: int
    """How often a lease was lost in a row."""
    replay_count: int
    """How often it was replayed."""
    requires: List[str]
    """What its worker must be able to do."""
    result: NotRequired[Any]
    """The result of a success."""
    result_encoding: NotRequired[Optional[Encoding]]
    retention_ms: int
    """How long it is kept once it has ended."""
    retire_at: NotRequired[Optional[int]]
    """When it is removed."""
    retry: Retry
    """When a failed attempt is tried again."""
    schedule: NotRequired[Optional[str]]
    """The schedule that submitted it, in its namespace."""
    signals: int
    """How many signals came."""
    start_by: NotRequired[Optional[int]]
    """When it expires if it has not started."""
    state: PublicState
    """What a user calls its state."""
    steps: NotRequired[int]
    """How many steps its handler has recorded; `/steps` shows them."""
    suspension: NotRequired[Optional[Suspension]]
    """What it waits for while it is suspended."""
    tags: Dict[str, str]
    """What to find it by."""
    trace_parent: NotRequired[Optional[str]]
    """The trace it belongs to."""
    updated_at: int
    """When it changed last."""
    usage: Dict[str, int]
    """What its budgets accepted, by dimension; `/usage` shows the ledger."""
    waitpoints: List[OpenWaitpoint]
    """Open waitpoints, those of a running attempt included."""
    webhook: NotRequired[Optional[WebhookStatus]]
    """How far the webhook of its last end is."""


class ExecutionChanged(TypedDict):
    """The state after a change."""

    execution_id: str
    """The execution."""
    state: PublicState
    """Its state."""


class ExecutionChanges(TypedDict):
    """Fields of `ChangeExecutionBody` as keyword arguments."""

    deadline_at: NotRequired[Optional[int]]
    """Expired if it has not ended by then."""
    delay_until: NotRequired[Optional[int]]
    """Not before this time."""
    lane: NotRequired[Optional[str]]
    """Where it queues."""
    priority: NotRequired[Optional[int]]
    """Higher comes first."""
    tags: NotRequired[Optional[Mapping[str, str]]]
    """All of its tags."""


class ExecutionDone(TypedDict):
    """What became of it."""

    cancel_by: NotRequired[Optional[int]]
    """When it ends at the latest, after its worker was asked."""
    execution_id: str
    """The execution."""
    outcome: ActionOutcome
    """What happened."""
    replay_count: NotRequired[Optional[int]]
    """How often it was replayed."""
    state: NotRequired[Optional[PublicState]]
    """Its state afterwards."""
    terminal_outcome: NotRequired[Optional[Outcome]]
    """How it had ended already."""


class ExecutionFilter(TypedDict):
    """Parameters of `GET /v1/executions` as keyword arguments."""

    namespace: NotRequired[Optional[str]]
    """Those of a namespace."""
    lane: NotRequired[Optional[str]]
    """Those of a lane."""
    kind: NotRequired[Optional[str]]
    """Those of a kind."""
    state: NotRequired[Optional[PublicState]]
    """Those in a state."""
    tag: NotRequired[Optional[str]]
    """Those with a tag: `key:value`."""
    flow_id: NotRequired[Optional[str]]
    """Members of a flow; the one added last is the first."""
    worker: NotRequired[Optional[str]]
    """Those leased by a worker's instance."""
    created_after: NotRequired[Optional[int]]
    """Submitted at this time or later."""
    created_before: NotRequired[Optional[int]]
    """Submitted at this time or earlier."""


class ExecutionResult(TypedDict):
    """How an execution ended."""

    execution_id: str
    """The execution."""
    failure: NotRequired[Optional[Failure]]
    """Why it failed."""
    outcome: Outcome
    """The outcome."""
    result: NotRequired[Any]
    """The result of a success."""
    result_encoding: NotRequired[Optional[Encoding]]


class ExecutionSummary(TypedDict):
    """An execution in a list."""

    attempt_index: NotRequired[Optional[int]]
    """The number of its last attempt."""
    blocking_reason: NotRequired[Optional[BlockingReason]]
    """Why it cannot start, if it is blocked."""
    created_at: int
    """When it was submitted."""
    ended_at: NotRequired[Optional[int]]
    """When it ended."""
    execution_id: str
    """The execution."""
    failure: NotRequired[Optional[Failure]]
    """Why it failed."""
    flow_id: NotRequired[Optional[str]]
    """The flow, if it is a member."""
    key: NotRequired[Optional[str]]
    """Its key in its flow or under its parent."""
    kind: str
    """Its kind."""
    lane: str
    """Its lane."""
    lifecycle_phase: LifecyclePhase
    """Runnable, active, suspended or terminal."""
    namespace: str
    """Its namespace."""
    outcome: NotRequired[Optional[Outcome]]
    """Its outcome, if it has ended."""
    parent_id: NotRequired[Optional[str]]
    """Its parent, if it is a child."""
    priority: int
    """Higher priorities start first."""
    state: PublicState
    """Its state, as users see it."""
    updated_at: int
    """The time of its last change."""
    worker_instance: NotRequired[Optional[str]]
    """The instance of the worker that runs it."""


class ExecutionSummaryPage(TypedDict):
    """A page of a list."""

    items: List[ExecutionSummary]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class LedgerLine(TypedDict):
    """What an attempt used of a budget's dimension, and what it was refused."""

    accepted: int
    """`count`: 0 to 9007199254740991"""
    attempt_index: int
    """`attempt_index`: 0 to 9007199254740991"""
    budget_id: str
    """`budget_id`: a UUID in lower case"""
    dimension: str
    """`dimension`: 1 to 64 bytes"""
    refused: int
    """`count`: 0 to 9007199254740991"""


class ExecutionUsage(TypedDict):
    """What an execution used."""

    execution_id: str
    """The execution."""
    ledger: List[LedgerLine]
    """By attempt, budget and dimension."""
    pending: int
    """How many reports wait for their budget's answer."""
    used: Dict[str, int]
    """The sum of what was accepted, by dimension."""


class OpenChild(TypedDict):
    """A child that has not ended."""

    execution_id: str
    """The child."""
    key: NotRequired[Optional[str]]
    """A name its parent knows it by."""
    state: PublicState
    """Its state."""


class OpenChildren(TypedDict):
    """The children an execution waits for."""

    nested_flow_id: NotRequired[Optional[str]]
    """The flow that runs in its place."""
    open: int
    """How many of them have not ended."""
    total: int
    """How many it has spawned."""
    waits_for: List[OpenChild]
    """The first of those that have not ended."""


LaneState = Literal["active", "paused", "draining", "disabled"]


class LaneFacts(TypedDict):
    """The lane of an execution."""

    active: NotRequired[Optional[int]]
    """How many count against `max_active`; absent without one."""
    lane: str
    """The lane."""
    max_active: NotRequired[Optional[int]]
    """How many of its executions may run at once."""
    namespace: str
    """The lane's namespace."""
    state: LaneState
    """What the lane lets happen."""


class QueuePlace(TypedDict):
    """The place of an execution in its lane."""

    ahead: int
    """How many eligible executions of the lane stand before it."""
    more: NotRequired[bool]
    """There are more than were counted."""
    queue: str
    """The queue it stands in."""


QuotaPart = Literal["throttle", "rate", "concurrency", "weighted", "line"]


class QuotaUse(TypedDict):
    """How far one part of a quota is used under a key."""

    limit: int
    """`count`: 0 to 9007199254740991"""
    next_at: NotRequired[Optional[int]]
    """`time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch."""
    part: QuotaPart
    """`quota_part`: `throttle`, `rate`, `concurrency`, `weighted`, `line`"""
    used: int
    """`count`: 0 to 9007199254740991"""


class QuotaKeyState(TypedDict):
    """What a quota knows of one key."""

    held: int
    """`count`: 0 to 9007199254740991"""
    key: str
    """`quota_key`: 1 to 256 bytes"""
    parts: List[QuotaUse]
    """`[quota_use]`"""
    throttled_until: NotRequired[Optional[int]]
    """`time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch."""
    waiting: int
    """`count`: 0 to 9007199254740991"""


class QuotaFacts(QuotaKeyState):
    """A quota an execution names, as its key stands now."""

    problem: NotRequired[Optional[str]]
    """`not found` when the quota is gone: nothing starts that names it."""
    quota_id: str
    """The quota."""
    remedy: NotRequired[Optional[str]]
    """What would let it pass, while it would not."""
    weight: int
    """How much the execution counts."""


class NearestWorker(TypedDict):
    """A live worker, and the capabilities it lacks."""

    instance: str
    """The worker's instance."""
    missing: List[str]
    """What it lacks."""


class RequiredCapabilities(TypedDict):
    """What an execution requires of its worker."""

    capabilities: List[str]
    """The capabilities."""
    covered: bool
    """Some live worker of the lane has them all."""
    nearest: NotRequired[Optional[NearestWorker]]
    """The live worker of the lane that lacks the fewest."""


class Explanation(TypedDict):
    """Why an execution is not running, and what would change that."""

    budgets: List[BudgetFacts]
    """Each budget it names, with those above it."""
    can_run: bool
    """True while nothing but its turn is missing, or when it runs."""
    children: NotRequired[Optional[OpenChildren]]
    """The children it waits for."""
    dependencies: NotRequired[Optional[Dependencies]]
    """How far the edges into it are, in a flow."""
    execution_id: str
    """The execution."""
    lane: LaneFacts
    """The lane it is in."""
    place: NotRequired[Optional[QueuePlace]]
    """Its place in its lane, while nothing but its turn is missing."""
    quotas: List[QuotaFacts]
    """Each quota it names, as its key stands now."""
    reasons: List[BlockingCause]
    """What is in the way; nothing when it can run."""
    requires: NotRequired[Optional[RequiredCapabilities]]
    """The capabilities it requires, when it requires some."""
    state: PublicState
    """Its state."""
    suspension: NotRequired[Optional[Suspension]]
    """What it waits for: open waitpoints and how far its condition is."""


class FailSuspensionBody(TypedDict):
    """Why an operator ends a suspended execution."""

    category: NotRequired[Optional[str]]
    """What kind of failure it is; the default is `operator`."""
    reason: str
    """Why, for people."""


class FailTaskBody(TypedDict):
    """A failure of an attempt."""

    category: str
    """What kind of failure it is; retry policies go by it."""
    fence: Fence
    """The fence of the lease."""
    reason: str
    """Why, for people."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: the fence makes a repetition safe."""
    retry_after_ms: NotRequired[Optional[int]]
    """How long to wait before the next attempt, in place of the policy's backoff."""
    retryable: NotRequired[Optional[bool]]
    """`false` ends the execution, whatever its policy."""


Fairness = Literal["fifo", "fair"]


FiringCause = Literal["time", "trigger", "backfill"]


FiringState = Literal["waiting", "due", "running", "ended", "skipped", "missed"]


class Firing(TypedDict):
    """A firing of a schedule, and what became of it."""

    cause: FiringCause
    """Why it came."""
    count: NotRequired[Optional[int]]
    """How many missed times it stands for."""
    ended_at: NotRequired[Optional[int]]
    """When that was."""
    execution_id: NotRequired[Optional[str]]
    """What it submitted."""
    fired_at: int
    """When it was decided."""
    flow_id: NotRequired[Optional[str]]
    """What it submitted."""
    nominal_at: int
    """The time it belongs to."""
    number: int
    """Counts the firings of the schedule."""
    outcome: NotRequired[Optional[str]]
    """How what it submitted ended."""
    state: FiringState
    """What became of it."""
    tries: NotRequired[Optional[int]]
    """How often its submission was refused."""
    why: NotRequired[Optional[str]]
    """Why it was skipped or missed, or the code of the last refusal."""


class FiringPage(TypedDict):
    """A page of a list."""

    items: List[Firing]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


FlowState = Literal["open", "running", "blocked", "completed", "failed", "cancelled"]


class FlowStop(TypedDict):
    """Why nothing of a flow may start any more."""

    actor: NotRequired[Optional[str]]
    """`actor?`: 1 to 128 bytes"""
    at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    policy: CancelPolicy
    """`cancel_policy`: `cancel_all`, `cancel_pending`, `let_active_finish`"""
    reason: NotRequired[Optional[str]]
    """`reason?`: 0 to 4096 bytes"""


class Flow(TypedDict):
    """A flow without its members."""

    budgets: List[BudgetRef]
    """What its members spend from."""
    completion_webhook: NotRequired[Optional[str]]
    """Told when it has ended."""
    counts: Dict[str, int]
    """Members by their state; states without members are left out."""
    created_at: int
    """When it was submitted."""
    deadline_at: NotRequired[Optional[int]]
    """Expired if it has not ended by then."""
    default_lane: NotRequired[Optional[str]]
    """The lane of members that name none."""
    default_retry: NotRequired[Optional[Retry]]
    """The retry policy of members that name none."""
    finished_at: NotRequired[Optional[int]]
    """When nothing of it was left to run."""
    fired_at: NotRequired[Optional[int]]
    """When the schedule fired."""
    flow_id: str
    """The flow."""
    kind: str
    """What it is."""
    member_count: int
    """How many members it has."""
    namespace: str
    """Its namespace."""
    nominal_at: NotRequired[Optional[int]]
    """The time of the schedule that it belongs to."""
    parent_id: NotRequired[Optional[str]]
    """The member it runs in place of."""
    policy: OnMemberFailure
    """What it does when a member fails."""
    retention_ms: int
    """How long it is kept once it has ended."""
    schedule: NotRequired[Optional[str]]
    """The schedule that submitted it, in its namespace."""
    sealed_at: NotRequired[Optional[int]]
    """When its members were released."""
    state: FlowState
    """How it stands."""
    stop: NotRequired[Optional[FlowStop]]
    """Why nothing of it starts any more."""
    uncaught_failures: int
    """Failures that no other member took up."""
    updated_at: int
    """When it changed last."""
    version: int
    """Changes whenever edges are added."""
    webhook: NotRequired[Optional[WebhookStatus]]
    """How far the webhook of its last end is; shown of one flow, not in lists."""


#: What cancelling a flow did.
FlowCancelOutcome = Literal["cancelled", "already"]


class FlowCancelled(Flow):
    """What became of a flow that was to end."""

    outcome: FlowCancelOutcome
    """What happened."""


class FlowFilter(TypedDict):
    """Parameters of `GET /v1/flows` as keyword arguments."""

    namespace: NotRequired[Optional[str]]
    """Those of a namespace."""
    kind: NotRequired[Optional[str]]
    """Those of a kind."""
    state: NotRequired[Optional[FlowState]]
    """Those in a state."""


class Member(TypedDict):
    """A member in a list, or a node of the graph."""

    edges_in: int
    """How many edges lead to it."""
    edges_out: int
    """How many edges lead out of it."""
    execution_id: str
    """Its execution."""
    inbound: NotRequired[Optional[Inbound]]
    """When it may run."""
    key: str
    """Its name in the flow."""
    kind: str
    """What it is."""
    lane: str
    """Its lane."""
    nested_flow_id: NotRequired[Optional[str]]
    """The flow that runs in its place."""
    state: MemberState
    """Where it stands."""


class FlowGraph(TypedDict):
    """Every member and every edge, at one version of the graph."""

    edges: List[Edge]
    """The edges between them."""
    flow_id: str
    """The flow."""
    nodes: List[Member]
    """The members, in the order they were added."""
    state: FlowState
    """How it stands."""
    version: int
    """The version of the graph."""


class FlowOptions(TypedDict):
    """Fields of `SubmitFlowBody` as keyword arguments."""

    budgets: NotRequired[Optional[Sequence[BudgetRef]]]
    """What its members spend from."""
    completion_webhook: NotRequired[Optional[str]]
    """Told when it has ended."""
    deadline_at: NotRequired[Optional[int]]
    """Expired if it has not ended by then."""
    deadline_ms: NotRequired[Optional[int]]
    """Expired if it has not ended so long from now."""
    default_lane: NotRequired[Optional[str]]
    """The lane of members that name none."""
    default_retry: NotRequired[Optional[Retry]]
    """The retry policy of members that name none."""
    flow_id: NotRequired[Optional[str]]
    """Chosen by the client, or minted."""
    idempotency_key: NotRequired[Optional[str]]
    """The same key with the same body is the same flow, for as long as the flow is kept."""
    namespace: NotRequired[Optional[str]]
    """The default is `default`."""
    policy: NotRequired[Optional[FlowPolicy]]
    """What it does when a member fails."""
    retention_ms: NotRequired[Optional[int]]
    """How long it is kept once it has ended."""
    seal: NotRequired[Optional[bool]]
    """`false` leaves it open for more members; the default is `true`."""


class FlowPage(TypedDict):
    """A page of a list."""

    items: List[Flow]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class FlowShown(Flow):
    """A flow with its first members."""

    edges: List[Edge]
    """Between the members shown."""
    edges_omitted: bool
    """Not every edge out of them was looked at; the graph has them all."""
    members: List[Member]
    """Its first members."""
    members_next_cursor: NotRequired[Optional[str]]
    """Where the other members begin."""


class MemberId(TypedDict):
    """A member and its execution."""

    execution_id: str
    """The execution."""
    key: str
    """Its name in the flow."""


class FlowSubmitted(TypedDict):
    """What became of a flow that was submitted."""

    duplicate: bool
    """The same id or key had been submitted before."""
    flow_id: str
    """The flow."""
    members: List[MemberId]
    """Its members."""
    state: FlowState
    """Its state."""


class ForkBody(TypedDict):
    """What a fork changes. What is absent is as at the origin."""

    from_step: NotRequired[Optional[str]]
    """The fork starts with copies of the finished steps before this one; the default is all of them."""
    idempotency_key: NotRequired[Optional[str]]
    """The same key for the same origin forks once."""
    input: NotRequired[Any]
    """Another input."""
    lane: NotRequired[Optional[str]]
    """Another lane."""
    priority: NotRequired[Optional[int]]
    """Another priority."""
    tags: NotRequired[Optional[Mapping[str, str]]]
    """Other tags, in place of all it has."""


class Forked(TypedDict):
    """An execution that was forked off another one."""

    duplicate: bool
    """The same key had forked it before."""
    execution_id: str
    """The fork."""
    state: NotRequired[Optional[PublicState]]
    """Its state."""
    steps: int
    """How many steps it has: at first those that were copied."""


FrameMode = Literal["durable", "summary", "live"]


class Frame(TypedDict):
    """A frame as readers get it."""

    at: int
    """When it was written."""
    correlation_id: NotRequired[Optional[str]]
    """What belongs together."""
    id: str
    """Where a reader that has seen it goes on."""
    mode: FrameMode
    """How it is kept."""
    payload: NotRequired[Any]
    """What it says."""
    payload_encoding: NotRequired[Optional[Encoding]]
    sequence: int
    """Its number in the attempt, counted from 0."""
    type: str
    """What it is."""


class FrameBody(TypedDict):
    """A frame to write."""

    correlation_id: NotRequired[Optional[str]]
    """What belongs together."""
    mode: NotRequired[Optional[FrameMode]]
    """How it is kept; the default is `durable`."""
    payload: NotRequired[Any]
    """What it says."""
    type: str
    """What it is."""


class FramesBody(TypedDict):
    """Frames to write, in order."""

    fence: Fence
    """The fence of the lease."""
    first_sequence: NotRequired[Optional[int]]
    """The number of the first of them; what is there already is not written again."""
    frames: Sequence[FrameBody]
    """The frames."""
    request_id: NotRequired[Optional[str]]
    """The same id writes the same frames once."""


class FsckBody(TypedDict):
    """How to check."""

    repair: NotRequired[Optional[bool]]
    """`true` mends what has one right answer."""


class FsckFinding(TypedDict):
    """An invariant that does not hold."""

    invariant: int
    """Its number."""
    key: str
    """The key it does not hold for."""
    problem: str
    """What is wrong."""
    repaired: bool
    """It was mended."""


class FsckReport(TypedDict):
    """What was found."""

    clean: bool
    """Every invariant holds."""
    executions: int
    """How many executions were looked at."""
    findings: List[FsckFinding]
    """What does not hold."""
    foreign: List[str]
    """Keys that begin like ours and belong to no partition of this store."""
    keys: int
    """How many keys were looked at."""


class Grant(TypedDict):
    """A short reservation of one execution for one worker. Only that worker can turn it into a lease."""

    execution_id: str
    """The reserved execution."""
    expires_at: int
    """When the reservation expires by itself."""
    grant_id: str
    """Names the reservation."""
    kind: str
    """The kind of the execution."""
    lane: str
    """The lane of the execution."""


class GrantBody(TypedDict):
    """What to reserve."""

    grant_ttl_ms: NotRequired[Optional[int]]
    """How long each grant holds; the default is 5 s."""
    incarnation: NotRequired[Optional[str]]
    """The process that asks."""
    kinds: NotRequired[Optional[Sequence[str]]]
    """The kinds to reserve, among those the worker registered for; the default is all of them."""
    lanes: NotRequired[Optional[Sequence[str]]]
    """The lanes to reserve from; the default is every lane the worker registered for."""
    max: NotRequired[Optional[int]]
    """How many executions; the default is 1."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: grants that nobody consumes run out."""


class Granted(TypedDict):
    """What was reserved."""

    grants: List[Grant]
    """The grants."""


class LeaseRenewed(TypedDict):
    """A lease that goes on."""

    cancel_requested: bool
    """Somebody asks the attempt to end."""
    execution_id: str
    """The execution."""
    lease_expires_at: int
    """When the lease ends, unless it is renewed again."""
    yield_requested: bool
    """An operator asks the worker to hand the execution back."""


class LeaseRefused(ItemProblem):
    """A lease that was not renewed."""

    execution_id: str
    """The execution."""


#: What became of the renewal of one lease.
LeaseAnswer = Union[LeaseRenewed, LeaseRefused]


class HeartbeatAnswer(TypedDict):
    """What became of a heartbeat."""

    draining: bool
    """The worker takes nothing new."""
    leases: List[LeaseAnswer]
    """What became of each lease, in their order."""


class RenewBody(TypedDict):
    """A lease to renew."""

    attempt_id: str
    """The attempt."""
    execution_id: str
    """The execution."""
    lease_epoch: int
    """The lease's epoch."""
    lease_id: str
    """The lease."""


class HeartbeatBody(TypedDict):
    """The leases to renew."""

    incarnation: NotRequired[Optional[str]]
    """The process that asks."""
    renew: NotRequired[Optional[Sequence[RenewBody]]]
    """The leases."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: a repetition renews again."""


class OperatorAction(TypedDict):
    """The contract type `operator_action`."""

    action: str
    """`text`: 0 to 65536 bytes"""
    actor: str
    """`actor`: 1 to 128 bytes"""
    at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    reason: NotRequired[Optional[str]]
    """`reason?`: 0 to 4096 bytes"""


class History(TypedDict):
    """What happened to an execution."""

    attempts: List[Attempt]
    """Its attempts, the oldest first."""
    execution_id: str
    """The execution."""
    operator_actions: List[OperatorAction]
    """What operators did."""
    past_suspensions: List[PastSuspension]
    """Suspensions that have ended."""
    suspension: NotRequired[Optional[Suspension]]
    """What it waits for while it is suspended."""


class IssuedToken(TypedDict):
    """A token and its approver."""

    approver: NotRequired[Optional[str]]
    """The approver it was made for."""
    token: str
    """The token."""


class SigningKey(TypedDict):
    """A key by its name."""

    accepted_until: NotRequired[Optional[int]]
    """Until when its tokens are accepted; null without an end."""
    key_id: str
    """Its name."""
    made_at: int
    """When it was made."""
    signs: bool
    """Signs new tokens; the others are only accepted."""


class KeysChanged(TypedDict):
    """The keys after a change."""

    key_id: str
    """The key that signs now."""
    keys: List[SigningKey]
    """Every key, the one that signs first."""


class LaneDefinition(TypedDict):
    """How a lane behaves."""

    attempt_timeout_ms: NotRequired[Optional[int]]
    """`duration_ms?`: 0 to 315360000000"""
    fairness: Fairness
    """`fairness`: `fifo`, `fair`"""
    fairness_weights: NotRequired[Optional[Dict[str, int]]]
    """`fairness_weights?`: map from `fairness_key` to `weight`, at most 256"""
    lease_ttl_ms: NotRequired[Optional[int]]
    """`lease_ttl_ms?`: 1000 to 3600000"""
    max_active: NotRequired[Optional[int]]
    """`max_active?`: 1 to 1000000. How many executions of a lane may run at once."""
    max_depth: NotRequired[Optional[int]]
    """`count?`: 0 to 9007199254740991"""
    priority_weight: int
    """`priority_weight`: 0 to 1000000000000. Milliseconds of age one point of priority is worth."""
    retention_ms: NotRequired[Optional[int]]
    """`duration_ms?`: 0 to 315360000000"""
    retry: NotRequired[Optional[Retry]]
    """`retry?`"""
    state: LaneState
    """`lane_state`: `active`, `paused`, `draining`, `disabled`"""
    weight: int
    """`weight`: 1 to 1000000"""


class LaneCounts(TypedDict):
    """How many executions of a lane are in which state, over all partitions."""

    active: int
    """Those that run."""
    blocked: BlockedCounts
    """Those that something blocks."""
    delayed: int
    """Those that wait for a time."""
    eligible: int
    """Those that a worker may take."""
    granted: int
    """Those reserved for a worker."""
    oldest_eligible_at: NotRequired[Optional[int]]
    """Since when the oldest eligible one is there."""
    suspended: int
    """Those that wait for signals."""
    terminal: int
    """Those that have ended and are kept."""


class Lane(LaneDefinition):
    """A lane: its definition, and of a single one its counts."""

    counts: NotRequired[Optional[LaneCounts]]
    """What it holds; shown of one lane, not in lists."""
    lane: str
    """The lane."""
    namespace: str
    """The lane's namespace."""
    version: int
    """Changes whenever the definition does."""


class LaneBody(TypedDict):
    """Changes of a lane; what is absent stays as it is."""

    attempt_timeout_ms: NotRequired[Optional[int]]
    """How long an attempt may take, for executions that say nothing about it."""
    clear_max_depth: NotRequired[Optional[bool]]
    """`true` lets any number wait."""
    fairness: NotRequired[Optional[Fairness]]
    """Whose turn comes first."""
    fairness_weights: NotRequired[Optional[Mapping[str, int]]]
    """Shares of the turns of a fair lane, by fairness key."""
    lease_ttl_ms: NotRequired[Optional[int]]
    """How long a lease holds without a renewal, for workers that ask for no time."""
    max_active: NotRequired[Optional[int]]
    """How many of its executions may run at once. Null means any number; absent, it stays."""
    max_depth: NotRequired[Optional[int]]
    """How many executions may wait in it."""
    priority_weight: NotRequired[Optional[int]]
    """Milliseconds of age one point of priority is worth."""
    retention_ms: NotRequired[Optional[int]]
    """How long an execution is kept once it has ended, unless it names its own time."""
    retry: NotRequired[Optional[Retry]]
    """The retry policy of executions that name none."""
    state: NotRequired[Optional[LaneState]]
    """What the lane lets happen."""
    weight: NotRequired[Optional[int]]
    """Its share among the lanes of a worker."""


class LaneReasonPart(TypedDict):
    """One thing in the way."""

    budget_id: NotRequired[str]
    """The budget."""
    key: NotRequired[str]
    """The key."""
    kind: NotRequired[str]
    """The kind."""
    nearest: NotRequired[Optional[NearestWorker]]
    """The live worker that lacks the fewest."""
    quota_id: NotRequired[str]
    """The quota."""
    requires: NotRequired[List[str]]
    """The capabilities."""
    count: int
    """How many of those looked at wait for it: the longest waiting of every partition."""
    next_at: NotRequired[Optional[int]]
    """When the first of them may go on, where a time is known."""
    remedy: str
    """What would unblock them."""


class LaneReason(TypedDict):
    """Why some of the work waits."""

    count: int
    """How many executions wait for it."""
    next_at: NotRequired[Optional[int]]
    """When the first of them may go on, where a time is known."""
    parts: List[LaneReasonPart]
    """What is in the way, one by one."""
    reason: str
    """The reason, as one word."""
    remedy: str
    """What would unblock them."""


class LaneWorkers(TypedDict):
    """The live workers that take from a lane."""

    live: int
    """How many there are."""
    slots: int
    """How many executions they run at once."""


class LaneExplanation(LaneFacts):
    """Why the work of a lane is not running."""

    reasons: List[LaneReason]
    """Why some of the work waits, each execution under one reason."""
    running: int
    """How many of its executions run."""
    waiting: int
    """How many have not ended and do not run; the counts of the reasons add up to it."""
    workers: LaneWorkers
    """The live workers that take from the lane."""


class LaneOptions(TypedDict):
    """Fields of `LaneBody` as keyword arguments."""

    attempt_timeout_ms: NotRequired[Optional[int]]
    """How long an attempt may take, for executions that say nothing about it."""
    clear_max_depth: NotRequired[Optional[bool]]
    """`true` lets any number wait."""
    fairness: NotRequired[Optional[Fairness]]
    """Whose turn comes first."""
    fairness_weights: NotRequired[Optional[Mapping[str, int]]]
    """Shares of the turns of a fair lane, by fairness key."""
    lease_ttl_ms: NotRequired[Optional[int]]
    """How long a lease holds without a renewal, for workers that ask for no time."""
    max_active: NotRequired[Optional[int]]
    """How many of its executions may run at once. Null means any number; absent, it stays."""
    max_depth: NotRequired[Optional[int]]
    """How many executions may wait in it."""
    priority_weight: NotRequired[Optional[int]]
    """Milliseconds of age one point of priority is worth."""
    retention_ms: NotRequired[Optional[int]]
    """How long an execution is kept once it has ended, unless it names its own time."""
    retry: NotRequired[Optional[Retry]]
    """The retry policy of executions that name none."""
    state: NotRequired[Optional[LaneState]]
    """What the lane lets happen."""
    weight: NotRequired[Optional[int]]
    """Its share among the lanes of a worker."""


class LanePage(TypedDict):
    """A page of a list."""

    items: List[Lane]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class LaneReasonOfRequires(TypedDict):
    """A worker that has these capabilities."""

    nearest: NotRequired[Optional[NearestWorker]]
    """The live worker that lacks the fewest."""
    requires: List[str]
    """The capabilities."""


class LaneReasonOfKind(TypedDict):
    """A worker that takes this kind."""

    kind: str
    """The kind."""


class LaneReasonOfQuotaId(TypedDict):
    """A key of a quota."""

    key: str
    """The key."""
    quota_id: str
    """The quota."""


class LaneReasonOfBudgetId(TypedDict):
    """A budget."""

    budget_id: str
    """The budget."""


#: What work of a lane waits for.
LaneReasonOf = Union[LaneReasonOfRequires, LaneReasonOfKind, LaneReasonOfQuotaId, LaneReasonOfBudgetId]


class LaneStats(TypedDict):
    """How many executions of a lane are in which state."""

    counts: LaneCounts
    """Its counts."""
    lane: str
    """The lane."""
    namespace: str
    """The lane's namespace."""


class LeaveBody(TypedDict):
    """Which process leaves."""

    force: NotRequired[Optional[bool]]
    """An operator ends it whichever process it is."""
    incarnation: NotRequired[Optional[str]]
    """The process that leaves."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: a repetition changes nothing."""


class MemberPage(TypedDict):
    """A page of a list."""

    items: List[Member]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class NextTime(TypedDict):
    """A time that comes."""

    nominal_at: int
    """The time."""
    why: NotRequired[Optional[str]]
    """Why it will not: `paused`, `remaining`, `overlap` or `backfill`; or what it waits for: `refused`."""
    will_fire: bool
    """Whether it will fire, as far as that is known now."""


class NextTimes(TypedDict):
    """The next times of a schedule."""

    items: List[NextTime]
    """The times, the first one first."""


class OpenedWaitpoint(TypedDict):
    """A waitpoint that was opened now, with the tokens that are shown this once."""

    done: NotRequired[bool]
    """The wait of its step is over: nothing was opened."""
    expires_at: NotRequired[Optional[int]]
    """When it closes by itself."""
    key: str
    """Its name in the suspension."""
    tokens: List[IssuedToken]
    """Its tokens; none when it was opened earlier."""
    waitpoint_id: str
    """The waitpoint."""


class PartitionConfig(TypedDict):
    """The partition counts of a store, none of them 0. They decide where every record is stored, so a store keeps
    the counts of its first boot.
    """

    budgets: int
    """Budgets."""
    executions: int
    """Executions and flows."""
    quotas: int
    """Quotas."""
    schedules: int
    """Schedules."""


class PauseScheduleBody(TypedDict):
    """Why a schedule is paused."""

    reason: NotRequired[Optional[str]]
    """Why, for people."""


class Problem(TypedDict):
    """The body of a problem."""

    code: str
    """What happened, for programs: it never changes its meaning."""
    detail: str
    """What happened, for people."""
    facts: NotRequired[Dict[str, str]]
    """What the code says more precisely, by name."""
    fields: NotRequired[Dict[str, str]]
    """What is wrong, by field of the request."""
    request_id: str
    retryable: bool
    """True when asking again later, the same way, may succeed."""
    status: int
    title: str
    """What the code means."""
    type: str
    """A name for the code that is unique beyond this API."""


class ProgressBody(TypedDict):
    """How far an attempt is."""

    fence: Fence
    """The fence of the lease."""
    message: NotRequired[Optional[str]]
    """What the attempt is doing."""
    pct: int
    """Percent."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: a repetition notes the same."""


class StepFailure(TypedDict):
    """How a try of a step failed."""

    category: str
    """What kind of failure it is."""
    reason: str
    """Why, for people."""


class PutStepBody(TypedDict):
    """What became of a step: its result, or with `failure` how its last try failed."""

    failure: NotRequired[Optional[StepFailure]]
    """The last try has failed; there is no result then."""
    fence: Fence
    """The fence of the lease."""
    input_digest: NotRequired[Optional[str]]
    """A digest of the step's input: a later run that has another one learns so."""
    rerun: NotRequired[Optional[bool]]
    """A result that was stored with another `input_digest` is replaced."""
    result: NotRequired[Any]
    """The result, at most 1 MiB; absent for none."""
    retry_at: NotRequired[Optional[int]]
    """When a failed step is tried again."""
    started_at: NotRequired[Optional[int]]
    """When it began, by the worker's clock."""
    tries: NotRequired[Optional[int]]
    """How often it was tried, this time included; the default is 1."""


#: What a worker's word about a step did.
PutStepOutcome = Literal["stored", "known", "noted"]


class QuotaRate(TypedDict):
    """So many starts in a window: anywhere in it, or evenly spaced."""

    limit: int
    """`rate_limit`: 1 to 1000000"""
    mode: RateMode
    """`rate_mode`: `sliding`, `smooth`"""
    window_ms: int
    """`window_ms`: 1 to 2678400000"""


class Quota(TypedDict):
    """A quota and, where they were asked for, how far its keys are used."""

    concurrency: NotRequired[Optional[int]]
    """How many may run at once."""
    created_at: int
    """When it was made."""
    hold_while_suspended: bool
    """Suspended work keeps its place among what runs."""
    keys: NotRequired[Optional[List[QuotaKeyState]]]
    """The key that was asked for, or those in use. Shown for one quota, not in lists."""
    keys_in_use: int
    """How many keys are in use."""
    namespace: str
    """The namespace it belongs to."""
    quota_id: str
    """The quota."""
    rate: NotRequired[Optional[QuotaRate]]
    """How many may start."""
    version: int
    """Counts its changes."""
    weighted: NotRequired[Optional[QuotaWeights]]
    """How much weight may start."""


class QuotaChanges(TypedDict):
    """Fields of `ChangeQuotaBody` as keyword arguments."""

    concurrency: NotRequired[Optional[int]]
    """How many may run at once."""
    hold_while_suspended: NotRequired[Optional[bool]]
    """Suspended work keeps its place among what runs."""
    rate: NotRequired[Optional[QuotaRateBody]]
    """How many may start."""
    weighted: NotRequired[Optional[QuotaWeights]]
    """How much weight may start."""


class QuotaOptions(TypedDict):
    """Fields of `CreateQuotaBody` as keyword arguments."""

    concurrency: NotRequired[Optional[int]]
    """How many may run at once."""
    hold_while_suspended: NotRequired[Optional[bool]]
    """Suspended work keeps its place among what runs; the default is `false`."""
    namespace: NotRequired[Optional[str]]
    """The namespace it belongs to; the default is `default`."""
    quota_id: NotRequired[Optional[str]]
    """Its id; minted by default."""
    rate: NotRequired[Optional[QuotaRateBody]]
    """How many may start."""
    weighted: NotRequired[Optional[QuotaWeights]]
    """How much weight may start."""


class QuotaPage(TypedDict):
    """A page of a list."""

    items: List[Quota]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class ReasonBody(TypedDict):
    """Why an operator acts."""

    reason: NotRequired[Optional[str]]
    """Why; it is recorded with the action."""


class ReclaimBody(TypedDict):
    """The worker that gets an interrupted execution."""

    instance: str
    """The worker's instance."""
    ttl_ms: NotRequired[Optional[int]]
    """How long it is reserved for the worker; the default is 30 seconds."""


class ReclaimGrant(TypedDict):
    """An interrupted execution that an operator hands to a chosen worker."""

    execution_id: str
    """The interrupted execution."""
    expires_at: int
    """When the reservation expires by itself."""
    grant_id: str
    """Names the reservation."""
    kind: str
    """The kind of the execution."""
    lane: str
    """The lane of the execution."""


class Reclaimed(TypedDict):
    """An execution that is reserved for a worker."""

    grant: ReclaimGrant
    """The reservation."""


class RegisterBody(TypedDict):
    """What a worker serves."""

    capabilities: NotRequired[Optional[Sequence[str]]]
    """What it can do."""
    incarnation: NotRequired[Optional[str]]
    """Random per process: tells two processes with one instance apart."""
    kinds: NotRequired[Optional[Sequence[str]]]
    """The kinds it takes; the default is every kind."""
    lanes: Sequence[str]
    """The lanes it serves."""
    namespace: NotRequired[Optional[str]]
    """The namespace of its lanes; the default is `default`."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: a repetition registers the same."""
    slots: NotRequired[Optional[int]]
    """How many leases it may hold; the default is 1."""
    worker_id: str
    """The program."""


class Registered(TypedDict):
    """A registration."""

    expires_at: int
    """When the registration ends, unless the worker says something."""
    heartbeat_ms: int
    """How often the worker has to say something."""
    partitions: PartitionConfig
    """Of the store; they never change."""


class ReissueBody(TypedDict):
    """Which token to make anew."""

    approver: NotRequired[Optional[str]]
    """The approver whose token it is; absent for the one token of a waitpoint without approvers."""


class ReissuedToken(TypedDict):
    """A new token of a waitpoint, and its approver."""

    approver: NotRequired[Optional[str]]
    """The approver it was made for."""
    token: str
    """The token."""
    waitpoint_id: str
    """The waitpoint."""


class ReleaseForTaskBody(TypedDict):
    """A reservation that a running attempt gives back."""

    budget_id: str
    """The budget of the reservation."""
    fence: NotRequired[Optional[Fence]]
    """The fence of the lease."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: a repetition gives back the same."""
    reservation_id: str
    """The reservation."""


#: What became of a reservation that was given back.
ReleaseOutcome = Literal["released"]


class ReleaseReservationBody(TypedDict):
    """A reservation to give back."""

    reservation_id: str
    """The reservation."""


class Released(TypedDict):
    """A reservation was given back."""

    outcome: ReleaseOutcome
    """What happened."""


class ReplayFromStep(TypedDict):
    """At this step: the steps recorded before it are kept."""

    step: str
    """At this step: the steps recorded before it are kept."""


#: Where a replay goes on.
ReplayFrom = Union[Literal["start"], ReplayFromStep]


#: How an ended execution is run again.
ReplayBody = TypedDict(
    "ReplayBody",
    {
        "from": NotRequired[Optional[ReplayFrom]],
        "reason": NotRequired[Optional[str]],
    },
)


class ReplayWhere(TypedDict):
    """Fields of `BulkReplayBody` as keyword arguments."""

    created_after: NotRequired[Optional[int]]
    """Submitted at this time or later."""
    created_before: NotRequired[Optional[int]]
    """Submitted at this time or earlier."""
    cursor: NotRequired[Optional[str]]
    """The `next_cursor` of the request before."""
    flow_id: NotRequired[Optional[str]]
    """Members of a flow; the one added last is the first."""
    kind: NotRequired[Optional[str]]
    """Those of a kind."""
    lane: NotRequired[Optional[str]]
    """Those of a lane."""
    limit: NotRequired[Optional[int]]
    """How many at most; the default is 1000."""
    namespace: NotRequired[Optional[str]]
    """Those of a namespace."""
    reason: NotRequired[Optional[str]]
    """Why; it is recorded with the action."""
    state: NotRequired[Optional[PublicState]]
    """Those in a state."""
    tag: NotRequired[Optional[str]]
    """Those with a tag: `key:value`."""
    worker: NotRequired[Optional[str]]
    """Those leased by a worker's instance."""


class ReportUsageBody(TypedDict):
    """What a running attempt used."""

    budget_id: str
    """The budget it reports to."""
    dedup_key: NotRequired[Optional[str]]
    """The same key counts once, whoever reports it."""
    dimensions: Mapping[str, int]
    """What was used."""
    fence: Fence
    """The fence of the lease."""
    request_id: NotRequired[Optional[str]]
    """The same id counts once for this execution. Not used beside a key."""


class ReserveBody(TypedDict):
    """Amounts to hold against a budget."""

    dedup_key: NotRequired[Optional[str]]
    """The same key is the same reservation."""
    dimensions: Mapping[str, int]
    """What to hold."""
    execution_id: NotRequired[Optional[str]]
    """The execution that runs under the fence."""
    fence: NotRequired[Optional[Fence]]
    """The fence of a lease: the amounts are held as long as it lives."""
    ttl_ms: NotRequired[Optional[int]]
    """For how long, without a lease; the default is one minute."""


class ReserveForTaskBody(TypedDict):
    """Amounts to hold for a running attempt."""

    budget_id: str
    """The budget to hold against."""
    dedup_key: NotRequired[Optional[str]]
    """The same key under the same lease is the same reservation."""
    dimensions: Mapping[str, int]
    """What to hold."""
    fence: Fence
    """The fence of the lease."""
    request_id: NotRequired[Optional[str]]
    """Stands in for a key that is absent."""


class ReservedOk(TypedDict):
    """The amounts are held."""

    expires_at: NotRequired[Optional[int]]
    """Until when it holds; absent when it holds as long as the lease."""
    outcome: Literal["ok"]
    reservation_id: str
    """The reservation."""


class ReservedHardBreach(TypedDict):
    """Nothing is held: a hard limit is in the way."""

    budget_id: str
    """The budget of the limit: the one asked, or one above it."""
    dimension: str
    """The dimension of the limit."""
    limit: int
    """The limit."""
    outcome: Literal["hard_breach"]
    used: int
    """How much of it is used."""


#: What became of a reservation.
Reserved = Union[ReservedOk, ReservedHardBreach]


#: What a worker's call did to its task.
TaskOutcome = Literal["completed", "failed", "retry_scheduled", "cancelled", "delayed", "yielded", "noted"]


class TaskDone(TypedDict):
    """What became of a task."""

    delay_until: NotRequired[Optional[int]]
    """When the execution is tried again."""
    execution_id: str
    """The task's execution."""
    outcome: TaskOutcome
    """What happened."""
    replayed: bool
    """The same call had been made before; nothing happened twice."""


class ResultRefused(ItemProblem):
    """A result that was not taken."""

    execution_id: NotRequired[Optional[str]]
    """The execution, when the result names one."""


#: What became of one result.
ResultAnswer = Union[TaskDone, ResultRefused]


class ResultPending(TypedDict):
    """Where an execution stands that has not ended."""

    execution_id: str
    """The execution."""
    state: PublicState
    """Its state."""


class ResultsAnswered(TypedDict):
    """What became of each result, in their order, and what the claim brought."""

    claim_error: NotRequired[Optional[ItemProblem]]
    """Why the claim brought nothing; the results stand all the same."""
    results: List[ResultAnswer]
    """What became of each result."""
    tasks: NotRequired[Optional[List[Task]]]
    """What the claim brought."""


class ResultsBody(TypedDict):
    """The results, and the claim that goes with them."""

    claim: NotRequired[Optional[ClaimBody]]
    """The claim; it never waits."""
    incarnation: NotRequired[Optional[str]]
    """The process that asks."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: each fence makes a repetition safe."""
    results: Sequence[Mapping[str, Any]]
    """The results. Each has `execution_id`, `fence` and `op`, which is `complete` or `fail`, with what the request
    of that name takes. One that cannot be used is refused alone.
    """


#: The results with a claim, or their bare list.
ResultsOrList = Union[ResultsBody, Sequence[Mapping[str, Any]]]


class ResumeBody(TypedDict):
    """Why an operator lets an attempt go on."""

    reason: NotRequired[Optional[str]]
    """Why, for people."""


class RevokeBody(TypedDict):
    """Why a lease is taken away, and how."""

    grace: NotRequired[Optional[bool]]
    """`true` asks the worker to hand the execution back; the default takes the lease at once."""
    reason: NotRequired[Optional[str]]
    """Why; it is recorded with the action."""


class RotateBody(TypedDict):
    """How long tokens of the old key are still accepted."""

    grace_ms: NotRequired[Optional[int]]
    """The default is a day."""


class SubmitBody(TypedDict):
    """Everything a submitter may say about an execution."""

    attempt_timeout_ms: NotRequired[Optional[int]]
    """How long one attempt may take."""
    budgets: NotRequired[Optional[Sequence[BudgetRef]]]
    """What it spends from."""
    completion_webhook: NotRequired[Optional[str]]
    """Told when it has ended."""
    deadline_at: NotRequired[Optional[int]]
    """Expired if it has not ended by then."""
    deadline_ms: NotRequired[Optional[int]]
    """Expired if it has not ended so long from now."""
    delay_ms: NotRequired[Optional[int]]
    """Not before so long from now."""
    delay_until: NotRequired[Optional[int]]
    """Not before this time."""
    execution_id: NotRequired[Optional[str]]
    """Chosen by the client, or minted."""
    fairness_key: NotRequired[Optional[str]]
    """Executions of one key share their turn in a fair lane."""
    fallbacks: NotRequired[Optional[Sequence[Any]]]
    """What its worker may try instead, in order."""
    idempotency_key: NotRequired[Optional[str]]
    """The same key with the same body is the same execution."""
    idempotency_ttl_ms: NotRequired[Optional[int]]
    """How long the key is known; the default is a day."""
    input: NotRequired[Any]
    """What the worker gets."""
    kind: str
    """What it is; a worker's handlers go by it."""
    lane: NotRequired[Optional[str]]
    """Where it queues; the default is `default`."""
    max_reclaims: NotRequired[Optional[int]]
    """How often a lost lease is tried again; the default is 5."""
    max_replays: NotRequired[Optional[int]]
    """How often it may be replayed; the default is 10."""
    namespace: NotRequired[Optional[str]]
    """The default is `default`."""
    prefers: NotRequired[Optional[Sequence[str]]]
    """What its worker had better be able to do."""
    priority: NotRequired[Optional[int]]
    """Higher comes first; the default is 0."""
    quotas: NotRequired[Optional[Sequence[QuotaRef]]]
    """What it counts against."""
    requires: NotRequired[Optional[Sequence[str]]]
    """What its worker must be able to do."""
    retention_ms: NotRequired[Optional[int]]
    """How long it is kept once it has ended; the default is a week."""
    retry: NotRequired[Optional[Retry]]
    """When a failed attempt is tried again."""
    start_within_ms: NotRequired[Optional[int]]
    """Expired if it has not started so long from now."""
    stream: NotRequired[Optional[StreamOptions]]
    """How its streams are kept."""
    tags: NotRequired[Optional[Mapping[str, str]]]
    """What to find it by."""
    trace_parent: NotRequired[Optional[str]]
    """The trace it belongs to."""


class ScheduleAction(TypedDict):
    """What a firing submits: an execution or a flow. Ids, keys and absolute times are the firing's to say."""

    execution: NotRequired[Optional[SubmitBody]]
    """An execution, as it would be submitted."""
    flow: NotRequired[Optional[SubmitFlowBody]]
    """A flow, as it would be submitted."""


class ScheduleCounts(TypedDict):
    """How often a schedule fired, and did not."""

    fired: int
    """Submitted."""
    missed: int
    """Too late, or refused for too long."""
    skipped: int
    """Not submitted, because another one had not ended."""


class SchedulePause(TypedDict):
    """The contract type `schedule_pause`."""

    actor: str
    """`actor`: 1 to 128 bytes"""
    at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    reason: NotRequired[Optional[str]]
    """`reason?`: 0 to 4096 bytes"""


class ScheduleTime(TypedDict):
    """A time of a schedule: a cron expression, an interval, or one moment."""

    anchor_at: NotRequired[Optional[int]]
    """One of the times of `every_ms`; the default is the beginning of 1970."""
    at: NotRequired[Optional[int]]
    """Once."""
    cron: NotRequired[Optional[str]]
    """Five fields, or six with seconds first; `@daily` and its like are known."""
    every_ms: NotRequired[Optional[int]]
    """Every so many milliseconds."""


class Schedule(TypedDict):
    """A schedule as it stands."""

    action: NotRequired[Optional[ScheduleAction]]
    """What it submits. Shown for one schedule, not in lists."""
    backfill: NotRequired[Optional[Backfill]]
    """The backfill, and how far it is."""
    catch_up_ms: int
    """What was missed for longer is not made up for."""
    changed_at: int
    """When it was changed."""
    counts: ScheduleCounts
    """How often it fired, and did not."""
    created_at: int
    """When it was made."""
    ended: bool
    """Nothing of it is left: it has fired as often as it may, or its last time has passed."""
    ends_at: NotRequired[Optional[int]]
    """Nothing fires after this time."""
    jitter_ms: NotRequired[Optional[int]]
    """Each time comes up to so much later."""
    last: NotRequired[Optional[Firing]]
    """Its last firing."""
    name: str
    """Its name."""
    namespace: str
    """Its namespace."""
    next_at: NotRequired[Optional[int]]
    """The next time."""
    overlap: Overlap
    """What happens while the last one has not ended."""
    paused: NotRequired[Optional[SchedulePause]]
    """Who paused it, when and why; `null` while it is not paused."""
    refused: NotRequired[Optional[str]]
    """The code with which a submission was refused that is tried again."""
    remaining: NotRequired[Optional[int]]
    """How many firings are left; `null` without a bound."""
    running: int
    """What it submitted and has not ended."""
    starts_at: NotRequired[Optional[int]]
    """Nothing fires before this time."""
    time_zone: str
    """The zone of cron expressions."""
    times: List[ScheduleTime]
    """When it fires."""
    unsubmitted: int
    """Firings that are not submitted yet."""
    version: int
    """Counts its changes."""
    waiting: int
    """Firings that wait for the end of another one."""


class ScheduleBody(TypedDict):
    """A schedule's definition. It replaces the one before; pause, counts and firings stay."""

    action: ScheduleAction
    """What it submits."""
    catch_up_ms: NotRequired[Optional[int]]
    """What was missed for longer is counted and not made up for; the default is a minute."""
    ends_at: NotRequired[Optional[int]]
    """Nothing fires after this time."""
    jitter_ms: NotRequired[Optional[int]]
    """Each time comes up to so much later, always by the same amount."""
    overlap: NotRequired[Optional[Overlap]]
    """What happens while the last one has not ended; the default is `skip`."""
    remaining: NotRequired[Optional[int]]
    """It ends after so many firings."""
    starts_at: NotRequired[Optional[int]]
    """Nothing fires before this time."""
    time_zone: NotRequired[Optional[str]]
    """The zone of cron expressions by its IANA name; the default is `UTC`."""
    times: Sequence[ScheduleTime]
    """When it fires; at least one time, at most 16."""
    version: NotRequired[Optional[int]]
    """Only if the schedule has this version; 0 means that there is none yet."""


class ScheduleOptions(TypedDict):
    """Fields of `ScheduleBody` as keyword arguments."""

    catch_up_ms: NotRequired[Optional[int]]
    """What was missed for longer is counted and not made up for; the default is a minute."""
    ends_at: NotRequired[Optional[int]]
    """Nothing fires after this time."""
    jitter_ms: NotRequired[Optional[int]]
    """Each time comes up to so much later, always by the same amount."""
    overlap: NotRequired[Optional[Overlap]]
    """What happens while the last one has not ended; the default is `skip`."""
    remaining: NotRequired[Optional[int]]
    """It ends after so many firings."""
    starts_at: NotRequired[Optional[int]]
    """Nothing fires before this time."""
    time_zone: NotRequired[Optional[str]]
    """The zone of cron expressions by its IANA name; the default is `UTC`."""
    version: NotRequired[Optional[int]]
    """Only if the schedule has this version; 0 means that there is none yet."""


class SchedulePage(TypedDict):
    """A page of a list."""

    items: List[Schedule]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class SealBody(TypedDict):
    """A flow is released."""


class ServerLibrary(TypedDict):
    """The library in a store."""

    hash: str
    """The digest of its text."""
    number: int
    """Its number: later ones are higher."""


class ServerLimits(TypedDict):
    """The bounds of requests."""

    batch_items: int
    """The most submissions of a batch."""
    claim_max: int
    """The most tasks of one claim."""
    input_bytes: int
    """The largest input."""
    list_limit: int
    """The longest page of a list."""
    reason_bytes: int
    """The longest reason."""
    result_bytes: int
    """The largest result."""
    wait_ms: int
    """The longest long poll."""


class ServerStore(TypedDict):
    """A server's store."""

    durability: str
    """When what was acknowledged is on disk."""
    kind: str
    """What it is."""
    loss_window: str
    """How much of it a crash may lose."""
    partitions: int
    """How many partitions hold executions."""


class ServerCapabilities(TypedDict):
    """What a server can do."""

    authentication: str
    """Which credentials it asks for."""
    features: List[str]
    """What it serves."""
    library: ServerLibrary
    """The library in its store."""
    limits: ServerLimits
    """The bounds of requests."""
    store: ServerStore
    """Its store."""
    version: str
    """The server's version."""
    worker_capabilities: Dict[str, int]
    """How many of the live workers that the caller's token covers have each capability."""


class ServerSentEvent(TypedDict):
    """One of the server-sent events of a stream, as a reader takes it apart."""

    data: str
    """The item as JSON."""
    event: NotRequired[Optional[str]]
    """What kind of item it is."""
    id: NotRequired[Optional[str]]
    """Where a reader goes on."""


class SettleBody(TypedDict):
    """What was really used of a reservation."""

    dimensions: Mapping[str, int]
    """What was used."""
    reservation_id: str
    """The reservation."""


class SettleForTaskBody(TypedDict):
    """What a running attempt really used of a reservation."""

    budget_id: str
    """The budget of the reservation."""
    dimensions: Mapping[str, int]
    """What was used."""
    fence: NotRequired[Optional[Fence]]
    """The fence of the lease. Without one, what was used stands in no execution's ledger."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: a reservation is settled once."""
    reservation_id: str
    """The reservation."""


class SignalBody(TypedDict):
    """A signal to deliver."""

    category: NotRequired[Optional[str]]
    """What kind of signal it is."""
    correlation_id: NotRequired[Optional[str]]
    """What it belongs to."""
    execution_id: str
    """The execution that waits."""
    idempotency_key: NotRequired[Optional[str]]
    """The same key with the same body is the same signal."""
    name: str
    """What it says."""
    payload: NotRequired[Any]
    """What it carries."""
    signal_id: NotRequired[Optional[str]]
    """The same in every repetition."""
    source: NotRequired[Optional[str]]
    """Where it comes from."""
    source_identity: NotRequired[Optional[str]]
    """Its sender there."""
    token: NotRequired[Optional[str]]
    """The waitpoint's token; `Authorization: Waitpoint <token>` says the same."""


SignalEffect = Literal["counted", "buffered", "unused"]


class SignalDelivered(TypedDict):
    """What became of a signal."""

    effect: NotRequired[Optional[SignalEffect]]
    """What it did to the wait."""
    outcome: DeliveryOutcome
    """What happened."""
    signal_id: str
    """The signal; the first one's when it is a duplicate."""


class SigningKeyPage(TypedDict):
    """A page of a list."""

    items: List[SigningKey]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class SleepBody(TypedDict):
    """A rest until a time. One of `until` and `ms` is given."""

    continuation: NotRequired[Any]
    """What the run that continues the attempt gets back, at most 256 KiB."""
    fence: Fence
    """The fence of the lease."""
    ms: NotRequired[Optional[int]]
    """How long from now."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: the fence makes a repetition safe."""
    step: NotRequired[Optional[str]]
    """Names the sleep: its first call sets the time, and a call after that time keeps the lease."""
    until: NotRequired[Optional[int]]
    """Until when."""


#: What a sleep did.
SleepOutcome = Literal["resting", "done"]


class Slept(TypedDict):
    """What became of a sleep."""

    outcome: SleepOutcome
    """What happened."""
    until: int
    """When the sleep ends, or ended."""


class SpawnBody(TypedDict):
    """Children to spawn."""

    children: Sequence[ChildBody]
    """The children."""
    fence: Fence
    """The fence of the lease."""
    request_id: NotRequired[Optional[str]]
    """The same id with the same children spawns them once."""
    step: NotRequired[Optional[str]]
    """Makes it a step: once it is done, a later call with this name answers the same children."""


class SpawnedChild(TypedDict):
    """A child that was spawned."""

    duplicate: bool
    """The same child had been spawned before."""
    execution_id: str
    """The child."""


class Spawned(TypedDict):
    """The children that were spawned."""

    children: List[SpawnedChild]
    """The children, in their order."""


class WorkerStats(TypedDict):
    """How many workers there are."""

    draining: int
    """Those that take nothing new."""
    live: int
    """Those that take work."""
    slots: int
    """How many executions all of them run at once."""


class Stats(TypedDict):
    """What the caller's token covers. What is known of the whole store only is null for a token that does not cover
    it all.
    """

    cancel_backlog: NotRequired[Optional[int]]
    """How many flows still owe their members a cancel."""
    counts: LaneCounts
    """How many executions are in which state."""
    events: NotRequired[Optional[int]]
    """How many events are kept."""
    executions: int
    """How many executions there are."""
    flows: NotRequired[Optional[int]]
    """How many flows there are."""
    lanes: List[LaneStats]
    """The same by lane."""
    next_timer_at: NotRequired[Optional[int]]
    """When the first of them is due."""
    outbox: NotRequired[Optional[int]]
    """How many messages one partition still owes another."""
    partitions: int
    """How many partitions hold them."""
    pending_cancels: NotRequired[Optional[int]]
    """How many members that is."""
    stuck: NotRequired[Optional[int]]
    """How many of these cannot be delivered."""
    timers: NotRequired[Optional[int]]
    """How many timers are set."""
    workers: WorkerStats
    """The workers that may run some of it."""


class Step(TypedDict):
    """A step that a handler recorded. `due_at` is when a sleep ends, or when a failed step is tried again."""

    attempt_index: int
    """`attempt_index`: 0 to 9007199254740991"""
    due_at: NotRequired[Optional[int]]
    """`time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch."""
    ended_at: NotRequired[Optional[int]]
    """`time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch."""
    failure: NotRequired[Optional[Failure]]
    """`failure?`"""
    input_digest: NotRequired[Optional[str]]
    """`step_digest?`: 1 to 128 bytes of `^[%w%+/=_%-]+$`. What a caller makes of a step's input, to find out whether
    it changed.
    """
    kind: StepKind
    """`step_kind`: `run`, `sleep`, `signal`, `children`, `spawn`"""
    name: str
    """`step_name`: 1 to 256 bytes. A step of a handler, by which a later run finds it again."""
    number: int
    """`count`: 0 to 9007199254740991"""
    result_bytes: NotRequired[Optional[int]]
    """`count?`: 0 to 9007199254740991"""
    started_at: int
    """`time_ms`: 0 to 9007199254740991. Milliseconds since the epoch."""
    state: StepState
    """`step_state`: `waiting`, `done`, `failed`"""
    tries: int
    """`count`: 0 to 9007199254740991"""


class StepFound(TypedDict):
    """A step with its result."""

    result: NotRequired[Any]
    """What it returned."""
    result_encoding: NotRequired[Optional[Encoding]]
    """How `result` carries its bytes."""
    resume: NotRequired[Optional[Resume]]
    """What a wait that is over came to: its signals or children."""
    step: Step
    """The step."""


class StepPage(TypedDict):
    """A page of a list."""

    items: List[Step]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class StepPut(TypedDict):
    """What a worker's word about a step did, and the result that counts."""

    input_digest: NotRequired[Optional[str]]
    """The digest that a known step was stored with."""
    outcome: PutStepOutcome
    """What happened."""
    result: NotRequired[Any]
    """The result that is stored: of a known step the first one, whatever was sent."""
    result_encoding: NotRequired[Optional[Encoding]]
    """How `result` carries its bytes."""


#: What a line of a stream says.
StreamEvent = Literal["frame", "attempt_superseded", "closed"]


class StreamItemClosedAt(TypedDict):
    """The end of an attempt."""

    closed_at: Optional[int]
    """When it ended."""
    closed_reason: Optional[AttemptState]
    """How it ended."""


#: What a line of a stream carries.
StreamItem = Union[Frame, StreamItemClosedAt]


class StreamLine(TypedDict):
    """One line of the stream of all attempts."""

    at: NotRequired[int]
    """When it was written."""
    closed_at: NotRequired[Optional[int]]
    """When it ended."""
    closed_reason: NotRequired[Optional[AttemptState]]
    """How it ended."""
    correlation_id: NotRequired[Optional[str]]
    """What belongs together."""
    id: NotRequired[str]
    """Where a reader that has seen it goes on."""
    mode: NotRequired[FrameMode]
    """How it is kept."""
    payload: NotRequired[Any]
    """What it says."""
    payload_encoding: NotRequired[Optional[Encoding]]
    sequence: NotRequired[int]
    """Its number in the attempt, counted from 0."""
    type: NotRequired[str]
    """What it is."""
    attempt_index: NotRequired[Optional[int]]
    """The attempt by its index."""
    cursor: str
    """Where a reader that has seen it goes on."""
    event: StreamEvent
    """What it says."""


class StreamPage(TypedDict):
    """Frames of an attempt."""

    closed_at: NotRequired[Optional[int]]
    """Set once everything up to the end was read."""
    closed_reason: NotRequired[Optional[AttemptState]]
    """How the attempt ended."""
    frames: List[Frame]
    """The frames, oldest first."""
    next: str
    """Where to go on."""


class StreamSummary(TypedDict):
    """The document that the summary frames of an attempt were folded into."""

    attempt_index: NotRequired[Optional[int]]
    """The attempt by its index; null when there is none yet."""
    document: NotRequired[Any]
    """The folded document; null when no summary was written."""
    execution_id: str
    """The execution."""
    version: int
    """Changes with every summary frame."""


class SubmitOptions(TypedDict):
    """Fields of `SubmitBody` as keyword arguments."""

    attempt_timeout_ms: NotRequired[Optional[int]]
    """How long one attempt may take."""
    budgets: NotRequired[Optional[Sequence[BudgetRef]]]
    """What it spends from."""
    completion_webhook: NotRequired[Optional[str]]
    """Told when it has ended."""
    deadline_at: NotRequired[Optional[int]]
    """Expired if it has not ended by then."""
    deadline_ms: NotRequired[Optional[int]]
    """Expired if it has not ended so long from now."""
    delay_ms: NotRequired[Optional[int]]
    """Not before so long from now."""
    delay_until: NotRequired[Optional[int]]
    """Not before this time."""
    execution_id: NotRequired[Optional[str]]
    """Chosen by the client, or minted."""
    fairness_key: NotRequired[Optional[str]]
    """Executions of one key share their turn in a fair lane."""
    fallbacks: NotRequired[Optional[Sequence[Any]]]
    """What its worker may try instead, in order."""
    idempotency_key: NotRequired[Optional[str]]
    """The same key with the same body is the same execution."""
    idempotency_ttl_ms: NotRequired[Optional[int]]
    """How long the key is known; the default is a day."""
    lane: NotRequired[Optional[str]]
    """Where it queues; the default is `default`."""
    max_reclaims: NotRequired[Optional[int]]
    """How often a lost lease is tried again; the default is 5."""
    max_replays: NotRequired[Optional[int]]
    """How often it may be replayed; the default is 10."""
    namespace: NotRequired[Optional[str]]
    """The default is `default`."""
    prefers: NotRequired[Optional[Sequence[str]]]
    """What its worker had better be able to do."""
    priority: NotRequired[Optional[int]]
    """Higher comes first; the default is 0."""
    quotas: NotRequired[Optional[Sequence[QuotaRef]]]
    """What it counts against."""
    requires: NotRequired[Optional[Sequence[str]]]
    """What its worker must be able to do."""
    retention_ms: NotRequired[Optional[int]]
    """How long it is kept once it has ended; the default is a week."""
    retry: NotRequired[Optional[Retry]]
    """When a failed attempt is tried again."""
    start_within_ms: NotRequired[Optional[int]]
    """Expired if it has not started so long from now."""
    stream: NotRequired[Optional[StreamOptions]]
    """How its streams are kept."""
    tags: NotRequired[Optional[Mapping[str, str]]]
    """What to find it by."""
    trace_parent: NotRequired[Optional[str]]
    """The trace it belongs to."""


class SuspendAnswerSuspended(TypedDict):
    """The lease is released, and the execution waits."""

    execution_id: str
    """The task's execution."""
    outcome: Literal["suspended"]
    replayed: bool
    """The same call had been made before; nothing happened twice."""
    suspension_id: str
    """The suspension."""
    timeout_at: NotRequired[Optional[int]]
    """When it takes too long."""
    waitpoints: List[OpenedWaitpoint]
    """Where it waits."""


class SuspendAnswerAlreadySatisfied(TypedDict):
    """What it waits for had come: the worker keeps the lease."""

    execution_id: str
    """The task's execution."""
    outcome: Literal["already_satisfied"]
    signals: List[Signal]
    """The signals that came, in order of arrival."""
    suspension_id: str
    """The suspension."""
    waitpoints: List[OpenedWaitpoint]
    """None."""


class SuspendAnswerDone(TypedDict):
    """The wait of this step was over before: the worker keeps the lease."""

    execution_id: str
    """The task's execution."""
    outcome: Literal["done"]
    resume: Resume
    """What the wait came to."""


#: What became of a suspend.
SuspendAnswer = Union[SuspendAnswerSuspended, SuspendAnswerAlreadySatisfied, SuspendAnswerDone]


#: What happens when the time is over.
TimeoutBehaviorWord = Literal[
    "fail",
    "cancel",
    "expire",
    "auto_resume",
    "auto_resume_with_timeout_signal",
    "escalate",
]


class WaitpointBody(TypedDict):
    """A waitpoint to open, or a pending one to wait at."""

    allowed_signals: NotRequired[Optional[Sequence[str]]]
    """The names of signals it takes; the default is any."""
    approvers: NotRequired[Optional[Sequence[str]]]
    """Each gets a token of its own; by default there is one token."""
    expires_in_ms: NotRequired[Optional[int]]
    """It closes by itself so long from now."""
    key: NotRequired[Optional[str]]
    """The name of a new one in the suspension."""
    uses: NotRequired[Optional[int]]
    """How many signals a token delivers."""
    waitpoint_id: NotRequired[Optional[str]]
    """The pending one; the other fields are absent then."""


class SuspendBody(TypedDict):
    """What a running attempt waits for."""

    condition: NotRequired[Optional[Condition]]
    """What must arrive; the default is any signal."""
    continuation: NotRequired[Any]
    """What the claim that continues the attempt carries."""
    fence: Fence
    """The fence of the lease."""
    reason: SuspensionReason
    """Why it waits."""
    request_id: NotRequired[Optional[str]]
    """The same id suspends once."""
    step: NotRequired[Optional[str]]
    """Makes the wait a step: it outlives the attempt, and once it is over a later call with this name keeps the
    lease and answers what the wait came to.
    """
    timeout_behavior: NotRequired[Optional[TimeoutBehaviorWord]]
    """`auto_resume` is short for `auto_resume_with_timeout_signal`."""
    timeout_ms: NotRequired[Optional[int]]
    """How long it may take."""
    wait: NotRequired[Optional[str]]
    """Only names the wait: the claim that continues the attempt carries the name as `resume.step`."""
    waitpoints: NotRequired[Optional[Sequence[WaitpointBody]]]
    """Where it waits; the default is at every waitpoint the attempt has opened."""


#: How a suspension ended.
SuspensionOutcome = Literal["resumed", "failed"]


class SuspensionEnded(TypedDict):
    """What an operator did to a suspended execution."""

    execution_id: str
    """The execution."""
    outcome: SuspensionOutcome
    """What happened."""
    state: PublicState
    """Its state now."""


class TaskSignals(TypedDict):
    """The signals of a task."""

    execution_id: str
    """The task's execution."""
    signals: List[Signal]
    """The signals, in order of arrival."""


class ThrottleBody(TypedDict):
    """A key under which nothing may start for a while."""

    key: str
    """The key."""
    until: int
    """Until when nothing starts; a time that has passed changes nothing, 0 ends the throttle."""


class ThrottleForTaskBody(TypedDict):
    """A key that a provider refuses for a while. One of `until` and `retry_after_ms` is given."""

    fence: Fence
    """The fence of the lease."""
    key: str
    """The key."""
    quota_id: str
    """The quota."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: a repetition throttles the same."""
    retry_after_ms: NotRequired[Optional[int]]
    """For how long, as a provider's `Retry-After` says it."""
    until: NotRequired[Optional[int]]
    """Until when nothing starts; a time that has passed changes nothing, 0 ends the throttle."""


class Throttled(TypedDict):
    """A key and until when nothing starts under it."""

    key: str
    """The key."""
    quota_id: str
    """The quota."""
    throttled_until: NotRequired[Optional[int]]
    """Until when nothing starts; `null` without a throttle."""


class TriggerBody(TypedDict):
    """A request to fire now."""

    request_id: NotRequired[Optional[str]]
    """The same request fires once; minted by default."""


class Triggered(TypedDict):
    """What a trigger submitted."""

    duplicate: bool
    """The same request had triggered it before."""
    execution_id: NotRequired[Optional[str]]
    """The execution."""
    flow_id: NotRequired[Optional[str]]
    """The flow."""
    number: int
    """Which firing it is."""


class UsageAnswerOk(TypedDict):
    """Counted."""

    outcome: Literal["ok"]


class UsageAnswerAlreadyApplied(TypedDict):
    """Counted before, under the same key."""

    outcome: Literal["already_applied"]


class UsageAnswerSoftBreach(TypedDict):
    """Counted, and a soft limit is reached."""

    budget_id: str
    """The budget of the limit: the reported one, or one above it."""
    dimension: str
    """The dimension of the limit."""
    limit: int
    """The limit."""
    outcome: Literal["soft_breach"]
    used: int
    """The amount used of it."""


class UsageAnswerHardBreach(TypedDict):
    """Not counted, because it would exceed a hard limit."""

    action: OnHard
    """The action that the budget prescribes."""
    budget_id: str
    """The budget of the limit: the reported one, or one above it."""
    dimension: str
    """The dimension of the limit."""
    lease_ended: bool
    """Whether the action was taken and the lease is over. `false` for reports without a lease."""
    limit: int
    """The limit."""
    outcome: Literal["hard_breach"]
    used: int
    """The amount used of it, without the refused amount."""


#: The outcome of a report of usage, or of the settlement of a reservation.
UsageAnswer = Union[UsageAnswerOk, UsageAnswerAlreadyApplied, UsageAnswerSoftBreach, UsageAnswerHardBreach]


class UsageBody(TypedDict):
    """What was used outside of any execution."""

    dedup_key: NotRequired[Optional[str]]
    """The same key counts once."""
    dimensions: Mapping[str, int]
    """What was used."""


class WaitChildrenBody(TypedDict):
    """A wait for every child to end."""

    aside: NotRequired[Optional[bool]]
    """Lets go of the lease even when all children have ended."""
    fence: Fence
    """The fence of the lease."""
    request_id: NotRequired[Optional[str]]
    """The same id waits once."""
    step: NotRequired[Optional[str]]
    """Makes it a step: once it is done, a later call with this name answers the same outcomes and keeps the lease."""


class WaitedForChildrenWaiting(TypedDict):
    """The lease is released, and the execution waits."""

    open: int
    """How many have not ended."""
    outcome: Literal["waiting"]


class WaitedForChildrenEnded(TypedDict):
    """All have ended."""

    children: List[Child]
    """What became of them, in the order they were spawned."""
    more_children: NotRequired[bool]
    """Their results are too much for one answer: the others are read with `GET /v1/executions/{id}/children`."""
    outcome: Literal["ended"]


#: What became of a wait for children.
WaitedForChildren = Union[WaitedForChildrenWaiting, WaitedForChildrenEnded]


class Waitpoint(TypedDict):
    """A waitpoint as an operator sees it: its approvers, and how far the wait is."""

    allowed_signals: NotRequired[Optional[List[str]]]
    """The names of signals it takes; any name when absent."""
    approvers: List[ApproverState]
    """Its approvers."""
    closed_at: NotRequired[Optional[int]]
    """When it was closed."""
    closed_reason: NotRequired[Optional[str]]
    """Why it was closed."""
    condition: NotRequired[Optional[Dict[str, Any]]]
    """The condition as it was given, with what counted so far."""
    created_at: int
    """When it was opened."""
    execution_id: str
    """The execution that opened it."""
    expires_at: NotRequired[Optional[int]]
    """When it closes by itself."""
    key: str
    """Its name in the suspension."""
    kind: str
    """The execution's kind."""
    lane: str
    """The execution's lane."""
    namespace: str
    """The execution's namespace."""
    progress: NotRequired[Optional[str]]
    """The same in words."""
    reason: NotRequired[Optional[SuspensionReason]]
    """Why the execution waits."""
    signals: int
    """How many came."""
    state: WaitpointState
    """Whether the execution waits at it."""
    suspension_id: NotRequired[Optional[str]]
    """The suspension that waits at it."""
    waitpoint_id: str
    """The waitpoint."""


class WaitpointClosed(TypedDict):
    """A waitpoint was closed."""

    execution_id: str
    """The task's execution."""
    outcome: CloseOutcome
    """What happened."""
    replayed: bool
    """The same call had been made before; nothing happened twice."""
    waitpoint_id: str
    """The waitpoint."""


class WaitpointPage(TypedDict):
    """A page of a list."""

    items: List[Waitpoint]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class WebhookKey(TypedDict):
    """A key of a namespace."""

    key: str
    """A secret: its holder can also make webhooks."""
    key_id: str
    """Its name."""
    signs_until: NotRequired[Optional[int]]
    """Until when it signs beside a newer one."""


class WebhookKeys(TypedDict):
    """The keys of a namespace: every webhook is signed with each of them."""

    keys: List[WebhookKey]
    """The newest first; one is enough for a receiver."""
    namespace: str
    """The namespace."""


class WeightBody(TypedDict):
    """What a running attempt really weighed."""

    fence: Fence
    """The fence of the lease."""
    key: str
    """The key."""
    quota_id: str
    """The quota."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: a repetition settles the same."""
    weight: int
    """The weight."""


#: Whether a weight counts.
WeightOutcome = Literal["ok", "gone"]


class WeightSettled(TypedDict):
    """What became of a weight."""

    outcome: WeightOutcome
    """Whether it counts."""


WorkerState = Literal["live", "draining"]


class Worker(TypedDict):
    """A worker, without what would let someone else speak for it."""

    capabilities: List[str]
    """What it can do."""
    expires_at: int
    """When its registration ends, unless it says something."""
    instance: str
    """The process."""
    kinds: NotRequired[Optional[List[str]]]
    """The kinds it takes; absent when it takes every kind."""
    lanes: List[str]
    """The lanes it serves."""
    namespace: str
    """The namespace of its lanes."""
    registered_at: int
    """When it registered."""
    slots: int
    """How many leases it may hold."""
    state: WorkerState
    """Whether it takes new tasks."""
    worker_id: str
    """The program."""


class WorkerPage(TypedDict):
    """A page of a list."""

    items: List[Worker]
    """The page."""
    next_cursor: NotRequired[Optional[str]]
    """Where the next one begins."""


class YieldBody(TypedDict):
    """A task that is handed back at once."""

    fence: Fence
    """The fence of the lease."""
    request_id: NotRequired[Optional[str]]
    """Taken and not used: the fence makes a repetition safe."""
