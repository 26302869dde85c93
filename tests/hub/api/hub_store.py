"""The hub's API in front of the whole engine on fakes: a store, its token, and another store."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from tests.engine.world import PROJECT
from tests.fakes.gateway import content_of, http_event
from tests.hub.world import HubWorld

from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects
from pushhub.hub.wiring import Hub

__all__ = ["OTHER_STORE", "Store"]

OTHER_STORE = "5f0000000000000000000002"


class Store(HubWorld):
    """A store behind its API.

    Attributes:
        token: Token of the store.
        refusals: The egress guard's refusals, by URL; set by tests.
    """

    def __init__(self) -> None:
        super().__init__()
        projects = Projects(config=self.config, clock=self.clock)
        for project_id in (PROJECT, OTHER_STORE):
            self.config.put_project(Project(project_id=project_id, name="A shop", created_at=self.clock.now()))
        self.token = projects.make_token(PROJECT)
        self.other_token = projects.make_token(OTHER_STORE)
        self.refusals: dict[str, str] = {}
        self.ports.check_url = lambda url, _: self.refusals.get(url)
        self.api = self.hub.part(Hub).api

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        form: bool = False,
        store: str = PROJECT,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> tuple[int, Any]:
        """Make a request as API Gateway delivers it; returns status and parsed body."""
        status, parsed, _ = self.call_whole(
            method, path, body, form=form, store=store, token=token, headers=headers, **query
        )
        return status, parsed

    def call_whole(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        form: bool = False,
        store: str = PROJECT,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> tuple[int, Any, dict[str, str]]:
        """As :meth:`call`, with the answer's headers."""
        if form:
            body = urlencode(body)
        elif body is not None and not isinstance(body, str):
            body = json.dumps(body)
        shown = {"X-Augury-Token": self.token if token is None else token, **(headers or {})}
        event = http_event(method, f"/api/stores/{store}{path}", body, query=urlencode(query), headers=shown)
        answer = self.api.handle(event)
        text = content_of(answer).decode()
        # Lambda answers with 6 MB at most, the answer being JSON once more.
        assert len(json.dumps(answer)) < 6_291_556
        return answer["statusCode"], json.loads(text) if text else None, answer["headers"]
