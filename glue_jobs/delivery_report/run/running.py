"""One run at a time writes to an output: a second one says who runs, and ends."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ..storage.files import read_text, remove_file, replace_text
from .arguments import BadInput

LONGEST: Final = timedelta(hours=5)
"""A run that began so long ago is dead: Glue ends one after four hours."""

_held: Final[set[str]] = set()
"""What this process has noted, and not ended."""


@contextmanager
def alone(output: str) -> Iterator[None]:
    """Run with nobody else writing to an output. Within such a run, the same process may ask again.

    Raises:
        BadInput: Another run does.
    """
    place = f"{output}/curated/running.json"
    if place in _held:
        yield
        return
    run = {
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "process": os.getpid(),
        "host": socket.gethostname(),
    }
    mine, former = json.dumps(run), None
    while not replace_text(place, mine, former=former):
        former = read_text(place)
        other = json.loads(former or "null")
        if other and _lives(other):
            raise BadInput(
                f"another run works on {output}: since {other['since']}, process {other['process']} of "
                f"{other['host']}; wait for its end, or remove {place} if it is dead"
            )
    _held.add(place)
    try:
        yield
    finally:
        _held.remove(place)
        remove_file(place)


def _lives(other: Mapping[str, Any]) -> bool:
    """Whether a run that has noted itself may be at work still."""
    if datetime.now(UTC) - datetime.fromisoformat(other["since"]) > LONGEST:
        return False
    if other["host"] != socket.gethostname():
        return True
    if other["process"] == os.getpid():
        return False
    try:
        os.kill(other["process"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
