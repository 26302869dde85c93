"""Messages as table items. Attribute names are short because they cost money: an item over 1 KB costs two writes."""

from __future__ import annotations

from dataclasses import replace

from pushhub.cloud.table import Item, number, text, texts
from pushhub.cloud.unreadable import decodes
from pushhub.engine.model.message import DESCENDANTS, BodyRef, Eager, Message, Ordering, kept_until
from pushhub.engine.model.trace import Trace
from pushhub.engine.store._bodies import decode_body, encode_body


def encode_fields(message: Message) -> Item:
    """All attributes of a message except its keys and kind."""
    item: Item = {
        "queue": text(message.queue),
        "body_size": number(message.body_size),
        "accepted_at": number(message.accepted_at),
        "due_at": number(message.due_at),
        "expires_at": number(message.expires_at),
        "ttl": number(kept_until(message.due_at, message.expires_at) // 1000),
    }
    if message.body is not None:
        item |= encode_body(message.body)
    if message.body_ref is not None:
        item["body_key"] = text(message.body_ref.key)
        item["body_offset"] = number(message.body_ref.offset)
    if message.headers:
        item["headers"] = {"M": {name: text(value) for name, value in message.headers.items()}}
    if message.subscriber_ids:
        item["subscriber_ids"] = texts(message.subscriber_ids)
    if message.unicast:
        item["unicast"] = {"BOOL": True}
    if message.hops:
        item["hops"] = number(message.hops)
    if message.descendants != DESCENDANTS:
        item["descendants"] = number(message.descendants)
    if message.ordering is not None:
        previous = {subscriber: text(each) for subscriber, each in message.ordering.previous.items()}
        item["ordering"] = {
            "M": {
                "key": text(message.ordering.key),
                "sequence": number(message.ordering.sequence),
                "previous": {"M": previous},
            }
        }
    traced = message.trace.text if message.trace else None
    for name, value in (("root", message.root), ("cause", message.cause), ("trace", traced)):
        if value is not None:
            item[name] = text(value)
    if message.eager is not None:
        item["eager"] = number(message.eager.again_s)
        if message.eager.subscriber_ids != message.delivery_subscribers:
            item["eager_for"] = texts(message.eager.subscriber_ids)
    return item


@decodes
def decode_fields(item: Item, *, project: str, queue_uid: str, message_id: str) -> Message:
    """The message from an item or a stream image; in the latter, binary values are base64 text."""
    body_size = int(item["body_size"]["N"])
    body_ref: BodyRef | None = None
    if "body_key" in item:
        body_ref = BodyRef(key=item["body_key"]["S"], offset=int(item["body_offset"]["N"]), length=body_size)
    message = Message(
        project=project,
        queue=item["queue"]["S"],
        queue_uid=queue_uid,
        message_id=message_id,
        body=decode_body(item, body_size),
        body_ref=body_ref,
        body_size=body_size,
        headers={name: value["S"] for name, value in item.get("headers", {"M": {}})["M"].items()},
        accepted_at=int(item["accepted_at"]["N"]),
        due_at=int(item["due_at"]["N"]),
        expires_at=int(item["expires_at"]["N"]),
        subscriber_ids=tuple(each["S"] for each in item.get("subscriber_ids", {"L": []})["L"]),
        unicast="unicast" in item,
        hops=int(item["hops"]["N"]) if "hops" in item else 0,
        root=item["root"]["S"] if "root" in item else None,
        descendants=int(item["descendants"]["N"]) if "descendants" in item else DESCENDANTS,
        ordering=_decode_ordering(item["ordering"]["M"]) if "ordering" in item else None,
        cause=item["cause"]["S"] if "cause" in item else None,
        trace=Trace.read(item["trace"]["S"]) if "trace" in item else None,
    )
    return replace(message, eager=_decode_eager(item, message)) if "eager" in item else message


@decodes
def _decode_eager(item: Item, message: Message) -> Eager:
    ids = tuple(each["S"] for each in item["eager_for"]["L"]) if "eager_for" in item else message.delivery_subscribers
    return Eager(subscriber_ids=ids, again_s=int(item["eager"]["N"]))


def _decode_ordering(fields: Item) -> Ordering:
    previous = {subscriber: str(each["S"]) for subscriber, each in fields["previous"]["M"].items()}
    return Ordering(key=fields["key"]["S"], sequence=int(fields["sequence"]["N"]), previous=previous)
