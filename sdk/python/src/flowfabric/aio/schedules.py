"""Schedules: what is submitted by itself, and when."""

from __future__ import annotations

from typing import Any, AsyncIterator, Dict, List, Mapping, Optional, Sequence, cast

from typing_extensions import Unpack

from .. import wire
from ..http.origin import segment
from ..ids import mint
from .pages import pages
from .transport import AsyncTransport


class AsyncSchedules:
    """What operators and submitters do with schedules."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def put(
        self,
        name: str,
        times: Sequence[wire.ScheduleTime],
        action: Mapping[str, Any],
        *,
        namespace: Optional[str] = None,
        **fields: Unpack[wire.ScheduleOptions],
    ) -> wire.Schedule:
        """Creates a schedule, or replaces its definition: `[{"cron": "0 3 * * *"}]`, `{"execution": {"kind": "report"}}`.

        With `version` only if the schedule has that version; 0 means that there is none yet.
        """
        said = {**fields, "times": list(times), "action": dict(action)}
        query = {"namespace": namespace}
        return cast(wire.Schedule, await self._transport.json("PUT", self._path(name), said, query=query))

    def list(self, *, namespace: Optional[str] = None, limit: Optional[int] = None) -> AsyncIterator[wire.Schedule]:
        """All schedules, newest first."""
        query = {"namespace": namespace}
        return cast("AsyncIterator[wire.Schedule]", pages(self._transport, "/v1/schedules", query, limit))

    async def get(self, name: str, *, namespace: Optional[str] = None) -> wire.Schedule:
        """A schedule with what it submits."""
        query = {"namespace": namespace}
        return cast(wire.Schedule, await self._transport.json("GET", self._path(name), query=query))

    async def delete(self, name: str, *, namespace: Optional[str] = None) -> None:
        """Removes a schedule. What it submitted goes on."""
        await self._transport.json("DELETE", self._path(name), query={"namespace": namespace})

    async def pause(
        self, name: str, *, reason: Optional[str] = None, namespace: Optional[str] = None
    ) -> wire.Schedule:
        """Stops it from firing by itself."""
        return cast(wire.Schedule, await self._post(name, "pause", {"reason": reason}, namespace))

    async def resume(self, name: str, *, namespace: Optional[str] = None) -> wire.Schedule:
        """Lets it fire again, from the next time on."""
        return cast(wire.Schedule, await self._post(name, "resume", {}, namespace))

    async def trigger(
        self, name: str, *, request_id: Optional[str] = None, namespace: Optional[str] = None
    ) -> wire.Triggered:
        """Fires now. The same request fires once."""
        said = {"request_id": request_id or mint()}
        return cast(wire.Triggered, await self._post(name, "trigger", said, namespace))

    async def backfill(
        self, name: str, start: int, end: int, *, overlap: Optional[str] = None, namespace: Optional[str] = None
    ) -> wire.Schedule:
        """Fires the times from `start` to `end` in order, both in milliseconds since 1970."""
        said = {"from": start, "to": end, "overlap": overlap}
        return cast(wire.Schedule, await self._post(name, "backfill", said, namespace, repeatable=False))

    async def stop_backfill(self, name: str, *, namespace: Optional[str] = None) -> wire.Schedule:
        """Stops a backfill. What it submitted goes on."""
        path, query = f"{self._path(name)}/backfill", {"namespace": namespace}
        return cast(wire.Schedule, await self._transport.json("DELETE", path, query=query))

    async def next(
        self, name: str, *, count: Optional[int] = None, namespace: Optional[str] = None
    ) -> List[wire.NextTime]:
        """The next times, and why one of them will not fire."""
        path, query = f"{self._path(name)}/next", {"namespace": namespace, "count": count}
        return cast("List[wire.NextTime]", (await self._transport.json("GET", path, query=query))["items"])

    async def firings(self, name: str, *, namespace: Optional[str] = None) -> List[wire.Firing]:
        """The last firings, newest first."""
        path, query = f"{self._path(name)}/firings", {"namespace": namespace}
        return cast("List[wire.Firing]", (await self._transport.json("GET", path, query=query))["items"])

    async def _post(
        self, name: str, verb: str, said: Dict[str, Any], namespace: Optional[str], *, repeatable: bool = True
    ) -> Any:
        path, query = f"{self._path(name)}/{verb}", {"namespace": namespace}
        return await self._transport.json("POST", path, said, query=query, repeatable=repeatable)

    @staticmethod
    def _path(name: str) -> str:
        return f"/v1/schedules/{segment(name)}"
