"""Each test is made with a receiver of every dialect."""

from __future__ import annotations

import pytest
from tests.dialects.receivers import RECEIVERS, Receiver


@pytest.fixture(params=[*RECEIVERS])
def receiver(request: pytest.FixtureRequest) -> Receiver:
    """One that is not made yet, in a world of its own."""
    return RECEIVERS[request.param]()
