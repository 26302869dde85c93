"""Subscribers that are queues, through the running hub, side by side.

What others' queues and workers are asked, and whose tokens count: tests/ironmq/pushing/test_targets.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import pytest
from tests.stack.endpoints import Recorder
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack
from tests.stack.side_by_side import SideBySide

pytestmark = pytest.mark.stack


@dataclass(frozen=True)
class Stage:
    """What a scenario needs.

    Attributes:
        project: The project that pushes.
        other: Another project of the same hub.
        elsewhere: The hub's address under another name, which it does not recognize as its own.
        recorder: Endpoints.
    """

    project: ProjectClient
    other: ProjectClient
    elsewhere: str
    recorder: Recorder


scenarios = SideBySide[Stage]()


@pytest.fixture(scope="module")
def together(request: pytest.FixtureRequest, stack: RunningStack) -> Iterator[None]:
    with Recorder() as recorder:
        stage = Stage(
            project=ProjectClient.default(stack),
            other=ProjectClient.another(stack),
            elsewhere=f"localhost:{urlsplit(stack.base_url).port}",
            recorder=recorder,
        )
        with scenarios.running(request, stage):
            yield


def address(project: ProjectClient, queue: str, host: str = "", token: str = "") -> str:
    return f"ironmq://{project.project_id}:{token or project.token}@{host}/{quote(queue, safe='')}"


@scenarios.test
def test_a_queue_of_the_same_project(stage: Stage) -> None:
    # Given two subscribers that are queues here, one of which pushes further
    queue, pulled, pushed = unique("source"), f"{unique('pulled')} é", unique("pushed")
    endpoint = stage.recorder.endpoint()
    stage.project.make_push(pushed, endpoint)
    urls = [f"ironmq:///{quote(pulled)}", f"ironmq:///{pushed}"]
    stage.project.make_push(queue, *urls)
    # When messages are posted, one of which is not text and one of which is large
    large = "½" * 400_000
    stage.project.post(queue, "grüße", large, push_headers={"X-A": "1"})
    stage.project.send("POST", f"/queues/{queue}/webhook", data=b"\xff\x00", headers={"Content-Type": "image/png"})
    # Then they are in the first, and at the end of the second with their headers
    messages = stage.project.wait_messages(pulled, 3)
    assert sorted(each["body"] for each in messages if "body_base64" not in each) == sorted(["grüße", large])
    pushes = endpoint.wait(3)
    assert {push.body for push in pushes} == {"grüße".encode(), large.encode(), b"\xff\x00"}
    assert [push.headers.get("X-A") for push in pushes].count("1") == 2
    # And the statuses show the URL as it was given, and success
    [message_id] = stage.project.post(queue, "last")
    statuses = stage.project.wait_codes(queue, message_id, [200, 200], [1, 1])
    assert [each["url"] for each in statuses] == urls
    assert {each["msg"] for each in statuses} == {"Message was pushed successfully."}


@scenarios.test
def test_a_queue_of_another_host(stage: Stage) -> None:
    # Given a hub behind another name, reached by HTTP
    queue, name = unique("far"), f"{unique('far')} +é"
    wrong = address(stage.other, name, stage.elsewhere, token="wrong")
    urls = (address(stage.other, name, stage.elsewhere), wrong)
    subscribers = [{"name": f"s{place}", "url": url, "timeout": 40} for place, url in enumerate(urls)]
    stage.project.make_push(queue, *subscribers, retries=0)
    # When a text and bytes are posted
    [message_id] = stage.project.post(queue, "grüße")
    binary = {"Content-Type": "application/octet-stream"}
    stage.project.send("POST", f"/queues/{queue}/webhook", data=bytes(range(256)), headers=binary)
    # Then they are there
    stage.project.wait_codes(queue, message_id, [201, 401], [1, 1])
    shown = {each.get("body_base64", each["body"])[:6] for each in stage.other.wait_messages(name, 2)}
    assert shown == {"grüße", "AAECAw"}
