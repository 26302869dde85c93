"""The stacks nested in the template pass the linter of SAM, as they lie (the template itself: tests/paths)."""

from __future__ import annotations

import subprocess

import pytest
from tests.sam.toolbox import ROOT, environment

STACKS = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "stacks").glob("*.yaml"))]


@pytest.mark.slow
def test_cfn_lint_finds_nothing_in_a_nested_stack() -> None:
    # When the linter that SAM brings reads each of them
    linter = environment(".venv-sam", "sam.txt") / "cfn-lint"
    done = subprocess.run(
        [linter, "--regions", "eu-central-1", "--", *STACKS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    # Then it says nothing, not even a warning
    assert (done.returncode, done.stdout) == (0, "")
