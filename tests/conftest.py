"""Settings of all suites."""

from __future__ import annotations

import gc
import os
from functools import cache
from typing import Any

import botocore.hooks
import botocore.loaders
import pytest
from cryptography.hazmat.primitives import serialization
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

# Each new session looks through its aliases of services for each of its events: a twentieth of all CPU where
# commands are tried.
_aliaser: Any = botocore.hooks.EventAliaser
_aliased = cache(_aliaser(None)._alias_event_name)
_aliaser._alias_event_name = lambda self, event_name: _aliased(event_name)

# Whether the numbers of an RSA key are primes takes a tenth of a second: for the same bytes it is asked once.
serialization.load_pem_private_key = cache(serialization.load_pem_private_key)  # type: ignore[assignment]


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
