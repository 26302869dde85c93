"""Notifications: what services report to the operators of a store. A repeated report is counted, not listed again."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pushhub.base.fields import APART, Stored, field_metadata
from pushhub.hub.model.object_ids import derived_object_id


class Level(StrEnum):
    """How serious it is (hub protocol v5)."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedNotice:
    """A notification as an answer gives it.

    Attributes:
        level: Its severity.
        subject: One line.
        description: Details; varies between repetitions of the same notification.
        extra: Every other key (``backtrace``, ``reference_type`` ...).
    """

    level: Level
    subject: str
    description: str
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification of a store.

    Attributes:
        notification_id: See :func:`notification_id`.
        message_id: Decimal id of the message whose service reported it.
        level: Its severity.
        subject: One line.
        description: Of the last occurrence.
        extra: Of the last occurrence.
        origin: Name of the mapping.
        occurrences: How often it was reported for that message.
        logged_at: Epoch milliseconds of the first occurrence.
        updated_at: Epoch milliseconds of the last one.
        first_attempt: Number of the delivery's attempt that reported it first.
        attempt: Number of the attempt counted last; each attempt is counted once, however often its answer is
            processed.
    """

    project: str = field(metadata=field_metadata(stored=APART))
    notification_id: str = field(metadata=field_metadata(stored=Stored(name="id")))
    message_id: str = field(metadata=field_metadata(stored=APART))
    level: Level
    subject: str
    description: str
    extra: dict[str, Any] = field(default_factory=dict)
    origin: str
    occurrences: int
    logged_at: int
    updated_at: int
    first_attempt: int
    attempt: int

    @classmethod
    def once(
        cls, project: str, message_id: str, level: Level, subject: str, *, description: str, origin: str, at: int
    ) -> Notice:
        """A notification of the hub's own, which is no service's answer and occurs once, at a time in epoch
        milliseconds.
        """
        return cls(
            project=project,
            notification_id=notification_id(project, message_id, level, subject),
            message_id=message_id,
            level=level,
            subject=subject,
            description=description,
            origin=origin,
            occurrences=1,
            logged_at=at,
            updated_at=at,
            first_attempt=1,
            attempt=1,
        )


def notification_id(project: str, message_id: str, level: Level, subject: str) -> str:
    """The identity of a notification: message, level and subject. The description is left out because backtraces
    vary.
    """
    return derived_object_id(project, "notification", message_id, level.value, subject)


def message_type(level: Level) -> str:
    """The type of the message that announces a notification of that level."""
    return f"notification:{level.value}"
