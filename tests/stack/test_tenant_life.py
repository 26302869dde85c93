"""A project that is suspended and deleted by the command line, on the running stack.

What a suspension refuses and holds, of every protocol: tests/engine/projects/test_suspension.py.
"""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest
import requests
from tests.stack.endpoints import Recorder
from tests.stack.operating import pushhub, ran
from tests.stack.project import ProjectClient, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

DELAY_S = 30
"""Longer than a suspension takes to be in force on a machine that is busy."""

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


def delete(stack: RunningStack, project_id: str) -> tuple[Counter[str], str]:
    """Delete a project, again while something of it was still on its way, until nothing is left.

    Returns:
        What was removed, by place, and what has to be done yet.
    """
    removed: Counter[str] = Counter()

    def nothing_left() -> str | None:
        done = ran(stack, "--json", "projects", "delete", project_id, "--yes")
        assert done.code == 1, done.errors
        places = json.loads(done.printed)
        removed.update({each["place"]: each["removed"] for each in places})
        return None if any(each["left"] for each in places) else done.errors

    said = until(nothing_left, SETTLES_S, lambda: "something is left, however often it is deleted")
    return removed, said
