"""Answers that carry payloads or outcomes, read into small immutable classes."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Mapping, Optional

from .errors import ApiError, FlowFabricError
from .payload import take


@dataclasses.dataclass(frozen=True)
class Submitted:
    """What became of a submission."""

    execution_id: str
    state: Optional[str]
    #: The same submission had been accepted before.
    duplicate: bool

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Submitted":
        """From the API's answer."""
        return cls(answer["execution_id"], answer.get("state"), bool(answer.get("duplicate")))


@dataclasses.dataclass(frozen=True)
class BatchItem:
    """What became of one submission of a batch: it was accepted, or there is an error."""

    submitted: Optional[Submitted]
    error: Optional[ApiError]


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why something failed."""

    reason: str
    category: str

    @classmethod
    def read(cls, answer: Optional[Mapping[str, Any]]) -> "Optional[Failure]":
        """From the API's answer."""
        return None if answer is None else cls(str(answer.get("reason", "")), str(answer.get("category", "")))


class ExecutionFailed(FlowFabricError):
    """An execution ended otherwise than with success; raised by `Result.value`."""

    def __init__(self, result: "Result") -> None:
        why = f": {result.failure.reason} ({result.failure.category})" if result.failure else ""
        super().__init__(f"{result.execution_id} ended {result.outcome}{why}")
        self.result = result


class NotEnded(FlowFabricError):
    """The execution has no result yet."""

    def __init__(self, execution_id: str, state: str) -> None:
        super().__init__(f"{execution_id} is {state}")
        self.execution_id = execution_id
        self.state = state


@dataclasses.dataclass(frozen=True)
class Result:
    """How an execution ended."""

    execution_id: str
    #: success, failed, cancelled, expired or skipped.
    outcome: str
    #: JSON as Python's own values, anything else as bytes; None when there is none.
    result: Any
    failure: Optional[Failure]

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Result":
        """From the API's answer."""
        result = take(answer.get("result"), answer.get("result_encoding"))
        return cls(answer["execution_id"], answer["outcome"], result, Failure.read(answer.get("failure")))

    @property
    def value(self) -> Any:
        """The result of a success; any other outcome is raised as `ExecutionFailed`."""
        if self.outcome != "success":
            raise ExecutionFailed(self)
        return self.result


@dataclasses.dataclass(frozen=True)
class Signal:
    """A signal that came."""

    signal_id: str
    name: str
    payload: Any
    source: Optional[str]
    source_identity: Optional[str]
    category: Optional[str]
    correlation_id: Optional[str]
    waitpoint_id: Optional[str]
    waitpoint_key: Optional[str]
    #: Whose token it came with, when tokens have owners.
    approver: Optional[str]
    received_at: int

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Signal":
        """From the API's answer."""
        return cls(
            signal_id=answer["signal_id"],
            name=answer["name"],
            payload=take(answer.get("payload"), answer.get("payload_encoding")),
            source=answer.get("source"),
            source_identity=answer.get("source_identity"),
            category=answer.get("category"),
            correlation_id=answer.get("correlation_id"),
            waitpoint_id=answer.get("waitpoint_id"),
            waitpoint_key=answer.get("waitpoint_key"),
            approver=answer.get("approver"),
            received_at=int(answer.get("received_at", 0)),
        )


@dataclasses.dataclass(frozen=True)
class Child:
    """What became of a child so far."""

    execution_id: str
    key: Optional[str]
    state: Optional[str]
    #: None while it has not ended.
    outcome: Optional[str]
    result: Any
    failure: Optional[Failure]

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Child":
        """From the API's answer."""
        return cls(
            execution_id=answer["execution_id"],
            key=answer.get("key"),
            state=answer.get("state"),
            outcome=answer.get("outcome"),
            result=take(answer.get("result"), answer.get("result_encoding")),
            failure=Failure.read(answer.get("failure")),
        )


@dataclasses.dataclass(frozen=True)
class Upstream:
    """An upstream member of a flow that passes something on: its result, or how it failed."""

    execution_id: str
    outcome: str
    value: Any
    failure: Optional[Failure]

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Upstream":
        """From the API's answer."""
        value = take(answer.get("value"), answer.get("encoding"))
        return cls(answer["execution_id"], answer.get("outcome", "success"), value, Failure.read(answer.get("failure")))


@dataclasses.dataclass(frozen=True)
class Resume:
    """Why an attempt that waited goes on, and what it left for itself."""

    suspension_id: str
    #: signal, timeout, operator, children or budget.
    cause: str
    signals: List[Signal]
    continuation: Any
    children: List[Child]
    #: More children than one answer holds; `Context.children` reads them all.
    more_children: bool
    #: The wait that ended, by the name it was suspended under.
    step: Optional[str] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Resume":
        """From the API's answer."""
        return cls(
            suspension_id=answer["suspension_id"],
            cause=answer["cause"],
            signals=[Signal.read(signal) for signal in answer.get("signals") or []],
            continuation=take(answer.get("continuation"), answer.get("continuation_encoding")),
            children=[Child.read(child) for child in answer.get("children") or []],
            more_children=bool(answer.get("more_children")),
            step=answer.get("step"),
        )


