# Generated from ../aio by tools/blocking.py; change it there.
"""Lanes: named queues with a state and limits."""

from __future__ import annotations

from typing import Any, Iterator, Optional, cast

from ..http.origin import segment
from ..http.blocking import Transport
from ..views import LaneView
from .pages import pages


class Lanes:
    """What operators do with lanes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, namespace: Optional[str] = None, limit: Optional[int] = None) -> Iterator[LaneView]:
        """All lanes."""
        query = {"namespace": namespace}
        return cast("Iterator[LaneView]", pages(self._transport, "/v1/lanes", query, limit))

    def get(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """A lane and how much it holds."""
        query = {"namespace": namespace}
        return cast(LaneView, self._transport.json("GET", f"/v1/lanes/{segment(lane)}", query=query))

    def define(self, lane: str, *, namespace: Optional[str] = None, **fields: Any) -> LaneView:
        """Changes what is named: state, max_depth, max_active, weight, fairness, retry and the other fields of a lane."""
        path, query = f"/v1/lanes/{segment(lane)}", {"namespace": namespace}
        return cast(LaneView, self._transport.json("PUT", path, fields, query=query))

    def pause(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """Accepts, but starts nothing."""
        return self._set(lane, "pause", namespace)

    def resume(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """Accepts and starts."""
        return self._set(lane, "resume", namespace)

    def drain(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """Starts what is there, but accepts nothing."""
        return self._set(lane, "drain", namespace)

    def disable(self, lane: str, *, namespace: Optional[str] = None) -> LaneView:
        """Neither accepts nor starts."""
        return self._set(lane, "disable", namespace)

    def _set(self, lane: str, verb: str, namespace: Optional[str]) -> LaneView:
        path, query = f"/v1/lanes/{segment(lane)}/{verb}", {"namespace": namespace}
        return cast(LaneView, self._transport.json("POST", path, {}, query=query))
