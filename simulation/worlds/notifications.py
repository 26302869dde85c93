"""Notifications 2.0: publishers that repeat requests, consumers that come and go, exclusive and shared; and the
promises made to them.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from simulation.bodies import text_body
from simulation.gateway import WebSocketGateway
from simulation.promises.judgement import Violation
from simulation.promises.notifications import Connection, Notifications
from simulation.promises.notifications import Frame as SeenFrame
from simulation.promises.talks import (
    bounds,
    command_line,
    edges,
    tenancy,
    topic_consumers,
    topic_rules,
    topics,
    topics_meanwhile,
    whose,
)
from simulation.promises.talks import notifications as talks
from simulation.scheduler import SECOND
from simulation.weather import HOUR
from simulation.worlds.world import SENDERS, World

TOPICS = ("orders", "machines")
SOURCES = ("111", "222", "333")
PUBLISHERS = 3
CONSUMERS = 3
"""Consumers of the shared subscriber."""

FASTER = 6
"""Publishers post this many times as often as producers of other worlds."""


@dataclass
class Published:
    """A notification that its publisher was told was accepted.

    Attributes:
        publisher: Its publisher.
        number: Its number, rising with time.
        topic: Its topic.
        source: The object it is about.
        began: When it was first posted, microseconds.
    """

    publisher: int
    number: int
    topic: str
    source: str
    began: int


@dataclass
class Frame:
    """A frame as a client got it.

    Attributes:
        at: When it arrived, microseconds.
        connection: The connection.
        position: Position in the topic.
        key: Publisher and number.
        source: The object it is about.
        content: Its data, as JSON.
        acknowledged: When its consumer sent the acknowledgement, microseconds.
        noted: When the hub had certainly heard it.
    """

    at: int
    connection: str
    position: int
    key: tuple[int, int]
    source: str
    content: str
    acknowledged: int | None = None
    noted: int | None = None


@dataclass
class Subscriber:
    """A subscriber, and what its consumers received.

    Attributes:
        name: Its name.
        topic: Its topic.
        shared: Whether it has several consumers.
        since: When its first connection was open, microseconds.
        frames: All frames of all its connections, in order.
        connections: Its connections.
        token: The token of its consumers.
    """

    name: str
    topic: str
    shared: bool = False
    since: int | None = None
    frames: list[Frame] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    token: str = ""


class NotificationsWorld(World):
    """A project with topics, publishers and subscribers."""

    name = "notifications"

    def set_up(self) -> None:
        """Make the project, its subscriptions and its consumers' tokens, before any weather."""
        self._gateway = WebSocketGateway(self._account)
        self.published: list[Published] = []
        self.subscribers = [
            Subscriber("reader", "orders"),
            Subscriber("other", "orders"),
            Subscriber("machine", "machines"),
            Subscriber("team", "machines", shared=True),
        ]
        self._contents: dict[tuple[int, int], str] = {}
        self._bodies = self._chance("bodies")
        self._make_project()
        basic = base64.b64encode(f"{self._project}/me:{self._token}".encode()).decode()
        self._headers = {"authorization": f"Basic {basic}"}
        rules = [
            {"context": "tenant", "subscription": topic, "subscriptionFilter": {"apis": [_api(topic)]}}
            for topic in TOPICS
        ]
        self._in_good_weather(
            *(partial(self._expect, "/notification2/subscriptions", rule, 201) for rule in rules),
            *(partial(self._make_token, subscriber) for subscriber in self.subscribers),
        )
        assert all(each.token for each in self.subscribers)

    def _ask(self, path: str, body: object, **headers: str) -> Any:
        return self._account.http("POST", path, body, headers={**self._headers, **headers})

    def _expect(self, path: str, body: object, status: int) -> Any:
        answer = self._ask(path, body)
        assert answer.status == status, answer
        return answer.body

    def _make_token(self, subscriber: Subscriber) -> None:
        wanted = {"subscription": subscriber.topic, "subscriber": subscriber.name, "expiresInMinutes": 500_000}
        if subscriber.shared:
            wanted["shared"] = True
        subscriber.token = self._expect("/notification2/token", wanted, 200)["token"]

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """The publishers."""
        return {
            f"producer-{number}": partial(self._publish, number, self._chance(f"producer-{number}"))
            for number in range(PUBLISHERS)
        }

    def begin(self, names: Collection[str]) -> None:
        """Let all actors act from now on."""
        for subscriber in self.subscribers:
            for place in range(CONSUMERS if subscriber.shared else 1):
                random = self._chance(f"{subscriber.name}-{place}")
                self._account.scheduler.spawn(partial(self._consume, subscriber, f"c{place}", random))
        super().begin(names)

    def _publish(self, publisher: int, random: Random) -> None:
        """Make one request after the other, each repeated with its key until it is accepted."""
        scheduler = self._account.scheduler
        end, number, request = scheduler.now + round(self._hours * HOUR), 0, 0
        while True:
            scheduler.sleep(round(random.expovariate(self._rate * FASTER) * HOUR))
            if scheduler.now >= end:
                return
            request += 1
            began, topic, drafts = scheduler.now, random.choice(TOPICS), []
            published: list[Published] = []
            for _ in range(random.choice((1, 1, 3, 10))):
                number += 1
                source = random.choice(SOURCES)
                text = text_body(
                    self._bodies, f"p{publisher}n{number}", size=self._bodies.choice((40, 40, 300)), large=0
                )
                data = {"p": publisher, "n": number, "text": text, "list": [1.5, None, {"é": True}]}
                self._contents[publisher, number] = json.dumps(data)
                drafts.append({"api": _api(topic), "source": source, "data": data})
                published.append(Published(publisher, number, topic, source, began))
            post = partial(
                self._ask, "/notification2/notifications", drafts, **{"idempotency-key": f"{publisher}-{request}"}
            )
            if self._until(201, post, tries=40):
                self.published += published

    def _consume(self, subscriber: Subscriber, name: str, random: Random) -> None:
        """Connect, receive, acknowledge, disconnect, and start again."""
        scheduler = self._account.scheduler
        while True:
            query = {"token": subscriber.token} | ({"consumer": name} if subscriber.shared else {})
            status, connection = self._gateway.connect(query, partial(self._heard, subscriber, random))
            if status != 200:
                scheduler.sleep(random.randrange(2, 30) * SECOND)
                continue
            opened = scheduler.now
            if subscriber.since is None:
                subscriber.since = scheduler.now
            stays = scheduler.now + round(random.expovariate(1 / 2_000) * SECOND)
            while scheduler.now < stays and connection in self._account.sockets.open:
                scheduler.sleep(min(stays - scheduler.now, 50 * SECOND))
                socket = self._account.sockets.open.get(connection)
                if socket is not None:
                    # A ping.
                    socket.active_at = self._account.now_ms()
            self._gateway.cut(connection)
            vanished = connection in self._account.sockets.open
            subscriber.connections.append(Connection(connection, opened, scheduler.now, vanished))
            scheduler.sleep(round(random.expovariate(1 / 60) * SECOND))

    def _heard(self, subscriber: Subscriber, random: Random, connection: str, frame: str) -> None:
        if not frame:
            return
        header, _, body = frame.partition("\n\n")
        ack_id, description, _ = header.split("\n")
        content = json.loads(body)
        position = int.from_bytes(base64.b64decode(ack_id)[:8])
        now = self._account.scheduler.now
        source = description.rpartition("/")[2]
        came = Frame(now, connection, position, (content["p"], content["n"]), source, json.dumps(content))
        subscriber.frames.append(came)
        self._account.note(f"{subscriber.name} on {connection} gets p{content['p']}n{content['n']} at {position}")
        if random.random() < 0.97:
            after = round(random.expovariate(1 / 2) * SECOND)
            self._account.scheduler.spawn(partial(self._acknowledge, came, ack_id), after=after)

    def _acknowledge(self, came: Frame, ack_id: str) -> None:
        if came.connection in self._account.sockets.open:
            came.acknowledged = self._account.scheduler.now
            self._gateway.send(came.connection, ack_id, partial(self._noted, came))

    def _noted(self, came: Frame) -> None:
        # One in progress when its connection ends, or when its client is gone, may or may not count.
        socket = self._account.sockets.open.get(came.connection)
        if socket is not None and not socket.half_open:
            came.noted = self._account.scheduler.now

    def open(self) -> int:
        """Number of notifications that have not reached a subscriber."""
        count = 0
        for subscriber in self.subscribers:
            got = {each.key for each in subscriber.frames}
            count += sum(
                self._owed(subscriber, each) and (each.publisher, each.number) not in got for each in self.published
            )
        return count

    @staticmethod
    def _owed(subscriber: Subscriber, published: Published) -> bool:
        return (
            published.topic == subscriber.topic and subscriber.since is not None and published.began > subscriber.since
        )

    def talk(self) -> None:
        """The whole API, talked through; by two with equal names."""

        def basic(project: str, token: str) -> Mapping[str, str]:
            return {"authorization": f"Basic {base64.b64encode(f'{project}/me:{token}'.encode()).decode()}"}

        one, two = (self._client("/notification2", basic) for _ in range(2))
        connect = self._connects(self._gateway)
        talks.through(one, connect)
        topics.through(one, connect)
        command_line.topics(one, connect)
        whose.topics(one, two, connect)
        edges.topics(one, connect)
        bounds.topics(one, connect)
        topics_meanwhile.through(one, connect)
        topic_consumers.through(one, connect)
        topic_rules.through(one, connect)
        tenancy.through(
            self._client("/3/projects/{project}", lambda _, token: {"authorization": f"OAuth {token}"}), connect
        )

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        for subscriber in self.subscribers:
            yield from self._everything_arrived(subscriber)
            yield from self._in_order(subscriber)
        yield from self._one_order()
        self._judge()
        yield from self.judgement.total()

    def _everything_arrived(self, subscriber: Subscriber) -> Iterator[Violation]:
        got = {each.key for each in subscriber.frames}
        for each in self.published:
            if self._owed(subscriber, each) and (each.publisher, each.number) not in got:
                yield Violation("never arrived", f"p{each.publisher}n{each.number}", f"at {subscriber.name}")

    def _in_order(self, subscriber: Subscriber) -> Iterator[Violation]:
        """On one connection positions rise (shared subscribers: those of one source), but of what comes again."""
        seen: set[tuple[str, int]] = set()
        highest: dict[tuple[str, str], int] = {}
        for each in subscriber.frames:
            key = each.connection, each.source if subscriber.shared else ""
            if (each.connection, each.position) not in seen and each.position < highest.get(key, 0):
                detail = f"{subscriber.name} on {each.connection}: {each.position} after {highest[key]}"
                yield Violation("out of order", f"p{each.key[0]}n{each.key[1]}", detail)
            seen.add((each.connection, each.position))
            highest[key] = max(highest.get(key, 0), each.position)

    def _judge(self) -> None:
        now = self._account.scheduler.now
        model = Notifications(self.judgement, self._faults(SENDERS), ends=now)
        for subscriber in self.subscribers:
            frames = [
                SeenFrame(
                    each.at,
                    each.connection,
                    each.position,
                    each.key,
                    each.content,
                    each.acknowledged,
                    None if each.noted is None else each.noted + SECOND,
                )
                for each in subscriber.frames
            ]
            model.judge(self._contents, frames, subscriber.connections, shared=subscriber.shared)

    def _one_order(self) -> Iterator[Violation]:
        """A topic has one order, the same for all, which keeps the order of each publisher's requests."""
        at: dict[tuple[str, int], tuple[int, int]] = {}
        positions: dict[tuple[str, tuple[int, int]], set[int]] = defaultdict(set)
        for subscriber in self.subscribers:
            for each in subscriber.frames:
                known = at.setdefault((subscriber.topic, each.position), each.key)
                if known != each.key:
                    yield Violation(
                        "two at one place", f"p{each.key[0]}n{each.key[1]}", f"{known} at {each.position} too"
                    )
                positions[subscriber.topic, each.key].add(each.position)
        for (topic, key), found in positions.items():
            if len(found) > 1:
                yield Violation("published twice", f"p{key[0]}n{key[1]}", f"{topic}: at {sorted(found)}")
        for topic in TOPICS:
            for publisher in range(PUBLISHERS):
                own = sorted(
                    (key[1], min(found))
                    for (where, key), found in positions.items()
                    if where == topic and key[0] == publisher
                )
                for (number, place), (following, next_place) in itertools.pairwise(own):
                    if next_place < place:
                        detail = f"{topic}: {number} at {place}, {following} at {next_place}"
                        yield Violation("publisher's order", f"p{publisher}n{following}", detail)


def _api(topic: str) -> str:
    return "events" if topic == "orders" else "alarms"
