"""Waitpoints for approvers and operators: the inbox, signals, and new tokens."""

from __future__ import annotations

from typing import Any, AsyncIterator, Dict, Optional, cast

from .. import wire
from ..http.origin import segment
from ..ids import mint
from ..payload import put
from ..values import SignalAnswer, Token
from .pages import pages
from .transport import AsyncTransport


class AsyncWaitpoints:
    """Waitpoint calls of approvers and operators."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, *, namespace: Optional[str] = None, limit: Optional[int] = None) -> AsyncIterator[wire.Waitpoint]:
        """Open waitpoints, oldest first: the inbox of approvals."""
        query = {"state": "open", "namespace": namespace}
        return cast("AsyncIterator[wire.Waitpoint]", pages(self._transport, "/v1/waitpoints", query, limit))

    def of(self, execution_id: str) -> AsyncIterator[wire.Waitpoint]:
        """Waitpoints of an execution: open ones, and closed ones that are still kept."""
        path = f"/v1/executions/{segment(execution_id)}/waitpoints"
        return cast("AsyncIterator[wire.Waitpoint]", pages(self._transport, path))

    async def get(self, waitpoint_id: str) -> wire.Waitpoint:
        """One waitpoint."""
        return cast(wire.Waitpoint, await self._transport.json("GET", f"/v1/waitpoints/{segment(waitpoint_id)}"))

    async def signal(
        self,
        waitpoint_id: str,
        execution_id: str,
        name: str,
        token: str,
        payload: Any = None,
        *,
        source: Optional[str] = None,
        source_identity: Optional[str] = None,
        category: Optional[str] = None,
        correlation_id: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> SignalAnswer:
        """Sends a signal with the waitpoint's token, the only credential it needs. A repeated request counts once."""
        said: Dict[str, Any] = {
            "execution_id": execution_id,
            "name": name,
            "source": source,
            "source_identity": source_identity,
            "category": category,
            "correlation_id": correlation_id,
            "idempotency_key": idempotency_key,
            "signal_id": mint(),
        }
        put(said, "payload", payload)
        headers = {"Authorization": f"Waitpoint {token}"}
        path = f"/v1/waitpoints/{segment(waitpoint_id)}/signals"
        return SignalAnswer.read(await self._transport.json("POST", path, said, headers=headers))

    async def reissue(self, waitpoint_id: str, approver: Optional[str] = None) -> Token:
        """Creates a new token for one approver, or the single token without one. The old token stops working."""
        path = f"/v1/waitpoints/{segment(waitpoint_id)}/tokens"
        return Token((await self._transport.json("POST", path, {"approver": approver}))["token"])
