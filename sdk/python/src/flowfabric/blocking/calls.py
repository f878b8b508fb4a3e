# Generated from ../aio by tools/blocking.py; change it there.
"""Fenced calls of one task: repeated under the same fence and request id until they are answered or the lease is over."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .. import payload
from ..errors import ApiError, RequestError
from ..http.message import Request
from ..http.origin import segment
from ..lease import Lease
from ..task import Task
from .transport import Transport


class TaskCalls:
    """What a worker says about a task it holds."""

    def __init__(self, transport: Transport, task: Task, lease: Lease) -> None:
        self.transport = transport
        self.task = task
        self.lease = lease

    def call(self, verb: str, said: Mapping[str, Any], *, ends: bool = False) -> Any:
        """Makes a call under the task's fence; one that `ends` the run leaves nothing to be said after it.

        A lost answer is asked for again: the engine answers what it committed.
        """
        raw = payload.dump({"fence": self.task.fence, **said})
        path = f"/v1/tasks/{segment(self.task.execution_id)}/{verb}"
        request = Request("POST", path, None, raw, timeout_s=max(1.0, self.lease.ttl_s / 3), once=True)
        request = request.identified()
        failures = 0
        while True:
            try:
                answer = (self.transport.send(request)).json()
                if ends:
                    self.lease.set_aside = True
                return answer
            except RequestError as error:
                failures += 1
                if isinstance(error, ApiError) and error.ends_lease:
                    self.lease.refused()
                    raise
                if not error.retryable or not self.lease.trusted:
                    raise
                self.transport.sleep(self._pause(failures, error))

    def _pause(self, failures: int, error: Optional[RequestError]) -> float:
        # Never so long that the lease runs out in the meantime without another try.
        return min(self.transport.retry.pause(failures, error), self.lease.ttl_s / 10)
