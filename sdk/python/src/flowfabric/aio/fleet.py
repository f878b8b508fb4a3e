"""Registered workers, for operators."""

from __future__ import annotations

from typing import AsyncIterator, Optional, cast

from .. import wire
from ..http.origin import segment
from .pages import pages
from .transport import AsyncTransport


class AsyncFleet:
    """Worker calls of operators."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, *, limit: Optional[int] = None) -> AsyncIterator[wire.Worker]:
        """All registered workers."""
        return cast("AsyncIterator[wire.Worker]", pages(self._transport, "/v1/workers", None, limit))

    async def get(self, instance: str) -> wire.Worker:
        """One registered worker."""
        return cast(wire.Worker, await self._transport.json("GET", f"/v1/workers/{segment(instance)}"))

    async def drain(self, instance: str) -> str:
        """Drains a worker: it claims no more and is asked to yield its tasks. Returns `draining` or `already`."""
        return str((await self._transport.json("POST", f"/v1/workers/{segment(instance)}/drain", {}))["outcome"])
