"""Parses server-sent events from lines."""

from __future__ import annotations

import dataclasses
from typing import List, Optional


@dataclasses.dataclass(frozen=True)
class SentEvent:
    """One received event."""

    id: Optional[str]
    event: str
    data: str


class SentEvents:
    """Takes lines one by one, and returns an event when it is complete. Comments are ignored."""

    def __init__(self) -> None:
        #: The last received id, with an event or alone.
        self.last_id: Optional[str] = None
        self._event = ""
        self._data: List[str] = []

    def feed(self, raw: bytes) -> Optional[SentEvent]:
        """Takes one line, with or without its line end."""
        line = raw.rstrip(b"\r\n").decode("utf-8")
        if not line:
            if not self._data:
                self._event = ""
                return None
            event = SentEvent(self.last_id, self._event or "message", "\n".join(self._data))
            self._event, self._data = "", []
            return event
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id":
            self.last_id = value
        return None
