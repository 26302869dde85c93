"""Pull queues: consumers that reserve, touch, release, delete, forget and die; dead letters; and the promises made to
them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from simulation.account import START_MS, HttpAnswer
from simulation.scheduler import SECOND
from simulation.truth import Accepted, Violation
from simulation.weather import MINUTE
from simulation.worlds.world import World, moment

NAMES = ("pull-0", "pull-1", "pull-2")
BY_THE_CLOCK = "pull-1"
CONSUMERS = 3
CLEARS_AN_HOUR = 1.0
MAX_RESERVATIONS = 4
CLOCKS_OFF_MS = 1_000


@dataclass
class Handed:
    """A message as a consumer got it.

    Attributes:
        message_id: The message.
        asked_at: When the consumer asked, microseconds.
        at: When the answer came, microseconds.
        until: Earliest end of the reservation, microseconds; moved when it is given back or extended.
        reservation_id: Its reservation.
        consumer: The consumer that got it.
    """

    message_id: str
    asked_at: int
    at: int
    until: int
    reservation_id: str
    consumer: str


class PullWorld(World):
    """A project with pull queues and their consumers."""

    name = "pull"

    def set_up(self) -> None:
        """Make the project and its queues, before any weather."""
        self.posted: list[tuple[int, str]] = []
        self.handed: dict[str, list[Handed]] = defaultdict(list)
        self.deletions: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._make_project()
        makes = [partial(self._put, "dead", {"type": "pull", "message_expiration": 2_592_000})]
        for number, name in enumerate(NAMES):
            settings: dict[str, Any] = {
                "type": "pull",
                "message_timeout": 60,
                "message_expiration": (3_600, 86_400)[number % 2],
            }
            if number % 2 == 0:
                settings["dead_letter"] = {"queue_name": "dead", "max_reservations": MAX_RESERVATIONS}
            makes.append(partial(self._put, name, settings))
        self._in_good_weather(*makes)

    def _put(self, name: str, settings: dict[str, Any]) -> None:
        answer = self._ask("PUT", name, "", {"queue": settings})
        assert answer.status == 200, answer

    def _ask(self, method: str, queue: str, path: str, body: object = None) -> HttpAnswer:
        whole = f"/3/projects/{self._project}/queues/{queue}{path}"
        return self._account.http(method, whole, body, token=self._token)

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """A producer for each queue, and an owner who now and then empties one."""
        acts: dict[str, Callable[[], object]] = {}
        for number, name in enumerate(NAMES):
            random = self._chance(f"producer-{number}")
            post = partial(self._post, name, random)
            acts[f"producer-{number}"] = partial(self._each_while_traffic, random, post, an_hour=self._rate)
        random = self._chance("owner")
        clear = partial(self._clear, random)
        return acts | {"owner": partial(self._each_while_traffic, random, clear, an_hour=CLEARS_AN_HOUR)}

    def begin(self, names: Collection[str]) -> None:
        """Let producers post and consumers ask from now on."""
        super().begin(names)
        for name in NAMES:
            for place in range(CONSUMERS):
                consumer = f"{name}-c{place}"
                self._account.scheduler.spawn(partial(self._consume, name, consumer, self._chance(consumer)))

    def _post(self, queue: str, random: Random) -> None:
        began = self._account.scheduler.now
        messages: list[dict[str, Any]] = [{"body": "x"} for _ in range(random.choice((1, 1, 5, 20)))]
        if random.random() < 0.2:
            messages[0]["delay"] = random.choice((1, 60, 3_600))
        answer = self._until(201, lambda: self._ask("POST", queue, "/messages", {"messages": messages}))
        self.posted += [(began, each) for each in answer.body["ids"]] if answer else []

    def _clear(self, random: Random) -> None:
        """Empty a queue between two posts: earlier messages are removed, later ones are not."""
        queue = random.choice(NAMES)
        self._post(queue, random)
        answer = self._ask("DELETE", queue, "/messages", {})
        self._account.note(f"owner clears {queue}: {answer.status}")
        self._post(queue, random)

    def _consume(self, queue: str, name: str, random: Random) -> None:
        account = self._account
        while True:
            now = account.scheduler.now
            # The consumers of one queue all ask at the full minute.
            sleeps = MINUTE - now % MINUTE if queue == BY_THE_CLOCK else round(random.expovariate(1 / (90 * SECOND)))
            account.scheduler.sleep(sleeps)
            timeout = random.choice((30, 60, 120))
            asked_at = account.scheduler.now
            ask = {"n": random.choice((1, 5, 20)), "timeout": timeout, "wait": random.choice((0, 0, 10, 30))}
            answer = self._ask("POST", queue, "/reservations", ask)
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
                # The consumer dies with everything it holds.
                account.scheduler.sleep(random.randrange(300) * SECOND)
                continue
            for each in answer.body["messages"]:
                self._work(queue, self.handed[each["id"]][-1], timeout, random)

    def _work(self, queue: str, handed: Handed, timeout: int, random: Random) -> None:
        account = self._account
        account.scheduler.sleep(round(random.expovariate(1 / (2 * SECOND))))
        path, now = f"/messages/{handed.message_id}", account.scheduler.now
        choice = random.random()
        if choice < 0.05:
            return
        if choice < 0.15:
            delay = random.choice((0, 0, 30))
            handed.until = min(handed.until, now)
            self._ask("POST", queue, f"{path}/release", {"reservation_id": handed.reservation_id, "delay": delay})
            return
        if choice < 0.25:
            extend = {"reservation_id": handed.reservation_id, "timeout": timeout}
            answer = self._ask("POST", queue, f"{path}/touch", extend)
            if answer.status != 200:
                # It may have been extended with a reservation that nobody knows.
                return
            handed.reservation_id, handed.until = answer.body["reservation_id"], now + timeout * SECOND
        began = account.scheduler.now
        answer = self._ask("DELETE", queue, path, {"reservation_id": handed.reservation_id})
        if answer.status in (0, 200, 404, 500, 503):
            # Not found: the SDK repeated a deletion that had taken effect.
            self.deletions[handed.message_id].append((began, answer.status))

    def open(self) -> int:
        """Number of messages that were not deleted by a consumer, not cleared by their owner, and have not expired."""
        now = self._account.now_ms()
        return sum(
            each.gone_at is None and each.message.expires_at > now and self._cleared_at(each) is None
            for each in self._messages()
        )

    def _messages(self) -> Iterator[Accepted]:
        return (each for each in self._truth.accepted.values() if each.pull and each.message.queue in NAMES)

    def _cleared_at(self, accepted: Accepted) -> int | None:
        """When the owner emptied the queue that a message was in, microseconds: the queue then got a new generation of
        messages.
        """
        history = self._truth.queues[accepted.message.queue]
        own = [
            place for place, (_, queue) in enumerate(history) if queue and queue.pull_uid == accepted.message.queue_uid
        ]
        following = history[own[-1] + 1 :]
        return following[0][0] if following else None

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        for message_id, count in Counter(message_id for _, message_id in self.posted).items():
            if count > 1:
                yield Violation("an identifier twice", message_id, f"told {count} producers")
        stored = {each.message.message_id: each for each in self._messages()}
        for began, message_id in self.posted:
            if message_id not in stored:
                yield Violation("accepted and not stored", message_id, f"posted at {moment(began)}")
            elif (cleared_at := self._cleared_at(stored[message_id])) is not None and began > cleared_at:
                told = f"posted at {moment(began)}, cleared at {moment(cleared_at)}"
                yield Violation("cleared before it was posted", message_id, told)
        dead = {key[1] for key, each in self._truth.accepted.items() if each.message.queue == "dead"}
        for accepted in stored.values():
            yield from self._ended(accepted, dead)
        for message_id, handed in self.handed.items():
            yield from self._handed_to_one(message_id, handed)
            yield from self._not_cleared(stored[message_id], handed)

    def _ended(self, accepted: Accepted, dead: set[str]) -> Iterator[Violation]:
        message_id, expires_at, queue = accepted.message.message_id, accepted.message.expires_at, accepted.message.queue
        if self._cleared_at(accepted) is not None:
            return
        if accepted.gone_at is None:
            if expires_at > self._account.now_ms():
                yield Violation("never ended", message_id, f"still in {queue}")
            return
        gone_ms = START_MS + accepted.gone_at // 1000
        if gone_ms >= expires_at or message_id in dead:
            return
        if not any(began <= accepted.gone_at for began, _ in self.deletions[message_id]):
            told = f"{queue}, {len(self.handed[message_id])} times handed out"
            yield Violation("gone and nobody deleted it", message_id, told)

    def _not_cleared(self, accepted: Accepted, handed: list[Handed]) -> Iterator[Violation]:
        """Cleared messages are handed out to nobody, once all environments have read of the clearing."""
        cleared_at = self._cleared_at(accepted)
        for each in handed:
            if cleared_at is not None and each.asked_at > cleared_at + self._off:
                told = f"{each.consumer} at {moment(each.at)}, cleared at {moment(cleared_at)}"
                yield Violation("handed out after it was cleared", each.message_id, told)

    def _handed_to_one(self, message_id: str, handed: list[Handed]) -> Iterator[Violation]:
        """A consumer that has reserved a message has it exclusively until the reservation ends."""
        in_order = sorted(handed, key=lambda each: each.at)
        for index, each in enumerate(in_order):
            for earlier in in_order[:index]:
                # The earlier one was asked for and answered first, and the later one was answered while the earlier
                # reservation was still valid.
                if (
                    earlier.at < each.asked_at
                    and each.at < earlier.until - self._off
                    and earlier.consumer != each.consumer
                ):
                    yield Violation(
                        "reserved by two",
                        message_id,
                        (
                            f"{each.consumer} at {each.at / SECOND:.1f} s, {earlier.consumer} until "
                            f"{earlier.until / SECOND:.1f} s"
                        ),
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
