"""What goes with a message beside its body, and which texts services take. Pure.

Emulators accept what AWS refuses, so the rules of the services' references are kept here: characters of a body and of
an attribute (SQS and SNS: ``#x9 #xA #xD #x20-#xD7FF #xE000-#xFFFD #x10000-#x10FFFF``), names of attributes, sizes.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.sinks.model.kind import Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.sinks.model.kind import SinkMessage

MOST_ATTRIBUTES = 10
"""How many attributes a message may have: SQS takes no more, and SNS passes no more on to SQS."""

REST = "headers"
"""The attribute that holds, as JSON, what cannot be an attribute of its own."""

MOST_GROUP = 128
"""The longest id of a message group or for deduplication, in characters."""

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_FIRST = ("webhook-id", "webhook-timestamp", "webhook-signature", "webhook-event-type")
_SEGMENT = re.compile(r"[A-Za-z0-9_-]{1,128}")
_GROUP = re.compile(r"[\x21-\x7e]{1,128}")


def text_of(body: bytes) -> str:
    """A body as the text that it is.

    Raises:
        Unfit: It is none, or has characters that the services refuse.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Unfit("The body is not UTF-8, and this service takes text only") from error
    found = _FORBIDDEN.search(text)
    if found is not None:
        raise Unfit(f"The body has the character U+{ord(found[0]):04X}, which this service refuses")
    return text


def attributes_of(message: SinkMessage) -> dict[str, str]:
    """A message's headers as attributes: at most ten, the id first. What cannot be one is in the attribute
    :data:`REST`.
    """
    headers = {"webhook-id": message.message_id, **message.headers}
    order = sorted(headers, key=lambda name: (name not in _FIRST, name))
    fit = [each for each in order if _fits(each, headers[each])]
    kept = fit if len(fit) == len(headers) and len(fit) <= MOST_ATTRIBUTES else fit[: MOST_ATTRIBUTES - 1]
    rest = {name: headers[name] for name in order if name not in kept}
    own = {name: headers[name] for name in kept}
    return {**own, REST: json_text.write(rest, ascii_only=True)} if rest else own


def _fits(name: str, value: str) -> bool:
    own = _NAME.fullmatch(name) is not None and len(name) <= 256 and name.lower() != REST
    reserved = name.lower().startswith(("aws.", "amazon."))
    return own and not reserved and bool(value) and _FORBIDDEN.search(value) is None


def size_of(text: str, attributes: Mapping[str, str]) -> int:
    """The bytes that a message takes by the count of SQS and SNS: its body, and names, types and values of its
    attributes.
    """
    own = sum(len(name.encode()) + len("String") + len(value.encode()) for name, value in attributes.items())
    return len(text.encode()) + own


def check_size(text: str, attributes: Mapping[str, str], most: int) -> None:
    """Raise :class:`Unfit` for a message that takes more bytes than a service takes."""
    size = size_of(text, attributes)
    if size > most:
        raise Unfit(f"The message takes {size} bytes with its attributes, and this service takes at most {most}")


def group_of(message: SinkMessage) -> str:
    """The id of a message's group. A message without an order is a group of its own, so that it waits for nothing."""
    return short(message.group or message.message_id)


def short(text: str) -> str:
    """A text as the id of a group or for deduplication: itself if it may be one, or its digest."""
    return text if _GROUP.fullmatch(text) else hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def segment(text: str) -> str:
    """A text as a part of the name of an object: itself if it can lead nowhere else, or its digest. An owner's queue
    may name its messages as it likes.
    """
    return text if _SEGMENT.fullmatch(text) else hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def enveloped(message: SinkMessage) -> str:
    """A message as Svix hands it to a queue or topic: ``{"payload": ..., "eventType": ...}``, its payload as it was
    posted if it is JSON, and as a string otherwise.
    """
    text = text_of(message.body)
    return json_text.object_of({"payload": as_json(text), "eventType": json_text.write(message.about)})


def as_json(text: str) -> str:
    """A text, if it is JSON; otherwise a JSON string of it."""
    try:
        json_text.read(text, last_wins=True)
    except json_text.NotJson:
        return json_text.write(text)
    return text
