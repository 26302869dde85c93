"""Data classes as items: what is read and written comes from the fields themselves (:mod:`pushhub.base.fields`).

A field's annotation says its kind of attribute. None is never stored, and neither is a sparse field that has its
default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from enum import StrEnum
from typing import Any

from pushhub.cloud.documents import NONE, Codec, FieldCodec
from pushhub.cloud.table import number, text, texts


def _decimal(value: float) -> dict[str, str]:
    return {"N": repr(value)}


def _number(stored: dict[str, str]) -> float:
    return float(stored["N"])


_PLAIN: Mapping[str, Codec] = {
    "str": Codec(text, lambda stored: stored["S"]),
    "int": Codec(number, lambda stored: int(stored["N"])),
    "float": Codec(_decimal, _number),
    "bool": Codec(lambda value: {"BOOL": value}, lambda stored: stored["BOOL"]),
    "bytes": Codec(lambda value: {"B": value}, lambda stored: bytes(stored["B"])),
    "tuple[str, ...]": Codec(texts, lambda stored: tuple(each["S"] for each in stored["L"])),
    "tuple[float, float]": Codec(
        lambda value: {"L": [*map(_decimal, value)]}, lambda stored: tuple(map(_number, stored["L"]))
    ),
    "Mapping[str, str]": Codec(
        lambda value: {"M": {name: text(each) for name, each in value.items()}},
        lambda stored: {name: each["S"] for name, each in stored["M"].items()},
    ),
}


def choice(cls: type[StrEnum]) -> Codec:
    """Members of an enumeration, stored by their values."""
    return Codec(text, lambda stored: cls(stored["S"]))


class Record(FieldCodec):
    """The attributes of a data class."""

    plain = _PLAIN
    writes_none = False

    @staticmethod
    def absent(annotation: str, default: Any, *, sparse: bool) -> Any:
        """The default of a sparse field; None if it may be."""
        if sparse:
            return default
        return None if annotation.endswith(NONE) else MISSING

    @staticmethod
    def several(kind: Codec) -> Codec:
        """As a list."""
        return Codec(
            lambda values: {"L": [*map(kind.encode, values)]}, lambda stored: tuple(map(kind.decode, stored["L"]))
        )

    @property
    def kind(self) -> Codec:
        """As maps."""
        return Codec(lambda value: {"M": self.encode(value)}, lambda stored: self.decode(stored["M"]))


def one_of(*records: Record) -> Codec:
    """Values of several classes, told apart by the first attribute of each."""
    by_class = {each.cls: each for each in records}

    def decode(stored: dict[str, Any]) -> Any:
        return next(each for each in records if each.first in stored["M"]).decode(stored["M"])

    return Codec(lambda value: by_class[type(value)].kind.encode(value), decode)
