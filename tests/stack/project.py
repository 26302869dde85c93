"""One project of a running stack, as a client with its token sees it."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import requests
from tests.stack.endpoints import Endpoint
from tests.stack.running import RunningStack

__all__ = ["DELAY_S", "ProjectClient", "unique", "until"]

Found = TypeVar("Found")

DELAY_S = 3
"""The shortest ``retries_delay`` allowed, seconds; all tests use it."""
SOONEST_S, LATEST_S = 0.2, 1.0
"""How long to wait between two looks, at first and at most: each look takes the processors from what it looks for."""
REPEATED_AFTER_S = (1, 2, 4, 8, 16)
"""When a request is repeated that a busy hub has refused with 503."""
_calls = threading.BoundedSemaphore(4)
"""Each request in progress occupies a process of the function, and more processes than processors only wait for each
other.
"""


def unique(name: str) -> str:
    """A unique name."""
    return f"{name}-{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectClient:
    """Calls the queue API.

    Attributes:
        base_url: The hub.
        project_id: The project.
        token: Its token.
    """

    base_url: str
    project_id: str
    token: str

    @classmethod
    def default(cls, stack: RunningStack) -> ProjectClient:
        """The stack's own project."""
        return cls(base_url=stack.base_url, project_id=stack.project_id, token=stack.token)

    @classmethod
    def another(cls, stack: RunningStack) -> ProjectClient:
        """A new project."""
        project = stack.make_project()
        return cls(base_url=stack.base_url, project_id=project.project_id, token=project.token)

    def url(self, path: str = "") -> str:
        """The URL of a path below the project."""
        return f"{self.base_url}/3/projects/{self.project_id}{path}"

    def send(
        self, method: str, path: str, *, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        """Send bytes with the token, again when a busy hub asks for that, as clients do."""
        shown = {"Authorization": f"OAuth {self.token}", **(headers or {})}
        for pause in (*REPEATED_AFTER_S, None):
            with _calls:
                answer = requests.request(method, self.url(path), data=data, headers=shown, timeout=60)
            if answer.status_code != 503 or pause is None:
                break
            time.sleep(pause)
        return answer

    def call(self, method: str, path: str, body: object = None) -> requests.Response:
        """Send JSON with the token."""
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        return self.send(method, path, data=data, headers={"Content-Type": "application/json"})

    def take(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Send JSON with the token in a call that must succeed; returns its answer."""
        answer = self.call(method, path, body)
        assert answer.status_code in (200, 201), f"{method} {path}: {answer.status_code} {answer.text}"
        content: dict[str, Any] = answer.json()
        return content

    def make_queue(self, queue: str, **settings: object) -> dict[str, Any]:
        """Create a queue; returns its info."""
        created: dict[str, Any] = self.take("PUT", f"/queues/{quote(queue, safe='')}", {"queue": settings})["queue"]
        return created

    def make_push(
        self,
        queue: str,
        *subscribers: Endpoint | str | Mapping[str, object],
        type: str = "multicast",
        retries: int = 3,
        message_expiration: int = 3600,
        **push: object,
    ) -> dict[str, Any]:
        """Make a push queue.

        Args:
            queue: Its name.
            subscribers: Endpoints or URLs, which are then called ``s0``, ``s1`` ..., or subscribers as the API takes
                them.
            type: ``multicast`` or ``unicast``.
            retries: Tries after the first.
            message_expiration: Seconds.
            push: More push settings.
        """
        listed: list[Mapping[str, object]] = []
        for number, each in enumerate(subscribers):
            if isinstance(each, Mapping):
                listed.append(each)
            else:
                url = each.url if isinstance(each, Endpoint) else each
                listed.append({"name": f"s{number}", "url": url})
        settings = {"subscribers": listed, "retries": retries, "retries_delay": DELAY_S, **push}
        return self.make_queue(queue, type=type, message_expiration=message_expiration, push=settings)

    def post(self, queue: str, *bodies: str, **options: object) -> list[str]:
        """Post messages; their ids."""
        messages = [{"body": body, **options} for body in bodies]
        ids: list[str] = self.take("POST", f"/queues/{quote(queue, safe='')}/messages", {"messages": messages})["ids"]
        assert len(ids) == len(bodies)
        return ids

    def info(self, queue: str) -> dict[str, Any]:
        """Queue info."""
        info: dict[str, Any] = self.take("GET", f"/queues/{quote(queue, safe='')}")["queue"]
        return info

    def total(self, queue: str) -> int:
        """Number of messages ever posted to a queue; 0 if it does not exist."""
        answer = self.call("GET", f"/queues/{quote(queue, safe='')}")
        return int(answer.json()["queue"]["total_messages"]) if answer.status_code == 200 else 0

    def reserve(self, queue: str, **options: object) -> list[dict[str, Any]]:
        """Reserve messages; none if the queue does not exist yet."""
        answer = self.call("POST", f"/queues/{quote(queue, safe='')}/reservations", {"n": 100, **options})
        assert answer.status_code in (200, 404)
        return list(answer.json().get("messages", []))

    def message(self, queue: str, message_id: str) -> dict[str, Any]:
        """A message by its id."""
        found: dict[str, Any] = self.take("GET", f"/queues/{quote(queue, safe='')}/messages/{message_id}")["message"]
        return found

    def statuses(self, queue: str, message_id: str) -> list[dict[str, Any]]:
        """Push statuses, in the order of the queue's subscribers."""
        path = f"/queues/{quote(queue, safe='')}/messages/{message_id}/subscribers"
        statuses: list[dict[str, Any]] = self.take("GET", path)["subscribers"]
        return statuses

    def codes(self, queue: str, message_id: str) -> list[int | None]:
        """Status codes, None before the first try."""
        return [each.get("status_code") for each in self.statuses(queue, message_id)]

    def tries(self, queue: str, message_id: str) -> list[int]:
        """Tries made with each subscriber."""
        return [each["tries"] for each in self.statuses(queue, message_id)]

    def wait_codes(
        self, queue: str, message_id: str, codes: Sequence[int | None], tries: Sequence[int] = (), seconds: float = 120
    ) -> list[dict[str, Any]]:
        """Wait until subscribers have these codes, after this many tries if given; returns the statuses."""

        def reached() -> list[dict[str, Any]] | None:
            seen = self.statuses(queue, message_id)
            fits = [each.get("status_code") for each in seen] == list(codes)
            return seen if fits and (not tries or [each["tries"] for each in seen] == list(tries)) else None

        def missed() -> str:
            return f"wanted {codes} {tries}, there is {self.statuses(queue, message_id)}"

        return until(reached, seconds, missed)

    def wait_messages(self, queue: str, count: int, seconds: float = 120) -> list[dict[str, Any]]:
        """Reserve from a pull queue until this many messages have come; returns them in order."""
        came: list[dict[str, Any]] = []

        def enough() -> list[dict[str, Any]] | None:
            came.extend(self.reserve(queue, timeout=3600))
            return came if len(came) >= count else None

        return until(enough, seconds, lambda: f"{len(came)} of {count} messages came to {queue}")


def until(look: Callable[[], Found | None], seconds: float, missed: Callable[[], str]) -> Found:
    """Call ``look`` until it returns something that is not empty or false; fails with the text of ``missed`` if that
    takes too long.
    """
    deadline, pause = time.monotonic() + seconds, SOONEST_S
    while not (found := look()):
        assert time.monotonic() < deadline, missed()
        time.sleep(pause)
        pause = min(1.3 * pause, LATEST_S)
    return found
