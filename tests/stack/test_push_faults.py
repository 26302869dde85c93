"""Functions killed in the middle of their work: nothing is lost, and recorded attempts are not repeated. (The stack
stopped between two tries: test_restart.py.)

Each test leaves the stack running and in order: another file's may follow on it.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest
import requests
from tests.hostile import Peer
from tests.stack.endpoints import Endpoint, Push, Recorder, slowly
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

VISIBILITY_S = 6
"""How soon SQS redelivers the orders of a function killed before it hid them itself, seconds; 115 in the template. What
a run has worked on for half a second comes back after a minute, here too.
"""


@pytest.fixture
def hasty(stack: RunningStack) -> Iterator[RunningStack]:
    """The stack with queues that notice a crash quickly."""
    sqs, urls = stack.aws.sqs(), [stack.outputs[f"{queue}QueueUrl"] for queue in ("Push", "Retry", "Slow", "Errors")]
    before = [
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"] for url in urls
    ]
    for url in urls:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(VISIBILITY_S)})
    yield stack
    for url, attributes in zip(urls, before, strict=True):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": attributes["VisibilityTimeout"]})


def times(endpoint: Endpoint, message_id: str) -> int:
    """How often a message has come."""
    return sum(push.message_id == message_id for push in list(endpoint.pushes))


def test_attempts_under_way_when_the_push_function_is_killed(hasty: RunningStack, recorder: Recorder) -> None:
    # Given messages on their way to a quick subscriber and to a slow one
    project, queue = ProjectClient.default(hasty), unique("killed")
    quick, slow = recorder.endpoint(), recorder.endpoint(slowly(1.5))
    project.make_push(queue, quick, slow, retries=2)
    ids = project.post(queue, *(f"message {number}" for number in range(15)))
    recorded: dict[tuple[str, str], int] = {}
    for _ in range(2):
        # (what a killed run had in hand is hidden for a minute)
        slow.wait(len(slow.pushes) + 1, seconds=120)
        for message_id in random.sample(ids, 5):
            for status, endpoint in zip(project.statuses(queue, message_id), (quick, slow), strict=True):
                if status.get("status_code") == 200:
                    # (what was killed before it was recorded has come more often)
                    recorded[message_id, endpoint.url] = times(endpoint, message_id)
        # When every process of the push function is killed during attempts, twice
        # (on a busy machine the next run's process may not have started yet)
        until(lambda: hasty.kill_function_workers("push") or None, 60, lambda: "no process of push")
        time.sleep(1)
    # Then every message arrives at both
    for message_id in ids:
        project.wait_codes(queue, message_id, [200, 200], seconds=240)
    for endpoint in (quick, slow):
        came = Counter(push.message_id for push in endpoint.pushes)
        assert came.keys() == set(ids)
        # And attempts recorded before a kill were not repeated
        assert all(came[message_id] == count for (message_id, url), count in recorded.items() if url == endpoint.url)
    assert {push.message_id: push.body for push in slow.pushes} == {
        message_id: f"message {number}".encode() for number, message_id in enumerate(ids)
    }
    assert max(each["tries"] for message_id in ids for each in project.statuses(queue, message_id)) <= 3


def test_what_a_run_had_that_was_killed_at_once_comes_back_by_itself(hasty: RunningStack, recorder: Recorder) -> None:
    # Given a run that is killed in its first half second, before it hid its message, and nothing after it
    project, queue = ProjectClient.default(hasty), unique("at-once")

    def kills(_peer: Peer, _push: Push) -> bool:
        assert hasty.kill_function_workers("push") > 0
        return False

    endpoint = recorder.endpoint(kills, 200)
    project.make_push(queue, endpoint)
    [message_id] = project.post(queue, "alone")
    # Then it is tried again once its queue shows it
    project.wait_codes(queue, message_id, [200], seconds=240)
    assert [push.message_id for push in endpoint.pushes] == [message_id] * 2


def test_functions_killed_in_turn_lose_nothing_that_was_accepted(hasty: RunningStack, recorder: Recorder) -> None:
    # Given a queue with a healthy, a flaky and a dead subscriber, and producers that repeat refused posts
    project, queue, errors = ProjectClient.default(hasty), unique("chaos"), unique("chaos-errors")
    healthy, flaky, dead = recorder.endpoint(), recorder.endpoint(500, 200, 500, 200), recorder.endpoint(503)
    project.make_push(queue, healthy, flaky, dead, retries=2, error_queue=errors)
    accepted: dict[str, str] = {}

    def produce(producer: int) -> None:
        for number in range(6):
            body = f"{producer}/{number}"
            while True:
                try:
                    answer = project.call("POST", f"/queues/{queue}/messages", {"messages": [{"body": body}]})
                except requests.RequestException:
                    continue
                assert answer.status_code in (201, 500, 503), answer.text
                if answer.status_code == 201:
                    accepted[answer.json()["ids"][0]] = body
                    break
            time.sleep(0.4)

    # When functions are killed meanwhile, and for a while after
    stop, kills = threading.Event(), Counter[str]()

    def kill() -> None:
        for function in cycle(["ingest", "push", "dispatch", "push", "errors"]):
            if stop.wait(0.7):
                return
            kills[function] += hasty.kill_function_workers(function)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ThreadPoolExecutor(2) as executor:
            list(executor.map(produce, range(2)))
        time.sleep(2)
    finally:
        stop.set()
        killer.join()
    # Then everything accepted reaches the subscribers that accept it, and there are error messages for the dead one
    assert kills["ingest"] > 0
    assert kills["push"] > 0

    def settled() -> bool | None:
        return (
            accepted.keys() <= {push.message_id for push in healthy.pushes}
            and accepted.keys() <= {push.message_id for push in flaky.pushes}
        ) or None

    until(settled, 300, lambda: f"{len(accepted)} accepted, kills {kills}")
    for message_id, body in accepted.items():
        statuses = project.wait_codes(queue, message_id, [200, 200, 503], seconds=240)
        assert max(each["tries"] for each in statuses) <= 3
        assert {push.body for push in healthy.pushes if push.message_id == message_id} == {body.encode()}
    # And there is one error message for each stored message, however often the function that posts them was killed
    # (a post that was answered with 500 may have been stored, so counting them would not do)
    reported = Counter[str]()

    def all_told() -> bool | None:
        reported.update(json.loads(each["body"])["source_msg_id"] for each in project.reserve(errors, timeout=3600))
        return accepted.keys() <= reported.keys() or None

    until(all_told, 300, lambda: f"errors of {len(reported)} messages, {len(accepted)} accepted, kills {kills}")
    assert set(reported.values()) == {1}
