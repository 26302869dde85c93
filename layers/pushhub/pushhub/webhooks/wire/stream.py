"""Streams and their events on the wire, as Svix's ``/stream`` writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time
from pushhub.webhooks.model.application import ApplicationFields
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.message import LISTED_MS, MessageFields
from pushhub.webhooks.model.refusals import not_found
from pushhub.webhooks.wire.endpoint import CHANNEL, MAX_CHANNELS
from pushhub.webhooks.wire.event_type import FLAG, MAX_FLAGS, WantedEventType
from pushhub.webhooks.wire.fields import NAME, Fields
from pushhub.webhooks.wire.message import NewWebhook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.event_type import EventType

MOST_EVENTS = 100
"""Events that are posted together."""

MOST_PAYLOAD = 262_144
"""The longest payload of an event, bytes of UTF-8."""


def parse_stream(fields: Fields) -> ApplicationFields:
    """A stream to be created or replaced."""
    return ApplicationFields(
        name=fields.text("name", least=1, most=256),
        uid=fields.uid("uid", IdPrefix.STREAM),
        metadata=fields.texts_by_name("metadata"),
    )


def parse_stream_patch(fields: Fields) -> Callable[[ApplicationFields], ApplicationFields]:
    """A change of a stream. What Svix calls ``description`` here is the stream's name."""
    changed: dict[str, Any] = {}
    for each in ("description", "name"):
        if fields.raw(each) is not None:
            changed["name"] = fields.text(each, least=1, most=256)
    if fields.has("uid"):
        changed["uid"] = fields.uid("uid", IdPrefix.STREAM)
    if fields.has("metadata"):
        changed["metadata"] = fields.texts_by_name("metadata")
    return lambda stored: replace(stored, **changed)


def brought_stream(fields: Fields) -> Callable[[str], ApplicationFields] | None:
    """What a stream is to be created with by those who post events to it, given its name in the path; None for none.

    It raises ``NotFound`` for a name that no stream can have.
    """
    section = fields.section("stream")
    if section is None:
        return None
    wanted = parse_stream(section)

    def brought(name: str) -> ApplicationFields:
        if wanted.uid not in (None, name) or name.startswith(IdPrefix.STREAM):
            raise section.refuse("The uid must be that of the path", "uid")
        if NAME.fullmatch(name) is None:
            raise not_found("Stream")
        return replace(wanted, uid=name)

    return brought


def stream_view(stream: Application) -> dict[str, Any]:
    """A stream as clients read it."""
    return {
        "id": stream.app_id,
        "uid": stream.uid,
        "name": stream.fields.name,
        "metadata": dict(stream.fields.metadata),
        "createdAt": iso_time(stream.created_at),
        "updatedAt": iso_time(stream.updated_at),
    }


def parse_events(fields: Fields) -> Sequence[NewWebhook]:
    """The events of a request."""
    given = fields.raw("events")
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_EVENTS:
        raise fields.refuse(f"A list of 1 to {MOST_EVENTS} events is required", "events")
    return [_event(Fields(each, "body", "events", str(number))) for number, each in enumerate(given)]


def _event(fields: Fields) -> NewWebhook:
    payload = fields.raw("payload")
    if not isinstance(payload, str):
        raise fields.refuse("A string is required", "payload")
    try:
        body = payload.encode()
    except UnicodeEncodeError as error:
        raise fields.refuse("The payload has half a surrogate pair, which is no text", "payload") from error
    if len(body) > MOST_PAYLOAD:
        raise fields.refuse(f"The payload may have at most {MOST_PAYLOAD} bytes", "payload")
    channels = None if fields.raw("channels") == [] else fields.names("channels", CHANNEL, most=MAX_CHANNELS)
    return NewWebhook(
        fields=MessageFields(event_type=fields.name("eventType"), channels=channels or ()),
        payload={},
        payload_text="",
        body=body,
        retention_ms=LISTED_MS,
        application=None,
    )


def parse_stream_event_type(fields: Fields) -> WantedEventType:
    """An event type to be created or replaced by Svix's routes for streams."""
    settings = {"description": "", "feature_flags": (), "deprecated": False, "archived": False}
    return WantedEventType(settings={**settings, **_given(fields)}, refuse=fields.refuse)


def parse_stream_event_type_patch(fields: Fields) -> WantedEventType:
    """A change of an event type by those routes."""
    return WantedEventType(settings=_given(fields), refuse=fields.refuse)


def _given(fields: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if fields.has("description"):
        found["description"] = fields.optional_text("description") or ""
    if fields.has("featureFlags"):
        empty = fields.raw("featureFlags") == []
        found["feature_flags"] = () if empty else fields.names("featureFlags", FLAG, most=MAX_FLAGS) or ()
    for each in ("deprecated", "archived"):
        if fields.raw(each) is not None:
            found[each] = fields.flag(each, default=False)
    return found


def stream_event_type_view(event_type: EventType) -> dict[str, Any]:
    """An event type as those routes show it."""
    return {
        "name": event_type.name,
        "description": event_type.description,
        "archived": event_type.archived,
        "deprecated": event_type.deprecated,
        "featureFlags": list(event_type.feature_flags),
        "createdAt": iso_time(event_type.created_at),
        "updatedAt": iso_time(event_type.updated_at),
    }
