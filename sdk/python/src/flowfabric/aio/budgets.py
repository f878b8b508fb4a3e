"""Budgets: operators create and change them; submitters reserve and report."""

from __future__ import annotations

from typing import Any, AsyncIterator, Mapping, Optional, cast

from typing_extensions import Unpack

from .. import wire
from ..http.origin import segment
from ..ids import mint
from ..values import BudgetAnswer, ReserveAnswer
from .pages import pages
from .transport import AsyncTransport


class AsyncBudgets:
    """Budget calls of operators and submitters. A running task reports through its context instead."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, dimensions: Mapping[str, wire.LimitBody], **fields: Unpack[wire.BudgetOptions]
    ) -> wire.Budget:
        """Creates a budget: `{"tokens": {"hard": 1000, "soft": 800}}`."""
        said = {**fields, "budget_id": fields.get("budget_id") or mint(), "dimensions": dimensions}
        return cast(wire.Budget, await self._transport.json("POST", "/v1/budgets", said))

    async def get(self, budget_id: str) -> wire.Budget:
        """The current state of a budget."""
        return cast(wire.Budget, await self._transport.json("GET", self._path(budget_id)))

    def list(
        self, *, limit: Optional[int] = None, **filters: Unpack[wire.BudgetFilter]
    ) -> AsyncIterator[wire.Budget]:
        """All budgets."""
        return cast("AsyncIterator[wire.Budget]", pages(self._transport, "/v1/budgets", filters, limit))

    async def change(
        self,
        budget_id: str,
        dimensions: Optional[Mapping[str, wire.LimitPatchBody]] = None,
        **fields: Unpack[wire.BudgetChanges],
    ) -> wire.Budget:
        """Changes the given fields. None as a limit removes the limit. A higher limit resumes the work that waits for it."""
        said = {**fields, "dimensions": dimensions or {}}
        return cast(wire.Budget, await self._transport.json("PATCH", self._path(budget_id), said))

    async def delete(self, budget_id: str) -> None:
        """Deletes a budget."""
        await self._transport.json("DELETE", self._path(budget_id))

    async def reset(self, budget_id: str) -> wire.Budget:
        """Starts a new period now."""
        return cast(wire.Budget, await self._post(budget_id, "reset", {}, repeatable=False))

    async def approve(self, budget_id: str) -> wire.Budget:
        """Lets new work start above the soft limit, until the period ends."""
        return cast(wire.Budget, await self._post(budget_id, "approve", {}))

    async def correct(self, budget_id: str, dimension: str, delta: int, reason: str) -> wire.Budget:
        """Corrects the used amount."""
        said = {"dimension": dimension, "delta": delta, "reason": reason}
        return cast(wire.Budget, await self._post(budget_id, "correct", said, repeatable=False))

    async def usage(
        self, budget_id: str, dimensions: Mapping[str, int], dedup_key: Optional[str] = None
    ) -> BudgetAnswer:
        """Reports usage outside of any execution. A repeated request counts once."""
        said = {"dimensions": dimensions, "dedup_key": dedup_key or mint()}
        return BudgetAnswer.read(await self._post(budget_id, "usage", said))

    async def reserve(
        self,
        budget_id: str,
        dimensions: Mapping[str, int],
        *,
        ttl_ms: Optional[int] = None,
        dedup_key: Optional[str] = None,
    ) -> ReserveAnswer:
        """Reserves amounts for a limited time."""
        said = {"dimensions": dimensions, "ttl_ms": ttl_ms, "dedup_key": dedup_key or mint()}
        return ReserveAnswer.read(await self._post(budget_id, "reserve", said))

    async def settle(self, budget_id: str, reservation_id: str, dimensions: Mapping[str, int]) -> BudgetAnswer:
        """Replaces a reservation by the real usage and returns the rest."""
        said = {"reservation_id": reservation_id, "dimensions": dimensions}
        return BudgetAnswer.read(await self._post(budget_id, "settle", said))

    async def release(self, budget_id: str, reservation_id: str) -> None:
        """Releases a reservation."""
        await self._post(budget_id, "release", {"reservation_id": reservation_id})

    async def _post(self, budget_id: str, verb: str, said: Mapping[str, Any], *, repeatable: bool = True) -> Any:
        return await self._transport.json("POST", f"{self._path(budget_id)}/{verb}", said, repeatable=repeatable)

    @staticmethod
    def _path(budget_id: str) -> str:
        return f"/v1/budgets/{segment(budget_id)}"
