"""The messages table is lost: whatever records and the bodies bucket still contain continues, the rest is reported, and
nothing arrives twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.filled import Filler
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes.large_bodies import large_body

from pushhub.base.errors import Unreadable
from pushhub.engine.model.delivery import Attempt, Delivery, DeliveryState, close
from pushhub.engine.model.keys import DeliveryKey, MessageKey
from pushhub.engine.model.message import Message
from pushhub.engine.model.record import DeliveryRecord
from pushhub.engine.model.records import record_of_acceptance, record_of_delivery
from pushhub.engine.records.rebuild import BODY_LOST, Rebuild, Rebuilt

A, B = "https://a.example/in", "https://b.example/in"
LARGE = large_body(9_000)
"""A body large enough for the bodies bucket."""
HOUR = 3600


def records(world: World, *ids: str, queue: str = "q") -> list[Mapping[str, Any]]:
    """What the records bucket holds of messages, as it is read back."""
    created: list[DeliveryRecord | None] = []
    for each in ids:
        message = world.messages.message(MessageKey(PROJECT, f"uid-{queue}", each))
        assert message is not None
        created.append(record_of_acceptance(message))
    before: dict[DeliveryKey, Delivery] = {}
    for saved in world.messages.saved:
        created.append(record_of_delivery(before.get(saved.key), saved, world.clock.now()))
        before[saved.key] = saved
    return [json.loads(json.dumps(each.as_fields())) for each in created if each is not None]


def lose(world: World) -> None:
    """Lose the table and everything that waited in the queues."""
    world.messages.lose()
    world.push_queue.purge()
    world.retry_queue.purge()


def lost_while_it_waits(url: str) -> tuple[World, list[Mapping[str, Any]]]:
    """A world that has lost a message while it waited for its second try, and its records."""
    world = World()
    world.make_queue("q", subscribers(url), retries=5, retries_delay=600)
    world.sender.script(url, 503, 200)
    [message_id] = world.post("q", LARGE)
    world.run(seconds=5)
    recorded = records(world, message_id)
    lose(world)
    return world, recorded


def rebuild(world: World, expected: list[Mapping[str, Any]], *, dry: bool = False) -> Rebuilt:
    rebuilding = Rebuild(messages=world.messages, bodies=world.ports.bodies, queues=world.config, clock=world.clock)
    return rebuilding.run(expected, dry=dry)


def test_what_was_still_owed_goes_on_and_what_arrived_does_not_arrive_again() -> None:
    # Given a message that only one of two subscribers has, and another one not yet sent to anyone
    world = World()
    world.make_queue("q", subscribers(A, B), retries=5, retries_delay=600)
    world.sender.script(B, 503, 200)
    [half] = world.post("q", LARGE)
    world.run(seconds=5)
    [delayed] = world.post("q", LARGE, delay_s=2 * HOUR)
    recorded = records(world, half, delayed)
    # When everything is lost and rebuilt
    lose(world)
    rebuilt = rebuild(world, recorded)
    # Then the rest arrives, complete and once
    assert (rebuilt.messages, rebuilt.resumed, rebuilt.lost) == (2, 3, 0)
    assert len(world.sender.requests_to(A)) == 1
    world.run(seconds=3 * HOUR)
    assert [each.body for each in world.sender.requests_to(A)] == [LARGE] * 2
    assert [each.body for each in world.sender.requests_to(B)] == [LARGE] * 3
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.DELIVERED}
    # And the headers, which are in no record, are reported as unknown
    assert {each.message_id for each in rebuilt.unknown} == {half, delayed}


def test_records_go_on_without_a_gap() -> None:
    world, recorded = lost_while_it_waits(B)
    rebuild(world, recorded)
    # Then that it waits again is a change of its own, the attempt before it is not told twice, and the next one has the
    # next number
    world.run(seconds=HOUR)
    [delivery] = world.messages.all_deliveries()
    restored = recorded[-1]["version"]
    changes = [(each.version, each.attempts) for each in world.messages.saved if each.version > restored]
    assert changes[0] == (restored + 1, 1)
    assert [version for version, _ in changes] == list(range(restored + 1, delivery.version + 1))
    assert (delivery.attempts, delivery.last and delivery.last.number) == (2, 2)


def test_an_attempt_comes_back_with_every_field_that_its_record_has() -> None:
    # Given a delivery that waits after an attempt of which everything is known that there may be
    world, (accepted, _) = lost_while_it_waits(A)
    [stood] = world.messages.saved
    seen = replace(Filler(seed=1, fixed={}).record(Attempt), number=1, poll=False, dialect="raw")
    attempt = record_of_delivery(None, replace(stood, last=seen), world.clock.now())
    assert attempt is not None
    # When it is rebuilt
    rebuild(world, [accepted, json.loads(json.dumps(attempt.as_fields()))])
    # Then it is as it was, but for what no record says
    [delivery] = world.messages.all_deliveries()
    assert delivery.last == replace(seen, span=None, answer="")


def test_a_body_that_lay_in_the_table_is_lost_and_its_deliveries_say_so() -> None:
    world = World()
    world.make_queue("q", subscribers(A, B), retries=5, retries_delay=600)
    world.sender.script(B, 503)
    [message_id] = world.post("q", b"small")
    world.run(seconds=5)
    recorded = records(world, message_id)
    lose(world)
    # When it is made again
    rebuilt = rebuild(world, recorded)
    # Then the owed deliveries are given up with the reason, and reported
    assert (rebuilt.messages, rebuilt.resumed, rebuilt.lost) == (0, 0, 1)
    states = {each.subscriber_id: (each.state, each.reason) for each in world.messages.all_deliveries()}
    assert states == {"s0": (DeliveryState.DELIVERED, ""), "s1": (DeliveryState.CANCELLED, BODY_LOST)}
    assert [(each.message_id, each.what[:8]) for each in rebuilt.unknown] == [(message_id, "its body")]
    # And every delivery that was owed has an end in the records
    closed = world.messages.saved[-1]
    stood = replace(closed, state=DeliveryState.RETRYING, settled_at=None, reason="", version=closed.version - 1)
    ended = record_of_delivery(stood, closed, world.clock.now())
    assert ended is not None
    assert (ended.kind, ended.reason, ended.version) == ("cancelled", BODY_LOST, recorded[-1]["version"] + 1)


@pytest.mark.parametrize("gone", ["object", "time"])
def test_a_body_that_left_the_bucket_and_a_message_whose_time_is_over_are_given_up(gone: str) -> None:
    world = World()
    world.make_queue("q", subscribers(A), retries=5, retries_delay=600)
    world.sender.script(A, 503)
    [message_id] = world.post("q", LARGE)
    world.run(seconds=5)
    recorded = records(world, message_id)
    lose(world)
    if gone == "object":
        world.ports.bodies.objects.clear()
    else:
        world.clock.advance(seconds=400 * 24 * HOUR)
    rebuilt = rebuild(world, recorded)
    [delivery] = world.messages.all_deliveries()
    if gone == "object":
        assert (rebuilt.lost, delivery.state, delivery.reason) == (1, DeliveryState.CANCELLED, BODY_LOST)
    else:
        assert (rebuilt.expired, delivery.state) == (1, DeliveryState.EXPIRED)


def test_what_waits_for_a_person_waits_on_and_a_poll_does_too() -> None:
    # Given a held delivery, and one that its endpoint is working on
    world = World()
    world.make_queue("q", subscribers(A, B), retries=5, retries_delay=600)
    world.sender.script(A, 503)
    world.sender.script(B, 503)
    [message_id] = world.post("q", LARGE)
    world.run(seconds=5)
    recorded = records(world, message_id)
    held = {**recorded[-1], "state": "held", "version": recorded[-1]["version"] + 1, "kind": "rescheduled"}
    held.pop("due_at")
    polling = next({**each, "state": "polling"} for each in recorded[1:] if each["delivery_id"] != held["delivery_id"])
    lose(world)
    rebuilt = rebuild(world, [*recorded, held, polling])
    assert (rebuilt.held, rebuilt.resumed) == (2, 0)
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.HELD}
    assert [each.what for each in rebuilt.unknown if "URL to poll" in each.what] != []


def test_a_round_of_unicast_goes_on_among_those_who_subscribe_now() -> None:
    world = World()
    world.make_queue("q", subscribers(A, B), unicast=True, retries=5, retries_delay=600)
    world.sender.script(A, 503, 200)
    world.sender.script(B, 503, 200)
    [message_id] = world.post("q", LARGE)
    world.run(seconds=5)
    recorded = records(world, message_id)
    [stood] = world.messages.all_deliveries()
    lose(world)
    assert rebuild(world, [*recorded, *recorded]).resumed == 1
    # Each subscriber's last answer is known, but for its text
    [delivery] = world.messages.all_deliveries()
    assert {each.tries for each in delivery.statuses.values()} == {1}
    assert delivery.statuses == {name: replace(each, message="", url=None) for name, each in stood.statuses.items()}
    world.run(seconds=HOUR)
    assert len(world.sender.requests) == 3
    assert [each.state for each in world.messages.all_deliveries()] == [DeliveryState.DELIVERED]


def test_it_can_be_repeated_and_looked_at_first_and_leaves_alone_what_is_there() -> None:
    world = World()
    world.make_queue("q", subscribers(A), retries=5, retries_delay=600)
    world.sender.script(A, 503, 503, 200)
    lost, there = world.post("q", LARGE), world.post("q", LARGE)
    world.run(seconds=5)
    recorded = records(world, *lost, *there)
    kept = world.messages.message(MessageKey(PROJECT, "uid-q", there[0]))
    lose(world)
    world.messages.restore(kept, [])
    # When a dry run is made, then nothing changes
    saved = len(world.messages.saved)
    looked = rebuild(world, recorded, dry=True)
    assert (looked.messages, looked.present, len(world.messages.saved)) == (1, 1, saved)
    # When it is done twice, then the second run finds nothing to do
    assert rebuild(world, recorded).messages == 1
    again = rebuild(world, recorded)
    assert (again.messages, again.present) == (0, 2)


def test_what_a_backup_has_as_it_was_goes_on_from_where_it_was_in_the_end() -> None:
    # Given messages that a backup has without, or with the first, of their attempts
    world = World()
    world.make_queue("q", subscribers(A, B), retries=5, retries_delay=600)
    world.sender.script(B, 503, 503, 200, 200)
    [tried] = world.post("q", b"small")
    world.run(seconds=5)
    first_tries = world.messages.all_deliveries()
    # And that went on afterwards: one subscriber failed again, another message was delivered
    world.run(seconds=11 * 60)
    [delivered] = world.post("q", LARGE)
    world.run(seconds=5)
    world.sender.script(B, 200)
    recorded = records(world, tried, delivered)
    backup = [world.messages.message(MessageKey(PROJECT, "uid-q", each)) for each in (tried, delivered)]
    sent = len(world.sender.requests)
    lose(world)
    world.schedule = world.ports.schedule
    for each in backup:
        world.messages.restore(each, [])
    world.messages.restore(None, first_tries)
    # When it is rebuilt from the records
    looked = rebuild(world, recorded, dry=True)
    assert [each.version for each in world.messages.all_deliveries()] == [each.version for each in first_tries]
    rebuilt = rebuild(world, recorded)
    assert rebuilt == looked
    # Then what was delivered is settled, and the try that failed counts
    assert (rebuilt.messages, rebuilt.present, rebuilt.updated, rebuilt.resumed) == (0, 2, 3, 1)
    [waits] = [each for each in world.messages.all_deliveries() if not each.settled]
    assert (waits.subscriber_id, waits.message_id, waits.tries, waits.attempts) == ("s1", tried, 2, 2)
    # And nothing but that is sent again
    world.run(seconds=HOUR)
    assert len(world.sender.requests) == sent + 1
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.DELIVERED}
    # And another run finds all of it as it is
    assert rebuild(world, recorded).updated == 0


def test_an_item_that_cannot_be_read_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given two lost messages, beside the damaged item of one that is there
    world = World()
    world.make_queue("q", subscribers(A), retries=5, retries_delay=600)
    lost, damaged = world.post("q", LARGE, LARGE)
    recorded = records(world, lost, damaged)
    lose(world)
    read = world.messages.messages

    def messages(keys: Sequence[MessageKey]) -> dict[MessageKey, Message]:
        if any(each.message_id == damaged for each in keys):
            raise Unreadable
        return read(keys)

    monkeypatch.setattr(world.messages, "messages", messages)
    # When it is rebuilt, then the other one goes on, and this one is named
    rebuilt = rebuild(world, recorded)
    assert rebuilt.messages == 1
    assert [damaged in each for each in rebuilt.passed_over] == [True]


def test_records_come_in_any_order_and_more_than_once() -> None:
    world, recorded = lost_while_it_waits(A)
    assert rebuild(world, [*reversed(recorded), *recorded]).resumed == 1
    world.run(seconds=HOUR)
    assert len(world.sender.requests) == 2


def test_what_is_settled_is_not_put_back_and_other_tables_are_not_meant() -> None:
    world = World()
    world.make_queue("q", subscribers(A))
    [message_id] = world.post("q", LARGE)
    world.run(seconds=5)
    recorded = records(world, message_id)
    lose(world)
    pulled = {**recorded[0], "dialect": "pull", "message_id": "7", "owed": ["7.line"]}
    assert rebuild(world, [*recorded, pulled]) == Rebuilt()
    assert world.messages.all_deliveries() == []


def test_a_restored_delivery_may_be_closed_by_whoever_comes_first() -> None:
    # Given a rebuild that was interrupted between its two writes, after which somebody cancelled the delivery
    world = World()
    world.make_queue("q", subscribers(A), retries=5, retries_delay=600)
    world.sender.script(A, 503, 200)
    [message_id] = world.post("q", LARGE)
    world.run(seconds=5)
    recorded = records(world, message_id)
    [stood] = world.messages.all_deliveries()
    lose(world)
    world.messages.restore(None, [replace(stood, scheduled=False)])
    world.messages.save(close(stood, DeliveryState.CANCELLED, world.clock.now()))
    rebuild(world, recorded)
    assert [each.state for each in world.messages.all_deliveries()] == [DeliveryState.CANCELLED]


def test_a_record_that_says_what_no_record_says_does_not_stop_the_others() -> None:
    """Given the records of a lost message, and some of others that lack what their kind has or hold something else."""
    world, recorded = lost_while_it_waits(A)
    accepted = next(each for each in recorded if each["kind"] == "accepted")
    attempt = next(each for each in recorded if each["kind"] == "attempt")
    broken: list[Mapping[str, Any]] = [
        {**accepted, "message_id": "1" * 19, "record_id": "no owed", "owed": None},
        {**accepted, "message_id": "2" * 19, "record_id": "no time", "accepted_at": "soon"},
        {**attempt, "message_id": "3" * 19, "record_id": "no version", "version": "x"},
    ]
    # When it is rebuilt, then the message goes on, and the others are named
    rebuilt = rebuild(world, [*broken, *recorded])
    assert rebuilt.messages == 1
    assert [each.partition(":")[0] for each in rebuilt.passed_over] == ["no owed", "no time"]
