"""Repeatable publish requests: track which part was already appended, so that a repetition appends only the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.notifications.model.topic import Topic

REPEATABLE_MS = 86_400_000
"""Minimum time for which a key stands for its request, milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRequest:
    """A publish request with an idempotency key.

    Attributes:
        key: Given by the publisher, or made by the hub.
        digest: Hash of its content, as a key stands for one request only.
        ids: Ids of its notifications, as returned to the publisher.
        taken: By topic, how far it was appended: notifications with lower numbers are in the topic.
    """

    project: str
    key: str
    digest: str
    ids: tuple[str, ...]
    taken: Mapping[Topic, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPart:
    """The part of a request that one commit holds.

    Attributes:
        key: Key of the request.
        up_to: Notifications with lower numbers are in the topic once the commit is.
    """

    key: str
    up_to: int
