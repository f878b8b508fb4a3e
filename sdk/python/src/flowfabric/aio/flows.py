"""Flows: submitted whole, grown, released, watched and cancelled."""

from __future__ import annotations

import time
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional, Sequence, Union, cast

from ..execution import BudgetRef, MemberFields, RetryPolicy, body
from ..http.origin import segment
from ..http.streams import AsyncTransport
from ..ids import mint
from ..views import FlowView, GraphView, MemberView
from .pages import pages

#: The longest a server holds an answer back.
_WAIT_MAX_S = 30.0


class AsyncFlows:
    """What submitters and operators do with flows."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def submit(
        self,
        kind: str,
        members: Sequence[MemberFields] = (),
        edges: Sequence[Mapping[str, Any]] = (),
        *,
        flow_id: Optional[str] = None,
        namespace: Optional[str] = None,
        policy: Union[str, Mapping[str, str], None] = None,
        default_lane: Optional[str] = None,
        default_retry: Optional[RetryPolicy] = None,
        budgets: Optional[Sequence[BudgetRef]] = None,
        deadline_at: Optional[int] = None,
        deadline_ms: Optional[int] = None,
        retention_ms: Optional[int] = None,
        seal: bool = True,
    ) -> FlowView:
        """Submits a flow whole: members by key, edges `{from, to, on?, pass_as?}` between them.

        The answer's `members` say which execution each key became.
        """
        said = {
            "flow_id": flow_id or mint(),
            "namespace": namespace,
            "kind": kind,
            "members": [_member(member) for member in members],
            "edges": [dict(edge) for edge in edges],
            "policy": policy,
            "default_lane": default_lane,
            "default_retry": default_retry,
            "budgets": budgets,
            "deadline_at": deadline_at,
            "deadline_ms": deadline_ms,
            "retention_ms": retention_ms,
            "seal": seal,
        }
        return cast(FlowView, await self._transport.json("POST", "/v1/flows", said))

    async def get(self, flow_id: str) -> FlowView:
        """A flow with its first 1,000 members."""
        return cast(FlowView, await self._transport.json("GET", self._path(flow_id)))

    async def wait(self, flow_id: str, wait_s: Optional[float] = None) -> FlowView:
        """The flow once it has ended; as it stands when `wait_s` is over first, with `finished_at` None."""
        until = None if wait_s is None else time.monotonic() + wait_s
        while True:
            left = _WAIT_MAX_S if until is None else min(_WAIT_MAX_S, max(0.0, until - time.monotonic()))
            path, query = self._path(flow_id), {"wait_ms": int(left * 1000)}
            flow = cast(FlowView, await self._transport.json("GET", path, query=query, wait_s=left))
            if flow.get("finished_at") is not None or (until is not None and time.monotonic() >= until):
                return flow

    def list(
        self,
        *,
        namespace: Optional[str] = None,
        kind: Optional[str] = None,
        state: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> AsyncIterator[FlowView]:
        """Flows, newest first."""
        query = {"namespace": namespace, "kind": kind, "state": state}
        return cast("AsyncIterator[FlowView]", pages(self._transport, "/v1/flows", query, limit))

    def members(self, flow_id: str, *, limit: Optional[int] = None) -> AsyncIterator[MemberView]:
        """Members in the order they were added."""
        path = f"{self._path(flow_id)}/members"
        return cast("AsyncIterator[MemberView]", pages(self._transport, path, None, limit))

    async def graph(self, flow_id: str) -> GraphView:
        """Every member and every edge."""
        return cast(GraphView, await self._transport.json("GET", f"{self._path(flow_id)}/graph"))

    async def add_members(
        self, flow_id: str, members: Sequence[MemberFields], edges: Sequence[Mapping[str, Any]] = ()
    ) -> "List[MemberView]":
        """Adds members with the edges into them; none starts before its edges count."""
        said = {"members": [_member(member) for member in members], "edges": [dict(edge) for edge in edges]}
        answer = await self._transport.json("POST", f"{self._path(flow_id)}/members", said)
        return cast("List[MemberView]", answer["members"])

    async def add_edges(self, flow_id: str, edges: Sequence[Mapping[str, Any]]) -> int:
        """Adds edges between members that have not started; how many were new."""
        said = {"edges": [dict(edge) for edge in edges]}
        return int((await self._transport.json("POST", f"{self._path(flow_id)}/edges", said))["added"])

    async def seal(self, flow_id: str) -> FlowView:
        """Releases the members held so far."""
        return cast(FlowView, await self._transport.json("POST", f"{self._path(flow_id)}/seal", {}))

    async def cancel(
        self, flow_id: str, reason: Optional[str] = None, *, policy: Optional[str] = None, wait: bool = False
    ) -> FlowView:
        """Cancels: nothing of the flow can be claimed after the answer. With `wait` the answer comes when it has ended."""
        said = {"reason": reason, "policy": policy, "wait": wait}
        wait_s = _WAIT_MAX_S if wait else 0.0
        return cast(FlowView, await self._transport.json("POST", f"{self._path(flow_id)}/cancel", said, wait_s=wait_s))

    @staticmethod
    def _path(flow_id: str) -> str:
        return f"/v1/flows/{segment(flow_id)}"


def _member(fields: Mapping[str, Any]) -> Dict[str, Any]:
    said = body(fields)
    nested = said.get("flow")
    if nested is not None:
        said["flow"] = {**nested, "members": [_member(member) for member in nested.get("members", ())]}
    return said
