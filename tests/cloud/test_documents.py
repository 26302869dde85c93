"""Data classes as JSON: which members there are, and what an earlier document lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from pushhub.base.fields import APART, SPARSE, Stored, field_metadata
from pushhub.cloud.documents import Document, read_by


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    owner: str = field(metadata=field_metadata(stored=APART))
    label: str = field(metadata=field_metadata(stored=Stored(name="old_label")))
    limit: int | None = 5
    colour: Colour = Colour.RED
    marked: bool = field(default=False, metadata=field_metadata(stored=SPARSE))
    names: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()


THING = Document(Thing, {"Colour": read_by(Colour), "Part": Document(Part).kind})


def test_each_field_has_its_member() -> None:
    # Given a value with everything
    thing = Thing(
        owner="o",
        label="l",
        limit=None,
        colour=Colour.BLUE,
        marked=True,
        names={"a": "b"},
        parts=(Part(weight=0.5),),
    )

    # When it is written
    document = THING.encode(thing)

    # Then its members are in the order of the class, and it is read as it was, each value of its own type
    assert list(document.items()) == [
        ("old_label", "l"),
        ("limit", None),
        ("colour", "blue"),
        ("marked", True),
        ("names", {"a": "b"}),
        ("parts", [{"weight": 0.5}]),
    ]
    read = THING.decode(document, owner="o")
    assert read == thing
    assert type(read.colour) is Colour


def test_only_a_sparse_default_is_left_out() -> None:
    assert THING.encode(Thing(owner="o", label="l")).keys() == {"old_label", "limit", "colour", "names", "parts"}


def test_what_an_earlier_document_lacks_has_its_default() -> None:
    # Given a document from before all fields but one, with a member of a field that is gone
    read = THING.decode({"old_label": "l", "gone": 1}, owner="o")

    # Then the others have their defaults
    assert read == Thing(owner="o", label="l")


def test_a_document_without_what_has_no_default_is_refused() -> None:
    with pytest.raises(KeyError, match="old_label"):
        THING.decode({"limit": 3}, owner="o")


def test_a_type_that_nothing_is_known_of_is_refused() -> None:
    with pytest.raises(KeyError, match="Colour"):
        Document(Thing)