class Token(str):
    """A waitpoint token: a text like any other, except that it is not shown by `repr`."""

    def __repr__(self) -> str:
        return "Token(…)"


@dataclasses.dataclass(frozen=True)
class Opened:
    """A waitpoint that was opened now, with the tokens that are shown this once."""

    waitpoint_id: str
    key: str
    expires_at: Optional[int]
    #: One per approver; one under None when there are no approvers.
    tokens: Dict[Optional[str], Token]

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Opened":
        """From the API's answer."""
        tokens = {token.get("approver"): Token(token["token"]) for token in answer.get("tokens") or []}
        return cls(answer["waitpoint_id"], answer["key"], answer.get("expires_at"), tokens)

    @property
    def token(self) -> Token:
        """The token of a waitpoint that has one; with several approvers there is one for each in `tokens`."""
        if len(self.tokens) != 1:
            raise LookupError(f"waitpoint {self.key!r} has {len(self.tokens)} tokens, one per approver")
        return next(iter(self.tokens.values()))


@dataclasses.dataclass(frozen=True)
class SignalAnswer:
    """What became of a signal that was sent."""

    #: accepted, triggered_resume or duplicate.
    outcome: str
    signal_id: str
    effect: Optional[str]


@dataclasses.dataclass(frozen=True)
class Frame:
    """A frame of a stream, or one of its markers."""

    #: `frame`, `attempt_superseded` or `closed`.
    event: str
    #: Where a reader that has seen it goes on.
    cursor: str
    attempt_index: Optional[int]
    id: Optional[str] = None
    sequence: Optional[int] = None
    type: Optional[str] = None
    at: Optional[int] = None
    payload: Any = None
    correlation_id: Optional[str] = None
    mode: Optional[str] = None
    closed_at: Optional[int] = None
    closed_reason: Optional[str] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any], attempt_index: Optional[int] = None) -> "Frame":
        """From the API's answer."""
        return cls(
            event=answer.get("event", "frame"),
            cursor=answer.get("cursor") or answer.get("id") or "",
            attempt_index=answer.get("attempt_index", attempt_index),
            id=answer.get("id"),
            sequence=answer.get("sequence"),
            type=answer.get("type"),
            at=answer.get("at"),
            payload=take(answer.get("payload"), answer.get("payload_encoding")),
            correlation_id=answer.get("correlation_id"),
            mode=answer.get("mode"),
            closed_at=answer.get("closed_at"),
            closed_reason=answer.get("closed_reason"),
        )


@dataclasses.dataclass(frozen=True)
class StreamPage:
    """Frames of one attempt, and where to go on."""

    frames: List[Frame]
    next: str
    #: Set once everything up to the end was read.
    closed_at: Optional[int]
    closed_reason: Optional[str]

    @classmethod
    def read(cls, answer: Mapping[str, Any], attempt_index: int) -> "StreamPage":
        """From the API's answer."""
        frames = [Frame.read(frame, attempt_index) for frame in answer["frames"]]
        return cls(frames, answer["next"], answer.get("closed_at"), answer.get("closed_reason"))


@dataclasses.dataclass(frozen=True)
class Event:
    """One transition, with the cursor behind it."""

    cursor: str
    type: str
    at: int
    namespace: Optional[str]
    lane: Optional[str]
    kind: Optional[str]
    execution_id: Optional[str]
    flow_id: Optional[str]
    attempt_index: Optional[int]
    worker_instance: Optional[str]
    tags: Mapping[str, str]
    data: Mapping[str, str]

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Event":
        """From the API's answer."""
        return cls(
            cursor=answer["cursor"],
            type=answer["type"],
            at=int(answer["at"]),
            namespace=answer.get("namespace"),
            lane=answer.get("lane"),
            kind=answer.get("kind"),
            execution_id=answer.get("execution_id"),
            flow_id=answer.get("flow_id"),
            attempt_index=answer.get("attempt_index"),
            worker_instance=answer.get("worker_instance"),
            tags=answer.get("tags") or {},
            data=answer.get("data") or {},
        )


@dataclasses.dataclass(frozen=True)
class BudgetAnswer:
    """What a budget answered to a report, a reservation or a settlement."""

    #: ok, already_applied, soft_breach or hard_breach.
    outcome: str
    reservation_id: Optional[str] = None
    #: Until when a reservation without a lease holds.
    expires_at: Optional[int] = None
    budget_id: Optional[str] = None
    dimension: Optional[str] = None
    used: Optional[int] = None
    limit: Optional[int] = None
    #: What the budget says to do at its hard limit.
    action: Optional[str] = None
    #: The report ended the lease it was made under.
    lease_ended: bool = False

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "BudgetAnswer":
        """From the API's answer."""
        return cls(
            outcome=answer["outcome"],
            reservation_id=answer.get("reservation_id"),
            expires_at=answer.get("expires_at"),
            budget_id=answer.get("budget_id"),
            dimension=answer.get("dimension"),
            used=answer.get("used"),
            limit=answer.get("limit"),
            action=answer.get("action"),
            lease_ended=bool(answer.get("lease_ended")),
        )

    @property
    def ok(self) -> bool:
        """True when the amounts count, now or since an earlier try."""
        return self.outcome != "hard_breach"
