"""An emulator of their own for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local.emulator import lifecycle
from local.place import Place
from tests.local.test_emulator import free_port


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Where an emulator runs."""
    home = tmp_path_factory.mktemp("emulator")
    place = Place(
        home=home,
        # What functions were seen to import would be known from others.
        builds=home / "builds",
        port=free_port(),
        aws_port=free_port(),
        emulator_python=Place.from_environment().emulator_python,
    )
    lifecycle.start(place)
    yield place
    lifecycle.abandon(place)
