"""Data classes as JSON objects, read and written by their fields (:mod:`pushhub.base.fields`): for items that keep a
value as one text.

Every field is there, None included, but a sparse one that has its default. What an earlier document lacks has its
default.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Any, ClassVar, NamedTuple

from pushhub.base.fields import stored_of

NONE = " | None"
"""How the annotation of a field ends that may be None."""
_ALL = ", ...]"


class Codec(NamedTuple):
    """How values of a type are written, and read."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _itself(value: Any) -> Any:
    return value


AS_IT_IS = Codec(_itself, _itself)
"""Values that are JSON."""

_PLAIN: Mapping[str, Codec] = {
    **dict.fromkeys(("str", "int", "float", "bool", "Any", "dict[str, Any]", "Mapping[str, Any]"), AS_IT_IS),
    "Mapping[str, str]": Codec(dict, _itself),
    "frozenset[str]": Codec(sorted, frozenset),
}


def read_by(decode: Callable[[Any], Any]) -> Codec:
    """Values that are written as they are, such as members of an enumeration, and what reads them."""
    return Codec(_itself, decode)


class FieldCodec(ABC):
    """Writes and reads values of a data class by its fields.

    Args:
        known: Kinds of annotations that are not plain: names of classes.

    Raises:
        KeyError: An annotation that nothing is known of.
    """

    plain: ClassVar[Mapping[str, Codec]]
    """Kinds of other annotations."""
    writes_none: ClassVar[bool]
    """Whether a field that is None is written."""

    def __init__(self, cls: type, known: Mapping[str, Codec] | None = None) -> None:
        kinds = {**self.plain, **(known or {})}
        self.cls = cls
        self._fields = [
            (
                name,
                stored.name or name,
                self._kind(annotation, kinds),
                default,
                stored.sparse,
                self.absent(annotation, default, sparse=stored.sparse),
            )
            for name, annotation, default, stored in stored_of(cls)
        ]

    @staticmethod
    @abstractmethod
    def absent(annotation: str, default: Any, *, sparse: bool) -> Any:
        """What a field has that is missing in what is read; ``MISSING`` if it is always there."""

    @staticmethod
    @abstractmethod
    def several(kind: Codec) -> Codec:
        """How a tuple of values of a kind is written."""

    @property
    @abstractmethod
    def kind(self) -> Codec:
        """Its values within others."""

    @property
    def first(self) -> str:
        """The name under which its first field is written."""
        return self._fields[0][1]

    def encode(self, value: Any) -> dict[str, Any]:
        """The fields of a value that are not stored apart, in the order of the class."""
        found: dict[str, Any] = {}
        for name, member, kind, default, sparse, _ in self._fields:
            given = getattr(value, name)
            if given is None:
                if self.writes_none and not (sparse and default is None):
                    found[member] = None
            elif not (sparse and given == default):
                found[member] = kind.encode(given)
        return found

    def decode(self, found: Mapping[str, Any], **apart: Any) -> Any:
        """The value in what was written.

        Args:
            found: Its members; others are not looked at.
            apart: The fields that are stored elsewhere.

        Raises:
            KeyError: A member that is always there is missing.
        """
        for name, member, kind, _, _, absent in self._fields:
            if member in found:
                given = found[member]
                apart[name] = None if given is None else kind.decode(given)
            elif absent is MISSING:
                raise KeyError(member)
            else:
                apart[name] = absent
        return self.cls(**apart)

    def _kind(self, annotation: str, kinds: Mapping[str, Codec]) -> Codec:
        plain = annotation.removesuffix(NONE)
        if plain in kinds or not (plain.startswith("tuple[") and plain.endswith(_ALL)):
            return kinds[plain]
        return self.several(kinds[plain.removeprefix("tuple[").removesuffix(_ALL)])


class Document(FieldCodec):
    """The JSON object of a data class."""

    plain = _PLAIN
    writes_none = True

    @staticmethod
    def absent(annotation: str, default: Any, *, sparse: bool) -> Any:  # noqa: ARG004 (its default, whatever it is)
        """Its default."""
        return default

    @staticmethod
    def several(kind: Codec) -> Codec:
        """As a list."""
        return Codec(lambda values: [*map(kind.encode, values)], lambda found: tuple(map(kind.decode, found)))

    @property
    def kind(self) -> Codec:
        """As an object."""
        return Codec(self.encode, self.decode)
