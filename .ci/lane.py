"""Runs a part of the tests and notes in build/lanes.txt when it began and ended, and the CPU that it and all that it
started took: ``.ci/lane.py NAME COMMAND ...``.

``LANES_BEGAN`` in the environment says when all of them began, in seconds of the epoch.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

NOTED = Path("build/lanes.txt")
PR_SET_CHILD_SUBREAPER = 36
"""Whatever loses its parent, as a JVM or an emulator does, becomes a child of this process, which counts its CPU."""


def run(name: str, command: list[str]) -> int:
    """Run the command to its end, or until this is asked to end; returns its exit status."""
    all_began = float(os.environ.get("LANES_BEGAN") or time.time())
    began = time.time()
    # What a shell runs in the background would ignore Ctrl-C, with all its children; some tests send them that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    part: subprocess.Popen[bytes] | None = None
    given_up = False

    def give_up(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 (as signal wants it)
        nonlocal given_up
        given_up = True
        if part is not None:
            part.terminate()

    # Before there is a command: one that has begun must not be left alone by a signal that comes at once.
    signal.signal(signal.SIGTERM, give_up)
    # What make lets its children share (its jobs) is passed on.
    part = subprocess.Popen(command, close_fds=False)  # noqa: S603 (the Makefile's)
    if given_up:
        part.terminate()
    status = part.wait()
    _reap()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = ended.ru_utime + ended.ru_stime + _used_by_those_left()
    NOTED.parent.mkdir(exist_ok=True)
    with NOTED.open("a") as noted:
        passed = "passed" if status == 0 else "failed"
        times = f"{began - all_began:5.0f} s to {time.time() - all_began:5.0f} s"
        noted.write(f"{name:24} {times}, {used:5.0f} s of CPU, {passed}\n")
    return status if status >= 0 else 128 - status


def _reap() -> None:
    """Wait for what has ended and had lost its parent."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _used_by_those_left() -> float:
    """CPU seconds of what has not ended yet, as a JVM, which notices only now that its parent has."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # After the name, which may hold anything: the state, the parent; the times of the process and of those of
            # its children that it has waited for.
            after = file.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(file.parent.name)] = int(after[1])
        ticks[int(file.parent.name)] = sum(map(int, after[11:15]))
    theirs = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in theirs} - theirs:
        theirs |= more
    return sum(ticks.get(pid, 0) for pid in theirs - {os.getpid()}) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
