"""Webhooks: applications with endpoints of their own, producers that repeat under a key, owners who pause,
change and delete endpoints; and what was promised.
"""

from __future__ import annotations

import base64
import bisect
import hashlib
import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from pushhub.engine.model.message import Message
from pushhub.webhooks.model.endpoint import Endpoint as Settings
from pushhub.webhooks.model.ids import engine_id
from pushhub.webhooks.model.message import MessageFields
from pushhub.webhooks.store._items import decode_endpoint
from simulation.endpoints import Asked, Endpoint, Mood, life
from simulation.expressions import Item
from simulation.policies import left_alone, waits_obeyed
from simulation.scheduler import SECOND
from simulation.truth import Accepted, Violation
from simulation.weather import HOUR
from simulation.worlds.world import Owed, PushWorld, moment

APPLICATIONS = 2
ENDPOINTS = 2
TYPES = ("user.created", "user.deleted")
MOODS = tuple(each for each in Mood if each not in {Mood.LATER, Mood.FORGETS})

MOST_TRIES = 8
"""The first, and seven more over some 28 hours."""

REMEMBERED = 3 * SECOND
"""For so long what was read of an endpoint counts: two seconds, and clocks."""

CHANGES_AN_HOUR = 4.0
READ_BEFORE = 60 * SECOND
"""Whom a message is owed to was read so long before it was stored, at most."""

BURST = 30
"""Messages that come at once now and then: what opens a circuit."""


@dataclass
class Customer:
    """An endpoint of an application.

    Attributes:
        app: Its application's number.
        endpoint: Where it is.
        endpoint_id: As the hub calls it.
        secrets: What it checks signatures with, each with when its owner knew that it counts, microseconds; None while
            he does not.
        changing: Whether its owner is about to change it.
    """

    app: int
    endpoint: Endpoint
    endpoint_id: str = ""
    secrets: list[tuple[int | None, str]] = field(default_factory=list)
    changing: bool = False


