"""What tables were made of, so that they are made again only if that has changed: an unchanged day costs its listing.

A table follows from the files that it was read from, which are never written again under their names, from what the run
was asked, and from the job's own code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files as modules_of
from typing import Any

from .files import Stored, from_json, read_text, write_text


def fingerprint(*asked: object, files: Iterable[str] = ()) -> str:
    """A digest of what a table follows from.

    Args:
        asked: What the run was asked.
        files: URIs of the files it is read from; their names are enough, as each is unique.
    """
    names = sorted(each.rpartition("/")[2] for each in files)
    return _digest(json.dumps([_code(), [str(each) for each in asked], names]).encode())


def counted_of(place: str, digest: str, there: Mapping[str, Stored]) -> dict[str, Any] | None:
    """What was counted when a table was made of just this; None if it was not, or if its files have changed since.

    Args:
        place: Where that is noted.
        digest: See :func:`fingerprint`.
        there: The table's files as they are.
    """
    try:
        content = json.loads(read_text(place) or "{}")
        same = content["made_of"] == digest and from_json(content["files"]) == there
        return dict(content["counted"]) if same else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def write_provenance(place: str, digest: str, there: Mapping[str, Stored], **counted: Any) -> None:
    """Note what a table was made of, once it is whole."""
    write_text(place, json.dumps({"made_of": digest, "files": there, "counted": counted}), "application/json")


@lru_cache(maxsize=1)
def _code() -> str:
    """A digest of the job's modules: what other ones have made is made again."""
    return _digest(b"".join(f"{name}\0".encode() + content for name, content in sorted(_modules())))


def _modules() -> Iterator[tuple[str, bytes]]:
    """The job's own, wherever it lies; Glue runs it out of an archive."""
    job = modules_of(__package__.partition(".storage")[0])
    for folder in (job, *(each for each in job.iterdir() if each.is_dir())):
        for each in folder.iterdir():
            if each.name.endswith(".py"):
                yield f"{folder.name}/{each.name}", each.read_bytes()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
