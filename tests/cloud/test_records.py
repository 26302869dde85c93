"""Data classes as items: the kinds of attributes, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from pushhub.base.fields import KEY, SPARSE, Stored, field_metadata
from pushhub.cloud.records import Record, choice, one_of


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bolt:
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    owner: str = field(metadata=field_metadata(stored=KEY))
    label: str = field(metadata=field_metadata(stored=Stored(name="old_label")))
    count: int = 3
    colour: Colour = Colour.RED
    secret: bytes = field(default=b"", metadata=field_metadata(stored=SPARSE))
    limit: int | None = 5
    names: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = field(default=(), metadata=field_metadata(stored=SPARSE))
    fixed: Part | Bolt | None = None


KNOWN = {"Colour": choice(Colour), "Part": Record(Part).kind, "Part | Bolt": one_of(Record(Part), Record(Bolt))}


def test_each_kind_of_field_is_stored_under_its_name() -> None:
    # Given a value with everything
    record = Record(Thing, KNOWN)
    thing = Thing(owner="o", label="l", secret=b"s", names={"a": "b"}, parts=(Part(weight=0.5),), fixed=Bolt(length=2))

    # When it is written
    item = record.encode(thing)

    # Then each attribute has its type, the key has none, and it is read as it was
    assert item == {
        "old_label": {"S": "l"},
        "count": {"N": "3"},
        "colour": {"S": "red"},
        "secret": {"B": b"s"},
        "limit": {"N": "5"},
        "names": {"M": {"a": {"S": "b"}}},
        "parts": {"L": [{"M": {"weight": {"N": "0.5"}}}]},
        "fixed": {"M": {"length": {"N": "2"}}},
    }
    assert record.decode(item, owner="o") == thing


def test_none_and_sparse_defaults_are_left_out() -> None:
    # Given a value without a limit, whose default is one
    record, thing = Record(Thing, KNOWN), Thing(owner="o", label="l", limit=None)

    # Then it is still without when it is read
    item = record.encode(thing)
    assert item.keys() == {"old_label", "count", "colour", "names"}
    assert record.decode(item, owner="o") == thing


def test_an_item_without_what_is_always_stored_is_refused() -> None:
    with pytest.raises(KeyError, match="count"):
        Record(Thing, KNOWN).decode({"old_label": {"S": "l"}}, owner="o")


def test_a_type_that_nothing_is_known_of_is_refused() -> None:
    with pytest.raises(KeyError, match="Colour"):
        Record(Thing)
