"""What most tests of the hub protocol begin with."""

from __future__ import annotations

import pytest
from tests.hub.api.hub_store import Store
from tests.hub.world import HubWorld


@pytest.fixture
def store() -> Store:
    """A store with nothing in it, and the API that it is reached by."""
    return Store()


@pytest.fixture
def world() -> HubWorld:
    """A store with nothing in it, whose messages are made without the API."""
    return HubWorld()
