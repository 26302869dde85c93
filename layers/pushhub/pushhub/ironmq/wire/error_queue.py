"""What is put on an error queue (IronMQ v3 "Error Queues")."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping

from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import Subscriber
from pushhub.ironmq.wire.messages import MAX_REPLACED_BYTES, render_message
from pushhub.web.answer_size import fits

__all__ = ["error_message_body"]


def error_message_body(
    message: Message, body: bytes | None, delivery: Delivery, subscribers: Iterable[Subscriber]
) -> bytes:
    """The body of an error message; always one that a client can reserve, so that errors about errors do not grow without end.

    ``queue`` is our addition: users missed it. So is ``body_base64``, which holds a body that is no text, and one whose text would grow too
    much by being quoted twice; ``body_left_out`` says that there was no room for the body or that its bytes are gone.

    Args:
        message: The message that could not be delivered.
        body: Its bytes, None when they are gone.
        delivery: The exhausted delivery, with what each subscriber last answered.
        subscribers: Those it was owed to, in order.
    """
    asked = [
        {
            "name": subscriber.name,
            "url": subscriber.url,
            "code": delivery.status(subscriber.subscriber_id).status_code or 0,
            "msg": delivery.status(subscriber.subscriber_id).message,
        }
        for subscriber in subscribers
    ]
    text = ""
    for content in _ways_to_tell(body):
        fields = {"source_msg_id": message.message_id, "queue": message.queue, "body": "", "headers": message.headers}
        text = json.dumps({**fields, **content, "subscribers": asked}, ensure_ascii=False, default=dict)
        if _readable(text):
            break
    return text.encode()


def _ways_to_tell(body: bytes | None) -> Iterator[Mapping[str, object]]:
    """The fields for a body, the best ones first."""
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
    """Whether a message with this body fits into an answer alone."""
    shown = render_message("0" * 19, text.encode(), reserved_count=0, reservation_id="0" * 32)
    return fits(json.dumps({"messages": [shown]}, ensure_ascii=False))
