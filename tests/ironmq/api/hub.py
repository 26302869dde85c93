"""The queue API, called as API Gateway calls it: events in, results out, the rest of the hub on fakes."""

from __future__ import annotations

import base64
import copy
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.engine.world import PROJECT, World
from tests.fakes import FaultPlan

from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects
from pushhub.ironmq.wiring import Ironmq

__all__ = ["OTHER_PROJECT", "Hub", "Result"]

OTHER_PROJECT = "5f0000000000000000000002"
TEXTUAL = ("application/json", "text/")


@dataclass(frozen=True)
class Result:
    """An answer as a client sees it."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def msg(self) -> str:
        """The ``msg`` every error has."""
        return str(self.body["msg"])


class Hub:
    """A running hub with one project, its token, and a second project with another.

    Attributes:
        world: The world behind the API.
        token: The first project's token.
        other_token: The second project's.
        refusals: The egress guard's refusals, by URL; set by tests.
        checked: Every (URL, allowed targets) that the guard checked.
        check_takes_s: Seconds the guard takes for each.
    """

    def __init__(self, world: World | None = None, *, allowed_targets: Sequence[str] = ()) -> None:
        self.world = world or World()
        self.refusals: dict[str, str] = {}
        self.checked: list[tuple[str, tuple[str, ...]]] = []
        self.check_takes_s = 0.0
        config, clock = self.world.config, self.world.clock
        projects = Projects(config=config, clock=clock)
        for project_id in (PROJECT, OTHER_PROJECT):
            config.put_project(
                Project(project_id=project_id, created_at=clock.now(), allowed_targets=tuple(allowed_targets))
            )
        self.token = projects.make_token(PROJECT)
        self.other_token = projects.make_token(OTHER_PROJECT)
        self.world.ports.check_url = self._check_url
        self.api = self.world.hub.part(Ironmq).api

    def struck(self, plan: FaultPlan, *only: str) -> Hub:
        """The same hub with faults in calls of some ports."""
        other = copy.copy(self)
        other.api = self.world.ports.build(plan, only=only).part(Ironmq).api
        return other

    def _check_url(self, url: str, allowed: Sequence[str]) -> str | None:
        self.checked.append((url, tuple(allowed)))
        self.world.clock.advance(seconds=self.check_takes_s)
        return self.refusals.get(url)

    def event(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The event for a request, as the gateway makes it: path decoded except ``%25``, header names in lower case."""
        raw_path, _, query = path.partition("?")
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        event: dict[str, Any] = {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": "%25".join(unquote(part) for part in raw_path.split("%25")),
            "rawQueryString": query,
            "headers": lowered,
            "requestContext": {
                "stage": "$default",
                "http": {"method": method, "path": raw_path, "sourceIp": "203.0.113.9"},
            },
            "isBase64Encoded": False,
        }
        if body:
            text = _text(body) if lowered.get("content-type", "").startswith(TEXTUAL) else None
            event["body"] = base64.b64encode(body).decode() if text is None else text
            event["isBase64Encoded"] = text is None
        return event

    def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, token: str = ""
    ) -> Result:
        """Send a request as it is, with a token only if one is given."""
        shown = {"Content-Type": "application/json", **(headers or {})}
        if token:
            shown["Authorization"] = f"OAuth {token}"
        result = self.api.handle(self.event(method, path, body, shown))
        assert result["headers"]["Content-Type"] == "application/json"
        # What Lambda takes from a function, which escapes everything beyond ASCII
        assert len(json.dumps(result)) <= 6_291_556
        content = base64.b64decode(result["body"]) if result["isBase64Encoded"] else result["body"].encode()
        if result["headers"].get("Content-Encoding") == "gzip":
            assert "gzip" in shown["Accept-Encoding"].lower()
            content = gzip.decompress(content)
        answer = json.loads(content) if content else None
        assert answer is None or isinstance(answer, dict)
        assert result["statusCode"] < 400 or "msg" in (answer or {"msg": ""})
        assert result["statusCode"] not in (204, 504)
        # Only who is told when to come again.
        assert result["statusCode"] != 503 or int(result["headers"]["Retry-After"]) > 0
        return Result(result["statusCode"], answer, result["headers"])

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        project: str = PROJECT,
        headers: Mapping[str, str] | None = None,
    ) -> Result:
        """Send JSON to a path below the project, with its token."""
        token = self.token if project == PROJECT else self.other_token
        encoded = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        return self.send(method, f"/3/projects/{project}{path}", encoded, headers, token=token)

    def make(self, name: str, /, **settings: object) -> dict[str, Any]:
        """Create or change a queue; returns the answered info."""
        result = self.call("PUT", f"/queues/{name}", {"queue": settings})
        assert result.status == 200, result
        return dict(result.body["queue"])

    def make_push(self, name: str, *urls: str, type: str = "multicast", **push: object) -> dict[str, Any]:
        """Make a push queue whose subscribers are called s0, s1 ..."""
        subscribers = [{"name": f"s{number}", "url": url} for number, url in enumerate(urls)]
        return self.make(name, type=type, push={"subscribers": subscribers, **push})

    def post(self, name: str, *bodies: str, **options: object) -> list[str]:
        """Post messages; their ids."""
        result = self.call("POST", f"/queues/{name}/messages", {"messages": [{"body": b, **options} for b in bodies]})
        assert result.status == 201, result
        return list(result.body["ids"])

    def reserve(self, name: str, **options: object) -> list[dict[str, Any]]:
        """Reserve messages."""
        result = self.call("POST", f"/queues/{name}/reservations", options)
        assert result.status == 200, result
        return list(result.body["messages"])

    def info(self, name: str) -> dict[str, Any]:
        """Queue info."""
        result = self.call("GET", f"/queues/{name}")
        assert result.status == 200, result
        return dict(result.body["queue"])

    def statuses(self, name: str, message_id: str) -> list[dict[str, Any]]:
        """Push statuses."""
        result = self.call("GET", f"/queues/{name}/messages/{message_id}/subscribers")
        assert result.status == 200, result
        return list(result.body["subscribers"])


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
