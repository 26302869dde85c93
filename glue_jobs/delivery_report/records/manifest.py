"""What is kept of a day, and what it was made from: an unchanged day need not be made again,
and a changed one is noticed.

A day's manifest lies in its folder as ``_manifest.json``, which neither Spark nor Athena takes for data. It is written
last, after the day's list (:mod:`.days`): while the two name other files, nothing vouches for the day, and it is made
again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Any, Final

from ..storage.files import Stored, as_text, from_json, listed, read_text, write_text
from .intake import IncompleteObject

_VERSION: Final = 1
_NAME: Final = "_manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A kept day.

    Attributes:
        files: Its files, by their names in the day's folder.
        raw: The objects it was made from, by their keys below the day.
        gone: Objects that it was once made from and that are no longer there.
        accepted: The days on which the messages that its records tell of were accepted.
        lines: Lines read from the objects.
        rejected: Lines that could not be used.
        incomplete: Objects of which not every record could be used.
        duplicates: Objects that share records: ``sources`` and ``records``.
        pulses: The pulses in the objects, by object: their ids.
        links: Objects of other days, and missing ones, that objects of this day name as written before them, each with
            one that names it.
    """

    files: Mapping[str, Stored] = field(default_factory=dict)
    raw: Mapping[str, Stored] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    accepted: tuple[date, ...] = ()
    lines: int = 0
    rejected: int = 0
    incomplete: tuple[IncompleteObject, ...] = ()
    duplicates: tuple[Mapping[str, Any], ...] = ()
    pulses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)


def read_manifest(folder: str) -> Manifest | None:
    """The manifest of a kept day; None when there is none, or none that can be read."""
    text = read_text(f"{folder}/{_NAME}")
    if text is None:
        return None
    try:
        content = json.loads(text)
        if content["version"] != _VERSION:
            return None
        return Manifest(
            files=from_json(content["files"]),
            raw=from_json(content["raw"]),
            gone=frozenset(map(str, content["gone"])),
            accepted=tuple(map(date.fromisoformat, content["accepted"])),
            lines=int(content["lines"]),
            rejected=int(content["rejected"]),
            incomplete=tuple(IncompleteObject(*each) for each in content["incomplete"]),
            duplicates=tuple(content["duplicates"]),
            pulses={str(source): tuple(map(str, ids)) for source, ids in content["pulses"].items()},
            links={str(name): str(by) for name, by in content["links"].items()},
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Write a day's manifest."""
    content = {each.name: getattr(manifest, each.name) for each in fields(Manifest)}
    text = json.dumps({"version": _VERSION, **content}, ensure_ascii=False, default=as_text)
    write_text(f"{folder}/{_NAME}", text, "application/json")


def files_of(folder: str, files: Iterable[str]) -> dict[str, Stored]:
    """Some files of a kept day by their names in its folder, marked by their content, if they are there."""
    names = {file.rpartition("/")[2] for file in files}
    return {name: stored for name, stored in listed(folder, digests=True).items() if name in names}
