"""Runs tests whose clock is the machine's, and what failed of them once more: ``.ci/twice.py NAME COMMAND ...``, where
the command begins pytest.

A machine that stands still for seconds can fail a test of a running stack that nothing is wrong with, and a whole run
is thrown away for it. So up to ``MOST`` that failed are run a second time, when this part has nothing else to do. What
passes only then is listed at the end of all tests, and in build/unsteady.txt, with its failure above: it is a fault to
be mended, of the test or of the hub.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BUILD = Path("build")
MOST = 3
"""Failed tests that are run again. Where more fail, it is not chance."""
TESTS_FAILED = 1
"""Pytest's exit status when tests ran and some failed."""


def run(name: str, command: list[str]) -> int:
    """Run the command, and what failed of it again; returns the exit status.

    Args:
        name: Of the part of the tests.
        command: Begins pytest.
    """
    cache = BUILD / "pytest" / name
    results = cache.with_suffix(".xml")
    keeps = [*command, "-o", f"cache_dir={cache}"]
    status = subprocess.run([*keeps, "--cache-clear", f"--junitxml={results}"], check=False).returncode  # noqa: S603 (the Makefile's)
    if status != TESTS_FAILED:
        return status
    noted = cache / "v" / "cache" / "lastfailed"
    failed = sorted(json.loads(noted.read_text())) if noted.exists() else []
    # What a suite says at its end, such as that a role refused a call, is about all of it: no few tests ask it again.
    if not 0 < len(failed) <= MOST or "failed on teardown" in results.read_text(encoding="utf-8"):
        return status
    sys.stdout.write(f"pushhub: once more, by themselves: {', '.join(failed)}\n")
    sys.stdout.flush()
    again = subprocess.run([*keeps, "--last-failed", "--last-failed-no-failures", "none", "-n", "0"], check=False)  # noqa: S603
    if again.returncode == 0:
        with (BUILD / "unsteady.txt").open("a") as unsteady:
            unsteady.writelines(
                f"passed only the second time, which is a fault to be mended: {each}\n" for each in failed
            )
    return again.returncode


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
