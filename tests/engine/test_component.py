"""Components are made of the collaborators that they name, and keep them."""

from __future__ import annotations

from typing import Any

import pytest

from pushhub.engine.component import Component


class Clerk(Component):
    """One with a collaborator that it needs, and one that it may do without."""

    desk: str
    lamp: str = "none"

    def __post_init__(self) -> None:
        self._letters = 0

    def write(self) -> int:
        """Change what it keeps for itself."""
        self._letters += 1
        return self._letters


def test_a_component_has_its_collaborators_and_its_own_state() -> None:
    clerk = Clerk(desk="oak")
    assert (clerk.desk, clerk.lamp, clerk.write(), clerk.write()) == ("oak", "none", 1, 2)
    assert Clerk(desk="oak", lamp="green").lamp == "green"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dsek": "oak"}, r"unknown collaborators \['dsek'\], missing ones \['desk'\]"),
        ({}, r"missing ones \['desk'\]"),
        ({"desk": "oak", "chair": "ash"}, r"unknown collaborators \['chair'\]"),
        ({"desk": "oak", "_letters": 3}, r"unknown collaborators \['_letters'\]"),
    ],
)
def test_one_whose_collaborators_are_unknown_or_missing_is_not_made(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=f"Clerk: .*{said}"):
        Clerk(**given)


def test_a_collaborator_does_not_change() -> None:
    clerk: Any = Clerk(desk="oak")
    with pytest.raises(AttributeError, match=r"Clerk\.desk is set when it is made"):
        clerk.desk = "pine"
