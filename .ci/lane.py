"""Runs a part of the tests and notes in build/lanes.txt when it began and ended, and the CPU that it took:
``.ci/lane.py NAME COMMAND ...``.

What runs on by itself, as a stack does, is not counted. ``LANES_BEGAN`` in the environment says when all of them began,
in seconds of the epoch.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

NOTED = Path("build/lanes.txt")


def run(name: str, command: list[str]) -> int:
    """Run the command to its end, or until this is asked to end; returns its exit status."""
    all_began = float(os.environ.get("LANES_BEGAN") or time.time())
    began = time.time()
    # What a shell runs in the background would ignore Ctrl-C, with all its children; some tests send them that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    part = subprocess.Popen(command)  # noqa: S603 (the Makefile's)

    def give_up(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 (as signal wants it)
        part.terminate()

    signal.signal(signal.SIGTERM, give_up)
    status = part.wait()
    NOTED.parent.mkdir(exist_ok=True)
    with NOTED.open("a") as noted:
        ended = "passed" if status == 0 else "failed"
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        span = f"{began - all_began:5.0f} s to {time.time() - all_began:5.0f} s"
        noted.write(f"{name:24} {span}, {ended}, {used.ru_utime + used.ru_stime:5.0f} s of CPU\n")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
