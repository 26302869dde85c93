"""Converts SQS events to work orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pushhub.engine.model.received import Received
from pushhub.engine.model.work import decode_pack

if TYPE_CHECKING:
    from pushhub.base.ports import Telemetry


LATE_MS = 120_000
"""How long orders wait at most for a run that takes them up, where nobody lets them wait on purpose."""


def read_orders(
    event: dict[str, Any], *, now: int, telemetry: Telemetry, late_ms: int | None = None
) -> tuple[list[Received], dict[str, str]]:
    """The work orders of an SQS event.

    Args:
        now: Epoch milliseconds; taken as the time of receipt.
        telemetry: Notified of poison messages, and of orders that come late.
        late_ms: From when on they do. None: orders wait in that queue on purpose.

    Returns:
        The orders, and the messages that are not orders: receipt handles by message id.
    """
    orders: list[Received] = []
    poison: dict[str, str] = {}
    for record in event["Records"]:
        try:
            found = decode_pack(record["body"])
        except ValueError as error:
            poison[record["messageId"]] = record["receiptHandle"]
            telemetry.count("WorkOrdersPoisoned")
            telemetry.event("work_order_poisoned", sqs_id=record["messageId"], error=str(error))
            continue
        orders += [
            Received(
                order=order,
                sqs_id=record["messageId"],
                receipt_handle=record["receiptHandle"],
                received_at=now,
                receive_count=int(record["attributes"]["ApproximateReceiveCount"]),
                sent_at=_sent_at(record["attributes"]),
            )
            for order in found
        ]
    if late_ms is not None and (longest := max((each.waited_ms for each in orders), default=0)) > late_ms:
        telemetry.count("OrdersLate", sum(each.waited_ms > late_ms for each in orders))
        telemetry.event("orders_late", queue=queue_name(event), longest_ms=longest)
    return orders, poison


def _sent_at(attributes: Mapping[str, str]) -> int | None:
    text = attributes.get("SentTimestamp")
    return int(text) if text else None


def queue_name(event: dict[str, Any]) -> str:
    """Name of the queue an SQS event came from."""
    name: str = event["Records"][0]["eventSourceARN"].rpartition(":")[2]
    return name
