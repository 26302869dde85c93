"""Names of queues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.errors import Invalid
from pushhub.base.ids import is_project_id
from pushhub.ironmq.wire.names import check_queue_name, is_message_id


@given(st.text())
def test_any_text_is_a_name_or_refused(name: str) -> None:
    try:
        assert check_queue_name(name) == name
    except Invalid:
        return
    assert 0 < len(name.encode()) <= 255
    assert "/" not in name
    assert all(character.isprintable() or ord(character) > 0x9F for character in name)


@pytest.mark.parametrize("name", ["a" * 255, "é" * 127, " ", ".", "a:b+c=d e", "#2F", "🎉"])
def test_names(name: str) -> None:
    assert check_queue_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "a" * 256, "é" * 128, "a/b", "a?b", "100%", "\x00", "a\nb", "\x7f", "\x85", "\ufffd", "a\udfff"]
)
def test_names_refused(name: str) -> None:
    with pytest.raises(Invalid):
        check_queue_name(name)


@pytest.mark.parametrize(
    ("text", "message_id", "project_id"),
    [
        ("1", True, True),
        ("9" * 19, True, True),
        ("9" * 20, False, True),
        ("5f0000000000000000000001", False, True),
        ("", False, False),
        ("a" * 65, False, False),
        ("a#b", False, False),
        ("1\n", False, False),
        ("٣", False, False),
    ],
)
def test_ids(text: str, message_id: bool, project_id: bool) -> None:
    assert is_message_id(text) is message_id
    assert is_project_id(text) is project_id
