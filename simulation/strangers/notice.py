"""Which test notices a change: of the tests whose run reaches the changed statement, the quickest first.

What each test reaches is found out once for the tests of a package, and kept in ``build/strangers`` for as long as
neither the hub nor those tests change.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from bisect import bisect
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from simulation.strangers.diffs import read
from simulation.strangers.installed import Marks, change, put_back, watch
from simulation.strangers.tables import LAYER, ROOT, Change

KEPT = ROOT / "build" / "strangers"
LONGEST_S = 40
"""Seconds of CPU for the tests that try a change: of those that reach it the quickest, and one at least."""

Reaching = dict[str, dict[str, list[int]]]
"""By test, by module, the lines it reaches."""


SUITES = {
    "runtime": ("functions",),
    "engine": ("engine", "contract"),
    "ironmq": ("ironmq", "dialects", "contract"),
    "hub": ("hub", "dialects", "contract"),
    "notifications": ("notifications", "contract"),
    "webhooks": ("webhooks", "contract"),
    "cli": ("cli", "operating"),
}
"""Where the tests of a package are, if not in the folder of its name alone."""


def noticed_by(candidate: Change) -> str | None:
    """The test that notices a change, of those of its package; empty if none does, nothing if none reaches it."""
    measured = _reaching(candidate.package)
    reaching: Reaching = measured["reached"]
    tests = [
        test
        for test, modules in reaching.items()
        if any(line in modules.get(module, ()) for module, line in candidate.lines)
        or (candidate.of_module and candidate.module in modules)
    ]
    tests.sort(key=lambda test: measured["seconds"][test])
    if not tests:
        return None
    took = [*accumulate(measured["seconds"][test] for test in tests)]
    asked = tests[: max(1, bisect(took, LONGEST_S))]
    run = python(["-m", "simulation.strangers.notice", json.dumps(candidate.what), *asked])
    found = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return str([*found, "did not end"][0]) if run.returncode else ""


def _reaching(package: str) -> dict[str, Any]:
    folders = [f"tests/{each}" for each in SUITES.get(package, (package,))]
    tests = (each for folder in folders for each in (ROOT / folder).rglob("*.py"))
    code = digest_of([*LAYER.rglob("*.py"), *(ROOT / "cli").rglob("*.py"), *tests])
    file = KEPT / f"{package}-tests-{code}.json"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        python(["-m", "simulation.strangers.notice", "--reached", str(file), *folders])
    measured: dict[str, Any] = json.loads(file.read_text())
    return measured


def digest_of(files: Iterable[Path]) -> str:
    """The same for the same files."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def python(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a program of this folder in a process of its own."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)


def environment() -> dict[str, str]:
    """Of such processes: compiled modules are kept, but in a place of their own."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(KEPT), "PYTHONHASHSEED": "0"}
    env["PYTHONPATH"] = f"{LAYER}{os.pathsep}{ROOT}"
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


class _Watching:
    """Notes what each test reaches, as a plugin."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._began = 0.0
        self.measured: dict[str, dict[str, Any]] = {"reached": {}, "seconds": {}}

    def pytest_runtest_logstart(self) -> None:
        """Before a test and its fixtures."""
        self._marks.hit[:] = [0] * len(self._marks.hit)
        self._began = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """After them."""
        modules: dict[str, list[int]] = {}
        for module, line, _ in self._marks.reached():
            modules.setdefault(module, []).append(line)
        self.measured["reached"][nodeid] = modules
        self.measured["seconds"][nodeid] = time.process_time() - self._began


QUIETLY = ["-x", "-q", "-p", "no:cacheprovider", "-p", "simulation.strangers.bounded", "--no-header", "--tb=no"]


def main(arguments: Sequence[str]) -> int:
    """In a process of its own: what tests reach, or whether tests notice a change."""
    import pytest  # noqa: PLC0415 (runs of the simulator, which import this module, have no need of it)

    if arguments[0] == "--reached":
        watching = _Watching(watch())
        pytest.main([*QUIETLY[1:], *arguments[2:]], [watching])
        Path(arguments[1]).write_text(json.dumps(watching.measured))
        return 0
    what, tests = json.loads(arguments[0]), arguments[1:]
    if "diff" in what:
        put_back(read(Path(what["diff"]))[1])
    else:
        change(**what)
    return int(pytest.main([*QUIETLY, *tests]))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
