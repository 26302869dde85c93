"""Ids, placement of bodies, and messages accepted only once: with a sink that the test controls."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.contract.samples import message
from tests.fakes import FakeClock
from tests.fakes.body_store import FakeBodyStore
from tests.fakes.large_bodies import large_body

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.ids import derived_message_id
from pushhub.engine.acceptance.accept import ID_ROUNDS, INLINE_BODY_LIMIT, Accept, AcceptBodies, Ids, PlacedBody
from pushhub.engine.model.deflated import plain, stored_size
from pushhub.engine.model.message import BodyRef, Message
from pushhub.engine.ports import Once


class Sink:
    """Accepts messages, unless the test says that their ids are taken."""

    def __init__(self, taken: int = 0, then: Once = Once.STORED) -> None:
        self.taken = taken
        self.then = then
        self.offered: list[list[str]] = []

    def accept(self, messages: Sequence[Message]) -> None:
        self.offered.append([each.message_id for each in messages])
        if len(self.offered) <= self.taken:
            raise Conflict("taken")

    def accept_once(self, message: Message) -> Once:
        self.offered.append([message.message_id])
        return Once.TAKEN if len(self.offered) <= self.taken else self.then


class Workers:
    """Gives each process a number of its own."""

    def __init__(self) -> None:
        self.given = 0

    def next_worker(self) -> int:
        self.given += 1
        return 7


def a_message(message_id: str) -> Message:
    ids = {"project": "p", "queue": "q", "queue_uid": "u", "message_id": message_id}
    return message(**ids, body=b"x", accepted_at=1, due_at=1, expires_at=2, subscriber_ids=())


def accepting() -> tuple[Accept, Workers]:
    workers = Workers()
    return Accept(Ids(workers=workers, clock=FakeClock())), workers


def test_ids_rise_and_a_process_asks_for_its_number_once() -> None:
    accept, workers = accepting()
    assert workers.given == 0
    ids = [accept.next_id() for _ in range(100)]
    assert ids == sorted({*ids})
    assert {len(each) for each in ids} == {19}
    assert workers.given == 1


def test_large_bodies_lie_in_one_object_and_small_ones_with_their_messages() -> None:
    clock, store = FakeClock(), FakeBodyStore()
    accept = AcceptBodies(Ids(workers=Workers(), clock=clock), bodies=store, clock=clock)
    small, large = large_body(INLINE_BODY_LIMIT), large_body(INLINE_BODY_LIMIT + 1)
    placed = accept.placed("p", [large, small, large + b"2"])
    [key] = store.objects
    assert placed == [
        PlacedBody(inline=None, ref=BodyRef(key=key, offset=0, length=8193), size=8193),
        PlacedBody(inline=small, ref=None, size=8192),
        PlacedBody(inline=None, ref=BodyRef(key=key, offset=8193, length=8194), size=8194),
    ]
    assert key.startswith(f"bodies/p/{FakeClock().now()}/")
    # And if none is large, nothing is written
    assert accept.placed("p", [small]) == [PlacedBody(inline=small, ref=None, size=8192)]
    assert [*store.objects] == [key]


def test_a_large_body_that_compressed_is_small_lies_with_its_message() -> None:
    # Given a large body that takes little room once it is compressed, and one that is too large to try
    clock, store = FakeClock(), FakeBodyStore()
    accept = AcceptBodies(Ids(workers=Workers(), clock=clock), bodies=store, clock=clock)
    body, larger = b"many words " * 3_000, b"many words " * 10_000
    # When they are placed
    [one, other] = accept.placed("p", [body, larger])
    # Then the first is kept as it is stored, and nothing of it is written elsewhere
    assert one.inline is not None
    assert stored_size(one.inline) < INLINE_BODY_LIMIT
    assert (plain(one.inline), one.ref, one.size) == (body, None, len(body))
    assert (other.inline, other.size) == (None, len(larger))
    assert [*store.objects.values()] == [larger]


@pytest.mark.parametrize("taken", [0, 1, ID_ROUNDS - 1])
def test_when_an_id_is_taken_all_are_made_anew(taken: int) -> None:
    accept, _ = accepting()
    sink = Sink(taken)
    messages = accept.new(sink, 3, lambda ids: [a_message(each) for each in ids])
    assert len(sink.offered) == taken + 1
    assert [each.message_id for each in messages] == sink.offered[-1]
    offered = [each for ids in sink.offered for each in ids]
    assert len({*offered}) == len(offered) == 3 * (taken + 1)


def test_when_ids_never_end_to_be_taken_nothing_was_accepted() -> None:
    accept, _ = accepting()
    with pytest.raises(Unavailable, match=r"^finding free message ids"):
        accept.new(Sink(ID_ROUNDS), 1, lambda ids: [a_message(each) for each in ids])


@pytest.mark.parametrize("then", [Once.STORED, Once.KNOWN])
def test_what_the_hub_makes_has_the_first_id_of_its_cause_that_is_free(then: Once) -> None:
    accept, _ = accepting()
    sink = Sink(2, then)
    message, once = accept.once(sink, a_message, cause="a cause", at=1_795_000_000_000)
    assert once is then
    ids = [derived_message_id(1_795_000_000_000, "a cause", bump) for bump in range(3)]
    assert sink.offered == [[each] for each in ids]
    assert message == a_message(ids[2])
