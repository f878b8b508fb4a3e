"""A claimed task, as its worker receives it."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional

from . import decoded, wire
from .decoded import Upstream
from .payload import Unreadable

#: The fields with data from outside: from submitters, upstream members, senders of signals, and earlier runs.
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

    #: Why the task's data cannot be read. Such a task fails without a call of its handler.
    unreadable: Optional[str] = None

    @classmethod
    def claimed(cls, answer: Mapping[str, Any]) -> "Task":
        """Reads a task from the API's JSON. An unreadable task keeps the fields that are needed to fail it."""
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
        """The bytes of an input that is not JSON."""
        return self.input if isinstance(self.input, bytes) else None

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """The upstream members that pass a result, by name."""
        return self.passed

    @property
    def fence(self) -> wire.Fence:
        """The fence of the lease, which every call of the task carries."""
        return {"attempt_id": self.attempt_id, "lease_id": self.lease_id, "lease_epoch": self.lease_epoch}
