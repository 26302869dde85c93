"""Stream records of the messages table as changes: the state before and after, and the resulting delivery record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.engine.model.catalogue import Accepted
from pushhub.engine.model.records import record_of_acceptance, record_of_delivery
from pushhub.engine.store._delivery_items import decode_delivery
from pushhub.engine.store.dynamodb_messages import RESTORED, decode_message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.cloud.table import Item
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.record import DeliveryRecord


def record_of_change(stream_record: Mapping[str, Any]) -> DeliveryRecord | None:
    """The delivery record of one stream record; None when the change is not recorded.

    Args:
        stream_record: As Lambda delivers it (``NEW_AND_OLD_IMAGES``).

    Raises:
        KeyError: An image lacks an attribute.
        ValueError: An attribute has an unexpected value, or the item is of an unknown kind.
    """
    stream = stream_record["dynamodb"]
    before, after = stream.get("OldImage"), stream.get("NewImage")
    changed_at = round(float(stream["ApproximateCreationDateTime"]) * 1000)
    kind = (after or before)["kind"]["S"]
    if kind == "message":
        return record_of_acceptance(decode_message(after)) if after and not before else None
    if kind == "delivery":
        return record_of_delivery(_delivery(before), _delivery(after), changed_at)
    if kind == "order":
        return None
    raise ValueError(f"unknown kind of item: {kind!r}")


def accepted_in(stream_record: Mapping[str, Any]) -> Sequence[Accepted]:
    """The message that an inserted item is, if it is one.

    Raises:
        Unreadable: The item is damaged.
    """
    image = stream_record["dynamodb"]["NewImage"]
    return [accepted_message(decode_message(image))] if image["kind"]["S"] == "message" else []


def accepted_message(message: Message) -> Accepted:
    """A message as the catalogue takes it."""
    return Accepted(
        project=message.project,
        queue=message.queue,
        queue_uid=message.queue_uid,
        message_id=message.message_id,
        accepted_at=message.accepted_at,
        body=message.body,
    )


def is_restored(stream_record: Mapping[str, Any]) -> bool:
    """Whether an item was put back, also in place of one from a backup, or came from another stack: its records are
    there already.
    """
    stream = stream_record["dynamodb"]
    return RESTORED in (stream.get("NewImage") or {}) and RESTORED not in (stream.get("OldImage") or {})


def _delivery(image: Item | None) -> Delivery | None:
    return decode_delivery(image) if image else None
