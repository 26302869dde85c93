"""Event types on the wire."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time
from pushhub.webhooks.model.event_type import Enforcement, EventType
from pushhub.webhooks.wire.fields import Fields
from pushhub.webhooks.wire.settings import SettingsFields

if TYPE_CHECKING:
    from pushhub.webhooks.model.refusals import Unprocessable

FLAG = re.compile(r"[a-zA-Z0-9\-_.]{1,256}")
_GROUP = re.compile(r"[a-zA-Z0-9\-_.]{1,256}")
MAX_FLAGS = 100

MAX_IMPORTED = 1_000
"""Maximum number of event types in one document."""


def _schemas(fields: Fields, name: str) -> Mapping[str, Any] | None:
    value = fields.raw(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise fields.refuse("An object of JSON schemas by version is required", name)
    return value


def _flags(fields: Fields) -> tuple[str, ...]:
    several = fields.names("featureFlags", FLAG, most=MAX_FLAGS)
    if several is not None:
        return several
    one = fields.optional_text("featureFlag")
    if one is not None and FLAG.fullmatch(one) is None:
        raise fields.refuse("A feature flag may have letters, digits, hyphens, underscores and dots", "featureFlag")
    return () if one is None else (one,)


def _group(fields: Fields, name: str) -> str | None:
    group = fields.optional_text(name)
    if group is not None and _GROUP.fullmatch(group) is None:
        raise fields.refuse("A group name may have letters, digits, hyphens, underscores and dots", name)
    return group


def _enforcement(fields: Fields, name: str) -> Enforcement:
    given = fields.optional_text(name)
    if given is not None and given not in list(Enforcement):
        raise fields.refuse(f"One of {', '.join(Enforcement)} is required", name)
    return Enforcement(given or Enforcement.OFF)


_SETTINGS = SettingsFields(
    EventType,
    read={
        "schemas": _schemas,
        "feature_flags": lambda fields, _: _flags(fields),
        "group_name": _group,
        "enforcement": _enforcement,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedEventType:
    """What a request says of an event type.

    Attributes:
        refuse: Refuses a value with a text, at a path within the request.
    """

    settings: Mapping[str, Any]
    refuse: Callable[..., Unprocessable]


def parse_event_type(fields: Fields) -> WantedEventType:
    """An event type to be created or replaced."""
    return WantedEventType(settings=_SETTINGS.given(fields, all_of_them=True), refuse=fields.refuse)


def parse_event_type_patch(fields: Fields) -> WantedEventType:
    """The settings of an event type that were sent."""
    return WantedEventType(settings=_SETTINGS.given(fields), refuse=fields.refuse)


def parse_event_types(fields: Fields) -> Iterator[tuple[str, WantedEventType]]:
    """The event types of an exported document, with their names, one after the other."""
    listed = fields.raw("eventTypes")
    if listed is None:
        return
    if not isinstance(listed, list) or len(listed) > MAX_IMPORTED:
        raise fields.refuse(f"A list of at most {MAX_IMPORTED} event types is required", "eventTypes")
    # Each is an object before any is read.
    for each in [Fields(each, "body", "eventTypes", str(number)) for number, each in enumerate(listed)]:
        yield each.name("name"), parse_event_type(each)


def event_type_as_described(described: Mapping[str, Any], enforcement: Enforcement | None) -> WantedEventType:
    """An event type of an OpenAPI document.

    Args:
        enforcement: Whether its schema is enforced; None for what it then is.
    """
    kept = {} if enforcement is None else {"schemaEnforcement": enforcement.value}
    fields = Fields({**described, **kept}, "body", "spec", "webhooks", str(described["name"]))
    fields.name("name")
    return parse_event_type(fields)


def event_type_view(event_type: EventType, *, with_schemas: bool) -> dict[str, Any]:
    """An event type as old and new clients read it."""
    shown: dict[str, Any] = {
        "name": event_type.name,
        "description": event_type.description,
        "archived": event_type.archived,
        "deprecated": event_type.deprecated,
        "schemas": event_type.schemas if with_schemas else None,
        "createdAt": iso_time(event_type.created_at),
        "updatedAt": iso_time(event_type.updated_at),
        "featureFlag": event_type.feature_flags[0] if event_type.feature_flags else None,
    }
    if event_type.feature_flags:
        shown["featureFlags"] = list(event_type.feature_flags)
    if event_type.enforcement is not Enforcement.OFF:
        shown["schemaEnforcement"] = event_type.enforcement.value
    if event_type.group_name is not None:
        shown["groupName"] = event_type.group_name
    return shown
