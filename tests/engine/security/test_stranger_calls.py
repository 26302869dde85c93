"""Calls to strangers from requests: a few for each project, and none of them delays another project."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pytest
from tests.engine.world import PROJECT
from tests.fakes import FakeClock
from tests.fakes.waits import FakeWaits

from pushhub.base.errors import Unavailable
from pushhub.engine.security.stranger_calls import CHECKED_WITHIN_MS, StrangerCalls

OTHER = "5f0000000000000000000002"
NAMED, PRIVATE = "https://slow.example/in", "http://10.0.0.5/in"


class Outside:
    """A guard whose look-ups take as long as a test says."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.clock = FakeClock()
        self.waits = FakeWaits(2)
        self.takes_s = takes_s
        self.checked: list[str] = []
        self.calls = StrangerCalls(waits=self.waits, check_url=self._check, clock=self.clock)

    def _check(self, url: str, allowed: Sequence[str]) -> str | None:
        self.checked.append(url)
        self.clock.advance(seconds=self.takes_s)
        return None if url in allowed or "slow" in url else "refused"


def test_a_project_has_so_many_calls_at_a_time_and_others_have_their_own() -> None:
    outside = Outside()
    with ExitStack() as begun:
        for _ in range(2):
            assert begun.enter_context(outside.calls.begun(PROJECT, within_ms=1_000))
        with outside.calls.begun(PROJECT, within_ms=1_000) as more:
            assert not more
        with outside.calls.begun(OTHER, within_ms=1_000) as others:
            assert others
    # When they are over, however they end, then there are places again
    with pytest.raises(RuntimeError), outside.calls.begun(PROJECT, within_ms=1_000):
        raise RuntimeError
    with ExitStack() as begun:
        assert all(begun.enter_context(outside.calls.begun(PROJECT, within_ms=1_000)) for _ in range(2))


def test_a_place_that_cannot_be_given_back_lapses() -> None:
    outside = Outside()

    def fails(project_id: str, place: str) -> None:
        raise Unavailable("dynamodb:PutItem")

    outside.waits.leave = fails  # type: ignore[method-assign]
    for _ in range(2):
        with outside.calls.begun(PROJECT, within_ms=1_000) as may:
            assert may
    with outside.calls.begun(PROJECT, within_ms=1_000) as may:
        assert not may
    outside.clock.advance(seconds=1)
    with outside.calls.begun(PROJECT, within_ms=1_000) as may:
        assert may


def test_names_are_looked_up_only_as_long_as_the_project_has_a_place_and_addresses_always() -> None:
    outside = Outside()
    assert outside.calls.refusal(PROJECT, [NAMED, "https://other.example/"], ()) == "refused"
    with ExitStack() as begun:
        for _ in range(2):
            begun.enter_context(outside.calls.begun(PROJECT, within_ms=1_000))
        outside.checked.clear()
        assert outside.calls.refusal(PROJECT, ["https://other.example/"], ()) is None
        assert outside.checked == []
        assert outside.calls.refusal(PROJECT, [NAMED, PRIVATE], ()) == "refused"
        assert outside.calls.refusal(PROJECT, [PRIVATE], [PRIVATE]) is None
        assert outside.calls.refusal(OTHER, ["https://other.example/"], ()) == "refused"


def test_look_ups_end_when_their_time_is_over() -> None:
    outside = Outside(takes_s=4)
    many = [f"https://slow{number}.example/" for number in range(20)]
    assert outside.calls.refusal(PROJECT, many, ()) is None
    assert len(outside.checked) == -(-CHECKED_WITHIN_MS // 4_000)
    # And nothing is taken for addresses
    outside.waits.enter = None  # type: ignore[assignment,method-assign]
    assert outside.calls.refusal(PROJECT, [PRIVATE], [PRIVATE]) is None
    assert outside.calls.refusal(PROJECT, ["http://[::1"], ()) == "refused"
