"""Verifies completion webhooks for their receiver. `ff webhook key` prints the key."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Mapping, Optional

from .errors import FlowFabricError

TOLERANCE_MS = 300_000
"""How far the time of a webhook may differ from now. Beyond that, it counts as a replayed old one."""


class InvalidWebhook(FlowFabricError):
    """The webhook was not signed with the key, was changed in transit, or is a replayed old one."""


def verify(key: str, headers: Mapping[str, str], body: bytes, now_ms: Optional[int] = None) -> str:
    """Verifies the headers and the unchanged body of a webhook. Returns its id.

    The same webhook may arrive more than once. A receiver that must not act twice remembers the ids.
    """
    said = {name.lower(): value for name, value in headers.items()}
    delivery_id, timestamp = said.get("ff-webhook-id", ""), said.get("ff-webhook-timestamp", "")
    mac = hmac.new(key.encode(), b".".join([delivery_id.encode(), timestamp.encode(), body]), hashlib.sha256)
    expected = ("v1=" + mac.hexdigest()).encode()
    signatures = said.get("ff-webhook-signature", "").split(",")
    if not any(hmac.compare_digest(signature.strip().encode(), expected) for signature in signatures):
        raise InvalidWebhook("the webhook was not signed with this key, or was changed on the way")
    now = int(time.time() * 1000) if now_ms is None else now_ms
    if not timestamp.isdigit() or abs(now - int(timestamp)) > TOLERANCE_MS:
        raise InvalidWebhook(f"the webhook was signed more than {TOLERANCE_MS} ms from now")
    return delivery_id
