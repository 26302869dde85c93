"""Webhooks: applications with their own endpoints, and the promises made to them.

Producers repeat requests with an idempotency key and order messages with an ordering key; owners pause, change and
delete endpoints; people have messages resent.
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
from itertools import pairwise
from random import Random
from typing import Any

from pushhub.engine.model.flow import Limits
from pushhub.engine.model.message import Message
from pushhub.webhooks.model.endpoint import Endpoint as Settings
from pushhub.webhooks.model.ids import engine_id
from pushhub.webhooks.model.message import MessageFields
from pushhub.webhooks.store._items import decode_endpoint
from simulation.bodies import text_body
from simulation.endpoints import Asked, Endpoint, Mood, life
from simulation.expressions import Item
from simulation.policies import in_order, left_alone
from simulation.promises.flow import Waiting
from simulation.promises.judgement import Exchange, Violation
from simulation.promises.push import FOREVER
from simulation.promises.shown import Attempt, End, Listed, Shown, ShownPushes, judge_list
from simulation.promises.talks import (
    bounds,
    command_line,
    deliveries,
    described,
    edges,
    effects,
    reader_places,
    readers,
    replays,
    tasks_meanwhile,
    whose,
)
from simulation.promises.talks import webhooks as talks
from simulation.promises.webhooks import RAMP_S, Posted, Webhooks
from simulation.promises.webhooks import Endpoint as MadeEndpoint
from simulation.scheduler import SECOND
from simulation.truth import Accepted
from simulation.weather import HOUR
from simulation.worlds import shown
from simulation.worlds.world import Owed, PushWorld, moment

APPLICATIONS = 2
ENDPOINTS = 2
TYPES = ("user.created", "user.deleted")
MOODS = tuple(each for each in Mood if each not in {Mood.LATER, Mood.FORGETS, Mood.RACES})

MOST_TRIES = 8
"""Maximum number of tries: the first, and seven more within about 28 hours."""

REMEMBERED = 3 * SECOND
"""How long after its owner was told a request may begin that goes by what an endpoint was before, in storms: what is
promised, and how long an attempt may take that had begun.
"""

IN_FORCE = round(1.3 * SECOND)
"""The same while nothing is slow: a change is in force a second after its answer."""

CHANGES_AN_HOUR = 4.0
LOOKS_AN_HOUR = 24.0
"""How often per hour an owner looks at the state of one of the endpoints."""

READ_BEFORE = 60 * SECOND
"""The endpoints that a message is owed to were read at most this long before it was stored."""

BURST = 30
"""Messages that now and then arrive at once: enough to open a circuit, and for a rate limit to spread."""

KEYS = ("a", "b")
"""Ordering keys of each application."""

RATES = {1: 1}
"""``throttleRate`` of applications, by number; it applies to endpoints without a rate of their own."""

OWN_RATE = 2
"""``throttleRate`` of every second endpoint of the others."""

UNSURE = (0, 500, 503)
"""Answers that leave open whether a request took effect."""

COUNTED_S = 10
"""Window for counting the requests of a rate."""

RESENDS_AN_HOUR = 24.0
OFTEN_AGAIN = 0.5
"""How often a person resends one of the newest messages, which are still being tried."""

IN_LINE = 0.6
"""How often a person resends a message that waits behind another one, or that others wait for, if there is one."""


@dataclass
class Customer:
    """An endpoint of an application.

    Attributes:
        app: Its application's number.
        endpoint: The simulated endpoint.
        endpoint_id: The hub's id for it.
        secrets: The secrets it checks signatures with, each with the time when its owner knew that it is valid,
            microseconds; None until then.
        changing: Whether its owner is about to change it.
        rate: Maximum requests per second that it wants; 0 for no limit.
        changed: From when to when its owner was about to change it, microseconds; a request may take many tries.
    """

    app: int
    endpoint: Endpoint
    endpoint_id: str = ""
    secrets: list[tuple[int | None, str]] = field(default_factory=list)
    changing: bool = False
    rate: int = 0
    changed: list[tuple[int, int]] = field(default_factory=list)

    def begins_to_change(self, now: int) -> None:
        """Its owner asks for something."""
        self.changing = True
        self.changed.append((now, FOREVER))

    def has_changed(self, now: int) -> None:
        """Its owner has its answer, or gave up."""
        self.changing = False
        self.changed[-1] = self.changed[-1][0], now


@dataclass
class Resent:
    """A message that a person had resent.

    Attributes:
        message_id: The engine's id of the message.
        endpoint_id: The endpoint it was resent to.
        began: When that was requested, microseconds.
        times: Requests it took until there was an answer: each may have taken effect.
        accepted: Whether it was accepted.
    """

    message_id: str
    endpoint_id: str
    began: int
    times: int
    accepted: bool


@dataclass
class Placed:
    """A message with an ordering key that a producer was told was accepted.

    Attributes:
        app: Its application's number.
        key: Its ordering key.
        message_id: The engine's id.
        began: When it was first posted, microseconds.
        at: When the answer came, microseconds.
    """

    app: int
    key: str
    message_id: str
    began: int
    at: int


class WebhooksWorld(PushWorld):
    """An organization with applications."""

    name = "webhooks"

    def set_up(self) -> None:
        """Create applications and endpoints, before any weather."""
        self._apps: list[str] = []
        self.customers: list[Customer] = []
        self.posted: list[tuple[str, str]] = []
        self.placed: list[Placed] = []
        self.resent: list[Resent] = []
        self._posts: list[Posted] = []
        self._content: dict[str, dict[str, Any]] = {}
        self._listed: dict[int, list[Listed]] = {}
        self._shown: dict[str, list[Shown]] = defaultdict(list)
        self._by_hand: dict[Owed, list[Exchange]] = defaultdict(list)
        self._bodies = self._chance("bodies")
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
            fields = {"name": f"app-{app}", "throttleRate": RATES.get(app), "eager": self._eager(app)}
            self._apps.append(self._ask("POST", "/app", fields).body["id"])
            for _ in range(ENDPOINTS):
                assert self._make_endpoint(app, self._random)

    def _make_endpoint(self, app: int, random: Random) -> bool:
        """Create an endpoint with a secret chosen by its owner; returns False when it is unknown whether that
        succeeded.
        """
        place = sum(each.app == app for each in self.customers)
        name, own_rate = f"e{app}-{place}", OWN_RATE if app not in RATES and place % 2 else 0
        endpoint = self._account.endpoints.add(f"{name}.example", life(random, self._hours, MOODS))
        customer = Customer(app, endpoint, rate=own_rate or RATES.get(app, 0))
        secret = _new_secret(random)
        fields: dict[str, Any] = {"url": f"https://{name}.example/in", "secret": secret}
        if own_rate:
            fields["throttleRate"] = own_rate
        if random.random() < 0.5:
            fields["filterTypes"] = [random.choice(TYPES)]
        answer = self._ask("POST", f"/app/{self._apps[app]}/endpoint", fields)
        if answer.status != 201:
            # It may have been created all the same: then nobody refers to it, but messages may be owed to it.
            return False
        customer.endpoint_id = answer.body["id"]
        customer.secrets.append((self._account.scheduler.now, secret))
        customer.endpoint.about = _about
        self.customers.append(customer)
        return True

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """A producer for each application, the owner of the endpoints, who also watches them, and the person who
        resends messages.
        """
        acts: dict[str, Callable[[], object]] = {}
        for number, app_id in enumerate(self._apps):
            random = self._chance(f"producer-{number}")
            produce = partial(self._produce, number, app_id, random)
            acts[f"producer-{number}"] = partial(self._each_while_traffic, random, produce, an_hour=self._rate)
        random = self._chance("owner")
        own = partial(self._own, random)
        acts["owner"] = partial(self._each_while_traffic, random, own, an_hour=CHANGES_AN_HOUR)
        random = self._chance("watcher")
        watch = partial(self._watch, random)
        acts["watcher"] = partial(self._each_while_traffic, random, watch, an_hour=LOOKS_AN_HOUR)
        return acts | {"person": self._look_after}

    def _look_after(self) -> None:
        """A person has messages sent again, and in the end looks up what became of all."""
        random = self._chance("person")
        self._each_while_traffic(random, partial(self._resend, random), an_hour=RESENDS_AN_HOUR)
        self._account.scheduler.sleep(shown.AFTER_S * SECOND)
        for number, app_id in enumerate(self._apps):
            self._listed[number] = [
                Listed(engine_id(each["id"]) or "", _content(each), shown.at(each["timestamp"]))
                for each in shown.pages(partial(self._ask, "GET"), f"/app/{app_id}/msg")
            ]
        for customer in self.customers:
            if self._settings[customer.endpoint_id][-1][1] is not None:
                self._look_up(customer)

    def _look_up(self, customer: Customer) -> None:
        """What is shown of all messages at an endpoint that is still there."""
        began, name, ask = self._account.scheduler.now, customer.endpoint.name, partial(self._ask, "GET")
        path = f"/app/{self._apps[customer.app]}"
        attempts: dict[str, list[Attempt]] = defaultdict(list)
        for each in shown.pages(ask, f"{path}/attempt/endpoint/{customer.endpoint_id}?with_content=false"):
            found = Attempt(name, each["responseStatusCode"], shown.at(each["timestamp"]), each["triggerType"] == 1)
            attempts[engine_id(each["msgId"]) or ""].append(found)
        ends = {
            engine_id(each["id"]): End(name, each["status"] == 0)
            for each in shown.pages(ask, f"{path}/endpoint/{customer.endpoint_id}/msg?with_content=false")
        }
        exchange = Exchange(began, self._account.scheduler.now, 200)
        for post in self._posts:
            message_id = post.message_id
            if post.app == customer.app and message_id:
                end = [ends[message_id]] if message_id in ends else []
                hands = [(name, hand) for hand in self._by_hand.get((message_id, name), ())]
                one = Shown(message_id, exchange, post.exchange.asked, attempts[message_id], 0, end, by_hand=hands)
                self._shown[name].append(one)

    def _produce(self, number: int, app_id: str, random: Random) -> None:
        apart = random.choice((0, SECOND))
        for place in range(BURST if random.random() < 0.05 else 1):
            self._markers[number] += 1
            key = f"{number}-{self._markers[number]}"
            size = random.choice((10, 10, 9_000))
            payload = {"marker": key, "padding": text_body(self._bodies, key, size=size, large=0.002)}
            body: dict[str, Any] = {"eventType": random.choice(TYPES), "payload": payload}
            if random.random() < 0.3:
                body["orderingKey"] = random.choice(KEYS)
            self._account.scheduler.spawn(partial(self._post, number, app_id, body, key), after=place * apart)

    def _post(self, number: int, app_id: str, body: dict[str, Any], key: str) -> None:
        """Post, and repeat with the same key until there is an answer."""
        began = self._account.scheduler.now
        post = partial(self._ask, "POST", f"/app/{app_id}/msg", body, **{"idempotency-key": key})
        answer = self._until(202, post, tries=8)
        now, message_id = self._account.scheduler.now, engine_id(answer.body["id"]) if answer else None
        exchange = Exchange(began, now, 202 if answer else 0)
        self._posts.append(Posted(number, body["payload"], exchange, message_id or "", "orderingKey" in body))
        self._content[key] = _content(body)
        if answer is not None:
            self.posted.append((key, answer.body["id"]))
            message_id = engine_id(answer.body["id"])
            if "orderingKey" in body and message_id is not None:
                now = self._account.scheduler.now
                self.placed.append(Placed(number, body["orderingKey"], message_id, began, now))

    def _resend(self, random: Random) -> None:
        """Have a message resent to an endpoint: one that arrived, is being tried, waits behind another one, or was
        never owed.

        If the answer is unsure, ask again.
        """
        if not self.posted:
            return
        message, customer = self._sent_again_next(random)
        path = f"/app/{self._apps[customer.app]}/msg/{message}/endpoint/{customer.endpoint_id}/resend"
        resent = Resent(engine_id(message) or "", customer.endpoint_id, self._account.scheduler.now, 0, accepted=False)
        self.resent.append(resent)
        for again in range(4):
            resent.times += 1
            answer = self._ask("POST", path, {})
            status = answer.status
            self._by_hand[resent.message_id, customer.endpoint.name].append(answer.exchange)
            self._account.note(f"resend of {resent.message_id} to {customer.endpoint.name}: {status}")
            if status not in UNSURE:
                resent.accepted = status == 202
                return
            self._account.scheduler.sleep(2**again * SECOND)
        self._account.unqueued.add(resent.message_id)

    def _sent_again_next(self, random: Random) -> tuple[str, Customer]:
        """The next message to resend, and its endpoint: rather one that waits than one that arrived long ago."""
        if random.random() < IN_LINE:
            waiting = self._still_sending()[-10:]
            if waiting:
                return random.choice(waiting)
        key, message = random.choice(self.posted[-5:] if random.random() < OFTEN_AGAIN else self.posted)
        own = [each for each in self.customers if each.app == int(key.partition("-")[0])]
        failing = [each for each in own if each.endpoint.mood() is not Mood.WELL]
        return message, random.choice(failing if failing and random.random() < 0.7 else own)

    def _still_sending(self) -> list[tuple[str, Customer]]:
        """Messages with an ordering key that have not arrived at an endpoint, each with that endpoint."""
        waiting: list[tuple[str, Customer]] = []
        for _, message in self.posted[-60:]:
            stored = self._truth.pushed.get(engine_id(message) or "")
            if stored is not None and stored.ordering is not None:
                waiting += [
                    (message, each)
                    for each in self.customers
                    if each.endpoint_id in stored.delivery_subscribers
                    and self._truth.settled_at(stored.message_id, each.endpoint_id) is None
                ]
        return waiting

    def _own(self, random: Random) -> None:
        """The owner pauses and resumes an endpoint, chooses other event types, rotates a secret, replaces an endpoint,
        or enables a disabled one.
        """
        customer = random.choice(self.customers)
        if customer.changing or self._settings[customer.endpoint_id][-1][1] is None:
            return
        customer.begins_to_change(self._account.scheduler.now)
        path = f"/app/{self._apps[customer.app]}/endpoint/{customer.endpoint_id}"
        choice = random.random()
        settings = self._settings[customer.endpoint_id][-1][1]
        if settings is not None and settings.fields.disabled:
            self._change(path, {"disabled": False})
        elif choice < 0.4:
            self._pause(path, random.choice((3, 600, 5_000)))
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
        customer.has_changed(self._account.scheduler.now)

    def _watch(self, random: Random) -> None:
        """The owner pauses failing endpoints that still have tries to come, until they may be well again."""
        customer = random.choice(self.customers)
        settings = self._settings[customer.endpoint_id][-1][1]
        if customer.changing or settings is None or settings.fields.disabled or customer.endpoint.mood() is Mood.WELL:
            return
        customer.begins_to_change(self._account.scheduler.now)
        self._pause(f"/app/{self._apps[customer.app]}/endpoint/{customer.endpoint_id}", random.choice((600, 2_500)))
        customer.has_changed(self._account.scheduler.now)

    def _pause(self, path: str, seconds: int) -> None:
        self._change(path, {"disabled": True})
        self._account.scheduler.sleep(seconds * SECOND)
        self._change(path, {"disabled": False})

    def _change(self, path: str, fields: dict[str, Any]) -> None:
        answer = self._until(200, lambda: self._ask("PATCH", path, fields), tries=12)
        self._account.note(f"owner changes {path} to {fields}: {answer.status if answer else 'in vain'}")

    def _is_own(self, message: Message) -> bool:
        return message.project == self._project and message.queue.startswith("webhooks/")

    def _settings_between(self, endpoint_id: str, begins: int, ends: int) -> Sequence[Settings | None]:
        """The settings of an endpoint between two times (microseconds); None for when it did not exist."""
        history = self._settings[endpoint_id]
        place = bisect.bisect_right(history, begins, key=lambda each: each[0])
        before: list[Settings | None] = [history[place - 1][1] if place else None]
        return before + [each for at, each in history[place:] if at <= ends]

    def talk(self) -> None:
        """The API, talked through, by two with equal names. Its parts are shared out among worlds, so that each run is
        short: gates, policies, sinks and tenants have the others.
        """
        one, two = (self._talking_webhooks() for _ in range(2))
        talks.through(one)
        command_line.webhooks(one)
        command_line.imported(one, two)
        command_line.taken_over(self._client("/api/v1", lambda _, token: {"authorization": f"Bearer {token}"}))
        described.webhooks(one)
        whose.webhooks(one, two)
        edges.webhooks(one)
        bounds.webhooks(one)
        effects.webhooks(one)
        readers.webhooks(one)
        reader_places.webhooks(one)
        deliveries.webhooks(one)
        replays.webhooks(one)
        tasks_meanwhile.webhooks(one)

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        stored = {accepted.message.message_id: accepted for accepted in self._truth.accepted.values()}
        self._judge()
        self._limited()
        yield from self.judgement.total()
        for message_id in {message_id for _, message_id in self.posted}:
            if engine_id(message_id) not in stored:
                yield Violation("accepted and not stored", engine_id(message_id) or message_id, message_id)
        yield from self._once()
        for _, owed in self._owed():
            yield from self._ended(owed)
        yield from self._ordered()
        yield from self._sent_again()
        for customer in self.customers:
            yield from self._as_its_owner_said(customer)
            clocks_off = self._clocks_off_ms
            yield from left_alone(self._truth, customer.endpoint, customer.endpoint_id, clocks_off)

    def _limited(self) -> None:
        for each in self.customers:
            if each.rate:
                waiting = [
                    Waiting(post.message_id, post.exchange.answered)
                    for post in self._posts
                    if post.app == each.app
                    and not post.ordered
                    and (post.message_id, each.endpoint.name) not in self._by_hand
                ]
                limits = Limits(rate_per_s=each.rate)
                # Its circuit may hold messages back until its ramp is over.
                changed = each.changed
                self._judge_flow(each.endpoint, limits, waiting, window_s=COUNTED_S, calm_s=RAMP_S, disturbed=changed)

    def _judge(self) -> None:
        model = Webhooks(
            {each.endpoint.name: MadeEndpoint(each.app, each.changed, bool(each.rate)) for each in self.customers},
            self.judgement,
            self._faults(),
            clocks_s=self._clocks_off_s,
            ends=self._account.scheduler.now,
        )
        requests = [seen for each in self.customers for seen in self._requests(each.endpoint.name, each.endpoint)]
        model.judge(self._posts, requests, self._by_hand)
        self._judge_shown()

    def _judge_shown(self) -> None:
        """What people looked up of each endpoint is what that endpoint saw; and each message is listed."""
        for customer in self.customers:
            name = customer.endpoint.name
            seen, faults = self._requests(name, customer.endpoint), self._faults()
            looked_up = ShownPushes(seen, self.judgement, faults, clocks_s=self._clocks_off_s)
            for each in self._shown[name]:
                looked_up.judge(each)
        for number, listed in self._listed.items():
            own = [each for each in self._posts if each.app == number]
            posted = {
                each.message_id: Listed(
                    each.message_id, self._content[each.payload["marker"]], each.exchange.answered, each.exchange.asked
                )
                for each in own
                if each.message_id
            }
            unanswered = [self._content[each.payload["marker"]] for each in own if not each.message_id]
            judge_list(self.judgement, posted, listed, unanswered, clocks_s=self._clocks_off_s)

    def _ordered(self) -> Iterator[Violation]:
        """Messages of one ordering key reach each endpoint in order, and state their position."""
        stored = [each.message for each in self._truth.accepted.values() if self._is_own(each.message)]
        messages = [each for each in stored if each.ordering is not None]
        requests: dict[Owed, list[Asked]] = {}
        endpoints = {each.endpoint_id: each.endpoint for each in self.customers}
        for accepted, owed in self._owed():
            message, endpoint = accepted.message, endpoints.get(owed[1])
            if message.ordering is None or endpoint is None:
                continue
            requests[owed] = endpoint.about_message.get(message.message_id, [])
            for seen in requests[owed]:
                shown = seen.headers.get("webhook-ordering-key"), seen.headers.get("webhook-sequence")
                if shown != (message.ordering.key, str(message.ordering.sequence)):
                    yield Violation("a place told wrong", message.message_id, f"{shown}, and it is {message.ordering}")
        yield from in_order(self._truth, messages, requests)
        places = {each.message_id: each.ordering.sequence for each in messages if each.ordering}
        told_apart: dict[tuple[int, str], list[Placed]] = defaultdict(list)
        for each in self.placed:
            if each.message_id in places:
                told_apart[each.app, each.key].append(each)
        for placed in told_apart.values():
            placed.sort(key=lambda each: places[each.message_id])
            for earlier, later in pairwise(placed):
                if later.at < earlier.began:
                    yield Violation("placed before what was posted before it", earlier.message_id, str(later))

    def _sent_again(self) -> Iterator[Violation]:
        """A resent message is sent, and no more often than requested."""
        endpoints = {each.endpoint_id: each.endpoint for each in self.customers}
        wanted: Counter[Owed] = Counter()
        for each in self.resent:
            owed = each.message_id, each.endpoint_id
            wanted[owed] += each.times
            asked = endpoints[each.endpoint_id].about_message.get(each.message_id, [])
            # Whoever asks while a try is under way gets one of his own.
            sent = any(seen.at >= each.began for seen in asked)
            off = any(
                found is None or not found.active
                for found in self._settings_between(each.endpoint_id, each.began - REMEMBERED, 10**18)
            )
            if each.accepted and not sent and not off:
                yield Violation(
                    "sent again in vain", each.message_id, f"to {owed[1]}, asked for at {moment(each.began)}"
                )
        own = {owed for _, owed in self._owed()}
        for owed, history in self._truth.deliveries.items():
            if owed not in own and not wanted[owed]:
                continue
            count = sum(
                before.asked and not after.asked and after.attempts > before.attempts
                for before, after in pairwise(history)
            )
            if count > wanted[owed]:
                detail = f"{count} times to {owed[1]}, {wanted[owed]} were asked for"
                yield Violation("sent again too often", owed[0], detail)

    def _has_ended(self, owed: Owed) -> bool:
        history = self._truth.deliveries.get(owed)
        return super()._has_ended(owed) and not (history and history[-1].asked)

    @property
    def _clocks_off_ms(self) -> int:
        worst = max((each.rate for each in self._account.weather.storms if each.kind == "clocks"), default=0)
        return 1_100 + round(2_000 * worst)

    @property
    def _still(self) -> int:
        slow = self._account.weather.storms or self._account.weather.applied
        return REMEMBERED if slow else IN_FORCE

    def _as_its_owner_said(self, customer: Customer) -> Iterator[Violation]:
        """Nothing is sent to a disabled or deleted endpoint, and each request is signed with its current secret."""
        late = self._still + self._clocks_off_ms * 1000 if self._account.weather.storms else self._still
        for seen in customer.endpoint.log:
            before = self._settings_between(customer.endpoint_id, seen.at - late, seen.at)
            if not any(each is not None and each.active for each in before):
                detail = f"{customer.endpoint.name} at {moment(seen.at)}"
                yield Violation("sent to a disabled endpoint", seen.message_id, detail)
            sure = [place for place, (at, _) in enumerate(customer.secrets) if at and at < seen.at - late]
            allowed = customer.secrets[sure[-1] if sure else 0 :]
            if not any(_signed(seen, secret) for _, secret in allowed):
                yield Violation("signature", seen.message_id, f"{customer.endpoint.name} at {moment(seen.at)}")

    def _once(self) -> Iterator[Violation]:
        """A post repeated with its key is a single message, owed to each endpoint that wants its type."""
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
                detail = f"{'not ' if True in wants else ''}owed to {endpoint_id}"
                yield Violation("owed to others", message.message_id, detail)

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
        # Its first end counts: a person may have had it retried since.
        ended_at = next(each.at for each in self._truth.deliveries[owed] if each.state == last.state)
        since = max((each.at for each in asked if each.at <= ended_at), default=ended_at - HOUR)
        off = any(each is None or not each.active for each in self._settings_between(endpoint_id, since, ended_at))
        if last.state == "exhausted" and last.tries < MOST_TRIES and not off:
            # 410 disables the endpoint, which is written before the attempt is.
            yield Violation("given up too soon", message_id, f"{where}: {last.tries} tries, {statuses}")
        if last.state not in {"delivered", "exhausted"}:
            yield Violation("ended otherwise", message_id, f"{where}: {last.state}")


def _about(headers: Any, _: bytes) -> str:
    return engine_id(headers["webhook-id"]) or ""


def _content(message: Mapping[str, Any]) -> dict[str, Any]:
    """What was posted of a message, or is shown of it."""
    return {name: message.get(name) for name in ("eventType", "payload", "orderingKey")}


def _new_secret(random: Random) -> str:
    return f"whsec_{base64.b64encode(random.randbytes(24)).decode()}"


def _signed(seen: Asked, secret: str) -> bool:
    """Whether a request is signed as Standard Webhooks specifies."""
    signed = f"{seen.headers['webhook-id']}.{seen.headers['webhook-timestamp']}.".encode() + seen.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    own = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return f"v1,{own}" in seen.headers["webhook-signature"].split(" ")
