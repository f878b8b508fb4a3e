"""The registered workers, as an operator sees them."""

from __future__ import annotations

from typing import AsyncIterator, Optional, cast

from .. import wire
from ..http.origin import segment
from .pages import pages
from .transport import AsyncTransport


class AsyncFleet:
    """What operators do with workers."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, *, limit: Optional[int] = None) -> AsyncIterator[wire.Worker]:
        """All registered workers."""
        return cast("AsyncIterator[wire.Worker]", pages(self._transport, "/v1/workers", None, limit))

    async def get(self, instance: str) -> wire.Worker:
        """One of them."""
        return cast(wire.Worker, await self._transport.json("GET", f"/v1/workers/{segment(instance)}"))

    async def drain(self, instance: str) -> str:
        """The worker takes nothing new and is asked to yield what it holds: `draining`, or `already`."""
        return str((await self._transport.json("POST", f"/v1/workers/{segment(instance)}/drain", {}))["outcome"])
