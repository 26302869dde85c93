"""Changes of push queues in the middle of traffic: each is in force for every message posted after it was answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from tests.stack.endpoints import Recorder
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack


def of_long_ago(stack: RunningStack, project: ProjectClient, queue: str) -> None:
    """Let a queue be as if it had been made more than a minute ago, so that posts go by copies of it."""
    stack.aws.dynamodb().update_item(
        TableName=stack.outputs["ConfigTableName"],
        Key={"pk": {"S": f"P#{project.project_id}"}, "sk": {"S": f"QUEUE#{queue}"}},
        UpdateExpression="REMOVE uncopied_until",
        ConditionExpression="attribute_exists(uncopied_until)",
    )


def posted_after(project: ProjectClient, queue: str, change: Callable[[], object]) -> set[str]:
    """Make a change while three producers post, until ten posts later; what was posted after its answer."""
    began: dict[str, float] = {}
    enough = threading.Event()

    def produce(producer: int) -> None:
        for number in count():
            if enough.is_set():
                return
            body = f"{producer}/{number}"
            began[body] = time.monotonic()
            project.post(queue, body)

    with ThreadPoolExecutor() as pool:
        producers = [pool.submit(produce, producer) for producer in range(3)]
        try:
            until(lambda: len(began) > 10, 120, lambda: f"{len(began)} posts began")
            change()
            answered = time.monotonic()
            enough_after = len(began) + 10
            until(lambda: len(began) > enough_after, 120, lambda: f"{len(began)} of {enough_after} posts began")
        finally:
            enough.set()
        for each in producers:
            each.result()
    after = {body for body, at in began.items() if at > answered}
    assert after
    return after


def test_what_is_posted_after_a_subscriber_was_replaced_is_owed_to_the_new_one(
    stack: RunningStack, recorder: Recorder
) -> None:
    # Given a queue to which messages are posted all the time
    project, queue = ProjectClient.default(stack), unique("replaced")
    old, new = recorder.endpoint(), recorder.endpoint()
    project.make_push(queue, old)
    of_long_ago(stack, project, queue)
    # When its subscriber is replaced
    subscribers = {"subscribers": [{"name": "new", "url": new.url}]}
    after = posted_after(project, queue, lambda: project.take("PUT", f"/queues/{queue}/subscribers", subscribers))

    # Then all that is posted from then on arrives at the new one, and nothing of it at the old one
    def missing() -> list[str]:
        return sorted(after - {push.body.decode() for push in new.pushes})

    until(lambda: not missing() or None, 120, lambda: f"{missing()} of {len(after)} have not come")
    assert not after & {push.body.decode() for push in old.pushes}


def test_what_is_posted_after_a_queue_was_deleted_is_in_the_next_one_of_its_name(
    stack: RunningStack, recorder: Recorder
) -> None:
    # Given a queue to which messages are posted all the time
    project, queue = ProjectClient.default(stack), unique("deleted")
    old = recorder.endpoint()
    project.make_push(queue, old)
    of_long_ago(stack, project, queue)
    # When it is deleted; a post to a queue that is not there makes a pull queue
    after = posted_after(project, queue, lambda: project.take("DELETE", f"/queues/{queue}"))
    # Then all that is posted from then on is in that one
    came: set[str] = set()

    def missing() -> list[str]:
        came.update(each["body"] for each in project.reserve(queue, timeout=3600))
        return sorted(after - came)

    until(lambda: not missing() or None, 120, lambda: f"{sorted(after - came)} of {len(after)} are not there")
    assert not after & {push.body.decode() for push in old.pushes}
