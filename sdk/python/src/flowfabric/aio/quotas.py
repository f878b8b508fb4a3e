"""Quotas: how much may start, run at once and weigh, per key."""

from __future__ import annotations

from typing import Any, AsyncIterator, Mapping, Optional, cast

from ..http.origin import segment
from ..http.streams import AsyncTransport
from ..ids import mint
from ..views import QuotaView
from .pages import pages


class AsyncQuotas:
    """What operators do with quotas."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        *,
        rate: Optional[Mapping[str, Any]] = None,
        concurrency: Optional[int] = None,
        weighted: Optional[Mapping[str, int]] = None,
        quota_id: Optional[str] = None,
        namespace: Optional[str] = None,
        hold_while_suspended: Optional[bool] = None,
    ) -> QuotaView:
        """Makes a quota: `rate={"limit": 10, "window_ms": 1000}`, `concurrency=5`, `weighted={"limit": …, "window_ms": …}`."""
        said = {
            "quota_id": quota_id or mint(),
            "namespace": namespace,
            "rate": rate,
            "concurrency": concurrency,
            "weighted": weighted,
            "hold_while_suspended": hold_while_suspended,
        }
        return cast(QuotaView, await self._transport.json("POST", "/v1/quotas", said))

    async def get(self, quota_id: str, key: Optional[str] = None) -> QuotaView:
        """A quota with its keys, or with one of them."""
        return cast(QuotaView, await self._transport.json("GET", self._path(quota_id), query={"key": key}))

    def list(self, *, namespace: Optional[str] = None, limit: Optional[int] = None) -> AsyncIterator[QuotaView]:
        """All quotas."""
        query = {"namespace": namespace}
        return cast("AsyncIterator[QuotaView]", pages(self._transport, "/v1/quotas", query, limit))

    async def change(self, quota_id: str, **parts: Any) -> QuotaView:
        """Changes the parts that are named: rate, concurrency, weighted, hold_while_suspended; None takes a part away."""
        return cast(QuotaView, await self._transport.json("PATCH", self._path(quota_id), parts))

    async def delete(self, quota_id: str) -> None:
        """Removes a quota; nothing starts that names it."""
        await self._transport.json("DELETE", self._path(quota_id))

    async def throttle(self, quota_id: str, key: str, until: int) -> Optional[int]:
        """Lets nothing start on the key until then; a time that has passed ends it. Until when it holds now."""
        said = {"key": key, "until": until}
        answer = await self._transport.json("POST", f"{self._path(quota_id)}/throttle", said)
        return cast("Optional[int]", answer.get("throttled_until"))

    @staticmethod
    def _path(quota_id: str) -> str:
        return f"/v1/quotas/{segment(quota_id)}"
