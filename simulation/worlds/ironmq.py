"""IronMQ: push queues of every kind with their producers, endpoints, and an owner who changes them; and the promises
made to them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from random import Random
from typing import Any

from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import PushSettings, Queue
from simulation.account import START_MS, HttpAnswer
from simulation.endpoints import Asked, Endpoint, Mood, life
from simulation.promises.judgement import Violation
from simulation.scheduler import SECOND
from simulation.truth import Accepted, Written
from simulation.worlds.world import Owed, PushWorld, moment

EARLY_MS = 1_100
"""How much earlier than due a delivery may be tried: only by the whole seconds of streams and the difference of clocks,
see ``_clocks_off``.
"""

IN_FORCE = SECOND
"""A request goes by the settings that its owner had made up to this long before it began (microseconds)."""

CHANGES_AN_HOUR = 1.5
"""How often per hour the owner changes something."""

VERSION = "accept-language"
"""The header that tells for which version of its settings a subscriber was asked: one that is not sealed, so that the
judge can read it in what is stored.
"""

QUEUES = 6
MOODS = (*Mood, Mood.LATER, Mood.LATER)
RACING = 3
"""The endpoints of this queue acknowledge a message while the hub is still recording that they got it."""


@dataclass
class PushQueue:
    """A push queue as its owner knows it.

    Attributes:
        name: Its name.
        kind: ``multicast`` or ``unicast``.
        settings: The settings it was created with.
        endpoints: By name of the subscriber.
    """

    name: str
    kind: str
    settings: dict[str, Any]
    endpoints: dict[str, Endpoint] = field(default_factory=dict)


@dataclass
class Posted:
    """A message that a producer was told was accepted.

    Attributes:
        queue: Its queue.
        message_id: The id in the answer.
        began: When it was first posted, microseconds.
        at: When the answer came, microseconds.
        key: Its ordering key, if it has one.
    """

    queue: str
    message_id: str
    began: int
    at: int
    key: str = ""


@dataclass
class Acknowledged:
    """An acknowledgement that was answered.

    Attributes:
        message_id: The acknowledged message.
        subscriber: The subscriber that acknowledged it.
        at: When the answer came, microseconds.
    """

    message_id: str
    subscriber: str
    at: int


class IronMqWorld(PushWorld):
    """A project with push queues."""

    name = "ironmq"
    producers = QUEUES

    def set_up(self) -> None:
        """Make the project and its queues, before any weather."""
        self._make_project()
        self.posted: list[Posted] = []
        self.acknowledged: list[Acknowledged] = []
        self.queues = [self._queue(number) for number in range(self.producers)]
        self._in_good_weather(*(partial(self._make, each) for each in self.queues))
        assert all(self._truth.queues[each.name] for each in self.queues)

    def _queue(self, number: int) -> PushQueue:
        random = self._random
        unicast = number % 3 == 2
        queue = PushQueue(f"queue-{number}", "unicast" if unicast else "multicast", {})
        subscribers = [self._subscriber(queue, f"s{number}-{place}") for place in range(random.randint(1, 4))]
        push = {
            "subscribers": subscribers,
            "retries": random.choice((0, 1, 3, 3, 10)),
            "retries_delay": random.choice((3, 10, 60, 60, 300, 2000)),
            "error_queue": random.choice(("", "errors", "errors")),
            "eager": self._eager(number),
        }
        queue.settings = {
            "type": queue.kind,
            "message_expiration": random.choice((60, 600, 3600, 86_400, 604_800)),
            "push": push,
        }
        if number == 1:
            # Many short waits, which wear an order out.
            push |= {"retries": 100, "retries_delay": 3}
            queue.settings["message_expiration"] = 86_400
        return queue

    def _subscriber(self, queue: PushQueue, name: str) -> dict[str, Any]:
        endpoint = self._account.endpoints.add(f"{name}.example", life(self._random, self._hours, MOODS))
        if name.startswith(f"s{RACING}-"):
            endpoint.moods = [(0, Mood.RACES)]
        endpoint.later = partial(self._acknowledge_later, endpoint)
        endpoint.about = lambda headers, _: self._delivery_of(headers["iron-message-id"], name)
        queue.endpoints[name] = endpoint
        return {"name": name, "url": f"https://{name}.example/in", "timeout": self._random.choice((5, 10, 30, 60))}

    def _make(self, queue: PushQueue) -> None:
        answer = self._ask("PUT", queue, "", {"queue": queue.settings})
        assert answer.status == 200, answer

    def _ask(self, method: str, queue: PushQueue, path: str, body: object = None) -> HttpAnswer:
        whole = f"/3/projects/{self._project}/queues/{queue.name}{path}"
        return self._account.http(method, whole, body, token=self._token)

    def _delivery_of(self, message_id: str, name: str) -> Owed:
        """The delivery of a message to the subscriber that had this name when the message was accepted."""
        message = self._truth.pushed[message_id]
        return message_id, next(
            (each for each in message.delivery_subscribers if self._name(message.queue, each) == name), "*"
        )

    def _name(self, queue: str, subscriber_id: str) -> str:
        """The owner's name for a subscriber, even a removed one; ``*`` for any one of several."""
        if subscriber_id == "*":
            return "*"
        settings = (each.push for _, each in self._truth.queues[queue] if each is not None and each.push is not None)
        return next(found.name for each in settings if (found := each.subscriber(subscriber_id)) is not None)

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """A producer for each queue, and the owner."""
        acts: dict[str, Callable[[], object]] = {
            f"producer-{number}": partial(self._produce, queue, self._chance(f"producer-{number}"))
            for number, queue in enumerate(self.queues)
        }
        return acts | {"owner": partial(self._own, self._chance("owner"))}

    def _produce(self, queue: PushQueue, random: Random) -> None:
        post = partial(self._post, queue, random)
        self._each_while_traffic(random, post, an_hour=self._rate)

    def _post(self, queue: PushQueue, random: Random) -> None:
        began, messages = self._account.scheduler.now, []
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            message: dict[str, Any] = {"body": "x" * random.choice((10, 10, 200, 9_000))}
            if random.random() < 0.1:
                message["delay"] = random.choice((1, 60, 1_000, 7_200))
            messages.append(message)
        answer = self._until(201, lambda: self._ask("POST", queue, "/messages", {"messages": messages}))
        for message_id in answer.body["ids"] if answer else ():
            self.posted.append(Posted(queue.name, message_id, began, self._account.scheduler.now))

    def _own(self, random: Random) -> None:
        """The owner changes a queue, a subscriber, or what is in a queue, in the middle of traffic."""
        changes = (
            self._change_retries,
            self._change_headers,
            self._change_headers,
            self._remove_subscriber,
            self._remove_subscriber,
            self._clear,
            self._delete_message,
            self._delete_message,
            self._delete_queue,
        )
        self._each_while_traffic(
            random, lambda: random.choice(changes)(random.choice(self.queues), random), an_hour=CHANGES_AN_HOUR
        )

    def _note(self, what: str, queue: PushQueue, answer: HttpAnswer) -> None:
        self._account.note(f"owner {what} {queue.name}: {answer.status}")

    def _change_retries(self, queue: PushQueue, random: Random) -> None:
        push = {"retries": random.choice((0, 3, 10)), "retries_delay": random.choice((3, 60, 2000))}
        self._note("changes", queue, self._ask("PATCH", queue, "", {"queue": {"push": push}}))

    def _change_headers(self, queue: PushQueue, random: Random) -> None:
        given = random.choice(queue.settings["push"]["subscribers"])
        changed = {**given, "headers": {VERSION: str(self._account.scheduler.now)}}
        self._note(
            f"changes {given['name']} of", queue, self._ask("POST", queue, "/subscribers", {"subscribers": [changed]})
        )

    def _remove_subscriber(self, queue: PushQueue, random: Random) -> None:
        """Remove a subscriber, and add it again later: it is then a different one."""
        given = random.choice(queue.settings["push"]["subscribers"])
        gone = {"subscribers": [{"name": given["name"]}]}
        self._note(f"removes {given['name']} from", queue, self._ask("DELETE", queue, "/subscribers", gone))
        self._account.scheduler.sleep(random.choice((5, 600, 4_000)) * SECOND)
        self._until(200, lambda: self._ask("POST", queue, "/subscribers", {"subscribers": [given]}))

    def _clear(self, queue: PushQueue, random: Random) -> None:  # noqa: ARG002 (as the others)
        self._note("clears", queue, self._ask("DELETE", queue, "/messages", {}))

    def _delete_message(self, queue: PushQueue, random: Random) -> None:
        own = [each for each in self.posted if each.queue == queue.name][-20:]
        if own:
            message_id = random.choice(own).message_id
            self._note(f"deletes {message_id} in", queue, self._ask("DELETE", queue, f"/messages/{message_id}", {}))

    def _delete_queue(self, queue: PushQueue, random: Random) -> None:
        """Delete a queue, and create it again under its name: the new one must show nothing of the old one."""
        self._note("deletes", queue, self._ask("DELETE", queue, ""))
        self._account.scheduler.sleep(random.choice((0, 5, 300)) * SECOND)

        def make() -> HttpAnswer:
            answer = self._ask("PUT", queue, "", {"queue": queue.settings})
            if answer.status == 403:
                # A post in between created a pull queue.
                self._ask("DELETE", queue, "")
            return answer

        self._until(200, make, tries=12)

    def _acknowledge_later(self, endpoint: Endpoint, seen: Asked) -> None:
        random = self._random
        if endpoint.mood() is Mood.RACES:
            self._account.scheduler.spawn(lambda: self._acknowledge(seen))
        elif random.random() >= 0.15:
            after = random.choice((0, 0, 1, 20, 200))
            self._account.scheduler.spawn(lambda: self._acknowledge(seen), after=after * SECOND)

    def _acknowledge(self, seen: Asked) -> None:
        path = seen.headers["iron-subscriber-message-url"].removeprefix("https://hub.example")
        for _ in range(3):
            answer = self._account.http("DELETE", path)
            if answer.status == 200:
                who, now = seen.headers["iron-subscriber-name"], self._account.scheduler.now
                self.acknowledged.append(Acknowledged(seen.message_id, who, now))
            if answer.status not in (0, 500, 503):
                return
            self._account.scheduler.sleep(self._random.randrange(1, 20) * SECOND)

    @cached_property
    def _by_name(self) -> Mapping[str, PushQueue]:
        return {each.name: each for each in self.queues}

    def _is_own(self, message: Message) -> bool:
        return message.queue in self._by_name

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        yield from self._accepted_once()
        errors = self._errors()
        for accepted, owed in self._owed():
            yield from self._delivery(accepted, owed, errors)
        yield from self._acknowledgements()
        for key in self._truth.removed_early:
            yield Violation("removed before its end", key[0], f"{key} was removed by its time to live")

    def _accepted_once(self) -> Iterator[Violation]:
        for message_id, count in Counter(each.message_id for each in self.posted).items():
            if count > 1:
                yield Violation("an identifier twice", message_id, f"told {count} producers")
        for each in self.posted:
            # A producer may post to a queue that was just deleted; the post then creates it as a pull queue.
            stored = self._truth.pushed.get(each.message_id)
            if stored is None and not any(key[1] == each.message_id for key in self._truth.accepted):
                yield Violation("accepted and not stored", each.message_id, f"{each.queue} at {moment(each.at)}")
            void = None if stored is None else self._void_since(stored)
            if void is not None and each.began > void + self._clocks_off * 1000:
                told = f"posted to {each.queue} at {moment(each.began)}, void since {moment(void)}"
                yield Violation("taken back before it was posted", each.message_id, told)

    def _errors(self) -> Counter[Owed]:
        """Messages in the error queue, by the message they are about and the subscriber's name (unicast: ``*``)."""
        found: Counter[Owed] = Counter()
        for accepted in self._truth.accepted.values():
            if accepted.pull and accepted.message.queue == "errors":
                told = json.loads(self._body(accepted.message))
                unicast = self._by_name[told["queue"]].kind == "unicast"
                found[told["source_msg_id"], "*" if unicast else told["subscribers"][0]["name"]] += 1
        return found

    def _asked(self, message: Message, name: str) -> list[Asked]:
        """Every request for a delivery, in order."""
        endpoints = self._by_name[message.queue].endpoints
        chosen = endpoints.values() if name == "*" else [endpoints[name]]
        found = [seen for each in chosen for seen in each.about_message.get(message.message_id, ())]
        return sorted(found, key=lambda seen: seen.at)

    def _settings_of(self, message: Message, until: int) -> list[PushSettings]:
        """The settings that a message may have been delivered with, up to a time (microseconds)."""
        return [
            each.push
            for at, each in self._truth.queues[message.queue]
            if each is not None and each.push is not None and each.uid == message.queue_uid and at <= until
        ]

    def _void_since(self, message: Message) -> int | None:
        """When its owner cleared or deleted a message's queue, microseconds."""
        history = self._truth.queues[message.queue]
        own = [place for place, (_, queue) in enumerate(history) if queue and queue.uid == message.queue_uid]
        for at, queue in history[own[0] :]:
            if queue is None or queue.uid != message.queue_uid or message.accepted_at <= queue.cleared_at:
                return at
        return None

    def _delivery(self, accepted: Accepted, owed: Owed, errors: Counter[Owed]) -> Iterator[Violation]:
        message, (message_id, subscriber_id) = accepted.message, owed
        name = self._name(message.queue, subscriber_id)
        where = f"{message.queue} to {name}"
        if not self._has_ended(owed):
            yield self._never_ended(owed, where)
            return
        history, asked = self._truth.deliveries[owed], self._asked(message, name)
        last, void = history[-1], self._void_since(message)
        yield from self._as_promised(accepted, owed, name, last, asked)
        if sum(each.settled for each in history) > 1 and len({each.state for each in history if each.settled}) > 1:
            yield Violation("ended twice", message_id, str([each.state for each in history]))
        if any(later.version <= earlier.version for earlier, later in pairwise(history)):
            yield Violation("began anew", message_id, str([(each.version, each.state) for each in history]))
        wanted = any(each.error_queue for each in self._settings_of(message, last.at))
        wanted = wanted and last.state in {"exhausted", "expired"}
        # A subscriber that was removed before any attempt was recorded has no name in the error message.
        nameless = wanted and not last.attempts and errors[message_id, ""] > 0
        told = errors[message_id, name] or int(nameless)
        # The environment that wrote the end may have died before it queued the error message, and the order that would
        # have made up for it may have been purged.
        forgiven = accepted.deleted or void is not None or message_id in self._account.purged
        if told != wanted and not (told < wanted and forgiven):
            yield Violation("error queue", message_id, f"{told} error messages about {name}, which is {last.state}")
        yield from self._asked_after_its_end(owed, asked, where)
        yield from self._asked_twice(owed, asked, where)
        for seen in asked:
            if void is not None and seen.at > void + IN_FORCE:
                told_at = f"{where} at {moment(seen.at)}, void since {moment(void)}"
                yield Violation("asked after its owner took it back", message_id, told_at)
        yield from self._as_it_was_set(message, owed, where)
        yield from self._not_early(message_id, history, asked)

    def _as_it_was_set(self, message: Message, owed: Owed, where: str) -> Iterator[Violation]:
        """Every request goes to a subscriber, with its headers, as its owner had set it a second before or since."""
        name, history = self._name(message.queue, owed[1]), self._truth.queues[message.queue]
        for asked, endpoint in self._by_name[message.queue].endpoints.items():
            for seen in endpoint.about_message.get(message.message_id, ()) if name in ("*", asked) else ():
                ends = [*(at for at, _ in history[1:]), seen.at]
                in_force = (
                    queue
                    for (at, queue), end in zip(history, ends, strict=True)
                    if at <= seen.at and end >= seen.at - IN_FORCE
                )
                if not any(_is_so(each, message, owed[1], asked, seen) for each in in_force):
                    told = f"{where} ({asked}) at {moment(seen.at)}, version {seen.headers.get(VERSION, 'none')}"
                    yield Violation("asked the old way", message.message_id, told)

    def _as_promised(
        self, accepted: Accepted, owed: Owed, name: str, last: Written, asked: list[Asked]
    ) -> Iterator[Violation]:
        message, message_id = accepted.message, owed[0]
        statuses = [each.status for each in asked]
        settings = self._settings_of(message, last.at)
        if last.tries > max(each.retries for each in settings) + 1:
            yield Violation("more tries than allowed", message_id, f"{last.tries} at {name}")
        if last.state == "delivered" and not any(200 <= each < 300 and each != 202 for each in statuses):
            yield Violation("delivered to nobody", message_id, f"{name} answered {statuses}")
        here = [each for each in message.subscriber_ids if owed[1] in ("*", each) and settings[-1].subscriber(each)]
        if last.state == "exhausted" and here and last.tries <= min(each.retries for each in settings):
            yield Violation("given up too soon", message_id, f"{name}: {last.tries} tries, answers {statuses}")
        if last.state == "expired" and START_MS + last.at // 1000 < message.expires_at - self._clocks_off:
            yield Violation("expired too soon", message_id, f"{name}: expires at {message.expires_at}")
        if last.state == "cancelled" and not accepted.deleted and self._void_since(message) is None:
            yield Violation("cancelled by nobody", message_id, name)
        if last.state not in {"delivered", "acknowledged", "exhausted", "expired", "cancelled"}:
            yield Violation("ended otherwise", message_id, f"{name}: {last.state}")

    @property
    def _clocks_off(self) -> int:
        """The most by which two clocks may differ, milliseconds."""
        worst = max((each.rate for each in self._account.weather.storms if each.kind == "clocks"), default=0)
        return EARLY_MS + round(2_000 * worst)

    def _not_early(self, message_id: str, history: list[Written], asked: list[Asked]) -> Iterator[Violation]:
        for seen in asked:
            known = [each for each in history if each.at <= seen.known_at]
            if not known or known[-1].due_at is None:
                continue
            at_ms = START_MS + seen.at // 1000
            if at_ms < known[-1].due_at - self._clocks_off:
                told = f"at {moment(seen.at)}, due {(known[-1].due_at - at_ms) / 1000:.1f} s later"
                yield Violation("asked before its time", message_id, told)

    def _acknowledgements(self) -> Iterator[Violation]:
        unicast = {name for each in self.queues if each.kind == "unicast" for name in each.endpoints}
        for each in self.acknowledged:
            message = self._truth.pushed[each.message_id]
            who = "*" if each.subscriber in unicast else each.subscriber
            history = self._truth.deliveries.get(self._delivery_of(each.message_id, who), [])
            states = {written.state for written in history[-1:]}
            if not {"acknowledged", "delivered"} & states:
                told = f"{each.subscriber}: {sorted(states)}"
                yield Violation("acknowledged and not so", each.message_id, told)
            for seen in self._asked(message, who):
                if seen.known_at > each.at:
                    told = f"at {moment(seen.at)}, acknowledged at {moment(each.at)}"
                    yield Violation("asked after its acknowledgement", each.message_id, told)


def _is_so(queue: Queue | None, message: Message, subscriber_id: str, name: str, seen: Asked) -> bool:
    """Whether a request fits a version of the queue that its message is in."""
    if queue is None or queue.push is None or queue.uid != message.queue_uid or message.accepted_at <= queue.cleared_at:
        return False
    wanted = (
        each for each in queue.push.subscribers if name == each.name and subscriber_id in ("*", each.subscriber_id)
    )
    return any(each.headers.get(VERSION) == seen.headers.get(VERSION) for each in wanted)


__all__ = ["IronMqWorld", "Posted", "PushQueue"]
