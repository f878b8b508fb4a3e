"""Waits with a time limit in asyncio that never lose a cancellation."""

from __future__ import annotations

import asyncio
from typing import Any, Coroutine, Iterable, TypeVar

T = TypeVar("T")


async def within(limit_s: float, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of the work. After the limit it cancels the work and raises `asyncio.TimeoutError`.

    In older Python versions, `asyncio.wait_for` loses a cancellation that arrives together with the result, so a cancelled
    loop would continue.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait([task], timeout=limit_s)
        if not done:
            raise asyncio.TimeoutError(f"not within {limit_s:g} s")
        return task.result()
    finally:
        await ended([task])


async def ended(tasks: "Iterable[asyncio.Future[Any]]") -> None:
    """Cancels running tasks and waits until they have ended. Cancels again if a task ignores the first time."""
    everything = list(tasks)
    open_ = {task for task in everything if not task.done()}
    while open_:
        for task in open_:
            task.cancel()
        _, open_ = await asyncio.wait(open_, timeout=1.0)
    for task in everything:
        # Reads the error, so that asyncio does not warn about an unretrieved one.
        if not task.cancelled():
            task.exception()
