"""The Lambda entry points of Notifications 2.0: read the event, call the use case, map the result."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.errors import RequestRefused, Unauthorized, Unavailable
from pushhub.cloud.observability import logger, telemetry
from pushhub.notifications.ports import ReceivedWake
from pushhub.notifications.wire.errors import CONSUMER_CHALLENGE, error_body, fault_body, status_of
from pushhub.notifications.wire.requests import parse_consumer_name
from pushhub.notifications.wiring import Notifications
from pushhub.runtime.invocation import failures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.notifications.consumers import Consumers
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext

_OK: dict[str, Any] = {"statusCode": 200}

WAKES_LATE_MS = 300_000
"""How long a wake-up waits at most until a run takes it up for the first time."""


def answer_consumer(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Handle a connection that opens or closes, or a frame. The status returned for ``$connect`` is that of the
    handshake.

    The other two are invoked asynchronously: if they raise, Lambda retries them, and no client is told.
    """
    # Not the route key, as a frame can choose it.
    kind: str = event["requestContext"]["eventType"]
    consumers = hub.part(Notifications).consumers
    connection_id: str = event["requestContext"]["connectionId"]
    if kind == "CONNECT":
        return _connect(consumers, event, connection_id)
    if kind == "DISCONNECT":
        consumers.disconnect(connection_id)
        return _OK
    try:
        consumers.receive(connection_id, _frame(event))
    except Exception as error:
        telemetry.count("AcknowledgementsFailed")
        logger.exception("frame_failed", connection_id=connection_id, error=type(error).__name__)
        raise
    return _OK


def _frame(event: dict[str, Any]) -> str:
    """The text of a frame; empty when it is not text."""
    body: str = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return body
    try:
        return base64.b64decode(body, validate=True).decode()
    except ValueError:
        return ""


def _connect(consumers: Consumers, event: dict[str, Any], connection_id: str) -> dict[str, Any]:
    query: dict[str, str] = event.get("queryStringParameters") or {}
    given: dict[str, list[str]] = event.get("multiValueQueryStringParameters") or {}
    try:
        if len(given.get("token", [])) > 1:
            # It would be unclear which of the tokens counts.
            raise Unauthorized("Invalid token")
        name = parse_consumer_name(given.get("consumer", []))
        connection = consumers.connect(query.get("token", ""), name, connection_id)
    except RequestRefused as error:
        status = status_of(error)
        telemetry.event("handshake_refused", connection_id=connection_id, status=status)
        telemetry.count("HandshakesRefused")
        challenge = {"headers": {"WWW-Authenticate": CONSUMER_CHALLENGE}} if isinstance(error, Unauthorized) else {}
        return {
            "statusCode": status,
            "body": json_text.write(error_body(error)),
            **challenge,
        }
    except Unavailable:
        logger.exception("handshake_failed", connection_id=connection_id)
        return {"statusCode": 503, "body": json_text.write(fault_body())}
    telemetry.event(
        "consumer_connected",
        connection_id=connection_id,
        project=connection.topic.project,
        topic=connection.topic.name,
        subscriber=connection.subscriber,
        subscriber_uid=connection.subscriber_uid,
        shared=connection.shared,
    )
    return _OK


def notify(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """SQS notify: process the backlogs of the batch in parallel. Schedule, each minute: check idle connections."""
    notifications = hub.part(Notifications)
    if "Records" not in event:
        notifications.idle_connections.run(context.get_remaining_time_in_millis)
        return {}
    from pushhub.notifications.store.sqs_wakes import decode_wake  # noqa: PLC0415 (not needed by the schedule)

    wakes: list[ReceivedWake] = []
    poison: list[str] = []
    for record in event["Records"]:
        try:
            wake = decode_wake(record["body"])
        except ValueError as error:
            telemetry.count("WakesPoisoned")
            telemetry.event("wake_poisoned", sqs_id=record["messageId"], error=str(error))
            poison.append(record["messageId"])
            continue
        wakes.append(ReceivedWake(wake=wake, sqs_id=record["messageId"], receipt_handle=record["receiptHandle"]))
    now = hub.engine.ports.clock.now()
    longest = max(_waited_ms(each, now) for each in event["Records"])
    if longest > WAKES_LATE_MS:
        telemetry.count("WakesLate")
        telemetry.event("wakes_late", longest_ms=longest)
    keep = notifications.sender_batch.run(wakes, context.get_remaining_time_in_millis)
    return failures([*keep, *poison])


def _waited_ms(record: Mapping[str, Any], now: int) -> int:
    """How long nobody took up a wake-up; zero if it was received before."""
    attributes = record["attributes"]
    return now - int(attributes["SentTimestamp"]) if attributes["ApproximateReceiveCount"] == "1" else 0
