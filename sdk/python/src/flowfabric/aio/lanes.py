"""Lanes: named queues with a state and limits."""

from __future__ import annotations

from typing import Any, AsyncIterator, Optional, cast

from ..http.origin import segment
from ..http.streams import AsyncTransport
from ..views import LaneView
from .pages import pages


class AsyncLanes:
    """What operators do with lanes."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, *, namespace: Optional[str] = None, limit: Optional[int] = None) -> AsyncIterator[LaneView]:
        """All lanes."""
        query = {"namespace": namespace}
        return cast("AsyncIterator[LaneView]", pages(self._transport, "/v1/lanes", query, limit))

    async def get(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """A lane and how much it holds."""
        query = {"namespace": namespace}
        return cast(LaneView, await self._transport.json("GET", f"/v1/lanes/{segment(lane)}", query=query))

    async def define(self, lane: str, *, namespace: Optional[str] = None, **fields: Any) -> LaneView:
        """Changes what is named: state, max_depth, max_active, weight, fairness, retry and the other fields of a lane."""
        path, query = f"/v1/lanes/{segment(lane)}", {"namespace": namespace}
        return cast(LaneView, await self._transport.json("PUT", path, fields, query=query))

    async def pause(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """Accepts, but starts nothing."""
        return await self._set(lane, "pause", namespace)

    async def resume(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """Accepts and starts."""
        return await self._set(lane, "resume", namespace)

    async def drain(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """Starts what is there, but accepts nothing."""
        return await self._set(lane, "drain", namespace)

    async def disable(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """Neither accepts nor starts."""
        return await self._set(lane, "disable", namespace)

    async def _set(self, lane: str, verb: str, namespace: Optional[str]) -> LaneView:
        path, query = f"/v1/lanes/{segment(lane)}/{verb}", {"namespace": namespace}
        return cast(LaneView, await self._transport.json("POST", path, {}, query=query))
