"""A subscriber on loopback that keeps what it was sent."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

__all__ = ["Received", "Sink"]


@dataclass(frozen=True, slots=True)
class Received:
    """One request.

    Attributes:
        path: Its path.
        headers: Names in lower case.
        body: The exact bytes.
    """

    path: str
    headers: dict[str, str]
    body: bytes


class Sink:
    """Answers every POST with 200, or with 503 under ``/fails``."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append(Received(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(503 if self.path.startswith("/fails") else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                """Keep the test's output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def wait_for(self, count: int, seconds: float) -> list[Received]:
        """The requests received, once there are this many, or the time is over."""
        deadline = time.monotonic() + seconds
        while len(self.received) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return list(self.received)
