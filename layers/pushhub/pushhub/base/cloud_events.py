"""CloudEvents as they come over HTTP: binary, structured or batched (CloudEvents 1.0, HTTP protocol binding).

The bytes stay as they are: those of a request, or those of each event in a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pushhub.base.json_text import NotJson, elements, read
from pushhub.base.times import epoch_ms

STRUCTURED: Final = "application/cloudevents+json"
BATCHED: Final = "application/cloudevents-batch+json"

MOST_EVENTS: Final = 100
"""Events of one batch that are taken."""

_NEEDED = ("id", "source", "type")


class MalformedBatch(ValueError):
    """A request says that it is a batch of events, and is none. The text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedEvent:
    """An event.

    Attributes:
        event_id: Source and id: the same whenever the event is sent. Empty if it lacks one of them.
        event_type: Its type; empty if it has none.
        at: Its time, epoch milliseconds; None if it has none.
        value: All of it, as JSON; of a binary one, nothing.
        body: The exact bytes.
    """

    event_id: str
    event_type: str
    at: int | None
    value: Mapping[str, Any]
    body: bytes


def id_of(*parts: str) -> str:
    """One id made of several; lengths keep them apart, as ``/a`` and ``b/1`` are not ``/a/b`` and ``1``."""
    return "/".join([*(f"{len(each)}:{each}" for each in parts[:-1]), parts[-1]])


def is_batch(headers: Mapping[str, str]) -> bool:
    """Whether a request says that it brings a batch.

    Args:
        headers: Names in lower case.
    """
    return _media_type(headers) == BATCHED


def event_in(headers: Mapping[str, str], body: bytes) -> ArrivedEvent | None:
    """The one event that a request brings; None if it brings something else, or a batch."""
    if _media_type(headers) == STRUCTURED:
        try:
            value = read(body, last_wins=True)
        except NotJson:
            return None
        return _event(value, body) if isinstance(value, dict) else None
    if "ce-specversion" not in headers:
        return None
    found = {each: headers.get(f"ce-{each}", "").strip() for each in (*_NEEDED, "time")}
    event = _event(found, body)
    return ArrivedEvent(event_id=event.event_id, event_type=event.event_type, at=event.at, value={}, body=body)


def events_in(body: bytes) -> list[ArrivedEvent]:
    """The events of a batch, in order.

    Raises:
        MalformedBatch: It is none, or too large.
    """
    try:
        found = read(body, last_wins=True)
    except NotJson as error:
        raise MalformedBatch(f"A batch of events must be a JSON array: {error}") from error
    if not isinstance(found, list):
        raise MalformedBatch("A batch of events must be a JSON array")
    if len(found) > MOST_EVENTS:
        raise MalformedBatch(f"A batch may have at most {MOST_EVENTS} events")
    events = []
    for number, (value, text) in enumerate(zip(found, elements(body.decode()), strict=True)):
        lacks = next((each for each in _NEEDED if not _text(value, each)), None)
        if lacks is not None:
            raise MalformedBatch(f"Event {number} of the batch has no {lacks}")
        events.append(_event(value, text.encode()))
    return events


def _event(value: Mapping[str, Any], body: bytes) -> ArrivedEvent:
    source, event_id = _text(value, "source"), _text(value, "id")
    return ArrivedEvent(
        event_id=id_of(source, event_id) if source and event_id else "",
        event_type=_text(value, "type"),
        at=_moment(_text(value, "time")),
        value=value,
        body=body,
    )


def _text(value: object, name: str) -> str:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""


def _moment(text: str) -> int | None:
    try:
        return epoch_ms(text)
    except (ValueError, OverflowError, OSError):
        return None


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
