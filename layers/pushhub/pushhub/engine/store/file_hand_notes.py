"""Notes of what processes have in hand, as files: each process has one, and holds a lock on it for as long as it lives.

On Lambda, the folder is that of one execution environment, which starts a new process when one has died and keeps what
is in ``/tmp``. On one machine, all environments of a function share it.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pushhub.engine.in_hand import LeftBehind

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_BYTES = 1_000_000


class FileHandNotes:
    """Implements :class:`pushhub.engine.in_hand.HandNotes`.

    Args:
        folder: For the notes of one function of one stack; made when there is something to note.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._own: tuple[int, int] | None = None
        """Process and descriptor: a process that was forked from this one has a file of its own."""

    def note(self, left: LeftBehind) -> None:
        """See the port. A process that dies while it writes leaves the former note or none."""
        content = json.dumps([left.queue, left.at, *left.handles]).encode() + b"\n"
        with suppress(OSError):
            descriptor = self._descriptor()
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, content, 0)

    def forget(self) -> None:
        if self._own is not None and self._own[0] == os.getpid():
            with suppress(OSError):
                os.ftruncate(self._own[1], 0)

    def left(self) -> Iterator[LeftBehind]:
        paths: list[Path] = []
        with suppress(OSError):
            paths = [*self._folder.iterdir()]
        for path in paths:
            descriptor = -1
            try:
                descriptor = os.open(path, os.O_RDWR)
                # Fails for the file of a process that lives, and so for our own.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found = _read(descriptor)
                if found is not None:
                    yield found
                path.unlink()
            except OSError:
                continue
            finally:
                if descriptor >= 0:
                    os.close(descriptor)

    def _descriptor(self) -> int:
        process = os.getpid()
        if self._own is None or self._own[0] != process:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._own = process, self._opened(process)
        return self._own[1]

    def _opened(self, process: int) -> int:
        number = 0
        while True:
            descriptor = os.open(self._folder / f"{process}-{number}", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Somebody who took it for that of a dead process may have removed it before it was locked; and one with
                # something in it is that of a process that had our number.
                if os.fstat(descriptor).st_nlink and not os.fstat(descriptor).st_size:
                    return descriptor
            except BlockingIOError:
                pass
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)
            number += 1


def _read(descriptor: int) -> LeftBehind | None:
    """A note; None if there is none, or only a part of one."""
    line, whole, _ = os.pread(descriptor, _MOST_BYTES, 0).partition(b"\n")
    if not whole:
        return None
    try:
        queue, at, *handles = json.loads(line)
    except ValueError:
        return None
    return LeftBehind(queue, at, handles)
