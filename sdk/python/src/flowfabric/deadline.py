"""Waiting with a limit in asyncio, such that a cancellation is never lost."""

from __future__ import annotations

import asyncio
from typing import Any, Coroutine, Iterable, TypeVar

T = TypeVar("T")


async def within(limit_s: float, work: Coroutine[Any, Any, T]) -> T:
    """What the work answers; `asyncio.TimeoutError`, and it is cancelled, when that takes longer.

    `asyncio.wait_for` of older versions takes a cancellation for an answer when both come at once, and a loop that is
    cancelled goes on.
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
    """Cancels what still runs and waits until it has ended, asking again should something take no notice."""
    everything = list(tasks)
    open_ = {task for task in everything if not task.done()}
    while open_:
        for task in open_:
            task.cancel()
        _, open_ = await asyncio.wait(open_, timeout=1.0)
    for task in everything:
        # Looked at, so that asyncio does not complain about an error nobody waits for any more.
        if not task.cancelled():
            task.exception()
