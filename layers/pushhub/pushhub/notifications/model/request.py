"""Publish requests that may be repeated: what of one was appended already, so that a repeat appends the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.notifications.model.topic import Topic

REPEATABLE_MS = 86_400_000
"""How long a key stands for its request at least, milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRequest:
    """A publish request with an idempotency key.

    Attributes:
        project: The tenant.
        key: As its publisher gave it, or as the hub made it.
        digest: Of its content: a key stands for one request.
        ids: Of its notifications, as answered.
        taken: By topic, how far it was appended: notifications of lower numbers are in the topic.
    """

    project: str
    key: str
    digest: str
    ids: tuple[str, ...]
    taken: Mapping[Topic, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of a request that one commit holds.

    Attributes:
        key: Of the request.
        up_to: Notifications of lower numbers are in the topic once the commit is.
    """

    key: str
    up_to: int
