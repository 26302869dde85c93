"""An endpoint of the hub protocol as a user would write one: a small Flask application without any code of this
project.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, Self

from flask import Flask, Response, jsonify, request
from werkzeug.serving import make_server

__all__ = ["TOKEN", "HubEndpoint", "Seen"]

TOKEN = "endpoint-key-0123456789abcdef-0123456789"


@dataclass(frozen=True)
class Seen:
    """One request as received.

    Attributes:
        path: Its path.
        body: Its JSON.
        headers: Its headers, names in lower case.
        at: When it arrived, in seconds of the monotonic clock.
        raw: The bytes of its body.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    raw: bytes


@dataclass
class HubEndpoint:
    """Serves the application on loopback, as a context manager.

    Attributes:
        seen: Every request, in order.
    """

    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._server = make_server("127.0.0.1", 0, self._application(), threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def of(self, path: str, **payload: Any) -> list[Seen]:
        """Requests to a path whose payload has the given values."""
        return [
            each
            for each in list(self.seen)
            if each.path == path and payload.items() <= each.body.get("payload", {}).items()
        ]

    def _application(self) -> Flask:
        app = Flask("acme-endpoint")

        @app.before_request
        def check_token() -> Response | None:
            if request.method == "POST":
                self.seen.append(
                    Seen(
                        request.path,
                        request.get_json(),
                        {name.lower(): value for name, value in request.headers.items()},
                        time.monotonic(),
                        request.get_data(),
                    )
                )
                if request.headers.get("X-Augury-Token") != TOKEN:
                    return Response("Unauthorized", 401)
            return None

        @app.get("/endpoint.json")
        def describe() -> Response:
            return jsonify(
                name="acme",
                display="Acme",
                icon_url=f"{self.url}/icon.png",
                services=[
                    {
                        "name": "import",
                        "path": "/import",
                        "requires": {"parameters": [{"name": "api_key", "data_type": "string"}]},
                        "recommends": {
                            "messages": ["order:new"],
                            "identifiers": {"order_number": "payload.number"},
                            "options": {"retries_allowed": True},
                        },
                    },
                    {"name": "later", "path": "/later", "recommends": {"messages": ["order:new"]}},
                ],
            )

        @app.post("/import")
        def import_order() -> Response:
            message = request.get_json()
            number = message["payload"]["number"]
            return jsonify(
                message_id=message["message_id"],
                messages=[{"message": "order:imported", "payload": {"number": number}}],
                parameters=[{"name": "acme.last_order", "value": number}],
                notifications=[{"level": "info", "subject": f"Imported {number}", "description": "Fine"}],
                received=True,
            )

        @app.post("/later")
        def take_for_later() -> Response:
            message = request.get_json()
            number = message["payload"]["number"]
            return jsonify(message_id=message["message_id"], delay=2, update_url=f"/status/{number}", owner="acme")

        @app.post("/status/<number>")
        def status(number: str) -> Response:
            message_id = request.get_json()["message_id"]
            if len(self.of(f"/status/{number}")) < 2:
                return jsonify(message_id=message_id, delay=2, update_url=f"/status/{number}")
            return jsonify(
                message_id=message_id, messages=[{"message": "order:shipped", "payload": {"number": number}}]
            )

        @app.post("/take")
        def take() -> Response:
            return jsonify(message_id=request.get_json()["message_id"])

        return app
