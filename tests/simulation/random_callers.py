"""Two tenants and their customers call every route at random for an hour of simulated time, with good and bad requests.

``python -m tests.simulation.random_callers SEED FOLDER`` writes what the hub has recorded (``records/``) and what its
tables hold (``tables.json``); the delivery report judges both (``tests/glue/test_random_callers.py``).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode, urlsplit

from simulation.account import Account, HttpAnswer, Operator
from simulation.endpoints import Asked, Endpoint, Mood, Reply
from simulation.gateway import WebSocketGateway
from simulation.scheduler import SECOND
from simulation.template import stack
from simulation.weather import HOUR, Weather
from tests.web.known_good import GOOD, Good
from tests.web.shapes import ABSENT, ODD, as_bytes, places, with_value

from pushhub.base.times import iso_time
from pushhub.engine.projects.projects import Projects
from pushhub.runtime.routes import all_routes
from pushhub.web.api import Auth, Route

REQUESTS = 1_500
"""Requests within the hour."""

SET_UP = 300 * SECOND
"""When the hour begins, microseconds."""

SETTLES = 3 * HOUR
"""How long the hub works on after the last request, microseconds: longer than the report's grace, and than the first
four tries of a webhook. Half of the endpoints are well again then; the others stay as they are, and subscribers paused,
so that much still waits when it is judged.
"""

BAD = 0.2
"""Share of requests with one value replaced by an odd one."""

ABROAD = 0.05
"""Share of names that are another project's."""

FREQUENT = {
    "ironmq.post_messages": 8,
    "hub.push_message": 3,
    "webhooks.create_message": 8,
    "notifications.publish": 4,
    "ironmq.reserve_messages": 4,
    "ironmq.delete_message": 3,
    "ironmq.delete_messages": 3,
    "webhooks.resend_message": 5,
    "ironmq.replay": 3,
    "hub.handle_message": 3,
    "webhooks.create_endpoint": 3,
}
"""How much more often than others some routes are called: those that make or move messages."""

SELDOM = 0.25
"""How often routes that only look are called, compared with those that change something; they tell ids."""

RUINOUS = 0.2
"""How often a route is called that takes much away at once."""

HOSTS: dict[str, Mood] = {
    "well.example": Mood.WELL,
    "kind.example": Mood.WELL,
    "errors.example": Mood.ERRORS,
    "hangs.example": Mood.HANGS,
    "busy.example": Mood.BUSY,
    "flapping.example": Mood.FLAPPING,
    "later.example": Mood.LATER,
    "forgets.example": Mood.FORGETS,
    "gone.example": Mood.GONE,
    "slow.example": Mood.SLOW,
    "lies.example": Mood.LIES,
}
QUEUES = ("jobs", "orders", "audit", "dead", "errors", "own%2Fqueue")
BUSY = 3
"""So many of the queues are used by most requests."""
TYPES = ("user.created", "user.deleted", "order:new", "order:gone")
APPS = ("acme", "globex")

TASKS = "/api/v1/background-task"
MADE_BY = (
    (re.compile(r"(/app/[^/]+/endpoint/[^/]+/(recover|replay-missing|bulk-replay)|/expunge-all-contents)$"), TASKS),
    (re.compile(r"/(reservations|webhook)$"), "/messages"),
    (re.compile(r"/queues/(incoming|accepted|archived)$"), "/messages"),
)
"""Where the things lie whose ids an answer tells, if not under its own path."""

SPELLED = (
    (re.compile(r"/auth/stream/([^/]+)/sink"), r"/stream/\1/sink"),
    (re.compile(r"/auth/(stream|stream-portal-access)$"), "/stream"),
    (re.compile(r"/attempt/(msg|endpoint)$"), r"/\1"),
    (re.compile(r"/app/([^/]+)/polling-endpoint$"), r"/app/\1/polled"),
)
"""Other paths of things, and the one under which a caller knows them."""

SINK_CODE = "function handler({events}) { return {messages: events.map(({payload}) => ({payload}))} }"
"""A transformation of a destination."""

STREAM_CODE = "function handler({events}) { return {data: events} }"
"""A transformation of a stream's sink."""

INGEST = "/ingest/in/"
"""Begins the URLs of sources."""

