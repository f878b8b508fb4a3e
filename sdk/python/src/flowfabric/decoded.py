# Generated from docs/reference/openapi.json by tools/wire.py; change it there.
"""Responses with payloads, as dataclasses. A JSON payload is a Python value, any other payload is bytes."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Literal, Mapping, Optional, Union

from typing_extensions import Self

from . import wire
from .payload import take


@dataclasses.dataclass(frozen=True)
class Child:
    """What became of a child."""

    #: The child's execution.
    execution_id: str
    #: What a user calls its state.
    state: wire.PublicState
    #: Why it failed.
    failure: Optional[Failure] = None
    #: The name its parent knows it by.
    key: Optional[str] = None
    #: How it ended.
    outcome: Optional[wire.Outcome] = None
    #: The result of a success.
    result: Any = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            execution_id=answer["execution_id"],
            state=answer["state"],
            failure=None if answer.get("failure") is None else Failure.read(answer["failure"]),
            key=answer.get("key"),
            outcome=answer.get("outcome"),
            result=take(answer.get("result"), answer.get("result_encoding")),
        )


@dataclasses.dataclass(frozen=True)
class Event:
    """An event as readers get it."""

    #: When.
    at: int
    #: Where a reader that has seen it goes on.
    cursor: str
    #: What else is known of it.
    data: Dict[str, wire.EventData]
    #: What happened, in the past tense.
    type: str
    #: The attempt by its index, counted from 0.
    attempt_index: Optional[int] = None
    #: The execution it happened to.
    execution_id: Optional[str] = None
    #: The flow it happened to, or its execution's.
    flow_id: Optional[str] = None
    #: The kind of the execution or the flow.
    kind: Optional[str] = None
    #: The lane it happened in.
    lane: Optional[str] = None
    #: The namespace it happened in.
    namespace: Optional[str] = None
    #: The tags of the execution.
    tags: Dict[str, str] = dataclasses.field(default_factory=dict)
    #: The worker it happened at.
    worker_instance: Optional[str] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            at=answer["at"],
            cursor=answer["cursor"],
            data=answer["data"],
            type=answer["type"],
            attempt_index=answer.get("attempt_index"),
            execution_id=answer.get("execution_id"),
            flow_id=answer.get("flow_id"),
            kind=answer.get("kind"),
            lane=answer.get("lane"),
            namespace=answer.get("namespace"),
            tags=answer.get("tags") or {},
            worker_instance=answer.get("worker_instance"),
        )


@dataclasses.dataclass(frozen=True)
class ExecutionResult:
    """How an execution ended."""

    #: The execution.
    execution_id: str
    #: The outcome.
    outcome: wire.Outcome
    #: Why it failed.
    failure: Optional[Failure] = None
    #: The result of a success.
    result: Any = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            execution_id=answer["execution_id"],
            outcome=answer["outcome"],
            failure=None if answer.get("failure") is None else Failure.read(answer["failure"]),
            result=take(answer.get("result"), answer.get("result_encoding")),
        )


@dataclasses.dataclass(frozen=True)
class Failure:
    """The contract type `failure`."""

    #: `category`: 1 to 128 bytes
    category: str
    #: `reason`: 0 to 4096 bytes
    reason: str

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            category=answer["category"],
            reason=answer["reason"],
        )


@dataclasses.dataclass(frozen=True)
class Frame:
    """One line of the stream of all attempts."""

    #: Where a reader that has seen it goes on.
    cursor: str
    #: What it says.
    event: wire.StreamEvent
    #: When it was written.
    at: Optional[int] = None
    #: When it ended.
    closed_at: Optional[int] = None
    #: How it ended.
    closed_reason: Optional[wire.AttemptState] = None
    #: What belongs together.
    correlation_id: Optional[str] = None
    #: Where a reader that has seen it goes on.
    id: Optional[str] = None
    #: How it is kept.
    mode: Optional[wire.FrameMode] = None
    #: What it says.
    payload: Any = None
    #: Its number in the attempt, counted from 0.
    sequence: Optional[int] = None
    #: What it is.
    type: Optional[str] = None
    #: The attempt by its index.
    attempt_index: Optional[int] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            cursor=answer["cursor"],
            event=answer["event"],
            at=answer.get("at"),
            closed_at=answer.get("closed_at"),
            closed_reason=answer.get("closed_reason"),
            correlation_id=answer.get("correlation_id"),
            id=answer.get("id"),
            mode=answer.get("mode"),
            payload=take(answer.get("payload"), answer.get("payload_encoding")),
            sequence=answer.get("sequence"),
            type=answer.get("type"),
            attempt_index=answer.get("attempt_index"),
        )


@dataclasses.dataclass(frozen=True)
class Reserved:
    """What became of a reservation."""

    outcome: Union[Literal["ok"], Literal["hard_breach"]]
    #: The budget of the limit: the one asked, or one above it.
    budget_id: Optional[str] = None
    #: The dimension of the limit.
    dimension: Optional[str] = None
    #: Until when it holds; absent when it holds as long as the lease.
    expires_at: Optional[int] = None
    #: The limit.
    limit: Optional[int] = None
    #: The reservation.
    reservation_id: Optional[str] = None
    #: How much of it is used.
    used: Optional[int] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            outcome=answer["outcome"],
            budget_id=answer.get("budget_id"),
            dimension=answer.get("dimension"),
            expires_at=answer.get("expires_at"),
            limit=answer.get("limit"),
            reservation_id=answer.get("reservation_id"),
            used=answer.get("used"),
        )


@dataclasses.dataclass(frozen=True)
class Resume:
    """Why an attempt goes on, for the worker that continues it."""

    #: What ended it.
    cause: wire.ResumeCause
    #: The signals that came, in order of arrival.
    signals: List[Signal]
    #: The suspension that ended.
    suspension_id: str
    #: The operator who ended a step's wait.
    actor: Optional[str] = None
    #: What became of the children it waited for.
    children: List[Child] = dataclasses.field(default_factory=list)
    #: What the attempt kept for itself when it was suspended.
    continuation: Any = None
    #: Their results are too much for one answer: the others are read with `GET /v1/executions/{id}/children`.
    more_children: Optional[bool] = None
    #: The wait that ended, by the name it was suspended under.
    step: Optional[str] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            cause=answer["cause"],
            signals=[Signal.read(item) for item in answer["signals"]],
            suspension_id=answer["suspension_id"],
            actor=answer.get("actor"),
            children=[Child.read(item) for item in answer.get("children") or []],
            continuation=take(answer.get("continuation"), answer.get("continuation_encoding")),
            more_children=answer.get("more_children"),
            step=answer.get("step"),
        )


@dataclasses.dataclass(frozen=True)
class Signal:
    """A signal that came."""

    #: What it says.
    name: str
    #: When it arrived.
    received_at: int
    #: The signal.
    signal_id: str
    #: The approver whose token it came with.
    approver: Optional[str] = None
    #: What kind of signal it is.
    category: Optional[str] = None
    #: What it belongs to.
    correlation_id: Optional[str] = None
    #: What it carries.
    payload: Any = None
    #: Where it came from.
    source: Optional[str] = None
    #: Its sender there.
    source_identity: Optional[str] = None
    #: The waitpoint at which it arrived.
    waitpoint_id: Optional[str] = None
    #: The waitpoint's name.
    waitpoint_key: Optional[str] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            name=answer["name"],
            received_at=answer["received_at"],
            signal_id=answer["signal_id"],
            approver=answer.get("approver"),
            category=answer.get("category"),
            correlation_id=answer.get("correlation_id"),
            payload=take(answer.get("payload"), answer.get("payload_encoding")),
            source=answer.get("source"),
            source_identity=answer.get("source_identity"),
            waitpoint_id=answer.get("waitpoint_id"),
            waitpoint_key=answer.get("waitpoint_key"),
        )


@dataclasses.dataclass(frozen=True)
class SignalAnswer:
    """What became of a signal."""

    #: What happened.
    outcome: wire.DeliveryOutcome
    #: The signal; the first one's when it is a duplicate.
    signal_id: str
    #: What it did to the wait.
    effect: Optional[wire.SignalEffect] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            outcome=answer["outcome"],
            signal_id=answer["signal_id"],
            effect=answer.get("effect"),
        )


@dataclasses.dataclass(frozen=True)
class Submitted:
    """What became of a submission."""

    #: The same id or key had been submitted before.
    duplicate: bool
    #: The execution; the first one's when it was there already.
    execution_id: str
    #: Its state; null when the first one is gone.
    state: Optional[wire.PublicState] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            duplicate=answer["duplicate"],
            execution_id=answer["execution_id"],
            state=answer.get("state"),
        )


@dataclasses.dataclass(frozen=True)
class Task:
    """A task as its worker gets it."""

    #: The attempt.
    attempt_id: str
    #: The attempt's number, from 0.
    attempt_index: int
    #: Why there is this attempt.
    attempt_type: wire.AttemptType
    #: When the execution was submitted.
    created_at: int
    #: The execution.
    execution_id: str
    #: How many frames the attempt wrote: the sequence of its next one.
    frames: int
    #: The execution's kind.
    kind: str
    #: The execution's lane.
    lane: str
    #: The lease's epoch.
    lease_epoch: int
    #: When the lease ends, unless it is renewed.
    lease_expires_at: int
    #: The lease.
    lease_id: str
    #: The execution's namespace.
    namespace: str
    #: The execution's priority.
    priority: int
    #: The execution's tags.
    tags: Dict[str, str]
    #: When the attempt times out.
    attempt_deadline_at: Optional[int] = None
    #: When the whole execution expires.
    deadline_at: Optional[int] = None
    #: What the tier says.
    fallback: Any = None
    #: The fallback tier of this attempt, from 0.
    fallback_index: Optional[int] = None
    #: The flow it is a member of.
    flow_id: Optional[str] = None
    #: The execution's input.
    input: Any = None
    #: Its name in its flow, or for its parent.
    key: Optional[str] = None
    #: The execution that spawned it.
    parent_id: Optional[str] = None
    #: What upstream members pass to it, by name.
    passed: Dict[str, Upstream] = dataclasses.field(default_factory=dict)
    #: Why a waiting attempt goes on.
    resume: Optional[Resume] = None
    #: What earlier runs of the handler recorded, in the order in which it was recorded first.
    steps: List[wire.TaskStep] = dataclasses.field(default_factory=list)
    #: More is recorded than fits here: a step that is not among `steps` is asked for by its name before it runs.
    steps_more: Optional[bool] = None
    #: The trace the submitter continues.
    trace_parent: Optional[str] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            attempt_id=answer["attempt_id"],
            attempt_index=answer["attempt_index"],
            attempt_type=answer["attempt_type"],
            created_at=answer["created_at"],
            execution_id=answer["execution_id"],
            frames=answer["frames"],
            kind=answer["kind"],
            lane=answer["lane"],
            lease_epoch=answer["lease_epoch"],
            lease_expires_at=answer["lease_expires_at"],
            lease_id=answer["lease_id"],
            namespace=answer["namespace"],
            priority=answer["priority"],
            tags=answer["tags"],
            attempt_deadline_at=answer.get("attempt_deadline_at"),
            deadline_at=answer.get("deadline_at"),
            fallback=answer.get("fallback"),
            fallback_index=answer.get("fallback_index"),
            flow_id=answer.get("flow_id"),
            input=take(answer.get("input"), answer.get("input_encoding")),
            key=answer.get("key"),
            parent_id=answer.get("parent_id"),
            passed={name: Upstream.read(item) for name, item in (answer.get("passed") or {}).items()},
            resume=None if answer.get("resume") is None else Resume.read(answer["resume"]),
            steps=answer.get("steps") or [],
            steps_more=answer.get("steps_more"),
            trace_parent=answer.get("trace_parent"),
        )


@dataclasses.dataclass(frozen=True)
class Upstream:
    """What an upstream member passes under a name: its result, or how it failed."""

    #: The upstream member's execution.
    execution_id: str
    #: How it ended.
    outcome: wire.Outcome
    #: Why it failed.
    failure: Optional[Failure] = None
    #: Its result.
    value: Any = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            execution_id=answer["execution_id"],
            outcome=answer["outcome"],
            failure=None if answer.get("failure") is None else Failure.read(answer["failure"]),
            value=take(answer.get("value"), answer.get("encoding")),
        )


@dataclasses.dataclass(frozen=True)
class UsageAnswer:
    """The outcome of a report of usage, or of the settlement of a reservation."""

    outcome: Union[Literal["ok"], Literal["already_applied"], Literal["soft_breach"], Literal["hard_breach"]]
    #: The action that the budget prescribes.
    action: Optional[wire.OnHard] = None
    #: The budget of the limit: the reported one, or one above it.
    budget_id: Optional[str] = None
    #: The dimension of the limit.
    dimension: Optional[str] = None
    #: Whether the action was taken and the lease is over. `false` for reports without a lease.
    lease_ended: Optional[bool] = None
    #: The limit.
    limit: Optional[int] = None
    #: The amount used of it.
    used: Optional[int] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Reads the API's JSON."""
        return cls(
            outcome=answer["outcome"],
            action=answer.get("action"),
            budget_id=answer.get("budget_id"),
            dimension=answer.get("dimension"),
            lease_ended=answer.get("lease_ended"),
            limit=answer.get("limit"),
            used=answer.get("used"),
        )
