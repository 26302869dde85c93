"""Keys of messages and their deliveries in the messages table.

Each message has its own partition, shared with its deliveries. In queues that can be listed
(:data:`pushhub.engine.model.keys.LISTED`), messages are stored in a few partitions per queue, in the order of their
ids, each followed by its deliveries.

=========  =================================  ========================
item       pk                                 sk
=========  =================================  ========================
message    ``{project}#{queue_uid}#{id}``     ``M``
delivery   the same                           ``D#{subscriber}``
listed     ``{project}#{queue_uid}#{part}``   ``{id}``
delivery   the same                           ``{id}#D#{subscriber}``
others     ``{project}#{queue_uid}#...``      ``K``
=========  =================================  ========================
"""

from __future__ import annotations

import zlib
from typing import Any

from pushhub.cloud.table import Item, text
from pushhub.engine.model.keys import LISTED, DeliveryKey, MessageKey

LISTED_PARTS = 4
"""Partitions of a listed queue. One takes 1,000 writes a second; listing reads them all."""

APART, APART_KIND = "K", "order"
"""Sort key and ``kind`` of items that are neither messages nor deliveries, so that scans, records and the report leave
them out: the state of an ordering key, and the mark of a queue whose failing deliveries are spread further.
"""

_MESSAGE, _DELIVERY = "M", "D#"
_BEHIND_IDS = ":"
"""Sorts after every digit, just as ``$`` sorts after the ``#`` that follows an id."""


def message_key(key: MessageKey) -> Item:
    """The key of a message's item."""
    pk, before = _place(key)
    return {"pk": text(pk), "sk": text(before or _MESSAGE)}


def delivery_key(key: DeliveryKey) -> Item:
    """The key of a delivery's item."""
    pk, before = _place(key.message)
    delivery = f"{_DELIVERY}{key.subscriber_id}"
    return {"pk": text(pk), "sk": text(f"{before}#{delivery}" if before else delivery)}


def key_of(item: Item) -> DeliveryKey:
    """The key of a message or delivery, from its item; for a message, the subscriber is empty."""
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    project, queue_uid, last = pk.rsplit("#", 2)
    if sk == _MESSAGE:
        return DeliveryKey(project, queue_uid, last, "")
    if sk.startswith(_DELIVERY):
        return DeliveryKey(project, queue_uid, last, sk.removeprefix(_DELIVERY))
    message_id, _, delivery = sk.partition("#")
    return DeliveryKey(project, queue_uid, message_id, delivery.removeprefix(_DELIVERY))


def of_one_message(key: MessageKey) -> dict[str, Any]:
    """A consistent query for a message and its deliveries."""
    pk, before = _place(key)
    query: dict[str, Any] = {
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": text(pk)},
        "ConsistentRead": True,
    }
    if before:
        query["KeyConditionExpression"] += " AND begins_with(sk, :id)"
        query["ExpressionAttributeValues"][":id"] = text(before)
    return query


def together(item: Item) -> tuple[str, str]:
    """A value shared by a message and its deliveries, which are adjacent when the table is read, and by nothing
    else.
    """
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    return pk, sk.partition("#")[0] if sk[0].isdigit() else ""


def listed_query(project: str, queue_uid: str, part: int, *, above: str | None, below: str | None, up: bool) -> Item:
    """A consistent query for the messages in one part of a queue whose ids lie between two others (exclusive)."""
    return {
        "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
        "FilterExpression": "kind = :message",
        "ExpressionAttributeValues": {
            ":pk": text(f"{project}#{queue_uid}#{part}"),
            ":low": text(f"{above}$" if above else "0"),
            # Not below the lower one, whatever somebody made up: DynamoDB refuses such a BETWEEN.
            ":high": text(f"{max(0, int(below) - 1):019d}$" if below else _BEHIND_IDS),
            ":message": text("message"),
        },
        "ScanIndexForward": up,
        "ConsistentRead": True,
    }


def _place(key: MessageKey) -> tuple[str, str]:
    """The partition of a message, and the prefix of its items' sort keys."""
    if not key.queue_uid.startswith(LISTED):
        return f"{key.project}#{key.queue_uid}#{key.message_id}", ""
    part = zlib.crc32(key.message_id.encode()) % LISTED_PARTS
    return f"{key.project}#{key.queue_uid}#{part}", key.message_id
