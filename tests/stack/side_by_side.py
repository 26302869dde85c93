"""Tests that mostly wait, run concurrently: all tests of a module begin together, and each then reports its outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import pytest

__all__ = ["SCENARIO_SECONDS", "SideBySide"]

World = TypeVar("World")
SCENARIO_SECONDS = 300.0
"""Longer than anything in a scenario is waited for on a busy machine."""


class SideBySide(Generic[World]):
    """The scenarios of one module.

    A module makes one, marks its tests with it, and runs them from a fixture named ``together``::

        scenarios = SideBySide[Stage]()

        @pytest.fixture(scope="module")
        def together(request, stack): with scenarios.running(request, Stage(stack)): yield

        @scenarios.test
        def test_something(stage: Stage) -> None: ...
    """

    def __init__(self) -> None:
        self._scenarios: dict[str, Callable[[World], None]] = {}
        self._running: dict[str, Future[None]] = {}

    def test(self, scenario: Callable[[World], None]) -> Callable[[], None]:
        """Make a scenario a test that reports its outcome."""
        name = scenario.__name__
        self._scenarios[name] = scenario

        def outcome() -> None:
            self._running[name].result(SCENARIO_SECONDS)

        outcome.__name__ = outcome.__qualname__ = name
        outcome.__module__, outcome.__doc__ = scenario.__module__, scenario.__doc__
        return pytest.mark.usefixtures("together")(outcome)

    @contextlib.contextmanager
    def running(self, request: pytest.FixtureRequest, world: World) -> Iterator[None]:
        """Run those scenarios whose tests were selected."""
        chosen = _selected(request) & self._scenarios.keys()
        with ThreadPoolExecutor(max_workers=max(1, len(chosen)), thread_name_prefix="scenario") as executor:
            for name in sorted(chosen):
                self._running[name] = executor.submit(self._scenarios[name], world)
            yield


def _selected(request: pytest.FixtureRequest) -> set[str]:
    return {item.originalname for item in request.session.items if isinstance(item, pytest.Function)}
