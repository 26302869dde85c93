"""Many subscribers and many messages: everyone gets everything, once."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.stack.endpoints import Recorder
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

SUBSCRIBERS = 10
MESSAGES = 30


def test_every_subscriber_gets_every_message_once(stack: RunningStack) -> None:
    # Given subscribers, each of which fails a different message once
    project, queue = ProjectClient.default(stack), unique("fan-out")
    bodies = [f"message {number} – ½{'x' * 200 * (number % 7)}" for number in range(MESSAGES)]
    with Recorder() as recorder:
        endpoints = [recorder.endpoint(*[200] * number, 503, 200) for number in range(SUBSCRIBERS)]
        project.make_push(queue, *endpoints)
        # When messages are posted, half of them one by one
        ids = project.post(queue, *bodies[: MESSAGES // 2])
        for body in bodies[MESSAGES // 2 :]:
            ids += project.post(queue, body)
        # Then everyone gets all of them, and the failed one again
        for endpoint in endpoints:
            endpoint.wait(MESSAGES + 1, seconds=240)
        for number, endpoint in enumerate(endpoints):
            came = Counter(push.message_id for push in endpoint.pushes)
            refused = endpoint.pushes[number].message_id
            assert came == Counter([*ids, refused])
            assert {push.message_id: push.body.decode() for push in endpoint.pushes} == dict(
                zip(ids, bodies, strict=True)
            )
        # And the statuses agree
        last = project.wait_codes(queue, ids[-1], [200] * SUBSCRIBERS)
        assert {each["tries"] for each in last} <= {1, 2}

        # (what has come is recorded a moment later)
        def counted() -> tuple[int, int]:
            info = project.info(queue)
            return info["size"], info["total_messages"]

        until(lambda: counted() == (0, MESSAGES), 120, lambda: f"{counted()}")
