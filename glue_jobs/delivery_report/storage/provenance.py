"""What tables were made of, so that they are made again only if that has changed: an unchanged day costs its listing.

A table follows from the files that it was read from, which are never written again under their names, from what the run
was asked, and from the job's own code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files as modules_of


def fingerprint(*asked: object, files: Iterable[str] = ()) -> str:
    """A digest of what a table follows from: what the run was asked, and the files it is read from, whose names are
    enough, as each is unique.
    """
    names = sorted(each.rpartition("/")[2] for each in files)
    return _digest(json.dumps([_code(), [str(each) for each in asked], names]).encode())


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
