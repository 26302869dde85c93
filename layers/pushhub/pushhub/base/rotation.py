"""Work that is done each minute as far as its time goes, from another place on each time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

_MINUTE_MS = 60_000

_GOLDEN = (math.sqrt(5) - 1) / 2
"""The part of the circle between the starts of two runs."""

Item = TypeVar("Item")


def from_another_start(items: Sequence[Item], now: int) -> Sequence[Item]:
    """The same, each minute from another one on: when time never suffices, it is not always the same that wait.

    Multiples of the golden ratio spread over a circle as evenly as possible: where each run reaches one of N, each is
    looked at within 2 N minutes.

    Args:
        now: Epoch milliseconds.
    """
    start = int(now // _MINUTE_MS * _GOLDEN % 1 * len(items))
    return [*items[start:], *items[:start]]
