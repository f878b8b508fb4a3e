"""Converts an input to the type of a handler's annotation: plain values, dataclasses, typed dictionaries, models."""

from __future__ import annotations

import collections.abc
import dataclasses
import typing
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union, get_args, get_origin

from typing_extensions import NotRequired, Required, get_type_hints
from typing_extensions import get_origin as origin_of_field

from . import models
from .errors import TaskError


def decode(value: Any, raw: Optional[bytes], wanted: Any) -> Any:
    """Converts the input to the annotated type. An input that does not fit fails the task.

    Unknown types are not checked: their handlers get the unchanged value.
    """
    try:
        if wanted is bytes:
            return _bytes(value, raw)
        return _fit(value, wanted, "input")
    except _Misfit as misfit:
        # The same input would fail again.
        raise TaskError(str(misfit), TaskError.PAYLOAD_DECODE, retryable=False) from None


class _Misfit(Exception):
    """The value is not of the type."""


def _bytes(value: Any, raw: Optional[bytes]) -> bytes:
    if raw is not None:
        return raw
    if value is None:
        return b""
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise _Misfit("input is text with half of a surrogate pair, which has no bytes") from None
    raise _Misfit(f"input is JSON {_name(type(value))}, not bytes")


def _fit(value: Any, wanted: Any, where: str) -> Any:
    if wanted is Any or wanted is object:
        return value
    if wanted is None or wanted is type(None):
        return _exact(value, value is None, "null", where)
    origin, args = get_origin(wanted), get_args(wanted)
    if origin is Union or type(wanted).__name__ == "UnionType":
        return _one_of(value, args, where)
    if origin is typing.Literal:
        return _exact(value, value in args, f"one of {', '.join(map(repr, args))}", where)
    if wanted is float:
        number = _exact(value, isinstance(value, (int, float)) and not isinstance(value, bool), "a number", where)
        try:
            return float(number)
        except OverflowError:
            raise _Misfit(f"{where} must be a number, got one too large") from None
    if wanted is int:
        return _exact(value, isinstance(value, int) and not isinstance(value, bool), "an integer", where)
    if wanted is str and isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise _Misfit(f"{where} is not text") from None
    if wanted in (str, bool, bytes, dict, list):
        return _exact(value, isinstance(value, wanted), f"of type {_name(wanted)}", where)
    if origin in (list, tuple, collections.abc.Sequence):
        items = _exact(value, isinstance(value, list), "a list", where)
        return _items(items, origin, args, where)
    if origin in (dict, collections.abc.Mapping):
        mapping: Mapping[str, Any] = _exact(value, isinstance(value, dict), "an object", where)
        wanted_item = args[1] if len(args) == 2 else Any
        return {name: _fit(item, wanted_item, f"{where}.{name}") for name, item in mapping.items()}
    if models.is_model(wanted):
        return _model(value, wanted, where)
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        return _dataclass(value, wanted, where)
    if isinstance(wanted, type) and issubclass(wanted, dict) and hasattr(wanted, "__required_keys__"):
        return _typed_dict(value, wanted, where)
    return value


def _one_of(value: Any, args: Tuple[Any, ...], where: str) -> Any:
    problems: List[str] = []
    for arg in args:
        try:
            return _fit(value, arg, where)
        except _Misfit as misfit:
            problems.append(str(misfit))
    raise _Misfit("; ".join(problems))


def _items(items: List[Any], origin: Any, args: Tuple[Any, ...], where: str) -> Any:
    if not args:
        # `List` and similar types without an item type.
        args = (Any, Ellipsis)
    if origin is tuple and args[-1:] != (Ellipsis,):
        _exact(items, len(items) == len(args), f"a list of {len(args)}", where)
        return tuple(_fit(item, arg, f"{where}[{at}]") for at, (item, arg) in enumerate(zip(items, args)))
    fitted = [_fit(item, args[0], f"{where}[{at}]") for at, item in enumerate(items)]
    return tuple(fitted) if origin is tuple else fitted


def _model(value: Any, wanted: Any, where: str) -> Any:
    _exact(value, not isinstance(value, bytes), f"JSON for {_name(wanted)}", where)
    try:
        return models.validated(value, wanted, where)
    except models.Invalid as invalid:
        raise _Misfit(str(invalid)) from invalid


def _dataclass(value: Any, wanted: Any, where: str) -> Any:
    mapping = _exact(value, isinstance(value, dict), f"an object with the fields of {_name(wanted)}", where)
    hints = get_type_hints(wanted)
    fields = {field.name: field for field in dataclasses.fields(wanted) if field.init}
    unknown = sorted(set(mapping) - set(fields))
    if unknown:
        raise _Misfit(f"{where} has no field {unknown[0]!r}")
    taken: Dict[str, Any] = {}
    for name, field in fields.items():
        if name in mapping:
            taken[name] = _fit(mapping[name], hints.get(name, Any), f"{where}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise _Misfit(f"{where}.{name} is missing")
    return wanted(**taken)


def _typed_dict(value: Any, wanted: Any, where: str) -> Any:
    mapping = _exact(value, isinstance(value, dict), f"an object with the fields of {_name(wanted)}", where)
    # `__required_keys__` misses markers in annotations that are strings.
    marks: Dict[str, Any] = {
        name: origin_of_field(hint) for name, hint in get_type_hints(wanted, include_extras=True).items()
    }
    required = {name for name, mark in marks.items() if mark is Required or name in wanted.__required_keys__}
    missing = sorted(name for name in required - set(mapping) if marks[name] is not NotRequired)
    if missing:
        raise _Misfit(f"{where}.{missing[0]} is missing")
    hints = get_type_hints(wanted)
    return {name: _fit(item, hints.get(name, Any), f"{where}.{name}") for name, item in mapping.items()}


def _exact(value: Any, fits: bool, expected: str, where: str) -> Any:
    if not fits:
        raise _Misfit(f"{where} must be {expected}, got {_name(type(value))}")
    return value


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))
