"""Payloads in JSON: a JSON value unchanged, bytes as base64."""

from __future__ import annotations

import base64
import dataclasses
import decimal
import json
import re
import sys
from typing import Any, Dict, List, Optional, Union

from . import models
from .errors import ConfigError

#: Integers with more digits are read as `decimal.Decimal`. The time to create an `int` grows with the square of the number
#: of digits, so Python refuses it.
DIGITS_MAX = 4_300
#: Values nested up to this depth can always be read. Python's own reader fails at some greater depth.
DEPTH_MAX = 200

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_LIMITS_DIGITS = hasattr(sys, "get_int_max_str_digits")


@dataclasses.dataclass(frozen=True)
class Json:
    """A JSON value even where None would mean "no value": `Json(None)` is JSON's null."""

    value: Any


class Unreadable:
    """Replaces a value that is nested too deeply to be read."""


UNREADABLE = Unreadable()


def dump(value: Any) -> bytes:
    """The JSON text of a request."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain)
        try:
            return text.encode()
        except UnicodeEncodeError:
            # Half of a surrogate pair, which JSON can only represent by an escape.
            return json.dumps(value, separators=(",", ":"), allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"is not JSON: {error}") from error


def load(text: Union[bytes, str]) -> Any:
    """Parses a response with any payloads in it. Raises `ValueError` if it is not JSON or is nested too deeply."""
    try:
        return _load(text)
    except RecursionError as error:
        raise ValueError("it nests deeper than can be read") from error


def load_around(text: bytes, level: int) -> Any:
    """Like `load`, but an object or list at this level that is nested too deeply becomes `UNREADABLE`, and the rest is read."""
    try:
        return _load(text)
    except RecursionError:
        return json.loads(_without_deep(text, level), parse_int=_integer, parse_constant=lambda _: UNREADABLE)


def _load(text: Union[bytes, str]) -> Any:
    if _LIMITS_DIGITS:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            raise
        except ValueError:
            # An integer with too many digits; only now is each one checked.
            pass
    return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> Union[int, decimal.Decimal]:
    if len(digits) <= DIGITS_MAX:
        try:
            return int(digits)
        except ValueError:
            # The process has a lower limit.
            pass
    return decimal.Decimal(digits)


def _without_deep(text: bytes, level: int) -> bytes:
    """The text with a constant that no server sends in place of values that open at the level and are nested too deeply."""
    kept: List[bytes] = []
    depth = opened = done = 0
    deep = False
    for token in _TOKEN.finditer(text):
        first = token.group()[:1]
        if first in (b"[", b"{"):
            depth += 1
            if depth == level:
                opened, deep = token.start(), False
            deep = deep or depth > DEPTH_MAX
        elif first in (b"]", b"}"):
            if depth == level and deep:
                kept += [text[done:opened], b"NaN"]
                done = token.end()
            depth -= 1
    return b"".join([*kept, text[done:]])


def _plain(value: Any) -> Any:
    if models.is_model(type(value)):
        return models.plain(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} is neither JSON nor bytes, nor a dataclass, a Pydantic model or a msgspec Struct")


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
    """The value of a payload field: JSON as Python values, anything else as bytes."""
    if encoding == "base64" and isinstance(value, str):
        return base64.b64decode(value + "=" * (-len(value) % 4))
    return value
