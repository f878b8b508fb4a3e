"""Conditions a suspended execution waits for, as a tree of plain values."""

from __future__ import annotations

from typing import Literal, Optional

from .wire import Condition

__all__ = ["Condition", "all_of", "any_of", "count", "signal"]


def signal(name: Optional[str] = None, *, waitpoint: Optional[str] = None) -> Condition:
    """One signal: of this name, or of any name by default; at this waitpoint, or at any waitpoint by default."""
    if waitpoint is None:
        return {"signal": name}
    return {"signal": name, "waitpoint": waitpoint}


def any_of(*conditions: Condition) -> Condition:
    """One of them."""
    return {"any_of": list(conditions)}


def all_of(*conditions: Condition) -> Condition:
    """All of them."""
    return {"all_of": list(conditions)}


def count(
    n: int, over: Literal["signals", "waitpoints", "approvers"] = "signals", *, of: Optional[str] = None
) -> Condition:
    """This many distinct signals, waitpoints or approvers. `of` counts only signals of that name."""
    if of is None:
        return {"count": n, "over": over}
    return {"count": n, "over": over, "of": {"signal": of}}
