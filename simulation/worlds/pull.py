"""Pull queues: producers, and consumers that reserve, touch, release, delete, forget and die. What was asked and
answered is judged by :mod:`simulation.promises.pull`.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from random import Random
from typing import Any, Literal

from simulation.account import HttpAnswer
from simulation.bodies import bytes_body, text_body
from simulation.promises.judgement import Post, Violation
from simulation.promises.pull import Act, Clear, Got, PullQueues, Reserve, Settings
from simulation.promises.talks import (
    bounds,
    command_line,
    consumed,
    edges,
    ironmq_effects,
    ironmq_lists,
    ironmq_settings,
    lives,
    queue_consumers,
    queue_held,
    queued_events,
    whose,
)
from simulation.promises.talks import ironmq as talks
from simulation.scheduler import SECOND
from simulation.truth import Accepted
from simulation.weather import MINUTE
from simulation.worlds.world import World, moment

NAMES = ("pull-0", "pull-1", "pull-2")
DEAD = "dead"
BY_THE_CLOCK = "pull-1"
CONSUMERS = {"pull-0": 1, "pull-1": 3, "pull-2": 2}
"""Consumers of each queue: one is alone, those of another all ask at the full minute."""

CLEARS_AN_HOUR = 1.0
MAX_RESERVATIONS = 4
TIMEOUTS = (30, 60, 120)

QUEUES = {
    "pull-0": Settings(3_600, DEAD, MAX_RESERVATIONS),
    "pull-1": Settings(86_400),
    "pull-2": Settings(3_600, DEAD, MAX_RESERVATIONS),
    DEAD: Settings(2_592_000),
}


class PullWorld(World):
    """A project with pull queues and their consumers."""

    name = "pull"

    def set_up(self) -> None:
        """Make the project and its queues, before any weather."""
        self._posts: list[Post] = []
        self._reserves: list[Reserve] = []
        self._acts: list[Act] = []
        self._clears: list[Clear] = []
        self._numbers = itertools.count(1)
        self._make_project()
        self._in_good_weather(*(partial(self._put, name) for name in QUEUES))

    def _put(self, name: str) -> None:
        queue = QUEUES[name]
        settings: dict[str, Any] = {
            "type": "pull",
            "message_timeout": 60,
            "message_expiration": queue.expiration_s,
        }
        if queue.dead_letters:
            dead = {"queue_name": queue.dead_letters, "max_reservations": queue.max_reservations}
            settings["dead_letter"] = dead
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
            for place in range(CONSUMERS[name]):
                consumer = f"{name}-c{place}"
                self._account.scheduler.spawn(partial(self._consume, name, consumer, self._chance(consumer)))
        self._account.scheduler.spawn(partial(self._collect, self._chance(DEAD)))

    def _post(self, queue: str, random: Random) -> None:
        count, binary = random.choice((1, 1, 5, 20)), random.random() < 0.1
        names = [f"message-{next(self._numbers)}" for _ in range(1 if binary else count)]
        delays = [0] * len(names)
        if binary:
            exact = bytes_body(random, names[0])
            bodies, path, request = [exact], "/webhook", exact
        else:
            texts = [text_body(random, each) for each in names]
            bodies, path = [each.encode() for each in texts], "/messages"
            if random.random() < 0.2:
                delays[0] = random.choice((1, 60, 900))
            messages = [
                {"body": text} | ({"delay": delay} if delay else {}) for text, delay in zip(texts, delays, strict=True)
            ]
            request = {"messages": messages}  # type: ignore[assignment]

        def ask() -> HttpAnswer:
            answer = self._ask("POST", queue, path, request)
            ids = answer.body["ids"] if answer.status == 201 else ()
            self._posts.append(Post(queue, answer.exchange, bodies, delays, ids))
            return answer

        self._until(201, ask)

    def _clear(self, random: Random) -> None:
        """Empty a queue between two posts: earlier messages are removed, later ones are not."""
        queue = random.choice(NAMES)
        self._post(queue, random)
        answer = self._ask("DELETE", queue, "/messages", {})
        self._clears.append(Clear(queue, answer.exchange))
        self._account.note(f"owner clears {queue}: {answer.status}")
        self._post(queue, random)

    def _collect(self, random: Random) -> None:
        """Somebody takes the dead letters."""
        while True:
            self._account.scheduler.sleep(random.randrange(240, 360) * SECOND)
            self._reserve(DEAD, f"{DEAD}-c0", count=100, timeout=60, wait=0, delete=True)

    def _reserve(self, queue: str, name: str, *, count: int, timeout: int, wait: int, delete: bool) -> list[Got]:
        ask = {"n": count, "timeout": timeout, "wait": wait} | ({"delete": True} if delete else {})
        answer = self._ask("POST", queue, "/reservations", ask)
        got = [_got(each) for each in answer.body["messages"]] if answer.status == 200 else []
        self._reserves.append(Reserve(queue, answer.exchange, count, timeout, delete, got))
        for each in got:
            self._account.note(f"{name} gets {each.message_id} reserved {each.reserved_count}")
        return got

    def _consume(self, queue: str, name: str, random: Random) -> None:
        account = self._account
        while True:
            now = account.scheduler.now
            # The consumers of one queue all ask at the full minute.
            sleeps = MINUTE - now % MINUTE if queue == BY_THE_CLOCK else round(random.expovariate(1 / (90 * SECOND)))
            account.scheduler.sleep(sleeps)
            timeout, delete = random.choice(TIMEOUTS), random.random() < 0.05
            count, wait = random.choice((1, 5, 20)), random.choice((0, 0, 10, 30))
            got = self._reserve(
                queue, name, count=min(count, 5) if delete else count, timeout=timeout, wait=wait, delete=delete
            )
            if delete:
                continue
            fate = random.random()
            if fate < 0.1:
                # The consumer dies with everything it holds.
                account.scheduler.sleep(random.randrange(300) * SECOND)
            elif fate < 0.2 and got:
                self._delete_all(queue, got)
            else:
                for each in got:
                    self._work(queue, each, timeout, random)

    def _delete_all(self, queue: str, got: list[Got]) -> None:
        ids = [{"id": each.message_id, "reservation_id": each.reservation_id} for each in got]
        answer = self._ask("DELETE", queue, "/messages", {"ids": ids})
        for each in got:
            self._acts.append(
                Act("delete", queue, answer.exchange, each.message_id, each.reservation_id, among=len(got))
            )

    def _work(self, queue: str, got: Got, timeout: int, random: Random) -> None:
        self._account.scheduler.sleep(round(random.expovariate(1 / (2 * SECOND))))
        choice, reservation_id = random.random(), got.reservation_id
        if choice < 0.05:
            return
        if choice < 0.15:
            self._act("release", queue, got.message_id, reservation_id, random.choice((0, 0, 30)))
            return
        if choice < 0.25:
            answer = self._act("touch", queue, got.message_id, reservation_id, timeout)
            if answer.status != 200:
                # It may have been extended with a reservation that nobody knows.
                return
            reservation_id = answer.body["reservation_id"]
            if choice < 0.17:
                # The old one is void; nobody says how long this consumer stays away with the new one.
                self._act("delete", queue, got.message_id, got.reservation_id)
                return
            if choice < 0.19:
                return
        if choice > 0.97:
            # Too late for some of its reservations.
            self._account.scheduler.sleep(random.choice((50, 70)) * SECOND)
        self._act("delete", queue, got.message_id, reservation_id)

    def _act(
        self,
        kind: Literal["touch", "release", "delete"],
        queue: str,
        message_id: str,
        reservation_id: str,
        seconds: int = 0,
    ) -> HttpAnswer:
        path, named = f"/messages/{message_id}", {"reservation_id": reservation_id}
        if kind == "delete":
            answer = self._ask("DELETE", queue, path, named)
        else:
            given = {"timeout" if kind == "touch" else "delay": seconds}
            answer = self._ask("POST", queue, f"{path}/{kind}", named | given)
        new_id = answer.body.get("reservation_id", "") if answer.status == 200 else ""
        self._acts.append(Act(kind, queue, answer.exchange, message_id, reservation_id, seconds, new_id))
        return answer

    def open(self) -> int:
        """Number of messages that may still be in a queue, as far as their people know."""
        now = self._account.scheduler.now
        gone = {each.message_id for each in self._acts if each.kind == "delete" and each.exchange.done}
        for look in self._reserves:
            if look.delete:
                gone.update(each.message_id for each in look.messages)
        return sum(
            message_id not in gone and post.exchange.answered + QUEUES[post.queue].expiration_s * SECOND > now
            for post in self._posts
            for message_id in post.ids
            if not self._cleared(post)
        )

    def _cleared(self, post: Post) -> bool:
        return any(
            each.queue == post.queue and each.exchange.done and each.exchange.asked > post.exchange.answered
            for each in self._clears
        )

    def talk(self) -> None:
        """Pull queues, talked through; by two with equal names, also push queues."""
        one, two = (self._client("/3/projects/{project}", _oauth) for _ in range(2))
        talks.pull(one)
        ironmq_settings.pull(one)
        ironmq_lists.pull(one)
        ironmq_effects.pull(one)
        queue_consumers.through(one)
        queue_held.through(one)
        lives.pull(one)
        queued_events.queues(one)
        consumed.queues(one)
        command_line.moved(one, two)
        command_line.queues_taken_over(one, two)
        whose.queues(one, two)
        edges.queues(one)
        bounds.queues(one)

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        now = self._account.scheduler.now
        model = PullQueues(QUEUES, clocks_s=self._clocks_off_s, ends=now)
        model.judgement.most_excused = self.most_excused
        self.judgement = model.judge(self._posts, self._reserves, self._acts, self._clears)
        yield from self.judgement.total()
        for (_, message_id), accepted in self._truth.accepted.items():
            if accepted.pull and accepted.gone_at is not None and accepted.message.queue in QUEUES:
                reason = self._reason(message_id, accepted, accepted.gone_at)
                if not reason:
                    detail = f"{accepted.message.queue} at {moment(accepted.gone_at)}"
                    yield Violation("gone without a reason", message_id, detail)

    def _reason(self, message_id: str, accepted: Accepted, gone_at: int) -> bool:
        """Whether something that was asked for may have removed a message, or its time, or it is elsewhere.

        What was written counts, so that no fault excuses what is gone: whoever died between removing a message and
        storing it elsewhere has lost it.
        """
        queue = accepted.message.queue
        settings = QUEUES[queue]
        if gone_at >= accepted.at + settings.expiration_s * SECOND:
            return True
        if settings.dead_letters and self._is_elsewhere(message_id, settings.dead_letters):
            return True
        exchanges = [each.exchange for each in self._clears if each.queue == queue]
        exchanges += [
            each.exchange
            for each in self._acts
            if each.kind == "delete" and each.queue == queue and each.message_id == message_id
        ]
        exchanges += [
            each.exchange
            for each in self._reserves
            if each.delete
            and each.queue == queue
            and (each.exchange.unsure or any(got.message_id == message_id for got in each.messages))
        ]
        return any(each.asked <= gone_at and (each.done or each.unsure) for each in exchanges)

    def _is_elsewhere(self, message_id: str, queue: str) -> bool:
        return any(
            each.pull and each.message.queue == queue and each.message.message_id == message_id
            for each in self._truth.accepted.values()
        )


def _oauth(_: str, token: str) -> Mapping[str, str]:
    return {"authorization": f"OAuth {token}"}


def _got(shown: Mapping[str, Any]) -> Got:
    exact = shown.get("body_base64")
    body = base64.b64decode(exact) if exact is not None else shown["body"].encode()
    return Got(shown["id"], body, shown["reserved_count"], shown.get("reservation_id", ""))
