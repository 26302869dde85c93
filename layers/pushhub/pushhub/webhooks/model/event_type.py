"""Event types of a project: names that endpoints select messages by, with the schemas of their payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pushhub.base.fields import APART, Setting, Stored, field_metadata
from pushhub.base.numerals import digits

_MOST_DIGITS = 18

OPERATIONAL = {
    "endpoint.created": "An endpoint was created",
    "endpoint.updated": "An endpoint was changed",
    "endpoint.deleted": "An endpoint was deleted",
    "endpoint.failing": "An endpoint will be disabled if it keeps failing",
    "endpoint.certificate_ending": "The client certificate of an endpoint ends soon, or has ended",
    "signature.ending": "A signature scheme ends within a week, or within a day",
    "endpoint.disabled": "An endpoint was disabled",
    "endpoint.enabled": "An endpoint was enabled",
    "message.attempt.failing": "A message failed to be delivered several times",
    "message.attempt.exhausted": "A message will not be tried again",
    "message.attempt.recovered": "A message was delivered after several failures",
    "background_task.finished": "A background task ended",
}
"""Event types of the operational events that the hub itself sends."""


def seen_with(flags: frozenset[str] | None, type_flags: Sequence[str]) -> bool:
    """Whether a caller may see and choose an event type.

    Args:
        flags: Feature flags of an application's token; None for the organization's.
        type_flags: Of the event type; empty if all may see it.
    """
    return flags is None or not type_flags or not flags.isdisjoint(type_flags)


class Enforcement(StrEnum):
    """What happens to a message whose payload does not match its event type's schema."""

    OFF = "off"
    WARN = "warn"
    """It is accepted, and counted."""
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """An event type.

    Attributes:
        name: Unique in the project.
        archived: No further endpoint may choose it; those that have it keep it.
        feature_flags: Application tokens see it only if they have one of these; empty for all.
        enforcement: Whether payloads must match the schema of the highest version.
    """

    project: str = field(metadata=field_metadata(stored=APART))
    name: str = field(metadata=field_metadata(stored=APART))
    description: str = field(metadata=field_metadata(Setting(means="")))
    archived: bool = field(
        default=False, metadata=field_metadata(Setting(means="Whether endpoints may no longer choose it."))
    )
    deprecated: bool = field(default=False, metadata=field_metadata(Setting(means="")))
    schemas: Mapping[str, Any] | None = field(
        default=None, metadata=field_metadata(Setting(means="JSON schemas (draft 7) of the payload, by version."))
    )
    feature_flags: tuple[str, ...] = field(
        default=(),
        metadata=field_metadata(Setting(means="", wire=("featureFlag", "featureFlags")), Stored(name="flags")),
    )
    group_name: str | None = field(
        default=None, metadata=field_metadata(Setting(means="", wire=("groupName",)), Stored(name="group"))
    )
    enforcement: Enforcement = field(
        default=Enforcement.OFF,
        metadata=field_metadata(Setting(means="Whether payloads must match the schema.", wire=("schemaEnforcement",))),
    )
    created_at: int = field(metadata=field_metadata(stored=APART))
    updated_at: int = field(metadata=field_metadata(stored=APART))
    version: int = field(default=0, metadata=field_metadata(stored=APART))

    def seen_by(self, flags: frozenset[str] | None) -> bool:
        """Whether a caller may see it."""
        return seen_with(flags, self.feature_flags)

    @property
    def schema(self) -> Any:
        """The schema of the highest version; None if there are none."""
        schemas = self.schemas or {}
        return schemas[max(schemas, key=_in_order)] if schemas else None


def _in_order(version: str) -> tuple[int, str]:
    """Numbers in their order after everything else. No real version has more digits."""
    return (digits(version, _MOST_DIGITS) or 0, version)


MOST_EXAMPLES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An example of an event type, as somebody wants it sent.

    Attributes:
        index: Which of its examples, from 0.
        payload: Instead of an example; None for none.
    """

    event_type: str
    index: int
    payload: Any
