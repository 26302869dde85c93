"""Delivery records of notifications: real consumers, real records, and numbers equal to the clients' counts.

(What the report makes of such records: tests/glue/test_notifications.py; a report of a running stack: tests/paths.)
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.stack.delivery_report import records_of
from tests.stack.notification_tenant import SECONDS, Frame, Stored, Tenant, receive
from tests.stack.project import until
from tests.stack.running import RunningStack
from websockets.asyncio.client import ClientConnection

pytestmark = pytest.mark.stack

SOURCES = ("s0", "s1", "s2", "s3")
FIRST, SECOND = 12, 4


@dataclass
class Counts:
    """The clients' counts, by subscriber.

    Attributes:
        owed: Notifications published while it was subscribed to the persistent topic.
        received: Frames, including repeated ones.
        acknowledged: Acknowledgements.
        cancelled: Notifications not acknowledged when it was removed.
        never_sent: Notifications published while it was never connected again.
        messages: Notifications over all topics.
    """

    owed: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    cancelled: Counter[str] = field(default_factory=Counter)
    never_sent: Counter[str] = field(default_factory=Counter)
    messages: int = 0


class Story:
    """Consumers of every kind at a tenant's topics.

    Args:
        tenant: With subscriptions to both topics.
        stored: What the hub has stored about its subscribers.
    """

    def __init__(self, tenant: Tenant, stored: Stored) -> None:
        self.tenant = tenant
        self.stored = stored
        self.counts = Counts()

    async def connect(self, name: str, consumer: str = "", **more: Any) -> ClientConnection:
        return await self.tenant.connect(self.tenant.token(name, **more), consumer)

    async def publish(self, first: int, count: int, *owed: str) -> None:
        """Publish from each source in turn; each notification goes to both topics."""
        for number in range(first, first + count):
            await asyncio.to_thread(self.tenant.publish, number, source=SOURCES[number % len(SOURCES)])
        self.counts.messages += 2 * count
        for name in owed:
            self.counts.owed[name] += count

    async def take(self, name: str, connection: ClientConnection, count: int, *acknowledged: int) -> list[Frame]:
        """Receive this many, and acknowledge those with the given numbers."""
        frames = await receive(connection, count)
        self.counts.received[name] += count
        for each in frames:
            if each.n in acknowledged:
                await connection.send(each.ack_id)
                self.counts.acknowledged[name] += 1
        return frames

    async def play(self) -> None:
        careful, forgetful = await self.connect("careful"), await self.connect("forgetful")
        alpha = await self.connect("crew", "alpha", shared=True)
        beta = await self.connect("crew", "beta", shared=True)
        gone, absent = await self.connect("gone"), await self.connect("absent")
        volatile = await self.connect("watcher", topic="flashes", nonPersistent=True)
        await self.leave(absent, "absent", remaining=0)
        # All are connected from the first notification on
        await self.publish(0, FIRST, "careful", "forgetful", "crew", "gone", "absent")
        await self.take("careful", careful, FIRST, *range(FIRST))
        await self.take("forgetful", forgetful, FIRST, *range(0, FIRST, 2))
        await self.share(alpha, beta, FIRST)
        # One acknowledges two, loses its connection, gets exactly the rest, and is removed
        await self.take("gone", gone, FIRST, 3, 5)
        (here,) = self.stored.connected("gone")
        until(lambda: self.stored.acknowledged(here) == 2 or None, 60, lambda: "acknowledgements are not noted")
        gone.transport.abort()
        gone = await self.connect("gone")
        rest = await self.take("gone", gone, FIRST - 2)
        assert [each.n for each in rest] == [each for each in range(FIRST) if each not in (3, 5)]
        assert (await asyncio.to_thread(self.tenant.unsubscribe, self.tenant.token("gone"))).status_code == 200
        self.counts.cancelled["gone"] = FIRST - 2
        # One connects late
        late = await self.connect("late")
        await self.publish(FIRST, SECOND, "careful", "forgetful", "crew", "absent", "late")
        await self.take("careful", careful, SECOND, *range(FIRST, FIRST + SECOND))
        await self.take("late", late, SECOND, FIRST + 1)
        await self.take("forgetful", forgetful, SECOND)
        await self.share(alpha, beta, SECOND)
        # One closes, reconnects for the rest, and acknowledges some of it
        await forgetful.close()
        again = await self.connect("forgetful")
        rest = await self.take("forgetful", again, FIRST // 2 + SECOND, 1, 3, FIRST)
        assert [each.n for each in rest] == [*range(1, FIRST, 2), *range(FIRST, FIRST + SECOND)]
        self.counts.never_sent["absent"] = FIRST + SECOND
        assert len(await receive(volatile, FIRST + SECOND)) == FIRST + SECOND
        for connection in (careful, again, late, volatile):
            await connection.close()
        await self.leave(alpha, "crew", remaining=1)
        await self.leave(beta, "crew", remaining=0)

    async def leave(self, connection: ClientConnection, name: str, *, remaining: int) -> None:
        """Close a connection and wait until nothing more is sent on it."""
        await connection.close()
        until(lambda: len(self.stored.connected(name)) == remaining or None, 60, lambda: "it is not noticed")

    async def share(self, alpha: ClientConnection, beta: ClientConnection, count: int) -> None:
        """Two consumers share the notifications; only one of them acknowledges."""
        takers = [asyncio.create_task(alpha.recv()), asyncio.create_task(beta.recv())]
        for _ in range(count):
            await asyncio.wait(takers, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for place, connection in enumerate((alpha, beta)):
                if takers[place].done():
                    text = takers[place].result()
                    assert isinstance(text, str)
                    self.counts.received["crew"] += 1
                    if connection is alpha:
                        await alpha.send(text.partition("\n")[0])
                        self.counts.acknowledged["crew"] += 1
                    takers[place] = asyncio.create_task(connection.recv())
                    break
        for each in takers:
            each.cancel()
        await asyncio.gather(*takers, return_exceptions=True)


@pytest.fixture(scope="module")
def tenant(stack: RunningStack) -> Tenant:
    tenant = Tenant(stack)
    tenant.subscribe()
    tenant.subscribe("flashes", nonPersistent=True)
    return tenant


@pytest.fixture(scope="module")
def counts(stack: RunningStack, tenant: Tenant) -> Counts:
    """The clients' counts, once everything has been recorded."""
    story = Story(tenant, Stored(stack, tenant))
    asyncio.run(story.play())
    reported = story.counts
    ends = {"acknowledged": reported.acknowledged.total(), "cancelled": reported.cancelled.total()}
    expected = Counter({"accepted": reported.messages, "attempt": reported.received.total(), **ends})

    def recorded() -> Counter[str]:
        return Counter(each["kind"] for each in records_of(stack, tenant.project_id))

    until(lambda: recorded() == expected, 180, lambda: f"{recorded()}, expected {expected}")
    return reported


