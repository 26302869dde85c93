"""What was on the wire is what the records say: counted at an endpoint that breaks its connections."""

from __future__ import annotations

import pytest
from tests.egress.guarded_sending import sender
from tests.egress.test_one_request import counting
from tests.engine.world import World, subscribers

from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.record import DeliveryRecord, RecordKind
from pushhub.engine.model.records import record_of_delivery

POSTED = 6


@pytest.mark.parametrize("end", ["read", "reset", "idle"])
def test_there_is_a_record_for_each_request_that_was_read(end: str) -> None:
    # Given an endpoint that takes every second request on a kept connection and closes without an answer, or that
    # closes after each answer
    world = World()
    with counting(end) as server, sender(clock=world.clock) as sending:
        world.ports.sender = sending
        world.make_queue("q", subscribers(f"http://127.0.0.1:{server.port}/"), retries=2, retries_delay=60)
        # When messages are posted one after the other, and tried again until they arrive
        for _ in range(POSTED):
            server.ended.clear()
            world.post("q", b"hello")
            world.run(seconds=200)
            assert end != "idle" or server.ended.wait(90)
    attempts = [each for each in recorded(world.messages.saved) if each.kind is RecordKind.ATTEMPT]
    # Then there is one attempt in the records for each request that the endpoint has read, and no other
    assert len(attempts) == server.requests
    # And what arrived at the first try is what the endpoint answered at once
    first = [each.verdict for each in attempts if each.attempt == 1]
    assert len(first) == POSTED
    assert first.count("failed") == (0 if end == "idle" else server.requests - POSTED)


def recorded(saved: list[Delivery]) -> list[DeliveryRecord]:
    """The records of deliveries as they were saved, in order."""
    known: dict[object, Delivery] = {}
    created = []
    for each in saved:
        record = record_of_delivery(known.get(each.key), each, each.accepted_at)
        known[each.key] = each
        if record is not None:
            created.append(record)
    return created
