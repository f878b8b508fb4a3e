"""The context of a handler: the calls for its task, in asyncio."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from typing_extensions import TypedDict, Unpack

from .. import wire
from ..conditions import Condition, signal
from ..errors import ApiError, BudgetSpent, HandedBack, Suspended, WaitingForChildren
from ..execution import ChildFields, body
from ..http.origin import segment
from ..ids import mint
from ..lease import CancelReason
from ..payload import dump, put
from ..task import Task
from ..values import BudgetAnswer, Child, Opened, ReserveAnswer, Resume, Signal, StreamPage, Upstream
from .calls import AsyncTaskCalls
from .pages import pages
from .steps import AsyncSteps

#: The maximum number of frames and bytes in one request.
_FRAMES_MAX = 1000
_BYTES_MAX = 2 * 1024 * 1024
#: The causes that end a wait for signals.
_ENDS_A_WAIT = ("signal", "timeout", "operator")


class WaitOptions(TypedDict, total=False):
    """The options of a wait for signals."""

    key: Optional[str]
    reason: wire.SuspensionReason
    condition: Optional[Condition]
    timeout_ms: Optional[int]
    timeout_behavior: Optional[wire.TimeoutBehaviorWord]
    continuation: Any
    step: Optional[str]


class AsyncContext(AsyncSteps):
    """A handler's view of its task. Every call is fenced, and is safely repeated if its response is lost.

    Calls that end the run (suspend, wait for children, delay, yield, cancel) raise a `SetAside`. Do not catch it. After a
    wait, the handler is called again from its beginning, in whichever worker claims the execution.
    """

    def __init__(self, calls: AsyncTaskCalls, instance: str) -> None:
        self._calls = calls
        self._instance = instance
        #: Set when the handler should stop; `cancel_reason` is the reason.
        self.cancelled = asyncio.Event()
        self._lease = calls.lease
        self._lease.on_told(self.cancelled.set)
        self._writing = asyncio.Lock()
        self._next_frame: Optional[int] = calls.task.frames
        self._spawns = 0
        #: True once a wait has returned this run's resume, so that no other wait returns it.
        self._resume_taken = False

    # The task.

    @property
    def execution_id(self) -> str:
        """The id of the execution."""
        return self.task.execution_id

    @property
    def attempt_index(self) -> int:
        """The number of this attempt, counted from 0."""
        return self.task.attempt_index

    @property
    def input(self) -> Any:
        """The input: JSON as Python values, anything else as bytes."""
        return self.task.input

    @property
    def tags(self) -> Mapping[str, str]:
        """The execution's tags."""
        return self.task.tags

    @property
    def passed(self) -> Dict[str, Any]:
        """The results of upstream members by name; None for a member without a result."""
        return {name: upstream.value for name, upstream in self.task.upstreams.items()}

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """The upstream members by the name of their result, with their outcomes."""
        return self.task.upstreams

    @property
    def resume(self) -> Optional[Resume]:
        """Why the handler is called again; None if this run follows no wait. `resume_of` checks for a certain wait."""
        return self.task.resume

    def resume_of(self, step: str) -> Optional[Resume]:
        """The end of this wait: by its signals, its timeout or an operator. None if this run has another cause."""
        resume = self.resume
        if resume is None or resume.cause not in _ENDS_A_WAIT or resume.step != step:
            return None
        return resume

    # The lease.

    @property
    def cancel_reason(self) -> Optional[str]:
        """Why the handler should stop: lease_lost, cancel_requested, yield_requested or shutdown; None if it should not."""
        return self._lease.reason

    @property
    def lease_healthy(self) -> bool:
        """False after three failed renewals in a row."""
        return self._lease.healthy and self._lease.reason != CancelReason.LEASE_LOST

    async def renew_lease(self) -> None:
        """Renews the lease now. The worker also renews it in the background."""
        sent = self._lease.now()
        renewal = {"execution_id": self.task.execution_id, **self.task.fence}
        path = f"/v1/workers/{segment(self._instance)}/heartbeat"
        answer = (await self._calls.transport.json("POST", path, {"renew": [renewal]}))["leases"][0]
        self._lease.settle(sent, answer)

    # Progress and frames.

    async def progress(self, pct: int, message: Optional[str] = None) -> None:
        """Stores the progress of the work, which the execution's description shows."""
        await self._calls.call("progress", {"pct": pct, "message": message})

    async def frame(
        self,
        type: str,
        payload: Any = None,
        *,
        correlation_id: Optional[str] = None,
        mode: Optional[wire.FrameMode] = None,
    ) -> str:
        """Appends a frame to the attempt's stream and returns its id."""
        frame: wire.FrameBody = {"type": type, "payload": payload, "correlation_id": correlation_id, "mode": mode}
        return (await self.frames([frame]))[0]

    async def summary(self, patch: Mapping[str, Any], type: str = "summary") -> str:
        """Folds a JSON merge patch into the attempt's summary document."""
        return await self.frame(type, dict(patch), mode="summary")

    async def frames(self, frames: Sequence[wire.FrameBody]) -> List[str]:
        """Appends many frames, in order, and returns their ids."""
        ids: List[str] = []
        async with self._writing:
            for batch in _batches(frames):
                ids.extend(await self._append(batch))
        return ids

    async def _append(self, batch: List[Dict[str, Any]]) -> List[str]:
        said = {"frames": batch, "first_sequence": self._next_frame, "request_id": mint()}
        # Until the response arrives, the next sequence is unknown, and another append must not guess it.
        self._next_frame = None
        try:
            answer = await self._calls.call("frames", said)
        except ApiError as error:
            if error.code != "frames_missing":
                raise
            # The store has fewer frames than it confirmed. It lost some, so the stream continues after those it has.
            answer = await self._calls.call("frames", {"frames": batch, "request_id": mint()})
        self._next_frame = int(answer["next_sequence"])
        return [str(id) for id in answer["ids"]]

    async def read_stream(self, after: str = "start", *, limit: int = 100, block_ms: int = 0) -> StreamPage:
        """Frames of this attempt, including those of its earlier runs."""
        path = f"/v1/executions/{segment(self.execution_id)}/attempts/{self.attempt_index}/stream"
        query = {"after": after, "limit": limit, "block_ms": block_ms or None}
        answer = await self._calls.transport.json("GET", path, query=query, wait_s=block_ms / 1000)
        return StreamPage.read(answer, self.attempt_index)

    # Budgets and quotas.

    async def usage(
        self, budget_id: str, dimensions: Mapping[str, int], dedup_key: Optional[str] = None
    ) -> BudgetAnswer:
        """Reports the attempt's usage. A repeated request counts once.

        At a hard limit the budget may end the lease. Then this raises `BudgetSpent`. If the budget parks work, the handler is
        called again when there is room.
        """
        said = {"budget_id": budget_id, "dimensions": dimensions, "dedup_key": dedup_key, "request_id": mint()}
        return self._unless_spent(await self._calls.call("usage", said))

    async def reserve(
        self, budget_id: str, dimensions: Mapping[str, int], dedup_key: Optional[str] = None
    ) -> ReserveAnswer:
        """Reserves amounts until the lease ends."""
        said = {"budget_id": budget_id, "dimensions": dimensions, "dedup_key": dedup_key or mint()}
        return ReserveAnswer.read(await self._calls.call("reserve", said))

    async def settle(self, budget_id: str, reservation_id: str, dimensions: Mapping[str, int]) -> BudgetAnswer:
        """Replaces a reservation by the real usage and returns the rest. Higher usage may exceed a hard limit, as in `usage`."""
        said = {"budget_id": budget_id, "reservation_id": reservation_id, "dimensions": dimensions}
        return self._unless_spent(await self._calls.call("settle", said))

    async def release(self, budget_id: str, reservation_id: str) -> None:
        """Releases a reservation."""
        await self._calls.call("release", {"budget_id": budget_id, "reservation_id": reservation_id})

    def _unless_spent(self, said: Mapping[str, Any]) -> BudgetAnswer:
        answer = BudgetAnswer.read(said)
        if answer.lease_ended:
            self._lease.set_aside = True
            raise BudgetSpent(answer)
        return answer

    async def throttle(self, quota_id: str, key: str, retry_after_ms: int) -> Optional[int]:
        """Throttles the key for the whole fleet after a provider's 429. Returns until when it is throttled."""
        said = {"quota_id": quota_id, "key": key, "retry_after_ms": retry_after_ms}
        until: Optional[int] = (await self._calls.call("throttle", said)).get("throttled_until")
        return until

    async def weigh(self, quota_id: str, key: str, weight: int) -> bool:
        """Corrects the attempt's weight under a key. Returns False if the weight no longer counts."""
        said = {"quota_id": quota_id, "key": key, "weight": weight}
        return bool((await self._calls.call("weight", said))["outcome"] == "ok")

    # Waiting.

    async def create_pending_waitpoint(
        self,
        key: str,
        *,
        expires_in_ms: Optional[int] = None,
        allowed_signals: Optional[Sequence[str]] = None,
        approvers: Optional[Sequence[str]] = None,
        uses: Optional[int] = None,
    ) -> Opened:
        """Opens a waitpoint before the handler suspends, so that its tokens can be sent out first. Early signals count."""
        said = {
            "key": key,
            "expires_in_ms": expires_in_ms,
            "allowed_signals": allowed_signals,
            "approvers": approvers,
            "uses": uses,
            "request_id": mint(),
        }
        return Opened.read(await self._calls.call("waitpoints", said))

    async def close_waitpoint(self, waitpoint_id: str) -> None:
        """Closes a pending waitpoint."""
        await self._calls.call(f"waitpoints/{segment(waitpoint_id)}/close", {})

    async def suspend(
        self,
        reason: wire.SuspensionReason = "waiting_for_signal",
        *,
        waitpoints: Optional[Sequence[Union[str, Opened, wire.WaitpointBody]]] = None,
        condition: Optional[Condition] = None,
        timeout_ms: Optional[int] = None,
        timeout_behavior: Optional[wire.TimeoutBehaviorWord] = None,
        continuation: Any = None,
        step: Optional[str] = None,
    ) -> List[Signal]:
        """Suspends the execution until the condition is met. Without a condition, any signal is enough.

        A waitpoint is a key, an opened waitpoint, or a dictionary of the API. Without waitpoints, the attempt waits at all that
        it has opened. If early signals already meet the condition, this returns them; otherwise it raises `Suspended`. The
        next run finds `continuation` (JSON or bytes) and the name `step` in `resume`.
        """
        said: Dict[str, Any] = {
            "reason": reason,
            "waitpoints": None if waitpoints is None else [_waitpoint(waitpoint) for waitpoint in waitpoints],
            "condition": condition,
            "timeout_ms": timeout_ms,
            "timeout_behavior": timeout_behavior,
            "wait": step,
            "request_id": mint(),
        }
        put(said, "continuation", continuation)
        answer = await self._calls.call("suspend", said)
        if answer["outcome"] == "already_satisfied":
            return [Signal.read(signal) for signal in answer["signals"]]
        self._lease.set_aside = True
        raise Suspended(answer["suspension_id"])

    async def wait_for_signals(
        self,
        name: Optional[str] = None,
        *,
        key: Optional[str] = None,
        reason: wire.SuspensionReason = "waiting_for_signal",
        condition: Optional[Condition] = None,
        timeout_ms: Optional[int] = None,
        timeout_behavior: Optional[wire.TimeoutBehaviorWord] = None,
        continuation: Any = None,
        step: Optional[str] = None,
    ) -> List[Signal]:
        """Returns the signals of this wait in the run after it. In any other run, it calls `suspend`.

        Only its own signals, its own timeout or an operator end a wait. Another wait, a budget with new room or children do not.
        A wait is identified by its name `step`, or without one by all its other arguments, so keep them the same in every run.
        This is for handlers that wait once. A handler with several waits must not return to a wait that has ended;  it finds
        its position in `resume.continuation`. With a `key`, a waitpoint with that key is opened with the suspension.
        """
        waits_for = condition or (None if name is None else signal(name))
        if step is None:
            said: Dict[str, Any] = {"wait": [reason, key, waits_for, timeout_ms, timeout_behavior]}
            put(said, "continuation", continuation)
            step = f"wait {hashlib.sha256(dump(said)).hexdigest()[:24]}"
        resume = self.resume_of(step)
        if resume is not None and not self._resume_taken:
            self._resume_taken = True
            return resume.signals
        return await self.suspend(
            reason,
            waitpoints=None if key is None else [key],
            condition=waits_for,
            timeout_ms=timeout_ms,
            timeout_behavior=timeout_behavior,
            continuation=continuation,
            step=step,
        )

    async def wait_for_signal(self, name: Optional[str] = None, **options: Unpack[WaitOptions]) -> Optional[Signal]:
        """The first signal of `wait_for_signals`; None if the wait ended without one."""
        signals = await self.wait_for_signals(name, **options)
        return signals[0] if signals else None

    # Children.

    async def spawn(self, children: Sequence[ChildFields]) -> List[str]:
        """Spawns children of this execution and returns their ids, in order.

        The n-th spawn of every run is the same spawn, and returns the children of the first run. A child with a key is found
        by its key. If a repeated spawn has different children, it fails with `idempotency_conflict`.
        """
        request, self._spawns = str(uuid.UUID(int=self._spawns)), self._spawns + 1
        said = {"children": [body(child) for child in children], "request_id": request}
        answer = await self._calls.call("spawn", said)
        return [str(child["execution_id"]) for child in answer["children"]]

    async def wait_children(self) -> List[Child]:
        """The outcomes of all children, in spawn order.

        If some have not ended, this raises `WaitingForChildren`. The execution then holds no worker, and the handler is called
        again from its beginning when all have ended.
        """
        resume = self.resume
        if resume is not None and resume.cause == "children" and self._spawns == 0:
            return await self.children() if resume.more_children else resume.children
        answer = await self._calls.call("wait-children", {"request_id": mint()})
        if answer["outcome"] == "waiting":
            self._lease.set_aside = True
            raise WaitingForChildren(int(answer["open"]))
        if answer.get("more_children"):
            return await self.children()
        return [Child.read(child) for child in answer["children"]]

    async def children(self) -> List[Child]:
        """Every child of this execution, from any attempt, with its state or outcome."""
        path = f"/v1/executions/{segment(self.execution_id)}/children"
        return [Child.read(child) async for child in pages(self._calls.transport, path)]

    # Other ways to end the run.

    async def delay(self, delay_ms: Optional[int] = None, *, until: Optional[int] = None) -> None:
        """Ends the attempt and runs the execution again later. It counts as neither a failure nor a reclaim."""
        await self._hand_back("delay", {"delay_ms": delay_ms, "delay_until": until}, "delayed")

    async def yield_back(self) -> None:
        """Hands the execution back, so that any worker can take it at once. This counts against no limit."""
        await self._hand_back("yield", {}, "yielded")

    async def cancel(self, reason: Optional[str] = None) -> None:
        """Ends the execution as cancelled."""
        await self._hand_back("cancel", {"reason": reason}, "cancelled")

    async def _hand_back(self, verb: str, said: Mapping[str, Any], outcome: str) -> None:
        await self._calls.call(verb, said, ends=True)
        raise HandedBack(outcome)


def _waitpoint(waitpoint: Union[str, Opened, wire.WaitpointBody]) -> Dict[str, Any]:
    if isinstance(waitpoint, str):
        return {"key": waitpoint}
    if isinstance(waitpoint, Opened):
        return {"waitpoint_id": waitpoint.waitpoint_id}
    return dict(waitpoint)


def _batches(frames: Sequence[wire.FrameBody]) -> List[List[Dict[str, Any]]]:
    batches: List[List[Dict[str, Any]]] = []
    size = _BYTES_MAX
    for frame in frames:
        said = {name: value for name, value in frame.items() if value is not None and name != "payload"}
        put(said, "payload", frame.get("payload"))
        weight = len(dump(said)) + 1
        if size + weight > _BYTES_MAX or len(batches[-1]) >= _FRAMES_MAX:
            batches.append([])
            size = 0
        batches[-1].append(said)
        size += weight
    return batches
