"""A pull queue becomes a push queue on the running stack while producers post all the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

POSTED_BEFORE = 60
SECONDS = 1.0
POSTED_EVERY_S = 0.05
"""Ten posts fall into each request that converts; more at once only take processors."""


@pytest.fixture
def project(stack: RunningStack) -> ProjectClient:
    return ProjectClient.another(stack)


def converted(project: ProjectClient, queue: str, settings: Mapping[str, object]) -> dict[str, Any]:
    """The queue's info after another request to convert it, which a busy hub may ask to repeat."""
    path = f"/queues/{quote(queue, safe='')}"

    def answered() -> dict[str, Any] | None:
        answer = project.call("PUT", path, {"queue": settings})
        assert answer.status_code in (200, 503), answer.text
        return dict(answer.json()["queue"]) if answer.status_code == 200 else None

    return until(answered, 150, lambda: "the hub is busy all the time")


def test_nothing_is_lost_when_a_queue_is_converted_under_producers_that_post_all_the_time(
    project: ProjectClient,
) -> None:
    # Given a push queue that is deleted in traffic, so that a producer's next post makes a pull queue of its name
    queue, copies = unique("converted"), unique("copies")
    subscribers = [{"name": "copies", "url": f"ironmq:///{copies}"}]
    project.make_queue(queue, push={"subscribers": subscribers})
    project.take("DELETE", f"/queues/{queue}")
    accepted: list[str] = []
    ends = threading.Event()

    def produce(name: str) -> None:
        for number in range(10_000):
            if ends.is_set():
                return
            ends.wait(POSTED_EVERY_S)
            body = f"{name}-{number}"
            project.post(queue, body)
            accepted.append(body)

    for start in range(0, POSTED_BEFORE, 20):
        bodies = [f"before-{number}" for number in range(start, start + 20)]
        project.post(queue, *bodies)
        accepted += bodies
    producers = [threading.Thread(target=produce, args=[name]) for name in ("a", "b")]
    for each in producers:
        each.start()
    # When it is converted, and that is repeated until nothing is left
    try:
        time.sleep(SECONDS / 2)
        settings = {"convert": True, "push": {"subscribers": subscribers, "retries": 3}}
        answer = converted(project, queue, settings)
        assert answer["type"] == "multicast"
        # What a request that died had reserved is free again after a minute
        until(lambda: converted(project, queue, settings)["left"] == 0, 200, lambda: "something is left")
        time.sleep(SECONDS / 2)
    finally:
        ends.set()
        for each in producers:
            each.join()
    # Then everything that was accepted is pushed, and nothing else
    arrived: list[str] = []

    def all_arrived() -> bool:
        arrived.extend(each["body"] for each in project.reserve(copies, delete=True))
        return set(arrived) >= set(accepted)

    until(all_arrived, 150, lambda: f"{len(set(accepted) - set(arrived))} have not arrived")
    assert set(arrived) == set(accepted)
    assert "left" not in project.info(queue)
