"""Background tasks of several projects on the running stack: none waits for another project's, and a repeated request
is the same task.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from tests.stack.endpoints import Recorder
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

TASKS = 60
MESSAGES = 5
SINCE = {"since": "2020-01-01T00:00:00Z", "unlimited": True}


class Organization:
    """A project with an application."""

    def __init__(self, stack: RunningStack) -> None:
        self._project = ProjectClient.another(stack)
        self.app = self.ask("POST", "/app", {"name": "tasks"})["id"]

    def ask(self, method: str, path: str, body: object = None, *, key: str = "") -> dict[str, Any]:
        """A request that must go well; its answer."""
        headers = {"Authorization": f"Bearer {self._project.token}", **({"Idempotency-Key": key} if key else {})}
        url = f"{self._project.base_url}/api/v1{path}"
        answer = requests.request(method, url, json=body, headers=headers, timeout=60)
        assert answer.status_code in (200, 201, 202), f"{method} {path}: {answer.status_code} {answer.text}"
        content: dict[str, Any] = answer.json()
        return content

    def endpoint(self, url: str) -> str:
        """A new endpoint; its path."""
        made = self.ask("POST", f"/app/{self.app}/endpoint", {"url": url})
        return f"/app/{self.app}/endpoint/{made['id']}"

    def post(self, count: int) -> None:
        """Post messages."""
        for number in range(count):
            self.ask("POST", f"/app/{self.app}/msg", {"eventType": "a.b", "payload": {"number": number}})

    def task(self, task: str) -> dict[str, Any]:
        """A task as it is now."""
        return self.ask("GET", f"/background-task/{task}")


def test_a_replay_is_done_beside_sixty_tasks_of_another_project(stack: RunningStack, recorder: Recorder) -> None:
    # Given a project with messages and sixty tasks that go through them, each asked for by two at once with one key
    busy, other = Organization(stack), Organization(stack)
    path = busy.endpoint(recorder.endpoint().url)
    busy.post(MESSAGES)
    other.post(3)
    late = recorder.endpoint()
    missing = other.endpoint(late.url)
    asks = [unique("task") for _ in range(TASKS)] * 2
    with ThreadPoolExecutor(6) as pool:
        dry = {**SINCE, "dryRun": True}
        begun = list(pool.map(lambda key: busy.ask("POST", f"{path}/bulk-replay", dry, key=key)["id"], asks))
    # When another project has what an endpoint missed replayed
    replay = other.ask("POST", f"{missing}/replay-missing", SINCE)["id"]
    until(lambda: other.task(replay)["status"] == "finished", 240, lambda: f"{other.task(replay)}")
    # Then it arrives
    assert other.task(replay)["data"]["messagesSent"] == 3
    late.wait(3)
    # And each key has made one task, and all of them end
    assert begun[:TASKS] == begun[TASKS:]
    listed = busy.ask("GET", "/background-task?limit=250")["data"]
    assert sorted(each["id"] for each in listed) == sorted(begun[:TASKS])

    def unfinished() -> list[str]:
        return [each for each in begun[:TASKS] if busy.task(each)["status"] != "finished"]

    until(lambda: not unfinished(), 300, lambda: f"{len(unfinished())} tasks have not ended")
    assert {busy.task(each)["data"]["messagesFound"] for each in begun[:TASKS]} == {MESSAGES}
