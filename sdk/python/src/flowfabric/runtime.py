"""A running worker: it registers, claims for its free slots, renews leases, runs handlers, and shuts down in order."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import functools
import logging
import threading
import time
from typing import Any, Callable, Coroutine, Dict, List, Mapping, Optional, Sequence, Set, TypeVar

from . import payload
from .aio.calls import AsyncTaskCalls
from .aio.context import AsyncContext
from .aio.steps import go_aside
from .aio.transport import AsyncTransport
from .blocking.calls import TaskCalls
from .blocking.context import Context
from .blocking.transport import Transport
from .deadline import ended, within
from .errors import ApiError, ConfigError, InvalidRequest, RequestError, SetAside, TaskError, TooLarge
from .finish import REPEAT, Finisher, NotTogether, Slot, Slots
from .handler import Handler
from .http.message import Request, Response, Retry
from .http.origin import Origin, segment
from .ids import mint
from .lease import CancelReason, Lease, LeaseBook
from .task import Task

log = logging.getLogger("flowfabric")

T = TypeVar("T")

#: How long one claim waits for work.
_CLAIM_WAIT_S = 20.0
#: The maximum number of tasks in one claim.
_CLAIM_MAX = 256
#: The worker learns of a drain before its leases do, so it renews them again after these pauses.
_ASK_AFTER_S = (0.2, 0.8, 2.0)
#: An empty long poll that returns sooner than this was not held; the next one starts no sooner either.
_AT_ONCE_S = 0.2
#: The maximum number of leases in one heartbeat, because more might not fit in one body.
_RENEW_MAX = 1000
#: The longest reason that the engine accepts, in bytes.
_REASON_MAX = 4096
#: The pause before a task without a handler can be claimed again.
_WITHOUT_HANDLER_S = 5
#: The pauses of a worker while its server does not respond.
_RETRY = Retry(initial_s=0.1, max_s=2.0)


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a worker."""

    worker_id: str
    instance: str
    namespace: str
    lanes: Sequence[str]
    capabilities: Sequence[str]
    slots: int
    lease_ttl_ms: int
    #: How long running tasks may take to end when the worker shuts down.
    drain_grace_s: float
    #: How long an async handler that was told to stop may take before it is cancelled.
    stop_grace_s: float


class Replaced(ConfigError):
    """Another process has this worker's instance id; this one claims no more."""