TRIES = 3
"""A route that has never carried out anything is tried so often, with other values each time."""

LOOKED_UP = {
    "ironmq.delete_message": "ironmq.reserve_messages",
    "ironmq.delete_messages": "ironmq.reserve_messages",
    "ironmq.touch_message": "ironmq.reserve_messages",
    "ironmq.release_message": "ironmq.reserve_messages",
    "hub.handle_message": "hub.show_queue",
    "webhooks.expunge_attempt": "webhooks.list_attempts_of_message",
    "webhooks.resend_message": "webhooks.list_messages",
    "webhooks.expunge_message": "webhooks.list_messages",
    "webhooks.expunge_messages": "webhooks.list_messages",
    "webhooks.seek": "webhooks.consume",
    "webhooks.acknowledge": "webhooks.lease",
    "webhooks.expunge_stream_event": "webhooks.list_stream_events",
    "webhooks.remove_oauth": "webhooks.set_oauth",
    "webhooks.remove_mtls": "webhooks.set_mtls",
    "webhooks.remove_operational_oauth": "webhooks.set_operational_oauth",
    "webhooks.remove_operational_mtls": "webhooks.set_operational_mtls",
    "webhooks.cancel_task": "webhooks.bulk_replay",
    "webhooks.skip_stream_sink": "webhooks.create_stream_events",
    "webhooks.rotate_autoconfig": "webhooks.create_autoconfig",
    "webhooks.stream_logout": "webhooks.stream_access",
}
"""What a caller does first, to have something to name."""

LEFT_OUT = {"uid", "featureFlag", "featureFlags", "channels", "payloadFilters", "reservation_id", "application"}
"""Fields that fit nothing in this world more often than not."""


class Hosts(dict[str, Endpoint]):
    """Every host there is: those with a mood of their own, and for any other name one that is well."""

    def __init__(self, account: Account, heard: Any) -> None:
        super().__init__()
        self._account = account
        self._heard = heard

    def __missing__(self, name: str) -> Endpoint:
        moods = [(0, HOSTS.get(name, Mood.WELL))]
        if Random(f"{self._account.seed}/{name}").random() < 0.5:
            moods.append((SET_UP + HOUR, Mood.WELL))
        endpoint = self[name] = Endpoint(self._account, name, moods)
        endpoint.answers = self._heard
        endpoint.later = lambda seen: None
        return endpoint


@dataclass
class Tenant:
    """A project, and what its callers know of it.

    Attributes:
        project: Its id.
        token: Its token.
        known: Ids and names by the path that they follow.
        portals: Tokens of its customers, each with the application it opens.
        streams: The same of streams.
        subscribing: Keys of autoconfigurations, each with the path of what it makes.
        sources: Paths of its sources' URLs.
        reserved: Ids of reservations, by the path of the message.
        tokens: Tokens of consumers of notifications.
    """

    project: str
    token: str
    known: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    portals: list[tuple[str, str]] = field(default_factory=list)
    streams: list[tuple[str, str]] = field(default_factory=list)
    subscribing: list[tuple[str, str]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    reserved: dict[str, str] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)

    def learn(self, path: str, name: object) -> None:
        """Know a thing from now on; the first ones and the newest are remembered."""
        if isinstance(name, str) and name and name not in self.known[path]:
            self.known[path].append(name)
            del self.known[path][len(APPS) : -40]

    def forget(self, path: str) -> None:
        """Name a thing no more, and its URL neither."""
        above, _, name = path.rpartition("/")
        if name in self.known[above]:
            self.known[above].remove(name)
        self.sources = [each for each in self.sources if f"/{name}/" not in each]


