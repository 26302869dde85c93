"""Names chosen by tenants are shown literally, and have no other effect."""

from __future__ import annotations

import pytest
from glue_jobs.delivery_report.page.wording import as_html, called, shortened, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders é 注文", "orders é 注文"),
        ("two\nlines\x00", "two\N{REPLACEMENT CHARACTER}lines\N{REPLACEMENT CHARACTER}"),
        # reversed, this would read as another queue's name
        ("\N{RIGHT-TO-LEFT OVERRIDE}sredro", "\N{REPLACEMENT CHARACTER}sredro"),
        ("a\N{LINE SEPARATOR}b", "a\N{REPLACEMENT CHARACTER}b"),
        ("$\\foo$", "$\\foo$"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_such(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_long_names_keep_both_ends() -> None:
    assert shortened("a" * 30 + "b" * 30, 11) == "aaaaa…bbbbb"
    assert shortened("short", 11) == "short"
    assert shortened("x" * 255, 40) == "x" * 20 + "…" + "x" * 19


def test_a_name_is_no_markup() -> None:
    assert as_html('<b>&"') == "<bdi>&lt;b&gt;&amp;&quot;</bdi>"
    # A truncated name can be read in full, and the quotes of its title are escaped
    assert as_html('"' * 70, 9) == f'<bdi title="{"&quot;" * 70}">{"&quot;" * 4}…{"&quot;" * 4}</bdi>'


@pytest.mark.parametrize(
    ("name", "subscriber_id", "said"),
    [
        ("shop", "67f4ec6a79cb", "shop"),
        (None, "67f4ec6a79cb", "67f4ec6a79cb"),
        (None, "*", "any"),
        (None, "line", "whoever pulls"),
        ("line", "67f4ec6a79cb", "line"),
    ],
)
def test_who_has_no_name_is_called_what_a_reader_understands(name: str | None, subscriber_id: str, said: str) -> None:
    assert called(name, subscriber_id) == said
