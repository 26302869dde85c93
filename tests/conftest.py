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
from hypothesis.internal.conjecture import providers
from tests.ironmq.api.hub import Hub

# A loaded machine must not fail a test for being slow, and what passed once passes again: the examples are the same
# each time. `make examples` draws new ones, so many times as many.
_NEW_EXAMPLES = int(os.environ.get("PUSHHUB_NEW_EXAMPLES", "0"))
settings.register_profile(
    "pushhub",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not _NEW_EXAMPLES,
    max_examples=100 * (_NEW_EXAMPLES or 1),
    database=None,
    print_blob=True,
)
settings.load_profile("pushhub")
if not _NEW_EXAMPLES:
    # Hypothesis also tries the constants of the modules that are loaded, which depends on the tests that ran before.
    _none = providers._local_constants
    assert not any((_none.integers, _none.floats, _none.bytes, _none.strings))
    providers._get_local_constants = lambda: _none

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