class RandomCallers:
    """The hour.

    Args:
        seed: Decides everything.
        requests: How many there are.

    Attributes:
        answered: Answers by route and status.
        refusals: The last refusal of each route.
        faults: Answers that no caller may get, whatever it asks for.
    """

    def __init__(self, seed: int, requests: int = REQUESTS) -> None:
        self.account = Account(f"callers/{seed}", stack(), Weather((), "calm"))
        self.answered: Counter[tuple[str, int]] = Counter()
        self.refusals: dict[str, str] = {}
        self.faults: list[str] = []
        self._requests = requests
        self._random = Random(f"callers/{seed}")
        self._gateway = WebSocketGateway(self.account)
        self.account.endpoints.known = Hosts(self.account, self._answer)
        self._tenants: list[Tenant] = []
        self._consents: list[str] = []
        self._routes = [*all_routes()]

    def run(self) -> None:
        """Make the tenants, let everybody call, and let the hub finish what it can."""
        account, scheduler = self.account, self.account.scheduler
        with account.installed():
            operator = Operator(account)
            projects = Projects(config=operator.config, clock=operator.clock)
            for name in ("first", "second"):
                project = projects.make(name).project_id
                self._tenants.append(Tenant(project, projects.make_token(project)))
            for tenant in self._tenants:
                scheduler.spawn(partial(self._set_up, tenant))
            scheduler.run(SET_UP)
            assert all(each.portals and each.tokens for each in self._tenants)
            account.begin_schedules()
            for route in self._plan():
                scheduler.spawn(partial(self._call_at_random, route), after=self._random.randrange(HOUR))
            for tenant in self._tenants:
                scheduler.spawn(partial(self._consume, tenant))
            scheduler.run(scheduler.now + HOUR)
            scheduler.run(scheduler.now + SETTLES)

    def _plan(self) -> list[Route[Any, Any]]:
        """The routes to call: each that changes something at least once, then by weight."""
        changing = [each for each in self._routes if self._changes(each)]
        weights = [self._weight(each) for each in self._routes]
        more = self._random.choices(self._routes, weights, k=max(0, self._requests - len(changing)))
        return [*changing, *more]

    @staticmethod
    def _changes(route: Route[Any, Any]) -> bool:
        return route.method != "GET" or route.name in {"webhooks.consent_by_link", "webhooks.poll"}

    def _weight(self, route: Route[Any, Any]) -> float:
        if not self._changes(route):
            return SELDOM
        return RUINOUS if ruinous(route) else FREQUENT.get(route.name, 1)

    # What there is at first

    def _set_up(self, tenant: Tenant) -> None:
        """What lives at first: queues of each kind, mappings, an application, a customer, a topic."""
        iron = partial(self._expect, tenant, "ironmq.put_queue")
        for name in ("jobs", "dead", "errors"):
            iron({"queue": {"type": "pull"}}, queue=name)
        push = {"retries": 2, "retries_delay": 30, "error_queue": "errors"}
        hosts: list[dict[str, Any]] = [{"name": "second", "url": "https://well.example/in"}]
        hosts += [{"name": each.partition(".")[0], "url": f"https://{each}/in", "timeout": 5} for each in HOSTS]
        copies = [{"name": "copy", "url": "ironmq:///jobs"}, {"name": "frame", "url": "notification2://alarms"}]
        for name, kind in (("orders", "multicast"), ("audit", "unicast")):
            iron({"queue": {"type": kind, "push": {**push, "subscribers": [*hosts[:7], *copies]}}}, queue=name)
        for place, host in enumerate(("well.example", "errors.example", "busy.example", "lies.example")):
            mapping: dict[str, Any] = {
                "name": f"m{place}",
                "url": f"https://{host}/in",
                "token": "t",
                "messages": [TYPES[2]],
            }
            self._expect(
                tenant, "hub.make_mapping", {"mapping": {**mapping, "options": {"retry_cap": 60, "max_attempts": 4}}}
            )
        for kind in TYPES[:2]:
            self._expect(tenant, "webhooks.create_event_type", {"name": kind, "description": kind})
        for app in APPS:
            app_id = self._expect(tenant, "webhooks.create_application", {"name": app}).body["id"]
            for url in [*(f"https://{each}/in" for each in HOSTS), "ironmq:///jobs"]:
                self._expect(tenant, "webhooks.create_endpoint", {"url": url}, app=app_id)
            for _ in range(2):
                access = self._expect(tenant, "webhooks.portal_access", {}, app=app_id).body
                tenant.portals.append((access["token"], app_id))
            self._set_up_application(tenant, app_id)
        self._set_up_streams(tenant)
        self._set_up_sources(tenant)
        self._expect(tenant, "webhooks.create_connector", GOOD["webhooks.create_connector"].body)
        self._expect(tenant, "webhooks.create_operational_endpoint", {"url": "https://well.example/in"})
        scheduler = {"key": "acme:poll", "count": 5, "interval": "minutes"}
        self._expect(tenant, "hub.make_scheduler", {"scheduler": scheduler})
        self._expect(tenant, "hub.make_parameter", {"parameter": {"name": "acme.key", "value": "1"}})
        alert = GOOD["ironmq.create_project_alert"].body
        self._expect(
            tenant,
            "ironmq.create_project_alert",
            {"alert": {**alert["alert"], "queue": "orders", "subscriber": "well"}},
        )
        acme = {"name": "acme", "url": "https://acme.example", "token": "t"}
        self._expect(tenant, "hub.register_integration", {"integration": acme})
        rule = {"context": "tenant", "subscription": "alarms", "subscriptionFilter": {"apis": ["alarms"]}}
        self._expect(tenant, "notifications.create_subscription", rule)
        self._expect(tenant, "notifications.create_token", {"subscriber": "shop", "subscription": "alarms"})

    def _set_up_application(self, tenant: Tenant, app: str) -> None:
        """What else an application has: destinations on AWS, an integration, a link by which customers subscribe."""
        sink = GOOD["webhooks.create_sink"].body
        for number in range(3):
            self._expect(tenant, "webhooks.create_sink", {**sink, "uid": f"q{number}"}, app=app)
            wanted = {"mode": "binary", "consent": True, "callback": True}
            asked = {"url": f"https://asked-{number}.example/in", "cloudEvents": wanted}
            self._expect(tenant, "webhooks.create_endpoint", asked, app=app)
        polled = self._expect(tenant, "webhooks.create_sink", {"type": "pollingEndpoint"}, app=app).body["id"]
        tenant.learn(f"/api/v1/app/{app}/polled", polled)
        self._expect(tenant, "webhooks.create_integration", {"name": "Order desk"}, app=app)
        # One for an endpoint, and one for what is polled.
        for _ in range(2):
            self._expect(tenant, "webhooks.create_autoconfig", {}, app=app)

    def _set_up_streams(self, tenant: Tenant) -> None:
        """Streams with a sink of each kind that needs no account of AWS, and what their customers look with."""
        for name in ("clicks", "sales"):
            stream = self._expect(tenant, "webhooks.create_stream", {"name": name}).body["id"]
            for host in ("well.example", "errors.example"):
                sink = {"type": "http", "config": {"url": f"https://{host}/in"}}
                self._expect(tenant, "webhooks.create_stream_sink", sink, stream=stream)
            self._expect(tenant, "webhooks.create_stream_sink", {"type": "poller", "config": {}}, stream=stream)
            self._expect(tenant, "webhooks.stream_access", {}, stream=stream)
            events = [{"eventType": TYPES[0], "payload": "{}"}]
            self._expect(tenant, "webhooks.create_stream_events", {"events": events}, stream=stream)

    def _set_up_sources(self, tenant: Tenant) -> None:
        """A source that knows its sender, and two that take what anybody posts."""
        anybody = {"type": "generic-webhook"}
        for kind in ({"type": "github", "config": {"secret": "s"}}, anybody, anybody):
            source = self._expect(tenant, "webhooks.create_source", {"name": "theirs", **kind}).body["id"]
            for host in ("well.example", "errors.example"):
                self._expect(tenant, "webhooks.create_source_endpoint", {"url": f"https://{host}/in"}, source=source)

    def _expect(self, tenant: Tenant, name: str, body: object, **names: str) -> HttpAnswer:
        route = next(each for each in self._routes if each.name == name)
        answer = self._ask(tenant, tenant, route, names, body)
        assert answer.status == route.status, (name, answer)
        return answer

    # One request

    def _call_at_random(self, route: Route[Any, Any]) -> None:
        tenant = self._random.choice(self._tenants)
        first = next((each for each in self._routes if each.name == LOOKED_UP.get(route.name)), None)
        for _ in range(TRIES):
            chosen: Mapping[str, str] = {}
            fresh: Sequence[str] = ()
            if first:
                names, answer = self._call(tenant, first, {})
                if answer.status < 300:
                    chosen, fresh = names, [str(each["id"]) for each in said(answer.body) if "id" in each]
            self._call(tenant, route, chosen, fresh)
            if not self._changes(route) or self._carried_out(route):
                break

    def _carried_out(self, route: Route[Any, Any]) -> bool:
        return any(name == route.name and status < 300 for name, status in self.answered)

    def _call(
        self, tenant: Tenant, route: Route[Any, Any], chosen: Mapping[str, str], fresh: Sequence[str] = ()
    ) -> tuple[dict[str, str], HttpAnswer]:
        """Call a route; returns the names in its path, and the answer.

        Args:
            tenant: Who calls.
            route: Which one.
            chosen: Names to keep to.
            fresh: Ids that it has just been told, for the first name that is not chosen.
        """
        random = self._random
        of = random.choice(self._tenants) if random.random() < ABROAD else tenant
        portal: tuple[str, str] | None = None
        if route.name.startswith("webhooks.") and random.random() < (0.6 if route.auth is not Auth.PROJECT else 0.1):
            portal = random.choice(tenant.portals)
        names: dict[str, str] = {"id": "accepted"} if route.name == "hub.show_queue" else {}
        for each in re.findall(r"\{(\w+)\}", route.path):
            before = route.path.partition("/{" + each + "}")[0].format(**names)
            if each in names:
                continue
            if each in chosen and route.name != "hub.handle_message":
                names[each] = chosen[each]
            elif fresh and each not in {"project", "store"}:
                names[each], fresh = random.choice(fresh), ()
            else:
                names[each] = self._name(of, before, each, portal, spared=ruinous(route))
        # Another test says which routes lack one.
        good = GOOD.get(route.name, Good())
        body = None if good.body is None and route.method == "GET" else self._filled(tenant, route, names, good.body)
        if route.name == "hub.push_message" and random.random() < 0.7:
            body = {**(body or {}), "message": TYPES[2]}
        if body is not None and random.random() < BAD:
            place, odd = random.choice([*places(body)]), random.choice((*ODD, ABSENT))
            body = body if odd is ABSENT and not place else with_value(body, place, odd)
        query = f"?{urlencode(good.query)}" if route.method != "GET" and random.random() < 0.7 else ""
        if route.name == "hub.show_queue":
            query = "?state=failing"
        if route.auth is Auth.CAPABILITY and tenant.tokens:
            query = f"?token={random.choice(tenant.tokens)}"
        token = portal[0] if portal else ""
        if route.name == "webhooks.stream_logout" and tenant.streams:
            token = tenant.streams[-1][0]
        if route.name in {"webhooks.subscribe", "webhooks.subscribe_poller"} and tenant.subscribing:
            token, path = random.choice(tenant.subscribing)
            names["app"], names["autoconfig"] = path.split("/")[4], path.split("/")[6]
        return names, self._ask(tenant, of, route, names, body, query=query, portal=token)

    def _name(self, tenant: Tenant, before: str, name: str, portal: tuple[str, str] | None, *, spared: bool) -> str:
        """What a path says in one place, after what is before it: mostly something there is.

        Args:
            tenant: Whose it is.
            before: The path so far.
            name: Of the place.
            portal: Token of a customer, and the application it opens.
            spared: Whether what most others use is spared.
        """
        random = self._random
        if name in {"project", "store"}:
            return tenant.project
        if name == "queue":
            return random.choice(QUEUES[BUSY:] if spared else QUEUES[:BUSY] if random.random() < 0.8 else QUEUES)
        if name == "app" and portal and random.random() < 0.9:
            return portal[1]
        if name == "app":
            known = tenant.known["/api/v1/app"]
            few = known[len(APPS) :] if spared else known[: len(APPS)] if random.random() < 0.8 else known
            return random.choice(few or ["none"])
        if name == "endpoint" and "/msg/" in before:
            before = f"{before.partition('/msg/')[0]}/endpoint"
        for pattern, place in SPELLED:
            before = pattern.sub(place, before)
        known = tenant.known[before]
        if known and random.random() < 0.95:
            return random.choice(known[-20:])
        return random.choice(("none", "1", "1" * 24, TYPES[0], "poller", "one"))

    def _filled(self, tenant: Tenant, route: Route[Any, Any], names: Mapping[str, str], good: Any) -> Any:
        """A good body with values of this world."""
        if route.name in {"ironmq.delete_message", "ironmq.touch_message", "ironmq.release_message"}:
            path = route.path.partition("/{message}")[0].format(**names)
            return {**(good or {}), "reservation_id": tenant.reserved.get(f"{path}/{names['message']}", "none")}
        if route.name == "ironmq.delete_messages":
            path = route.path.format(**names) + "/"
            there = [each for each in tenant.reserved if each.startswith(path)]
            some = self._random.sample(there, min(3, len(there)))
            return {"ids": [{"id": each.removeprefix(path), "reservation_id": tenant.reserved[each]} for each in some]}
        body = self._changed(tenant, good)
        if not isinstance(body, dict):
            return body
        if route.name in {"webhooks.create_event_type", "webhooks.create_stream_event_type"}:
            body["name"] = f"kind.{self._random.randrange(1_000)}"
        if "sink_transformation" in route.name and "code" in body:
            body["code"] = SINK_CODE
        if "stream_transformation" in route.name and "code" in body:
            body["code"] = STREAM_CODE
        if "alert" in body:
            body["alert"] = {**body["alert"], "queue": "orders"}
        if "operational" in route.name:
            # Those have types of their own.
            body |= {name: ["endpoint.created"] for name in ("eventTypes", "filterTypes") if name in body}
        if route.name == "ironmq.change_queue":
            # Queues keep their type.
            body = {"queue": {name: each for name, each in body.get("queue", {}).items() if "type" not in name}}
        return body

    def _changed(self, tenant: Tenant, value: Any, key: str = "") -> Any:
        random = self._random
        choices = self._choices(tenant, key)
        inner = value[0] if isinstance(value, list) and value else value
        if choices and not isinstance(inner, dict):
            return [random.choice(choices)] if isinstance(value, list) else random.choice(choices)
        if isinstance(value, bool):
            return random.random() < 0.5
        if isinstance(value, dict):
            kept = [name for name in value if name not in LEFT_OUT and random.random() < 0.93]
            more = {"callback": True} if key == "cloudEvents" else {}
            return {name: self._changed(tenant, value[name], name) for name in kept} | more
        if isinstance(value, list):
            return [self._changed(tenant, each, key) for each in value]
        return value

    def _choices(self, tenant: Tenant, key: str) -> tuple[Any, ...]:
        """Values that mean something in this world, by the name of the field."""
        now, random = self.account.now_ms(), self._random
        elsewhere = f"ironmq://{tenant.project}:{tenant.token}@hub.example/jobs"
        inside = ("ironmq:///jobs", "ironmq:///orders", "notification2://alarms", elsewhere)
        match key:
            case "url":
                # Those that hang are few: each request to them keeps the simulator busy for a minute.
                hosts = [each for each in HOSTS if HOSTS[each] is not Mood.HANGS or random.random() < 0.2]
                return (*(f"https://{each}/in" for each in hosts), *inside)
            case "queue_name" | "error_queue" | "queue":
                return ("jobs", "dead", "errors", "own/queue", "")
            case "eventType" | "eventTypes" | "filterTypes" | "event_types":
                return TYPES[:2]
            case "eventId" | "message_id" | "orderingKey" | "origin":
                return tuple(f"{key}-{number}" for number in range(40))
            case "subscription":
                return ("alarms", "orders")
            case "since" | "after":
                return tuple(iso_time(now - back * 60_000) for back in (1, 10, 60, 600))
            case "appIds":
                return tuple(tenant.known["/api/v1/app"])
            case "subscriber":
                return ("well", "errors", "second", "shop")
            case "until" | "before":
                return (None, iso_time(now))
            case "deliverAt":
                return (None, None, *(iso_time(now + ahead * 60_000) for ahead in (1, 30, 600)))
            case "delay" | "retries_delay" | "message_timeout" | "timeout" | "n" | "retries" | "grace_period":
                return (1, 3, 5, 30, 60)
            case "message_expiration" | "ttl" | "retry_cap":
                return (60, 600, 86_400)
            case "ids" | "message_ids":
                return tuple(tenant.known[f"/3/projects/{tenant.project}/queues/orders/messages"][-5:])
            case _:
                return ()

    def _ask(
        self,
        tenant: Tenant,
        of: Tenant,
        route: Route[Any, Any],
        names: Mapping[str, str],
        body: object,
        query: str = "",
        portal: str = "",
    ) -> HttpAnswer:
        path = route.path.format(**{**dict.fromkeys(("project", "store"), of.project), **names})
        if route.name.startswith("webhooks.consent") and self._consents:
            path = self._random.choice(self._consents[-4:])
        if route.path.startswith(INGEST) and of.sources:
            path = self._random.choice(of.sources[-20:])
        text = None if body is None else as_bytes(body).decode()
        answer = self.account.http(
            route.method, path + query, text, headers=shown(route, tenant.project, portal or tenant.token)
        )
        self.answered[route.name, answer.status] += 1
        if 200 <= answer.status < 300:
            self._learn(of, path, answer.body)
            if route.method == "DELETE":
                of.forget(path)
            if path in self._consents:
                # It works once.
                self._consents.remove(path)
        else:
            self.refusals[route.name] = f"{path} {(text or '')[:300]}: {answer}"
        # Notifications 2.0 answers some refusals with 500, each with its own name.
        if answer.status in {0, 500, 502, 503, 504} and "reliable-notification" not in str(answer.body):
            self.faults.append(f"{route.method} {path} {(text or '')[:1000]}: {answer.status} {answer.body}")
        return answer

    def _learn(self, tenant: Tenant, path: str, body: Any) -> None:
        """Know what an answer tells."""
        token = body.get("token") if isinstance(body, dict) else None
        if token and "/app-portal-access/" in path:
            tenant.portals.append((token, path.rpartition("/")[2]))
        elif token and "/stream-portal-access/" in path:
            tenant.streams.append((token, path.rpartition("/")[2]))
        elif token and "/autoconfig" in path:
            with contextlib.suppress(ValueError, KeyError):
                key = json.loads(base64.b64decode(token.removeprefix("auto_v2_")))["tok"]
                of = path.removesuffix("/rotate") + ("" if path.endswith("/rotate") else f"/{body['id']}")
                tenant.subscribing.append((key, of))
        elif token and path == "/notification2/token":
            tenant.tokens.append(token)
        for pattern, place in MADE_BY:
            path = place if place == TASKS and pattern.search(path) else pattern.sub(place, path)
        for each in said(body):
            if each.get("ingestUrl"):
                tenant.sources.append(urlsplit(each["ingestUrl"]).path)
            if "msgId" in each:
                tenant.learn(f"{path.partition('/attempt/')[0]}/msg/{each['msgId']}/attempt", each["id"])
                continue
            of_kind = each.get("name") if path.endswith("/event-type") else None
            tenant.learn(path, each.get("id") or each.get("message_id") or of_kind)
            for message in each.get("ids") or ():
                tenant.learn(path, message)
            if "reservation_id" in each and "id" in each:
                tenant.reserved[f"{path}/{each['id']}"] = each["reservation_id"]

    # Those who receive

    def _answer(self, seen: Asked, random: Random) -> Reply:
        """What an endpoint that is well says: to the question for consent yes, sometimes by its callback; to the hub's
        own protocol with messages, parameters and postponements.
        """
        callback = seen.headers.get("webhook-request-callback")
        if callback:
            self._consents.append(urlsplit(callback).path)
            if random.random() < 0.5:
                return Reply(200, takes=0)
        if "webhook-request-origin" in seen.headers:
            return Reply(200, headers={"webhook-allowed-origin": "*"}, takes=0)
        if not seen.body:
            described = {"name": "acme", "services": [{"name": "import", "path": "/import"}]}
            return Reply(200, body=json.dumps(described).encode(), takes=0)
        said: dict[str, Any] = {"message_id": hub_message(seen.body)}
        if seen.at > SET_UP + HOUR:
            return Reply(200, body=json.dumps(said).encode(), takes=0)
        if random.random() < 0.05:
            # A type that no mapping takes: otherwise each message would make another without end.
            said["messages"] = [{"message": "stock:changed", "payload": {}}]
        if random.random() < 0.2:
            said["delay"] = random.choice((1, 60))
        if random.random() < 0.1:
            said["parameters"] = [{"name": "acme.key", "value": "2"}]
        status = random.choice((200, 200, 200, 201, 204, 500, 422))
        return Reply(status, body=b"" if status == 204 else json.dumps(said).encode(), takes=0)

    def _consume(self, tenant: Tenant) -> None:
        """A consumer of notifications that connects, acknowledges most of what it gets, and leaves."""
        random, scheduler = self._random, self.account.scheduler

        def heard(connection: str, frame: str) -> None:
            if frame and random.random() < 0.8:
                acknowledge = partial(self._gateway.send, connection, frame.split("\n", maxsplit=1)[0])
                scheduler.spawn(acknowledge, after=random.randrange(5 * SECOND))

        end = scheduler.now + HOUR
        while scheduler.now < end:
            status, connection = self._gateway.connect({"token": random.choice(tenant.tokens)}, heard)
            scheduler.sleep(random.randrange(1, 400) * SECOND)
            if status == 200:
                self._gateway.cut(connection)

    # What is left

    def write(self, folder: Path) -> None:
        """Write what the report reads: records as objects, and the tables that they are held against."""
        for (bucket, key), content in self.account.s3.objects.items():
            if bucket == "RecordsBucket" and key.startswith("records/"):
                file = folder / key
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        tables = {
            short: [kept for each in self.account.dynamodb.tables[name].everything() if (kept := keys_of(each))]
            for short, name in TABLES.items()
        }
        reported = {
            "now": iso_time(self.account.now_ms()),
            "tables": tables,
            "answered": self._answers(),
            "faults": self.faults,
        }
        (folder / "tables.json").write_text(json.dumps({**reported, "faults": self.faults}))

    def _answers(self) -> dict[str, dict[str, int]]:
        return {
            each.name: {str(status): count for (name, status), count in self.answered.items() if name == each.name}
            for each in self._routes
            if self._changes(each)
        }


