"""The client of submitters and operators, in asyncio."""

from __future__ import annotations

import builtins
import ssl
import time
from typing import Any, AsyncIterator, Dict, Iterable, Mapping, Optional, Sequence, cast

from typing_extensions import Unpack

from .. import payload, wire
from ..errors import of_item
from ..execution import Fields, submission
from ..http.message import TIMEOUT_S, Request, Retry
from ..http.origin import Origin, segment
from ..ids import mint
from ..values import BatchItem, Child, Event, Frame, NotEnded, Result, Signal, StreamPage, Submitted
from .budgets import AsyncBudgets
from .fleet import AsyncFleet
from .flows import AsyncFlows
from .follow import follow
from .lanes import AsyncLanes
from .pages import pages
from .quotas import AsyncQuotas
from .schedules import AsyncSchedules
from .transport import AsyncTransport
from .waitpoints import AsyncWaitpoints

#: The longest long poll of a server.
_WAIT_MAX_S = 30.0


class AsyncClient:
    """A client of one server. A request that fails in transit is repeated where that is safe, so it is executed once.

    `url` and `token` default to `FF_URL` and `FF_TOKEN` of the environment.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        timeout_s: float = TIMEOUT_S,
        retry: Optional[Retry] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        origin = Origin(url, token, ssl_context)
        self._transport = AsyncTransport(origin, timeout_s=timeout_s, retry=retry)
        self.flows = AsyncFlows(self._transport)
        self.waitpoints = AsyncWaitpoints(self._transport)
        self.budgets = AsyncBudgets(self._transport)
        self.quotas = AsyncQuotas(self._transport)
        self.lanes = AsyncLanes(self._transport)
        self.schedules = AsyncSchedules(self._transport)
        self.workers = AsyncFleet(self._transport)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def submit(self, kind: str, input: Any = None, **fields: Unpack[wire.SubmitOptions]) -> Submitted:
        """Submits one execution; `input` is any JSON value or bytes.

        Without an idempotency key, the client creates the execution's id. If the response is lost, the repeated request
        therefore does not submit a second execution.
        """
        said = submission({**fields, "kind": kind, "input": input})
        return Submitted.read(await self._transport.json("POST", "/v1/executions", said))

    async def submit_batch(self, items: Iterable[Fields]) -> builtins.list[BatchItem]:
        """Submits up to 10,000 executions, in order. Each succeeds or fails independently."""
        lines = b"\n".join(payload.dump(submission(item)) for item in items)
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
        answer = await self._transport.send(Request("POST", "/v1/executions:batch", None, lines, headers))
        read = [payload.load(line) for line in answer.body.splitlines() if line.strip()]
        return [
            BatchItem(None, of_item(item["error"])) if "error" in item else BatchItem(Submitted.read(item), None)
            for item in read
        ]

    async def get(self, execution_id: str) -> wire.Execution:
        """The full state of one execution."""
        return cast(wire.Execution, await self._transport.json("GET", _path(execution_id)))

    def list(
        self, *, limit: Optional[int] = None, **filters: Unpack[wire.ExecutionFilter]
    ) -> AsyncIterator[wire.ExecutionSummary]:
        """Executions, newest first, over all pages; `tag` is `key:value`."""
        found = pages(self._transport, "/v1/executions", filters, limit)
        return cast("AsyncIterator[wire.ExecutionSummary]", found)

    async def result(self, execution_id: str, wait_s: Optional[float] = 0.0) -> Result:
        """The result of an execution. Waits for its end up to `wait_s` seconds; None waits without a limit.

        Raises `NotEnded` if it has not ended by then.
        """
        until = None if wait_s is None else time.monotonic() + wait_s
        while True:
            left = _WAIT_MAX_S if until is None else min(_WAIT_MAX_S, max(0.0, until - time.monotonic()))
            query = {"wait_ms": int(left * 1000)}
            request = Request("GET", f"{_path(execution_id)}/result", query, wait_s=left)
            response = await self._transport.send(request)
            answer = response.json()
            if response.status == 200:
                return Result.read(answer)
            if until is not None and time.monotonic() >= until:
                raise NotEnded(execution_id, answer["state"])

    async def run(
        self, kind: str, input: Any = None, *, wait_s: Optional[float] = None, **fields: Unpack[wire.SubmitOptions]
    ) -> Any:
        """Submits an execution and waits for its result. Raises `ExecutionFailed` for an outcome other than success."""
        submitted = await self.submit(kind, input, **fields)
        return (await self.result(submitted.execution_id, wait_s)).value

    async def cancel(
        self, execution_id: str, reason: Optional[str] = None, *, grace_ms: Optional[int] = None
    ) -> wire.ExecutionDone:
        """Cancels an execution: at once, or with a grace period, when its worker has stopped or the period is over."""
        return cast(wire.ExecutionDone, await self._do(execution_id, "cancel", {"reason": reason, "grace_ms": grace_ms}))

    async def replay(
        self,
        execution_id: str,
        reason: Optional[str] = None,
        *,
        from_step: Optional[str] = None,
        from_start: bool = False,
    ) -> wire.ExecutionDone:
        """Runs an ended execution again. It keeps its steps, those before `from_step`, or none with `from_start`."""
        place: Any = "start" if from_start else None if from_step is None else {"step": from_step}
        said = {"reason": reason, "from": place}
        return cast(wire.ExecutionDone, await self._do(execution_id, "replay", said, repeatable=False))

    async def fork(
        self,
        execution_id: str,
        *,
        from_step: Optional[str] = None,
        input: Any = None,
        lane: Optional[str] = None,
        priority: Optional[int] = None,
        tags: Optional[Mapping[str, str]] = None,
        idempotency_key: Optional[str] = None,
    ) -> str:
        """Submits a new execution with copies of this one's finished steps, those before `from_step` or all; returns its id."""
        said: Dict[str, Any] = {
            "from_step": from_step,
            "lane": lane,
            "priority": priority,
            "tags": tags,
            "idempotency_key": idempotency_key or mint(),
        }
        payload.put(said, "input", input)
        return str((await self._do(execution_id, "fork", said))["execution_id"])

    def steps(self, execution_id: str) -> AsyncIterator[wire.Step]:
        """The steps of an execution, in the order in which they were first recorded."""
        return cast("AsyncIterator[wire.Step]", pages(self._transport, f"{_path(execution_id)}/steps"))

    async def hold(self, execution_id: str, reason: Optional[str] = None) -> wire.ExecutionDone:
        """Keeps an execution from starting."""
        return cast(wire.ExecutionDone, await self._do(execution_id, "hold", {"reason": reason}))

    async def release(self, execution_id: str, reason: Optional[str] = None) -> wire.ExecutionDone:
        """Ends a hold."""
        return cast(wire.ExecutionDone, await self._do(execution_id, "release", {"reason": reason}))

    async def resume(self, execution_id: str, reason: Optional[str] = None) -> wire.SuspensionEnded:
        """Resumes a suspended execution without its signals."""
        return cast(wire.SuspensionEnded, await self._do(execution_id, "resume", {"reason": reason}, repeatable=False))

    async def fail_suspension(self, execution_id: str, reason: str, category: Optional[str] = None) -> wire.SuspensionEnded:
        """Ends a suspended execution as failed."""
        said = {"reason": reason, "category": category}
        return cast(wire.SuspensionEnded, await self._do(execution_id, "fail-suspension", said, repeatable=False))

    async def revoke_lease(
        self, execution_id: str, reason: Optional[str] = None, *, grace: bool = False
    ) -> wire.ExecutionDone:
        """Takes a running execution away from its worker. With `grace`, the worker is first asked to yield."""
        return cast(wire.ExecutionDone, await self._do(execution_id, "revoke-lease", {"reason": reason, "grace": grace}, repeatable=False))

    async def reclaim(self, execution_id: str, instance: str, *, ttl_ms: Optional[int] = None) -> wire.Grant:
        """Hands an interrupted execution to a chosen worker and returns the grant."""
        said = {"instance": instance, "ttl_ms": ttl_ms}
        return cast(wire.Grant, (await self._do(execution_id, "reclaim", said, repeatable=False))["grant"])

    async def change(self, execution_id: str, **changes: Unpack[wire.ExecutionChanges]) -> wire.ExecutionChanged:
        """Changes the given fields of an execution that has not ended."""
        return cast(wire.ExecutionChanged, await self._transport.json("PATCH", _path(execution_id), changes))

    async def delete(self, execution_id: str) -> None:
        """Deletes an ended execution."""
        await self._transport.json("DELETE", _path(execution_id))

    async def cancel_where(self, **filters: Unpack[wire.CancelWhere]) -> wire.BulkCounts:
        """Cancels a bounded number of executions that match the filters of `list`; continue with `next_cursor`."""
        return cast(wire.BulkCounts, await self._transport.json("POST", "/v1/executions:cancel", filters))

    async def replay_where(self, **filters: Unpack[wire.ReplayWhere]) -> wire.BulkCounts:
        """Replays a bounded number of executions that match the filters of `list`; continue with `next_cursor`."""
        path = "/v1/executions:replay"
        return cast(wire.BulkCounts, await self._transport.json("POST", path, filters, repeatable=False))

    async def history(self, execution_id: str) -> wire.History:
        """Attempts, suspensions and operators' actions."""
        return cast(wire.History, await self._transport.json("GET", f"{_path(execution_id)}/history"))

    async def attempt(self, execution_id: str, index: int) -> wire.Attempt:
        """One attempt."""
        return cast(wire.Attempt, await self._transport.json("GET", f"{_path(execution_id)}/attempts/{index}"))

    async def explain(self, execution_id: str) -> wire.Explanation:
        """Why an execution is not running, and what would change that."""
        return cast(wire.Explanation, await self._transport.json("GET", f"{_path(execution_id)}/explain"))

    async def usage(self, execution_id: str) -> wire.ExecutionUsage:
        """The usage of an execution per budget, dimension and attempt."""
        return cast(wire.ExecutionUsage, await self._transport.json("GET", f"{_path(execution_id)}/usage"))

    async def children(self, execution_id: str) -> builtins.list[Child]:
        """The children of an execution with their outcomes, in spawn order."""
        return [Child.read(child) async for child in pages(self._transport, f"{_path(execution_id)}/children")]

    async def signals(self, execution_id: str) -> builtins.list[Signal]:
        """The signals that resumed the attempt."""
        answer = await self._transport.json("GET", f"/v1/tasks/{segment(execution_id)}/signals")
        return [Signal.read(signal) for signal in answer["signals"]]

    async def read_stream(
        self, execution_id: str, attempt: int = 0, *, after: str = "start", limit: int = 100, block_ms: int = 0
    ) -> StreamPage:
        """Frames of one attempt after a cursor. Waits up to `block_ms` for the first one."""
        path = f"{_path(execution_id)}/attempts/{attempt}/stream"
        query = {"after": after, "limit": limit, "block_ms": block_ms or None}
        answer = await self._transport.json("GET", path, query=query, wait_s=block_ms / 1000)
        return StreamPage.read(answer, attempt)

    async def summary(self, execution_id: str, attempt: Optional[int] = None) -> Any:
        """The summary document of an attempt (default: the latest one); None if there is none."""
        place = "" if attempt is None else f"/attempts/{attempt}"
        return (await self._transport.json("GET", f"{_path(execution_id)}{place}/stream/summary"))["document"]

    async def stream(self, execution_id: str, after: Optional[str] = None) -> AsyncIterator[Frame]:
        """Frames of all attempts as they arrive, until the execution ends. A broken connection is resumed at the same position.

        A frame with the `event` `attempt_superseded` marks the start of a new attempt; the last one is `closed`.
        """
        async for name, data in follow(self._transport, f"{_path(execution_id)}/stream", {}, after):
            yield Frame.read({**data, "event": name})
            if name == "closed":
                return

    async def events(
        self,
        after: str = "now",
        *,
        types: Optional[Sequence[str]] = None,
        limit: Optional[int] = None,
        **filters: Unpack[wire.EventFilter],
    ) -> AsyncIterator[Event]:
        """Events after a cursor, without an end; `after` is a cursor, `start` or `now`.

        A broken connection is resumed after the last event. Keep `Event.cursor` to continue in another process.
        """
        query = {**filters, "after": after, "types": ",".join(types) if types else None}
        left = limit
        if left is not None and left <= 0:
            return
        async for _, data in follow(self._transport, "/v1/events", query, None):
            yield Event.read(data)
            if left is not None:
                left -= 1
                if left == 0:
                    return

    async def stats(self) -> wire.Stats:
        """The number of executions in each state, by lane."""
        return cast(wire.Stats, await self._transport.json("GET", "/v1/stats"))

    async def _do(self, execution_id: str, verb: str, said: Mapping[str, Any], *, repeatable: bool = True) -> Any:
        return await self._transport.json("POST", f"{_path(execution_id)}/{verb}", said, repeatable=repeatable)


def _path(execution_id: str) -> str:
    return f"/v1/executions/{segment(execution_id)}"
