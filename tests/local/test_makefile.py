"""Which Python the Makefile takes, and what it says when there is none."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from local.place import REPOSITORY

NAMES = ("python3.11", "python3.12", "python3.13", "python3.14", "python3", "python")


def make(folder: Path, target: str, name: str, version: tuple[int, int]) -> subprocess.CompletedProcess[str]:
    """Run make on a machine with one Python only, of that name and version."""
    for each in NAMES:
        script = folder / each
        script.write_text("#!/bin/sh\nexit 127\n")
        script.chmod(0o755)
    pretends = f"import sys; sys.version_info = {version}"
    (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -c "{pretends}; $2"\n')
    return subprocess.run(
        ["make", "--no-print-directory", target],
        cwd=REPOSITORY,
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("python3.11", (3, 11)),
        ("python3.12", (3, 12)),
        ("python3", (3, 13)),
        ("python3.14", (3, 14)),
        ("python", (3, 12)),
    ],
)
def test_each_python_that_fits_is_found(tmp_path: Path, name: str, version: tuple[int, int]) -> None:
    found = make(tmp_path, "python", name, version)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("version", [(3, 10), (3, 15), (2, 7)])
def test_another_one_is_refused_in_one_line(tmp_path: Path, version: tuple[int, int]) -> None:
    refused = make(tmp_path, "python", "python3", version)
    assert refused.returncode != 0
    said = [line for line in refused.stderr.splitlines() if line.startswith("pushhub: ")]
    assert said == [
        "pushhub: Python 3.11, 3.12, 3.13 or 3.14 is missing: install the packages python3 and python3-venv"
    ]


def test_the_report_says_that_it_needs_311(tmp_path: Path) -> None:
    refused = make(tmp_path, "report-environment", "python3.13", (3, 13))
    assert refused.returncode != 0
    assert (
        "pushhub: the delivery report needs Python 3.11, as its Spark (Glue 5.1) knows no later one" in refused.stderr
    )


def test_without_chromium_the_browsers_tests_are_left_out_in_one_line(tmp_path: Path) -> None:
    # Given a machine without chromium, whose environments are there
    for tool in ("sh", "make"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    created = ("-o", "environments", "-o", "browser-environment")
    target = ["make", "--no-print-directory", *created, "test-browser"]
    # When the tests are asked for
    left_out = subprocess.run(
        target, cwd=REPOSITORY, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    # Then it says so and how to have them, and does not fail
    assert left_out.returncode == 0
    said = [line for line in left_out.stdout.splitlines() if line.startswith("pushhub: ")]
    assert said == [
        "pushhub: tests/browser left out, as there is no chromium here: install the package chromium to have them"
    ]


def test_sam_local_says_at_once_that_there_is_no_docker(tmp_path: Path) -> None:
    # Given a machine without Docker
    for tool in ("sh", "make"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    # When functions are to run in containers
    said = subprocess.run(
        ["make", "--no-print-directory", "sam-local"],
        cwd=REPOSITORY,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    # Then that is said before anything is made
    assert said.returncode != 0
    assert "pushhub: sam local runs functions in containers, and there is no Docker here" in said.stderr
    assert said.stdout == ""


def lane(folder: Path, *command: str, began: str = "0", stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Begin a part of the tests as ``make test`` does, where Ctrl-C is ignored, but in another folder."""
    return subprocess.Popen(
        [
            "sh",
            "-c",
            'trap "" INT; exec "$@"',
            "sh",
            sys.executable,
            str(REPOSITORY / ".ci/lane.py"),
            "a part",
            *command,
        ],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "LANES_BEGAN": began},
        stdin=stdin,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("status", "said"), [(0, "passed"), (3, "failed")])
def test_a_part_of_the_tests_ends_as_its_command_and_its_times_are_noted(
    tmp_path: Path, status: int, said: str
) -> None:
    # When a command is run as a part of the tests that began a minute ago
    with lane(tmp_path, "sh", "-c", f"exit {status}", began=str(int(time.time()) - 60)) as part:
        assert part.wait() == status
    # Then there is a line with when it began and ended
    line = (tmp_path / "build" / "lanes.txt").read_text()
    noted = re.fullmatch(r"a part +(\d+) s to +(\d+) s, +\d+ s of CPU, (\w+)\n", line)
    assert noted
    assert 59 <= int(noted[1]) <= int(noted[2])
    assert noted[3] == said


def test_what_runs_in_a_part_of_the_tests_can_be_interrupted(tmp_path: Path) -> None:
    # When something in a part is sent what Ctrl-C sends, then it ends
    with lane(tmp_path, "sh", "-c", "kill -INT $$; exit 0") as part:
        assert part.wait() == 128 + signal.SIGINT


def test_a_part_that_is_given_up_leaves_no_process_behind(tmp_path: Path) -> None:
    # Given a part whose command runs
    with lane(tmp_path, "sh", "-c", "echo runs; exec sleep 600") as part:
        assert part.stdout
        assert part.stdout.readline() == "runs\n"
        # When it is given up, as lint failed, then the command is gone, too: nothing holds its output
        part.terminate()
        assert part.stdout.read() == ""
    assert part.returncode != 0


def test_the_audit_asks_for_every_lock_file_and_passes_over_nothing() -> None:
    # Given all lock files, when the recipe of "make audit" is read
    locks = {
        path.relative_to(REPOSITORY).as_posix()
        for folder in ("layers", "requirements", "glue_jobs")
        for path in (REPOSITORY / folder).rglob("*.txt")
        if "--hash=sha256:" in path.read_text(encoding="utf-8")
    }
    recipe = subprocess.run(
        ["make", "--dry-run", "audit"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    patterns = recipe.partition("for lock in ")[2].partition(";")[0].split()
    # Then it names each, and a package that PyPI does not answer for is a failure
    found = {path.relative_to(REPOSITORY).as_posix() for each in patterns for path in REPOSITORY.glob(each)}
    assert found == locks
    assert "--strict" in recipe
