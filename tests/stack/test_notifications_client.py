"""The unmodified Python client of Cumulocity (``c8y_api``) drives the running hub: subscriptions, tokens, listeners,
and its traps.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from c8y_api import CumulocityApi, UnauthorizedError
from c8y_api.model import Subscription
from c8y_tk.notification2 import AsyncListener, Listener, QueueListener
from tests.stack.notification_tenant import Stored, Tenant
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

TOPIC = "machines"


@pytest.fixture
def tenant(stack: RunningStack) -> Tenant:
    return Tenant(stack)


@pytest.fixture
def c8y(tenant: Tenant) -> Any:
    """The client, configured as its documentation says."""
    return CumulocityApi(tenant.base_url, tenant.project_id, "tester", tenant.project_token)


def eventually(condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)


def numbers(messages: list[Any]) -> list[int]:
    return [each.json["n"] for each in messages]


class Listening:
    """An asynchronous listener and what it has received."""

    def __init__(self, listener: Any) -> None:
        self.listener = listener
        self.messages: list[Any] = []
        self.fails_on: set[int] = set()

    async def callback(self, message: Any) -> None:
        self.messages.append(message)
        if message.json["n"] in self.fails_on:
            raise ValueError("the callback fails")

    async def until(self, count: int, seconds: float = 120.0) -> list[int]:
        deadline = time.monotonic() + seconds
        while len(self.messages) < count:
            assert time.monotonic() < deadline, f"only {numbers(self.messages)}"
            await asyncio.sleep(0.05)
        return numbers(self.messages)


@asynccontextmanager
async def listening(c8y: Any, **more: Any) -> AsyncIterator[Listening]:
    """A connected listener, which is stopped at the end."""
    options = {"subscription_name": TOPIC, "subscriber_name": "app", "auto_unsubscribe": False} | more
    here = Listening(AsyncListener(c8y, **options))
    task = here.listener.start(here.callback)
    try:
        await asyncio.wait_for(here.listener._is_connected.wait(), 60)
        yield here
    finally:
        here.listener.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(task, 60)


def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    return asyncio.get_running_loop().run_in_executor(None, function, *arguments)


def test_subscriptions_are_created_found_counted_and_deleted(c8y: Any) -> None:
    # Given subscriptions of every shape the client can make
    first = Subscription(
        c8y,
        name=TOPIC,
        context="mo",
        source_id="111",
        api_filter=["events", "alarms"],
        type_filter="'a' or 'b'",
        fragments=["c8y_A"],
        non_persistent=False,
    ).create()
    only_type = Subscription(c8y, name="typed", context="mo", source_id="111", type_filter="a").create()
    only_api = Subscription(c8y, name="apis", context="mo", source_id="111", api_filter=["*"]).create()
    tenants = Subscription(c8y, name="all", context="tenant").create()
    # Then they are returned as they were created
    assert c8y.notification2_subscriptions.get(first.id).api_filter == ["events", "alarms"]
    assert c8y.notification2_subscriptions.get(only_type.id).type_filter == "a"
    assert c8y.notification2_subscriptions.get(only_api.id).api_filter == ["*"]
    # The client reads a source without checking, even where there is none.
    assert tenants.source_id
    assert len(c8y.notification2_subscriptions.get_all()) == 4
    # Pages are read until an empty one; the count sends a query key twice.
    assert {each.name for each in c8y.notification2_subscriptions.select(page_size=1)} == {
        TOPIC,
        "typed",
        "apis",
        "all",
    }
    assert c8y.notification2_subscriptions.get_count(source="111") == 3
    # And a duplicate is refused
    with pytest.raises(ValueError, match="already exists"):
        Subscription(c8y, name=TOPIC, context="mo", source_id="111").create()
    first.delete()
    with pytest.raises(KeyError):
        c8y.notification2_subscriptions.get(first.id)
    c8y.notification2_subscriptions.delete_by(context="mo", source="111")
    assert [each.name for each in c8y.notification2_subscriptions.get_all()] == ["all"]


def test_bad_credentials_are_told_in_the_way_the_client_reads(tenant: Tenant) -> None:
    stranger = CumulocityApi(tenant.base_url, tenant.project_id, "tester", "wrong")
    with pytest.raises(UnauthorizedError) as refused:
        stranger.notification2_tokens.generate(TOPIC)
    assert refused.value.message == "Invalid credentials! : Bad credentials"


def test_tokens_are_made_and_unsubscribed_once(c8y: Any, tenant: Tenant) -> None:
    token = c8y.notification2_tokens.generate(TOPIC, subscriber="app", shared=True, signed=True, non_persistent=False)
    uri = c8y.notification2_tokens.build_websocket_uri(token, "me")
    assert uri == tenant.url(token, "me")
    # Nobody has connected, which the client reports as "already unsubscribed".
    with pytest.raises(SyntaxError):
        c8y.notification2_tokens.unsubscribe(token)


def test_a_listener_receives_and_acknowledges_by_itself(c8y: Any, tenant: Tenant) -> None:
    Subscription(c8y, name=TOPIC, context="tenant").create()

    async def play() -> None:
        async with listening(c8y) as here:
            await in_thread(tenant.publish, *range(5))
            assert await here.until(5) == list(range(5))
            assert here.messages[0].source == f"/{tenant.project_id}/events/111"
            assert here.messages[0].action == "CREATE"
            await asyncio.sleep(0.5)
        async with listening(c8y) as again:
            await in_thread(tenant.publish, 5)
            assert await again.until(1) == [5]

    asyncio.run(play())


def test_without_auto_ack_everything_comes_again(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)

    async def play() -> None:
        async with listening(c8y, auto_ack=False) as here:
            await in_thread(tenant.publish, 0, 1, 2)
            await here.until(3)
            await here.messages[1].ack()
            await asyncio.sleep(0.5)
        async with listening(c8y, auto_ack=False) as again:
            assert await again.until(2) == [0, 2]
            await again.listener.ack(payload=again.messages[0].raw)
            await again.listener.ack(msg_id=again.messages[1].id)
            await asyncio.sleep(0.5)
        async with listening(c8y) as last:
            await in_thread(tenant.publish, 3)
            assert await last.until(1) == [3]

    asyncio.run(play())


def test_a_callback_that_fails_is_not_acknowledged_and_one_that_acknowledges_does_so_twice(
    c8y: Any, tenant: Tenant
) -> None:
    tenant.subscribe(TOPIC)

    async def play() -> None:
        async with listening(c8y) as here:
            here.fails_on = {1}
            logging.getLogger("c8y_tk").setLevel(logging.CRITICAL)
            await in_thread(tenant.publish, 0, 1, 2)
            await here.until(3)
            await here.messages[0].ack()
            await asyncio.sleep(0.5)
        async with listening(c8y) as again:
            assert await again.until(1) == [1]

    asyncio.run(play())


def test_a_listener_reconnects_when_its_connection_is_cut(c8y: Any, tenant: Tenant, stack: RunningStack) -> None:
    tenant.subscribe(TOPIC)

    async def play() -> None:
        async with listening(c8y) as here:
            await in_thread(tenant.publish, 0)
            await here.until(1)
            stored = Stored(stack, tenant)
            [connection] = stored.connected("app")
            await in_thread(eventually, lambda: stored.acknowledged(connection) == 1)
            here.listener._connection.transport.abort()
            await in_thread(tenant.publish, 1)
            assert await here.until(2) == [0, 1]

    asyncio.run(play())


def test_a_second_listener_waits_until_the_first_has_gone(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)

    async def play() -> None:
        second = Listening(AsyncListener(c8y, subscription_name=TOPIC, subscriber_name="app", auto_unsubscribe=False))
        async with listening(c8y) as first:
            task = second.listener.start(second.callback)
            await asyncio.sleep(1.0)
            assert not second.listener._is_connected.is_set()
            await in_thread(tenant.publish, 0)
            assert await first.until(1) == [0]
            await asyncio.sleep(0.3)
        await in_thread(tenant.publish, 1)
        assert await second.until(1) == [1]
        second.listener.stop()
        await asyncio.wait_for(task, 60)

    asyncio.run(play())


def test_stopping_closes_in_order_and_unsubscribes_unless_told_otherwise(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)

    async def play() -> None:
        async with listening(c8y, auto_unsubscribe=True, auto_ack=False) as here:
            await in_thread(tenant.publish, 0)
            await here.until(1)
            connection = here.listener._connection
        # The hub has answered the client's close, which would otherwise give it up after ten seconds.
        assert connection.close_code == 1000
        assert tenant.unsubscribe(here.listener._current_token).status_code == 500
        async with listening(c8y) as again:
            await in_thread(tenant.publish, 1)
            assert await again.until(1) == [1]

    asyncio.run(play())


def test_a_token_about_to_expire_is_renewed_to_unsubscribe(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)

    async def play() -> None:
        listener = AsyncListener(c8y, subscription_name=TOPIC, subscriber_name="brief", auto_unsubscribe=False)
        listener._current_token = c8y.notification2_tokens.generate(TOPIC, expires=0, subscriber="brief")
        assert await tenant.refusal(listener._current_token) == 401
        async with await tenant.connect(tenant.token("brief")):
            pass
        await in_thread(listener.unsubscribe)
        assert (await in_thread(tenant.unsubscribe, tenant.token("brief"))).status_code == 500

    asyncio.run(play())


def test_shared_listeners_divide_the_work_and_unsubscribe_once(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)

    async def play() -> None:
        listeners = [Listening(AsyncListener(c8y, TOPIC, "crew", shared=True)) for _ in range(3)]
        tasks = [each.listener.start(each.callback) for each in listeners]
        for each in listeners:
            await asyncio.wait_for(each.listener._is_connected.wait(), 60)
        for number in range(30):
            await in_thread(lambda number=number: tenant.publish(number, source=f"s{number}"))
        deadline = time.monotonic() + 120
        while sum(len(each.messages) for each in listeners) < 30:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        received = [numbers(each.messages) for each in listeners]
        assert sorted(itertools.chain(*received)) == list(range(30))
        assert sum(bool(each) for each in received) >= 2
        # All stop: one unsubscription succeeds, the others find it already done.
        answers: list[str] = []
        for each in listeners:
            tokens = each.listener.c8y.notification2_tokens
            each.listener.unsubscribe = lambda each=each, tokens=tokens: answers.append(outcome(tokens, each))
            each.listener.stop()
        for task in tasks:
            await asyncio.wait_for(task, 60)
        assert sorted(answers) == ["5xx", "5xx", "done"]

    def outcome(tokens: Any, each: Listening) -> str:
        try:
            tokens.unsubscribe(each.listener._current_token)
        except SyntaxError:
            return "5xx"
        return "done"

    asyncio.run(play())


def test_unsubscribing_in_band_and_the_subscriber_that_reconnects_starts_anew(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)

    async def play() -> None:
        async with listening(c8y, auto_ack=False) as here:
            await in_thread(tenant.publish, 0)
            await here.until(1)
            first = here.listener._connection
            await here.listener.send("unsubscribe_subscriber")
            # (by the hub, as it has read that)
            await asyncio.wait_for(first.wait_closed(), 90)
            await in_thread(eventually, lambda: here.listener._connection not in (None, first), 90)
            await asyncio.wait_for(here.listener._is_connected.wait(), 90)
            await in_thread(tenant.publish, 1)
            assert await here.until(2) == [0, 1]

    asyncio.run(play())


@contextmanager
def blocking(c8y: Any, **more: Any) -> Iterator[list[Any]]:
    """A blocking listener in its own thread."""
    received: list[Any] = []
    listener = Listener(c8y, subscription_name=TOPIC, subscriber_name="blocking", auto_unsubscribe=False, **more)
    thread = threading.Thread(target=listener.listen, args=(received.append,))
    thread.start()
    try:
        eventually(listener._listener._is_connected.is_set)
        yield received
    finally:
        listener.stop()
        thread.join(60)
        assert not thread.is_alive()


def test_the_blocking_listener_works_too(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)
    with blocking(c8y) as received:
        tenant.publish(*range(3))
        eventually(lambda: len(received) == 3)
        assert numbers(received) == [0, 1, 2]


def test_the_queue_listener_works_too(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)
    messages: queue.Queue[Any] = queue.Queue()
    listener = QueueListener(c8y, subscription_name=TOPIC, subscriber_name="queued", queue=messages)
    listener.start()
    try:
        eventually(lambda: tenant.publish(0) and not messages.empty())
        assert messages.get(timeout=60).json["n"] == 0
    finally:
        listener.stop()
        listener.wait(60)


def test_text_that_the_client_would_split_arrives_whole(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)
    text = "line\u2028para\u2029next\u0085feed\x0b\x0c\x1c\x1d\x1e \r\n\t end \U0001f6f0"

    async def play() -> None:
        async with listening(c8y) as here:
            await in_thread(lambda: tenant.publish(0, text=text))
            await here.until(1)
            assert here.messages[0].json["text"] == text

    asyncio.run(play())


def test_the_largest_frame_passes(c8y: Any, tenant: Tenant) -> None:
    tenant.subscribe(TOPIC)

    async def play() -> None:
        async with listening(c8y) as here:
            await in_thread(lambda: tenant.publish(0, text="x" * 130_900))
            await here.until(1)
            assert len(here.messages[0].json["text"]) == 130_900
            await in_thread(tenant.publish, 1)
            assert await here.until(2) == [0, 1]

    asyncio.run(play())
