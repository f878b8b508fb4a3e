# Generated from ../aio by tools/blocking.py; change it there.
"""Streams of server-sent events that survive lost connections: each continues after the last event seen."""

from __future__ import annotations

from typing import Any, Iterator, Dict, Mapping, Optional, Tuple

from .. import payload
from ..errors import RequestError, ServerFault, TransportError, of_item
from ..http.lines import SentEvents
from ..http.message import Request
from .transport import Transport


def follow(
    transport: Transport, path: str, query: Mapping[str, object], after: Optional[str]
) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Events with their names. Reconnects after a lost connection, and raises errors that are not retryable."""
    failures = 0
    while True:
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = after
        try:
            lines = transport.lines(Request("GET", path, query, None, headers))
            events = SentEvents()
            try:
                for line in lines:
                    failures = 0
                    event = events.feed(line)
                    if event is None:
                        if not line.strip():
                            # An idle stream may send its position without an event.
                            after = events.last_id or after
                        continue
                    if event.event == "error":
                        raise of_item(_read(event.data))
                    after = event.id or after
                    yield event.event, _read(event.data)
            finally:
                lines.close()
            raise TransportError("the server ended the stream")
        except RequestError as error:
            if not error.retryable:
                raise
            failures += 1
            transport.sleep(transport.retry.pause(failures, error))


def _read(data: str) -> Dict[str, Any]:
    try:
        return dict(payload.load(data))
    except (TypeError, ValueError) as error:
        raise ServerFault(200, {"code": "not_json", "detail": f"an event is not a JSON object: {error}"}) from error
