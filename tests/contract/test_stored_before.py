"""A deployment in mid-flight: what earlier code stored, sent or is still sending is read as what it was.

Tables keep items for as long as a project lives, queues keep orders for fourteen days, and while functions are replaced
one after the other, old ones write what new ones read.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.contract.earlier import Stored, plain, stored_before

EARLIER = [
    pytest.param(stored, id=f"{commit}-{stored.kind}-{number}")
    for number, (commit, stored) in enumerate(stored_before())
]


GONE = {
    "Task.leased_until": "each project has a run for its tasks, which no lease keeps others from (0071)",
}
"""Fields that had a meaning for the code that wrote them only."""


def lost(was: Any, now: Any, where: str = "") -> list[str]:
    """What is no longer what it was; a record may have got more fields."""
    pairs: list[tuple[Any, Any, str]] = []
    if isinstance(was, dict) and isinstance(now, dict):
        missing = [f"{where}.{name}" for name in was if name not in now]
        pairs = [(was[name], now[name], f"{where}.{name}") for name in was if name in now]
        return missing + [each for pair in pairs for each in lost(*pair)]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = [(*pair, f"{where}[{number}]") for number, pair in enumerate(zip(was, now, strict=True))]
        return [each for pair in pairs for each in lost(*pair)]
    return [] if was == now else [f"{where}: {was!r} became {now!r}"]


@pytest.mark.parametrize("stored", EARLIER)
def test_what_earlier_code_stored_is_what_it_was(stored: Stored) -> None:
    missing = lost(stored.value, plain(stored.read()), stored.kind)
    assert [each for each in missing if each not in GONE] == []
