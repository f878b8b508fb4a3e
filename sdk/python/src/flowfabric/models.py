"""Pydantic and msgspec types, which those libraries validate and serialise.

Neither is a dependency: a library is imported only for one of its classes, so a program without such classes needs none.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
from typing import Any, List

#: The maximum number of problems of one value in a failure.
_PROBLEMS_MAX = 10
#: Where msgspec found a problem, at the end of its text: "Expected `int`, got `str` - at `$.homes[0].number`".
_MSGSPEC_PLACE = re.compile(r" - at `\$(.*)`\Z")


class Invalid(Exception):
    """The value is not of the type; each problem names its field."""

    def __init__(self, problems: List[str]) -> None:
        more = len(problems) - _PROBLEMS_MAX
        super().__init__("; ".join([*problems[:_PROBLEMS_MAX], *([f"and {more} more"] if more > 0 else [])]))


def is_model(kind: Any) -> bool:
    """True for a class of Pydantic or msgspec."""
    return isinstance(kind, type) and (_is_pydantic(kind) or _is_struct(kind))


def validated(value: Any, kind: Any, where: str) -> Any:
    """The JSON value as an instance of the class; raises `Invalid`."""
    if _is_pydantic(kind):
        pydantic = importlib.import_module("pydantic")
        try:
            # Validated from JSON, so that a strict model accepts a string for types without a JSON form, such as a date.
            return _adapter(kind).validate_json(json.dumps(value))
        except TypeError as error:
            # An integer that is too long for `int`.
            raise Invalid([f"{where}: {error}"]) from error
        except pydantic.ValidationError as error:
            raise Invalid([f"{where}{_place(each['loc'])}: {each['msg']}" for each in error.errors()]) from error
    msgspec = importlib.import_module("msgspec")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        place = _MSGSPEC_PLACE.search(str(error))
        problem = _MSGSPEC_PLACE.sub("", str(error))
        raise Invalid([f"{where}{place[1] if place else ''}: {problem}"]) from error


def plain(value: Any) -> Any:
    """An instance of such a class as JSON values."""
    kind: Any = type(value)
    if _is_pydantic(kind):
        return _adapter(kind).dump_python(value, mode="json")
    return importlib.import_module("msgspec").to_builtins(value, str_keys=True)


def _is_pydantic(kind: Any) -> bool:
    # Models and the dataclasses of Pydantic have it.
    return hasattr(kind, "__pydantic_validator__")


def _is_struct(kind: Any) -> bool:
    return hasattr(kind, "__struct_fields__")


@functools.lru_cache(maxsize=None)
def _adapter(kind: Any) -> Any:
    return importlib.import_module("pydantic").TypeAdapter(kind)


def _place(path: Any) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
