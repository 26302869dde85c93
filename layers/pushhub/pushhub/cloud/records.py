"""Data classes as items: what is read and written comes from the fields themselves (:mod:`pushhub.base.fields`).

A field's annotation says its kind of attribute. None is never stored, and neither is a sparse field that has its
default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from pushhub.base.fields import stored_of
from pushhub.cloud.table import number, text, texts

_NONE, _ALL = " | None", ", ...]"


class Kind(NamedTuple):
    """How values of a type are stored: as which attribute, and back."""

    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[dict[str, Any]], Any]


def _decimal(value: float) -> dict[str, str]:
    return {"N": repr(value)}


def _number(stored: dict[str, str]) -> float:
    return float(stored["N"])


_PLAIN: Mapping[str, Kind] = {
    "str": Kind(text, lambda stored: stored["S"]),
    "int": Kind(number, lambda stored: int(stored["N"])),
    "float": Kind(_decimal, _number),
    "bool": Kind(lambda value: {"BOOL": value}, lambda stored: stored["BOOL"]),
    "bytes": Kind(lambda value: {"B": value}, lambda stored: bytes(stored["B"])),
    "tuple[str, ...]": Kind(texts, lambda stored: tuple(each["S"] for each in stored["L"])),
    "tuple[float, float]": Kind(
        lambda value: {"L": [*map(_decimal, value)]}, lambda stored: tuple(map(_number, stored["L"]))
    ),
    "Mapping[str, str]": Kind(
        lambda value: {"M": {name: text(each) for name, each in value.items()}},
        lambda stored: {name: each["S"] for name, each in stored["M"].items()},
    ),
}


def choice(cls: type[StrEnum]) -> Kind:
    """Members of an enumeration, stored by their values."""
    return Kind(text, lambda stored: cls(stored["S"]))


class Record:
    """The attributes of a data class.

    Args:
        cls: The class.
        known: Kinds of annotations that are not plain: names of classes.

    Raises:
        KeyError: An annotation that nothing is known of.
    """

    def __init__(self, cls: type, known: Mapping[str, Kind] | None = None) -> None:
        kinds = {**_PLAIN, **(known or {})}
        self.cls = cls
        self._fields = [
            (name, stored.name or name, _kind(annotation, kinds), default, stored, annotation.endswith(_NONE))
            for name, annotation, default, stored in stored_of(cls)
        ]

    @property
    def first(self) -> str:
        """Its first attribute."""
        return self._fields[0][1]

    def encode(self, value: Any) -> dict[str, Any]:
        """All attributes of a value but its key."""
        item: dict[str, Any] = {}
        for name, attribute, kind, default, stored, _ in self._fields:
            given = getattr(value, name)
            if given is not None and not (stored.sparse and given == default):
                item[attribute] = kind.encode(given)
        return item

    def decode(self, item: Mapping[str, Any], **key: Any) -> Any:
        """The value in an item.

        Args:
            item: Its attributes; others are not looked at.
            key: The fields that its key says.

        Raises:
            KeyError: An attribute that is always there is missing.
        """
        for name, attribute, kind, default, stored, optional in self._fields:
            if attribute in item:
                key[name] = kind.decode(item[attribute])
            elif stored.sparse:
                key[name] = default
            elif optional:
                key[name] = None
            else:
                raise KeyError(attribute)
        return self.cls(**key)

    @property
    def kind(self) -> Kind:
        """Its values within others: as maps."""
        return Kind(lambda value: {"M": self.encode(value)}, lambda stored: self.decode(stored["M"]))


def one_of(*records: Record) -> Kind:
    """Values of several classes, told apart by the first attribute of each."""
    by_class = {each.cls: each for each in records}

    def decode(stored: dict[str, Any]) -> Any:
        return next(each for each in records if each.first in stored["M"]).decode(stored["M"])

    return Kind(lambda value: by_class[type(value)].kind.encode(value), decode)


def _kind(annotation: str, kinds: Mapping[str, Kind]) -> Kind:
    plain = annotation.removesuffix(_NONE)
    if plain not in kinds and plain.startswith("tuple[") and plain.endswith(_ALL):
        each = kinds[plain.removeprefix("tuple[").removesuffix(_ALL)]
        return Kind(
            lambda values: {"L": [each.encode(value) for value in values]},
            lambda stored: tuple(each.decode(value) for value in stored["L"]),
        )
    return kinds[plain]
