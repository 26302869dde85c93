"""Whether the running stack does its job: a message that is posted reaches a target, which acknowledges it.

Doors that answer prove little: a hub can accept messages and deliver none.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from typing import Any

import requests

from local.place import HOST
from local.processes import wait_until

ARRIVES_S = 30.0
"""How long the message may take, also on a busy machine."""
_ANSWER_S = 20.0


@contextlib.contextmanager
def _listening() -> Iterator[tuple[str, SimpleQueue[bytes]]]:
    """A subscriber on this machine that accepts everything: its URL, and what it was sent."""
    got: SimpleQueue[bytes] = SimpleQueue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()
            got.put(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_address[1]}/", got
        finally:
            server.shutdown()
            thread.join()


def undelivered(base_url: str, project_id: str, token: str) -> str:
    """Why a message does not arrive; empty when it does. Nothing of it remains but its records."""
    name = f"status-{secrets.token_hex(6)}"
    url = f"{base_url}/3/projects/{project_id}/queues/{name}"
    headers = {"Authorization": f"OAuth {token}"}

    def call(method: str, path: str = "", body: Any = None) -> Any:
        answer = requests.request(method, url + path, json=body, headers=headers, timeout=_ANSWER_S)
        if not answer.ok:
            raise requests.HTTPError(f"answers {answer.status_code}")
        return answer.json()

    try:
        with _listening() as (target, got):
            push = {"subscribers": [{"name": "status", "url": target}], "retries": 1, "retries_delay": 3}
            call("PUT", body={"queue": {"type": "multicast", "push": push}})
            try:
                return _of_message(name, got, call)
            finally:
                call("DELETE", body={})
    except (requests.RequestException, LookupError, TypeError) as error:
        said = str(error) if isinstance(error, requests.HTTPError) else type(error).__name__
        return f"does not do its work ({said})"


def _of_message(name: str, got: SimpleQueue[bytes], call: Callable[..., Any]) -> str:
    [message_id] = call("POST", "/messages", {"messages": [{"body": name}]})["ids"]
    try:
        if got.get(timeout=ARRIVES_S) != name.encode():
            return "delivered a message other than the one that was posted"
    except Empty:
        return f"accepted a message and did not deliver it within {ARRIVES_S:.0f} s"

    def acknowledged() -> bool:
        return bool(call("GET", f"/messages/{message_id}/subscribers")["subscribers"][0]["state"] == "delivered")

    if not wait_until(acknowledged, ARRIVES_S):
        return f"delivered a message and did not record its acknowledgement within {ARRIVES_S:.0f} s"
    return ""
