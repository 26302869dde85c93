"""What most tests of notifications begin with."""

from __future__ import annotations

import pytest
from tests.notifications.world import NotificationWorld


@pytest.fixture
def world() -> NotificationWorld:
    """A project with a rule, whose topic is orders."""
    world = NotificationWorld()
    world.rule()
    return world
