"""Durable steps of a handler, in asyncio: what it has done is recorded under names, and later runs go on behind it."""

from __future__ import annotations

import inspect
from typing import Any, Awaitable, Callable, Dict, List, NoReturn, Optional, Sequence, TypeVar, Union, cast

from ..conditions import Condition, signal
from ..errors import ApiError, ApprovalMissing, ConfigError, NonRetryable, Suspended, TaskError, WaitingForChildren
from ..execution import ChildFields, RetryPolicy, body
from ..http.origin import segment
from ..ids import mint
from ..payload import put, take
from ..recorded import REST_IN_PLACE_MS, RETRY_IN_PLACE_MS, Aside, Known, digest, next_try, step_key
from ..task import Task
from ..values import Child, Opened, Resume, Signal
from .calls import AsyncTaskCalls

T = TypeVar("T")
#: Hands out a token: to an approver by name, or to whoever is to send the signal.
Deliver = Callable[..., Union[None, Awaitable[None]]]


class AsyncSteps:
    """What a handler does once, however often it runs. A handler that passes over a `SetAside` of a step fails clearly."""

    _calls: AsyncTaskCalls

    @property
    def task(self) -> Task:
        """The claimed task."""
        return self._calls.task

    def step_key(self, name: str) -> str:
        """The idempotency key of a step for a system outside: the same in every attempt of this execution.

        A step with a key is called `name:key`, the second use of a name `name#2`.
        """
        return step_key(self.task.execution_id, name)

    async def step(
        self,
        name: str,
        run: Callable[[], Union[T, Awaitable[T]]],
        *,
        key: Optional[object] = None,
        input: Any = None,
        rerun_if_changed: bool = False,
        retry: Optional[RetryPolicy] = None,
    ) -> T:
        """Runs a function once and records what it returns; a later call with this name returns what is recorded.

        At least once: a process that dies after the function's effect and before its result is stored runs it again. Give a
        system outside the key of `step_key`, so that it can tell.

        The name used again in one run is numbered (`fetch`, `fetch#2`); `key` names the use instead, in a loop over data. Of
        `input` a digest is kept: another one fails with category `step_changed`, or runs again with `rerun_if_changed`. With
        `retry` a failed step is tried again; a try that is more than 5 s away gives the worker's slot back.
        """
        recorded = self._calls.lease.recorded
        name = recorded.name(name, key)
        made = None if input is None else digest(input)
        known, tries = await self._recorded(name), 0
        if known is not None:
            if known.kind != "run":
                raise _changed(name, f"is recorded as a step of another kind: {known.kind}")
            changed = made is not None and known.input_digest is not None and known.input_digest != made
            if known.state == "done" and not changed:
                return cast(T, (await self._whole(name, known)).result)
            if known.state == "done" and not rerun_if_changed:
                raise _changed(name, "is recorded with another input")
            if known.state == "failed" and retry is not None and known.due_at is not None:
                tries = known.tries
                await self._pause(name, known.due_at - recorded.now_ms())
        while True:
            tries += 1
            started_at = recorded.now_ms()
            try:
                value: Any = run()
                if inspect.isawaitable(value):
                    value = await value
            except Exception as error:
                failed = error if isinstance(error, TaskError) else TaskError(str(error) or type(error).__name__)
                delay = next_try(retry, tries, failed.category, failed.retryable, failed.retry_after_ms)
                at = None if delay is None else recorded.now_ms() + delay
                said: Dict[str, Any] = {
                    "failure": {"reason": failed.reason[:1000], "category": failed.category},
                    "tries": tries,
                    "started_at": started_at,
                    "retry_at": at,
                    "input_digest": made,
                }
                await self._put(name, said)
                if delay is None:
                    raise
                await self._pause(name, delay)
                continue
            return cast(T, await self._store(name, value, started_at, tries, made, rerun_if_changed))

    async def _store(
        self, name: str, value: Any, started_at: int, tries: int, made: Optional[str], rerun: bool
    ) -> Any:
        said: Dict[str, Any] = {"started_at": started_at, "tries": tries, "input_digest": made, "rerun": rerun or None}
        put(said, "result", value)
        if value is None:
            said["result_encoding"] = "json"
        answer = await self._put(name, said)
        if answer["outcome"] == "known":
            value, made = take(answer.get("result"), answer.get("result_encoding")), answer.get("input_digest")
        self._note(name, Known("run", "done", tries, input_digest=made, has_result=True, result=value))
        return value

    async def sleep(self, seconds: float) -> None:
        """Sleeps. The wake-up time is recorded by the first call, so a later run sleeps for the rest.

        Beyond a second the worker is given back, and the attempt goes on by itself.
        """
        await self._sleep(int(seconds * 1000), None)

    async def sleep_until(self, at_ms: int) -> None:
        """Sleeps until a time in epoch milliseconds, like `sleep`."""
        await self._sleep(None, at_ms)

    async def _sleep(self, ms: Optional[int], until: Optional[int]) -> None:
        recorded = self._calls.lease.recorded
        name = recorded.name("sleep")
        known, now = await self._recorded(name), recorded.now_ms()
        if known is not None and known.kind != "sleep":
            raise _changed(name, f"is recorded as a step of another kind: {known.kind}")
        due = known.due_at if known is not None and known.due_at is not None else until
        if due is None:
            due = now + (ms or 0)
        if known is not None and (known.state == "done" or due <= now):
            return
        if due - now <= REST_IN_PLACE_MS:
            await self._calls.transport.sleep(max(0, due - now) / 1000)
            if known is None:
                await self._calls.call("sleep", {"ms": 0, "step": name})
                self._note(name, Known("sleep", "done", due_at=due))
            return
        said = {"until": due if known is not None else until, "ms": None if known is not None else ms, "step": name}
        self._set_aside(Aside(name, "sleep", said, "sleep"))

    async def wait_for_signal_as(
        self,
        step: str,
        name: Optional[str] = None,
        *,
        within_s: Optional[float] = None,
        deliver: Optional[Deliver] = None,
    ) -> Optional[Signal]:
        """Waits for a signal under a step's name, without holding a worker; once it came, later runs get it again.

        The wait belongs to the execution: a later attempt finds it with the signals it has. After `within_s`, counted from the
        first asking, the signal is one named `timeout`. `deliver(token)` hands the token out, once. None when an operator ended
        the wait before the signal came.
        """
        step = self._calls.lease.recorded.name(step)
        condition = None if name is None else signal(name)
        resume = await self._wait(step, "waiting_for_signal", condition, None, within_s, deliver)
        return resume.signals[0] if resume.signals else None

    async def approval(
        self,
        name: str,
        of: Sequence[str],
        *,
        need: Optional[int] = None,
        within_s: Optional[float] = None,
        deliver: Optional[Deliver] = None,
    ) -> List[Signal]:
        """Asks people to approve and waits until enough have: `need` of them, all by default.

        They are asked once per execution, and what they have signed stays signed. `deliver(approver, token)` hands each token
        out; at least once, and when it has to be done again the earlier tokens die. An approval that ends otherwise, by its
        time or an operator, raises `ApprovalMissing`, which is not retried.
        """
        step, needed = self._calls.lease.recorded.name(name), len(of) if need is None else need
        if not of or not 1 <= needed <= len(of):
            raise ConfigError(f"need must be in 1..={len(of)}, as many as there are approvers, got {needed}")
        condition = cast(Condition, {"count": needed, "over": "approvers"})
        resume = await self._wait(step, "waiting_for_approval", condition, list(of), within_s, deliver)
        approved = len({one.approver for one in resume.signals if one.approver is not None})
        if resume.cause != "signal" and approved < needed:
            raise ApprovalMissing(step, resume.actor or "its time", needed)
        return resume.signals

    async def _wait(
        self,
        step: str,
        reason: str,
        condition: Optional[Condition],
        approvers: Optional[List[str]],
        within_s: Optional[float],
        deliver: Optional[Deliver],
    ) -> Resume:
        known = await self._recorded(step)
        if known is not None and known.kind != "signal":
            raise _changed(step, f"is recorded as a step of another kind: {known.kind}")
        if known is not None and known.state == "done":
            return await self._came(step)
        spec: Dict[str, Any] = {"key": _cut(step, 128), "approvers": approvers}
        if deliver is not None and not await self._hand_out(step, spec, deliver):
            return await self._came(step)
        said = {
            "reason": reason,
            "waitpoints": [{name: value for name, value in spec.items() if value is not None}],
            "condition": condition,
            "timeout_ms": None if within_s is None else int(within_s * 1000),
            "timeout_behavior": "auto_resume",
            "step": step,
            "request_id": mint(),
        }
        self._set_aside(Aside(step, "suspend", said, "signal"))

    async def _hand_out(self, step: str, spec: Dict[str, Any], deliver: Deliver) -> bool:
        """Opens the waitpoint and hands its tokens out, as a step of its own; False when the wait is over."""
        recorded = self._calls.lease.recorded
        name = recorded.name(f"{step}: deliver")
        known = await self._recorded(name)
        if known is not None and known.state == "done":
            return True
        started_at = recorded.now_ms()
        answer = await self._calls.call("waitpoints", {**spec, "step": step, "request_id": mint()})
        if not answer.get("done") and not answer["tokens"]:
            # An earlier run has opened it: its tokens are made anew.
            said = {**spec, "step": step, "waitpoint_id": answer["waitpoint_id"], "request_id": mint()}
            answer = await self._calls.call("waitpoints", said)
        if answer.get("done"):
            return False
        for approver, token in Opened.read(answer).tokens.items():
            handed = deliver(token) if approver is None else deliver(approver, token)
            if inspect.isawaitable(handed):
                await handed
        await self._store(name, None, started_at, 1, None, False)
        return True

    async def spawn_as(self, step: str, children: Sequence[ChildFields]) -> List[str]:
        """Spawns children as a step: a later run gets the children of the first one, whatever it asks for."""
        step = self._calls.lease.recorded.name(step)
        said = {"children": [body(child) for child in children], "step": step, "request_id": f"spawn {step}"}
        answer = await self._calls.call("spawn", said)
        return [str(child["execution_id"]) for child in answer["children"]]

    async def wait_children_as(self, step: str) -> List[Child]:
        """Waits until every child has ended, as a step: later runs get the same outcomes, whatever was spawned since."""
        step = self._calls.lease.recorded.name(step)
        answer = await self._calls.call("wait-children", {"step": step, "request_id": mint()})
        if answer["outcome"] == "waiting":
            self._calls.lease.set_aside = True
            raise WaitingForChildren(int(answer["open"]))
        return [Child.read(child) for child in answer["children"]]

    # What is recorded.

    def _note(self, name: str, known: Known) -> None:
        self._calls.lease.recorded.known[name] = known

    async def _put(self, name: str, said: Dict[str, Any]) -> Any:
        return await self._calls.call(f"steps/{segment(name)}", said, method="PUT")

    async def _recorded(self, name: str) -> Optional[Known]:
        recorded = self._calls.lease.recorded
        known = recorded.known.get(name)
        if known is not None or not recorded.more:
            return known
        try:
            return await self._ask(name)
        except ApiError as error:
            if error.code == "step_not_found":
                return None
            raise

    async def _ask(self, name: str) -> Known:
        path = f"/v1/tasks/{segment(self.task.execution_id)}/steps/{segment(name)}"
        found = await self._calls.transport.json("GET", path)
        known = Known.read(found["step"], found)
        self._note(name, known)
        return known

    async def _whole(self, name: str, known: Known) -> Known:
        return known if known.has_result else await self._ask(name)

    async def _came(self, step: str) -> Resume:
        known = self._calls.lease.recorded.known.get(step)
        if known is not None and known.resume is not None:
            return known.resume
        resume = self.task.resume
        if resume is not None and resume.step == step:
            return resume
        came = (await self._ask(step)).resume
        if came is None:
            raise TaskError(f"step {step!r} is over without its end")
        return came

    # Setting the attempt aside.

    def _set_aside(self, aside: Aside) -> NoReturn:
        self._calls.lease.recorded.wants_aside(aside)
        raise Suspended(f"step {aside.step!r}")

    async def _pause(self, name: str, delay_ms: int) -> None:
        """Waits for the next try, in place when it is near and nobody asks for the attempt back."""
        if delay_ms <= 0:
            return
        if delay_ms <= RETRY_IN_PLACE_MS and self._calls.lease.reason is None:
            await self._calls.transport.sleep(delay_ms / 1000)
            return
        self._set_aside(Aside(name, "sleep", {"ms": delay_ms}))


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def _changed(name: str, problem: str) -> NonRetryable:
    return NonRetryable(f"step {name!r} {problem}", "step_changed")


async def go_aside(calls: AsyncTaskCalls, aside: Aside) -> bool:
    """Gives the lease back for a step; False when that is not needed any more, and the handler can go on."""
    recorded = calls.lease.recorded
    answer = await calls.call(aside.verb, aside.said)
    if answer["outcome"] in ("resting", "suspended"):
        calls.lease.set_aside = True
        return True
    if aside.verb == "sleep":
        recorded.not_before(int(answer["until"]))
        if aside.kind is not None:
            recorded.known[aside.step] = Known(aside.kind, "done", due_at=int(answer["until"]))
        return False
    came = answer["resume"] if answer["outcome"] == "done" else {"cause": "signal", **answer}
    recorded.known[aside.step] = Known("signal", "done", resume=Resume.read(came))
    return False
