"""The engine's functions as Lambda calls them: read the event, call the use case, map the result."""

from __future__ import annotations

import json
from typing import Any

from pushhub.cloud.observability import telemetry
from pushhub.engine import wiring
from pushhub.engine.faults import described
from pushhub.engine.model.message import Message
from pushhub.runtime.invocation import LambdaContext
from pushhub.runtime.sqs_batch import failures, queue_name, read_orders

__all__ = ["dispatch_inserted", "handle_errors", "poll_batch", "push_batch", "wake_due"]


def push_batch(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """SQS push and SQS retry: attempt the batch; the response keeps what must be looked at again."""
    orders, poison = read_orders(event, now=wiring.clock().now(), telemetry=telemetry)
    retry_url = wiring.settings().text("RETRY_QUEUE_URL")
    is_retry = queue_name(event) == retry_url.rpartition("/")[2]
    source = wiring.retry_queue() if is_retry else wiring.push_queue()
    keep = wiring.push().run(orders, source=source, remaining_ms=context.get_remaining_time_in_millis)
    return failures(keep | poison)


def poll_batch(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """SQS poll: ask the endpoints of the batch what became of their messages (hub protocol)."""
    orders, poison = read_orders(event, now=wiring.clock().now(), telemetry=telemetry)
    keep = wiring.poll().run(orders, source=wiring.poll_queue(), remaining_ms=context.get_remaining_time_in_millis)
    return failures(keep | poison)


def dispatch_inserted(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Stream of the messages table: queue what was inserted.

    A record that cannot be read is set aside whole, so that it neither blocks its shard nor vanishes. When something cannot be
    queued the error is raised: the stream hands the batch out again from its start, and duplicates are harmless.
    """
    from pushhub.engine.store.dynamodb_messages import decode_message  # noqa: PLC0415 (not needed by the other functions)

    messages: list[Message] = []
    for record in event["Records"]:
        try:
            messages.append(decode_message(record["dynamodb"]["NewImage"]))
        except (KeyError, ValueError, TypeError) as error:
            telemetry.count("StreamRecordsPoisoned")
            telemetry.event("stream_record_poisoned", event_id=record.get("eventID"), **described(error))
            wiring.set_aside(json.dumps(record, default=str))
    wiring.dispatch().run(messages)
    return failures([])


def wake_due(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:  # noqa: ARG001
    """Schedule, each minute: queue parked deliveries that are due, then make the ticks of schedulers (hub protocol)."""
    from pushhub.hub.wiring import hub_ticks  # noqa: PLC0415 (not needed by the other functions)

    woken = wiring.wake().run(context.get_remaining_time_in_millis)
    return {"woken": woken, "ticked": hub_ticks().run(context.get_remaining_time_in_millis)}


def handle_errors(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """SQS errors: post exhausted deliveries to their error queues; one that fails does not touch the others."""
    from aws_lambda_powertools.utilities.batch import (  # noqa: PLC0415 (not needed by the other functions)
        BatchProcessor,
        EventType,
    )
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord  # noqa: PLC0415

    from pushhub.engine.deliver import order_identity  # noqa: PLC0415
    from pushhub.engine.model.work import WorkOrder  # noqa: PLC0415

    def one(record: SQSRecord) -> None:
        identity: dict[str, str] = {}
        try:
            order = WorkOrder.decode(record.body)
            identity = order_identity(order)
            wiring.exhausted().run(order)
        except Exception as error:
            telemetry.event("exhausted_unhandled", **described(error), sqs_id=record.message_id, **identity)
            raise

    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    with processor(event["Records"], one):
        processor.process()
    return dict(processor.response())
