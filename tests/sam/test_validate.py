"""The template and the stacks nested in it pass SAM's own checks and those of its linter, as they lie."""

from __future__ import annotations

import subprocess

import pytest
from tests.sam.toolbox import ROOT, environment, sam

FILES = ["template.yaml", *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "stacks").glob("*.yaml")))]


@pytest.mark.slow
def test_sam_validate_finds_nothing() -> None:
    # When, with what samconfig.toml says: --lint
    result = sam("validate")
    # Then
    assert result.returncode == 0, result.stdout + result.stderr
    assert "template.yaml is a valid SAM Template" in result.stdout


@pytest.mark.slow
def test_cfn_lint_finds_nothing_in_any_file() -> None:
    # When the linter that SAM brings reads each file, and what the template gives the nested ones
    linter = environment(".venv-sam", "sam.txt") / "cfn-lint"
    done = subprocess.run(
        [linter, "--regions", "eu-central-1", "--", *FILES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    # Then it says nothing, not even a warning
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", FILES)
def test_a_file_can_be_read_without_scrolling_sideways(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, start=1) if len(line) > 120] == []
