"""The complete API of each protocol, with everything behind it in memory, called by route."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.engine.world import PROJECT, World
from tests.fakes.gateway import content_of, http_event
from tests.hub.api.hub_store import Store
from tests.ironmq.api.hub import Hub as IronHub
from tests.notifications.world import NotificationWorld
from tests.webhooks.world import WebhooksWorld

from pushhub.engine.model.project import Project
from pushhub.engine.projects.tokens import token_hash
from pushhub.hub.wiring import Hub
from pushhub.ironmq.wiring import Ironmq
from pushhub.notifications.wiring import Notifications
from pushhub.web.api import Api, Route
from pushhub.webhooks.wiring import Webhooks

PROTOCOLS = ("ironmq", "hub", "notifications", "webhooks")


@dataclass(frozen=True)
class Answer:
    """An answer as a client sees it."""

    status: int
    body: Any
    headers: Mapping[str, str]


class Reads:
    """A store whose calls are recorded by name."""

    def __init__(self, real: object, noted: list[str]) -> None:
        self._real = real
        self._noted = noted

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._noted.append(name)
            return real(*arguments, **named)

        return call


@dataclass
class Served:
    """One protocol's API.

    Attributes:
        api: The API.
        world: The world behind it.
        token: Token of the project.
        show: Makes the headers that present a token.
        reads: Calls of the noted ports (the store of projects and tokens), by name.
        notes: Data that tests keep about this world.
    """

    api: Api[Any, Any]
    world: Any
    token: str
    show: Callable[[str, str], dict[str, str]]
    reads: list[str] = field(default_factory=list)
    project: str = PROJECT
    notes: set[str] = field(default_factory=set)

    def call(
        self,
        route: Route[Any, Any],
        body: object = None,
        *,
        names: Mapping[str, str] | None = None,
        project: str = PROJECT,
        token: str | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask by a route: ``names`` for its path, ``body`` as JSON, or as it is when it is bytes."""
        filled = {"project": project, "store": project, "queue": "q", "message": "1", "id": "1" * 24}
        filled |= {
            "app": "a",
            "endpoint": "e",
            "destination": "d",
            "event_type": "t",
            "attempt": "a",
            "task": "t",
            "sink": "s",
            "consumer": "c",
            "integration": "i",
            "autoconfig": "a",
            "connector": "c",
            "secret": "s",
            "source": "s",
            "stream": "s",
            "token": "t",
        }
        path = route.path.format(
            **{
                **filled,
                "subscription": "1",
                "table": "queues",
                "alert": "0123456789ab",
                "search": "0" * 32,
                **(names or {}),
            }
        )
        return self.send(route.method, path, body, project=project, token=token, query=query, headers=headers)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        project: str = PROJECT,
        token: str | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Make a request as API Gateway delivers it."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        shown = {**self.show(project, self.token if token is None else token), **(headers or {})}
        searched = urlencode(query or {}, errors="surrogatepass")
        result = self.api.handle(http_event(method, path, content, query=searched, headers=shown))
        # What Lambda makes of it, and takes
        assert len(json.dumps(result)) <= 6_291_556
        text = content_of(result).decode()
        if result["headers"].get("Content-Type") == "text/plain":
            return Answer(result["statusCode"], text, result["headers"])
        return Answer(result["statusCode"], _strict(text) if text else None, result["headers"])


def _strict(text: str) -> Any:
    """Strict JSON: UTF-8 without half surrogates, no NaN, no Infinity."""

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text.encode(), parse_constant=refuse)


def served(protocol: str, *, noted: Sequence[str] = ("config",)) -> Served:
    """A protocol's API in a new world with one project; calls of the named ports are recorded."""
    make = {"ironmq": _ironmq, "hub": _hub, "notifications": _notifications, "webhooks": _webhooks}
    world, token, part = make[protocol]()
    reads: list[str] = []
    ports = copy.copy(world.ports)
    for each in noted:
        setattr(ports, each, Reads(getattr(world.ports, each), reads))
    return Served(api=ports.build().part(part).api, world=world, token=token, show=SHOWN[protocol], reads=reads)


def _basic(project: str, token: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{project}/me:{token}".encode()).decode()}


SHOWN: dict[str, Callable[[str, str], dict[str, str]]] = {
    "ironmq": lambda _, token: {"authorization": f"OAuth {token}"},
    "hub": lambda _, token: {"x-augury-token": token},
    "notifications": _basic,
    "webhooks": lambda _, token: {"authorization": f"Bearer {token}"},
}
"""How each protocol's clients present a token."""


def _ironmq() -> tuple[Any, str, type[Any]]:
    world = World()
    return world, IronHub(world).token, Ironmq


def _hub() -> tuple[Any, str, type[Any]]:
    store = Store()
    return store, store.token, Hub


def _notifications() -> tuple[Any, str, type[Any]]:
    world = NotificationWorld()
    world.config.put_project(Project(project_id=PROJECT, created_at=0))
    world.config.put_token(PROJECT, token_hash("t0ken-of-the-tenant"), "", 0)
    return world, "t0ken-of-the-tenant", Notifications


def _webhooks() -> tuple[Any, str, type[Any]]:
    world = WebhooksWorld()
    return world, world.token, Webhooks
