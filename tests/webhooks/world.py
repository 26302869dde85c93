"""Webhooks in front of the whole engine on fakes: an organization, its token, and another organization."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from tests.engine.world import PROJECT, World
from tests.fakes import FaultPlan
from tests.fakes.gateway import content_of, http_event

from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects
from pushhub.webhooks.api.api import WebhooksApi
from pushhub.webhooks.wiring import Webhooks

__all__ = ["OTHER_PROJECT", "Answered", "WebhooksWorld", "prepared"]

OTHER_PROJECT = "5f0000000000000000000002"


@dataclass(frozen=True)
class Answered:
    """What a client sees."""

    status: int
    body: Any
    headers: Mapping[str, str]
    text: str = ""


class WebhooksWorld(World):
    """An organization behind its API.

    Attributes:
        token: Of the organization.
        other_token: Of another one.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        projects = Projects(config=self.config, clock=self.clock)
        for project_id in (PROJECT, OTHER_PROJECT):
            project = Project(
                project_id=project_id,
                name="An org",
                created_at=self.clock.now(),
                external_secret=f"{project_id}-secret",
            )
            self.config.put_project(project)
        self.token = projects.make_token(PROJECT)
        self.other_token = projects.make_token(OTHER_PROJECT)

    @cached_property
    def api(self) -> WebhooksApi:
        """The whole API."""
        return self.hub.part(Webhooks).api

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        query: str | None = None,
        api: Any = None,
        root: str = "/api/v1",
        **fields: Any,
    ) -> Answered:
        """One request as API Gateway hands it over; ``path`` is what follows the root."""
        text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        event = http_event(
            method,
            quote(f"{root}{path}", safe="/%"),
            text.encode(),
            query=urlencode(fields) if query is None else query,
            headers={"Authorization": f"Bearer {self.token if token is None else token}", **(headers or {})},
        )
        answer = (api or self.api).handle(event)
        shown = content_of(answer).decode()
        return Answered(answer["statusCode"], json.loads(shown) if shown else None, answer["headers"], shown)

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """A request that must go well; its body."""
        answer = self.call(method, path, body, **more)
        assert 200 <= answer.status < 300, answer
        return answer.body

    def text(self, method: str, path: str, body: Any = None, **more: Any) -> str:
        """A request that must go well; its body as it was written."""
        answer = self.call(method, path, body, **more)
        assert 200 <= answer.status < 300, answer
        return answer.text

    def run(self, *, seconds: float) -> None:
        """Do what background tasks were begun for, then run for this long; see the engine's world."""
        started = self.ports.task_runs.started
        while started:
            self.hub.part(Webhooks).tasks.run_project(started.pop(), lambda: 55_000)
        super().run(seconds=seconds)

    def make_app(self, name: str = "Acme", **fields: Any) -> str:
        """A new application; its id."""
        return str(self.ask("POST", "/app", {"name": name, **fields})["id"])

    def make_endpoint(self, app: str, url: str = "https://a.example/in", **fields: Any) -> str:
        """A new endpoint; its id."""
        return str(self.ask("POST", f"/app/{app}/endpoint", {"url": url, **fields})["id"])


def prepared(plan: FaultPlan) -> tuple[WebhooksWorld, str, str]:
    """An application with an endpoint, on ports that the plan strikes from now on."""
    calm = WebhooksWorld()
    app = calm.make_app()
    endpoint = calm.make_endpoint(app)
    calm.plan = plan
    # As a cold start does: everything is built anew, on the same stores.
    for name in ("hub", "api"):
        calm.__dict__.pop(name, None)
    return calm, app, endpoint
