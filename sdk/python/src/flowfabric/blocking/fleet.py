# Generated from ../aio by tools/blocking.py; change it there.
"""The registered workers, as an operator sees them."""

from __future__ import annotations

from typing import Iterator, Optional, cast

from ..http.origin import segment
from ..http.blocking import Transport
from ..views import WorkerView
from .pages import pages


class Fleet:
    """What operators do with workers."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: Optional[int] = None) -> Iterator[WorkerView]:
        """All registered workers."""
        return cast("Iterator[WorkerView]", pages(self._transport, "/v1/workers", None, limit))

    def get(self, instance: str) -> WorkerView:
        """One of them."""
        return cast(WorkerView, self._transport.json("GET", f"/v1/workers/{segment(instance)}"))

    def drain(self, instance: str) -> str:
        """The worker takes nothing new and is asked to yield what it holds: `draining`, or `already`."""
        return str((self._transport.json("POST", f"/v1/workers/{segment(instance)}/drain", {}))["outcome"])
