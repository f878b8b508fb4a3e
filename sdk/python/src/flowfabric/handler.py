"""The handler of a kind: its parameters, which are inspected once, and its call."""

from __future__ import annotations

import functools
import inspect
import logging
from typing import Any, Callable, Dict, List, Union, get_type_hints

from .aio.context import AsyncContext
from .blocking.context import Context
from .decode import decode
from .errors import ConfigError

log = logging.getLogger("flowfabric")

_CONTEXT_NAMES = ("ctx", "context")


class Handler:
    """A handler takes no arguments, its input, its context, or both in any order.

    The context is the parameter of that type or named `ctx`; the other parameter is the input. A plain function runs in a
    thread with a `Context`, an `async def` in the worker's event loop with an `AsyncContext`.
    """

    def __init__(self, kind: str, function: Callable[..., Any]) -> None:
        self.kind = kind
        self.function = function
        called = getattr(function, "__call__", None)
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        self._input_type: Any = Any
        self._places: List[str] = []
        hints = _annotations(kind, function)
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
                if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
                    raise ConfigError(f"the handler of {kind!r} must not require {parameter.name!r} by keyword")
                continue
            self._take(parameter.name, hints.get(parameter.name, Any), parameter.default is not parameter.empty)

    def _take(self, name: str, hint: Any, has_default: bool) -> None:
        wrong = Context if self.is_async else AsyncContext
        if hint is wrong:
            right = "AsyncContext" if self.is_async else "Context"
            raise ConfigError(f"the handler of {self.kind!r} takes its context as {right}")
        is_context = hint in (Context, AsyncContext) or (hint is Any and name in _CONTEXT_NAMES)
        place = "context" if is_context else "input"
        if place in self._places:
            if has_default:
                return
            raise ConfigError(f"the handler of {self.kind!r} takes an input and a context, and no {name!r}")
        if place == "input":
            self._input_type = hint
        self._places.append(place)

    def arguments(self, context: Union[Context, AsyncContext]) -> List[Any]:
        """The arguments of the call. An input that does not fit fails the task."""
        taken: List[Any] = []
        for place in self._places:
            if place == "context":
                taken.append(context)
            else:
                taken.append(decode(context.task.input, context.task.input_bytes, self._input_type))
        return taken


def _annotations(kind: str, function: Callable[..., Any]) -> Dict[str, Any]:
    """The types of a handler's parameters; empty if they cannot be read."""
    annotated: Any = function
    while isinstance(annotated, functools.partial):
        annotated = annotated.func
    try:
        return get_type_hints(annotated if inspect.isroutine(annotated) else annotated.__call__)
    except Exception as error:
        log.warning("the handler of %r takes its input unchecked, because its annotations cannot be read: %s", kind, error)
        return {}
