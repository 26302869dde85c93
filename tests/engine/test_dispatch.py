"""From the stream to the queue: everything is queued, in few calls and within a function's memory and time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import FakeWorkQueue

from pushhub.engine.dispatch import ORDERS_BYTES
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.work import WorkOrder

MANY = [f"https://{number}.example/" for number in range(100)]


class WatchedWorkQueue(FakeWorkQueue):
    """Notes how much text each call would hold at once."""

    def __init__(self, world: World) -> None:
        super().__init__(world.clock)
        self.held: list[int] = []

    def send_packed(self, orders: Sequence[WorkOrder], delay_s: int = 0) -> None:
        super().send_packed(orders, delay_s)
        self.held.append(sum(len(each.encode()) for each in orders))


@pytest.mark.parametrize("body", [b"\x01" * 8192, b"x" * 500])
def test_a_hundred_messages_for_a_hundred_subscribers_are_queued_piece_by_piece(body: bytes) -> None:
    # Given the largest post to a queue of a hundred subscribers
    world = World()
    queue = WatchedWorkQueue(world)
    world.dispatch._push_queue = queue
    world.make_queue("q", subscribers(*MANY))
    ids = world.ingest.post(PROJECT, "q", [NewMessage(body=body)] * 100)
    # When the stream hands it over
    world.dispatch_only()
    # Then each order is queued once, no more than a bounded amount was in memory at a time, and packs are full
    sent = {(each.key.message_id, each.key.subscriber_id) for each, _ in queue.sent}
    assert len(queue.sent) == len(sent) == 100 * len(ids)
    assert max(queue.held) < ORDERS_BYTES * 1.5
    assert len(queue) <= 2500
