"""What the handler of a task has recorded under names, and how its attempt is set aside for a step."""

from __future__ import annotations

import dataclasses
import hashlib
import random
import time
from typing import Any, Dict, Mapping, Optional

from .decoded import Resume
from .errors import ConfigError
from .execution import RetryPolicy
from .payload import dump, take
from .task import Task

#: A rest up to this long is spent in place; a longer one gives the worker's slot back.
REST_IN_PLACE_MS = 1_000
#: A retry up to this far away is waited for in place.
RETRY_IN_PLACE_MS = 5_000
#: The most bytes a step's name has.
_NAME_MAX = 256


@dataclasses.dataclass
class Known:
    """A step that was recorded before."""

    kind: str
    state: str
    tries: int = 1
    due_at: Optional[int] = None
    input_digest: Optional[str] = None
    #: True when `result` is here; a large one is asked for.
    has_result: bool = False
    result: Any = None
    #: What its wait came to.
    resume: Optional[Resume] = None

    @classmethod
    def read(cls, step: Mapping[str, Any], found: Optional[Mapping[str, Any]] = None) -> "Known":
        """From the API: a step of a claimed task, or one that was asked for, with its result beside it."""
        holder = step if found is None else found
        encoding = holder.get("result_encoding")
        resume = None if found is None else found.get("resume")
        return cls(
            kind=step["kind"],
            state=step["state"],
            tries=step.get("tries") or 1,
            due_at=step.get("due_at"),
            input_digest=step.get("input_digest"),
            has_result=encoding is not None,
            result=take(holder.get("result"), encoding),
            resume=None if resume is None else Resume.read(resume),
        )


@dataclasses.dataclass(frozen=True)
class Aside:
    """Why an attempt is set aside: the call that gives its lease back, once the handler has returned."""

    step: str
    #: sleep or suspend.
    verb: str
    said: Mapping[str, Any]
    #: The kind of the step, when the call records it.
    kind: Optional[str] = None


class Recorded:
    """The steps of one task: what is known of them, and where this run of the handler stands."""

    def __init__(self, task: Task, ttl_s: float) -> None:
        self.known: Dict[str, Known] = {str(step["name"]): Known.read(step) for step in task.steps}
        self.more = bool(task.steps_more)
        #: How the attempt is set aside once the handler has returned.
        self.aside: Optional[Aside] = None
        self._uses: Dict[str, int] = {}
        self._claimed_at = task.lease_expires_at - int(ttl_s * 1000)
        self._since = time.monotonic()

    def begin_run(self) -> None:
        """The handler is entered from its top."""
        self.aside = None
        self._uses = {}

    def now_ms(self) -> int:
        """The engine's time, by what the claim said and what has passed since."""
        return self._claimed_at + int((time.monotonic() - self._since) * 1000)

    def not_before(self, at: int) -> None:
        """The engine has said that this time has come."""
        if at > self.now_ms():
            self._claimed_at, self._since = at, time.monotonic()

    def name(self, name: str, key: Optional[object] = None) -> str:
        """The name of this use of a step: a key names it, else its uses are numbered in order."""
        if key is not None:
            full = f"{name}:{key}"
        else:
            uses = self._uses[name] = self._uses.get(name, 0) + 1
            full = name if uses == 1 else f"{name}#{uses}"
        if not 1 <= len(full.encode()) <= _NAME_MAX or not full.isprintable() or full in (".", ".."):
            raise ConfigError(f"name must be 1 to {_NAME_MAX} printable bytes and neither . nor .., got {full!r}")
        return full

    def wants_aside(self, aside: Aside) -> None:
        """The first wish counts; the others are met by the runs that follow."""
        if self.aside is None:
            self.aside = aside


def digest(value: Any) -> str:
    """The digest of a step's input."""
    return hashlib.sha256(dump(value)).hexdigest()[:32]


def step_key(execution_id: str, name: str) -> str:
    """The idempotency key of a step: the same in every attempt, and in every language."""
    return f"{execution_id}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def next_try(
    retry: Optional[RetryPolicy], tries: int, category: str, retryable: Optional[bool], retry_after_ms: Optional[int]
) -> Optional[int]:
    """After how many milliseconds a failed try is followed by another one; None when it is not."""
    if retry is None or retryable is False or tries >= (retry.get("max_attempts") or 3):
        return None
    only, never = retry.get("retry_on"), retry.get("never_on")
    if (only is not None and category not in only) or (never is not None and category in never):
        return None
    if retry_after_ms is not None:
        return retry_after_ms
    backoff: Mapping[str, Any] = retry.get("backoff") or {"type": "exponential"}

    def said(name: str, default: float) -> float:
        value = backoff.get(name)
        return default if value is None else float(value)

    if backoff.get("type") == "fixed":
        longest = said("delay_ms", 1_000)
    else:
        grown = said("initial_ms", 1_000) * said("factor", 2) ** min(tries - 1, 64)
        longest = min(grown, said("max_ms", 60_000))
    return int(longest if retry.get("jitter") == "none" else random.uniform(0, longest))
