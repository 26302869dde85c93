"""What every store of pull queues does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from tests.contract.conftest import PullEnvironments
from tests.contract.mortal import Killed
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT, full_message, message
from tests.fakes import FakeClock

from pushhub.base.errors import Forbidden, Invalid, MessageNotFound
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.message import Message
from pushhub.engine.ports import Once
from pushhub.ironmq.ports import PullMessage, PullStore

LINE = "f0e1d2c3b4a5"
MINUTE = 60_000


def in_queue(count: int, **changes: object) -> list[Message]:
    fields: dict[str, object] = {"queue_uid": LINE, "subscriber_ids": ()}
    return [message(**(fields | changes)) for _ in range(count)]


def reserve(store: PullStore, count: int = 1, *, now: int = NOW, timeout_ms: int = MINUTE) -> list[PullMessage]:
    return store.reserve(PROJECT, LINE, count=count, timeout_ms=timeout_ms, now=now)


def ids(found: list[PullMessage]) -> list[str]:
    return [each.message.message_id for each in found]


def peeked(store: PullStore, count: int = 100, now: int = NOW) -> list[str]:
    return ids(store.peek(PROJECT, LINE, count=count, now=now))


def held_id(found: PullMessage) -> str:
    assert found.reservation_id is not None
    return found.reservation_id


@pytest.mark.parametrize("count", [1, 3, 101])
def test_first_in_first_out(pull_store: PullStore, count: int) -> None:
    # Given messages put in one call (which is repeated)
    given = in_queue(count)
    pull_store.put(given)
    pull_store.put(given)
    # When reserved in two parts
    taken = reserve(pull_store, 1) + reserve(pull_store, 100)
    # Then they come in the order in which they were put, each once, with new reservations
    assert [each.message for each in taken] == given
    assert {each.reserved_count for each in taken} == {1}
    assert {each.reserved_until for each in taken} == {NOW + MINUTE}
    assert len({held_id(each) for each in taken}) == count
    assert all(len(held_id(each)) == 32 for each in taken)
    assert reserve(pull_store) == []


def test_every_field_of_a_message_travels(pull_store: PullStore) -> None:
    given = full_message(queue_uid=LINE, due_at=NOW)
    pull_store.put([given])
    assert pull_store.get(MessageKey(PROJECT, LINE, given.message_id), NOW) == PullMessage(message=given)
    assert [each.message for each in reserve(pull_store)] == [given]


def test_queues_are_apart(pull_store: PullStore) -> None:
    given = in_queue(1)
    pull_store.put(given)
    assert pull_store.reserve(OTHER_PROJECT, LINE, count=1, timeout_ms=MINUTE, now=NOW) == []
    assert pull_store.reserve(PROJECT, "another00000", count=1, timeout_ms=MINUTE, now=NOW) == []
    assert pull_store.size(PROJECT, "another00000", NOW) == 0
    assert pull_store.get(MessageKey(PROJECT, "another00000", given[0].message_id), NOW) is None


def test_putting_again_does_not_free_a_reserved_message(pull_store: PullStore) -> None:
    # Given a reserved message, one of two and one alone
    pair, alone = in_queue(2), in_queue(1)
    pull_store.put(pair)
    pull_store.put(alone)
    assert len(reserve(pull_store, 3)) == 3
    # When the producer's calls are repeated, then no message comes back
    pull_store.put(pair)
    pull_store.put(alone)
    assert reserve(pull_store, 3) == []
    # And they count once, at the latest when somebody has asked for messages some time later
    assert reserve(pull_store, 3, now=NOW + 3_000) == []
    assert pull_store.size(PROJECT, LINE, NOW) == 3


def test_a_timed_out_message_goes_back_to_the_front(pull_store: PullStore) -> None:
    # Given the first of three messages reserved
    given = in_queue(3)
    pull_store.put(given)
    (held,) = reserve(pull_store)
    # Then it is not available until the reservation ends
    assert ids(reserve(pull_store, 1, now=NOW + MINUTE - 1, timeout_ms=2 * MINUTE)) == [given[1].message_id]
    # When its reservation ends, then it comes before the ones behind it, and its count is one higher
    again = reserve(pull_store, 2, now=NOW + MINUTE)
    assert ids(again) == [given[0].message_id, given[2].message_id]
    assert [each.reserved_count for each in again] == [2, 1]
    assert held_id(again[0]) != held_id(held)


def test_timed_out_messages_are_in_order_whatever_the_order_of_their_ends(pull_store: PullStore) -> None:
    # Given four messages reserved so that the first one's reservation ends last
    given = in_queue(4)
    pull_store.put(given)
    for minutes in (4, 3, 2):
        reserve(pull_store, 1, timeout_ms=minutes * MINUTE)
    # When all have ended, then they come in their old order
    assert peeked(pull_store, now=NOW + 4 * MINUTE) == [each.message_id for each in given]
    assert ids(reserve(pull_store, 4, now=NOW + 4 * MINUTE)) == [each.message_id for each in given]


def test_a_delayed_message_is_available_at_its_time(pull_store: PullStore) -> None:
    # Given a message delayed by a minute, put before one without delay
    (delayed,) = in_queue(1, due_at=NOW + MINUTE)
    (prompt,) = in_queue(1)
    pull_store.put([delayed, prompt])
    # Then at first only the other one is available, though both count
    assert peeked(pull_store) == [prompt.message_id]
    assert pull_store.size(PROJECT, LINE, NOW) == 2
    assert pull_store.get(MessageKey(PROJECT, LINE, delayed.message_id), NOW) == PullMessage(message=delayed)
    # When its time has come, then it has its old place
    assert peeked(pull_store, now=NOW + MINUTE - 1) == [prompt.message_id]
    assert ids(reserve(pull_store, 2, now=NOW + MINUTE)) == [delayed.message_id, prompt.message_id]


def test_peeking_reserves_nothing(pull_store: PullStore) -> None:
    given = in_queue(3)
    pull_store.put(given)
    found = pull_store.peek(PROJECT, LINE, count=2, now=NOW)
    assert found == [PullMessage(message=each) for each in given[:2]]
    assert ids(reserve(pull_store, 3)) == [each.message_id for each in given]
    assert peeked(pull_store) == []


def test_peeking_shows_an_ended_reservation_as_free(pull_store: PullStore) -> None:
    pull_store.put(in_queue(1))
    reserve(pull_store)
    (found,) = pull_store.peek(PROJECT, LINE, count=1, now=NOW + MINUTE)
    assert (found.reserved_count, found.reservation_id, found.reserved_until) == (1, None, 0)


def test_getting_one_shows_its_reservation_while_it_lasts(pull_store: PullStore) -> None:
    # Given a reserved message
    pull_store.put(in_queue(1))
    (held,) = reserve(pull_store)
    message_id = held.message.message_id
    # Then it is shown as reserved, later as free, and an unknown id is not found
    assert pull_store.get(MessageKey(PROJECT, LINE, message_id), NOW) == held
    assert pull_store.get(MessageKey(PROJECT, LINE, message_id), NOW + MINUTE) == replace(
        held, reservation_id=None, reserved_until=0
    )
    assert pull_store.get(MessageKey(PROJECT, LINE, "1"), NOW) is None


def test_expired_messages_are_gone_for_everybody(pull_store: PullStore) -> None:
    # Given 30 messages and a reserved one that expire in a minute, and one that lasts
    (held,) = in_queue(1, expires_at=NOW + MINUTE)
    pull_store.put([held])
    (reserved,) = reserve(pull_store, timeout_ms=10 * MINUTE)
    pull_store.put(in_queue(30, expires_at=NOW + MINUTE))
    (lasting,) = in_queue(1)
    pull_store.put([lasting])
    assert pull_store.size(PROJECT, LINE, NOW + MINUTE - 1) == 32
    # When the minute is over
    later = NOW + MINUTE
    # Then only the lasting one is left
    assert pull_store.size(PROJECT, LINE, later) == 1
    assert peeked(pull_store, now=later) == [lasting.message_id]
    assert pull_store.get(MessageKey(PROJECT, LINE, held.message_id), later) is None
    with pytest.raises(MessageNotFound):
        pull_store.delete(MessageKey(PROJECT, LINE, held.message_id), reservation_id=held_id(reserved), now=later)
    assert ids(reserve(pull_store, 5, now=later)) == [lasting.message_id]
    assert pull_store.size(PROJECT, LINE, later) == 1


def test_touching_renews_the_reservation_and_ends_the_old_one(pull_store: PullStore) -> None:
    # Given a reserved message
    pull_store.put(in_queue(1))
    (held,) = reserve(pull_store)
    message_id = held.message.message_id

    def touch(reservation_id: str, now: int) -> str:
        return pull_store.touch(
            MessageKey(PROJECT, LINE, message_id), reservation_id=reservation_id, timeout_ms=2 * MINUTE, now=now
        )

    # When it is touched
    renewed = touch(held_id(held), NOW + MINUTE - 1)
    # Then a new reservation begins, the old one is invalid, and the count has risen
    assert renewed != held.reservation_id
    found = pull_store.get(MessageKey(PROJECT, LINE, message_id), NOW + MINUTE)
    assert found == PullMessage(
        message=held.message, reserved_count=2, reservation_id=renewed, reserved_until=NOW + 3 * MINUTE - 1
    )
    with pytest.raises(Forbidden):
        touch(held_id(held), NOW + MINUTE)
    assert reserve(pull_store, now=NOW + 2 * MINUTE) == []
    # And it can be touched again, but not after its end, and no other message can be touched with it
    assert touch(renewed, NOW + MINUTE) != renewed
    with pytest.raises(Forbidden):
        touch(renewed, NOW + 3 * MINUTE)
    with pytest.raises(MessageNotFound):
        pull_store.touch(MessageKey(PROJECT, LINE, "1"), reservation_id=renewed, timeout_ms=MINUTE, now=NOW)


def test_a_released_message_goes_back_to_the_front(pull_store: PullStore) -> None:
    # Given both messages reserved
    given = in_queue(2)
    pull_store.put(given)
    held = reserve(pull_store, 2)
    # When the second, then the first is released, then they are back in the old order
    for each in reversed(held):
        pull_store.release(
            MessageKey(PROJECT, LINE, each.message.message_id), reservation_id=held_id(each), delay_ms=0, now=NOW + 1
        )
    assert peeked(pull_store, now=NOW + 1) == [each.message_id for each in given]
    # And the old reservation is invalid
    with pytest.raises(Forbidden):
        pull_store.delete(MessageKey(PROJECT, LINE, given[0].message_id), reservation_id=held_id(held[0]), now=NOW + 1)
    with pytest.raises(Forbidden):
        pull_store.release(
            MessageKey(PROJECT, LINE, given[0].message_id), reservation_id=held_id(held[0]), delay_ms=0, now=NOW + 1
        )


def test_a_message_released_with_a_delay_comes_back_after_it(pull_store: PullStore) -> None:
    given = in_queue(2)
    pull_store.put(given)
    (held,) = reserve(pull_store)
    pull_store.release(
        MessageKey(PROJECT, LINE, given[0].message_id), reservation_id=held_id(held), delay_ms=5_000, now=NOW
    )
    found = pull_store.get(MessageKey(PROJECT, LINE, given[0].message_id), NOW)
    assert found == PullMessage(message=given[0], reserved_count=1)
    assert peeked(pull_store, now=NOW + 4_999) == [given[1].message_id]
    assert peeked(pull_store, now=NOW + 5_000) == [each.message_id for each in given]


def test_releasing_after_the_end_is_refused(pull_store: PullStore) -> None:
    pull_store.put(in_queue(1))
    (held,) = reserve(pull_store)
    message_id = held.message.message_id
    with pytest.raises(Forbidden):
        pull_store.release(
            MessageKey(PROJECT, LINE, message_id), reservation_id=held_id(held), delay_ms=0, now=NOW + MINUTE
        )
    with pytest.raises(MessageNotFound):
        pull_store.release(MessageKey(PROJECT, LINE, "1"), reservation_id=held_id(held), delay_ms=0, now=NOW)


@pytest.mark.parametrize(("at_most", "expected"), [(None, 7), (1, 1), (6, 6), (7, 7), (50, 7)])
def test_counting_ends_where_it_is_told_to(pull_store: PullStore, at_most: int | None, expected: int) -> None:
    # Given seven messages, some of them reserved, and expired ones among them
    pull_store.put(in_queue(4))
    pull_store.put(in_queue(5, expires_at=NOW))
    pull_store.put(in_queue(3))
    reserve(pull_store, 2)
    assert pull_store.size(PROJECT, LINE, NOW, at_most=at_most) == expected


def test_a_reservation_nobody_saw_does_not_count(pull_store: PullStore) -> None:
    # Given a message reserved twice, the second time for an answer that had no room for it
    given = in_queue(2)
    pull_store.put(given)
    reserve(pull_store, 1)
    later = NOW + MINUTE
    first, second = reserve(pull_store, 2, now=later)
    for each in (first, second):
        pull_store.release(
            MessageKey(PROJECT, LINE, each.message.message_id),
            reservation_id=held_id(each),
            delay_ms=0,
            now=later,
            counted=False,
        )
    # Then both are back in order, with the counts they had
    assert [each.reserved_count for each in pull_store.peek(PROJECT, LINE, count=2, now=later)] == [1, 0]
    again = reserve(pull_store, 2, now=later)
    assert ids(again) == [each.message_id for each in given]
    assert [each.reserved_count for each in again] == [2, 1]


def test_deleting_a_reserved_message_takes_its_reservation(pull_store: PullStore) -> None:
    # Given a reserved message
    pull_store.put(in_queue(1))
    (held,) = reserve(pull_store)
    message_id = held.message.message_id
    # When deleted without a reservation id, or with a wrong one, then it stays
    with pytest.raises(Invalid, match="A reservation_id is required"):
        pull_store.delete(MessageKey(PROJECT, LINE, message_id), reservation_id=None, now=NOW)
    with pytest.raises(Forbidden):
        pull_store.delete(MessageKey(PROJECT, LINE, message_id), reservation_id="0" * 32, now=NOW)
    assert pull_store.size(PROJECT, LINE, NOW) == 1
    # When deleted with the right one, then it is gone
    pull_store.delete(MessageKey(PROJECT, LINE, message_id), reservation_id=held_id(held), now=NOW)
    assert pull_store.size(PROJECT, LINE, NOW) == 0
    with pytest.raises(MessageNotFound):
        pull_store.delete(MessageKey(PROJECT, LINE, message_id), reservation_id=held_id(held), now=NOW)


def test_a_timed_out_reservation_deletes_nothing(pull_store: PullStore) -> None:
    # Given a reservation that ended
    pull_store.put(in_queue(1))
    (held,) = reserve(pull_store)
    message_id = held.message.message_id
    # When its former holder deletes it, then that is refused
    with pytest.raises(Forbidden):
        pull_store.delete(MessageKey(PROJECT, LINE, message_id), reservation_id=held_id(held), now=NOW + MINUTE)
    # When anybody deletes the free message, then it is gone
    pull_store.delete(MessageKey(PROJECT, LINE, message_id), reservation_id=None, now=NOW + MINUTE)
    assert pull_store.get(MessageKey(PROJECT, LINE, message_id), NOW + MINUTE) is None


@pytest.mark.parametrize("due_at", [NOW, NOW + MINUTE])
def test_a_free_message_is_deleted_without_a_reservation(pull_store: PullStore, due_at: int) -> None:
    (given,) = in_queue(1, due_at=due_at)
    pull_store.put([given])
    with pytest.raises(Forbidden):
        pull_store.delete(MessageKey(PROJECT, LINE, given.message_id), reservation_id="0" * 32, now=NOW)
    pull_store.delete(MessageKey(PROJECT, LINE, given.message_id), reservation_id=None, now=NOW)
    assert pull_store.size(PROJECT, LINE, NOW) == 0


def test_a_message_of_the_hub_is_put_once_for_its_cause(pull_store: PullStore) -> None:
    # Given a message moved here with its reservation count
    (given,) = in_queue(1, cause="one")
    assert pull_store.put_once(given, reserved_count=4) is Once.STORED
    # When it is put again, then it is known for the same cause only
    assert pull_store.put_once(replace(given, body=b"later")) is Once.KNOWN
    assert pull_store.put_once(replace(given, cause="two")) is Once.TAKEN
    # Then the first one is there, and its count continues
    (held,) = reserve(pull_store)
    assert held.message == given
    assert held.reserved_count == 5


def test_consumers_at_the_same_time_never_get_the_same_message(pull_store: PullStore) -> None:
    # Given 40 messages, half of which are back after their reservations ended
    given = in_queue(40)
    pull_store.put(given)
    reserve(pull_store, 20)
    # When four consumers take all of them, five at a time
    later = NOW + MINUTE
    with ThreadPoolExecutor(max_workers=4) as pool:
        calls = [pool.submit(reserve, pull_store, 5, now=later) for _ in range(12)]
        taken = [each for call in calls for each in call.result()]
    taken += reserve(pull_store, 100, now=later)
    # Then each was handed out once, and none is left
    assert sorted(ids(taken)) == [each.message_id for each in given]
    assert reserve(pull_store, 1, now=later) == []


class Consumers:
    """Environments in which requests of producers and consumers run, and die.

    Attributes:
        posted: Ids of all messages that were posted.
        held: Reservations that consumers know of.
    """

    def __init__(self, environments: PullEnvironments, clock: FakeClock, seed: int) -> None:
        self._environments = environments
        self._clock = clock
        self._random = Random(seed)
        self._stores = [environments.start(None) for _ in range(3)]
        self.posted: list[str] = []
        self.held: list[PullMessage] = []

    def act(self) -> None:
        """Carry out a request in an environment; a third of them are killed in the middle of it."""
        random, now = self._random, self._clock.now()
        if random.random() < 0.2 or not self.posted:
            given = in_queue(random.randint(1, 5), due_at=now, accepted_at=now, expires_at=now + 10_000 * MINUTE)
            self._stores[0].put(given)
            self.posted += [each.message_id for each in given]
            return
        killed = random.random() < 0.35
        store = self._environments.start(random.randint(1, 9)) if killed else random.choice(self._stores)
        with suppress(Killed, Forbidden, MessageNotFound):
            self._consume(store, now)
        self._clock.advance(ms=random.choice((5, 50, 500, 3_000)))

    def _consume(self, store: PullStore, now: int) -> None:
        random = self._random
        choice = random.random()
        if choice < 0.4 or not self.held:
            timeout_ms = random.choice((1_000, 10 * MINUTE, 100 * MINUTE))
            self.held += reserve(store, random.randint(1, 4), now=now, timeout_ms=timeout_ms)
            return
        each = self.held.pop(random.randrange(len(self.held)))
        key = MessageKey(PROJECT, LINE, each.message.message_id)
        if choice < 0.8:
            store.delete(key, reservation_id=held_id(each), now=now)
        elif choice < 0.9:
            store.release(
                key, reservation_id=held_id(each), delay_ms=random.choice((0, 20 * MINUTE)), now=now, counted=False
            )
        else:
            renewed = store.touch(key, reservation_id=held_id(each), timeout_ms=50 * MINUTE, now=now)
            self.held.append(replace(each, reservation_id=renewed))

    def stored(self) -> list[str]:
        """The messages that are there."""
        keys = [MessageKey(PROJECT, LINE, each) for each in self.posted]
        return [key.message_id for key in keys if self._stores[0].get(key, self._clock.now())]


@pytest.mark.parametrize("seed", range(4))
def test_whoever_dies_sizes_are_exact_seconds_later(
    pull_environments: PullEnvironments, clock: FakeClock, seed: int
) -> None:
    # Given consumers that compete, and that are killed at any moment
    consumers = Consumers(pull_environments, clock, seed)
    for _ in range(60):
        consumers.act()
    # When it has been quiet for seconds, while reservations last for hours, and nobody polls
    clock.advance(seconds=5)
    # Then as many are counted as there are, by anybody, and are when one is counted no further than necessary
    left = consumers.stored()
    size = pull_environments.start(None).size
    assert size(PROJECT, LINE, clock.now(), exact=True) == len(left)
    assert size(PROJECT, LINE, clock.now(), at_most=3, exact=True) == min(3, len(left))
    # When what is left is deleted by somebody who is killed right after each deletion took effect
    clock.advance(seconds=2 * 3_600)
    for message_id in left:
        with suppress(Killed):
            pull_environments.start(1).delete(
                MessageKey(PROJECT, LINE, message_id), reservation_id=None, now=clock.now()
            )
    # Then none is counted
    assert consumers.stored() == []
    clock.advance(seconds=5)
    assert size(PROJECT, LINE, clock.now(), exact=True) == 0
