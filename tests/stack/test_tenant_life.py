"""A project that is suspended and deleted by the command line, on the running stack."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Self

import pytest
import requests
from tests.stack.endpoints import Recorder
from tests.stack.notification_tenant import Tenant
from tests.stack.operating import pushhub, ran
from tests.stack.project import ProjectClient, until
from tests.stack.running import RunningStack
from websockets.exceptions import ConnectionClosed

pytestmark = pytest.mark.stack

DELAY_S = 30
"""Longer than a suspension takes to be in force on a machine that is busy."""

PAUSE_S = 0.2
"""Between two posts of a producer."""

SETTLES_S = 240
"""What was in the streams when a project was deleted has come out of them by then, on a machine that is busy."""


def test_a_suspended_project_is_silent_and_a_deleted_one_has_nothing_left(stack: RunningStack) -> None:
    # Given a project with messages of a push queue, some of them for later, and of webhooks
    project = ProjectClient.another(stack)
    shown = {"Authorization": f"Bearer {project.token}"}
    hooks = f"{project.base_url}/api/v1/app"
    with Recorder() as endpoints:
        endpoint = endpoints.endpoint()
        project.make_push("held", endpoint)
        app = requests.post(hooks, json={"name": "held"}, headers=shown, timeout=30).json()["id"]
        url = {"url": endpoint.url}
        assert requests.post(f"{hooks}/{app}/endpoint", json=url, headers=shown, timeout=30).ok
        project.post("held", *map(str, range(40)))
        endpoint.wait(40)
        project.post("held", *map(str, range(40)), delay=DELAY_S)
        due = time.monotonic() + DELAY_S
        # When it is suspended
        [suspended] = pushhub(stack, "projects", "suspend", project.project_id)
        assert suspended["suspended"]
        # Then posts of both protocols are refused, its owner may look, and nothing is sent, though it was due meanwhile
        message = {"eventType": "a.b", "payload": {}}
        refused = [
            project.call("POST", "/queues/held/messages", {"messages": [{"body": "x"}]}),
            requests.post(f"{hooks}/{app}/msg", json=message, headers=shown, timeout=30),
        ]
        assert [each.status_code for each in refused] == [403, 403]
        assert project.total("held") == 80
        time.sleep(max(0, due + 2 - time.monotonic()))
        assert endpoints.arrivals() == 40
    # And when it is deleted, everything that is its is removed, and what may still come is said
    removed, said = delete(stack, project.project_id)
    assert removed.total() > 80
    assert "run this command again after that" in said
    assert project.call("GET", "/queues/held").status_code in (401, 404)


class Flow:
    """Producers that post all the time, and what becomes of it, seen from outside.

    Args:
        calls: Make a request each, and return its status.
    """

    def __init__(self, *calls: Callable[[int], int]) -> None:
        self.answers: list[tuple[float, int]] = []
        """When each request began, and its status."""
        self._calls = calls
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._post, args=[each], daemon=True) for each in calls]

    def _post(self, call: Callable[[int], int]) -> None:
        number = 0
        while not self._ends.wait(PAUSE_S):
            began = time.monotonic()
            self.answers.append((began, call(number)))
            number += 1

    def begun(self, after: float) -> list[int]:
        """Statuses of requests that began after a moment."""
        return [status for began, status in self.answers if began > after]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for each in self._threads:
            each.join()


def test_a_suspension_is_in_force_when_the_command_ends_which_it_does_within_its_five_seconds(
    stack: RunningStack,
) -> None:
    # Given a project whose producers of four protocols post all the time, some for a little later, and a consumer
    tenant = Tenant(stack)
    project = ProjectClient(base_url=stack.base_url, project_id=tenant.project_id, token=tenant.project_token)
    shown = {"Authorization": f"Bearer {project.token}", "X-Augury-Token": project.token}
    api = f"{project.base_url}/api"

    def post(path: str, body: Any) -> int:
        return requests.post(f"{api}{path}", json=body, headers=shown, timeout=60).status_code

    def queued(number: int) -> int:
        messages = {"messages": [{"body": str(number), "delay": number % 12}]}
        return project.call("POST", "/queues/flows/messages", messages).status_code

    with Recorder() as endpoints:
        endpoint = endpoints.endpoint()
        project.make_push("flows", endpoint)
        app = requests.post(f"{api}/v1/app", json={"name": "flows"}, headers=shown, timeout=30).json()["id"]
        assert post(f"/v1/app/{app}/endpoint", {"url": endpoint.url}) == 201
        store = f"/stores/{tenant.project_id}"
        mapping = {"name": "flows.take", "url": endpoint.url, "token": "t", "messages": ["order:new"]}
        assert post(f"{store}/mappings", {"mapping": mapping}) in (200, 201)
        tenant.subscribe()

        async def closed() -> float:
            """When the consumer's connection was closed."""
            connection = await tenant.connect(tenant.token())
            connected.set()
            with suppress(ConnectionClosed):
                async with asyncio.timeout(120):
                    while True:
                        await connection.recv()
            return time.monotonic()

        connected = threading.Event()
        with (
            Flow(
                queued,
                lambda number: post(f"/v1/app/{app}/msg", {"eventType": "a.b", "payload": {"n": number}}),
                lambda number: post(f"{store}/messages", {"message": "order:new", "payload": {"n": number}}),
                lambda number: (
                    tenant.call(
                        "POST", "/notifications", [{"api": "events", "source": "1", "data": {"n": number}}]
                    ).status_code
                ),
            ) as flow,
            ThreadPoolExecutor(1) as consumer,
        ):
            ends = consumer.submit(asyncio.run, closed())
            assert connected.wait(120)
            endpoint.wait(30)
            # When it is suspended
            pushhub(stack, "projects", "suspend", project.project_id)
            silent = time.monotonic()
            before = endpoints.arrivals()
            # Then from then on each post is refused, by each protocol
            until(lambda: len(flow.begun(silent)) >= 20, 120, lambda: "nobody posts")
            # (on a busy machine the consumer may notice a moment later that its connection was closed)
            assert ends.result(60) <= silent + 10
        assert {*flow.begun(silent)} <= {403, 503}
        assert 403 in flow.begun(silent)
        assert {200, 201, 202} & {status for _, status in flow.answers}
        # And nothing more arrives, although messages that were accepted before have become due
        time.sleep(max(0.0, silent + 13 - time.monotonic()))
        late = [each for each in endpoint.pushes if each.at > silent]
        assert (len(late), endpoints.arrivals()) == (0, before)


def delete(stack: RunningStack, project_id: str) -> tuple[Counter[str], str]:
    """Delete a project, again while something of it was still on its way, until nothing is left.

    Returns:
        What was removed, by place, and what has to be done yet.
    """
    removed: Counter[str] = Counter()

    def nothing_left() -> str | None:
        done = ran(stack, "--json", "projects", "delete", project_id, "--yes")
        assert done.code == 1, done.told
        places = json.loads(done.printed)
        removed.update({each["place"]: each["removed"] for each in places})
        return None if any(each["left"] for each in places) else done.told

    said = until(nothing_left, SETTLES_S, lambda: "something is left, however often it is deleted")
    return removed, said
