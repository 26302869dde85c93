"""SQS delivers more than once, early and late, with messages in between that are no work orders.

Subscribers do not notice.
"""

from __future__ import annotations

import time

import pytest
from tests.stack.endpoints import Endpoint, Recorder, slowly
from tests.stack.project import DELAY_S, ProjectClient, unique, until
from tests.stack.running import RunningStack

from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_schedule import DynamoDBSchedule

RETRY_S = 25
"""So long that an order which comes again on a busy machine still comes more than five seconds early."""

pytestmark = pytest.mark.stack


def orders(stack: RunningStack, queue_name: str, message_id: str) -> list[str]:
    """The work orders of a message, as dispatch sends them."""
    clock, dynamodb = SystemClock(), stack.aws.dynamodb()
    queue = DynamoDBConfigStore(dynamodb, stack.outputs["ConfigTableName"], clock).queue(stack.project_id, queue_name)
    assert queue is not None
    messages = DynamoDBMessageStore(
        dynamodb,
        stack.outputs["MessagesTableName"],
        clock,
        lambda: DynamoDBSchedule(dynamodb, stack.outputs["ScheduleTableName"], clock),
    )
    message = messages.message(MessageKey(stack.project_id, queue.uid, message_id))
    assert message is not None
    return [WorkOrder.carrying(message, each).encode() for each in message.delivery_subscribers]


def send(stack: RunningStack, queue: str, *bodies: str) -> None:
    """Put messages into one of the hub's SQS queues."""
    for body in bodies:
        stack.aws.sqs().send_message(
            QueueUrl=stack.outputs[f"{queue}QueueUrl"], MessageBody=body, MessageGroupId="again"
        )


def count(endpoint: Endpoint) -> int:
    return len(endpoint.pushes)


def test_orders_that_come_again_push_nothing_again(stack: RunningStack, recorder: Recorder) -> None:
    # Given a message that was delivered to one subscriber, acknowledged by one, given up at one, and waits for a retry
    # at one
    project, queue = ProjectClient.default(stack), unique("again")
    errors = unique("again-errors")
    delivered, acknowledged = recorder.endpoint(), recorder.endpoint(202)
    failing, waiting = recorder.endpoint(500), recorder.endpoint(500)
    # (who answers 202 has that long to acknowledge)
    project.make_push(queue, delivered, acknowledged, failing, retries=0, retries_delay=600, error_queue=errors)
    other = unique("waiting")
    project.make_push(other, waiting, retries=1, retries_delay=RETRY_S)
    [message_id], [waits] = project.post(queue, "x"), project.post(other, "x")
    assert acknowledged.wait()[0].acknowledge().status_code == 200
    project.wait_codes(queue, message_id, [200, 200, 500], [1, 1, 1])
    project.wait_codes(other, waits, [500], [1])
    # When their orders come again, several times and from both queues, with something else among them
    again = orders(stack, queue, message_id) + orders(stack, other, waits)
    for _ in range(3):
        send(stack, "Push", *again)
        send(stack, "Retry", *again)
    pack = f"[{','.join(again)}]"
    send(stack, "Push", pack, "no work order", '{"project": 1}', "[]")
    # Then nothing is pushed again, no try is counted and no error reported twice
    until(lambda: project.total(errors) or None, 120, lambda: "no error was told")
    time.sleep(5)
    assert [count(each) for each in (delivered, acknowledged, failing)] == [1, 1, 1]
    assert project.codes(queue, message_id) == [200, 200, 500]
    assert project.tries(queue, message_id) == [1, 1, 1]
    assert project.total(errors) == 1
    # And the one that waits is tried when it is due, once
    pushes = waiting.wait(2, RETRY_S + 60)
    assert pushes[1].at - pushes[0].at >= RETRY_S - 0.05
    project.wait_codes(other, waits, [500], [2])
    time.sleep(DELAY_S)
    assert count(waiting) == 2
    assert project.tries(other, waits) == [2]


def test_an_order_that_comes_twice_at_once_counts_once(stack: RunningStack, recorder: Recorder) -> None:
    # Given a message whose first attempts are in progress
    project, queue = ProjectClient.default(stack), unique("at once")
    accepting, refusing = recorder.endpoint(slowly(3.0, 200)), recorder.endpoint(slowly(3.0, 500))
    project.make_push(queue, accepting, refusing, retries=1)
    [message_id] = project.post(queue, "x")
    accepting.wait()
    refusing.wait()
    # When the same orders are meanwhile given to other processes
    send(stack, "Push", *orders(stack, queue, message_id))
    # Then each may get one more push, and the number of tries stays within the queue's limit
    statuses = project.wait_codes(queue, message_id, [200, 500], [1, 2])
    assert [each["retries_remaining"] for each in statuses] == [1, 0]
    time.sleep(DELAY_S + 2)
    assert count(accepting) <= 2
    assert count(refusing) <= 4
    assert project.tries(queue, message_id) == [1, 2]
