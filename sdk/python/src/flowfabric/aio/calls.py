"""Fenced calls of one task. A call is repeated with the same fence and request id until it succeeds or the lease is over."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from .. import payload
from ..errors import ApiError, RequestError
from ..http.message import Request
from ..http.origin import segment
from ..lease import Lease
from ..task import Task
from .transport import AsyncTransport


class AsyncTaskCalls:
    """The calls of a worker for a task it holds."""

    def __init__(self, transport: AsyncTransport, task: Task, lease: Lease) -> None:
        self.transport = transport
        self.task = task
        self.lease = lease

    async def call(self, verb: str, said: Mapping[str, Any], *, ends: bool = False, method: str = "POST") -> Any:
        """Makes a call under the task's fence. With `ends`, it is the last call of this run.

        If the response is lost, the call is repeated, and the engine returns what it committed.
        """
        raw = payload.dump({"fence": self.task.fence, **said})
        path = f"/v1/tasks/{segment(self.task.execution_id)}/{verb}"
        request = Request(method, path, None, raw, timeout_s=max(1.0, self.lease.ttl_s / 3), once=True)
        request = request.identified()
        failures = 0
        while True:
            try:
                answer = (await self.transport.send(request)).json()
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
                await self.transport.sleep(self._pause(failures, error))

    def _pause(self, failures: int, error: Optional[RequestError]) -> float:
        # Short enough for another try before the lease expires.
        return min(self.transport.retry.pause(failures, error), self.lease.ttl_s / 10)
