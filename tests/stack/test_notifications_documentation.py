"""The first steps of ``docs/notifications.md``, verbatim, on the running stack."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from local.place import REPOSITORY
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

PAGE = REPOSITORY / "docs" / "notifications.md"


def block(language: str) -> str:
    """The first block of code in a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_first_steps_do_what_the_page_says(stack: RunningStack, tmp_path: Path) -> None:
    # Given a folder like the repository while the stack is up
    (tmp_path / ".pushhub").mkdir()
    (tmp_path / ".pushhub" / "local.json").symlink_to(stack.place.description)
    (tmp_path / ".venv").symlink_to(sys.prefix)

    def run(*command: str, script: str) -> str:
        done = subprocess.run(
            command, input=script, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    # When the lines for the shell are run
    finished = run("sh", "-e", script=block("sh"))
    assert '"subscription": "machines"' in finished
    assert '"token": "' in finished
    # And then those for Python
    lines = run(".venv/bin/python", "-", script=block("python")).splitlines()
    # Then three notifications arrive, and again, because none was acknowledged
    description = f"CREATE /{stack.project_id}/events/111"
    expected = [f'{description} {{"type": "door", "n": {n}}}' for n in range(3)]
    assert lines[0].startswith("{'ids': [")
    assert lines[1:] == expected * 2
