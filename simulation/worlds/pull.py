"""Pull queues: consumers that reserve, touch, release, delete, forget and die; dead letters; and what they were promised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from pushhub.engine.model.queue import Queue
from pushhub.engine.projects import Projects
from simulation.account import START_MS, Account, Operator
from simulation.scheduler import SECOND
from simulation.truth import Accepted, Truth, Violation
from simulation.weather import HOUR

QUEUES = 3
CONSUMERS = 3
MAX_RESERVATIONS = 4
CLOCKS_OFF_MS = 1_000


@dataclass
class Handed:
    """A message as a consumer got it.

    Attributes:
        message_id: Which.
        asked_at: When the consumer asked, microseconds.
        at: When the answer came.
        until: When the reservation ends at the earliest, microseconds; moved when it is given back or extended.
        reservation_id: Its reservation.
        consumer: Who got it.
    """

    message_id: str
    asked_at: int
    at: int
    until: int
    reservation_id: str
    consumer: str


class PullWorld:
    """A project with pull queues and their consumers.

    Args:
        account: Where it lives.
        truth: Watches the account.
        hours: How long producers post.
        rate: Posts per hour and queue, on average.
    """

    name = "pull"

    def __init__(self, account: Account, truth: Truth, hours: float, rate: float) -> None:
        self._account = account
        self._truth = truth
        self._hours = hours
        self._rate = rate
        self._stored: dict[str, Queue] = {}
        self.posted: list[tuple[str, str]] = []
        self.handed: dict[str, list[Handed]] = defaultdict(list)
        self.deletions: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._markers = 0

    @property
    def producers(self) -> list[str]:
        """Names of the producers, one for each queue."""
        return [f"producer-{each}" for each in range(QUEUES)]

    def set_up(self) -> None:
        """Make the project and its queues, before any weather."""
        operator = Operator(self._account)
        projects = Projects(config=operator.config, clock=operator.clock)
        self._project = projects.make("simulated").project_id
        self._token = projects.make_token(self._project)
        for number in range(QUEUES):
            settings: dict[str, Any] = {
                "type": "pull",
                "message_timeout": 60,
                "message_expiration": (3_600, 86_400)[number % 2],
            }
            if number % 2 == 0:
                settings["dead_letter"] = {"queue_name": "dead", "max_reservations": MAX_RESERVATIONS}
            make = partial(self._put, f"pull-{number}", settings)
            self._account.scheduler.spawn(make)
        self._account.scheduler.spawn(lambda: self._put("dead", {"type": "pull", "message_expiration": 2_592_000}))
        self._account.scheduler.run(self._account.scheduler.now + 60 * SECOND)
        for name in [*(f"pull-{each}" for each in range(QUEUES)), "dead"]:
            queue = operator.config.queue(self._project, name, fresh=True)
            assert queue is not None, name
            self._stored[name] = queue

    def _put(self, name: str, settings: dict[str, Any]) -> None:
        answer = self._account.http("PUT", self._path(name), {"queue": settings}, token=self._token)
        assert answer.status == 200, answer

    def _path(self, queue: str) -> str:
        return f"/3/projects/{self._project}/queues/{queue}"

    def begin(self, producers: frozenset[str]) -> None:
        """Let producers post and consumers ask from now on."""
        for number in range(QUEUES):
            name = f"pull-{number}"
            if f"producer-{number}" in producers:
                random = Random(f"{self._account.seed}/producer-{number}")
                self._account.scheduler.spawn(lambda name=name, random=random: self._produce(name, random))  # type: ignore[misc]
            for place in range(CONSUMERS):
                self._begin_consumer(name, f"{name}-c{place}")

    def _begin_consumer(self, queue: str, name: str) -> None:
        random = Random(f"{self._account.seed}/{name}")
        self._account.scheduler.spawn(lambda: self._consume(queue, name, random))

    def _produce(self, queue: str, random: Random) -> None:
        scheduler = self._account.scheduler
        end = scheduler.now + round(self._hours * HOUR)
        while True:
            scheduler.sleep(round(random.expovariate(self._rate) * HOUR))
            if scheduler.now >= end:
                return
            self._markers += 1
            bodies: list[dict[str, Any]] = [
                {"body": f"m{self._markers}.{place}"} for place in range(random.choice((1, 1, 5, 20)))
            ]
            if random.random() < 0.2:
                bodies[0]["delay"] = random.choice((1, 60, 3_600))
            scheduler.spawn(lambda bodies=bodies: self._post(queue, bodies))  # type: ignore[misc]

    def _post(self, queue: str, messages: list[dict[str, Any]]) -> None:
        for again in range(6):
            answer = self._account.http(
                "POST", f"{self._path(queue)}/messages", {"messages": messages}, token=self._token
            )
            if answer.status == 201:
                self.posted += [(queue, each) for each in answer.body["ids"]]
                return
            self._account.scheduler.sleep(2**again * SECOND)

    def _consume(self, queue: str, name: str, random: Random) -> None:
        account = self._account
        while True:
            account.scheduler.sleep(round(random.expovariate(1 / (90 * SECOND))))
            timeout = random.choice((30, 60, 120))
            asked_at = account.scheduler.now
            ask = {"n": random.choice((1, 5, 20)), "timeout": timeout, "wait": random.choice((0, 0, 10, 30))}
            answer = account.http("POST", f"{self._path(queue)}/reservations", ask, token=self._token)
            if answer.status != 200:
                continue
            for each in answer.body["messages"]:
                handed = Handed(
                    each["id"],
                    asked_at,
                    account.scheduler.now,
                    asked_at + timeout * SECOND,
                    each["reservation_id"],
                    name,
                )
                self.handed[each["id"]].append(handed)
                account.note(f"{name} gets {each['id']} reserved {each['reserved_count']}")
            if random.random() < 0.1:
                # The consumer dies with all it has.
                account.scheduler.sleep(random.randrange(300) * SECOND)
                continue
            for each in answer.body["messages"]:
                self._work(queue, self.handed[each["id"]][-1], timeout, random)

    def _work(self, queue: str, handed: Handed, timeout: int, random: Random) -> None:
        account = self._account
        account.scheduler.sleep(round(random.expovariate(1 / (2 * SECOND))))
        path, now = f"{self._path(queue)}/messages/{handed.message_id}", account.scheduler.now
        choice = random.random()
        if choice < 0.05:
            return
        if choice < 0.15:
            delay = random.choice((0, 0, 30))
            handed.until = min(handed.until, now)
            account.http(
                "POST", f"{path}/release", {"reservation_id": handed.reservation_id, "delay": delay}, token=self._token
            )
            return
        if choice < 0.25:
            answer = account.http(
                "POST",
                f"{path}/touch",
                {"reservation_id": handed.reservation_id, "timeout": timeout},
                token=self._token,
            )
            if answer.status != 200:
                # It may be extended under a reservation that nobody knows.
                return
            handed.reservation_id, handed.until = answer.body["reservation_id"], now + timeout * SECOND
        began = account.scheduler.now
        answer = account.http("DELETE", path, {"reservation_id": handed.reservation_id}, token=self._token)
        if answer.status in (0, 200, 404, 500, 503):
            # Not found: the SDK repeated a deletion that was made, and then met nothing.
            self.deletions[handed.message_id].append((began, answer.status))

    def open(self) -> int:
        """Messages that no consumer has deleted, and whose time is not over."""
        now = self._account.now_ms()
        return sum(
            each.gone_at is None and each.message.expires_at > now for name, each in self._messages() if name != "dead"
        )

    def _messages(self) -> Iterator[tuple[str, Accepted]]:
        by_uid = {each.pull_uid: name for name, each in self._stored.items()}
        for (uid, _), accepted in self._truth.accepted.items():
            if uid in by_uid:
                yield by_uid[uid], accepted

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        told = [message_id for _, message_id in self.posted]
        for message_id in {each for each in told if told.count(each) > 1} if len(set(told)) < len(told) else ():
            yield Violation("an identifier twice", message_id, f"told {told.count(message_id)} producers")
        for queue, message_id in self.posted:
            if (self._stored[queue].pull_uid, message_id) not in self._truth.accepted:
                yield Violation("accepted and not stored", message_id, queue)
        dead = {each.message.message_id for name, each in self._messages() if name == "dead"}
        for name, accepted in self._messages():
            if name != "dead":
                yield from self._ended(name, accepted, dead)
        for message_id, handed in self.handed.items():
            yield from self._handed_to_one(message_id, handed)

    def _ended(self, queue: str, accepted: Accepted, dead: set[str]) -> Iterator[Violation]:
        message_id, expires_at = accepted.message.message_id, accepted.message.expires_at
        if accepted.gone_at is None:
            if expires_at > self._account.now_ms():
                yield Violation("never ended", message_id, f"still in {queue}")
            return
        gone_ms = START_MS + accepted.gone_at // 1000
        if gone_ms >= expires_at or message_id in dead:
            return
        if not any(began <= accepted.gone_at for began, _ in self.deletions[message_id]):
            yield Violation(
                "gone and nobody deleted it", message_id, f"{queue}, {len(self.handed[message_id])} times handed out"
            )

    def _handed_to_one(self, message_id: str, handed: list[Handed]) -> Iterator[Violation]:
        """Whoever has a message reserved has it alone until his time is over."""
        in_order = sorted(handed, key=lambda each: each.at)
        for index, each in enumerate(in_order):
            for earlier in in_order[:index]:
                # The later one was answered before the time of the one that was asked for, and answered, before was over.
                if (
                    earlier.at < each.asked_at
                    and each.at < earlier.until - self._off
                    and earlier.consumer != each.consumer
                ):
                    yield Violation(
                        "reserved by two",
                        message_id,
                        f"{each.consumer} at {each.at / SECOND:.1f} s, {earlier.consumer} until {earlier.until / SECOND:.1f} s",
                    )
        for earlier in in_order:
            for began, status in self.deletions[message_id]:
                if status == 200 and earlier.asked_at > began + 60 * SECOND:
                    yield Violation(
                        "handed out after it was deleted",
                        message_id,
                        f"{earlier.consumer} at {earlier.at / SECOND:.1f} s",
                    )

    @property
    def _off(self) -> int:
        worst = max((each.rate for each in self._account.weather.storms if each.kind == "clocks"), default=0)
        return CLOCKS_OFF_MS * 1000 + round(2 * worst * SECOND)
