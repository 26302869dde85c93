"""Messages on the wire."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import TooMuchWork
from pushhub.base.json_text import NotJson, Verbatim, members, read, write
from pushhub.base.times import iso_time
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.message import DAY_MS, ListedMessage, MessageFields
from pushhub.webhooks.model.redaction import TOO_COSTLY
from pushhub.webhooks.wire.application import brought_application
from pushhub.webhooks.wire.endpoint import CHANNEL, MAX_CHANNELS
from pushhub.webhooks.wire.fields import Fields, parse_body

if TYPE_CHECKING:
    from pushhub.base.steps import Steps
    from pushhub.engine.model.trace import Trace
    from pushhub.webhooks.model.application import ApplicationFields
    from pushhub.webhooks.model.redaction import Redaction

_TAG = re.compile(r"[a-zA-Z0-9\-_./\\#]{1,128}")
MAX_TAGS = 5
_ORDERING_KEY = re.compile(r"[!-~]{1,256}")
_CONTENT_TYPE = re.compile(r"[!-~]{1,64}/[!-~]{1,64}(?: ?;[ -~]{1,128})?")

LEAST_DELAY_MS, MAX_DELAY_MS = 60_000, DAY_MS
"""How far ahead a message may be scheduled, milliseconds (Svix: one minute to 24 hours)."""

DEFAULT_RETENTION_DAYS = 90
EXPIRED = {"expired": True}
"""The placeholder for the payload of a message whose bytes are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhook:
    """A message that is posted.

    Attributes:
        payload: The JSON object, parsed.
        payload_text: The same, exactly as it was sent.
        body: The exact bytes that endpoints get.
        retention_ms: How long its bytes are kept from when it is due.
        application: Reads the application to create if none has the name in the path; None for none.
        hops: How many sources and queues of hubs it has passed on its way here.
    """

    fields: MessageFields
    payload: dict[str, Any]
    payload_text: str
    body: bytes
    retention_ms: int
    application: Callable[[str], ApplicationFields] | None
    trace: Trace | None = None
    hops: int = 0


def parse_message(body: bytes, now: int) -> NewWebhook:
    """A message that is posted.

    Args:
        body: Body of the request. Endpoints get the payload exactly as it is written there.
    """
    fields = Fields(parse_body(body))
    name = "payload" if fields.has("payload") else "data"
    payload = fields.raw(name)
    if not isinstance(payload, dict):
        raise fields.refuse("The payload must be a JSON object", "payload")
    payload_text, content_type = members(body.decode())[name], None
    content = payload_text.encode()
    transformations = fields.section("transformationsParams")
    if transformations is not None:
        given = _content_type(transformations)
        if transformations.raw("rawPayload") is not None:
            content, content_type = transformations.text("rawPayload", most=2_097_152).encode(), given
    event_type = fields.name("eventType")
    return NewWebhook(
        fields=MessageFields(
            event_type=event_type,
            channels=fields.names("channels", CHANNEL, most=MAX_CHANNELS) or (),
            tags=fields.names("tags", _TAG, most=MAX_TAGS) or (),
            event_id=fields.uid("eventId", IdPrefix.MESSAGE),
            content_type=content_type,
            deliver_at=_deliver_at(fields, now),
            ordering_key=_ordering_key(fields),
        ),
        payload=payload,
        payload_text=payload_text,
        body=content,
        retention_ms=_retention(fields),
        application=brought_application(fields),
    )


def new_message(event_type: str, payload: object) -> NewWebhook:
    """A message of the hub's own making, with nothing but its type and payload."""
    body = write({"eventType": event_type, "payload": payload})
    return parse_message(body.encode(), 0)


def _content_type(transformations: Fields) -> str | None:
    headers = transformations.section("headers")
    for name in ("content-type", "Content-Type"):
        given = headers.optional_text(name, most=256) if headers else None
        if given is not None:
            if headers is not None and _CONTENT_TYPE.fullmatch(given) is None:
                raise headers.refuse("A content type such as text/plain is required", name)
            return given
    return None


def _deliver_at(fields: Fields, now: int) -> int | None:
    at = fields.moment("deliverAt")
    if at is not None and not LEAST_DELAY_MS <= at - now <= MAX_DELAY_MS:
        raise fields.refuse("A message can be scheduled from one minute to 24 hours ahead", "deliverAt")
    return at


def _ordering_key(fields: Fields) -> str | None:
    """An addition to Svix.

    Svix's clients drop unknown fields, except among the transformation's parameters.
    """
    transformations = fields.section("transformationsParams")
    if transformations is not None and not fields.has("orderingKey"):
        fields = transformations
    key = fields.optional_text("orderingKey", most=256)
    if key is not None and _ORDERING_KEY.fullmatch(key) is None:
        raise fields.refuse("1 to 256 characters of ASCII without spaces are required", "orderingKey")
    return key


def _retention(fields: Fields) -> int:
    hours = fields.whole("payloadRetentionHours", least=1, most=2160)
    days = fields.whole("payloadRetentionPeriod", least=1, most=90)
    ttl = fields.whole("ttl", least=1, most=90 * 86_400)
    if hours is not None and days is not None:
        raise fields.refuse("Give either payloadRetentionPeriod or payloadRetentionHours", "payloadRetentionHours")
    kept = hours * 3_600_000 if hours is not None else (days or DEFAULT_RETENTION_DAYS) * DAY_MS
    return kept if ttl is None else min(kept, ttl * 1000)


def payload_view(content: bytes | None, redaction: Redaction, steps: Steps) -> Mapping[str, Any] | Verbatim:
    """The payload as it is shown: exactly as sent, or a placeholder if it is gone or not an object.

    Args:
        content: The bytes that endpoints get; None when they are gone.
        redaction: What is withheld. A redacted payload is written anew, with its numbers as they were sent.
        steps: Spent by the redaction; the payload is withheld completely when they are used up.
    """
    if content is None:
        return EXPIRED
    try:
        value = read(content, exact=True, spend=steps.spend) if redaction.payload else read(content)
    except TooMuchWork:
        return TOO_COSTLY
    except NotJson:
        value = None
    if not isinstance(value, dict):
        # Posted as raw text, but clients can only show objects.
        return redaction.of_payload({"rawPayload": content.decode(errors="replace")})
    return redaction.of_payload(value, steps) if redaction.payload else Verbatim(content.decode().strip())


def message_view(message: ListedMessage, payload: Mapping[str, Any] | Verbatim) -> dict[str, Any]:
    """A message as clients read it."""
    fields = message.fields
    shown: dict[str, Any] = {
        "id": message.message_id,
        "eventId": fields.event_id,
        "eventType": fields.event_type,
        "payload": payload,
        "channels": list(fields.channels) or None,
        "timestamp": iso_time(message.accepted_at),
    }
    if fields.tags:
        shown["tags"] = list(fields.tags)
    if fields.deliver_at is not None:
        shown["deliverAt"] = iso_time(fields.deliver_at)
    if fields.ordering_key is not None:
        shown["orderingKey"] = fields.ordering_key
    return shown
