"""Read, change, save: other writers are never overwritten, and retries end."""

from __future__ import annotations

import pytest

from pushhub.base.conflicts import ROUNDS, read_change_save, until_saved
from pushhub.base.errors import Conflict, Contended


class Shelf:
    """A stored number, which somebody else raises by ten before each of the first few saves."""

    def __init__(self, others: int = 0) -> None:
        self.stored = 0
        self.read_last = 0
        self.others = others

    def read(self) -> int:
        self.read_last = self.stored
        return self.stored

    def save(self, number: int) -> None:
        if self.others:
            self.others -= 1
            self.stored += 10
        if self.stored != self.read_last:
            raise Conflict("changed")
        self.stored = number


@pytest.mark.parametrize("others", [0, 1, ROUNDS - 1])
def test_a_change_is_made_on_top_of_what_others_made_meanwhile(others: int) -> None:
    shelf = Shelf(others)
    assert read_change_save(shelf.read, lambda number: number + 1, shelf.save, doing="raising") == others * 10 + 1
    assert shelf.stored == others * 10 + 1


def test_it_is_left_for_later_when_others_never_stop() -> None:
    shelf = Shelf(others=ROUNDS)
    with pytest.raises(Contended, match="raising"):
        read_change_save(shelf.read, lambda number: number + 1, shelf.save, doing="raising")
    assert shelf.stored == ROUNDS * 10


def test_nothing_is_saved_where_nothing_is_to_be_changed() -> None:
    shelf = Shelf(others=1)
    assert read_change_save(shelf.read, lambda _: None, shelf.save, doing="raising") == 0
    assert shelf.stored == 0


def test_a_change_in_one_piece_is_made_until_nobody_comes_in_between() -> None:
    shelf = Shelf(others=2)

    def raised() -> str:
        shelf.save(shelf.read() + 1)
        return "raised"

    assert until_saved(raised, doing="raising") == "raised"
    assert shelf.stored == 21
