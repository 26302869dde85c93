"""Messages that a service takes together: each as one line of JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.base.times import iso_time
from pushhub.sinks.model.attributes import as_json

if TYPE_CHECKING:
    from pushhub.engine.target import BatchedMessage


def line_of(message: BatchedMessage) -> str:
    """A message as JSON without a line feed: its id, event type, time and payload. What is JSON is written as it was
    posted, if that was one line; what is no text is a string with the bytes that are none replaced.
    """
    payload = as_json(message.body.decode(errors="replace"))
    if "\n" in payload or "\r" in payload:
        payload = json_text.write(json_text.read(payload, last_wins=True, exact=True))
    return json_text.object_of(
        {
            "id": json_text.write(message.message_id),
            "eventType": json_text.write(message.about),
            "timestamp": json_text.write(iso_time(message.at)),
            "payload": payload,
        }
    )
