"""Bytes in JSON: any JSON value as it is, bytes as base64."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any, Dict, Optional

from .errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Json:
    """A value that is JSON even where None would mean "nothing": `Json(None)` is JSON's null."""

    value: Any


def dump(value: Any) -> bytes:
    """The JSON text of a request."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError) as error:
        raise ConfigError(f"is not JSON: {error}") from error


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} is neither JSON nor bytes nor a dataclass")


def put(body: Dict[str, Any], field: str, value: Any) -> None:
    """Sets a payload field and its encoding; None sets nothing."""
    if value is None:
        return
    if isinstance(value, (bytes, bytearray, memoryview)):
        body[field] = base64.b64encode(bytes(value)).decode("ascii")
        body[f"{field}_encoding"] = "base64"
    elif isinstance(value, Json):
        body[field] = value.value
        body[f"{field}_encoding"] = "json"
    else:
        body[field] = value


def take(value: Any, encoding: Optional[str]) -> Any:
    """The value of a payload field: JSON as Python's own, anything else as bytes."""
    if encoding == "base64" and isinstance(value, str):
        return base64.b64decode(value + "=" * (-len(value) % 4))
    return value
