"""Lists of the webhooks API, of a hub that may be anything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from cli.answers import Odd
from cli.rest import Rest


class Answering(Rest):
    """Answers with one page after the other."""

    def __init__(self, pages: Iterator[dict[str, Any]]) -> None:
        super().__init__("http://hub.example", "p", "t")
        self._pages = pages

    def call(self, method: str, path: str, body: Any = None, **_: Any) -> Any:
        return next(self._pages)


def page(number: int, *, done: bool = False, iterator: str | None = None) -> dict[str, Any]:
    return {"data": [{"id": number}], "done": done, "iterator": iterator or f"after-{number}"}


def test_a_list_is_read_to_its_end() -> None:
    pages = iter([page(1), page(2), page(3, done=True)])
    assert Answering(pages).every("/api/v1/stream") == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_a_list_without_an_end_is_given_up() -> None:
    # Given a hub that always has one page more, or that stays at one place
    with pytest.raises(Odd, match="does not end"):
        Answering(page(number) for number in count()).every("/api/v1/stream")
    assert len(Answering(page(number, iterator="here") for number in count()).every("/api/v1/stream")) == 2
