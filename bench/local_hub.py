"""The running local stack as a client sees it: projects, queues, posts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import boto3
import requests
from local.place import Place

from local import projects, stack

__all__ = ["Tenant", "forget_work", "tenant"]

WORK = ("PushQueueUrl", "RetryQueueUrl", "SlowQueueUrl", "ErrorsQueueUrl")


@dataclass
class Tenant:
    """A project, its token, and a connection to the hub."""

    base_url: str
    project_id: str
    token: str

    def __post_init__(self) -> None:
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Authorization"] = f"OAuth {self.token}"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call the queue API; ``path`` is what follows ``/queues``."""
        url = f"{self.base_url}/3/projects/{self.project_id}/queues{path}"
        answer = self.session.request(method, url, json=body, timeout=60)
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
    """A new project in the running stack (``PUSHHUB_HOME``)."""
    place = Place.from_environment()
    description = stack.describe(place)
    made = projects.make(
        stack.aws(description), description.outputs["ConfigTableName"], f"{name}-{secrets.token_hex(4)}", place.projects
    )
    return Tenant(description.base_url, made.project_id, made.token)


def forget_work() -> None:
    """Purge the work queues, so that no run leaves its orders to the next one."""
    place = Place.from_environment()
    description = stack.describe(place)
    sqs = boto3.client("sqs", **stack.aws(description).arguments)
    for each in WORK:
        if each in description.outputs:
            sqs.purge_queue(QueueUrl=description.outputs[each])