TABLES = {"messages": "MessagesTable", "lines": "PullTable", "topics": "BacklogsTable"}
"""The tables that the report reads, by the names it has for them."""

SEEN = ("state", "version", "settled_at", "asked_at", "changed_at", "last", "deleted")
"""What the report looks at in a delivery."""


def keys_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """What the report may read of an item; nothing for items that it does not ask for."""
    wanted = ("pk", "sk", "kind", "accepted_at", "queue", "entry", "topic_uid", *SEEN)
    return {name: item[name] for name in wanted if name in item} if "accepted_at" in item and "kind" in item else {}


def ruinous(route: Route[Any, Any]) -> bool:
    """Whether a route takes much away at once."""
    return route.name in {
        "ironmq.delete_queue",
        "webhooks.delete_application",
        "webhooks.import_environment",
        "notifications.delete_subscriptions",
        "notifications.unsubscribe",
        "webhooks.expire_portal",
        "webhooks.logout",
        "webhooks.delete_event_type",
    }


def shown(route: Route[Any, Any], project: str, token: str) -> dict[str, str]:
    """How a protocol's clients show a token."""
    match route.name.partition(".")[0]:
        case "ironmq":
            return {"authorization": f"OAuth {token}"}
        case "hub":
            return {"x-augury-token": token}
        case "webhooks":
            return {"authorization": f"Bearer {token}"}
        case _:
            return {"authorization": "Basic " + base64.b64encode(f"{project}/me:{token}".encode()).decode()}


def said(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in an answer, the outermost first."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from said(each)


def hub_message(body: bytes) -> str:
    """The message that a request of the hub's own protocol is about."""
    try:
        fields = json.loads(body)
    except ValueError:
        return ""
    return str(fields.get("message_id", "")) if isinstance(fields, dict) else ""


def main(seed: int, folder: Path) -> None:
    """Run the hour of a seed, and write what the report reads."""
    callers = RandomCallers(seed)
    callers.run()
    callers.write(folder)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Otherwise the order of sets of strings would differ, and no hour could be repeated.
        again = [sys.executable, "-m", "tests.simulation.random_callers", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    main(int(sys.argv[1]), Path(sys.argv[2]))
