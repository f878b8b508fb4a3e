# Generated from ../aio by tools/blocking.py; change it there.
"""The registered workers, as an operator sees them."""

from __future__ import annotations

from typing import Iterator, Optional, cast

from .. import wire
from ..http.origin import segment
from .pages import pages
from .transport import Transport


class Fleet:
    """What operators do with workers."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: Optional[int] = None) -> Iterator[wire.Worker]:
        """All registered workers."""
        return cast("Iterator[wire.Worker]", pages(self._transport, "/v1/workers", None, limit))

    def get(self, instance: str) -> wire.Worker:
        """One of them."""
        return cast(wire.Worker, self._transport.json("GET", f"/v1/workers/{segment(instance)}"))

    def drain(self, instance: str) -> str:
        """The worker takes nothing new and is asked to yield what it holds: `draining`, or `already`."""
        return str((self._transport.json("POST", f"/v1/workers/{segment(instance)}/drain", {}))["outcome"])
