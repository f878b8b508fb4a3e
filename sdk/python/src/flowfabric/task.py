"""A claimed task, as its worker gets it."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Mapping, Optional

from .payload import Unreadable, take
from .values import Resume, Upstream


#: The fields that others wrote: submitters, upstream members, whoever signals, the task's own earlier runs.
_CARRIED = ("input", "input_encoding", "tags", "fallback", "trace_parent", "resume", "passed", "key")


@dataclasses.dataclass(frozen=True)
class Task:
    """One attempt of an execution, under a lease."""

    execution_id: str
    attempt_index: int
    attempt_id: str
    #: initial, retry, reclaim or replay.
    attempt_type: str
    lease_id: str
    lease_epoch: int
    lease_expires_at: int
    namespace: str
    lane: str
    kind: str
    #: JSON as Python's own values, anything else as bytes; None when nothing was given.
    input: Any
    #: The input's bytes when it was not JSON.
    input_bytes: Optional[bytes]
    tags: Mapping[str, str]
    priority: int
    #: The tier of the submitter's fallbacks this attempt is to use.
    fallback: Any
    fallback_index: Optional[int]
    trace_parent: Optional[str]
    deadline_at: Optional[int]
    attempt_deadline_at: Optional[int]
    #: Why the handler is called again; None in a run that follows no wait.
    resume: Optional[Resume]
    #: What upstream members of the flow pass, by name.
    upstreams: Mapping[str, Upstream]
    flow_id: Optional[str]
    parent_id: Optional[str]
    #: Its name in its flow, or for its parent.
    key: Optional[str]
    #: How many frames the attempt has written.
    frames: Optional[int]
    #: Why what it carries cannot be read; such a task is failed and no handler sees it.
    unreadable: Optional[str] = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> "Task":
        """From the API's answer."""
        raw = take(answer.get("input"), answer.get("input_encoding"))
        resume = answer.get("resume")
        passed = answer.get("passed") or {}
        return cls(
            execution_id=answer["execution_id"],
            attempt_index=int(answer["attempt_index"]),
            attempt_id=answer["attempt_id"],
            attempt_type=str(answer.get("attempt_type", "initial")),
            lease_id=answer["lease_id"],
            lease_epoch=int(answer["lease_epoch"]),
            lease_expires_at=int(answer["lease_expires_at"]),
            namespace=str(answer.get("namespace", "default")),
            lane=answer["lane"],
            kind=answer["kind"],
            input=raw,
            input_bytes=raw if isinstance(raw, bytes) else None,
            tags=answer.get("tags") or {},
            priority=int(answer.get("priority", 0)),
            fallback=answer.get("fallback"),
            fallback_index=answer.get("fallback_index"),
            trace_parent=answer.get("trace_parent"),
            deadline_at=answer.get("deadline_at"),
            attempt_deadline_at=answer.get("attempt_deadline_at"),
            resume=None if resume is None else Resume.read(resume),
            upstreams={name: Upstream.read(value) for name, value in passed.items()},
            flow_id=answer.get("flow_id"),
            parent_id=answer.get("parent_id"),
            key=answer.get("key"),
            frames=answer.get("frames"),
        )

    @classmethod
    def claimed(cls, answer: Mapping[str, Any]) -> "Task":
        """The same, whatever others put into it: a task that cannot be read keeps what it takes to fail it."""
        try:
            deep = [name for name, value in answer.items() if isinstance(value, Unreadable)]
            if deep:
                raise ValueError(f"{deep[0]} nests deeper than can be read")
            return cls.read(answer)
        except Exception as error:
            bare = {name: value for name, value in answer.items() if name not in _CARRIED}
            return dataclasses.replace(cls.read(bare), unreadable=str(error) or type(error).__name__)

    @property
    def fence(self) -> Dict[str, Any]:
        """Proof of the lease, as every call of the task carries it."""
        return {"attempt_id": self.attempt_id, "lease_id": self.lease_id, "lease_epoch": self.lease_epoch}
