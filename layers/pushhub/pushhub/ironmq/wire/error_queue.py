"""The messages posted to an error queue (IronMQ v3 "Error Queues")."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.ironmq.wire.messages import MAX_REPLACED_BYTES, render_message
from pushhub.ironmq.wire.statuses import answer_message, asked_as
from pushhub.web.answer_size import fits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import Queue

STARS = "***"
REMOVED = "Subscriber was removed from the queue"


def error_message_body(queue: Queue, message: Message, body: bytes | None, delivery: Delivery) -> bytes:
    """The body of an error message. A client can always reserve it, and errors about errors cannot grow without end.

    ``queue`` is our addition, because users missed it. So is ``body_base64``, for a body that is not text, or whose
    text would grow too much when quoted twice; ``body_left_out`` says that there was no room for the body, or that it
    is gone. ``reason`` is ``expired`` when the message expired before it ran out of tries.

    Args:
        queue: Its current state; subscribers already asked are named as they were at that time.
        message: The message that could not be delivered.
        body: Its bytes; None when they are gone.
        delivery: The exhausted delivery, with the last answer of each subscriber.
    """
    owed = message.subscriber_ids if message.unicast else (delivery.subscriber_id,)
    asked = [_asked(queue, each, delivery) for each in owed]
    text = ""
    for content in _ways_to_tell(body):
        fields: dict[str, object] = {"source_msg_id": message.message_id, "queue": message.queue}
        if delivery.state is DeliveryState.EXPIRED:
            fields["reason"] = "expired"
        fields |= {"body": "", "headers": message.headers}
        text = json_text.write({**fields, **content, "subscribers": asked}, spaced=True)
        if _readable(text):
            break
    return text.encode()


def _asked(queue: Queue, subscriber_id: str, delivery: Delivery) -> dict[str, object]:
    """The last answer of a subscriber; one removed before it was asked has none."""
    name, url = asked_as(queue, subscriber_id, delivery)
    status = delivery.status(subscriber_id)
    here = queue.push is not None and queue.push.subscriber(subscriber_id) is not None
    message = answer_message(delivery, subscriber_id) or ("" if here else REMOVED)
    return {"name": name, "url": without_secrets(url), "code": status.status_code or 0, "msg": message}


def without_secrets(url: str) -> str:
    """A URL as readers of an error queue may see it: passwords, tokens and query values are replaced with asterisks."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = _cut(rest, "/?#")
    user, at, host = authority.rpartition("@")
    if at:
        name, colon, _ = user.partition(":")
        authority = f"{name}:{STARS}@{host}" if colon else f"{STARS}@{host}"
    place, question, query = (slash + path).partition("?")
    hidden = "&".join(f"{name}={STARS}" if equals else STARS for name, equals, _ in map(_pair, query.split("&")))
    return f"{scheme}{separator}{authority}{place}" + question + (hidden if query else "")


def _pair(parameter: str) -> tuple[str, str, str]:
    return parameter.partition("=")


def _cut(text: str, stops: str) -> tuple[str, str, str]:
    """The text before the first of some characters, that character, and the text after it."""
    at = min((found for stop in stops if (found := text.find(stop)) >= 0), default=len(text))
    return text[:at], text[at : at + 1], text[at + 1 :]


def _ways_to_tell(body: bytes | None) -> Iterator[Mapping[str, object]]:
    """The possible fields for a body, best first."""
    if body is not None:
        exact = base64.b64encode(body).decode()
        try:
            yield {"body": body.decode()}
        except UnicodeDecodeError:
            if len(body) <= MAX_REPLACED_BYTES:
                yield {"body": body.decode(errors="replace"), "body_base64": exact}
        yield {"body_base64": exact}
    yield {"body_left_out": True}


def _readable(text: str) -> bool:
    """Whether a message with this body, by itself, fits into an answer."""
    shown = render_message("0" * 19, text.encode(), reserved_count=0, reservation_id="0" * 32)
    return fits(json_text.write({"messages": [shown]}, spaced=True))
