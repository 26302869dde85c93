"""One stack for all tests in this folder, started when the first of them needs it, also for those that stop or repair
it; others for those that cannot leave it as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.stack.endpoints import Recorder
from tests.stack.running import RunningStack

from local import stack as local_stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The running stack. Each test uses queues, or projects, of its own; one that stops it starts it again."""
    running = RunningStack.start(tmp_path_factory.mktemp("stack"))
    yield running
    running.discard()


@pytest.fixture(autouse=True)
def _up_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """What fails while the stack is down leaves it up for the tests that follow."""
    yield
    if "stack" in request.fixturenames:
        running: RunningStack = request.getfixturevalue("stack")
        if not local_stack.is_up(running.place):
            running.up()


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
