"""Webhooks: applications with endpoints of their own, producers that repeat under a key, signatures; and what was promised."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from pushhub.engine.projects import Projects
from pushhub.webhooks.model.ids import engine_id
from pushhub.webhooks.model.message import MessageFields
from simulation.account import Account, Operator
from simulation.endpoints import Asked, Endpoint, Mood, life
from simulation.scheduler import SECOND
from simulation.truth import Accepted, Truth, Violation
from simulation.weather import HOUR

APPLICATIONS = 2
ENDPOINTS = 2
TYPES = ("user.created", "user.deleted")
MOODS = tuple(each for each in Mood if each not in {Mood.LATER, Mood.FORGETS, Mood.GONE})
"""An endpoint that is gone (410) is disabled, and then nothing is owed to it."""

MOST_TRIES = 8
"""The first, and seven more over some 28 hours."""


@dataclass
class Customer:
    """An endpoint of an application.

    Attributes:
        app: Its application's number.
        endpoint: Where it is.
        types: Event types it wants; none for all.
        endpoint_id: As the hub calls it.
        secret: What it checks signatures with.
    """

    app: int
    endpoint: Endpoint
    types: tuple[str, ...]
    endpoint_id: str = ""
    secret: str = ""


class WebhooksWorld:
    """An organization with applications.

    Args:
        account: Where it lives.
        truth: Watches the account.
        hours: How long producers post.
        rate: Messages per hour and application, on average.
    """

    name = "webhooks"

    def __init__(self, account: Account, truth: Truth, hours: float, rate: float) -> None:
        self._account = account
        self._truth = truth
        self._hours = hours
        self._rate = rate
        self._random = Random(f"{account.seed}/webhooks")
        self._apps: list[str] = []
        self.customers: list[Customer] = []
        self.posted: list[tuple[str, str]] = []

    @property
    def producers(self) -> list[str]:
        """Names of the producers, one for each application."""
        return [f"producer-{each}" for each in range(APPLICATIONS)]

    def set_up(self) -> None:
        """Make applications and endpoints, before any weather."""
        operator = Operator(self._account)
        projects = Projects(config=operator.config, clock=operator.clock)
        self._token = projects.make_token(projects.make("simulated").project_id)
        self._account.scheduler.spawn(self._make_all)
        self._account.scheduler.run(self._account.scheduler.now + 120 * SECOND)
        assert len(self.customers) == APPLICATIONS * ENDPOINTS
        assert all(each.secret for each in self.customers)

    def _ask(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        given = {"authorization": f"Bearer {self._token}", **headers}
        return self._account.http(method, f"/api/v1{path}", body, headers=given)

    def _make_all(self) -> None:
        random = self._random
        for kind in TYPES:
            assert self._ask("POST", "/event-type", {"name": kind, "description": kind}).status == 201
        for app in range(APPLICATIONS):
            app_id = self._ask("POST", "/app", {"name": f"app-{app}"}).body["id"]
            self._apps.append(app_id)
            for place in range(ENDPOINTS):
                name = f"e{app}-{place}"
                endpoint = self._account.endpoints.add(f"{name}.example", life(random, self._hours, MOODS))
                types = () if random.random() < 0.5 else (TYPES[place],)
                fields = {"url": f"https://{name}.example/in"} | ({"filterTypes": list(types)} if types else {})
                customer = Customer(app, endpoint, types)
                customer.endpoint_id = self._ask("POST", f"/app/{app_id}/endpoint", fields).body["id"]
                customer.secret = self._ask("GET", f"/app/{app_id}/endpoint/{customer.endpoint_id}/secret").body["key"]
                endpoint.about = partial(_about, customer.endpoint_id)
                self.customers.append(customer)

    def begin(self, producers: frozenset[str]) -> None:
        """Let producers post from now on."""
        for number, app_id in enumerate(self._apps):
            if f"producer-{number}" in producers:
                random = Random(f"{self._account.seed}/producer-{number}")
                self._account.scheduler.spawn(partial(self._produce, number, app_id, random))

    def _produce(self, number: int, app_id: str, random: Random) -> None:
        scheduler = self._account.scheduler
        end, count = scheduler.now + round(self._hours * HOUR), 0
        while True:
            scheduler.sleep(round(random.expovariate(self._rate) * HOUR))
            if scheduler.now >= end:
                return
            count += 1
            padding = "x" * random.choice((10, 10, 9_000))
            payload = {"marker": f"m{number}-{count}", "padding": padding}
            body = {"eventType": random.choice(TYPES), "payload": payload}
            scheduler.spawn(partial(self._post, app_id, body, f"{number}-{count}"))

    def _post(self, app_id: str, body: dict[str, Any], key: str) -> None:
        """Post, and repeat under the same key until there is an answer."""
        for again in range(8):
            answer = self._ask("POST", f"/app/{app_id}/msg", body, **{"idempotency-key": key})
            if answer.status == 202:
                self.posted.append((key, answer.body["id"]))
                return
            self._account.scheduler.sleep(2**again * SECOND)

    def open(self) -> int:
        """Deliveries that have not ended."""
        return sum(
            not (history := self._truth.deliveries.get(owed)) or not history[-1].settled for _, owed in self._owed()
        )

    def _owed(self) -> Iterator[tuple[Accepted, tuple[str, str]]]:
        for accepted in self._truth.accepted.values():
            if accepted.message.queue.startswith("webhooks/"):
                for endpoint_id in accepted.message.delivery_subscribers:
                    yield accepted, (accepted.message.message_id, endpoint_id)

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
            for seen in customer.endpoint.log:
                if not _signed(seen, customer.secret):
                    yield Violation("signature", seen.message_id, f"at {customer.endpoint.name}")

    def _once(self) -> Iterator[Violation]:
        """What was repeated under its key is one message, owed to each endpoint that wants its type."""
        markers: Counter[str] = Counter()
        for accepted in self._truth.accepted.values():
            message = accepted.message
            if not message.queue.startswith("webhooks/"):
                continue
            markers[json.loads(self._body(accepted))["marker"]] += 1
            app = self._apps.index(message.queue.partition("/")[2])
            kind = MessageFields.of(message).event_type
            wanted = {
                each.endpoint_id
                for each in self.customers
                if each.app == app and (not each.types or kind in each.types)
            }
            if set(message.delivery_subscribers) != wanted:
                yield Violation(
                    "owed to others", message.message_id, f"{message.delivery_subscribers}, wanted {wanted}"
                )
        for marker, count in markers.items():
            if count > 1:
                yield Violation("taken twice", marker, f"{count} messages for one key")

    def _ended(self, owed: tuple[str, str]) -> Iterator[Violation]:
        message_id, endpoint_id = owed
        history = self._truth.deliveries.get(owed, [])
        if not history or not history[-1].settled:
            yield Violation(
                "never ended", message_id, f"{endpoint_id}: {history[-1].state if history else 'never looked at'}"
            )
            return
        customer = next(each for each in self.customers if each.endpoint_id == endpoint_id)
        asked = [each for each in customer.endpoint.log if each.message_id == message_id]
        last = history[-1]
        if last.state == "delivered" and not any(200 <= each.status < 300 for each in asked):
            yield Violation(
                "delivered to nobody", message_id, f"{customer.endpoint.name}: {[each.status for each in asked]}"
            )
        if last.state == "exhausted" and last.tries < MOST_TRIES:
            yield Violation("given up too soon", message_id, f"{customer.endpoint.name}: {last.tries} tries")
        if last.state not in {"delivered", "exhausted"}:
            yield Violation("ended otherwise", message_id, f"{customer.endpoint.name}: {last.state}")
        settled_at = self._truth.settled_at(*owed)
        for seen in asked:
            if settled_at is not None and seen.known_at > settled_at:
                yield Violation(
                    "asked after its end", message_id, f"{customer.endpoint.name} at {seen.at / SECOND:.1f} s"
                )

    def _body(self, accepted: Accepted) -> bytes:
        if accepted.message.body is not None:
            return accepted.message.body
        ref = accepted.message.body_ref
        assert ref is not None
        stored = self._account.s3.objects["BodiesBucket", ref.key]
        return stored[ref.offset : ref.offset + ref.length]


def _about(endpoint_id: str, headers: Any, _: bytes) -> tuple[str, str]:
    return engine_id(headers["webhook-id"]) or "", endpoint_id


def _signed(seen: Asked, secret: str) -> bool:
    """Whether a request is signed as Standard Webhooks has it."""
    signed = f"{seen.headers['webhook-id']}.{seen.headers['webhook-timestamp']}.".encode() + seen.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    own = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return f"v1,{own}" in seen.headers["webhook-signature"].split(" ")
