"""What every line store does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT, full_message, message

from pushhub.base.errors import Forbidden, Invalid, MessageNotFound
from pushhub.engine.model.message import Message
from pushhub.engine.ports import Once
from pushhub.ironmq.ports import LineMessage, LineStore

LINE = "f0e1d2c3b4a5"
MINUTE = 60_000


def in_line(count: int, **changes: object) -> list[Message]:
    fields: dict[str, object] = {"queue_uid": LINE, "subscriber_ids": ()}
    return [message(**(fields | changes)) for _ in range(count)]


def reserve(store: LineStore, count: int = 1, *, now: int = NOW, timeout_ms: int = MINUTE) -> list[LineMessage]:
    return store.reserve(PROJECT, LINE, count=count, timeout_ms=timeout_ms, now=now)


def ids(found: list[LineMessage]) -> list[str]:
    return [each.message.message_id for each in found]


def peeked(store: LineStore, count: int = 100, now: int = NOW) -> list[str]:
    return ids(store.peek(PROJECT, LINE, count=count, now=now))


def held_id(found: LineMessage) -> str:
    assert found.reservation_id is not None
    return found.reservation_id


@pytest.mark.parametrize("count", [1, 3, 100, 101])
def test_first_in_first_out(line_store: LineStore, count: int) -> None:
    # Given a line, put in one call (which is repeated)
    given = in_line(count)
    line_store.put(given)
    line_store.put(given)
    # When reserved in two parts
    taken = reserve(line_store, 1) + reserve(line_store, 100)
    # Then they come in the order they were put, each once, with fresh reservations
    assert [each.message for each in taken] == given
    assert {each.reserved_count for each in taken} == {1}
    assert {each.reserved_until for each in taken} == {NOW + MINUTE}
    assert len({held_id(each) for each in taken}) == count
    assert all(len(held_id(each)) == 32 for each in taken)
    assert reserve(line_store) == []


def test_every_field_of_a_message_travels(line_store: LineStore) -> None:
    given = full_message(queue_uid=LINE, due_at=NOW)
    line_store.put([given])
    assert line_store.get(PROJECT, LINE, given.message_id, NOW) == LineMessage(message=given)
    assert [each.message for each in reserve(line_store)] == [given]


def test_lines_are_apart(line_store: LineStore) -> None:
    given = in_line(1)
    line_store.put(given)
    assert line_store.reserve(OTHER_PROJECT, LINE, count=1, timeout_ms=MINUTE, now=NOW) == []
    assert line_store.reserve(PROJECT, "another00000", count=1, timeout_ms=MINUTE, now=NOW) == []
    assert line_store.size(PROJECT, "another00000", NOW) == 0
    assert line_store.get(PROJECT, "another00000", given[0].message_id, NOW) is None


def test_putting_again_does_not_free_a_reserved_message(line_store: LineStore) -> None:
    # Given a reserved message, one of two and one alone
    pair, alone = in_line(2), in_line(1)
    line_store.put(pair)
    line_store.put(alone)
    assert len(reserve(line_store, 3)) == 3
    # When the producer's calls are repeated, then nothing comes back
    line_store.put(pair)
    line_store.put(alone)
    assert reserve(line_store, 3) == []
    assert line_store.size(PROJECT, LINE, NOW) == 3


def test_a_timed_out_message_goes_back_to_the_front(line_store: LineStore) -> None:
    # Given the first of three messages reserved
    given = in_line(3)
    line_store.put(given)
    (held,) = reserve(line_store)
    # Then until its end it is not available
    assert ids(reserve(line_store, 1, now=NOW + MINUTE - 1, timeout_ms=2 * MINUTE)) == [given[1].message_id]
    # When its reservation ends, then it comes before the ones behind it, with one more on its count
    again = reserve(line_store, 2, now=NOW + MINUTE)
    assert ids(again) == [given[0].message_id, given[2].message_id]
    assert [each.reserved_count for each in again] == [2, 1]
    assert held_id(again[0]) != held_id(held)


def test_timed_out_messages_are_in_line_order_whatever_the_order_of_their_ends(line_store: LineStore) -> None:
    # Given four messages reserved so that the first one's reservation ends last
    given = in_line(4)
    line_store.put(given)
    for minutes in (4, 3, 2):
        reserve(line_store, 1, timeout_ms=minutes * MINUTE)
    # When all have ended, then the old order holds
    assert peeked(line_store, now=NOW + 4 * MINUTE) == [each.message_id for each in given]
    assert ids(reserve(line_store, 4, now=NOW + 4 * MINUTE)) == [each.message_id for each in given]


def test_a_delayed_message_is_available_at_its_time(line_store: LineStore) -> None:
    # Given a message delayed by a minute, put before one without delay
    (delayed,) = in_line(1, due_at=NOW + MINUTE)
    (prompt,) = in_line(1)
    line_store.put([delayed, prompt])
    # Then first only the prompt one is there, though both count
    assert peeked(line_store) == [prompt.message_id]
    assert line_store.size(PROJECT, LINE, NOW) == 2
    assert line_store.get(PROJECT, LINE, delayed.message_id, NOW) == LineMessage(message=delayed)
    # When its time has come, then it has its old place
    assert peeked(line_store, now=NOW + MINUTE - 1) == [prompt.message_id]
    assert ids(reserve(line_store, 2, now=NOW + MINUTE)) == [delayed.message_id, prompt.message_id]


def test_peeking_reserves_nothing(line_store: LineStore) -> None:
    given = in_line(3)
    line_store.put(given)
    found = line_store.peek(PROJECT, LINE, count=2, now=NOW)
    assert found == [LineMessage(message=each) for each in given[:2]]
    assert ids(reserve(line_store, 3)) == [each.message_id for each in given]
    assert peeked(line_store) == []


def test_peeking_shows_an_ended_reservation_as_free(line_store: LineStore) -> None:
    line_store.put(in_line(1))
    reserve(line_store)
    (found,) = line_store.peek(PROJECT, LINE, count=1, now=NOW + MINUTE)
    assert (found.reserved_count, found.reservation_id, found.reserved_until) == (1, None, 0)


def test_getting_one_shows_its_reservation_while_it_lasts(line_store: LineStore) -> None:
    # Given a reserved message
    line_store.put(in_line(1))
    (held,) = reserve(line_store)
    message_id = held.message.message_id
    # Then it is shown as held, later as free, and another id as nothing
    assert line_store.get(PROJECT, LINE, message_id, NOW) == held
    assert line_store.get(PROJECT, LINE, message_id, NOW + MINUTE) == replace(
        held, reservation_id=None, reserved_until=0
    )
    assert line_store.get(PROJECT, LINE, "1", NOW) is None


def test_expired_messages_are_gone_for_everybody(line_store: LineStore) -> None:
    # Given 30 messages that expire in a minute, one that is held and does too, and one that lasts
    (held,) = in_line(1, expires_at=NOW + MINUTE)
    line_store.put([held])
    (reserved,) = reserve(line_store, timeout_ms=10 * MINUTE)
    line_store.put(in_line(30, expires_at=NOW + MINUTE))
    (lasting,) = in_line(1)
    line_store.put([lasting])
    assert line_store.size(PROJECT, LINE, NOW + MINUTE - 1) == 32
    # When the minute is over
    later = NOW + MINUTE
    # Then only the lasting one is left
    assert line_store.size(PROJECT, LINE, later) == 1
    assert peeked(line_store, now=later) == [lasting.message_id]
    assert line_store.get(PROJECT, LINE, held.message_id, later) is None
    with pytest.raises(MessageNotFound):
        line_store.delete(PROJECT, LINE, held.message_id, reservation_id=held_id(reserved), now=later)
    assert ids(reserve(line_store, 5, now=later)) == [lasting.message_id]
    assert line_store.size(PROJECT, LINE, later) == 1


def test_touching_renews_the_reservation_and_ends_the_old_one(line_store: LineStore) -> None:
    # Given a reserved message
    line_store.put(in_line(1))
    (held,) = reserve(line_store)
    message_id = held.message.message_id

    def touch(reservation_id: str, now: int) -> str:
        return line_store.touch(
            PROJECT, LINE, message_id, reservation_id=reservation_id, timeout_ms=2 * MINUTE, now=now
        )

    # When it is touched
    renewed = touch(held_id(held), NOW + MINUTE - 1)
    # Then a new reservation lasts from then, the old one is dead, and the count rose
    assert renewed != held.reservation_id
    found = line_store.get(PROJECT, LINE, message_id, NOW + MINUTE)
    assert found == LineMessage(
        message=held.message, reserved_count=2, reservation_id=renewed, reserved_until=NOW + 3 * MINUTE - 1
    )
    with pytest.raises(Forbidden):
        touch(held_id(held), NOW + MINUTE)
    assert reserve(line_store, now=NOW + 2 * MINUTE) == []
    # And it can be touched again, but not when it is over, and no other message at all
    assert touch(renewed, NOW + MINUTE) != renewed
    with pytest.raises(Forbidden):
        touch(renewed, NOW + 3 * MINUTE)
    with pytest.raises(MessageNotFound):
        line_store.touch(PROJECT, LINE, "1", reservation_id=renewed, timeout_ms=MINUTE, now=NOW)


def test_a_released_message_goes_back_to_the_front(line_store: LineStore) -> None:
    # Given both messages reserved
    given = in_line(2)
    line_store.put(given)
    held = reserve(line_store, 2)
    # When the second, then the first is released, then they are back in the old order
    for each in reversed(held):
        line_store.release(
            PROJECT, LINE, each.message.message_id, reservation_id=held_id(each), delay_ms=0, now=NOW + 1
        )
    assert peeked(line_store, now=NOW + 1) == [each.message_id for each in given]
    # And the old reservation is dead
    with pytest.raises(Forbidden):
        line_store.delete(PROJECT, LINE, given[0].message_id, reservation_id=held_id(held[0]), now=NOW + 1)
    with pytest.raises(Forbidden):
        line_store.release(PROJECT, LINE, given[0].message_id, reservation_id=held_id(held[0]), delay_ms=0, now=NOW + 1)


def test_a_message_released_with_a_delay_comes_back_after_it(line_store: LineStore) -> None:
    given = in_line(2)
    line_store.put(given)
    (held,) = reserve(line_store)
    line_store.release(PROJECT, LINE, given[0].message_id, reservation_id=held_id(held), delay_ms=5_000, now=NOW)
    found = line_store.get(PROJECT, LINE, given[0].message_id, NOW)
    assert found == LineMessage(message=given[0], reserved_count=1)
    assert peeked(line_store, now=NOW + 4_999) == [given[1].message_id]
    assert peeked(line_store, now=NOW + 5_000) == [each.message_id for each in given]


def test_releasing_after_the_end_is_refused(line_store: LineStore) -> None:
    line_store.put(in_line(1))
    (held,) = reserve(line_store)
    message_id = held.message.message_id
    with pytest.raises(Forbidden):
        line_store.release(PROJECT, LINE, message_id, reservation_id=held_id(held), delay_ms=0, now=NOW + MINUTE)
    with pytest.raises(MessageNotFound):
        line_store.release(PROJECT, LINE, "1", reservation_id=held_id(held), delay_ms=0, now=NOW)


@pytest.mark.parametrize(("at_most", "told"), [(None, 7), (1, 1), (6, 6), (7, 7), (50, 7)])
def test_counting_ends_where_it_is_told_to(line_store: LineStore, at_most: int | None, told: int) -> None:
    # Given seven messages, some of them reserved, and expired ones among them
    line_store.put(in_line(4))
    line_store.put(in_line(5, expires_at=NOW))
    line_store.put(in_line(3))
    reserve(line_store, 2)
    assert line_store.size(PROJECT, LINE, NOW, at_most=at_most) == told


def test_a_reservation_nobody_saw_does_not_count(line_store: LineStore) -> None:
    # Given a message reserved twice, the second time for an answer that had no room for it
    given = in_line(2)
    line_store.put(given)
    reserve(line_store, 1)
    later = NOW + MINUTE
    first, second = reserve(line_store, 2, now=later)
    for each in (first, second):
        line_store.release(
            PROJECT,
            LINE,
            each.message.message_id,
            reservation_id=held_id(each),
            delay_ms=0,
            now=later,
            counted=False,
        )
    # Then both are back in order, with the counts they had
    assert [each.reserved_count for each in line_store.peek(PROJECT, LINE, count=2, now=later)] == [1, 0]
    again = reserve(line_store, 2, now=later)
    assert ids(again) == [each.message_id for each in given]
    assert [each.reserved_count for each in again] == [2, 1]


def test_deleting_a_reserved_message_takes_its_reservation(line_store: LineStore) -> None:
    # Given a reserved message
    line_store.put(in_line(1))
    (held,) = reserve(line_store)
    message_id = held.message.message_id
    # When deleted without an id, or with a wrong one, then it stays
    with pytest.raises(Invalid, match="A reservation_id is required"):
        line_store.delete(PROJECT, LINE, message_id, reservation_id=None, now=NOW)
    with pytest.raises(Forbidden):
        line_store.delete(PROJECT, LINE, message_id, reservation_id="0" * 32, now=NOW)
    assert line_store.size(PROJECT, LINE, NOW) == 1
    # When deleted with the right one, then it is gone
    line_store.delete(PROJECT, LINE, message_id, reservation_id=held_id(held), now=NOW)
    assert line_store.size(PROJECT, LINE, NOW) == 0
    with pytest.raises(MessageNotFound):
        line_store.delete(PROJECT, LINE, message_id, reservation_id=held_id(held), now=NOW)


def test_a_timed_out_reservation_deletes_nothing(line_store: LineStore) -> None:
    # Given a reservation that ended
    line_store.put(in_line(1))
    (held,) = reserve(line_store)
    message_id = held.message.message_id
    # When its holder deletes, then that is refused
    with pytest.raises(Forbidden):
        line_store.delete(PROJECT, LINE, message_id, reservation_id=held_id(held), now=NOW + MINUTE)
    # When anybody deletes the free message, then it is gone
    line_store.delete(PROJECT, LINE, message_id, reservation_id=None, now=NOW + MINUTE)
    assert line_store.get(PROJECT, LINE, message_id, NOW + MINUTE) is None


@pytest.mark.parametrize("due_at", [NOW, NOW + MINUTE])
def test_a_free_message_is_deleted_without_a_reservation(line_store: LineStore, due_at: int) -> None:
    (given,) = in_line(1, due_at=due_at)
    line_store.put([given])
    with pytest.raises(Forbidden):
        line_store.delete(PROJECT, LINE, given.message_id, reservation_id="0" * 32, now=NOW)
    line_store.delete(PROJECT, LINE, given.message_id, reservation_id=None, now=NOW)
    assert line_store.size(PROJECT, LINE, NOW) == 0


def test_a_message_of_the_hub_is_put_once_for_its_cause(line_store: LineStore) -> None:
    # Given a message moved here with its count
    (given,) = in_line(1, cause="one")
    assert line_store.put_once(given, reserved_count=4) is Once.STORED
    # When it is made again, then it counts as made for the same cause only
    assert line_store.put_once(replace(given, body=b"later")) is Once.KNOWN
    assert line_store.put_once(replace(given, cause="two")) is Once.TAKEN
    # Then the first one is there, and its count goes on
    (held,) = reserve(line_store)
    assert held.message == given
    assert held.reserved_count == 5


def test_consumers_at_the_same_time_never_get_the_same_message(line_store: LineStore) -> None:
    # Given 40 messages, half of them back from reservations that ended
    given = in_line(40)
    line_store.put(given)
    reserve(line_store, 20)
    # When four consumers take all of them, five at a time
    later = NOW + MINUTE
    with ThreadPoolExecutor(max_workers=4) as pool:
        calls = [pool.submit(reserve, line_store, 5, now=later) for _ in range(12)]
        taken = [each for call in calls for each in call.result()]
    taken += reserve(line_store, 100, now=later)
    # Then each was handed out once, and none is left
    assert sorted(ids(taken)) == [each.message_id for each in given]
    assert reserve(line_store, 1, now=later) == []
