"""The kinds of subscribers on AWS."""

from __future__ import annotations

from pathlib import Path

import pytest

from pushhub.base.sink_url import AWS_SCHEMES
from pushhub.sinks.kinds import KINDS

DOCS = Path(__file__).parents[2] / "docs"


def test_each_kind_is_the_one_of_its_scheme() -> None:
    assert [each.scheme for each in KINDS] == [each.load().scheme for each in KINDS] == [*AWS_SCHEMES]


@pytest.mark.parametrize("page", ["ironmq.md", "webhooks.md", "destinations.md"])
def test_pages_name_the_urls_of_each_kind(page: str) -> None:
    # Given the rows in which a page lists what a url may be
    rows = [line for line in (DOCS / page).read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    # Then there is one for each kind
    for scheme in AWS_SCHEMES:
        assert any(f"`{scheme}://" in row for row in rows), f"docs/{page} has no row with {scheme}://"
