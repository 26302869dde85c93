"""IronMQ: push queues of every kind with their producers and endpoints, and what they were promised."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from pushhub.engine.model.queue import Queue
from pushhub.engine.projects import Projects
from simulation.account import START_MS, Account, Operator
from simulation.endpoints import Asked, Endpoint, life
from simulation.scheduler import SECOND
from simulation.truth import Truth, Violation, Written
from simulation.weather import HOUR

EARLY_MS = 1_100
"""How much before its time a delivery may be tried: nothing, but for whole seconds of streams and clocks that are off, see ``_clocks_off``."""

REPEATS = 6
"""A producer posts again so often after an answer of 5xx or none."""


@dataclass
class PushQueue:
    """A push queue as its owner knows it.

    Attributes:
        name: Its name.
        kind: ``multicast`` or ``unicast``.
        settings: As asked for.
        stored: As the hub has it.
        endpoints: By name of the subscriber.
    """

    name: str
    kind: str
    settings: dict[str, Any]
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    stored: Queue | None = None


@dataclass
class Posted:
    """A message that a producer was told was accepted.

    Attributes:
        queue: Where to.
        message_id: What it was told.
        at: When, microseconds.
        marker: What its body begins with.
    """

    queue: str
    message_id: str
    at: int
    marker: str


@dataclass
class Acknowledged:
    """An acknowledgement that was answered.

    Attributes:
        message_id: Of what.
        subscriber: By whom.
        at: When the answer came, microseconds.
    """

    message_id: str
    subscriber: str
    at: int


class IronMqWorld:
    """A project with push queues.

    Args:
        account: Where it lives.
        truth: Watches the account.
        hours: How long producers post.
        rate: Posts per hour and queue, on average.
    """

    name = "ironmq"

    def __init__(self, account: Account, truth: Truth, hours: float, rate: float) -> None:
        self._account = account
        self._truth = truth
        self._hours = hours
        self._rate = rate
        self._random = Random(f"{account.seed}/ironmq")
        self.queues: list[PushQueue] = []
        self.posted: list[Posted] = []
        self.acknowledged: list[Acknowledged] = []
        self.unsure: Counter[str] = Counter()
        self._markers = 0

    @property
    def producers(self) -> list[str]:
        """Names of the producers, one for each queue; a run may leave some out."""
        return [f"producer-{each}" for each in range(6)]

    def set_up(self) -> None:
        """Make the project and its queues, before any weather."""
        operator = Operator(self._account)
        projects = Projects(config=operator.config, clock=operator.clock)
        self._project = projects.make("simulated").project_id
        self._token = projects.make_token(self._project)
        for number in range(6):
            self._make_queue(number)
        self._account.scheduler.run(self._account.scheduler.now + 60 * SECOND)
        for queue in self.queues:
            queue.stored = operator.config.queue(self._project, queue.name, fresh=True)
            assert queue.stored is not None, queue.name
            assert queue.stored.push is not None, queue.name
            ids = {each.name: each.subscriber_id for each in queue.stored.push.subscribers}
            for name, endpoint in queue.endpoints.items():
                endpoint.about = lambda headers, _, own=ids[name]: (headers["iron-message-id"], own)  # type: ignore[misc]

    def _make_queue(self, number: int) -> None:
        random = self._random
        unicast = number % 3 == 2
        queue = PushQueue(f"queue-{number}", "unicast" if unicast else "multicast", {})
        subscribers = []
        for place in range(random.randint(1, 4)):
            name = f"s{number}-{place}"
            endpoint = self._account.endpoints.add(f"{name}.example", life(random, self._hours))
            endpoint.later = self._acknowledge_later
            queue.endpoints[name] = endpoint
            timeout = random.choice((5, 10, 30, 60))
            subscribers.append({"name": name, "url": f"https://{name}.example/in", "timeout": timeout})
        push = {
            "subscribers": subscribers,
            "retries": random.choice((0, 1, 3, 3, 10)),
            "retries_delay": random.choice((3, 10, 60, 60, 300, 2000)),
            "error_queue": random.choice(("", "errors", "errors")),
        }
        queue.settings = {
            "type": queue.kind,
            "message_expiration": random.choice((60, 600, 3600, 86_400, 604_800)),
            "push": push,
        }
        if number == 1:
            # Many short waits: what wears an order out.
            push |= {"retries": 100, "retries_delay": 3}
            queue.settings["message_expiration"] = 86_400
        self.queues.append(queue)
        path = f"/3/projects/{self._project}/queues/{queue.name}"

        def make() -> None:
            answer = self._account.http("PUT", path, {"queue": queue.settings}, token=self._token)
            assert answer.status == 200, answer

        self._account.scheduler.spawn(make)

    def begin(self, producers: frozenset[str]) -> None:
        """Let producers post from now on."""
        for number, queue in enumerate(self.queues):
            if f"producer-{number}" in producers:
                random = Random(f"{self._account.seed}/producer-{number}")
                self._account.scheduler.spawn(lambda queue=queue, random=random: self._produce(queue, random))  # type: ignore[misc]

    def _produce(self, queue: PushQueue, random: Random) -> None:
        scheduler = self._account.scheduler
        end = scheduler.now + round(self._hours * HOUR)
        while True:
            scheduler.sleep(round(random.expovariate(self._rate) * HOUR))
            if scheduler.now >= end:
                return
            count = random.choice((1, 1, 1, 2, 5))
            scheduler.spawn(lambda count=count: self._post(queue, count, random))  # type: ignore[misc]

    def _post(self, queue: PushQueue, count: int, random: Random) -> None:
        account = self._account
        self._markers += 1
        marker = f"m{self._markers}"
        messages = []
        for place in range(count):
            message: dict[str, Any] = {"body": f"{marker}.{place} " + "x" * random.choice((10, 10, 200, 9_000))}
            if random.random() < 0.1:
                message["delay"] = random.choice((1, 60, 1_000, 7_200))
            messages.append(message)
        path = f"/3/projects/{self._project}/queues/{queue.name}/messages"
        for again in range(REPEATS):
            answer = account.http("POST", path, {"messages": messages}, token=self._token)
            if answer.status == 201:
                for place, message_id in enumerate(answer.body["ids"]):
                    self.posted.append(Posted(queue.name, message_id, account.scheduler.now, f"{marker}.{place}"))
                return
            self.unsure[f"post {answer.status}"] += 1
            account.scheduler.sleep(round(random.random() * 2**again * SECOND))

    def _acknowledge_later(self, seen: Asked) -> None:
        random = self._random
        if random.random() < 0.15:
            return
        after = random.choice((0, 1, 2, 20, 200))
        self._account.scheduler.spawn(lambda: self._acknowledge(seen), after=after * SECOND)

    def _acknowledge(self, seen: Asked) -> None:
        path = seen.headers["iron-subscriber-message-url"].removeprefix("https://hub.example")
        for _ in range(3):
            answer = self._account.http("DELETE", path)
            if answer.status == 200:
                self.acknowledged.append(
                    Acknowledged(
                        seen.headers["iron-message-id"],
                        seen.headers["iron-subscriber-name"],
                        self._account.scheduler.now,
                    )
                )
            if answer.status not in (0, 500, 503):
                return
            self._account.scheduler.sleep(self._random.randrange(1, 20) * SECOND)

    def open(self) -> int:
        """Deliveries that have not ended."""
        count = 0
        for _, owed in self._owed():
            history = self._truth.deliveries.get(owed)
            count += not (history and history[-1].settled)
        return count

    def _owed(self) -> Iterator[tuple[PushQueue, tuple[str, str]]]:
        """Every delivery of every message that the hub has, with its queue."""
        by_uid = {each.stored.uid: each for each in self.queues if each.stored}
        for (uid, message_id), accepted in self._truth.accepted.items():
            if uid in by_uid:
                for subscriber_id in accepted.message.delivery_subscribers:
                    yield by_uid[uid], (message_id, subscriber_id)

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        yield from self._accepted_once()
        requests = self._requests()
        errors = self._errors()
        for queue, owed in self._owed():
            yield from self._delivery(queue, owed, requests, errors)
        yield from self._acknowledgements(requests)
        for key in self._truth.removed_early:
            yield Violation("removed before its end", key[0], f"{key} was removed by its time to live")

    def _accepted_once(self) -> Iterator[Violation]:
        by_name = {each.name: each.stored.uid for each in self.queues if each.stored}
        for message_id, count in Counter(each.message_id for each in self.posted).items():
            if count > 1:
                yield Violation("an identifier twice", message_id, f"told {count} producers")
        for each in self.posted:
            accepted = self._truth.accepted.get((by_name[each.queue], each.message_id))
            if accepted is None:
                yield Violation("accepted and not stored", each.message_id, f"{each.queue} at {each.at}")

    def _requests(self) -> dict[tuple[str, str], list[tuple[Asked, str]]]:
        """Every request to an endpoint, by message and subscriber's name (unicast: ``*``)."""
        found: dict[tuple[str, str], list[tuple[Asked, str]]] = defaultdict(list)
        for queue in self.queues:
            for name, endpoint in queue.endpoints.items():
                for seen in endpoint.log:
                    found[seen.message_id, "*" if queue.kind == "unicast" else name].append((seen, name))
        for each in found.values():
            each.sort(key=lambda pair: pair[0].at)
        return found

    def _errors(self) -> Counter[tuple[str, str]]:
        """Messages in the error queue, by the message they are about and the subscriber (unicast: ``*``)."""
        found: Counter[tuple[str, str]] = Counter()
        unicast = {each.name for each in self.queues if each.kind == "unicast"}
        for accepted in self._truth.accepted.values():
            if accepted.pull and accepted.message.queue == "errors":
                body = accepted.message.body or self._body(accepted.message.body_ref)
                told = json.loads(body)
                who = "*" if told["queue"] in unicast else told["subscribers"][0]["name"]
                found[told["source_msg_id"], who] += 1
        return found

    def _body(self, ref: Any) -> bytes:
        stored = self._account.s3.objects["BodiesBucket", ref.key]
        return stored[ref.offset : ref.offset + ref.length]

    def _name(self, queue: PushQueue, subscriber_id: str) -> str:
        if subscriber_id == "*":
            return "*"
        assert queue.stored is not None
        assert queue.stored.push is not None
        subscriber = queue.stored.push.subscriber(subscriber_id)
        return subscriber.name if subscriber else subscriber_id

    def _delivery(
        self,
        queue: PushQueue,
        owed: tuple[str, str],
        requests: dict[tuple[str, str], list[tuple[Asked, str]]],
        errors: Counter[tuple[str, str]],
    ) -> Iterator[Violation]:
        assert queue.stored is not None
        message_id, subscriber_id = owed
        name = self._name(queue, subscriber_id)
        accepted = self._truth.accepted[queue.stored.uid, message_id]
        history = self._truth.deliveries.get(owed, [])
        asked = requests.get((message_id, name), [])
        if not history or not history[-1].settled:
            state = history[-1].state if history else "never looked at"
            yield Violation("never ended", message_id, f"{queue.name} to {name}: {state}, {len(asked)} requests")
            return
        last = history[-1]
        yield from self._as_promised(queue, owed, name, last, asked)
        if last.tries > queue.settings["push"]["retries"] + 1:
            yield Violation("more tries than allowed", message_id, f"{last.tries} at {name}")
        if sum(each.settled for each in history) > 1 and len({each.state for each in history if each.settled}) > 1:
            yield Violation("ended twice", message_id, str([each.state for each in history]))
        if any(later.version <= earlier.version for earlier, later in pairwise(history)):
            yield Violation("began anew", message_id, str([(each.version, each.state) for each in history]))
        wants_error = bool(queue.settings["push"]["error_queue"]) and last.state in {"exhausted", "expired"}
        if errors[message_id, name] != wants_error and not accepted.deleted:
            told = f"{errors[message_id, name]} error messages about {name}, which is {last.state}"
            yield Violation("error queue", message_id, told)
        settled_at = self._truth.settled_at(*owed)
        for seen, who in asked:
            if settled_at is not None and seen.known_at > settled_at:
                yield Violation(
                    "asked after its end",
                    message_id,
                    f"{who} at {_told(seen.at)}, {last.state} since {_told(settled_at)}",
                )
        yield from self._not_early(message_id, history, asked)

    def _as_promised(
        self,
        queue: PushQueue,
        owed: tuple[str, str],
        name: str,
        last: Written,
        asked: list[tuple[Asked, str]],
    ) -> Iterator[Violation]:
        assert queue.stored is not None
        message_id, _ = owed
        message = self._truth.accepted[queue.stored.uid, message_id].message
        statuses = [each.status for each, _ in asked]
        if last.state == "delivered" and not any(200 <= each < 300 and each != 202 for each in statuses):
            yield Violation("delivered to nobody", message_id, f"{name} answered {statuses}")
        if last.state == "exhausted" and last.tries <= queue.settings["push"]["retries"]:
            yield Violation("given up too soon", message_id, f"{name}: {last.tries} tries, answers {statuses}")
        if last.state == "expired" and START_MS + last.at // 1000 < message.expires_at - self._clocks_off:
            yield Violation("expired too soon", message_id, f"{name}: expires at {message.expires_at}")
        if last.state in {"cancelled"}:
            yield Violation("cancelled by nobody", message_id, name)
        if last.state not in {"delivered", "acknowledged", "exhausted", "expired"}:
            yield Violation("ended otherwise", message_id, f"{name}: {last.state}")

    @property
    def _clocks_off(self) -> int:
        """How far two clocks may be apart, milliseconds."""
        worst = max((each.rate for each in self._account.weather.storms if each.kind == "clocks"), default=0)
        return EARLY_MS + round(2_000 * worst)

    def _not_early(
        self, message_id: str, history: list[Written], asked: list[tuple[Asked, str]]
    ) -> Iterator[Violation]:
        for seen, who in asked:
            known = [each for each in history if each.at <= seen.known_at]
            if not known or known[-1].due_at is None:
                continue
            at_ms = START_MS + seen.at // 1000
            if at_ms < known[-1].due_at - self._clocks_off:
                yield Violation(
                    "asked before its time",
                    message_id,
                    f"{who} at {_told(seen.at)}, due {(known[-1].due_at - at_ms) / 1000:.1f} s later",
                )

    def _acknowledgements(self, requests: dict[tuple[str, str], list[tuple[Asked, str]]]) -> Iterator[Violation]:
        unicast = {name for each in self.queues if each.kind == "unicast" for name in each.endpoints}
        for each in self.acknowledged:
            who = "*" if each.subscriber in unicast else each.subscriber
            states = self._states_of(each.message_id, who)
            if not {"acknowledged", "delivered"} & states:
                yield Violation("acknowledged and not so", each.message_id, f"{each.subscriber}: {sorted(states)}")
            for seen, name in requests[each.message_id, who]:
                if seen.known_at > each.at:
                    yield Violation(
                        "asked after its acknowledgement",
                        each.message_id,
                        f"{name} at {_told(seen.at)}, acknowledged at {_told(each.at)}",
                    )

    def _states_of(self, message_id: str, who: str) -> set[str]:
        """How a delivery ended, by the subscriber's name (unicast: ``*``)."""
        found = set()
        for queue in self.queues:
            if who == "*" or who in queue.endpoints:
                assert queue.stored is not None
                assert queue.stored.push is not None
                ids = {each.name: each.subscriber_id for each in queue.stored.push.subscribers}
                history = self._truth.deliveries.get((message_id, ids.get(who, who)), [])
                found |= {each.state for each in history[-1:]}
        return found


def _told(at: int) -> str:
    return f"{at / SECOND:.3f} s"