@pytest.fixture(scope="module")
def records(stack: RunningStack, tenant: Tenant, counts: Counts) -> list[dict[str, Any]]:
    return [*records_of(stack, tenant.project_id)]


def of_kind(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in records if each["kind"] == kind]


def test_every_notification_is_owed_to_those_who_were_there(records: list[dict[str, Any]], counts: Counts) -> None:
    owed = Counter({"machines": 0, "flashes": 0})
    for each in of_kind(records, "accepted"):
        owed[each["queue"]] += len(each.get("owed") or ())
    # Nothing is owed to consumers of a non-persistent topic
    assert owed == {"machines": counts.owed.total(), "flashes": 0}


def test_every_sending_and_end_is_recorded(records: list[dict[str, Any]], counts: Counts) -> None:
    attempts = of_kind(records, "attempt")
    assert Counter(each["subscriber"] for each in attempts) == counts.received
    assert {each["status_code"] for each in attempts} == {200}
    # And what was owed and never sent is what came while its subscriber was away
    owed = {each for accepted in of_kind(records, "accepted") for each in accepted.get("owed") or ()}
    assert len(owed - {each["delivery_id"] for each in attempts}) == counts.never_sent.total()
    ended = [each["delivery_id"] for kind in ("acknowledged", "cancelled") for each in of_kind(records, kind)]
    assert len(ended) == len(set(ended)) == counts.acknowledged.total() + counts.cancelled.total()
    # The story did produce some of each
    assert all(each.total() for each in (counts.acknowledged, counts.cancelled, counts.never_sent))


def test_the_records_prove_the_order_on_each_connection(records: list[dict[str, Any]], counts: Counts) -> None:
    attempts = of_kind(records, "attempt")
    keys = {each["order_key"] for each in attempts}
    # One for each connection of the exclusive ones, one for each source of the shared one
    assert len(keys) == 1 + 2 + 2 + 1 + len(SOURCES)
    for key in keys:
        mine = sorted((each["finished_at"], each["sequence"]) for each in attempts if each["order_key"] == key)
        sequences = [sequence for _, sequence in mine]
        assert sequences == sorted(set(sequences)), key
    assert len(attempts) == counts.received.total()
