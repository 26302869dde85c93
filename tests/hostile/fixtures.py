"""Fixtures: load with ``pytest_plugins = ("tests.hostile.fixtures",)``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.hostile.behaviours import BEFORE_BODY, BEHAVIOURS
from tests.hostile.certificates import Authority
from tests.hostile.endpoint import HostileEndpoint


@pytest.fixture
def endpoint() -> Iterator[HostileEndpoint]:
    """A hostile endpoint on plain HTTP."""
    with HostileEndpoint(BEHAVIOURS, before_body=BEFORE_BODY) as started:
        yield started


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority that clients of the test may trust."""
    return Authority(tmp_path_factory.mktemp("authority"))
