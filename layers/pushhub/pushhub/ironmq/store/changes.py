"""Stream records of the table of pull queues, read as changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.cloud.table import numbers
from pushhub.engine.store.dynamodb_changes import accepted_message
from pushhub.ironmq.model.records import PullItem, record_of_pull
from pushhub.ironmq.store._pull_items import MESSAGE, decode_pull_message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.cloud.table import Item
    from pushhub.engine.model.catalogue import Accepted
    from pushhub.engine.model.record import DeliveryRecord


def record_of_pull_change(stream_record: Mapping[str, Any]) -> DeliveryRecord | None:
    """The delivery record of one stream record; None when the change is not recorded.

    Args:
        stream_record: As Lambda delivers it (``NEW_AND_OLD_IMAGES``).

    Raises:
        KeyError: An image lacks an attribute.
        ValueError: An attribute has an unexpected value.
    """
    stream = stream_record["dynamodb"]
    if stream["Keys"]["sk"]["S"] != MESSAGE:
        return None
    changed_at = round(float(stream["ApproximateCreationDateTime"]) * 1000)
    return record_of_pull(_item(stream.get("OldImage")), _item(stream.get("NewImage")), changed_at)


def accepted_in_pull_queue(stream_record: Mapping[str, Any]) -> Sequence[Accepted]:
    """The message that an inserted item is, if it is one.

    Raises:
        Unreadable: The item is damaged.
    """
    stream = stream_record["dynamodb"]
    if stream["Keys"]["sk"]["S"] != MESSAGE:
        return []
    return [accepted_message(decode_pull_message(stream["NewImage"]).message)]


def _item(image: Item | None) -> PullItem | None:
    if not image:
        return None
    stored = decode_pull_message(image)
    return PullItem(
        message=stored.message,
        reserved_count=stored.reserved_count + stored.unseen,
        reservation_id=stored.reservation_id,
        reserved_until=stored.reserved_until,
        leaving=image["leaving"]["S"] if "leaving" in image else None,
        entry=image["entry"]["S"] if "entry" in image else "",
        placed_at=numbers(image, "placed_at"),
    )
