"""The webhooks world behind a port of this machine, so that a client in another process can use it, and its clock."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from tests.fakes.gateway import content_of, http_event
from tests.webhooks.world import WebhooksWorld

__all__ = ["ServedWorld"]


class ServedWorld:
    """A server, as a context manager. Time passes only in its world."""

    def __init__(self, world: WebhooksWorld, *, one_at_a_time: bool = True) -> None:
        self.world = world
        self._lock: AbstractContextManager[object] = threading.Lock() if one_at_a_time else nullcontext()
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, content = served.answer(self.command, self.path, dict(self.headers.items()), body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 (the base class's names)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)

    @property
    def base_url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Answer one request after the other."""
        path, query = urlsplit(target).path, urlsplit(target).query
        with self._lock:
            shown = {name.lower(): value for name, value in headers.items()}
            result = self.world.api.handle(http_event(method, unquote(path), body, query=query, headers=shown))
        return result["statusCode"], result["headers"], content_of(result)
