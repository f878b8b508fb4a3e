"""A claimed task, as its worker gets it."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional

from . import decoded, wire
from .decoded import Upstream
from .payload import Unreadable

#: What others wrote: submitters, upstream members, senders of signals, and the task's own earlier runs.
_CARRIED: Mapping[str, Any] = {
    "input": None,
    "tags": {},
    "fallback": None,
    "trace_parent": None,
    "resume": None,
    "passed": None,
    "key": None,
}


@dataclasses.dataclass(frozen=True)
class Task(decoded.Task):
    """One attempt of an execution, under a lease."""

    #: Why what it carries cannot be read; such a task is failed and no handler sees it.
    unreadable: Optional[str] = None

    @classmethod
    def claimed(cls, answer: Mapping[str, Any]) -> "Task":
        """From the API's answer, whatever others put into it: a task that cannot be read keeps what it takes to fail it."""
        try:
            deep = [name for name, value in answer.items() if isinstance(value, Unreadable)]
            if deep:
                raise ValueError(f"{deep[0]} nests deeper than can be read")
            return cls.read(answer)
        except Exception as error:
            bare = cls.read({**answer, **_CARRIED})
            return dataclasses.replace(bare, unreadable=str(error) or type(error).__name__)

    @property
    def input_bytes(self) -> Optional[bytes]:
        """The input's bytes when it was not JSON."""
        return self.input if isinstance(self.input, bytes) else None

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """The upstream members of the flow that pass something on, by name."""
        return self.passed

    @property
    def fence(self) -> wire.Fence:
        """Proof of the lease, as every call of the task carries it."""
        return {"attempt_id": self.attempt_id, "lease_id": self.lease_id, "lease_epoch": self.lease_epoch}
