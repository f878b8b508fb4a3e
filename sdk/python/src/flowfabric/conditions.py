"""Conditions a suspended execution waits for, as a tree of plain values."""

from __future__ import annotations

from typing import Any, Dict, Optional

#: A node of the tree, as the API takes it.
Condition = Dict[str, Any]


def signal(name: Optional[str] = None, *, waitpoint: Optional[str] = None) -> Condition:
    """One signal: of this name, at this waitpoint; of any name when none is given."""
    node: Condition = {"signal": name}
    if waitpoint is not None:
        node["waitpoint"] = waitpoint
    return node


def any_of(*conditions: Condition) -> Condition:
    """One of them."""
    return {"any_of": list(conditions)}


def all_of(*conditions: Condition) -> Condition:
    """All of them."""
    return {"all_of": list(conditions)}


def count(n: int, over: str = "signals", *, of: Optional[str] = None) -> Condition:
    """So many distinct signals, waitpoints or approvers, counting signals of this name only when one is given."""
    node: Condition = {"count": n, "over": over}
    if of is not None:
        node["of"] = {"signal": of}
    return node
