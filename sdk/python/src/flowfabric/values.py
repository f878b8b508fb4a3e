"""Responses as small immutable classes: generated ones, and extensions of them."""

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
    """The outcome of one submission in a batch: accepted, or an error."""

    submitted: Optional[Submitted]
    error: Optional[ApiError]


class ExecutionFailed(FlowFabricError):
    """An execution ended without success; raised by `Result.value`."""

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
    """The outcome of an ended execution."""

    @property
    def value(self) -> Any:
        """The result. Raises `ExecutionFailed` for any outcome but success."""
        if self.outcome != "success":
            raise ExecutionFailed(self)
        return self.result


class Token(str):
    """A waitpoint token. It is a string, except that `repr` does not show it."""

    def __repr__(self) -> str:
        return "Token(…)"


@dataclasses.dataclass(frozen=True)
class Opened:
    """A newly opened waitpoint, with its tokens, which are shown only once."""

    waitpoint_id: str
    key: str
    expires_at: Optional[int]
    #: One token per approver; without approvers, one under None.
    tokens: Dict[Optional[str], Token]

    @classmethod
    def read(cls, answer: wire.OpenedWaitpoint) -> "Opened":
        """Reads the API's JSON."""
        tokens = {token.get("approver"): Token(token["token"]) for token in answer["tokens"]}
        return cls(answer["waitpoint_id"], answer["key"], answer.get("expires_at"), tokens)

    @property
    def token(self) -> Token:
        """The only token of the waitpoint. With several approvers, use `tokens`."""
        if len(self.tokens) != 1:
            raise LookupError(f"waitpoint {self.key!r} has {len(self.tokens)} tokens, one per approver")
        return next(iter(self.tokens.values()))


@dataclasses.dataclass(frozen=True)
class StreamPage:
    """Frames of one attempt, and the cursor of the next page."""

    frames: List[Frame]
    next: str
    #: Set when the page reaches the end of a closed stream.
    closed_at: Optional[int]
    closed_reason: Optional[wire.AttemptState]

    @classmethod
    def read(cls, answer: wire.StreamPage, attempt_index: int) -> "StreamPage":
        """Reads the API's JSON. A frame of a page has the same form as one of a followed stream."""
        frames = [
            Frame.read({**frame, "event": "frame", "cursor": frame["id"], "attempt_index": attempt_index})
            for frame in answer["frames"]
        ]
        return cls(frames, answer["next"], answer.get("closed_at"), answer.get("closed_reason"))


@dataclasses.dataclass(frozen=True)
class BudgetAnswer(decoded.UsageAnswer):
    """The outcome of a report or a settlement."""

    @property
    def ok(self) -> bool:
        """True if the amounts count, now or since an earlier try."""
        return self.outcome != "hard_breach"


@dataclasses.dataclass(frozen=True)
class ReserveAnswer(decoded.Reserved):
    """The outcome of a reservation."""

    @property
    def ok(self) -> bool:
        """True if the amounts are held."""
        return self.outcome != "hard_breach"
