"""The tutorials, typed line by line into one plain shell, show what they say."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from local.place import REPOSITORY
from tests.stack.operating import environment_of
from tests.stack.running import RunningStack

pytestmark = [pytest.mark.stack, pytest.mark.slow]

PAGES = sorted((REPOSITORY / "docs").glob("tutorial-*.md"))
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "-- end of block --"


def shown_as(expected: str) -> re.Pattern[str]:
    """The pattern for a block of text: itself, with anything in place of three dots, and any number of spaces between
    columns.
    """
    words = (re.escape(each).replace(r"\.\.\.", r".*?") for each in expected.split())
    return re.compile(r"\s+".join(words), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says(stack: RunningStack, tmp_path: Path, page: Path) -> None:
    # Given a folder like the repository while the stack is up
    (tmp_path / ".venv").symlink_to(REPOSITORY / ".venv")
    environment = {**os.environ, **environment_of(stack), "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'layers/pushhub'}"}
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    script = "\n".join(f"{text}\necho; echo '{MARK}'" for kind, text in blocks if kind == "sh")
    # When all of the page's blocks are typed into a shell, one after the other
    done = subprocess.run(
        ["/bin/sh", "-eu"],
        input=script,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Then each shows the text that follows it
    shown = iter(done.stdout.split(MARK))
    last = ""
    checked = 0
    for kind, text in blocks:
        if kind == "sh":
            last = next(shown)
        else:
            assert shown_as(text).search(last), f"{text}\nis not in\n{last}\n{done.stderr}"
            checked += 1
    assert checked
