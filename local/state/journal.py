"""What has changed in the emulator's memory since a snapshot, on disk before anybody is told.

A journal is a file to which each change is appended as a line of JSON. With each snapshot another file begins, whose
number the snapshot keeps: what changed after it is in that file and the ones that follow. A change is handed to the
system before the request that made it is answered, so a killed emulator loses nothing; files are brought to the disk
once a second, so a power cut loses a second.

The emulator's process uses this module too. Its interpreter has neither this package nor its dependencies: standard
library only.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SYNC_S = 1.0
"""How often a journal is brought to the disk."""
_PREFIX = "journal-"

_log = logging.getLogger("pushhub.journal")

Change = list[Any]


class Journal:
    """Notes changes. Thread-safe.

    Args:
        root: Folder of the journal's files, which are those of the snapshots too.
    """

    def __init__(self, root: Path) -> None:
        self.turn = threading.RLock()
        """Held while something is changed and noted, so nothing is changed but not yet noted while others hold it."""
        self.failed = ""
        """Why changes are not noted any more; empty while they are."""
        self._root = root
        self._encode = json.JSONEncoder(separators=(",", ":")).encode
        self._file: int | None = None
        self._ended: list[int] = []
        self._number = 0
        self._proven = True
        self._unsynced = False

    def begin(self) -> int:
        """Note what changes from now on in another file.

        Returns:
            Its number.
        """
        with self.turn:
            self._number = max((number for number, _ in _files(self._root)), default=self._number) + 1
            self._proven = not self.failed
            self._close()
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._file = os.open(self._root / f"{_PREFIX}{self._number:010}", flags, 0o600)
                self.failed = ""
            except OSError as error:
                self._fail(str(error))
            return self._number

    def begun(self, *, saved: bool) -> None:
        """Say whether there is a snapshot of the moment at which the newest file began.

        A file that follows changes that could not be noted is of no use without one.
        """
        with self.turn:
            if not saved and not self._proven and self._file is not None:
                self._close()
                (self._root / f"{_PREFIX}{self._number:010}").unlink(missing_ok=True)
                self._fail("changes before these are missing, and there is no snapshot of them")

    def note(self, change: Change) -> None:
        """Note a change. When that fails, nothing more is noted until the next file: a gap would be worse than an end.

        Args:
            change: As JSON can say it.
        """
        with self.turn:
            if self._file is None:
                return
            line = self._encode(change).encode() + b"\n"
            self._unsynced = True
            try:
                whole = os.write(self._file, line) == len(line)
                why = "there is no room"
            except OSError as error:
                whole, why = False, str(error)
            if not whole:
                self._close()
                self._fail(why)

    def sync(self) -> None:
        """Bring what was noted to the disk. Nobody waits for that but the caller."""
        with self.turn:
            files, self._ended = self._ended, []
            if self._file is not None and self._unsynced:
                files.append(os.dup(self._file))
                self._unsynced = False
        for file in files:
            with contextlib.suppress(OSError):
                os.fsync(file)
            os.close(file)

    def _fail(self, why: str) -> None:
        _log.error("changes are not noted until the next snapshot: %s", why)
        self.failed = why

    def _close(self) -> None:
        if self._file is not None:
            self._ended.append(self._file)
            self._file = None


def changes(root: Path, since: int) -> Iterator[Change]:
    """What was noted in a file and those after it, in order. What was not written to its end does not count.

    Args:
        root: Folder of the files.
        since: Number of the first.

    Raises:
        OSError: A file cannot be read.
    """
    for number, path in _files(root):
        if number >= since:
            yield from _lines(path)


def last_change(root: Path, since: int) -> float | None:
    """When the last change was noted in a file or those after it, in seconds since the epoch; None if none was."""
    stats = [path.stat() for number, path in _files(root) if number >= since]
    return max((each.st_mtime for each in stats if each.st_size), default=None)


def forget(root: Path, before: int) -> None:
    """Remove the files before one."""
    for number, path in _files(root):
        if number < before:
            path.unlink(missing_ok=True)


def _lines(path: Path) -> Iterator[Change]:
    with path.open("rb") as file:
        for line in file:
            # A power cut may leave the beginning of a line, or zeros.
            if not line.endswith(b"\n"):
                return
            try:
                yield json.loads(line)
            except ValueError:
                return


def _files(root: Path) -> list[tuple[int, Path]]:
    """Numbers and files, in order."""
    found = [(path.name.removeprefix(_PREFIX), path) for path in root.glob(f"{_PREFIX}*")]
    return sorted((int(number), path) for number, path in found if number.isdecimal())
