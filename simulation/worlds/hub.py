"""The hub protocol: a store with mappings, services that answer at once, later, or with further messages, and what was promised."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pushhub.engine.projects import Projects
from pushhub.hub.model.object_ids import from_object_id
from simulation.account import Account, Operator
from simulation.endpoints import Asked, Endpoint, Mood, Reply, life
from simulation.scheduler import SECOND
from simulation.truth import Accepted, Truth, Violation
from simulation.weather import HOUR

TYPES = ("order:new", "order:paid", "stock:low")
CHILD = "child:made"
SERVICES = 5
HELD = "held"
MOODS = tuple(each for each in Mood if each not in {Mood.LATER, Mood.FORGETS})


@dataclass
class Service:
    """A service of an endpoint, as the owner of the store set it up.

    Attributes:
        name: Its name.
        settings: Of its mapping.
        endpoint: Where it is.
        mapping_id: As the hub calls it.
        behaviour: What it does with a message when it is well.
        polls: How often each message was asked about.
    """

    name: str
    settings: dict[str, Any]
    endpoint: Endpoint
    behaviour: str
    mapping_id: str = ""
    polls: Counter[str] = field(default_factory=Counter)


class HubWorld:
    """A store with mappings.

    Args:
        account: Where it lives.
        truth: Watches the account.
        hours: How long producers push.
        rate: Messages per hour and producer, on average.
    """

    name = "hub"

    def __init__(self, account: Account, truth: Truth, hours: float, rate: float) -> None:
        self._account = account
        self._truth = truth
        self._hours = hours
        self._rate = rate
        self._random = Random(f"{account.seed}/hub")
        self.services: list[Service] = []
        self.pushed: list[str] = []
        self._markers = 0

    @property
    def producers(self) -> list[str]:
        """Names of the producers, one for each type of message; and the person who decides about what is held."""
        return [*(f"producer-{each}" for each in range(len(TYPES))), "person"]

    def set_up(self) -> None:
        """Make the store and its mappings, before any weather."""
        operator = Operator(self._account)
        projects = Projects(config=operator.config, clock=operator.clock)
        self._store = projects.make("simulated").project_id
        self._token = projects.make_token(self._store)
        for number in range(SERVICES):
            self._make_service(number)
        self._account.scheduler.run(self._account.scheduler.now + 60 * SECOND)
        assert all(each.mapping_id for each in self.services)

    def _make_service(self, number: int) -> None:
        random = self._random
        name = f"service-{number}"
        endpoint = self._account.endpoints.add(f"{name}.example", life(random, self._hours, MOODS))
        behaviour = ("prompt", "children", "later", "postpones", "prompt")[number]
        base = random.choice((1, 5, 30))
        options: dict[str, Any] = {"retry_base": base, "retry_cap": random.choice((60, 600, 3600))}
        if number == SERVICES - 1:
            options |= {"max_attempts": random.choice((1, 2, 4))}
        wanted = [*random.sample(TYPES, random.randint(1, 2)), *([CHILD] if behaviour == "prompt" else [])]
        settings = {
            "name": name,
            "url": f"https://{name}.example/in",
            "token": "t",
            "messages": wanted,
            "options": options,
        }
        service = Service(name, settings, endpoint, behaviour)
        endpoint.about = lambda _, body: (_decimal(body), service.mapping_id)
        endpoint.answers = lambda seen, chance: self._answer(service, seen, chance)
        self.services.append(service)

        def make() -> None:
            answer = self._ask("POST", "/mappings", {"mapping": settings})
            assert answer.status == 201, answer
            body = answer.body.get("mapping", answer.body)
            service.mapping_id = body["id"]

        self._account.scheduler.spawn(make)

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        return self._account.http(
            method, f"/api/stores/{self._store}{path}", body, headers={"x-augury-token": self._token}
        )

    def _answer(self, service: Service, seen: Asked, random: Random) -> Reply:
        """What a service says when it is well; the same children each time it is asked about the same message."""
        fields = json.loads(seen.body)
        message_id = fields["message_id"]
        said: dict[str, Any] = {"message_id": message_id}
        first = service.polls[message_id] == 0
        service.polls[message_id] += 1
        if service.behaviour == "children":
            said["messages"] = [{"message": CHILD, "payload": {"of": message_id}}]
        elif service.behaviour == "later" and (first or random.random() < 0.5):
            said |= {"delay": random.choice((1, 10, 300, 1_500)), "update_url": f"/status/{message_id}"}
        elif service.behaviour == "postpones" and random.random() < 0.5:
            said["delay"] = random.choice((1, 30, 2_000))
        return Reply(200, body=json.dumps(said).encode(), takes=0)

    def begin(self, producers: frozenset[str]) -> None:
        """Let everybody act from now on."""
        for number, kind in enumerate(TYPES):
            if f"producer-{number}" in producers:
                random = Random(f"{self._account.seed}/producer-{number}")
                self._account.scheduler.spawn(lambda kind=kind, random=random: self._produce(kind, random))  # type: ignore[misc]
        if "person" in producers:
            self._account.scheduler.spawn(self._decide)

    def _produce(self, kind: str, random: Random) -> None:
        scheduler = self._account.scheduler
        end = scheduler.now + round(self._hours * HOUR)
        while True:
            scheduler.sleep(round(random.expovariate(self._rate) * HOUR))
            if scheduler.now >= end:
                return
            self._markers += 1
            padding = "x" * random.choice((10, 10, 9_000))
            message = {"message": kind, "payload": {"marker": self._markers, "padding": padding}}
            scheduler.spawn(lambda message=message: self._push(message))  # type: ignore[misc]

    def _push(self, message: dict[str, Any]) -> None:
        for again in range(6):
            answer = self._ask("POST", "/messages", message)
            if answer.status == 201:
                self.pushed.append(answer.body["message_id"])
                return
            self._account.scheduler.sleep(2**again * SECOND)

    def _decide(self) -> None:
        """A person looks at what is held every two hours or so, and has it tried again or archives it."""
        random = Random(f"{self._account.seed}/person")
        while True:
            self._account.scheduler.sleep(round(random.expovariate(1 / 2) * HOUR))
            for page in range(1, 4):
                answer = self._ask("GET", f"/queues/accepted.json?state=parked&page={page}")
                if answer.status != 200 or not isinstance(answer.body, list):
                    break
                for each in answer.body:
                    choice = "attempt_now" if random.random() < 0.8 else "archive"
                    self._account.note(f"person: {choice} {from_object_id(each['message_id'])}")
                    self._ask("PUT", f"/messages/{each['message_id']}", {choice: True})

    def open(self) -> int:
        """Deliveries that have neither ended nor are held."""
        count = 0
        for _, owed in self._owed():
            history = self._truth.deliveries.get(owed)
            count += not (history and (history[-1].settled or history[-1].state == HELD))
        return count

    def _owed(self) -> Iterator[tuple[Accepted, tuple[str, str]]]:
        for accepted in self._truth.accepted.values():
            if accepted.message.queue.startswith("hub/"):
                for subscriber_id in accepted.message.delivery_subscribers:
                    yield accepted, (accepted.message.message_id, subscriber_id)

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        for object_id, count in Counter(self.pushed).items():
            if count > 1:
                yield Violation("an identifier twice", object_id, f"told {count} producers")
        incoming = {each.message.message_id: each for each, _ in self._owed() if each.message.queue == "hub/incoming"}
        for object_id in self.pushed:
            if from_object_id(object_id) not in incoming:
                yield Violation("accepted and not stored", object_id, "no incoming message")
        for accepted, owed in self._owed():
            yield from self._ended(accepted, owed)
        yield from self._copies(incoming)
        yield from self._children(incoming)

    def _ended(self, accepted: Accepted, owed: tuple[str, str]) -> Iterator[Violation]:
        message_id, _ = owed
        history = self._truth.deliveries.get(owed, [])
        if not history or not (history[-1].settled or history[-1].state == HELD):
            state = history[-1].state if history else "never looked at"
            yield Violation("never ended", message_id, f"{accepted.message.queue}: {state}")
            return
        if accepted.message.queue == "hub/incoming":
            if history[-1].state != "delivered":
                yield Violation("not routed", message_id, history[-1].state)
            return
        service = next(each for each in self.services if each.mapping_id == owed[1])
        asked = [each for each in service.endpoint.log if each.message_id == message_id]
        if history[-1].state == "delivered" and not any(each.status == 200 for each in asked):
            yield Violation(
                "delivered to nobody", message_id, f"{service.name} answered {[each.status for each in asked]}"
            )
        if history[-1].state == HELD and "max_attempts" not in service.settings["options"]:
            yield Violation("held without a reason", message_id, service.name)
        if history[-1].state in {"exhausted", "expired"}:
            yield Violation("given up", message_id, f"{service.name}: {history[-1].state}")
        settled_at = self._truth.settled_at(*owed)
        for each in asked:
            if settled_at is not None and each.known_at > settled_at:
                yield Violation("asked after its end", message_id, f"{service.name} at {each.at / SECOND:.1f} s")

    def _copies(self, incoming: Mapping[str, Accepted]) -> Iterator[Violation]:
        """One copy for each mapping that wants the type, and no other."""
        made: Counter[tuple[str, str]] = Counter()
        for accepted, (_, mapping_id) in self._owed():
            if accepted.message.queue != "hub/incoming":
                parent = (accepted.message.cause or "//").split("/")[1]
                made[parent, mapping_id] += 1
        for message_id, accepted in incoming.items():
            kind = accepted.message.headers["type"]
            for service in self.services:
                wanted = kind in service.settings["messages"]
                if made[message_id, service.mapping_id] != wanted:
                    told = f"{made[message_id, service.mapping_id]} copies of {kind} for {service.name}"
                    yield Violation("copies", message_id, told)

    def _children(self, incoming: Mapping[str, Accepted]) -> Iterator[Violation]:
        """Each completed answer with a child led to that child, once."""
        made: Counter[str] = Counter()
        for accepted in incoming.values():
            if accepted.message.headers["type"] == CHILD:
                made[json.loads(self._body(accepted))["payload"]["of"]] += 1
        owed: dict[str, str] = {}
        for service in self.services:
            if service.behaviour == "children":
                for each in service.endpoint.log:
                    object_id = json.loads(each.body)["message_id"]
                    history = self._truth.deliveries.get((each.message_id, service.mapping_id), [])
                    if history and history[-1].state == "delivered":
                        owed[object_id] = each.message_id
        for object_id, count in made.items():
            if count > 1:
                yield Violation("a child twice", from_object_id(object_id) or object_id, f"{count} children")
        for object_id, message_id in owed.items():
            if not made[object_id]:
                yield Violation("a child is missing", message_id, "its answer is recorded and the message completed")

    def _body(self, accepted: Accepted) -> bytes:
        if accepted.message.body is not None:
            return accepted.message.body
        ref = accepted.message.body_ref
        assert ref is not None
        stored = self._account.s3.objects["BodiesBucket", ref.key]
        return stored[ref.offset : ref.offset + ref.length]


def _decimal(body: bytes) -> str:
    try:
        return from_object_id(json.loads(body)["message_id"]) or ""
    except (ValueError, KeyError):
        return ""
