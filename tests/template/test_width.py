"""People read the template too, not only programs."""

from __future__ import annotations

import pytest
from tests.architecture.test_layers import ROOT

FILES = ["template.yaml", *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "stacks").glob("*.yaml")))]


@pytest.mark.parametrize("name", FILES)
def test_a_file_can_be_read_without_scrolling_sideways(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, start=1) if len(line) > 120] == []
