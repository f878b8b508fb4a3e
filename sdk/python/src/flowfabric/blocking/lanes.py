# Generated from ../aio by tools/blocking.py; change it there.
"""Lanes: named queues with a state and limits."""

from __future__ import annotations

from typing import Iterator, Optional, cast

from typing_extensions import Unpack

from .. import wire
from ..http.origin import segment
from .pages import pages
from .transport import Transport


class Lanes:
    """Lane calls of operators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, namespace: Optional[str] = None, limit: Optional[int] = None) -> Iterator[wire.Lane]:
        """All lanes."""
        query = {"namespace": namespace}
        return cast("Iterator[wire.Lane]", pages(self._transport, "/v1/lanes", query, limit))

    def get(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """A lane with its counts."""
        query = {"namespace": namespace}
        return cast(wire.Lane, self._transport.json("GET", f"/v1/lanes/{segment(lane)}", query=query))

    def define(
        self, lane: str, *, namespace: Optional[str] = None, **fields: Unpack[wire.LaneOptions]
    ) -> wire.Lane:
        """Changes the given fields."""
        path, query = f"/v1/lanes/{segment(lane)}", {"namespace": namespace}
        return cast(wire.Lane, self._transport.json("PUT", path, fields, query=query))

    def pause(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """Pauses the lane: it accepts work but starts none."""
        return self._set(lane, "pause", namespace)

    def resume(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """Resumes the lane: it accepts and starts work."""
        return self._set(lane, "resume", namespace)

    def drain(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """Drains the lane: it starts waiting work but accepts none."""
        return self._set(lane, "drain", namespace)

    def disable(self, lane: str, *, namespace: Optional[str] = None) -> wire.Lane:
        """Disables the lane: it neither accepts nor starts work."""
        return self._set(lane, "disable", namespace)

    def _set(self, lane: str, verb: str, namespace: Optional[str]) -> wire.Lane:
        path, query = f"/v1/lanes/{segment(lane)}/{verb}", {"namespace": namespace}
        return cast(wire.Lane, self._transport.json("POST", path, {}, query=query))
