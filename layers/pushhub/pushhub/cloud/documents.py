"""Data classes as JSON objects, read and written by their fields (:mod:`pushhub.base.fields`): for items that keep a
value as one text.

Every field is there, None included, but a sparse one that has its default. What an earlier document lacks has its
default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Any, NamedTuple

from pushhub.base.fields import stored_of

_NONE, _ALL = " | None", ", ...]"


class Kind(NamedTuple):
    """How values of a type are written as JSON, and read."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _itself(value: Any) -> Any:
    return value


AS_IT_IS = Kind(_itself, _itself)
"""Values that are JSON."""

_PLAIN: Mapping[str, Kind] = {
    **dict.fromkeys(("str", "int", "float", "bool", "Any", "dict[str, Any]", "Mapping[str, Any]"), AS_IT_IS),
    "Mapping[str, str]": Kind(dict, _itself),
    "frozenset[str]": Kind(sorted, frozenset),
}


def read_by(decode: Callable[[Any], Any]) -> Kind:
    """Values that are written as they are, such as members of an enumeration, and what reads them."""
    return Kind(_itself, decode)


class Document:
    """The JSON object of a data class.

    Args:
        cls: The class.
        known: Kinds of annotations that are not plain: names of classes.

    Raises:
        KeyError: An annotation that nothing is known of.
    """

    def __init__(self, cls: type, known: Mapping[str, Kind] | None = None) -> None:
        kinds = {**_PLAIN, **(known or {})}
        self._cls = cls
        self._fields = [
            (name, stored.name or name, _kind(annotation, kinds), default, stored.sparse)
            for name, annotation, default, stored in stored_of(cls)
        ]

    def encode(self, value: Any) -> dict[str, Any]:
        """The fields of a value that are not stored apart, in the order of the class."""
        found: dict[str, Any] = {}
        for name, member, kind, default, sparse in self._fields:
            given = getattr(value, name)
            if not (sparse and given == default):
                found[member] = None if given is None else kind.encode(given)
        return found

    def decode(self, document: Mapping[str, Any], **apart: Any) -> Any:
        """The value in a document.

        Args:
            document: Its members; others are not looked at.
            apart: The fields that are stored elsewhere.

        Raises:
            KeyError: A member is missing, and its field has no default.
        """
        for name, member, kind, default, _ in self._fields:
            if member in document:
                given = document[member]
                apart[name] = None if given is None else kind.decode(given)
            elif default is MISSING:
                raise KeyError(member)
        return self._cls(**apart)

    @property
    def kind(self) -> Kind:
        """Its values within others."""
        return Kind(self.encode, self.decode)


def _kind(annotation: str, kinds: Mapping[str, Kind]) -> Kind:
    plain = annotation.removesuffix(_NONE)
    if plain in kinds or not (plain.startswith("tuple[") and plain.endswith(_ALL)):
        return kinds[plain]
    each = kinds[plain.removeprefix("tuple[").removesuffix(_ALL)]
    return Kind(lambda values: [*map(each.encode, values)], lambda found: tuple(map(each.decode, found)))
