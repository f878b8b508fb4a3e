"""Conditions of a suspended execution, as a tree of plain values."""

from __future__ import annotations

from typing import Literal, Optional

from .wire import Condition

__all__ = ["Condition", "all_of", "any_of", "count", "signal"]


def signal(name: Optional[str] = None, *, waitpoint: Optional[str] = None) -> Condition:
    """One signal with this name at this waitpoint (default: any name, any waitpoint)."""
    if waitpoint is None:
        return {"signal": name}
    return {"signal": name, "waitpoint": waitpoint}


def any_of(*conditions: Condition) -> Condition:
    """At least one of the conditions."""
    return {"any_of": list(conditions)}


def all_of(*conditions: Condition) -> Condition:
    """All of the conditions."""
    return {"all_of": list(conditions)}


def count(
    n: int, over: Literal["signals", "waitpoints", "approvers"] = "signals", *, of: Optional[str] = None
) -> Condition:
    """This many distinct signals, waitpoints or approvers. With `of`, only signals with that name count."""
    if of is None:
        return {"count": n, "over": over}
    return {"count": n, "over": over, "of": {"signal": of}}
