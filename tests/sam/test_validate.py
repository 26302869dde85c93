"""The template passes SAM's own checks and those of its linter."""

from __future__ import annotations

import pytest
from tests.sam.toolbox import ROOT, sam


@pytest.mark.slow
def test_sam_validate_finds_nothing() -> None:
    # When
    result = sam("validate", "--lint", "--template", str(ROOT / "template.yaml"))
    # Then
    assert result.returncode == 0, result.stdout + result.stderr
    assert "is a valid SAM Template" in result.stdout
