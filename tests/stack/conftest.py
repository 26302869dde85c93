"""One stack for all tests in this folder, started when the first of them needs it; others for those that break it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.stack.endpoints import Recorder
from tests.stack.running import RunningStack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The running stack. Each test uses queues, or projects, of its own."""
    running = RunningStack.start(tmp_path_factory.mktemp("stack"))
    yield running
    running.discard()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """One for the tests of a module alone."""
    running = RunningStack.start(tmp_path_factory.mktemp("own"))
    yield running
    running.discard()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A server for subscribers."""
    with Recorder() as started:
        yield started
