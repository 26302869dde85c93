"""The first steps of the documentation, typed verbatim into a plain shell, show what the text says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from local.place import REPOSITORY
from tests.stack.running import RunningStack

pytestmark = [pytest.mark.stack, pytest.mark.slow]


def typed(stack: RunningStack, folder: Path, page: str, heading: str) -> str:
    """The output of the first shell block below a heading, in a checkout whose stack this is."""
    text = (REPOSITORY / page).read_text(encoding="utf-8").partition(f"## {heading}")[2]
    block = re.search(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    (folder / ".pushhub").mkdir()
    (folder / ".pushhub" / "local.json").symlink_to(stack.place.description)
    (folder / ".venv").symlink_to(REPOSITORY / ".venv")
    run = subprocess.run(
        ["/bin/sh", "-eu"], input=block[1], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_first_queue_of_the_readme(stack: RunningStack, tmp_path: Path) -> None:
    shown = typed(stack, tmp_path, "README.md", "The first queue")
    # The queue, the statuses of both subscribers, and the error message
    assert '"name": "first"' in shown
    assert '"status_code": 200' in shown
    assert '"tries": 2' in shown
    assert "source_msg_id" in shown
    assert "grüß dich" in shown


def test_the_first_steps_of_ironmq(stack: RunningStack, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in typed(stack, tmp_path, "docs/ironmq.md", "First steps").splitlines()]
    assert [each["body"] for each in lines[1]["messages"]] == ["first"]
    assert lines[2]["queue"]["type"] == "multicast"
    assert [each["body"] for each in lines[4]["messages"]] == ["second", "third"]


def test_the_first_steps_of_the_hub_protocol(stack: RunningStack, tmp_path: Path) -> None:
    shown = typed(stack, tmp_path, "docs/hub-protocol.md", "First steps")
    assert '"consumer": "confirm"' in shown
    assert '"state": "completed"' in shown
    assert '"email:sent"' in shown
