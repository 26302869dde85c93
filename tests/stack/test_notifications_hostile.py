"""Consumers that misbehave: they harm nobody but themselves."""

from __future__ import annotations

import asyncio
import base64
import os

import pytest
from tests.stack.notification_tenant import Tenant, receive
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack


@pytest.fixture
def tenant(stack: RunningStack) -> Tenant:
    tenant = Tenant(stack)
    tenant.subscribe()
    return tenant


async def still_served(tenant: Tenant, number: int) -> None:
    """Check that another subscriber gets what is published now."""
    async with await tenant.connect(tenant.token(f"bystander{number}")) as other:
        tenant.publish(number)
        assert [each.n for each in await receive(other, 1, acknowledge=True)] == [number]


def test_a_flood_of_garbage_changes_nothing(tenant: Tenant) -> None:
    async def play() -> None:
        token = tenant.token()
        async with await tenant.connect(token) as consumer:
            tenant.publish(1)
            (one,) = await receive(consumer, 1)
            forged = base64.b64encode(base64.b64decode(one.ack_id)[:8] + b"\0\0\0").decode()
            garbage = [
                "",
                " ",
                "x",
                forged,
                "=" * 16,
                '{"action":"$connect"}',
                '{"action":"$disconnect"}',
                "[]",
                "null",
                "\x00",
            ]
            for each in garbage * 10:
                await consumer.send(each)
            await still_served(tenant, 2)
            assert [each.n for each in await receive(consumer, 1)] == [2]
        async with await tenant.connect(token) as again:
            assert [each.n for each in await receive(again, 2)] == [1, 2]

    asyncio.run(play())


def test_a_reader_that_does_not_read_holds_up_nobody_and_loses_nothing(tenant: Tenant) -> None:
    async def play() -> None:
        slow = await tenant.connect(tenant.token("slow"), max_queue=1, ping_interval=None)
        # Far more than the buffers between publisher and reader can hold.
        text = base64.b64encode(os.urandom(30_000)).decode()
        for number in range(60):
            tenant.publish(number, text=text)
        await still_served(tenant, 60)
        assert [each.n for each in await receive(slow, 61)] == list(range(61))
        await slow.close()

    asyncio.run(play())
