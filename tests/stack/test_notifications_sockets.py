"""Consumers of notifications as plain WebSocket clients of the running stack, without the help of client libraries."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import Counter

import boto3
import pytest
import websockets
from requests import PreparedRequest
from tests.stack.notification_tenant import SECONDS, Stored, Tenant, nothing_more, receive
from tests.stack.project import until
from tests.stack.running import RunningStack
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidStatus

from pushhub.cloud.clock import SystemClock
from pushhub.engine.projects.tokens import token_hash
from pushhub.engine.store.dynamodb_config import CACHE_TTL_MS, DynamoDBConfigStore

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


def test_of_two_connections_at_once_one_is_taken_and_the_other_told_409(tenant: Tenant) -> None:
    async def play() -> None:
        token = tenant.token()
        outcomes = await asyncio.gather(*(tenant.connect_once(token) for _ in range(2)), return_exceptions=True)
        refused = [each for each in outcomes if isinstance(each, BaseException)]
        assert len(refused) == 1
        assert "409" in str(refused[0])
        (consumer,) = (each for each in outcomes if not isinstance(each, BaseException))
        tenant.publish(1)
        assert [each.n for each in await receive(consumer, 1)] == [1]
        await consumer.close()

    asyncio.run(play())


def test_a_client_may_close_and_connect_again_at_once(tenant: Tenant) -> None:
    async def play() -> None:
        token = tenant.token()
        for number in range(4):
            async with await tenant.connect(token) as consumer:
                tenant.publish(number)
                (one,) = await receive(consumer, 1, acknowledge=True)
                assert one.n == number
                await asyncio.sleep(0.2)

    asyncio.run(play())


def test_unsubscribing_by_rest_closes_an_exclusive_consumer(tenant: Tenant) -> None:
    async def play() -> None:
        token = tenant.token()
        consumer = await tenant.connect(token)
        done = await asyncio.get_running_loop().run_in_executor(None, tenant.unsubscribe, token)
        assert (done.status_code, done.json()) == (200, {"result": "DONE"})
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(consumer.recv(), 60)
        assert consumer.close_code == 1000

    asyncio.run(play())


def test_a_queue_feeds_a_topic_beside_its_webhooks(tenant: Tenant, stack: RunningStack) -> None:
    queues = f"{stack.base_url}/3/projects/{tenant.project_id}/queues"
    headers = {"Authorization": f"OAuth {tenant.project_token}"}
    push = {
        "type": "multicast",
        "push": {
            "subscribers": [
                {"name": "sockets", "url": "notification2://orders?api=alarms&action=UPDATE"},
                {"name": "copies", "url": "ironmq:///copies"},
            ],
            "retries": 2,
            "retries_delay": 3,
        },
    }

    def post(body: str) -> None:
        answer = tenant.session.post(
            f"{queues}/orders/messages", json={"messages": [{"body": body}]}, headers=headers, auth=no_auth, timeout=40
        )
        assert answer.status_code == 201, answer.text

    async def play() -> None:
        created = tenant.session.put(
            f"{queues}/orders", json={"queue": push}, headers=headers, auth=no_auth, timeout=40
        )
        assert created.status_code in (200, 201), created.text
        async with await tenant.connect(tenant.token("dashboard", "orders")) as consumer:
            post('{"n": 1, "source": {"id": "7"}}')
            post("plain")
            one, two = sorted(await receive(consumer, 2, acknowledge=True), key=lambda each: each.body)
            assert (one.description, one.action) == (f"/{tenant.project_id}/alarms/orders", "UPDATE")
            assert one.body == "plain"
            assert (two.description, two.body) == (
                f"/{tenant.project_id}/alarms/7",
                '{"n": 1, "source": {"id": "7"}}',
            )
        # And the other subscriber has both, which may come a moment later
        wanted = Counter(["plain", '{"n": 1, "source": {"id": "7"}}'])

        def copied() -> Counter[str]:
            copies = tenant.session.get(f"{queues}/copies/messages?n=10", headers=headers, auth=no_auth, timeout=40)
            # (the first copy makes the queue)
            return Counter(each["body"] for each in copies.json().get("messages", ()))

        until(lambda: copied() == wanted, 120, lambda: f"{copied()}")

    asyncio.run(play())


def no_auth(request: PreparedRequest) -> PreparedRequest:
    """Keeps the session's Basic credentials off requests that carry their own."""
    return request


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


def test_a_request_repeated_with_its_key_is_published_once(tenant: Tenant) -> None:
    async def play() -> None:
        async with await tenant.connect(tenant.token()) as consumer:
            # Given a request with a key, of several commits
            drafts = [{"api": "events", "source": "1", "data": {"n": n, "text": "x" * 90_000}} for n in range(7)]
            answers = [
                tenant.call("POST", "/notifications", drafts, headers={"Idempotency-Key": "order 4711"})
                for _ in range(3)
            ]
            # Then each repetition gets the same answer
            assert [each.status_code for each in answers] == [201] * 3
            assert len({each.text for each in answers}) == 1
            other = tenant.call("POST", "/notifications", drafts[:1], headers={"Idempotency-Key": "order 4711"})
            assert other.status_code == 422
            # And the consumer gets it once
            tenant.publish(7)
            assert [each.n for each in await receive(consumer, 8, acknowledge=True)] == [*range(8)]

    asyncio.run(play())


def test_a_connection_ends_within_the_minute_when_its_project_s_token_is_revoked(
    tenant: Tenant, stack: RunningStack
) -> None:
    async def play() -> None:
        # Given a consumer whose token was made with a token of the project that is revoked
        token = tenant.token()
        async with await tenant.connect(token) as consumer:
            config = DynamoDBConfigStore(stack.aws.dynamodb(), stack.outputs["ConfigTableName"], SystemClock())
            config.remove_token(tenant.project_id, token_hash(tenant.project_token))
            revoked_at = time.monotonic()
            # Then it is closed, and refused again as soon as no environment has the project's token cached, of which
            # one may have begun to read it before
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(consumer.recv(), 150)
        await asyncio.sleep(revoked_at + CACHE_TTL_MS / 1000 + 5 - time.monotonic())
        deadline = time.monotonic() + SECONDS
        while (status := await tenant.refusal(token)) != 401:
            assert time.monotonic() < deadline, status
            await asyncio.sleep(1)

    asyncio.run(play())
