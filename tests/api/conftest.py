from __future__ import annotations

import pytest
from tests.api.hub import Hub


@pytest.fixture
def hub() -> Hub:
    """A hub with nothing in it but two projects."""
    return Hub()
