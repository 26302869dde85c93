"""Cheaper ways for what the emulator does to its memory all the time. Runs in the emulator's process."""

from __future__ import annotations

import copy
import gc
import marshal
import sys
from types import SimpleNamespace
from typing import Any

from ministack.services import dynamodb  # type: ignore[import-not-found]

YOUNG = 50_000
"""Objects that are made before the newest are looked through for garbage; Python's 700 are one item of a table."""
SWITCH_S = 0.0005
"""How long a thread may compute while another waits: work goes through several threads, and each hand-over costs as much."""


def spare() -> None:
    """Copy items fast, look for garbage seldom, and hand over between threads soon."""
    dynamodb.copy = SimpleNamespace(copy=copy.copy, deepcopy=deepcopy)
    gc.set_threshold(YOUNG, 20, 20)
    sys.setswitchinterval(SWITCH_S)


def deepcopy(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """Like :func:`copy.deepcopy`, and many times as fast for what JSON can say."""
    try:
        return marshal.loads(marshal.dumps(value))  # noqa: S302 (its own bytes)
    except ValueError:
        return copy.deepcopy(value, memo)
