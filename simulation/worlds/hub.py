"""The hub protocol: a store with mappings; services that answer at once, later, or with further messages; and the
promises made to it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from pushhub.engine.model.message import Message
from pushhub.hub.model.object_ids import from_object_id, to_object_id
from simulation.account import HttpAnswer
from simulation.bodies import text_body
from simulation.endpoints import Asked, Endpoint, Mood, Reply, life
from simulation.promises.hub import Hub, Pushed, is_taken
from simulation.promises.hub import Service as MadeService
from simulation.promises.judgement import Exchange, Violation
from simulation.promises.shown import End, Shown, ShownPushes
from simulation.promises.talks import (
    bounds,
    command_line,
    edges,
    store_choices,
    store_decisions,
    store_effects,
    store_lives,
    store_meanwhile,
    store_notices,
    store_settings,
    store_values,
    whose,
)
from simulation.promises.talks import hub as talks
from simulation.scheduler import SECOND
from simulation.truth import Accepted
from simulation.weather import HOUR
from simulation.worlds import shown
from simulation.worlds.world import Owed, PushWorld

TYPES = ("order:new", "order:paid", "stock:low")
CHILD = "child:made"
SERVICES = 5
HELD = "held"
PAUSES_AN_HOUR = 0.5
REMEMBERED = 60 * SECOND
"""Routing may use mappings that are this old (microseconds)."""

LOOKED_UP = 60
"""How many of the last messages of each service are looked up."""

FOREVER = 10**18

MOODS = tuple(each for each in Mood if each not in {Mood.LATER, Mood.FORGETS, Mood.RACES})


@dataclass
class Service:
    """A service of an endpoint, as the owner of the store set it up.

    Attributes:
        name: Its name.
        settings: Settings of its mapping.
        endpoint: The endpoint.
        mapping_id: Id of its mapping.
        behaviour: What it does with a message when it is well.
        polls: How often it was polled for each message.
        off: The periods for which its owner had turned it off, microseconds.
    """

    name: str
    settings: dict[str, Any]
    endpoint: Endpoint
    behaviour: str
    mapping_id: str = ""
    polls: Counter[str] = field(default_factory=Counter)
    off: list[list[int]] = field(default_factory=list)

    def was_off(self, begins: int, ends: int) -> bool:
        """Whether it was off, or may have been, at any time between two moments."""
        return any(began <= ends and begins <= ended for began, ended in self.off)


class HubWorld(PushWorld):
    """A store with mappings."""

    name = "hub"

    def set_up(self) -> None:
        """Make the store and its mappings, before any weather."""
        self.services: list[Service] = []
        self.pushed: list[str] = []
        self._pushed: list[Pushed] = []
        self._by_hand: dict[str, list[Exchange]] = defaultdict(list)
        self._shown: list[Shown] = []
        self._bodies = self._chance("bodies")
        self._markers = 0
        self._make_project()
        self._in_good_weather(*(self._make_service(number) for number in range(SERVICES)))
        assert all(each.mapping_id for each in self.services)

    def _make_service(self, number: int) -> Callable[[], None]:
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
        endpoint.about = lambda _, body: _decimal(body)
        endpoint.answers = lambda seen, chance: self._answer(service, seen, chance)
        self.services.append(service)

        def make() -> None:
            answer = self._ask("POST", "/mappings", {"mapping": settings})
            assert answer.status == 201, answer
            body = answer.body.get("mapping", answer.body)
            service.mapping_id = body["id"]

        return make

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        return self._account.http(
            method, f"/api/stores/{self._project}{path}", body, headers={"x-augury-token": self._token}
        )

    def _answer(self, service: Service, seen: Asked, random: Random) -> Reply:
        """The answer of a service when it is well; the same children each time for the same message."""
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

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """A producer for each type of message, the person who decides about held messages, and the owner who pauses
        services.
        """
        acts: dict[str, Callable[[], object]] = {}
        for number, kind in enumerate(TYPES):
            random = self._chance(f"producer-{number}")
            push = partial(self._push, kind, random)
            acts[f"producer-{number}"] = partial(self._each_while_traffic, random, push, an_hour=self._rate)
        return acts | {"owner": self._own, "person": self._decide}

    def _own(self) -> None:
        """Turn services off and on, and in the end look up what became of messages."""
        random = self._chance("owner")
        self._each_while_traffic(random, partial(self._pause, random), an_hour=PAUSES_AN_HOUR)
        self._account.scheduler.sleep(shown.AFTER_S * SECOND)
        for service in self.services:
            last = {each.message_id: json.loads(each.body) for each in service.endpoint.log if each.message_id}
            for message_id, content in [*last.items()][-LOOKED_UP:]:
                self._look_up(service, message_id, content)

    def _look_up(self, service: Service, message_id: str, sent: Mapping[str, Any]) -> None:
        answer = self._ask("GET", f"/messages/{to_object_id(message_id)}")
        content, ends = None, []
        if answer.status == 200:
            content = {name: answer.body[name] for name in ("message", "payload")}
            ends = [End(service.name, answer.body["state"] == "completed")]
        own = {name: sent.get(name) for name in ("message", "payload")}
        one = Shown(message_id, answer.exchange, 0, None, 0, ends, content=content, posted_content=own)
        self._shown.append(one)

    def _push(self, kind: str, random: Random) -> None:
        self._markers += 1
        padding = text_body(self._bodies, f"message-{self._markers}", size=random.choice((10, 10, 9_000)), large=0)
        payload = {"marker": self._markers, "padding": padding, "list": [1.5, None, True, {"é": []}]}
        message = {"message": kind, "payload": payload}

        def ask() -> HttpAnswer:
            answer: HttpAnswer = self._ask("POST", "/messages", message)
            object_id = answer.body["message_id"] if answer.status == 201 else ""
            self._pushed.append(Pushed(kind, payload, answer.exchange, from_object_id(object_id) or ""))
            return answer

        answer = self._until(201, ask)
        if answer is not None:
            self.pushed.append(answer.body["message_id"])

    def _pause(self, random: Random) -> None:
        """The owner turns a service off, and on again after a while: messages of that time are not for it, earlier ones
        are.
        """
        service = random.choice(self.services)
        if service.off and service.off[-1][1] == FOREVER:
            return
        service.off.append([self._account.scheduler.now, FOREVER])
        self._turn(service, enabled=False)
        self._account.scheduler.sleep(random.choice((60, 1_800)) * SECOND)
        self._turn(service, enabled=True)
        service.off[-1][1] = self._account.scheduler.now + REMEMBERED

    def _turn(self, service: Service, *, enabled: bool) -> None:
        change = {"mapping": {"enabled": enabled}}
        answer = self._until(200, lambda: self._ask("PUT", f"/mappings/{service.mapping_id}", change), tries=40)
        assert answer is not None
        self._account.note(f"owner turns {service.name} {'on' if enabled else 'off'}")

    def _decide(self) -> None:
        """About every two hours, a person looks at held messages and has each retried, or archives it."""
        random = self._chance("person")
        while True:
            self._account.scheduler.sleep(round(random.expovariate(1 / 2) * HOUR))
            for page in range(1, 4):
                answer = self._ask("GET", f"/queues/accepted.json?state=parked&page={page}")
                if answer.status != 200 or not isinstance(answer.body, list):
                    break
                for each in answer.body:
                    choice = "attempt_now" if random.random() < 0.8 else "archive"
                    self._account.note(f"person: {choice} {from_object_id(each['message_id'])}")
                    answer = self._ask("PUT", f"/messages/{each['message_id']}", {choice: True})
                    self._by_hand[from_object_id(each["message_id"]) or ""].append(answer.exchange)

    def _is_own(self, message: Message) -> bool:
        return message.project == self._project and message.queue.startswith("hub/")

    def _waits_for_a_person(self, owed: Owed) -> bool:
        history = self._truth.deliveries.get(owed, [])
        return bool(history) and history[-1].state == HELD

    def talk(self) -> None:
        """The whole API, talked through; by two with equal names."""
        one, two = (self._client("/api/stores/{project}", lambda _, token: {"x-augury-token": token}) for _ in "12")
        talks.through(one)
        store_settings.through(one)
        store_effects.through(one)
        store_values.through(one)
        store_choices.through(one)
        store_decisions.through(one)
        store_notices.through(one)
        store_meanwhile.through(one)
        store_lives.stores(one)
        command_line.stores(one)
        whose.stores(one, two)
        edges.stores(one)
        bounds.stores(one)

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        model = Hub(
            {each.name: _as_made(each) for each in self.services},
            self.judgement,
            self._faults(),
            clocks_s=self._clocks_off_s,
            ends=self._account.scheduler.now,
        )
        requests = [seen for each in self.services for seen in self._requests(each.name, each.endpoint)]
        model.judge(self._pushed, requests, self._by_hand)
        looked_up = ShownPushes(requests, self.judgement, self._faults(), clocks_s=self._clocks_off_s, taken=is_taken)
        for each in self._shown:
            looked_up.judge(each)
        yield from self.judgement.total()
        incoming = {each.message.message_id: each for each, _ in self._owed() if each.message.queue == "hub/incoming"}
        for object_id in self.pushed:
            if from_object_id(object_id) not in incoming:
                yield Violation("accepted and not stored", object_id, "no incoming message")
        for accepted, owed in self._owed():
            yield from self._ended(accepted, owed)
        yield from self._copies(incoming)
        yield from self._children(incoming)

    def _ended(self, accepted: Accepted, owed: Owed) -> Iterator[Violation]:
        message_id, _ = owed
        if not self._has_ended(owed):
            yield self._never_ended(owed, accepted.message.queue)
            return
        history = self._truth.deliveries[owed]
        if accepted.message.queue == "hub/incoming":
            if history[-1].state != "delivered":
                yield Violation("not routed", message_id, history[-1].state)
            return
        service = next(each for each in self.services if each.mapping_id == owed[1])
        if history[-1].state == HELD and "max_attempts" not in service.settings["options"]:
            yield Violation("held without a reason", message_id, service.name)
        if history[-1].state in {"exhausted", "expired"}:
            yield Violation("given up", message_id, f"{service.name}: {history[-1].state}")

    def _copies(self, incoming: Mapping[str, Accepted]) -> Iterator[Violation]:
        """One copy for each mapping that wants the type, and no other."""
        copies: Counter[tuple[str, str]] = Counter()
        for accepted, (_, mapping_id) in self._owed():
            if accepted.message.queue != "hub/incoming":
                parent = (accepted.message.cause or "//").split("/")[1]
                copies[parent, mapping_id] += 1
        for message_id, accepted in incoming.items():
            kind = accepted.message.headers["type"]
            routed_at = self._truth.settled_at(message_id, accepted.message.delivery_subscribers[0]) or accepted.at
            for service in self.services:
                wanted = kind in service.settings["messages"]
                if wanted and service.was_off(accepted.at, routed_at):
                    # One copy or none, depending on whether it was on when the message was compared with it.
                    wanted = bool(copies[message_id, service.mapping_id])
                if copies[message_id, service.mapping_id] != wanted:
                    detail = f"{copies[message_id, service.mapping_id]} copies of {kind} for {service.name}"
                    yield Violation("copies", message_id, detail)

    def _children(self, incoming: Mapping[str, Accepted]) -> Iterator[Violation]:
        """Each completed answer with a child led to that child, once."""
        children: Counter[str] = Counter()
        for accepted in incoming.values():
            if accepted.message.headers["type"] == CHILD:
                children[json.loads(self._body(accepted.message))["payload"]["of"]] += 1
        owed: dict[str, str] = {}
        for service in self.services:
            if service.behaviour == "children":
                for each in service.endpoint.log:
                    object_id = json.loads(each.body)["message_id"]
                    history = self._truth.deliveries.get((each.message_id, service.mapping_id), [])
                    if history and history[-1].state == "delivered":
                        owed[object_id] = each.message_id
        for object_id, count in children.items():
            if count > 1:
                yield Violation("a child twice", from_object_id(object_id) or object_id, f"{count} children")
        for object_id, message_id in owed.items():
            if not children[object_id]:
                yield Violation("a child is missing", message_id, "its answer is recorded and the message completed")


def _as_made(service: Service) -> MadeService:
    """A service as the model knows it."""
    options = service.settings["options"]
    return MadeService(
        frozenset(service.settings["messages"]),
        options["retry_base"],
        options["retry_cap"],
        options.get("max_attempts"),
        [(begins, ends) for begins, ends in service.off],
    )


def _decimal(body: bytes) -> str:
    try:
        return from_object_id(json.loads(body)["message_id"]) or ""
    except (ValueError, KeyError):
        return ""
