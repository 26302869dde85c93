"""Subscribers that are queues and workers: ``ironmq:`` and ``ironworker:`` through the running hub.

All run side by side.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import pytest
from tests.stack.endpoints import Endpoint, Recorder
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
        hub: An endpoint in the place of another hub.
        worker: An endpoint in the place of a worker API.
    """

    project: ProjectClient
    other: ProjectClient
    elsewhere: str
    recorder: Recorder
    hub: Endpoint
    worker: Endpoint


scenarios = SideBySide[Stage]()


@pytest.fixture(scope="module")
def together(request: pytest.FixtureRequest, stack: RunningStack) -> Iterator[None]:
    with Recorder() as recorder:
        stage = Stage(
            project=ProjectClient.default(stack),
            other=ProjectClient.another(stack),
            elsewhere=f"localhost:{urlsplit(stack.base_url).port}",
            recorder=recorder,
            hub=recorder.endpoint(500, 201, path="3"),
            worker=recorder.endpoint(200, path="2"),
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
def test_a_queue_of_another_project(stage: Stage) -> None:
    # Given the other project's queue, once with its token and once with one that is not its own
    queue, errors, name = unique("across"), unique("across-errors"), unique("other")
    wrong = address(stage.other, name, token=stage.project.token)
    stage.project.make_push(queue, address(stage.other, name), wrong, retries=0, error_queue=errors)
    [message_id] = stage.project.post(queue, "x")
    # Then the message is there once, and the refusal is reported
    stage.project.wait_codes(queue, message_id, [200, 401], [1, 1])
    assert [each["body"] for each in stage.other.wait_messages(name, 1)] == ["x"]
    [error] = stage.project.wait_messages(errors, 1)
    [subscriber] = json.loads(error["body"])["subscribers"]
    assert (subscriber["code"], subscriber["msg"]) == (401, "Invalid project/token combination")
    assert stage.other.total(name) == 1
    assert stage.project.total(name) == 0


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


@scenarios.test
def test_what_another_hub_is_asked(stage: Stage) -> None:
    # Given another hub that fails once
    queue = unique("asked")
    url = f"ironmq://PROJECT:T%2Bk@127.0.0.1:{stage.recorder.port}/their%20queue"
    stage.project.make_push(queue, url)
    [message_id] = stage.project.post(queue, "½", push_headers={"X-A": "1"})
    first, second = stage.hub.wait(2)[:2]
    # Then it got the same request twice
    for push in (first, second):
        line = b"POST /3/projects/PROJECT/queues/their%20queue/webhook HTTP/1.1"
        assert push.received.head.partition(b"\r\n")[0] == line
        assert push.body == "½".encode()
        assert push.headers == {
            "Host": f"127.0.0.1:{stage.recorder.port}",
            "Content-Length": "2",
            "Accept-Encoding": "identity",
            "Authorization": "OAuth T+k",
            "Content-Type": "application/octet-stream",
            "Pushhub-Hops": "1",
            "Pushhub-Descendants": "1000",
            "x-subscribers-X-A": "1",
        }
    assert second.at - first.at >= 3 - 0.05
    stage.project.wait_codes(queue, message_id, [201], [2])


@scenarios.test
def test_a_worker_is_given_a_task(stage: Stage) -> None:
    queue = unique("worker")
    url = f"ironworker://PROJECT:TOKEN@127.0.0.1:{stage.recorder.port}/my%20code"
    stage.project.make_push(queue, url)
    [message_id] = stage.project.post(queue, '{"payload": "½"}')
    [push] = stage.worker.wait()
    line = b"POST /2/projects/PROJECT/tasks/webhook?code_name=my%20code&oauth=TOKEN HTTP/1.1"
    assert push.received.head.partition(b"\r\n")[0] == line
    assert push.body == '{"payload": "½"}'.encode()
    assert push.headers == {
        "Host": f"127.0.0.1:{stage.recorder.port}",
        "Content-Length": str(len(push.body)),
        "Accept-Encoding": "identity",
        "User-Agent": "IronMQ Pusherd",
        "Content-Type": "text/plain; charset=utf-8",
    }
    stage.project.wait_codes(queue, message_id, [200], [1])
