"""Messages of pull queues as table items, and the entries that hold each one's place in its queue.

A message is one item in its own partition, so neither the size nor the throughput of a queue is limited by a single
partition. Its place in the queue is an entry in a partition of the queue: ``0#{id}`` until it is first reserved,
``1#{until}#{id}#{nonce}`` after that. The entries are what an index of the table would be, but maintained by the store
(docs/decisions/pull-queues.md). The name ``line``, used for the kind of a message's item and the subscriber in its
records, dates from when a pull queue was called a line, and stays because stored records have it. So does ``line_uid``
in a queue's item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.cloud.table import Item, number, numbers, text
from pushhub.cloud.unreadable import decodes
from pushhub.engine.store._message_items import decode_fields, encode_fields
from pushhub.ironmq.ports import PullMessage

if TYPE_CHECKING:
    from pushhub.engine.model.keys import MessageKey
    from pushhub.engine.model.message import Message

MESSAGE = "M"
"""Sort key of a message's item. The stream filter in the template uses it, because entries produce no records."""

AVAILABLE = "0#"
"""Prefix of the place of a message that was never reserved. The id follows, so these places are in queue order."""

AWAY = "1#"
"""Prefix of a place where a message is or was reserved or delayed; followed by the end of that, then the id."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message as its entry describes it.

    Attributes:
        message_id: Its id, which is also its rank in the queue.
        place: Its place when the entry was written; it can be reserved only while it is still there.
        shard: The part of the queue's entries that contains it.
    """

    message_id: str
    place: str
    shard: int
    expires_at: int


def shard_key(project_id: str, pull_uid: str, shard: int) -> dict[str, str]:
    """Partition key of a part of a pull queue's entries."""
    return text(f"{project_id}#{pull_uid}#~{shard}")


def message_key(key: MessageKey) -> Item:
    """Key of a message."""
    return {"pk": text(f"{key.project}#{key.queue_uid}#{key.message_id}"), "sk": text(MESSAGE)}


def first_place(message: Message, nonce: str = "") -> str:
    """The place of a message that enters a queue; a delayed message starts as away.

    Args:
        nonce: Distinguishes the place from that of an earlier message with the same id.
    """
    delayed = message.due_at > message.accepted_at
    place = f"{AWAY}{message.due_at:015d}#{message.message_id}" if delayed else f"{AVAILABLE}{message.message_id}"
    return f"{place}#{nonce}" if nonce else place


def place_until(message_id: str, until: int, nonce: str) -> str:
    """The place of a message that is away until a given time (epoch milliseconds). The nonce makes each place
    unique.
    """
    return f"{AWAY}{until:015d}#{message_id}#{nonce}"


def away_before(now: int) -> str:
    """An upper bound for the places of messages that were away and are back at ``now``."""
    return f"{AWAY}{now + 1:015d}"


def encode_pull_item(message: Message, *, place: str, reserved_count: int = 0, shard: int = 0, entry: str = "") -> Item:
    """The whole item of a message that enters a pull queue.

    Args:
        place: Its place.
        reserved_count: Times it was reserved before.
        shard: The part of the queue's entries that it goes to.
        entry: Distinguishes this stay in the queue from others of the same message id, in the delivery records; empty
            if there cannot be another.
    """
    item = message_key(message.key)
    item["kind"] = text("line")
    item["place"] = text(place)
    if reserved_count:
        item["reserved_count"] = number(reserved_count)
    if shard:
        item["shard"] = number(shard)
    if entry:
        item["entry"] = text(entry)
    return item | encode_fields(message)


def place_of(item: Item) -> str:
    """Where a message is, by its item; empty if that cannot be read."""
    return str(item.get("place", {}).get("S", ""))


@decodes
def encode_entry(item: Item) -> Item:
    """The entry for a message's current place, from the message's item."""
    return {**entry_key(item, item["place"]["S"]), "expires_at": item["expires_at"], "ttl": item["ttl"]}


def entry_key(item: Item, place: str) -> Item:
    """Key of a message's entry at a given place, from the message's item."""
    project, pull_uid, _ = item["pk"]["S"].rsplit("#", 2)
    return {"pk": shard_key(project, pull_uid, numbers(item, "shard") or 0), "sk": text(place)}


@decodes
def decode_candidate(entry: Item) -> Candidate:
    """The message as its entry describes it."""
    place = entry["sk"]["S"]
    return Candidate(
        message_id=place.split("#")[1 if place.startswith(AVAILABLE) else 2],
        place=place,
        shard=int(entry["pk"]["S"].rpartition("~")[2]),
        expires_at=int(entry["expires_at"]["N"]),
    )


@decodes
def decode_mark(item: Item) -> int:
    """Until when messages go to all parts of a queue, epoch milliseconds."""
    return int(item["until"]["N"])


@decodes
def decode_pull_message(image: Item, now: int = 0) -> PullMessage:
    """The message in a table item, or in an image from the table's stream.

    Args:
        now: A reservation that has ended by then is left out (epoch milliseconds); 0 shows it as stored.
    """
    project, pull_uid, message_id = image["pk"]["S"].rsplit("#", 2)
    message = decode_fields(image, project=project, queue_uid=pull_uid, message_id=message_id)
    reserved_until = numbers(image, "reserved_until") or 0
    held = "reservation_id" in image and reserved_until > now
    unseen = numbers(image, "unseen") or 0
    return PullMessage(
        message=message,
        # The stored number rises with each reservation, so that delivery records can be numbered by it.
        reserved_count=(numbers(image, "reserved_count") or 0) - unseen,
        unseen=unseen,
        reservation_id=image["reservation_id"]["S"] if held else None,
        reserved_until=reserved_until if held else 0,
    )