class WebhooksWorld(PushWorld):
    """An organization with applications."""

    name = "webhooks"

    def set_up(self) -> None:
        """Make applications and endpoints, before any weather."""
        self._apps: list[str] = []
        self.customers: list[Customer] = []
        self.posted: list[tuple[str, str]] = []
        self._markers: Counter[int] = Counter()
        self._settings: dict[str, list[tuple[int, Settings | None]]] = defaultdict(list)
        self._account.written.append(self._written)
        self._make_project()
        self._in_good_weather(self._make_all, seconds=120)
        assert len(self.customers) == APPLICATIONS * ENDPOINTS
        assert all(each.secrets for each in self.customers)

    def _written(self, table: str, before: Item | None, after: Item | None) -> None:
        item = after if after is not None else before or {}
        if table == "WebhooksTable" and item["sk"]["S"].startswith("EP#"):
            settings = None if after is None else decode_endpoint(after)
            self._settings[item["sk"]["S"].removeprefix("EP#")].append((self._account.scheduler.now, settings))

    def _ask(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        given = {"authorization": f"Bearer {self._token}", **headers}
        return self._account.http(method, f"/api/v1{path}", body, headers=given)

    def _make_all(self) -> None:
        for kind in TYPES:
            assert self._ask("POST", "/event-type", {"name": kind, "description": kind}).status == 201
        for app in range(APPLICATIONS):
            self._apps.append(self._ask("POST", "/app", {"name": f"app-{app}"}).body["id"])
            for _ in range(ENDPOINTS):
                assert self._make_endpoint(app, self._random)

    def _make_endpoint(self, app: int, random: Random) -> bool:
        """Make an endpoint with a secret of its owner's; False when that is not known to have been done."""
        name = f"e{app}-{sum(each.app == app for each in self.customers)}"
        customer = Customer(app, self._account.endpoints.add(f"{name}.example", life(random, self._hours, MOODS)))
        secret = _new_secret(random)
        fields: dict[str, Any] = {"url": f"https://{name}.example/in", "secret": secret}
        if random.random() < 0.5:
            fields["filterTypes"] = [random.choice(TYPES)]
        answer = self._ask("POST", f"/app/{self._apps[app]}/endpoint", fields)
        if answer.status != 201:
            # It may have been made all the same: an endpoint that nobody speaks of, but messages may be owed to it.
            return False
        customer.endpoint_id = answer.body["id"]
        customer.secrets.append((self._account.scheduler.now, secret))
        customer.endpoint.about = partial(_about, customer.endpoint_id)
        self.customers.append(customer)
        return True

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """A producer for each application, and the owner of the endpoints."""
        acts: dict[str, Callable[[], object]] = {}
        for number, app_id in enumerate(self._apps):
            random = self._chance(f"producer-{number}")
            produce = partial(self._produce, number, app_id, random)
            acts[f"producer-{number}"] = partial(self._each_while_traffic, random, produce, an_hour=self._rate)
        random = self._chance("owner")
        own = partial(self._own, random)
        return acts | {"owner": partial(self._each_while_traffic, random, own, an_hour=CHANGES_AN_HOUR)}

    def _produce(self, number: int, app_id: str, random: Random) -> None:
        for place in range(BURST if random.random() < 0.05 else 1):
            self._markers[number] += 1
            key = f"{number}-{self._markers[number]}"
            payload = {"marker": key, "padding": "x" * random.choice((10, 10, 9_000))}
            body = {"eventType": random.choice(TYPES), "payload": payload}
            self._account.scheduler.spawn(partial(self._post, app_id, body, key), after=place * SECOND)

    def _post(self, app_id: str, body: dict[str, Any], key: str) -> None:
        """Post, and repeat under the same key until there is an answer."""
        post = partial(self._ask, "POST", f"/app/{app_id}/msg", body, **{"idempotency-key": key})
        answer = self._until(202, post, tries=8)
        if answer is not None:
            self.posted.append((key, answer.body["id"]))

    def _own(self, random: Random) -> None:
        """The owner pauses an endpoint and goes on, chooses other types, rotates a secret,
        deletes an endpoint for another, enables what was disabled.
        """
        customer = random.choice(self.customers)
        if customer.changing or self._settings[customer.endpoint_id][-1][1] is None:
            return
        customer.changing = True
        path = f"/app/{self._apps[customer.app]}/endpoint/{customer.endpoint_id}"
        choice = random.random()
        settings = self._settings[customer.endpoint_id][-1][1]
        if settings is not None and settings.fields.disabled:
            self._change(path, {"disabled": False})
        elif choice < 0.4:
            self._change(path, {"disabled": True})
            self._account.scheduler.sleep(random.choice((3, 600, 5_000)) * SECOND)
            self._change(path, {"disabled": False})
        elif choice < 0.6:
            self._change(path, {"filterTypes": [random.choice(TYPES)]})
        elif choice < 0.8:
            secret = _new_secret(random)
            customer.secrets.append((None, secret))
            answer = self._ask("POST", f"{path}/secret/rotate", {"key": secret})
            if answer.status == 200:
                customer.secrets[-1] = self._account.scheduler.now, secret
        else:
            self._account.note(f"owner deletes {customer.endpoint_id}: {self._ask('DELETE', path).status}")
            self._make_endpoint(customer.app, random)
        customer.changing = False

    def _change(self, path: str, fields: dict[str, Any]) -> None:
        answer = self._until(200, lambda: self._ask("PATCH", path, fields), tries=12)
        self._account.note(f"owner changes {path} to {fields}: {answer.status if answer else 'in vain'}")

    def _is_own(self, message: Message) -> bool:
        return message.queue.startswith("webhooks/")

    def _settings_between(self, endpoint_id: str, begins: int, ends: int) -> Sequence[Settings | None]:
        """What an endpoint was between two times (microseconds); None where it was not there."""
        history = self._settings[endpoint_id]
        place = bisect.bisect_right(history, begins, key=lambda each: each[0])
        before: list[Settings | None] = [history[place - 1][1] if place else None]
        return before + [each for at, each in history[place:] if at <= ends]

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        stored = {accepted.message.message_id: accepted for accepted in self._truth.accepted.values()}
        for message_id, count in Counter(message_id for _, message_id in self.posted).items():
            if count > 1:
                yield Violation("an identifier twice", engine_id(message_id) or message_id, f"told {count} producers")
            if engine_id(message_id) not in stored:
                yield Violation("accepted and not stored", engine_id(message_id) or message_id, message_id)
        yield from self._once()
        for _, owed in self._owed():
            yield from self._ended(owed)
        for customer in self.customers:
            yield from self._as_its_owner_said(customer)
            clocks_off = self._clocks_off_ms
            yield from left_alone(self._truth, customer.endpoint, customer.endpoint_id, clocks_off)
            own = {owed[0]: each for owed, each in self._truth.deliveries.items() if owed[1] == customer.endpoint_id}
            yield from waits_obeyed(customer.endpoint, own, clocks_off)

    @property
    def _clocks_off_ms(self) -> int:
        worst = max((each.rate for each in self._account.weather.storms if each.kind == "clocks"), default=0)
        return 1_100 + round(2_000 * worst)

    def _as_its_owner_said(self, customer: Customer) -> Iterator[Violation]:
        """Nothing is sent to an endpoint that was disabled or deleted, and each request is signed with its secret as it
        was.
        """
        late = REMEMBERED + self._clocks_off_ms * 1000
        for seen in customer.endpoint.log:
            before = self._settings_between(customer.endpoint_id, seen.known_at - late, seen.at)
            if not any(each is not None and each.active for each in before):
                told = f"{customer.endpoint.name} at {moment(seen.at)}"
                yield Violation("sent to a disabled endpoint", seen.message_id, told)
            sure = [place for place, (at, _) in enumerate(customer.secrets) if at and at < seen.known_at - late]
            allowed = customer.secrets[sure[-1] if sure else 0 :]
            if not any(_signed(seen, secret) for _, secret in allowed):
                yield Violation("signature", seen.message_id, f"{customer.endpoint.name} at {moment(seen.at)}")

    def _once(self) -> Iterator[Violation]:
        """What was repeated under its key is one message, owed to each endpoint that wants its type."""
        markers: Counter[str] = Counter()
        for accepted in self._truth.accepted.values():
            if self._is_own(accepted.message):
                markers[json.loads(self._body(accepted.message))["marker"]] += 1
                yield from self._owed_to(accepted)
        for marker, count in markers.items():
            if count > 1:
                yield Violation("taken twice", marker, f"{count} messages for one key")

    def _owed_to(self, accepted: Accepted) -> Iterator[Violation]:
        message = accepted.message
        app_id, kind = message.queue.partition("/")[2], MessageFields.of(message).event_type
        for endpoint_id, history in self._settings.items():
            if not any(each is not None and each.app_id == app_id for _, each in history):
                continue
            wants = {
                each is not None and each.active and kind in (each.fields.event_types or TYPES)
                for each in self._settings_between(endpoint_id, accepted.at - READ_BEFORE, accepted.at)
            }
            if (endpoint_id in message.delivery_subscribers) not in wants:
                told = f"{'not ' if True in wants else ''}owed to {endpoint_id}"
                yield Violation("owed to others", message.message_id, told)

    def _ended(self, owed: Owed) -> Iterator[Violation]:
        message_id, endpoint_id = owed
        if not self._has_ended(owed):
            yield self._never_ended(owed, endpoint_id)
            return
        last = self._truth.deliveries[owed][-1]
        customer = next((each for each in self.customers if each.endpoint_id == endpoint_id), None)
        where = customer.endpoint.name if customer else endpoint_id
        asked = customer.endpoint.about_message.get(message_id, []) if customer else []
        statuses = [each.status for each in asked]
        if customer and last.state == "delivered" and not any(200 <= each < 300 for each in statuses):
            yield Violation("delivered to nobody", message_id, f"{where}: {statuses}")
        since = asked[-1].at if asked else last.at - HOUR
        off = any(each is None or not each.active for each in self._settings_between(endpoint_id, since, last.at))
        if last.state == "exhausted" and last.tries < MOST_TRIES and not off:
            # 410 disables, and that is written before the attempt is.
            yield Violation("given up too soon", message_id, f"{where}: {last.tries} tries, {statuses}")
        if last.state not in {"delivered", "exhausted"}:
            yield Violation("ended otherwise", message_id, f"{where}: {last.state}")
        yield from self._asked_after_its_end(owed, asked, where)


def _about(endpoint_id: str, headers: Any, _: bytes) -> tuple[str, str]:
    return engine_id(headers["webhook-id"]) or "", endpoint_id


def _new_secret(random: Random) -> str:
    return f"whsec_{base64.b64encode(random.randbytes(24)).decode()}"


def _signed(seen: Asked, secret: str) -> bool:
    """Whether a request is signed as Standard Webhooks has it."""
    signed = f"{seen.headers['webhook-id']}.{seen.headers['webhook-timestamp']}.".encode() + seen.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    own = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return f"v1,{own}" in seen.headers["webhook-signature"].split(" ")
