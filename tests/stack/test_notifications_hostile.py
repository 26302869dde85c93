"""Consumers that misbehave: they harm nobody but themselves."""

from __future__ import annotations

import asyncio
import base64
import os

import pytest
import websockets
from tests.stack.notification_tenant import SECONDS, Tenant, receive
from tests.stack.running import RunningStack
from websockets.exceptions import ConnectionClosed, InvalidStatus

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


def test_a_message_of_128_kib_is_taken_and_a_larger_one_ends_the_connection(tenant: Tenant) -> None:
    async def play() -> None:
        token = tenant.token()
        async with await tenant.connect(token) as consumer:
            await consumer.send("x" * 131_072)
            tenant.publish(1)
            assert [each.n for each in await receive(consumer, 1, acknowledge=True)] == [1]
            await consumer.send("x" * 131_073)
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(consumer.recv(), 60)
            assert consumer.close_code == 1009
        await still_served(tenant, 2)

    asyncio.run(play())


def test_a_frame_that_is_no_utf_8_ends_the_connection(tenant: Tenant) -> None:
    async def play() -> None:
        async with await tenant.connect(tenant.token()) as consumer:
            await consumer.send(b"\xc3\x28", text=True)
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(consumer.recv(), 60)
            assert consumer.close_code == 1007
        await still_served(tenant, 1)

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


@pytest.mark.parametrize(
    "query", ["", "?", "?token", "?token=%ff", "?token=a&token=b", "?consumer=x", "?token=" + "a" * 6000]
)
def test_odd_handshakes_are_refused(tenant: Tenant, query: str) -> None:
    async def play() -> None:
        url = f"{tenant.base_url.replace('http', 'ws', 1)}/notification2/consumer/{query}"
        with pytest.raises(InvalidStatus) as refused:
            await websockets.connect(url, open_timeout=SECONDS)
        # 422 for a query that cannot be read.
        assert refused.value.response.status_code in (400, 401, 422)

    asyncio.run(play())


def test_a_consumer_has_any_name_that_is_not_blank(tenant: Tenant) -> None:
    async def play() -> None:
        token = tenant.token()
        for query in ("consumer=", "consumer=%20", "consumer=a&consumer=b", "consumer=" + "a" * 256):
            url = f"{tenant.base_url.replace('http', 'ws', 1)}/notification2/consumer/?token={token}&{query}"
            with pytest.raises(InvalidStatus) as refused:
                await websockets.connect(url, open_timeout=SECONDS)
            assert refused.value.response.status_code == 422
        for name in ("app1", "a" * 255, "%C3%BC%00", "%F0%9F%9B%B0"):
            async with await tenant.connect(tenant.token(), name) as consumer:
                tenant.publish(1)
                await receive(consumer, 1, acknowledge=True)
                await asyncio.sleep(0.3)

    asyncio.run(play())
