"""What is sent to, in each dialect that takes signatures, OAuth 2.0 and client certificates as settings: a subscriber
of a queue, a service of a store, an endpoint of an application. Tests of what all of them promise are written once,
over these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.engine.world import PROJECT, World
from tests.hub.api.hub_store import OTHER_STORE, Store
from tests.ironmq.api.hub import OTHER_PROJECT, Hub
from tests.webhooks.world import Answered, WebhooksWorld

from pushhub.base.ports import PushRequest
from pushhub.engine.model.records import record_of_delivery
from pushhub.hub.wiring import Hub as HubProtocol
from pushhub.ironmq.wiring import Ironmq
from pushhub.webhooks.wiring import Webhooks

URL = "https://receiver.example/in"
OTHER_URL = "https://other.example/in"
OPERATIONAL_URL = "https://operations.example/in"


class Subscriber:
    """A subscriber of a push queue. What its methods do is the same for each receiver.

    ``make`` makes it, or one at another URL, or in another project; ``change`` speaks of some settings alone, and
    ``write_back`` writes it as it is shown, as clients do that change something else. ``refusal`` is how one with wrong
    settings is refused, with the setting's name first, and ``refused_change`` the name of the setting that one is not
    given; ``guard`` has the guard refuse a URL. ``answers`` is what it answers from now on, and after that that
    it has taken what it is sent. ``said`` is what its owner is told of the last attempt, and ``kept`` all that is
    stored and logged of it and shown to owners; ``ends_told`` how many days were left whenever somebody was told of a
    certificate's end.
    """

    def __init__(self) -> None:
        self._hub = Hub()
        self._last = ""

    @property
    def world(self) -> World:
        return self._hub.world

    def make(self, url: str = URL, *, theirs: bool = False, **settings: Any) -> None:
        project = OTHER_PROJECT if theirs else PROJECT
        name = "s0" if url == URL else "s1"
        push = {"subscribers": [{"name": name, "url": url, **settings}], "retries": 10, "retries_delay": 3}
        if self._hub.call("GET", "/queues/q", project=project).status == 200:
            created = self._hub.call(
                "POST", "/queues/q/subscribers", {"subscribers": push["subscribers"]}, project=project
            )
        else:
            created = self._hub.call("PUT", "/queues/q", {"queue": {"push": push}}, project=project)
        assert created.status == 200, created

    def change(self, **settings: Any) -> None:
        given = {"subscribers": [{"name": "s0", "url": URL, **settings}]}
        changed = self._hub.call("PUT", "/queues/q/subscribers", given)
        assert changed.status == 200, changed

    def write_back(self) -> None:
        self.change(**self.shown())

    def shown(self) -> Mapping[str, Any]:
        return dict(self._hub.info("q")["push"]["subscribers"][0])

    def refusal(self, **settings: Any) -> str:
        push = {"subscribers": [{"name": "s0", "url": URL, **settings}]}
        refused = self._hub.call("PUT", "/queues/q", {"queue": {"push": push}})
        assert refused.status == 400, refused
        assert self._hub.call("GET", "/queues/q").status == 404
        return refused.msg

    def refused_change(self, **settings: Any) -> str:
        given = {"subscribers": [{"name": "s0", "url": URL, **settings}]}
        refused = self._hub.call("PUT", "/queues/q/subscribers", given)
        assert refused.status == 400, refused
        return str(refused.msg.partition(":")[0])

    def guard(self, url: str, why: str) -> None:
        self._hub.refusals[url] = why

    def post(self, *, seconds: float = 1, theirs: bool = False) -> None:
        project = OTHER_PROJECT if theirs else PROJECT
        posted = self._hub.call("POST", "/queues/q/messages", {"messages": [{"body": "x"}]}, project=project)
        assert posted.status == 201, posted
        [self._last] = posted.body["ids"]
        self.world.run(seconds=seconds)

    def said(self) -> str:
        return str(self._hub.statuses("q", self._last)[0]["msg"])

    def answers(self, *statuses: int) -> None:
        self.world.sender.script(URL, *statuses, 200)

    def look_for_ends(self) -> int:
        return self.world.hub.part(Ironmq).ends.run(lambda: 55_000)

    def ends_told(self) -> list[Any]:
        return [each["days_left"] for each in self.world.telemetry.named("certificate_ending")]

    def kept(self) -> str:
        stored = [self.world.config.queue(PROJECT, "q"), self.world.messages.all_deliveries()]
        shown = [self._hub.info("q"), self._hub.statuses("q", self._last), self.world.telemetry.__dict__]
        return json.dumps([*shown, *map(repr, stored)], default=repr)


class Service:
    """A service of a store, by its mapping."""

    def __init__(self) -> None:
        self._store = Store()
        self._mapping: dict[str, Any] = {}
        self._last = ""
        self._statuses: list[int] = []

    @property
    def world(self) -> World:
        return self._store

    def make(self, url: str = URL, *, theirs: bool = False, **settings: Any) -> None:
        status, shown = self._asked("POST", "/mappings", {"mapping": self._given(url, settings)}, theirs=theirs)
        assert status == 201, shown
        self._mapping = self._mapping or shown

    def change(self, **settings: Any) -> None:
        status, shown = self._asked("PUT", f"/mappings/{self._mapping['id']}", {"mapping": settings})
        assert status == 200, shown

    def write_back(self) -> None:
        self.change(**self.shown())

    def shown(self) -> Mapping[str, Any]:
        _, listed = self._asked("GET", "/mappings")
        return dict(next(each for each in listed if each["id"] == self._mapping["id"]))

    def refusal(self, **settings: Any) -> str:
        status, shown = self._asked("POST", "/mappings", {"mapping": self._given(URL, settings)})
        assert status == 422, shown
        assert self._asked("GET", "/mappings")[1] == []
        return self._first(shown["errors"])

    def refused_change(self, **settings: Any) -> str:
        status, shown = self._asked("PUT", f"/mappings/{self._mapping['id']}", {"mapping": settings})
        assert status == 422, shown
        return self._first(shown["errors"]).partition(":")[0]

    def guard(self, url: str, why: str) -> None:
        self._store.refusals[url] = why

    @staticmethod
    def _first(errors: Mapping[str, Any]) -> str:
        ((name, (message, *_)), *_) = errors.items()
        return f"{name}.{message.replace(' ', ': ', 1)}" if message[0].islower() else f"{name}: {message}"

    def post(self, *, seconds: float = 1, theirs: bool = False) -> None:
        message = {"message": "order:new", "payload": {"number": "R1"}}
        status, answer = self._asked("POST", "/messages", message, theirs=theirs)
        assert status == 201, answer
        self._last = answer["message_id"]
        self._store.run(seconds=seconds)

    def said(self) -> str:
        (copy,) = self._store.copies(self._last)
        return str(copy.last_error).removeprefix("No usable answer: ")

    def answers(self, *statuses: int) -> None:
        self._statuses = [*statuses]

    def look_for_ends(self) -> int:
        return self._store.hub.part(HubProtocol).ends.run(lambda: 55_000)

    def ends_told(self) -> list[Any]:
        return [each["days_left"] for each in self._store.telemetry.named("certificate_ending")]

    def kept(self) -> str:
        stored = [self._store.settings.mappings(PROJECT), self._store.log.__dict__]
        paths = ("/mappings", f"/messages/{self._last}", "/notifications")
        shown = [*(self._asked("GET", path)[1] for path in paths), self._store.telemetry.__dict__]
        return json.dumps([*shown, *map(repr, [*stored, self._store.messages.all_deliveries()])], default=repr)

    def _given(self, url: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        self._store.endpoints.setdefault(url, self._answer)
        name = "acme.in" if url == URL else "acme.other"
        options = {"retry_base": 3, "retry_cap": 3}
        mapping = {"name": name, "url": url, "token": "t" * 32, "messages": ["order:new"], "options": options}
        return {**mapping, **settings}

    def _asked(self, method: str, path: str, body: Any = None, *, theirs: bool = False) -> tuple[int, Any]:
        store, opened = (OTHER_STORE, self._store.other_token) if theirs else (PROJECT, self._store.token)
        return self._store.call(method, path, body, store=store, token=opened)

    def _answer(self, _: Any) -> Any:
        return self._statuses.pop(0) if self._statuses else {}


CAMEL = {
    **{"token_url": "tokenUrl", "client_id": "clientId", "client_secret": "clientSecret", "auth_method": "authMethod"},
    **{"extra_headers": "extraHeaders", "extra_params": "extraParams", "jwt_params": "jwtParams"},
    **{"secret_base64": "secretBase64", "signing_algorithm": "signingAlgorithm", "secret_id": "secretId"},
    **{"client_secret_post": "clientSecretPost", "client_secret_basic": "clientSecretBasic"},
    **{"private_key_jwt": "clientSecretJwt"},
    **{"ends_at": "endsAt", "private_ca": "privateCa", "grant_type": "grantType", "refresh_token": "refreshToken"},
}
"""How the webhooks dialect spells what the others write with underscores."""
SNAKE = {camel: snake for snake, camel in CAMEL.items()}


class Endpoint:
    """An endpoint of an application. OAuth 2.0 and certificates are resources of their own there, and so none can be
    set with the endpoint, or asked for by ``True``.
    """

    def __init__(self) -> None:
        self._world = WebhooksWorld()
        self._refusals: dict[str, str] = {}
        self._world.ports.check_url = lambda url, _: self._refusals.get(url)
        self._asked("POST", "/operational-webhook/endpoint", {"url": OPERATIONAL_URL})
        self._apps: dict[bool, str] = {}
        self._path = ""
        self._last = ""

    @property
    def world(self) -> WebhooksWorld:
        return self._world

    def make(self, url: str = URL, *, theirs: bool = False, **settings: Any) -> None:
        if theirs not in self._apps:
            self._apps[theirs] = self._asked("POST", "/app", {"name": "Acme"}, theirs=theirs)["id"]
        path = f"/app/{self._apps[theirs]}/endpoint"
        created = self._asked("POST", path, {"url": url, **settings.get("signing", {})}, theirs=theirs)
        path = f"{path}/{created['id']}"
        self._path = self._path or path
        for gate in {"oauth", "mtls"} & {*settings}:
            self._asked("PUT", f"{path}/{gate}", _camel(settings[gate]), theirs=theirs)

    def change(self, **settings: Any) -> None:
        self._asked("PUT", self._path, {"url": URL})
        for gate, given in settings.items():
            if given is False:
                self._asked("DELETE", f"{self._path}/{gate}")
            elif given not in (None, True):
                self._asked("PUT", f"{self._path}/{gate}", _camel(given))

    def write_back(self) -> None:
        self._asked("PUT", self._path, self._asked("GET", self._path))

    def shown(self) -> Mapping[str, Any]:
        oauth, mtls = (self._asked("GET", f"{self._path}/{gate}-config") for gate in ("oauth", "mtls"))
        shown: dict[str, Any] = {"oauth": True} if oauth["enabled"] else {}
        if mtls["enabled"]:
            shown["mtls"] = {SNAKE.get(name, name): value for name, value in mtls["config"].items()}
        return shown

    def refusal(self, **settings: Any) -> str:
        self.make()
        reported = self._refused(**settings)
        assert all(self._world.call("GET", f"{self._path}/{gate}").status == 404 for gate in settings)
        return reported

    def refused_change(self, **settings: Any) -> str:
        return self._refused(**settings).partition(":")[0]

    def _refused(self, **settings: Any) -> str:
        ((gate, given),) = settings.items()
        answer: Answered = self._world.call("PUT", f"{self._path}/{gate}", _camel({} if given is True else given))
        assert answer.status == 422, answer
        place = [SNAKE.get(each, each) for each in answer.body["detail"][0]["loc"][1:]]
        return f"{'.'.join([gate, *place])}: {answer.text}"

    def guard(self, url: str, why: str) -> None:
        self._refusals[url] = why

    def post(self, *, seconds: float = 1, theirs: bool = False) -> None:
        message = {"eventType": "order.paid", "payload": {"number": "R1"}}
        self._last = self._asked("POST", f"/app/{self._apps[theirs]}/msg", message, theirs=theirs)["id"]
        self._world.run(seconds=seconds)

    def said(self) -> str:
        attempts = self._asked("GET", f"/app/{self._apps[False]}/attempt/msg/{self._last}")["data"]
        return str(attempts[0]["response"])

    def answers(self, *statuses: int) -> None:
        self._world.sender.script(URL, *statuses, 200)

    def look_for_ends(self) -> int:
        return self._world.hub.part(Webhooks).certificate_ends.run(lambda: 55_000)

    def ends_told(self) -> list[Any]:
        self._world.run(seconds=5)
        answer = [json.loads(each.body) for each in self._world.sender.requests_to(OPERATIONAL_URL)]
        return [each["data"]["daysLeft"] for each in answer if each["type"] == "endpoint.certificate_ending"]

    def kept(self) -> str:
        app, endpoint = self._path.split("/")[2::2]
        shown = [self._asked("GET", f"{self._path}{each}") for each in ("", "/oauth", "/mtls", "/health")]
        shown.append(self._asked("GET", f"/app/{app}/attempt/endpoint/{endpoint}"))
        stored = [self._world.ports.endpoints.endpoint(PROJECT, app, endpoint), self._world.messages.all_deliveries()]
        return json.dumps([*shown, self._world.telemetry.__dict__, *map(repr, stored)], default=repr)

    def _asked(self, method: str, path: str, body: Any = None, *, theirs: bool = False) -> Any:
        return self._world.ask(method, path, body, token=self._world.other_token if theirs else None)


def _camel(given: Any) -> Any:
    """Settings of a gate as the webhooks dialect writes them, with what the others need not say."""
    if not isinstance(given, dict) or {"identity", "ca"} & {*given}:
        return given
    written = {
        CAMEL.get(name, name): {CAMEL.get(each, each): of for each, of in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in given.items()
    }
    method: Any = written.get("authMethod", "clientSecretBasic")
    spelt = CAMEL.get(method, method) if isinstance(method, str) else method
    return {"grantType": "clientCredentials", **written, "authMethod": spelt}


Receiver = Subscriber | Service
"""One whose signatures are settings that come and go."""
Gated = Receiver | Endpoint
RECEIVERS: dict[str, type[Receiver]] = {"a subscriber of a queue": Subscriber, "a service of a store": Service}
GATED: dict[str, type[Gated]] = {**RECEIVERS, "an endpoint of an application": Endpoint}


def sent(receiver: Gated, url: str = URL) -> PushRequest:
    """What it is sent for a message that is posted now."""
    receiver.post()
    return receiver.world.sender.requests_to(url)[-1]


def header(request: PushRequest, name: str) -> str | None:
    """A header, of which there is one at most, whatever its spelling."""
    found = [value for each, value in request.headers.items() if each.lower() == name.lower()]
    assert len(found) < 2
    return found[0] if found else None


def records(receiver: Gated) -> list[dict[str, object]]:
    """The fields of the delivery records of its messages."""
    found = (record_of_delivery(None, each, 0) for each in receiver.world.messages.all_deliveries())
    return [dict(each.as_fields()) for each in found if each is not None]
