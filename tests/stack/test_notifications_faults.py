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


@pytest.mark.slow
def test_what_was_acknowledged_before_a_sender_died_does_not_come_again(tenant: Tenant, stack: RunningStack) -> None:
    async def play() -> None:
        token = tenant.token()
        async with await tenant.connect(token, max_queue=None, ping_timeout=None) as consumer:
            tenant.publish(*range(100))
            frames = await receive(consumer, 100)
            for each in frames[:50]:
                await consumer.send(each.ack_id)
            await noted(stack, tenant, 50)
            stack.kill_function_workers("notify")
        async with await tenant.connect(token) as again:
            rest = await receive_distinct(again, 50)
            assert [each.n for each in rest] == list(range(50, 100))

    asyncio.run(play())


def test_publishing_that_races_a_first_connection_loses_nothing_after_it(tenant: Tenant) -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        for round_number in range(3):
            name = f"app{round_number}"
            token = tenant.token(name)
            begun: list[float] = []

            def publish(begun: list[float] = begun) -> None:
                for number in range(20):
                    begun.append(time.monotonic())
                    tenant.publish(number)

            publishing = loop.run_in_executor(None, publish)
            await asyncio.sleep(0.15 * round_number)
            consumer = await tenant.connect(token)
            connected = time.monotonic()
            await publishing
            tenant.publish(20)
            first = (await receive(consumer, 1))[0].n
            rest = [each.n for each in await receive(consumer, 20 - first)]
            # A contiguous end of the published notifications, including all published after the connection.
            assert [first, *rest] == list(range(first, 21))
            assert first <= sum(at <= connected for at in begun)
            await consumer.close()

    asyncio.run(play())


def test_a_socket_that_dies_in_mid_window_frees_its_subscriber_for_the_next_one(tenant: Tenant) -> None:
    async def play() -> None:
        token = tenant.token()
        consumer = await tenant.connect(token, max_queue=None)
        tenant.publish(*range(300))
        await receive(consumer, 100)
        consumer.transport.abort()
        await consumer.wait_closed()
        async with await tenant.connect(token, max_queue=None) as again:
            assert [each.n for each in await receive(again, 300)] == list(range(300))

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
