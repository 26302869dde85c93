"""Messages of pull queues as items of their table: their place in the queue, and who holds them.

The table is ``LinesTable``, its index ``line``, and ``line`` the kind of its items and the subscriber of its records:
names that were given when a pull queue was called a line, and that stay because stored data has them. So does
``line_uid`` in a queue's item.
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

AVAILABLE = "0#"
"""Prefix of ``place`` while nobody holds a message: the rest is its id, so these are in the order of the queue."""

AWAY = "1#"
"""Prefix of ``place`` while a message is reserved or delayed: the rest is until when, then its id."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message as the index shows it.

    Attributes:
        message_id: Its id, which is also its rank in the queue.
        place: Where it stood when the index was read; a reservation is good only while it still stands there.
        expires_at: Epoch milliseconds.
    """

    message_id: str
    place: str
    expires_at: int


def pull_key(project_id: str, pull_uid: str) -> dict[str, str]:
    """Partition key of a pull queue's messages."""
    return text(f"{project_id}#{pull_uid}")


def message_key(key: MessageKey) -> Item:
    """Key of a message."""
    return {"pk": pull_key(key.project, key.queue_uid), "sk": text(key.message_id)}


def place_at(message_id: str, until: int | None) -> str:
    """The place of a message that is available (None), or away until then (epoch milliseconds)."""
    return f"{AVAILABLE}{message_id}" if until is None else f"{AWAY}{until:015d}#{message_id}"


def away_before(now: int) -> str:
    """A bound for ``place``: messages that were away and are back at ``now`` have a smaller one."""
    return f"{AWAY}{now + 1:015d}"


def encode_pull_item(message: Message, *, reserved_count: int = 0) -> Item:
    """The whole item of a message that enters a pull queue, delayed when it is due later than it was accepted."""
    delayed_until = message.due_at if message.due_at > message.accepted_at else None
    item = message_key(message.key)
    item["kind"] = text("line")
    item["place"] = text(place_at(message.message_id, delayed_until))
    if reserved_count:
        item["reserved_count"] = number(reserved_count)
    return item | encode_fields(message)


def decode_candidate(item: Item) -> Candidate:
    """What the index says of a message."""
    return Candidate(message_id=item["sk"]["S"], place=item["place"]["S"], expires_at=int(item["expires_at"]["N"]))


def decode_pull_message(image: Item, now: int = 0) -> PullMessage:
    """The message from its item, or from an image of it in the table's stream.

    Args:
        image: The item.
        now: A reservation that ended by then is left out (epoch milliseconds); 0 shows it as stored.
    """
    project, pull_uid = image["pk"]["S"].rsplit("#", 1)
    message = decode_fields(image, project=project, queue_uid=pull_uid, message_id=image["sk"]["S"])
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
