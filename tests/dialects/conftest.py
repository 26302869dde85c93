"""Each test is made with a receiver of every dialect."""

from __future__ import annotations

import pytest
from tests.dialects.receivers import GATED, RECEIVERS, Gated, Receiver


@pytest.fixture(params=[*RECEIVERS])
def receiver(request: pytest.FixtureRequest) -> Receiver:
    """One that is not made yet, in a world of its own."""
    return RECEIVERS[request.param]()


@pytest.fixture(params=[*GATED])
def gated(request: pytest.FixtureRequest) -> Gated:
    """The same, and an endpoint of an application."""
    return GATED[request.param]()
