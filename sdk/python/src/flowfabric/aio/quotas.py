"""Quotas: how much may start, run at once and weigh, per key."""

from __future__ import annotations

from typing import AsyncIterator, Optional, cast

from typing_extensions import Unpack

from .. import wire
from ..http.origin import segment
from ..ids import mint
from .pages import pages
from .transport import AsyncTransport


class AsyncQuotas:
    """Quota calls of operators."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, **fields: Unpack[wire.QuotaOptions]) -> wire.Quota:
        """Creates a quota: `rate={"limit": 10, "window_ms": 1000}`, `concurrency=5`, `weighted={"limit": …, "window_ms": …}`."""
        said = {**fields, "quota_id": fields.get("quota_id") or mint()}
        return cast(wire.Quota, await self._transport.json("POST", "/v1/quotas", said))

    async def get(self, quota_id: str, key: Optional[str] = None) -> wire.Quota:
        """A quota with all its keys, or with one key."""
        return cast(wire.Quota, await self._transport.json("GET", self._path(quota_id), query={"key": key}))

    def list(self, *, namespace: Optional[str] = None, limit: Optional[int] = None) -> AsyncIterator[wire.Quota]:
        """All quotas."""
        query = {"namespace": namespace}
        return cast("AsyncIterator[wire.Quota]", pages(self._transport, "/v1/quotas", query, limit))

    async def change(self, quota_id: str, **parts: Unpack[wire.QuotaChanges]) -> wire.Quota:
        """Changes the given parts. None removes a part."""
        return cast(wire.Quota, await self._transport.json("PATCH", self._path(quota_id), parts))

    async def delete(self, quota_id: str) -> None:
        """Deletes a quota. Executions that name it no longer start."""
        await self._transport.json("DELETE", self._path(quota_id))

    async def throttle(self, quota_id: str, key: str, until: int) -> Optional[int]:
        """Throttles a key until a time; a past time ends the throttle. Returns until when it is throttled."""
        said = {"key": key, "until": until}
        answer = await self._transport.json("POST", f"{self._path(quota_id)}/throttle", said)
        return cast("Optional[int]", answer.get("throttled_until"))

    @staticmethod
    def _path(quota_id: str) -> str:
        return f"/v1/quotas/{segment(quota_id)}"
