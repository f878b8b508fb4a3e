"""Answers as small immutable classes: generated ones, and what they cannot say by themselves."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Optional

from . import decoded, wire
from .decoded import Child, Event, Failure, Frame, Resume, Signal, SignalAnswer, Submitted, Upstream
from .errors import ApiError, FlowFabricError

__all__ = [
    "BatchItem",
    "BudgetAnswer",
    "Child",
    "Event",
    "ExecutionFailed",
    "Failure",
    "Frame",
    "NotEnded",
    "Opened",
    "ReserveAnswer",
    "Result",
    "Resume",
    "Signal",
    "SignalAnswer",
    "StreamPage",
    "Submitted",
    "Token",
    "Upstream",
]


@dataclasses.dataclass(frozen=True)
class BatchItem:
    """What became of one submission of a batch: it was accepted, or there is an error."""

    submitted: Optional[Submitted]
    error: Optional[ApiError]


class ExecutionFailed(FlowFabricError):
    """An execution ended otherwise than with success; raised by `Result.value`."""

    def __init__(self, result: "Result") -> None:
        why = f": {result.failure.reason} ({result.failure.category})" if result.failure else ""
        super().__init__(f"{result.execution_id} ended {result.outcome}{why}")
        self.result = result


class NotEnded(FlowFabricError):
    """The execution has no result yet."""

    def __init__(self, execution_id: str, state: wire.PublicState) -> None:
        super().__init__(f"{execution_id} is {state}")
        self.execution_id = execution_id
        self.state = state


@dataclasses.dataclass(frozen=True)
class Result(decoded.ExecutionResult):
    """How an execution ended."""

    @property
    def value(self) -> Any:
        """The result of a success; any other outcome is raised as `ExecutionFailed`."""
        if self.outcome != "success":
            raise ExecutionFailed(self)
        return self.result


class Token(str):
    """A waitpoint token. It is a string, except that `repr` does not show it."""

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
    def read(cls, answer: wire.OpenedWaitpoint) -> "Opened":
        """From the API's answer."""
        tokens = {token.get("approver"): Token(token["token"]) for token in answer["tokens"]}
        return cls(answer["waitpoint_id"], answer["key"], answer.get("expires_at"), tokens)

    @property
    def token(self) -> Token:
        """The token of a waitpoint that has one; with several approvers there is one for each in `tokens`."""
        if len(self.tokens) != 1:
            raise LookupError(f"waitpoint {self.key!r} has {len(self.tokens)} tokens, one per approver")
        return next(iter(self.tokens.values()))


@dataclasses.dataclass(frozen=True)
class StreamPage:
    """Frames of one attempt, and where to go on."""

    frames: List[Frame]
    next: str
    #: Set once everything up to the end was read.
    closed_at: Optional[int]
    closed_reason: Optional[wire.AttemptState]

    @classmethod
    def read(cls, answer: wire.StreamPage, attempt_index: int) -> "StreamPage":
        """From the API's answer. A frame of a page looks like one of a stream that is followed."""
        frames = [
            Frame.read({**frame, "event": "frame", "cursor": frame["id"], "attempt_index": attempt_index})
            for frame in answer["frames"]
        ]
        return cls(frames, answer["next"], answer.get("closed_at"), answer.get("closed_reason"))


@dataclasses.dataclass(frozen=True)
class BudgetAnswer(decoded.UsageAnswer):
    """What a budget answered to a report or a settlement."""

    @property
    def ok(self) -> bool:
        """True when the amounts count, now or since an earlier try."""
        return self.outcome != "hard_breach"


@dataclasses.dataclass(frozen=True)
class ReserveAnswer(decoded.Reserved):
    """What a budget answered to a reservation."""

    @property
    def ok(self) -> bool:
        """True when the amounts are held."""
        return self.outcome != "hard_breach"
