"""Snapshots of the emulator's memory, taken while it works, and the way back from them. Runs in the emulator's process.

MiniStack saves one service after the other, and only when it stops: after a crash everything is gone, and on a full
disk it keeps the files of some services and loses others. Here a snapshot is a fork: the child has the memory of all
services as it was in one moment, between two requests (MiniStack answers DynamoDB, SQS and S3 on one thread, which is
the one that forks), and writes it down while the parent goes on. What changes between two snapshots is in a journal
(:mod:`local.state.journal`).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import json
import logging
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ministack import app  # type: ignore[import-not-found]
from ministack.core import persistence  # type: ignore[import-not-found]
from ministack.services import lambda_svc  # type: ignore[import-not-found]

from . import journal, snapshots
from .memory_journal import make_again

EVERY_S = 60.0
"""How long after a snapshot the next one is taken."""
SHARE = 20
"""A snapshot that takes long is followed by a pause of so many times that:
at most a twentieth of one core goes into them.
"""
SAVE_SECONDS = 60.0
"""A snapshot that takes longer is given up."""
_log = logging.getLogger("pushhub.snapshots")


class NotSaved(Exception):
    """A snapshot could not be taken; the text says why."""


class Snapshots:
    """Takes them and loads them.

    Args:
        root: Folder of all snapshots.
        every_s: How long after a snapshot the next one is taken.
        noted: What changes between them.
        before_saving: Called in the child before it saves: what it changes there stays out of the emulator's own
            memory.
    """

    def __init__(self, root: Path, every_s: float, noted: journal.Journal, before_saving: Callable[[], None]) -> None:
        self._root = root
        self._every_s = every_s
        self._noted = noted
        self._before_saving = before_saving
        self._turn = asyncio.Lock()
        self._saving = 0
        self._waiting = ThreadPoolExecutor(1, thread_name_prefix="pushhub-snapshot")
        self._tasks: set[asyncio.Task[None]] = set()
        self._found: snapshots.Snapshot | None = None
        self._blobs = lambda_svc.CODE_BLOB_DIR
        self.ended = False
        self._state: dict[str, Any] = {}

    @property
    def state(self) -> dict[str, Any]:
        """When the last one was taken, its size, and why the last attempt failed if it did, or what changes now is not
        noted.
        """
        return {**({"failed": self._noted.failed} if self._noted.failed else {}), **self._state}

    def load(self) -> None:
        """Let MiniStack load the newest that is whole. Called before it is started."""
        self._found = snapshots.newest(self._root)
        if self._found != snapshots.latest(self._root):
            _log.error("the newest is damaged; loading %s", self._found.folder.name if self._found else "none")
        if self._found:
            persistence.STATE_DIR = lambda_svc.CODE_BLOB_DIR = str(self._found.folder)
            self._state = {"taken_at": self._found.taken_at, "size": self._found.size}

    def loaded(self) -> None:
        """Make again what changed since, and take more from now on. Called when the emulator's loop has begun to run.

        The process ends if a change cannot be read, or the beginning of this run cannot be noted.
        """
        lambda_svc.CODE_BLOB_DIR = self._blobs
        try:
            if self._found:
                repeated = make_again(journal.changes(self._root, self._found.journal))
                if repeated:
                    _log.warning("%d changes made again that came after %s", repeated, self._found.folder.name)
            snapshots.begin(self._root, self._found)
        except Exception as error:  # noqa: BLE001 (MiniStack would go on without)
            _log.error("the state cannot be read: %s", error)
            # Nothing may be saved over it.
            os._exit(1)
        self._noted.begin()
        task = asyncio.get_running_loop().create_task(self._keep_taking())
        self._tasks.add(task)

    async def _keep_taking(self) -> None:
        pause = self._every_s
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            with contextlib.suppress(NotSaved):
                await self.take()
            pause = max(self._every_s, SHARE * (time.monotonic() - began))

    async def take(self) -> None:
        """Take one while the emulator goes on.

        Raises:
            NotSaved: It could not be taken; those before it are as they were.
        """
        async with self._turn:
            if not self.ended:
                self._saving, pipe = self._fork(final=False)
                outcome = await asyncio.get_running_loop().run_in_executor(self._waiting, _outcome, self._saving, pipe)
                self._saving = 0
                self._note(outcome)

    async def take_final(self) -> None:
        """Take the last one: nothing else is answered until it is written, and what comes after it is not kept.

        Raises:
            NotSaved: It could not be taken, so the emulator must go on.
        """
        async with self._turn:
            self._take_final()

    def save_all(self, _: Mapping[str, Any]) -> None:
        """What MiniStack calls when it stops."""
        if self.ended:
            return
        if self._saving:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._saving, signal.SIGKILL)
        with contextlib.suppress(NotSaved):
            self._take_final()

    def _take_final(self) -> None:
        self._note(_outcome(*self._fork(final=True)))
        self.ended = True

    def _note(self, outcome: dict[str, Any]) -> None:
        self._noted.begun(saved="reason" not in outcome)
        if "reason" in outcome:
            self._state["failed"] = outcome["reason"]
            _log.error("no snapshot: %s", outcome["reason"])
            raise NotSaved(outcome["reason"])
        self._state = outcome
        journal.forget(self._root, snapshots.oldest_journal(self._root))

    def _fork(self, *, final: bool) -> tuple[int, int]:
        """The child that saves, and the pipe on which it tells the outcome."""
        read, write = os.pipe()
        with self._noted.turn:
            number = self._noted.begin()
            child = os.fork()
        if child == 0:
            self._save_and_exit(write, number, final=final)
        os.close(write)
        return child, read

    def _save_and_exit(self, pipe: int, number: int, *, final: bool) -> None:
        """What the child does. It has one thread, and must touch nothing that is shared with the parent."""
        outcome: dict[str, Any]
        try:
            signal.set_wakeup_fd(-1)
            for each in (signal.SIGTERM, signal.SIGINT):
                signal.signal(each, signal.SIG_DFL)
            # Connections and the port must not stay open when the parent is killed.
            os.closerange(3, pipe)
            os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))
            gc.disable()
            # The child's memory is the copy.
            copy.deepcopy = lambda value, memo=None: value  # type: ignore  # noqa: ARG005
            self._before_saving()
            saved = snapshots.save(self._root, _write, taken_at=time.time(), final=final, journal=number)
            outcome = {"taken_at": saved.taken_at, "size": saved.size}
        except OSError as error:
            outcome = {"reason": f"{error.strerror or error}: {self._root}"}
        except BaseException as error:  # noqa: BLE001 (whatever it is, the parent must hear of it)
            outcome = {"reason": repr(error)[:500]}
        finally:
            with contextlib.suppress(OSError):
                os.write(pipe, json.dumps(outcome).encode())
            os._exit(0)


def _write(folder: Path) -> None:
    """Let MiniStack save its services to a folder, and link the functions' code, which it keeps in files.

    Raises:
        OSError: Something could not be saved. MiniStack would go on without it.
    """

    def fail(text: str, *about: object) -> None:
        raise OSError(text % about)

    blobs = Path(lambda_svc.CODE_BLOB_DIR)
    persistence.STATE_DIR = str(folder)
    persistence.logger = SimpleNamespace(info=_ignore, debug=_ignore, error=fail)
    # json.dump writes piece by piece; json.dumps works in C, which takes a fraction of the time.
    dump = lambda value, file, default: file.write(json.dumps(value, default=default))  # noqa: E731
    persistence.json = SimpleNamespace(dump=dump)
    persistence.save_all(app._build_persistence_save_dict())
    for each in blobs.glob("*.zip"):
        os.link(each, folder / each.name)


def _ignore(*_: object) -> None:
    pass


def _outcome(child: int, pipe: int) -> dict[str, Any]:
    """What a child has told; it is ended when it takes too long."""
    report = b""
    deadline = time.monotonic() + SAVE_SECONDS
    try:
        while select.select([pipe], [], [], max(deadline - time.monotonic(), 0))[0]:
            block = os.read(pipe, 65_536)
            if not block:
                break
            report += block
        else:
            os.kill(child, signal.SIGKILL)
            report = json.dumps({"reason": f"it took longer than {SAVE_SECONDS:.0f} s"}).encode()
    finally:
        os.close(pipe)
        os.waitpid(child, 0)
    try:
        outcome: dict[str, Any] = json.loads(report)
    except ValueError:
        return {"reason": "the process that saves was killed"}
    return outcome
