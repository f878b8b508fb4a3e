"""The fields of an execution as the body of a request."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from .ids import mint
from .payload import put
from .wire import BudgetRef
from .wire import ChildBody as ChildFields
from .wire import MemberBody as MemberFields
from .wire import QuotaRef
from .wire import Retry as RetryPolicy
from .wire import SubmitBody as Fields

__all__ = ["BudgetRef", "ChildFields", "Fields", "MemberFields", "QuotaRef", "RetryPolicy", "body", "submission"]


def body(fields: Mapping[str, Any]) -> Dict[str, Any]:
    """The body of a request: the payload is encoded, and fields that are None are left out."""
    said: Dict[str, Any] = {name: value for name, value in fields.items() if value is not None and name != "input"}
    put(said, "input", fields.get("input"))
    return said


def submission(fields: Mapping[str, Any]) -> Dict[str, Any]:
    """The same with an id or a key, so that a repeated request submits once."""
    said = body(fields)
    if "idempotency_key" not in said:
        said.setdefault("execution_id", mint())
    return said
