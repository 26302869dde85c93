"""What the running hub takes from a FIFO queue and from a bus: in order, once, and what it cannot take goes to the
queue's own dead letters.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest
from tests.stack.endpoints import Recorder
from tests.stack.project import until
from tests.stack.running import RunningStack

pytestmark = [pytest.mark.stack, pytest.mark.slow]

KEYS, EACH = 5, 12
MESSAGES = [(f"key-{key}", f"{key}/{number}") for number in range(EACH) for key in range(KEYS)]


def made_queue(own: RunningStack, name: str, dead: str, **more: str) -> tuple[str, str]:
    """URL and ARN of a queue whose dead letters are in another one."""
    sqs = own.aws.sqs()
    redrive = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": "3"}) if dead else ""
    attributes: Any = {"VisibilityTimeout": "30", **({"RedrivePolicy": redrive} if redrive else {}), **more}
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def test_a_queue_and_a_bus_are_consumed_and_poison_is_left_to_their_own_dead_letters(
    own: RunningStack, recorder: Recorder
) -> None:
    # Given a FIFO queue, and one to which a rule of EventBridge sends, each with dead letters
    sqs = own.aws.sqs()
    fifo = {"FifoQueue": "true"}
    _, dead = made_queue(own, "theirs-dead.fifo", "", **fifo)
    theirs, theirs_arn = made_queue(own, "theirs.fifo", dead, **fifo)
    dead_events, dead_events_arn = made_queue(own, "bus-dead", "")
    # (what is being taken must not come back before it is)
    bus, bus_arn = made_queue(own, "bus", dead_events_arn, VisibilityTimeout="5")
    events: Any = boto3.client("events", **own.client_arguments)
    events.put_rule(Name="orders", EventPattern=json.dumps({"source": ["shop.orders"]}))
    events.put_targets(Rule="orders", Targets=[{"Id": "hub", "Arn": bus_arn}])
    # And a hub that is told to consume them: into a push queue, and into a pull queue
    endpoint = recorder.endpoint(200)
    subscriber = {"name": "shop", "url": endpoint.url}
    settings = {"queue": {"type": "multicast", "push": {"subscribers": [subscriber], "retries": 5, "retries_delay": 3}}}
    assert own.call("PUT", "/queues/pushed", json=settings).status_code in (200, 201)
    own.place = replace(
        own.place,
        parameters={
            "ConsumedQueueArn": theirs_arn,
            "ConsumedQueueTo": f"{own.project_id}/queues/pushed",
            "ConsumedEventsArn": bus_arn,
            "ConsumedEventsTo": f"{own.project_id}/queues/of the bus",
        },
    )
    own.up()
    # When messages of several groups are sent, events of the bus, and something that is no event
    for part in (MESSAGES[at : at + 10] for at in range(0, len(MESSAGES), 10)):
        entries: Any = [
            {
                "Id": str(at),
                "MessageBody": body,
                "MessageGroupId": key,
                "MessageDeduplicationId": body.replace("/", "-"),
            }
            for at, (key, body) in enumerate(part)
        ]
        assert not sqs.send_message_batch(QueueUrl=theirs, Entries=entries).get("Failed")
    entries = [{"Source": "shop.orders", "DetailType": "order paid", "Detail": json.dumps({"n": n})} for n in range(5)]
    assert events.put_events(Entries=entries)["FailedEntryCount"] == 0
    sqs.send_message(QueueUrl=bus, MessageBody="no event")
    # Then every message reaches the subscriber, as one message, and those of a group in their order
    until(lambda: len({each.body for each in endpoint.pushes}) >= len(MESSAGES), 180, lambda: f"{endpoint.pushes}")
    # (a push whose end was not recorded in time comes again, as the same message)
    pushes = {each.message_id: each for each in reversed(endpoint.pushes)}.values()
    found = [each.body.decode() for each in sorted(pushes, key=lambda each: each.at)]
    for key in range(KEYS):
        assert [each for each in found if each.startswith(f"{key}/")] == [f"{key}/{number}" for number in range(EACH)]
    # And every event is in the pull queue, whole
    held: list[Any] = []

    def all_events() -> bool:
        answer = own.call("POST", "/queues/of%20the%20bus/reservations", json={"n": 10, "delete": True}).json()
        held.extend(json.loads(each["body"]) for each in answer.get("messages", []))
        return len({each["id"] for each in held}) >= 5

    until(all_events, 120, lambda: f"only {held} came")
    assert sorted(each["detail"]["n"] for each in held) == [0, 1, 2, 3, 4]
    assert {each["detail-type"] for each in held} == {"order paid"}

    # And what is no event is in the dead letters of its own queue
    def set_aside() -> list[Any] | None:
        return sqs.receive_message(QueueUrl=dead_events).get("Messages")

    assert [each["Body"] for each in until(set_aside, 180, lambda: "it was not set aside")] == ["no event"]
