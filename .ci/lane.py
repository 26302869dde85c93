"""Runs a part of the tests and notes in build/lanes.txt when it began and ended: ``.ci/lane.py NAME COMMAND ...``.

``LANES_BEGAN`` in the environment says when all of them began, in seconds of the epoch.
"""

from __future__ import annotations

import os
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
        noted.write(f"{name:24} {began - all_began:5.0f} s to {time.time() - all_began:5.0f} s, {ended}\n")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
