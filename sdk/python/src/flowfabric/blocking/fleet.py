# Generated from ../aio by tools/blocking.py; change it there.
"""Registered workers, for operators."""

from __future__ import annotations

from typing import Iterator, Optional, cast

from .. import wire
from ..http.origin import segment
from .pages import pages
from .transport import Transport


class Fleet:
    """Worker calls of operators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: Optional[int] = None) -> Iterator[wire.Worker]:
        """All registered workers."""
        return cast("Iterator[wire.Worker]", pages(self._transport, "/v1/workers", None, limit))

    def get(self, instance: str) -> wire.Worker:
        """One registered worker."""
        return cast(wire.Worker, self._transport.json("GET", f"/v1/workers/{segment(instance)}"))

    def drain(self, instance: str) -> str:
        """Drains a worker: it claims no more and is asked to yield its tasks. Returns `draining` or `already`."""
        return str((self._transport.json("POST", f"/v1/workers/{segment(instance)}/drain", {}))["outcome"])
