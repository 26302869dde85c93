"""Bounds tests that try a change, as a plugin of pytest.

A change may make a loop endless: a test that uses too much processor time ends the run, as a failure. Examples of
Hypothesis are the same each time, and failing ones are not shrunk, which would only take time.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

import pytest
from hypothesis import Phase, settings

TEST_CPU_S = 30.0
"""Processor time that one test may take; the slowest takes a tenth of it."""


def _too_long(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (a signal's handler)
    os._exit(pytest.ExitCode.TESTS_FAILED)


def pytest_sessionstart() -> None:
    """Set both up, once conftest.py has loaded the hub's own profile."""
    signal.signal(signal.SIGPROF, _too_long)
    settings.register_profile(
        "changes", settings(derandomize=True, database=None, phases=[Phase.explicit, Phase.generate])
    )
    settings.load_profile("changes")


def pytest_runtest_setup() -> None:
    """Start the clock of a test."""
    signal.setitimer(signal.ITIMER_PROF, TEST_CPU_S)


def pytest_sessionfinish() -> None:
    """Stop it."""
    signal.setitimer(signal.ITIMER_PROF, 0)
