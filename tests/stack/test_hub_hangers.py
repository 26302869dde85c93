"""Fifty hanging endpoints: other stores' messages are routed and delivered as if those did not exist."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask, Response, jsonify, request
from tests.stack.hub_endpoint import HubEndpoint
from tests.stack.project import until
from tests.stack.running import RunningStack
from tests.stack.test_hub import Shop
from werkzeug.serving import make_server

pytestmark = pytest.mark.stack

HANGERS = 50
VICTIMS = 3
BURST = 12
PATIENCE_S = 150.0
"""How long something may take on a busy machine, seconds."""


class Hanging:
    """An endpoint whose services do not answer until it is closed."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._lock = threading.Lock()
        self.asked: set[str] = set()
        self.answered = 0
        app = Flask("hanging")

        @app.post("/<name>")
        def hang(name: str) -> Response:
            with self._lock:
                self.asked.add(name)
            self._free.wait()
            with self._lock:
                self.answered += 1
            return jsonify(message_id=request.get_json()["message_id"])

        self._server = make_server("127.0.0.1", 0, app, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Answer everything, then stop."""
        self._free.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    endpoint = Hanging()
    yield endpoint
    endpoint.close()


def test_a_stores_messages_are_delivered_in_time_while_fifty_endpoints_hang(
    stack: RunningStack, hanging: Hanging
) -> None:
    # Given a store whose every message goes to fifty services that hang, twice
    bad, good = stack.make_project(), stack.make_project()
    with HubEndpoint() as endpoint:
        theirs = Shop(stack.base_url, bad.project_id, bad.token, endpoint)
        for number in range(HANGERS):
            theirs.map("hang:now", f"/hang{number}", url=f"{hanging.url}/hang{number}")
        ours = Shop(stack.base_url, good.project_id, good.token, endpoint)
        ours.map("order:new", "/take")
        for _ in range(2):
            theirs.push("hang:now")
        until(
            lambda: len(hanging.asked) == HANGERS or None,
            PATIENCE_S,
            lambda: f"only {len(hanging.asked)} hang",
        )
        # When another store pushes while they hang, then each of its messages is routed and delivered
        for number in range(VICTIMS):
            ours.copies(ours.push("order:new", number=f"V{number}"), ["completed"])
        # And so is a burst of them
        with ThreadPoolExecutor(max_workers=4) as side_by_side:
            burst = list(side_by_side.map(lambda number: ours.push("order:new", number=f"B{number}"), range(BURST)))
        for message_id in burst:
            ours.copies(message_id, ["completed"])
        # And none of the fifty has answered until now
        assert hanging.answered == 0
