"""Sends completions to the engine, and receives the worker's next tasks in the responses.

At most one request of completions is in flight. Tasks that end meanwhile go with the next one. Without a request in
flight, a completion is sent at once.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import logging
import time
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Sequence

from . import payload
from .aio.transport import AsyncTransport
from .errors import FlowFabricError, InvalidRequest, RequestError, TooLarge, of_item
from .http.message import Request, Retry
from .lease import Lease

log = logging.getLogger("flowfabric")

#: The maximum number of completions and bytes in one request.
ENDS_MAX = 64
BYTES_MAX = 448 * 1024
#: A larger completion travels alone.
ALONE_BYTES = 64 * 1024
#: The pauses before a completion with a temporary error is sent again.
REPEAT = Retry(initial_s=0.05, max_s=2.0)


class NotTogether(FlowFabricError):
    """The server refused the whole list, maybe because of another completion in it. Each must be sent alone."""


class Slots:
    """The slots of a worker: the tasks it may hold at once. A claim takes its slots before its request."""

    def __init__(self, count: int) -> None:
        self._free = count
        #: Set whenever a slot becomes free.
        self.freed = asyncio.Event()

    def take(self, at_most: int) -> "List[Slot]":
        """Takes the free slots, up to this number."""
        count = max(0, min(self._free, at_most))
        self._free -= count
        return [Slot(self) for _ in range(count)]

    def _give_back(self) -> None:
        self._free += 1
        self.freed.set()


class Slot:
    """A slot for one task."""

    def __init__(self, slots: Slots) -> None:
        self._slots: Optional[Slots] = slots

    def give_back(self) -> None:
        """Frees the slot. A second call does nothing."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots._give_back()


@dataclasses.dataclass(frozen=True)
class _Ending:
    """A completion that waits for its outcome."""

    item: bytes
    lease: Lease
    slot: Slot
    answer: "asyncio.Future[None]"


#: Accepts a claimed task. Arguments: the server's JSON, its slot (None if there is none), when the claim was first sent,
#: and whether it was sent more than once.
Taker = Callable[[Mapping[str, Any], Optional[Slot], float, bool], None]


class Finisher:
    """The completions of a worker that the engine has not confirmed yet."""

    def __init__(
        self,
        transport: AsyncTransport,
        path: str,
        slots: Slots,
        claim: Callable[[int], Optional[Dict[str, Any]]],
        taker: Taker,
        lease_ttl_s: float,
    ) -> None:
        self._transport = transport
        self._path = path
        self._slots = slots
        #: The claim for this many tasks; None if the worker claims no more.
        self._claim = claim
        self._taker = taker
        self._lease_ttl_s = lease_ttl_s
        self._waiting: Deque[_Ending] = collections.deque()
        self._sending: "Optional[asyncio.Task[None]]" = None

    async def complete(self, item: bytes, lease: Lease, slot: Slot) -> None:
        """Completes a task, together with others that end at the time. Raises the error if it fails.

        A completion that succeeded or failed for good has freed its slot. One with a temporary error keeps it.
        """
        answer: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        self._waiting.append(_Ending(item, lease, slot, answer))
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._send_all())
        await answer

    def sending(self) -> "List[asyncio.Task[None]]":
        """The sending asyncio task, if there is one."""
        return [] if self._sending is None else [self._sending]

    async def _send_all(self) -> None:
        try:
            while True:
                endings = self._next()
                if not endings:
                    return
                try:
                    await self._send(endings)
                except Exception as error:
                    # No server response causes this; a defect must not leave its callers waiting.
                    for ending in endings:
                        _answer(ending, error)
        finally:
            self._sending = None

    def _next(self) -> List[_Ending]:
        """The next completions to send, in order."""
        endings: List[_Ending] = []
        size = 0
        while self._waiting and len(endings) < ENDS_MAX:
            first = self._waiting[0]
            alone = len(first.item) > ALONE_BYTES
            if endings and (alone or size + len(first.item) > BYTES_MAX):
                break
            self._waiting.popleft()
            if first.answer.done():
                # Its caller was cancelled.
                continue
            endings.append(first)
            size += len(first.item)
            if alone:
                break
        return endings

    async def _send(self, endings: Sequence[_Ending]) -> None:
        """Sends one list until there is a response, or until none of its leases is trusted any more."""
        free = self._slots.take(ENDS_MAX - len(endings))
        try:
            claim = self._claim(len(endings) + len(free))
            body = b'{"results":[' + b",".join(ending.item for ending in endings) + b"]"
            if claim is not None:
                body += b',"claim":' + payload.dump(claim)
            timeout_s = max(1.0, self._lease_ttl_s / 3)
            request = Request("POST", self._path, None, body + b"}", timeout_s=timeout_s, once=True).identified()
            sent, failures = time.monotonic(), 0
            while True:
                try:
                    answer = (await self._transport.send(request)).results(len(endings))
                    break
                except RequestError as error:
                    if not error.retryable or not any(ending.lease.trusted for ending in endings):
                        self._refused(endings, error)
                        return
                    # Only the response may be lost, with claimed tasks in it: the same request returns the same tasks.
                    failures += 1
                    log.debug("%d results were not answered and are sent again: %s", len(endings), error)
                    await asyncio.sleep(min(REPEAT.pause(failures, error), self._lease_ttl_s / 10))
        finally:
            for slot in free:
                slot.give_back()
        self._answered(endings, answer, sent, failures > 0)

    def _answered(self, endings: Sequence[_Ending], answer: Mapping[str, Any], sent: float, repeated: bool) -> None:
        """Frees the slots of ended tasks, fills them with the new tasks, then resolves the callers.

        It contains no await, so the claim loop sees only the slots that are left.
        """
        errors: List[Optional[RequestError]] = [of_item(item) if "code" in item else None for item in answer["results"]]
        for ending, error in zip(endings, errors):
            if error is None or not error.retryable:
                ending.slot.give_back()
        refusal = answer.get("claim_error")
        if refusal is not None:
            # The claim loop claims next, and handles the error.
            log.debug("a claim that went along with results failed: %s", of_item(refusal))
        for task in answer.get("tasks") or ():
            # If a completion had a temporary error, its slot is not free, and there is one task too many.
            slots = self._slots.take(1)
            self._taker(task, slots[0] if slots else None, sent, repeated)
        for ending, error in zip(endings, errors):
            _answer(ending, error)

    @staticmethod
    def _refused(endings: Sequence[_Ending], error: RequestError) -> None:
        """The whole request failed."""
        for ending in endings:
            if isinstance(error, (InvalidRequest, TooLarge)):
                _answer(ending, NotTogether(str(error)))
            else:
                _answer(ending, error)


def _answer(ending: _Ending, error: Optional[BaseException]) -> None:
    # A cancelled caller needs no outcome.
    if ending.answer.done():
        return
    if error is None:
        ending.answer.set_result(None)
    else:
        ending.answer.set_exception(error)

