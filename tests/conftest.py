"""Settings of all suites."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A loaded machine must not fail a test for being slow. CI runs the same examples each time; elsewhere new ones are tried.
settings.register_profile(
    "pushhub",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
)
settings.load_profile("pushhub")
