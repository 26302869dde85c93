"""What most tests of webhooks begin with."""

from __future__ import annotations

import pytest
from tests.webhooks.world import WebhooksWorld


@pytest.fixture
def world() -> WebhooksWorld:
    """A hub with nothing in it but two projects."""
    return WebhooksWorld()


@pytest.fixture
def app(world: WebhooksWorld) -> str:
    """An application of the project, with nothing in it."""
    return world.make_app()
