"""The hub's HTTP APIs on fakes, on a local port, for the command line to talk to in tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.engine.world import PROJECT
from tests.fakes import loopback
from tests.fakes.gateway import content_of, http_event
from tests.web.protocols import SHOWN, Served, served

TOKEN = "t0ken"
"""The only token of the served hub, for all protocols."""

PREFIXES = {
    "/3/": "ironmq",
    "/api/stores/": "hub",
    "/notification2/": "notifications",
    "/api/v1/": "webhooks",
    "/ingest/": "webhooks",
}


@dataclass
class ServedHub:
    """A hub that answers.

    Attributes:
        base_url: Its base URL.
        worlds: The world behind each protocol.
        asked: Method and path of each request.
        answers: Answers given in place of the hub's, by method and path: status and body.
        down_after: Number of requests after which it answers no more; None for no limit.
        lives: Whether its functions do their work between requests.
        instead: Answers every request instead of a hub: status and bytes.
        warning: What the last answer of the hub warned of.
    """

    base_url: str = ""
    worlds: dict[str, Served] = field(default_factory=lambda: {each: served(each) for each in {*PREFIXES.values()}})
    asked: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    answers: dict[tuple[str, str], tuple[int, bytes]] = field(default_factory=dict)
    down_after: int | None = None
    lives: bool = False
    instead: tuple[int, bytes] | None = None
    warning: str | None = None

    @property
    def writes(self) -> list[tuple[str, str]]:
        """The requests that could have changed something."""
        return [
            (method, path)
            for (method, path), body in zip(self.asked, self.bodies, strict=True)
            if method != "GET" and not _is_dry(body)
        ]

    @property
    def environment(self) -> dict[str, str]:
        """The environment that points the command line to this hub."""
        return {"PUSHHUB_URL": self.base_url, "PUSHHUB_PROJECT": PROJECT, "PUSHHUB_TOKEN": TOKEN}

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes] | None:
        """Status and body; None when there is no answer."""
        path, query = unquote(urlsplit(target).path), urlsplit(target).query
        self.asked.append((method, path))
        self.bodies.append(body)
        self.warning = None
        if self.down_after is not None and len(self.asked) > self.down_after:
            return None
        if self.instead is not None:
            return self.instead
        if (method, path) in self.answers:
            return self.answers[method, path]
        protocol = next(protocol for prefix, protocol in PREFIXES.items() if path.startswith(prefix))
        world = self.worlds[protocol]
        shown = {name.lower(): value for name, value in headers.items()}
        if TOKEN in (shown.pop("x-augury-token", ""), shown.pop("authorization", "").partition(" ")[2]):
            shown |= SHOWN[protocol](PROJECT, world.token)
        result: dict[str, Any] = world.api.handle(http_event(method, path, body, query=query, headers=shown))
        if self.lives:
            world.world.run(seconds=1)
        self.warning = result["headers"].get("Pushhub-Warning")
        return result["statusCode"], content_of(result)


def _is_dry(body: bytes) -> bool:
    """Whether a request asks to change nothing."""
    asked = json.loads(body) if body else {}
    return isinstance(asked, dict) and True in (asked.get("dry_run"), asked.get("dryRun"))


@contextmanager
def serving() -> Iterator[ServedHub]:
    """A hub that answers until the block ends."""
    hub = ServedHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = hub.answer(self.command, self.path, dict(self.headers), body)
            if answer is None:
                self.close_connection = True
                return
            status, content = answer
            self.send_response(status)
            if hub.warning:
                self.send_header("Pushhub-Warning", hub.warning)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _any  # noqa: N815 (names of the base class)

    with loopback.serving(Handler) as hub.base_url:
        yield hub
