"""Settings of all suites."""

from __future__ import annotations

import gc
import os
from functools import cache

import botocore.loaders
import pytest
from hypothesis import HealthCheck, settings
from tests.ironmq.api.hub import Hub

# A loaded machine must not fail a test for being slow. CI runs the same examples each time; elsewhere new ones are
# tried.
settings.register_profile(
    "pushhub",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
)
settings.load_profile("pushhub")

# Sessions of one process read AWS's descriptions of its services once: many tests begin with new clients.
botocore.loaders.create_loader = cache(botocore.loaders.create_loader)


def pytest_collection_finish() -> None:
    """What was collected stays until the end: the garbage collector need not go through it again and again, which took
    a fourteenth of all CPU.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def hub() -> Hub:
    """A hub with nothing in it but two projects."""
    return Hub()
