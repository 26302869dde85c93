"""What goes wrong on a running stack: killed functions, dead sockets, races. (Restarts: test_restart.py.)

Nothing is lost, order is kept.
"""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.stack.notification_tenant import Frame, Stored, Tenant, frame, nothing_more, receive
from tests.stack.project import until
from tests.stack.running import RunningStack
from websockets.asyncio.client import ClientConnection

pytestmark = pytest.mark.stack


@pytest.fixture
def tenant(stack: RunningStack) -> Tenant:
    tenant = Tenant(stack)
    tenant.subscribe()
    return tenant


async def receive_distinct(
    connection: ClientConnection, count: int, before: list[Frame] | None = None, seconds: float = 100.0
) -> list[Frame]:
    """Receive until there are ``count`` different notifications, including those received before; returns all, with
    repetitions.
    """
    received = before or []
    deadline = time.monotonic() + seconds
    while len({each.n for each in received}) < count:
        text = await asyncio.wait_for(connection.recv(), max(0.01, deadline - time.monotonic()))
        received.append(frame(text))
    return received


async def noted(stack: RunningStack, tenant: Tenant, count: int) -> None:
    """Wait until this many acknowledgements of the consumer are noted."""
    stored = Stored(stack, tenant)

    def enough() -> bool:
        [here] = stored.connected("app")
        return stored.acknowledged(here) >= count

    await asyncio.to_thread(until, enough, 120, lambda: "acknowledgements are not noted")


@pytest.mark.slow
def test_a_sender_killed_while_it_sends_loses_nothing_and_keeps_the_order(tenant: Tenant, stack: RunningStack) -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        async with await tenant.connect(tenant.token(), max_queue=None, ping_timeout=None) as consumer:
            tenant.publish(0)
            await receive(consumer, 1, acknowledge=True)
            await noted(stack, tenant, 1)
            publishing = loop.run_in_executor(None, lambda: tenant.publish(*range(1, 201)))
            first = await receive(consumer, 20)
            # When its process dies in the middle
            killed = stack.kill_function_workers("notify")
            await publishing
            received = await receive_distinct(consumer, 200, first)
            assert killed
            # Then everything arrives, and new notifications come in order
            numbers = list(dict.fromkeys(each.n for each in received))
            assert numbers == list(range(1, 201))

    asyncio.run(play())


def test_an_acknowledgement_may_come_late_on_the_next_connection(tenant: Tenant, stack: RunningStack) -> None:
    async def play() -> None:
        token = tenant.token()
        consumer = await tenant.connect(token)
        tenant.publish(0, 1)
        frames = await receive(consumer, 2)
        await consumer.close()
        async with await tenant.connect(token) as again:
            assert [each.n for each in await receive(again, 2)] == [0, 1]
            await again.send(frames[0].ack_id)
            await noted(stack, tenant, 1)
        async with await tenant.connect(token) as last:
            assert [each.n for each in await receive(last, 1)] == [1]
            assert await nothing_more(last)

    asyncio.run(play())
