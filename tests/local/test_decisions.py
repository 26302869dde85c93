"""The index of decisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from local import decisions


def test_the_index_is_that_of_the_pages() -> None:
    assert decisions.INDEX.read_text(encoding="utf-8") == decisions.index(decisions.pages()), (
        "write it again: .venv/bin/python -m local.decisions"
    )


def test_no_number_is_given_twice() -> None:
    numbers = [each.name[:4] for each in decisions.pages()]
    assert len(numbers) == len(set(numbers))


def test_a_decision_and_what_it_changes_name_each_other(tmp_path: Path) -> None:
    # Given a decision that replaces a part of another, and one that neither knows
    for name, text in {
        "0003-new.md": "# 0003. New\n\n2026-11-23. Replaces\n0001's first point.\n\n0002 is not meant.\n",
        "0001-old.md": "# 0001. Old\n\n2026-11-21\n\nText.\n",
        "0002-other.md": "# 0002. Other\n\n2026-11-22. Accepted.\n\nText.\n",
    }.items():
        (tmp_path / name).write_text(text)
    # Then each says so, in order of their numbers
    assert decisions.index(list(tmp_path.iterdir())).splitlines()[-3:] == [
        "| 0001 | [Old](0001-old.md) | 2026-11-21 |  | [0003](0003-new.md) |",
        "| 0002 | [Other](0002-other.md) | 2026-11-22 |  |  |",
        "| 0003 | [New](0003-new.md) | 2026-11-23 | [0001](0001-old.md) |  |",
    ]


@pytest.mark.parametrize("text", ["# New\n\n2026-11-23\n", "# 0003. New\n\nText.\n", "# 0004. New\n\n2026-11-23\n"])
def test_a_page_that_begins_otherwise_is_refused(tmp_path: Path, text: str) -> None:
    page = tmp_path / "0003-new.md"
    page.write_text(text)
    with pytest.raises(ValueError, match=r"0003-new\.md must begin with '# 0003\. Title'"):
        decisions.read(page)
