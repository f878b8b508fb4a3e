"""Flows: submit, extend, seal, read and cancel."""

from __future__ import annotations

import time
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional, Sequence, cast

from typing_extensions import Unpack

from .. import wire
from ..execution import MemberFields, body
from ..http.origin import segment
from ..ids import mint
from .pages import pages
from .transport import AsyncTransport

#: The longest long poll of a server.
_WAIT_MAX_S = 30.0


class AsyncFlows:
    """Flow calls of submitters and operators."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def submit(
        self,
        kind: str,
        members: Sequence[MemberFields] = (),
        edges: Sequence[wire.EdgeBody] = (),
        **fields: Unpack[wire.FlowOptions],
    ) -> wire.FlowSubmitted:
        """Submits a flow whole: members by key, edges `{from, to, on?, pass_as?}` between them.

        The response's `members` contain the execution of each key.
        """
        said: Dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        said.setdefault("flow_id", mint())
        said.update(kind=kind, members=[_member(member) for member in members], edges=list(edges))
        return cast(wire.FlowSubmitted, await self._transport.json("POST", "/v1/flows", said))

    async def get(self, flow_id: str) -> wire.FlowShown:
        """A flow with its first 1,000 members."""
        return cast(wire.FlowShown, await self._transport.json("GET", self._path(flow_id)))

    async def wait(self, flow_id: str, wait_s: Optional[float] = None) -> wire.FlowShown:
        """Waits for the end of a flow. After `wait_s` it returns the current state, with `finished_at` None."""
        until = None if wait_s is None else time.monotonic() + wait_s
        while True:
            left = _WAIT_MAX_S if until is None else min(_WAIT_MAX_S, max(0.0, until - time.monotonic()))
            path, query = self._path(flow_id), {"wait_ms": int(left * 1000)}
            flow = cast(wire.FlowShown, await self._transport.json("GET", path, query=query, wait_s=left))
            if flow.get("finished_at") is not None or (until is not None and time.monotonic() >= until):
                return flow

    def list(self, *, limit: Optional[int] = None, **filters: Unpack[wire.FlowFilter]) -> AsyncIterator[wire.Flow]:
        """Flows, newest first."""
        return cast("AsyncIterator[wire.Flow]", pages(self._transport, "/v1/flows", filters, limit))

    def members(self, flow_id: str, *, limit: Optional[int] = None) -> AsyncIterator[wire.Member]:
        """Members in the order they were added."""
        path = f"{self._path(flow_id)}/members"
        return cast("AsyncIterator[wire.Member]", pages(self._transport, path, None, limit))

    async def graph(self, flow_id: str) -> wire.FlowGraph:
        """Every member and every edge."""
        return cast(wire.FlowGraph, await self._transport.json("GET", f"{self._path(flow_id)}/graph"))

    async def add_members(
        self, flow_id: str, members: Sequence[MemberFields], edges: Sequence[wire.EdgeBody] = ()
    ) -> "List[wire.AddedMember]":
        """Adds members with the edges into them. No member starts before its edges count."""
        said = {"members": [_member(member) for member in members], "edges": list(edges)}
        answer = await self._transport.json("POST", f"{self._path(flow_id)}/members", said)
        return cast("List[wire.AddedMember]", answer["members"])

    async def add_edges(self, flow_id: str, edges: Sequence[wire.EdgeBody]) -> int:
        """Adds edges into members that have not started. Returns how many were new."""
        said = {"edges": list(edges)}
        return int((await self._transport.json("POST", f"{self._path(flow_id)}/edges", said))["added"])

    async def seal(self, flow_id: str) -> wire.Flow:
        """Releases the members added so far."""
        return cast(wire.Flow, await self._transport.json("POST", f"{self._path(flow_id)}/seal", {}))

    async def cancel(
        self, flow_id: str, reason: Optional[str] = None, *, policy: Optional[wire.CancelPolicy] = None, wait: bool = False
    ) -> wire.FlowCancelled:
        """Cancels a flow: afterwards no member can be claimed. With `wait`, returns when the flow has ended."""
        said = {"reason": reason, "policy": policy, "wait": wait}
        wait_s = _WAIT_MAX_S if wait else 0.0
        return cast(wire.FlowCancelled, await self._transport.json("POST", f"{self._path(flow_id)}/cancel", said, wait_s=wait_s))

    @staticmethod
    def _path(flow_id: str) -> str:
        return f"/v1/flows/{segment(flow_id)}"


def _member(fields: Mapping[str, Any]) -> Dict[str, Any]:
    said = body(fields)
    nested = said.get("flow")
    if nested is not None:
        said["flow"] = {**nested, "members": [_member(member) for member in nested.get("members", ())]}
    return said
