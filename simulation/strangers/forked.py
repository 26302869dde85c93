"""Runs with a change, each in a fork of a process that has imported everything, which saves two seconds for each."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import IO, Any

from simulation.strangers.installed import Live, NotInPlace, change_live, live_functions
from simulation.strangers.notice import environment

Run = Callable[..., int]
"""Makes the runs, and prints what came of them."""

UNFIT = 75
"""The code of a fork in which the change could not be made: it needs a process of its own."""


class Forks:
    """A process that forks for each change, one at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "simulation.strangers", "--forks"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=environment(), stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Forks:
        """Itself; it ends afterwards."""
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, what: Mapping[str, Any]) -> tuple[int, str, str] | None:
        """The code of a run with a change, and what it said; None where it needs a process of its own."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        asked.write(json.dumps(what) + "\n")
        asked.flush()
        code, said, failed = json.loads(answers.readline())
        return None if code == UNFIT else (code, said, failed)


def serve(asked: IO[str], answers: IO[str], run: Run) -> None:
    """Fork for each line, until there is none."""
    import simulation.run  # noqa: F401, PLC0415 (only this process imports the hub)
    from simulation.template import stack  # noqa: PLC0415

    stack()
    live = live_functions()
    gc.collect()
    gc.freeze()
    for line in asked:
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as failed:
            child = os.fork()
            if not child:
                _in_the_fork(json.loads(line), live, run, said, failed)
            _, status = os.waitpid(child, 0)
            said.seek(0)
            failed.seek(0)
            answers.write(json.dumps([os.waitstatus_to_exitcode(status), said.read(), failed.read()]) + "\n")
            answers.flush()


def _in_the_fork(what: dict[str, Any], live: Live, run: Run, said: IO[str], failed: IO[str]) -> None:
    os.dup2(said.fileno(), 1)
    os.dup2(failed.fileno(), 2)
    code = 1
    try:
        change_live(live, what.pop("module"), what.pop("number"))
        code = run(**what)
        sys.stdout.flush()
    except NotInPlace:
        code = UNFIT
    except BaseException as error:  # noqa: BLE001 (a change may raise anything)
        os.write(2, f"{type(error).__name__}: {error}".encode())
    finally:
        # Nothing of the process that was forked is to be tidied up here.
        os._exit(code)