class Runtime:
    """One run of a worker, in one event loop."""

    def __init__(self, origin: Origin, settings: Settings, handlers: Mapping[str, Handler]) -> None:
        self.settings = settings
        self._handlers = handlers
        self._transport = AsyncTransport(origin)
        self._blocking = Transport(origin)
        self._incarnation = mint()
        self._book = LeaseBook()
        self._running: Set["asyncio.Task[None]"] = set()
        self._beats: Set["asyncio.Task[None]"] = set()
        self._slots = Slots(settings.slots)
        self._finisher = Finisher(
            self._transport,
            f"/v1/workers/{segment(settings.instance)}/results",
            self._slots,
            self._claim_along,
            self._take_along,
            settings.lease_ttl_ms / 1000,
        )
        self._draining = False
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._left_behind = False
        self._changed = asyncio.Event()
        self._registered_anew = asyncio.Event()
        self._registering = asyncio.Lock()
        self._registered_at = 0.0
        self._heartbeat_s = 10.0
        self._beat_at = 0.0

    def stop(self) -> None:
        """Claims no more and lets running tasks end. A second call tells them to stop at once."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Works until it is stopped."""
        try:
            if not await self._first_registration():
                return
            ready()
            keeping = [asyncio.ensure_future(self._keep()), asyncio.ensure_future(self._attend())]
            try:
                await self._claim_loop()
            finally:
                # Also after a cancellation: completions no longer claim new tasks.
                self._stop.set()
                try:
                    await self._drain()
                finally:
                    # Also if the drain was cancelled: a task left here would be renewed for ever.
                    self._left_behind = True
                    await ended([*self._running, *self._finisher.sending(), *keeping, *self._beats])
                    await self._leave()
        finally:
            self._blocking.close()
            await self._transport.close()

    # Registration.

    async def _first_registration(self) -> bool:
        """Registers, and waits for the server if necessary. Raises other errors. Returns False if stopped before."""
        failures = 0
        while not self._stop.is_set():
            try:
                await self._register()
                return True
            except RequestError as error:
                if not error.retryable:
                    raise
                failures += 1
                pause = _RETRY.pause(failures, error)
                log.warning("cannot register %s yet: %s", self.settings.instance, error)
                await self._unless_stopped(asyncio.sleep(pause))
        return False

    async def _register(self) -> None:
        asked = time.monotonic()
        async with self._registering:
            if self._registered_at > asked:
                return
            settings = self.settings
            said = {
                "worker_id": settings.worker_id,
                "namespace": settings.namespace,
                "lanes": list(settings.lanes),
                "capabilities": list(settings.capabilities),
                "kinds": sorted(self._handlers),
                "slots": settings.slots,
            }
            answer = (await self._say("register", said)).json()
            self._heartbeat_s = float(answer["heartbeat_ms"]) / 1000
            self._registered_at = time.monotonic()
            self._beat_at = self._registered_at + self._heartbeat_s
            log.info(
                "%s is registered at %s: lanes %s, kinds %s, slots %d",
                settings.instance,
                self._transport.origin.url,
                ", ".join(settings.lanes),
                ", ".join(sorted(self._handlers)),
                settings.slots,
            )

    async def _say(self, verb: str, said: Mapping[str, Any], wait_s: float = 0.0) -> Response:
        raw = payload.dump({**said, "incarnation": self._incarnation})
        path = f"/v1/workers/{segment(self.settings.instance)}/{verb}"
        return await self._transport.send(Request("POST", path, None, raw, wait_s=wait_s, once=True))

    async def _attend(self) -> None:
        """Learns at once that the worker is drained. Renewals also tell this, but less often."""
        failures = 0
        while True:
            asked = time.monotonic()
            try:
                said = {"draining": self._draining, "wait_ms": 30_000}
                answer = (await self._say("attend", said, wait_s=30.0)).json() or {}
                failures = 0
                if bool(answer.get("draining")) != self._draining:
                    self._draining = not self._draining
                    log.info("%s %s", self.settings.instance, "is drained" if self._draining else "works again")
                    for pause in _ASK_AFTER_S:
                        await asyncio.sleep(pause)
                        self._book.renew_soon()
                        self._changed.set()
                elif time.monotonic() - asked < _AT_ONCE_S:
                    await asyncio.sleep(_AT_ONCE_S)
            except RequestError as error:
                if error.code == "not_found":
                    return
                if error.code == "worker_not_registered":
                    await self._register_again()
                failures += 1
                await asyncio.sleep(_RETRY.pause(failures, error))

    async def _leave(self) -> None:
        raw = payload.dump({"incarnation": self._incarnation})
        path = f"/v1/workers/{segment(self.settings.instance)}"
        try:
            await within(5.0, self._transport.send(Request("DELETE", path, None, raw, once=True)))
        except (RequestError, asyncio.TimeoutError) as error:
            log.warning("the registration of %s is left to run out: %s", self.settings.instance, error)

    # Renewal of leases.

    async def _keep(self) -> None:
        while True:
            self._changed.clear()
            for lease in self._book.distrust():
                log.warning("%s: its lease is lost; the handler is told to stop", lease.task.execution_id)
            batch = self._book.take_due()
            if batch or time.monotonic() >= self._beat_at:
                self._beat_at = time.monotonic() + self._heartbeat_s
                for first in range(0, max(1, len(batch)), _RENEW_MAX):
                    # In a separate task, because deadlines may pass during a renewal.
                    beat = asyncio.ensure_future(self._beat(batch[first : first + _RENEW_MAX]))
                    self._beats.add(beat)
                    beat.add_done_callback(self._beats.discard)
            at = min(self._beat_at, self._book.next_event() or self._beat_at)
            with contextlib.suppress(asyncio.TimeoutError):
                await within(max(0.0, at - time.monotonic()), _heard(self._changed))

    async def _beat(self, batch: List[Lease]) -> None:
        sent = time.monotonic()
        renew = [{"execution_id": lease.task.execution_id, **lease.task.fence} for lease in batch]
        limit = min([lease.ttl_s / 3 for lease in batch], default=self._heartbeat_s)
        try:
            answer = (await within(limit, self._say("heartbeat", {"renew": renew}))).json()
            said: Dict[str, List[Mapping[str, Any]]] = {}
            for item in answer["leases"]:
                said.setdefault(item["execution_id"], []).append(item)
            for lease in batch:
                # Matched by id, so that a missing reply for one lease does not end another.
                items = said.get(lease.task.execution_id)
                lease.settle(sent, items.pop(0) if items else None)
        except (RequestError, asyncio.TimeoutError, LookupError, TypeError) as error:
            for lease in batch:
                lease.unanswered()
            log.warning("a heartbeat of %s failed: %s", self.settings.instance, error or "no answer in time")
            if isinstance(error, ApiError) and error.code == "worker_not_registered":
                await self._register_again()
                self._book.renew_soon()
            else:
                self._beat_at = min(self._beat_at, time.monotonic() + _RETRY.max_s)
        self._changed.set()

    async def _register_again(self) -> None:
        try:
            await self._register()
            # A waiting claim belongs to the lost registration.
            self._registered_anew.set()
        except RequestError as error:
            log.warning("cannot register %s again yet: %s", self.settings.instance, error)

    # Claims.

    async def _claim_loop(self) -> None:
        failures, sent = 0, 0.0
        request_id: Optional[str] = None
        slots: List[Slot] = []
        while not self._stop.is_set():
            # A claim keeps its slots until its response, so that nothing else fills them.
            slots = slots or self._slots.take(_CLAIM_MAX)
            if not slots:
                self._slots.freed.clear()
                await self._unless_stopped(self._slots.freed.wait())
                continue
            # After a lost response, the same id returns the same tasks, with leases as old as the first try.
            repeated = request_id is not None
            if request_id is None:
                request_id, sent = mint(), time.monotonic()
            said = {
                "max": len(slots),
                "wait_ms": int(_CLAIM_WAIT_S * 1000),
                "lease_ttl_ms": self.settings.lease_ttl_ms,
                "request_id": request_id,
            }
            self._registered_anew.clear()
            asked = time.monotonic()
            try:
                claim = self._say("claim", said, wait_s=_CLAIM_WAIT_S)
                answer = await self._unless_stopped(claim, self._registered_anew)
                tasks = None if answer is None else answer.tasks()
            except RequestError as error:
                failures += 1
                if error.code == "instance_in_use":
                    raise Replaced(f"instance {self.settings.instance} is held by another process now") from error
                if error.code == "worker_not_registered":
                    await self._register_again()
                log.warning("a claim of %s failed and is tried again: %s", self.settings.instance, error)
                await self._unless_stopped(asyncio.sleep(_RETRY.pause(failures, error)))
                continue
            if tasks is None:
                continue
            failures, request_id = 0, None
            for said_task in tasks:
                self._take(said_task, slots.pop() if slots else None, sent, repeated)
            for slot in slots:
                slot.give_back()
            slots = []
            if not tasks and time.monotonic() - asked < _AT_ONCE_S:
                # A server that shuts down does not hold long polls.
                await self._unless_stopped(asyncio.sleep(_AT_ONCE_S))

    def _claim_along(self, count: int) -> Optional[Dict[str, Any]]:
        """The claim that is sent with completions; None if the worker claims no more."""
        if self._stop.is_set() or self._draining:
            return None
        return {
            "lanes": list(self.settings.lanes),
            "max": count,
            "lease_ttl_ms": self.settings.lease_ttl_ms,
            "request_id": mint(),
            "incarnation": self._incarnation,
        }

    def _take_along(self, said: Mapping[str, Any], slot: Optional[Slot], sent: float, repeated: bool) -> None:
        """Starts a task from a response to completions, unless the worker was drained meanwhile."""
        if self._draining and slot is not None:
            slot.give_back()
            slot = None
        self._take(said, slot, sent, repeated)

    def _take(self, said: Mapping[str, Any], slot: Optional[Slot], sent: float, repeated: bool) -> None:
        """Starts a claimed task. Hands it back if there is no slot, or if the worker is shutting down."""
        try:
            task = Task.claimed(said)
        except Exception:
            # No input causes this. An invalid task from the server must not affect the others.
            log.exception("a task of %s cannot be read; its lease is left to run out", self.settings.instance)
            if slot is not None:
                slot.give_back()
            return
        lease = Lease(task, self.settings.lease_ttl_ms / 1000, sent)
        if slot is None or self._stop.is_set():
            self._spawn(self._hand_back(task, lease), slot)
        elif repeated and lease.of_unknown_age:
            self._spawn(self._run_if_held(task, lease, slot), slot)
        else:
            self._book.add(lease)
            self._changed.set()
            self._spawn(self._run(task, lease, slot), slot)

    async def _unless_stopped(self, waited: Coroutine[Any, Any, T], *others: asyncio.Event) -> Optional[T]:
        """Returns the result. If the worker is stopped or another event comes first, cancels the work and returns None."""
        work = asyncio.ensure_future(waited)
        first = [asyncio.ensure_future(event.wait()) for event in (self._stop, *others)]
        try:
            await asyncio.wait([work, *first], return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else None
        finally:
            await ended([work, *first])

    # Running tasks.

    def _spawn(self, work: Coroutine[Any, Any, None], slot: Optional[Slot]) -> None:
        running = asyncio.ensure_future(work)
        self._running.add(running)
        running.add_done_callback(functools.partial(self._finished, slot))

    async def _hand_back(self, task: Task, lease: Lease) -> None:
        """Hands back a task that no handler has started."""
        lease.tell(CancelReason.YIELD_REQUESTED)
        await self._end(AsyncTaskCalls(self._transport, task, lease), None, None)

    async def _run_if_held(self, task: Task, lease: Lease, slot: Slot) -> None:
        """Runs a task of a repeated claim. Its lease may already be over, so the handler starts after a renewal."""
        until = time.monotonic() + lease.ttl_s
        while True:
            await self._beat([lease])
            if lease.reason == CancelReason.LEASE_LOST or time.monotonic() > until:
                log.warning("%s: its lease ran out before the claim was answered", task.execution_id)
                return
            if lease.failures == 0:
                break
            await asyncio.sleep(lease.ttl_s / 12)
        if self._stop.is_set():
            # During a shutdown, a task that can still be handed back is not started.
            await self._hand_back(task, lease)
            return
        self._book.add(lease)
        self._changed.set()
        await self._run(task, lease, slot)

    def _finished(self, slot: Optional[Slot], running: "asyncio.Task[None]") -> None:
        self._running.discard(running)
        if slot is not None:
            slot.give_back()
        if not running.cancelled() and running.exception() is not None:
            log.error("a task ended in an unforeseen way", exc_info=running.exception())

    async def _run(self, task: Task, lease: Lease, slot: Slot) -> None:
        """Runs one task and ends it, whatever its handler does."""
        calls = AsyncTaskCalls(self._transport, task, lease)
        try:
            if task.unreadable is not None:
                raise TaskError(f"the task cannot be read: {task.unreadable}", TaskError.PAYLOAD_DECODE, retryable=False)
            handler = self._handlers.get(task.kind)
            if handler is None:
                return await self._give_back(calls)
            result = await self._run_steps(handler, calls)
            completion = _Completion.of(task, result, slot)
        except SetAside:
            await self._end(calls, None, None)
        except BaseException as error:
            if self._left_behind:
                # Its thread may still be running, so no other worker may get the task before the lease expires.
                raise
            await self._end(calls, None, error)
        else:
            await self._end(calls, completion, None)
        finally:
            self._book.remove(lease)

    async def _run_steps(self, handler: Handler, calls: AsyncTaskCalls) -> Any:
        """Runs a handler from its top, again when what it was to be set aside for is there already."""
        task, lease = calls.task, calls.lease
        while True:
            lease.recorded.begin_run()
            try:
                if handler.is_async:
                    result = await self._run_async(handler, calls)
                else:
                    result = await self._run_in_thread(handler, task, lease)
            except SetAside:
                aside = lease.recorded.aside
                stays = lease.reason in (CancelReason.LEASE_LOST, CancelReason.CANCEL_REQUESTED)
                if aside is None or lease.set_aside or stays or await go_aside(calls, aside):
                    raise
                continue
            if lease.recorded.aside is not None and not lease.set_aside:
                step = lease.recorded.aside.step
                reason = f"the handler returned a result although step {step!r} set its attempt aside: it must let SetAside pass"
                log.error("%s: %s", task.execution_id, reason)
                raise TaskError(reason, TaskError.SWALLOWED, retryable=False)
            return result

    async def _give_back(self, calls: AsyncTaskCalls) -> None:
        """Leaves a task that no handler takes to other workers for a while; that is counted nowhere."""
        task = calls.task
        log.warning(
            "%s: no handler takes %r; it is given back for %d s", task.execution_id, task.kind, _WITHOUT_HANDLER_S
        )
        try:
            await calls.call("delay", {"delay_ms": _WITHOUT_HANDLER_S * 1000})
        except RequestError as refused:
            log.warning("%s could not be given back; its lease runs out: %s", task.execution_id, refused)

    async def _run_async(self, handler: Handler, calls: AsyncTaskCalls) -> Any:
        context = AsyncContext(calls, self.settings.instance)
        work = asyncio.ensure_future(_contained(handler.function(*handler.arguments(context))))
        told = asyncio.ensure_future(context.cancelled.wait())
        try:
            await asyncio.wait([work, told], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                # During a shutdown the wait is short, because the handler had the whole grace period.
                shutdown = calls.lease.reason == CancelReason.SHUTDOWN
                grace = self.settings.stop_grace_s
                await asyncio.wait([work], timeout=min(1.0, grace) if shutdown else grace)
            if not work.done():
                work.cancel()
                await asyncio.wait([work], timeout=self.settings.stop_grace_s)
            if not work.done():
                log.error("%s: its handler does not stop; its lease is left to run out", calls.task.execution_id)
                # No other worker may get the task while this handler runs.
                calls.lease.tell(CancelReason.LEASE_LOST)
                raise asyncio.CancelledError
            return work.result()
        finally:
            told.cancel()
            if not work.done():
                work.cancel()
                work.add_done_callback(_looked_at)

    async def _run_in_thread(self, handler: Handler, task: Task, lease: Lease) -> Any:
        """Runs a plain function. A thread cannot be stopped from outside, so its slot stays taken and its lease is renewed."""
        loop = asyncio.get_running_loop()
        done: "asyncio.Future[Any]" = loop.create_future()
        context = Context(TaskCalls(self._blocking, task, lease), self.settings.instance)
        arguments = handler.arguments(context)

        def settle(result: Any, error: Optional[BaseException]) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error if not isinstance(error, StopIteration) else RuntimeError(repr(error)))

        def work() -> None:
            result, failed = None, None
            try:
                result = handler.function(*arguments)
            except BaseException as error:
                failed = error
            try:
                loop.call_soon_threadsafe(settle, result, failed)
            except RuntimeError:
                # The worker has already ended.
                pass

        thread = threading.Thread(
            target=contextvars.copy_context().run, args=(work,), name=f"flowfabric-{task.kind}", daemon=True
        )
        thread.start()
        return await done

    async def _end(
        self, calls: AsyncTaskCalls, completion: Optional["_Completion"], error: Optional[BaseException]
    ) -> None:
        """Ends a task: completes it after success, else ends it by the reason to stop, else fails it."""
        task, lease = calls.task, calls.lease
        if lease.set_aside:
            # The execution waits or was handed back; the next claim runs the handler again.
            return
        try:
            if lease.reason == CancelReason.LEASE_LOST:
                log.warning("%s: its handler ended after the lease was lost; nothing is sent", task.execution_id)
            elif completion is not None:
                await self._complete(calls, completion)
            elif lease.reason == CancelReason.CANCEL_REQUESTED:
                await calls.call("cancel", {"reason": "cancel requested"})
            elif lease.reason is not None:
                await calls.call("yield", {})
            else:
                await self._fail(calls, error)
        except RequestError as refused:
            log.warning("%s could not be ended; if its lease is still good it runs out: %s", task.execution_id, refused)

    async def _complete(self, calls: AsyncTaskCalls, completion: "_Completion") -> None:
        lease, failures = calls.lease, 0
        try:
            while True:
                try:
                    return await self._finisher.complete(completion.item, lease, completion.slot)
                except NotTogether:
                    await calls.call("complete", completion.said)
                    return
                except RequestError as error:
                    failures += 1
                    if isinstance(error, ApiError) and error.ends_lease:
                        lease.refused()
                        raise
                    if not error.retryable or not lease.trusted:
                        raise
                    # A full or unavailable store accepts it later; the lease is renewed until then.
                    await asyncio.sleep(min(REPEAT.pause(failures, error), lease.ttl_s / 10))
        except (TooLarge, InvalidRequest) as error:
            await self._fail(calls, TaskError(f"the result is refused: {error}", retryable=False))

    async def _fail(self, calls: AsyncTaskCalls, error: Optional[BaseException]) -> None:
        failed = error if isinstance(error, TaskError) else _failure_of(error)
        # A TaskError is complete without a traceback; for other exceptions, the traceback shows the place.
        shown = error if error is not None and (error is not failed or error.__cause__ is not None) else None
        log.warning(
            "%s (%s) failed: %s (%s)", calls.task.execution_id, calls.task.kind, failed.reason, failed.category, exc_info=shown
        )
        said = {
            "reason": _reason(failed.reason),
            "category": failed.category,
            "retryable": failed.retryable,
            "retry_after_ms": failed.retry_after_ms,
        }
        try:
            await calls.call("fail", said)
        except (TooLarge, InvalidRequest, ConfigError) as refused:
            # Otherwise the task would run again in vain after its lease expires.
            reason = _reason(f"{_reason(failed.reason)[:1000]} (its category or retry time is refused: {refused})")
            retryable = failed.retryable if isinstance(failed.retryable, bool) else None
            await calls.call("fail", {"reason": reason, "category": TaskError.HANDLER, "retryable": retryable})

    # Shutdown.

    async def _drain(self) -> None:
        """Waits for running tasks during the grace period, then tells them to stop. Each is ended or handed back."""
        if not self._running:
            return
        log.info("%s claims no more and waits for %d tasks", self.settings.instance, len(self._running))
        everything = asyncio.ensure_future(_all(self._running))
        hurry = asyncio.ensure_future(self._hurry.wait())
        try:
            grace = self.settings.drain_grace_s
            await asyncio.wait([everything, hurry], timeout=grace, return_when=asyncio.FIRST_COMPLETED)
            if not everything.done():
                for lease in self._book.all():
                    lease.tell(CancelReason.SHUTDOWN)
                # An async handler is cancelled within this time. A thread that ignores the stop is left, and its lease expires.
                await asyncio.wait([everything], timeout=2 * self.settings.stop_grace_s + 1.0)
        finally:
            for _ in self._running:
                log.warning("a handler of %s does not stop; its lease is left to run out", self.settings.instance)
            await ended([everything, hurry])


@dataclasses.dataclass(frozen=True)
class _Completion:
    """A handler's result, ready to be sent."""

    #: The body of a completion that is sent alone.
    said: Mapping[str, Any]
    #: The JSON of a completion that is sent with others.
    item: bytes
    slot: Slot

    @classmethod
    def of(cls, task: Task, result: Any, slot: Slot) -> "_Completion":
        """Creates one from the handler's result. Raises if the result cannot be sent."""
        said: Dict[str, Any] = {}
        payload.put(said, "result", result)
        item = payload.dump({"execution_id": task.execution_id, "op": "complete", "fence": task.fence, **said})
        return cls(said, item, slot)


def _reason(text: object) -> str:
    """A reason that the engine accepts: bounded, and without characters that cannot be sent, which an input may contain."""
    return str(text).encode("utf-8", "backslashreplace")[:_REASON_MAX].decode("utf-8", "ignore")


def _failure_of(error: Optional[BaseException]) -> TaskError:
    if error is None:
        return TaskError("stopped without a reason")
    try:
        text = str(error)
    except Exception:
        text = "it cannot be shown"
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return TaskError(reason, TaskError.HANDLER if isinstance(error, Exception) else TaskError.PANIC)


async def _contained(work: Coroutine[Any, Any, T]) -> T:
    """Keeps a handler that exits from ending the event loop."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise TaskError(f"{type(error).__name__}: {error}", TaskError.PANIC) from error


def _looked_at(work: "asyncio.Future[Any]") -> None:
    """Reads the error, so that asyncio does not warn about an unretrieved one."""
    if not work.cancelled():
        work.exception()


async def _heard(event: asyncio.Event) -> None:
    await event.wait()


async def _all(tasks: Set["asyncio.Task[None]"]) -> None:
    while tasks:
        await asyncio.wait(set(tasks))
