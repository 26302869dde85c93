"""Event types on the wire."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time
from pushhub.webhooks.model.event_type import Enforcement, EventType

if TYPE_CHECKING:
    from pushhub.webhooks.wire.fields import Fields

_FLAG = re.compile(r"[a-zA-Z0-9\-_.]{1,256}")
_GROUP = re.compile(r"[a-zA-Z0-9\-_.]{1,256}")
MAX_FLAGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTypeFields:
    """The fields of an event type that its owner sets; see :class:`EventType`."""

    description: str
    archived: bool
    deprecated: bool
    schemas: Mapping[str, Any] | None
    feature_flags: tuple[str, ...]
    group_name: str | None
    enforcement: Enforcement


def parse_event_type(fields: Fields) -> EventTypeFields:
    """Read an event type to be created or replaced, apart from its name.

    Raises:
        Unprocessable: A field breaks a rule.
    """
    return EventTypeFields(
        description=fields.text("description"),
        archived=fields.flag("archived", default=False),
        deprecated=fields.flag("deprecated", default=False),
        schemas=_schemas(fields),
        feature_flags=_flags(fields),
        group_name=_group(fields),
        enforcement=_enforcement(fields),
    )


def parse_event_type_patch(fields: Fields, stored: EventType) -> EventTypeFields:
    """Read a change of an event type: the stored fields, updated with those that were sent.

    Raises:
        Unprocessable: A field breaks a rule.
    """
    flags = fields.has("featureFlag") or fields.has("featureFlags")
    return EventTypeFields(
        description=fields.text("description", default=stored.description),
        archived=fields.flag("archived", default=stored.archived),
        deprecated=fields.flag("deprecated", default=stored.deprecated),
        schemas=_schemas(fields) if fields.has("schemas") else stored.schemas,
        feature_flags=_flags(fields) if flags else stored.feature_flags,
        group_name=_group(fields) if fields.has("groupName") else stored.group_name,
        enforcement=_enforcement(fields) if fields.has("schemaEnforcement") else stored.enforcement,
    )


def _schemas(fields: Fields) -> Mapping[str, Any] | None:
    value = fields.raw("schemas")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise fields.refuse("An object of JSON schemas by version is required", "schemas")
    return value


def _flags(fields: Fields) -> tuple[str, ...]:
    several = fields.names("featureFlags", _FLAG, most=MAX_FLAGS)
    if several is not None:
        return several
    one = fields.optional_text("featureFlag")
    if one is not None and _FLAG.fullmatch(one) is None:
        raise fields.refuse("A feature flag may have letters, digits, hyphens, underscores and dots", "featureFlag")
    return () if one is None else (one,)


def _group(fields: Fields) -> str | None:
    name = fields.optional_text("groupName")
    if name is not None and _GROUP.fullmatch(name) is None:
        raise fields.refuse("A group name may have letters, digits, hyphens, underscores and dots", "groupName")
    return name


def _enforcement(fields: Fields) -> Enforcement:
    given = fields.optional_text("schemaEnforcement")
    if given is not None and given not in list(Enforcement):
        raise fields.refuse(f"One of {', '.join(Enforcement)} is required", "schemaEnforcement")
    return Enforcement(given or Enforcement.OFF)


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
