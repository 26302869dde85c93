"""The running local stack (``PUSHHUB_HOME``) as a client sees it, and an endpoint that notes what reaches it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
import requests
from local.place import Place

from bench.sink import sink
from local import projects, stack

__all__ = ["Endpoint", "Tenant", "described", "endpoint", "forget_work", "paced", "tenant"]

WORK = ("PushQueueUrl", "RetryQueueUrl", "SlowQueueUrl", "ErrorsQueueUrl")


def described() -> dict[str, Any]:
    """What ``local.json`` says of the running stack."""
    known: dict[str, Any] = json.loads((Place.from_environment().home / "local.json").read_text())
    return known


@dataclass
class Tenant:
    """A project, its token, and a connection to the hub."""

    base_url: str
    project_id: str
    token: str

    def __post_init__(self) -> None:
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Authorization"] = f"Bearer {self.token}"

    def another(self) -> Tenant:
        """The same project on a connection of its own."""
        return Tenant(self.base_url, self.project_id, self.token)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call the queue API; ``path`` is what follows ``/queues``."""
        return self._asked(method, f"/3/projects/{self.project_id}/queues{path}", json=body)

    def webhooks(self, method: str, path: str, body: Any = None, *, key: str = "", **query: Any) -> Any:
        """Call the webhooks API."""
        headers = {"Idempotency-Key": key} if key else {}
        return self._asked(method, f"/api/v1{path}", json=body, params=query, headers=headers)

    def _asked(self, method: str, path: str, **more: Any) -> Any:
        answer = self.session.request(method, self.base_url + path, timeout=60, **more)
        answer.raise_for_status()
        return answer.json()

    def push_queue(self, name: str, url: str, **push: Any) -> None:
        """Create a push queue with one subscriber, replacing an existing queue of that name."""
        self.session.delete(f"{self.base_url}/3/projects/{self.project_id}/queues/{name}", timeout=60)
        settings = {"subscribers": [{"name": "only", "url": url}], "retries": 2, "retries_delay": 30, **push}
        self.call("PUT", f"/{name}", {"queue": {"type": "multicast", "push": settings}})

    def post(self, queue: str, bodies: list[str]) -> None:
        """Post messages."""
        self.call("POST", f"/{queue}/messages", {"messages": [{"body": each} for each in bodies]})


def tenant(name: str) -> Tenant:
    """A new project in the running stack."""
    place = Place.from_environment()
    description = stack.describe(place)
    project = projects.make(
        stack.aws(description), description.outputs["ConfigTableName"], f"{name}-{secrets.token_hex(4)}", place.projects
    )
    return Tenant(description.base_url, project.project_id, project.token)


def forget_work() -> None:
    """Purge the work queues, so that no run leaves its orders to the next one."""
    description = stack.describe(Place.from_environment())
    sqs = boto3.client("sqs", **stack.aws(description).arguments)
    for each in WORK:
        if each in description.outputs:
            sqs.purge_queue(QueueUrl=description.outputs[each])


def paced(count: int, rate: float) -> Iterator[int]:
    """Numbers at an even pace, late ones at once; as fast as it goes without a rate."""
    begun = time.time()
    for number in range(count):
        time.sleep(max(0.0, begun + number / rate - time.time()) if rate else 0)
        yield number


@dataclass
class Endpoint:
    """An endpoint in a process of its own (:mod:`bench.sink`), and what has reached its ``/stamp``.

    Attributes:
        url: Its address, without a path.
        seen: When each body came, epoch seconds, as far as it was looked at.
    """

    url: str
    seen: dict[str, list[float]] = field(default_factory=dict)

    def look(self) -> int:
        """Ask it; how many requests it had since it was last asked."""
        came: dict[str, list[float]] = requests.get(f"{self.url}/stamps", timeout=60).json()
        for body, times in came.items():
            self.seen.setdefault(body, []).extend(times)
        return sum(map(len, came.values()))

    def forget(self) -> None:
        """Forget what has come so far."""
        self.look()
        self.seen.clear()

    def times(self) -> list[float]:
        """When requests came, in order."""
        return sorted(at for times in self.seen.values() for at in times)

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Look until it is so, or the time is over; whether it is."""
        until = time.time() + seconds
        while not done() and time.time() < until:
            time.sleep(0.2)
            self.look()
        return done()

    def switch(self, to: str) -> int:
        """``down``: it answers 503 at ``/stamp`` until it is ``up`` again; how many requests it has answered so."""
        return int(requests.put(f"{self.url}/{to}", timeout=60).json())

    def wait_for(self, bodies: Sequence[str], seconds: float) -> bool:
        """Look until these have come, or the time is over; whether they have."""
        return self.wait(lambda: all(each in self.seen for each in bodies), seconds)


@contextmanager
def endpoint(delay_ms: int) -> Iterator[Endpoint]:
    """An endpoint that takes so long to answer."""
    with sink(delay_ms) as port:
        yield Endpoint(f"http://127.0.0.1:{port}")
