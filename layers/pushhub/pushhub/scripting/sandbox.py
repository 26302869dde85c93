"""Runs strangers' code in processes that end with each run.

The process that forks for each run is :mod:`pushhub.scripting.child`. It is started with nothing in its environment,
and again whenever it does not answer in time.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.scripting.child import WALL_S, write_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

CHILD = Path(__file__).with_name("child.py")
ANSWER_S = 3 * WALL_S
"""How long the process may take that ends runs itself: after that it is ended, too."""
START_S = 10.0
"""How long its first answer may take."""
MOST_CHARACTERS = 1024 * 1024
"""The most that a result may have."""
_NO_ANSWER: dict[str, Any] = {"error": "crash", "message": "it ended the process that ran it"}


class Sandbox:
    """Runs code, one run at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, request: Mapping[str, object]) -> dict[str, Any]:
        """Run code.

        Args:
            request: ``language`` (``javascript`` or ``jsonata``), ``code``, ``input`` (a text of JSON), ``answers``
                (what the code is to return: ``webhook``, ``messages``, ``payloads``, or any ``value``), ``now`` (epoch
                milliseconds) and ``seed``, from which chance follows.

        Returns:
            ``result``; or ``error`` (``timeout memory error result crash``) and ``message``, a text for its owner.
        """
        limit = ANSWER_S if self._process is not None else START_S
        process = self._started()
        try:
            asked = json_text.write({**request, "most": MOST_CHARACTERS}).encode(errors="backslashreplace")
            write_frame(_descriptor(process.stdin), asked)
            found = _answer(_descriptor(process.stdout), limit)
        except OSError:
            found = None
        if found is None:
            self.close()
            return dict(_NO_ANSWER)
        return read_result(found)

    def close(self) -> None:
        """End the process; the next run starts another one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for each in (process.stdin, process.stdout):
            if each is not None:
                each.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(  # noqa: S603 (our own program)
                [sys.executable, "-I", "-S", str(CHILD), engine_folder()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={},
                cwd="/",
            )
        return self._process


def read_result(said: bytes) -> dict[str, Any]:
    """The result that a run says. It is a stranger's JSON: code can have it nested as deep as it likes, or put half a
    surrogate pair into it.
    """
    try:
        read = json_text.read(said, last_wins=True)
    except json_text.NotJson as error:
        return {"error": "result", "message": f"what it returned or threw {error.fault}"}
    return read if isinstance(read, dict) else dict(_NO_ANSWER)


def engine_folder() -> str:
    """Where the engine is installed.

    Raises:
        ModuleNotFoundError: It is not.
    """
    found = find_spec("_quickjs")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("quickjs is not installed")
    return str(Path(found.origin).parent)


def _descriptor(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None else pipe.fileno()


def _answer(source: int, limit_s: float) -> bytes | None:
    """The next frame; None if the process ends or takes too long."""
    until, found = time.monotonic() + limit_s, bytearray()
    while len(found) < 4 or len(found) < 4 + int.from_bytes(found[:4], "big"):
        left = until - time.monotonic()
        if left <= 0 or not select.select([source], [], [], left)[0]:
            return None
        part = os.read(source, 1 << 20)
        if not part:
            return None
        found += part
    return bytes(found[4:])
