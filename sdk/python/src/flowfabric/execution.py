"""Everything a submitter may say about an execution, as the body of a request."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, TypedDict

from .ids import mint
from .payload import put


class Backoff(TypedDict, total=False):
    """How long to wait between attempts: fixed with `delay_ms`, or exponential with `initial_ms`, `factor`, `max_ms`."""

    type: str
    delay_ms: int
    initial_ms: int
    factor: int
    max_ms: int


class RetryPolicy(TypedDict, total=False):
    """When a failed attempt is followed by another."""

    max_attempts: int
    backoff: Backoff
    jitter: str
    retry_on: List[str]
    never_on: List[str]


class BudgetRef(TypedDict, total=False):
    """A budget an execution spends from."""

    budget_id: str
    estimate: Dict[str, int]


class QuotaRef(TypedDict, total=False):
    """A quota an execution counts against."""

    quota_id: str
    key: str
    weight: int


class Fields(TypedDict, total=False):
    """The fields of an execution: alone, in a batch, as a member of a flow or as a child."""

    execution_id: str
    namespace: str
    lane: str
    kind: str
    #: Any JSON value, or bytes.
    input: Any
    tags: Mapping[str, str]
    priority: int
    delay_until: int
    delay_ms: int
    deadline_at: int
    deadline_ms: int
    start_within_ms: int
    idempotency_key: str
    idempotency_ttl_ms: int
    retry: RetryPolicy
    attempt_timeout_ms: int
    max_reclaims: int
    max_replays: int
    requires: Sequence[str]
    prefers: Sequence[str]
    fairness_key: str
    budgets: Sequence[BudgetRef]
    quotas: Sequence[QuotaRef]
    fallbacks: Sequence[Any]
    retention_ms: int
    stream: Mapping[str, int]
    trace_parent: str
    completion_webhook: str


class ChildFields(Fields, total=False):
    """A child to spawn: an execution, with a name its parent knows it by and what the parent's end means for it."""

    key: str
    #: `cancel_children` (unless said) or `abandon`.
    parent_close: str


class MemberFields(Fields, total=False):
    """A member of a flow: an execution with a name, or a flow in its place."""

    key: str
    inbound: Mapping[str, Any]
    flow: Mapping[str, Any]


def body(fields: Mapping[str, Any]) -> Dict[str, Any]:
    """The body these fields mean: None says nothing, a payload is encoded."""
    said: Dict[str, Any] = {name: value for name, value in fields.items() if value is not None and name != "input"}
    put(said, "input", fields.get("input"))
    return said


def submission(fields: Mapping[str, Any]) -> Dict[str, Any]:
    """The same with an id or a key, so that sending it twice submits once."""
    said = body(fields)
    if "idempotency_key" not in said:
        said.setdefault("execution_id", mint())
    return said
