"""Nothing is lost or skipped over a stop and a start. These tests have a stack of their own, because others would notice."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import requests
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack.start(tmp_path_factory.mktemp("restart"))
    yield running
    running.down()


def test_what_was_stored_and_queued_is_there_after_a_restart(own: RunningStack) -> None:
    # Given a pull queue with messages, a second project, and a message that waits in SQS
    second = own.make_project("second")
    bodies = [f"vor dem Neustart {number} – ½" for number in range(20)]
    own.call("POST", "/queues/kept/messages", json={"messages": [{"body": body} for body in bodies]})
    own.aws.sqs().send_message(QueueUrl=own.outputs["PushDeadLettersUrl"], MessageBody="waits")
    before = own.description
    # When the stack is stopped and started
    own.restart()
    # Then nothing was deployed anew, and everything is as it was
    assert own.description == before
    assert "deployed" not in own.said[own.said.index("deployed") + 1 :]
    reserved = own.call("POST", "/queues/kept/reservations", json={"n": 100}).json()["messages"]
    assert [message["body"] for message in reserved] == bodies
    own_queues = f"{own.base_url}/3/projects/{second.project_id}/queues"
    assert requests.get(own_queues, params={"oauth": second.token}, timeout=40).status_code == 200
    waiting = own.aws.sqs().receive_message(QueueUrl=own.outputs["PushDeadLettersUrl"])["Messages"]
    assert [message["Body"] for message in waiting] == ["waits"]


def test_stream_records_are_neither_lost_nor_skipped_over_a_restart(own: RunningStack) -> None:
    # Given a push queue to which messages were posted before a restart
    subscribers = [{"name": "elsewhere", "url": "ironmq:///reached"}]
    push = {"subscribers": subscribers, "retries": 0, "retries_delay": 3}
    own.call("PUT", "/queues/source", json={"queue": {"type": "multicast", "push": push}})
    first, second = [[{"body": f"{part} {number}"} for number in range(12)] for part in ("before", "after")]
    assert own.call("POST", "/queues/source/messages", json={"messages": first}).status_code == 201
    own.restart()
    # When as many are posted after it
    assert own.call("POST", "/queues/source/messages", json={"messages": second}).status_code == 201
    # Then all of them are pushed
    wanted = {message["body"] for message in [*first, *second]}
    reached: set[str] = set()
    deadline = time.monotonic() + 30
    while reached < wanted and time.monotonic() < deadline:
        answer = own.call("POST", "/queues/reached/reservations", json={"n": 100, "timeout": 300, "wait": 2})
        reached |= {message["body"] for message in answer.json().get("messages", [])}
    assert reached == wanted


def test_projects_are_made_again_when_the_emulator_was_killed(own: RunningStack) -> None:
    # Given a stack whose emulator loses what it had in memory
    own.down()
    for file in (own.place.state / "emulator").glob("*.json"):
        file.unlink()
    # When it is brought up
    own.up()
    # Then it is deployed anew and the old token works
    assert own.call("GET", "/queues").json() == {"queues": []}
