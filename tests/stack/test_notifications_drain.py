"""A consumer takes a long backlog in one connection, however slowly its acknowledgements are taken."""

from __future__ import annotations

import asyncio

import pytest
from tests.stack.notification_tenant import Frame, Tenant, frame, nothing_more, receive
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

COUNT = 1200
"""More than the hub sends without an acknowledgement."""
SECONDS = 200.0


def test_a_long_backlog_is_drained_in_one_connection_while_acknowledgements_are_slow(stack: RunningStack) -> None:
    tenant = Tenant(stack)
    tenant.subscribe()

    async def play() -> None:
        # Given a subscriber that was away, and a function that is twenty times as slow at what consumers send
        token = tenant.token()
        await (await tenant.connect(token)).close()
        tenant.publish(*range(COUNT))
        with stack.slowed("consumers", 20):
            # When a client with its usual settings acknowledges each notification as it comes
            consumer = await tenant.connect(token)
            received: list[Frame] = []
            async with asyncio.timeout(SECONDS):
                while len(received) < COUNT:
                    received.append(frame(await consumer.recv()))
                    await consumer.send(received[-1].ack_id)
            # Then each has come once, in order, over that connection
            assert [each.n for each in received] == list(range(COUNT))
            assert await nothing_more(consumer)
            # And when its connection breaks, the next one is taken at once, and nothing comes again
            consumer.transport.close()
            async with await tenant.connect(token) as again:
                tenant.publish(COUNT)
                assert [each.n for each in await receive(again, 1)] == [COUNT]

    asyncio.run(play())
