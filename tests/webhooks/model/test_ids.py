"""Ids: their form, their order, and what is in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.clock import START_MS

from pushhub.base.ids import MessageIds
from pushhub.webhooks.model.ids import IdPrefix, attempt_id, engine_id, first_id, is_id, message_id, new_id, time_of

TIMES = st.integers(min_value=1_577_836_801_000, max_value=3_000_000_000_000)


@given(TIMES)
def test_an_id_has_its_form_and_carries_its_time(at: int) -> None:
    ids = new_id(IdPrefix.APPLICATION, at)
    assert is_id(IdPrefix.APPLICATION, ids)
    assert 0 <= at - time_of(ids) < 4


@given(TIMES, st.integers(min_value=4, max_value=10**9))
def test_ids_sort_as_their_times(at: int, later: int) -> None:
    first, second = (new_id(IdPrefix.ENDPOINT, each) for each in (at, at + later))
    assert first_id(IdPrefix.ENDPOINT, at) <= first < first_id(IdPrefix.ENDPOINT, at + later) <= second


@given(TIMES, st.integers(min_value=0, max_value=8191))
def test_a_messages_id_and_the_engines_are_made_of_each_other_in_the_same_order(at: int, worker: int) -> None:
    ids = MessageIds(worker)
    engine = [ids.next(at) for _ in range(3)]
    shown = [message_id(each) for each in engine]
    assert shown == sorted(shown)
    assert [engine_id(each) for each in shown] == engine


def test_what_was_never_a_messages_id_is_none() -> None:
    shown = message_id(MessageIds(1).next(START_MS))
    for text in (
        shown[:-1] + ("0" if shown[-1] != "0" else "1"),
        "msg_" + "z" * 27,
        "msg_x",
        "",
        shown[4:],
        "app_" + shown[4:],
    ):
        assert engine_id(text) is None


def test_an_attempts_id_is_the_same_each_time() -> None:
    first = attempt_id("1", "ep_1", 1, START_MS)
    assert first == attempt_id("1", "ep_1", 1, START_MS)
    assert first != attempt_id("1", "ep_1", 2, START_MS)
    assert is_id(IdPrefix.ATTEMPT, first)
