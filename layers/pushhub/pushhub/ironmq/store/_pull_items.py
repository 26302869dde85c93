"""Messages of pull queues as items of their table, and the entries that say where in its queue each stands.

A message is one item of its own partition, so neither a queue's size nor its pace is bound to one partition. Where it
stands in its queue is an entry in a partition of the queue's: ``0#{id}`` while nobody has held it,
``1#{until}#{id}#{nonce}`` since. Entries are what an index of the table would be, but kept by the store (decision
0049). ``line``, the kind of a message's item and the subscriber of its records, is a name that was given when a pull
queue was called a line, and that stays because stored records have it. So does ``line_uid`` in a queue's item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.cloud.table import Item, number, numbers, text
from pushhub.engine.store._message_items import decode_fields, encode_fields
from pushhub.ironmq.ports import PullMessage

if TYPE_CHECKING:
    from pushhub.engine.model.keys import MessageKey
    from pushhub.engine.model.message import Message

MESSAGE = "M"
"""Sort key of a message's item. The stream's filter in the template names it: entries are of no interest to records."""

AVAILABLE = "0#"
"""Prefix of a place that nobody has taken a message from yet: the rest begins with its id, so these are in the order of
the queue."""

AWAY = "1#"
"""Prefix of a place where a message is reserved or delayed, or was: the rest is until when, then its id."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message as its entry shows it.

    Attributes:
        message_id: Its id, which is also its rank in the queue.
        place: Where it stood when the entry was written; a reservation is good only while it still stands there.
        shard: The part of the queue's entries that this one is in.
        expires_at: Epoch milliseconds.
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
    """The place of a message that enters a queue, away when it is due later than it was accepted.

    Args:
        message: The message.
        nonce: Makes the place unlike that of an earlier message with the same id.
    """
    delayed = message.due_at > message.accepted_at
    place = f"{AWAY}{message.due_at:015d}#{message.message_id}" if delayed else f"{AVAILABLE}{message.message_id}"
    return f"{place}#{nonce}" if nonce else place


def place_until(message_id: str, until: int, nonce: str) -> str:
    """The place of a message that is away until then (epoch milliseconds); no two are ever the same, thanks to the
    nonce.
    """
    return f"{AWAY}{until:015d}#{message_id}#{nonce}"


def away_before(now: int) -> str:
    """A bound for places: messages that were away and are back at ``now`` have a smaller one."""
    return f"{AWAY}{now + 1:015d}"


def encode_pull_item(message: Message, *, place: str, reserved_count: int = 0, shard: int = 0) -> Item:
    """The whole item of a message that enters a pull queue."""
    item = message_key(message.key)
    item["kind"] = text("line")
    item["place"] = text(place)
    if reserved_count:
        item["reserved_count"] = number(reserved_count)
    if shard:
        item["shard"] = number(shard)
    return item | encode_fields(message)


def encode_entry(item: Item) -> Item:
    """The entry at the place where a message stands, from the message's item."""
    return {**entry_key(item, item["place"]["S"]), "expires_at": item["expires_at"], "ttl": item["ttl"]}


def entry_key(item: Item, place: str) -> Item:
    """Key of the entry at a place of a message, from the message's item."""
    project, pull_uid, _ = item["pk"]["S"].rsplit("#", 2)
    return {"pk": shard_key(project, pull_uid, numbers(item, "shard") or 0), "sk": text(place)}


def decode_candidate(entry: Item) -> Candidate:
    """What an entry says of its message."""
    place = entry["sk"]["S"]
    return Candidate(
        message_id=place.split("#")[1 if place.startswith(AVAILABLE) else 2],
        place=place,
        shard=int(entry["pk"]["S"].rpartition("~")[2]),
        expires_at=int(entry["expires_at"]["N"]),
    )


def decode_pull_message(image: Item, now: int = 0) -> PullMessage:
    """The message from its item, or from an image of it in the table's stream.

    Args:
        image: The item.
        now: A reservation that ended by then is left out (epoch milliseconds); 0 shows it as stored.
    """
    project, pull_uid, message_id = image["pk"]["S"].rsplit("#", 2)
    message = decode_fields(image, project=project, queue_uid=pull_uid, message_id=message_id)
    reserved_until = numbers(image, "reserved_until") or 0
    held = "reservation_id" in image and reserved_until > now
    unseen = numbers(image, "unseen") or 0
    return PullMessage(
        message=message,
        # What is stored rises with each reservation, so that the delivery records can be numbered by it.
        reserved_count=(numbers(image, "reserved_count") or 0) - unseen,
        unseen=unseen,
        reservation_id=image["reservation_id"]["S"] if held else None,
        reserved_until=reserved_until if held else 0,
    )
