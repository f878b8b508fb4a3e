"""Writes `flowfabric.blocking` from `flowfabric.aio`: the same client and context without async and await.

Run it after a change under `aio`; a test fails if it was forgotten.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HEAD = '# Generated from ../aio by tools/blocking.py; change it there.\n'
SOURCE = Path(__file__).resolve().parent.parent / "src" / "flowfabric" / "aio"
TARGET = SOURCE.parent / "blocking"

RULES = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b(_?)Async([A-Z])", r"\1\2"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\ba(close|read|iter_bytes)\b", r"\1"),
    (r"\bfrom asyncio import sleep\b", "from time import sleep"),
    (r"\bimport asyncio\b", "import threading"),
    (r"\basyncio\.(Event|Lock)\b", r"threading.\1"),
    (r"\bin asyncio\b", "in blocking code"),
]


def blocking(text: str) -> str:
    """The blocking form of a module."""
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return HEAD + text


def modules() -> dict[str, str]:
    """Every module of the blocking package, by file name."""
    made = {path.name: blocking(path.read_text("utf-8")) for path in sorted(SOURCE.glob("*.py"))}
    made["__init__.py"] = HEAD + '"""The client and the context of a task in blocking code."""\n'
    return made


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    for name, text in modules().items():
        (TARGET / name).write_text(text, "utf-8")
    for path in TARGET.glob("*.py"):
        if path.name not in modules():
            path.unlink()
    sys.exit(0)
