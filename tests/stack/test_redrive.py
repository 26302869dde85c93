"""The procedures of docs/operations.md, "Redrive", on the running stack, as far as the emulator has what they use."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from tests.stack.endpoints import Endpoint, Recorder
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

from pushhub.engine.model.work import WorkOrder
from pushhub.engine.store._keys import key_of

pytestmark = pytest.mark.stack


def forgotten(stack: RunningStack, project: ProjectClient, endpoint: Endpoint) -> tuple[str, dict[str, Any]]:
    """A message as if it had never been dispatched: without items of its deliveries; its body and its item."""
    queue, body = unique("redrive"), unique("body")
    project.make_push(queue, endpoint)
    [message_id] = project.post(queue, body)
    until(lambda: pushed(endpoint, body), 120, lambda: "not pushed")
    tables: Any = stack.aws.dynamodb()
    name = stack.outputs["MessagesTableName"]

    def items() -> list[dict[str, Any]]:
        pages = tables.get_paginator("scan").paginate(TableName=name, ConsistentRead=True)
        return [each for page in pages for each in page["Items"] if each["pk"]["S"].endswith(f"#{message_id}")]

    settled = until(
        lambda: [each for each in items() if each.get("state", {}).get("S") == "delivered"],
        120,
        lambda: "not settled",
    )
    for each in settled:
        tables.delete_item(TableName=name, Key={"pk": each["pk"], "sk": each["sk"]})
    [item] = [each for each in items() if each["kind"]["S"] == "message"]
    return body, item


def pushed(endpoint: Endpoint, body: str) -> int:
    return sum(each.body.decode() == body for each in list(endpoint.pushes))


def as_text(value: object) -> str:
    """Bytes, as the AWS CLI prints them and as a stream's event has them."""
    assert isinstance(value, bytes)
    return b64encode(value).decode()


def test_a_message_that_left_the_stream_is_passed_on_by_hand(stack: RunningStack) -> None:
    # Given a message that was never dispatched
    project = ProjectClient.another(stack)
    with Recorder() as recorder:
        endpoint = recorder.endpoint()
        body, item = forgotten(stack, project, endpoint)
        # When its item is passed on to dispatch, as the page says
        record = {"eventName": "INSERT", "dynamodb": {"NewImage": item}}
        payload = json.dumps({"Records": [record]}, default=as_text).encode()
        answer = stack.aws.functions().invoke(FunctionName=stack.outputs["DispatchFunctionName"], Payload=payload)
        assert "FunctionError" not in answer, answer["Payload"].read()
        # Then it is delivered
        until(lambda: pushed(endpoint, body) >= 2, 120, lambda: "not delivered")


def test_a_dead_letter_that_is_put_back_is_worked_on(stack: RunningStack) -> None:
    # Given an order that SQS has set aside, of a message that was not delivered
    project = ProjectClient.another(stack)
    queues: Any = stack.aws.sqs()
    dead, work = stack.outputs["RetryDeadLettersUrl"], stack.outputs["RetryQueueUrl"]
    with Recorder() as recorder:
        endpoint = recorder.endpoint()
        body, item = forgotten(stack, project, endpoint)
        order = order_of(item)
        queues.send_message(QueueUrl=dead, MessageBody=order)

        # (other tests may have left something in that queue)
        def set_aside() -> list[dict[str, Any]]:
            received = queues.receive_message(QueueUrl=dead, MaxNumberOfMessages=10, VisibilityTimeout=1)
            return [each for each in received.get("Messages", ()) if each["Body"] == order]

        # When it is received, sent to its queue, and deleted, as the page says for the emulator
        [found] = until(set_aside, 120, lambda: "not set aside")
        queues.send_message(QueueUrl=work, MessageBody=found["Body"])
        queues.delete_message(QueueUrl=dead, ReceiptHandle=found["ReceiptHandle"])
        # Then its delivery is made, and the queue of dead letters has it no more
        until(lambda: pushed(endpoint, body) >= 2, 120, lambda: "not delivered")
        assert set_aside() == []


def order_of(item: dict[str, Any]) -> str:
    """The order that push would have had for the message's only delivery."""
    [subscriber] = item["subscriber_ids"]["L"]
    key = key_of(item)._replace(subscriber_id=subscriber["S"])
    return WorkOrder(key=key, queue=item["queue"]["S"]).encode()
