"""Endpoints of this process that answer as told and remember what they were sent."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Answer", "Delivery", "Inbox", "Receiver"]

WAIT_SECONDS = 90.0
"""How long a delivery may take to come on a loaded machine."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an endpoint answers."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    after: threading.Event | None = None
    """It is waited for before the answer is sent."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One request to an endpoint.

    Attributes:
        method: Its method.
        body: Its exact bytes.
        names: Names of its headers as they were spelled.
        headers: Its headers by name in lower case.
        at: Seconds since 1970.
    """

    method: str
    body: bytes
    names: tuple[str, ...]
    headers: dict[str, str]
    at: float

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def signatures(self) -> list[str]:
        return self.headers["webhook-signature"].split(" ")


class Inbox:
    """One URL.

    Args:
        url: Where to deliver to.
        answers: What is answered to each delivery in turn; the last one to all others.
    """

    def __init__(self, url: str, answers: Sequence[Answer]) -> None:
        self.url = url
        self.answers = answers or (Answer(),)
        self._came: list[Delivery] = []
        self._changed = threading.Condition()

    @property
    def came(self) -> list[Delivery]:
        """What came so far."""
        with self._changed:
            return list(self._came)

    def take(self, delivery: Delivery) -> Answer:
        with self._changed:
            answer = self.answers[min(len(self._came), len(self.answers) - 1)]
            self._came.append(delivery)
            self._changed.notify_all()
        return answer

    def wait(self, count: int = 1, seconds: float = WAIT_SECONDS) -> list[Delivery]:
        """All that came, once that many have."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._came) >= count, seconds)
            assert len(self._came) >= count, f"{len(self._came)} of {count} deliveries came to {self.url}"
            return list(self._came)

    def one(self) -> Delivery:
        """The only one that came."""
        (delivery,) = self.wait()
        return delivery

    def of(self, message_id: str, count: int = 1) -> list[Delivery]:
        """Those of one message, once that many have come."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._of(message_id)) >= count, WAIT_SECONDS)
            found = self._of(message_id)
        assert len(found) >= count, f"{len(found)} of {count} deliveries of {message_id} came to {self.url}"
        return found

    def _of(self, message_id: str) -> list[Delivery]:
        return [each for each in self._came if each.id == message_id]


class Receiver:
    """A server of endpoints on loopback."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._inboxes: dict[str, Inbox] = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                receiver.answer(self)

            do_POST = do_GET = do_PUT = do_DELETE = do_OPTIONS = handle_any  # noqa: N815 (the base class's names)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A caller that went away is no failure."""

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def inbox(self, *answers: Answer) -> Inbox:
        """A new endpoint."""
        path = f"/e{next(self._numbers)}"
        self._inboxes[path] = Inbox(f"http://127.0.0.1:{self._server.server_port}{path}", answers)
        return self._inboxes[path]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        inbox = self._inboxes[handler.path.partition("?")[0]]
        delivery = Delivery(
            method=handler.command,
            body=body,
            names=tuple(handler.headers.keys()),
            headers={name.lower(): value for name, value in handler.headers.items()},
            at=time.time(),
        )
        answer = inbox.take(delivery)
        if answer.after:
            answer.after.wait(WAIT_SECONDS)
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(answer.body)))
        handler.end_headers()
        handler.wfile.write(answer.body)
