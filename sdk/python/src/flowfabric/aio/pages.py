"""Reads paginated lists as one iterator."""

from __future__ import annotations

from typing import Any, AsyncIterator, Dict, Mapping, Optional

from .transport import AsyncTransport


async def pages(
    transport: AsyncTransport, path: str, query: Optional[Mapping[str, object]] = None, limit: Optional[int] = None
) -> AsyncIterator[Dict[str, Any]]:
    """Every item of a list, at most `limit`. The next page is requested when it is needed."""
    cursor: Optional[str] = None
    left = limit
    while left is None or left > 0:
        size = None if left is None else min(left, 1000)
        page = await transport.json("GET", path, query={**(query or {}), "limit": size, "cursor": cursor})
        for item in page["items"]:
            yield item
        left = None if left is None else left - len(page["items"])
        cursor = page.get("next_cursor")
        if cursor is None:
            return
