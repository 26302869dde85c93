"""Every test is run by a command of the Makefile: a folder that none names is a folder nobody runs. And what fails by
chance, where tests go by the machine's clock, is run once more, and named.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from local.place import REPOSITORY

COMMANDS = (
    "test-unit",
    "test-paths",
    "test-long",
    "test-local",
    "test-simulation",
    "test-stack",
    "test-sam",
    "test-browser",
    "test-report",
)


def test_every_folder_with_tests_is_run_by_one_command() -> None:
    # Given the folders that have tests, and what each command would run
    folders = {each.relative_to(REPOSITORY / "tests").parts[0] for each in REPOSITORY.glob("tests/**/test_*.py")}
    runs: dict[str, list[str]] = {folder: [] for folder in folders}
    for command in COMMANDS:
        said = subprocess.run(
            ["make", "--no-print-directory", "-n", command], cwd=REPOSITORY, capture_output=True, text=True, check=True
        ).stdout
        for folder in {*re.findall(r"\btests/([a-z]+)(?= |;|$)", said, re.MULTILINE)} & folders:
            runs[folder].append(command)
    # Then each folder is run once
    assert {folder: commands for folder, commands in runs.items() if len(commands) != 1} == {}


FAILS_BY_CHANCE = """
import pathlib

def test_steady():
    pass

def test_first_time_only():
    been = pathlib.Path("been")
    known = been.exists()
    been.touch()
    assert known
"""
FAILS_ALWAYS = "def test_wrong():\n    assert False\n"
FAILS_IN_MANY = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_wrong(n):\n    assert False\n"
FAILS_AT_ITS_END = """
import pathlib
import pytest

@pytest.fixture(scope="session")
def stack():
    yield
    been = pathlib.Path("been")
    known = been.exists()
    been.touch()
    assert known

def test_right(stack):
    pass
"""


@pytest.mark.parametrize(
    ("source", "passes", "times", "named"),
    [
        (FAILS_BY_CHANCE, True, 2, ["test_it.py::test_first_time_only"]),
        (FAILS_ALWAYS, False, 2, []),
        # That many is not chance
        (FAILS_IN_MANY, False, 1, []),
        (FAILS_AT_ITS_END, False, 1, []),
        ("import nothing_of_that_name\n", False, 1, []),
    ],
    ids=["by chance", "always", "many", "a suite at its end", "no tests"],
)
def test_what_failed_runs_once_more_and_is_named_if_it_passes_then(
    tmp_path: Path, source: str, passes: bool, times: int, named: list[str]
) -> None:
    # Given tests
    (tmp_path / "test_it.py").write_text(source)
    (tmp_path / "build").mkdir()
    # When they are run as those that go by the machine's clock
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "test_it.py"]
    ran = subprocess.run(
        [sys.executable, REPOSITORY / ".ci" / "twice.py", "test-it", *pytest_],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    # Then they pass if those that failed pass the second time, and then these are named
    assert (ran.returncode == 0) is passes, ran.stdout + ran.stderr
    assert len(re.findall(r" in \d+\.\d+s", ran.stdout)) == times, ran.stdout
    unsteady = tmp_path / "build" / "unsteady.txt"
    lines = unsteady.read_text().splitlines() if unsteady.exists() else []
    assert [line.rpartition(": ")[2] for line in lines] == named
