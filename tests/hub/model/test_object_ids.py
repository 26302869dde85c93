"""Object ids: 24 hex characters on the wire, decimal ids inside, convertible in both directions."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.ids import MessageIds, derived_message_id
from pushhub.hub.model.object_ids import (
    derived_object_id,
    from_object_id,
    is_object_id,
    message_time,
    new_object_id,
    to_object_id,
)

NOW = 1_795_000_000_123


@given(now=st.integers(min_value=1_600_000_000_000, max_value=2_900_000_000_000), worker=st.integers(0, 8191))
def test_a_message_id_survives_the_way_to_the_wire_and_back(now: int, worker: int) -> None:
    message_id = MessageIds(worker).next(now)

    object_id = to_object_id(message_id)

    assert re.fullmatch("[0-9a-f]{24}", object_id)
    assert from_object_id(object_id) == message_id
    assert message_time(message_id) == now


def test_object_ids_begin_with_the_second_of_creation_as_mongodb_reads_them() -> None:
    assert int(to_object_id(MessageIds(1).next(NOW))[:8], 16) == NOW // 1000


def test_object_ids_sort_as_the_messages_were_made() -> None:
    ids = MessageIds(7)
    created = [ids.next(NOW + step // 3) for step in range(50)]
    assert sorted(to_object_id(each) for each in created) == [to_object_id(each) for each in created]


@given(st.text(max_size=30))
def test_other_text_is_no_message_of_ours(text: str) -> None:
    assert from_object_id(text) is None


def test_a_foreign_object_id_is_no_message_of_ours() -> None:
    assert from_object_id("52811a8584a8169f7a000002") is None
    assert from_object_id("f" * 24) is None
    assert from_object_id(to_object_id(derived_message_id(NOW, "x")).upper()) is None


def test_fresh_object_ids_differ_and_have_the_form() -> None:
    ids = {new_object_id(NOW) for _ in range(100)}
    assert len(ids) == 100
    assert all(is_object_id(each) for each in ids)


def test_derived_object_ids_depend_on_every_part_and_its_bounds() -> None:
    assert derived_object_id("a", "b") == derived_object_id("a", "b")
    assert derived_object_id("ab", "") != derived_object_id("a", "b")
    assert is_object_id(derived_object_id("store", "parameter", "acme.key"))
