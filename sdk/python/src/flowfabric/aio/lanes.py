"""Lanes: named queues with a state and limits."""

from __future__ import annotations

from typing import AsyncIterator, Optional, cast

from typing_extensions import Unpack

from .. import wire
from ..http.origin import segment
from .pages import pages
from .transport import AsyncTransport


class AsyncLanes:
    """Lane calls of operators."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, *, namespace: Optional[str] = None, limit: Optional[int] = None) -> AsyncIterator[wire.Lane]:
        """All lanes."""
        query = {"namespace": namespace}
        return cast("AsyncIterator[wire.Lane]", pages(self._transport, "/v1/lanes", query, limit))

    async def get(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """A lane with its counts."""
        query = {"namespace": namespace}
        return cast(wire.Lane, await self._transport.json("GET", f"/v1/lanes/{segment(lane)}", query=query))

    async def define(
        self, lane: str, *, namespace: Optional[str] = None, **fields: Unpack[wire.LaneOptions]
    ) -> wire.Lane:
        """Changes the given fields."""
        path, query = f"/v1/lanes/{segment(lane)}", {"namespace": namespace}
        return cast(wire.Lane, await self._transport.json("PUT", path, fields, query=query))

    async def pause(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """Pauses the lane: it accepts work but starts none."""
        return await self._set(lane, "pause", namespace)

    async def resume(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """Resumes the lane: it accepts and starts work."""
        return await self._set(lane, "resume", namespace)

    async def drain(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """Drains the lane: it starts waiting work but accepts none."""
        return await self._set(lane, "drain", namespace)

    async def disable(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """Disables the lane: it neither accepts nor starts work."""
        return await self._set(lane, "disable", namespace)

    async def _set(self, lane: str, verb: str, namespace: Optional[str]) -> wire.Lane:
        path, query = f"/v1/lanes/{segment(lane)}/{verb}", {"namespace": namespace}
        return cast(wire.Lane, await self._transport.json("POST", path, {}, query=query))
