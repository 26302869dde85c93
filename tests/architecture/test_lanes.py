"""Every test is run by a command of the Makefile: a folder that none names is a folder nobody runs."""

from __future__ import annotations

import re
import subprocess

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
