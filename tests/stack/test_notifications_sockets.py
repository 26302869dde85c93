"""Consumers of notifications as plain WebSocket clients of the running stack, without the help of client libraries."""

from __future__ import annotations

import asyncio
import base64
import json

import boto3
import pytest
import websockets
from tests.stack.notification_tenant import SECONDS, Stored, Tenant, nothing_more, receive
from tests.stack.project import until
from tests.stack.running import RunningStack
from websockets.exceptions import ConnectionClosedOK, InvalidStatus

pytestmark = pytest.mark.stack


@pytest.fixture
def tenant(stack: RunningStack) -> Tenant:
    tenant = Tenant(stack)
    tenant.subscribe()
    return tenant


def test_a_consumer_gets_what_is_published_after_its_first_connection_frame_by_frame(tenant: Tenant) -> None:
    async def play() -> None:
        tenant.publish(0)
        async with await tenant.connect(tenant.token()) as consumer:
            tenant.publish(1, text="line\u2028break", source="4711")
            (one,) = await receive(consumer, 1)
            assert base64.b64decode(one.ack_id, validate=True)
            assert one.description == f"/{tenant.project_id}/events/4711"
            assert one.action == "CREATE"
            assert json.loads(one.body) == {"n": 1, "text": "line\u2028break"}
            assert len(one.body.splitlines()) == 1

    asyncio.run(play())


def test_after_a_lost_connection_exactly_what_was_not_acknowledged_comes_again_in_order(
    tenant: Tenant, stack: RunningStack
) -> None:
    stored = Stored(stack, tenant)

    async def play() -> None:
        token = tenant.token()
        consumer = await tenant.connect(token)
        tenant.publish(*range(10))
        frames = await receive(consumer, 10)
        for each in (frames[7], frames[2], frames[2], frames[4]):
            await consumer.send(each.ack_id)
        (here,) = stored.connected("app")
        until(lambda: stored.acknowledged(here) == 3 or None, 60, lambda: "acknowledgements are not noted")
        # The connection is cut, not closed.
        consumer.transport.abort()
        await consumer.wait_closed()
        tenant.publish(10, 11)
        async with await tenant.connect(token) as again:
            rest = await receive(again, 9)
            assert [each.n for each in rest] == [0, 1, 3, 5, 6, 8, 9, 10, 11]
            assert await nothing_more(again)

    asyncio.run(play())


def test_handshakes_are_refused_with_their_status(tenant: Tenant, stack: RunningStack) -> None:
    async def play() -> None:
        good = tenant.token()
        header, payload, signature = good.split(".")
        none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
        other = Tenant(stack).token().split(".")
        bad = {
            "no token": "",
            "garbage": "x",
            "unsigned": f"{header}.{payload}.",
            "alg none": f"{none}.{payload}.",
            "forged": f"{header}.{payload}.{signature[:-4]}AAAA",
            "another tenant's signature": f"{header}.{payload}.{other[2]}",
            "expired": tenant.token(expiresInMinutes=0),
        }
        for name, token in bad.items():
            assert await tenant.refusal(token) == 401, name
        # And says how to authenticate, as REST does
        with pytest.raises(InvalidStatus) as refused:
            await tenant.connect("x")
        assert refused.value.response.headers["WWW-Authenticate"] == 'Bearer realm="pushhub"'
        for two in (f"{good}&token={good}", f"{good}&token=x", f"x&token={good}"):
            assert await tenant.refusal(two) == 401
        async with await tenant.connect(good) as first:
            assert await tenant.refusal(tenant.token()) == 409
            assert await tenant.refusal(tenant.token(shared=True)) == 409
            tenant.publish(1)
            (one,) = await receive(first, 1, acknowledge=True)
            assert one.n == 1

    asyncio.run(play())


@pytest.mark.parametrize("path", ["/notification2/consumer", "/notification2/consumer/"])
def test_the_path_is_good_with_and_without_a_slash_at_the_end(tenant: Tenant, path: str) -> None:
    async def play() -> None:
        url = tenant.url(tenant.token()).replace("/notification2/consumer/", path)
        async with websockets.connect(url, open_timeout=SECONDS) as consumer:
            tenant.publish(1)
            assert [each.n for each in await receive(consumer, 1)] == [1]

    asyncio.run(play())


def test_a_connection_that_api_gateway_ends_after_two_hours_closes_cleanly_and_goes_on(
    tenant: Tenant, stack: RunningStack
) -> None:
    stored = Stored(stack, tenant)
    arguments = stack.client_arguments
    arguments["endpoint_url"] += f"/_aws/execute-api/{stack.outputs['WebSocketApiId']}/live"
    management = boto3.client("apigatewaymanagementapi", **arguments)

    async def play() -> None:
        token = tenant.token()
        consumer = await tenant.connect(token)
        tenant.publish(*range(4))
        frames = await receive(consumer, 4)
        await consumer.send(frames[1].ack_id)
        await consumer.send(frames[2].ack_id)
        (here,) = stored.connected("app")
        until(lambda: stored.acknowledged(here) == 2 or None, 60, lambda: "acknowledgements are not noted")
        # API Gateway's time limit, or any other close from the hub's side, looks like this
        management.delete_connection(ConnectionId=here)
        with pytest.raises(ConnectionClosedOK):
            await asyncio.wait_for(consumer.recv(), 60)
        async with await tenant.connect(token) as again:
            tenant.publish(4)
            assert [each.n for each in await receive(again, 3)] == [0, 3, 4]

    asyncio.run(play())
