"""Messages of applications: the fields that their producers set besides the bytes that endpoints get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.base.fields import SPARSE, Stored, field_metadata
from pushhub.engine.model.keys import DeliveryKey, MessageKey
from pushhub.webhooks.model.ids import message_id
from pushhub.webhooks.model.internal_queues import app_of, queue_uid

if TYPE_CHECKING:
    from pushhub.engine.model.message import Message

DAY_MS = 86_400_000

LISTED_MS = 90 * DAY_MS
"""How long messages and attempts are listed at least."""

_HEADER = "webhook"
"""The one header of the engine's message that carries all of it.

The engine sends none of a message's headers by itself.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFields:
    """The fields of a message that its producer sets.

    Attributes:
        event_type: Endpoints select messages by it.
        channels: Endpoints select messages by these, too.
        tags: For searching.
        event_id: The producer's own id for it, unique in the application; None for none.
        content_type: Content type of the bytes if they are not JSON.
        deliver_at: Not sent before this time, epoch milliseconds; None to send it at once.
        ordering_key: Messages with the same key are delivered to each endpoint in order; None for no order.
        passed: Headers with which a source was sent it, by name in lower case, that endpoints get, too.
    """

    event_type: str = field(metadata=field_metadata(stored=Stored(name="type")))
    channels: tuple[str, ...] = field(default=(), metadata=field_metadata(stored=SPARSE))
    tags: tuple[str, ...] = field(default=(), metadata=field_metadata(stored=SPARSE))
    event_id: str | None = field(default=None, metadata=field_metadata(stored=Stored(name="event", sparse=True)))
    content_type: str | None = field(default=None, metadata=field_metadata(stored=Stored(name="content", sparse=True)))
    deliver_at: int | None = field(default=None, metadata=field_metadata(stored=Stored(name="deliver", sparse=True)))
    ordering_key: str | None = field(default=None, metadata=field_metadata(stored=Stored(name="order", sparse=True)))
    passed: Mapping[str, str] = field(default_factory=dict, metadata=field_metadata(stored=SPARSE))

    def as_headers(self) -> Mapping[str, str]:
        """The fields as headers of the engine's message. The ordering key is not among them; the engine carries it
        separately.
        """
        given = {
            "type": self.event_type,
            "channels": self.channels,
            "tags": self.tags,
            "event_id": self.event_id,
            "content_type": self.content_type,
            "deliver_at": self.deliver_at,
            "passed": dict(self.passed),
        }
        return {_HEADER: json_text.write({name: value for name, value in given.items() if value})}

    @classmethod
    def of(cls, message: Message) -> MessageFields:
        """The fields stored with a message of the engine."""
        given = json_text.stored(message.headers.get(_HEADER, '{"type": ""}'))
        return cls(
            event_type=given["type"],
            channels=tuple(given.get("channels", ())),
            tags=tuple(given.get("tags", ())),
            event_id=given.get("event_id"),
            content_type=given.get("content_type"),
            deliver_at=given.get("deliver_at"),
            ordering_key=message.ordering.key if message.ordering else None,
            passed=given.get("passed", {}),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMessage:
    """A message as its application lists it; it outlives the message's bytes.

    Attributes:
        engine_id: The engine's id for it.
        ends_at: When its bytes are deleted, epoch milliseconds.
        listed_until: When it is no longer listed, epoch milliseconds.
        expunged: Whether its bytes were erased on request.
    """

    project: str
    app_id: str
    engine_id: str
    fields: MessageFields
    accepted_at: int
    ends_at: int
    listed_until: int
    expunged: bool = False

    @classmethod
    def of(cls, message: Message) -> ListedMessage:
        """A message of the engine as its application lists it."""
        return cls(
            project=message.project,
            app_id=app_of(message.queue_uid),
            engine_id=message.message_id,
            fields=MessageFields.of(message),
            accepted_at=message.accepted_at,
            ends_at=message.expires_at,
            listed_until=max(message.expires_at, message.due_at + LISTED_MS),
        )

    @property
    def needs_line(self) -> bool:
        """Whether it is listed longer than its bytes are kept, so that it needs a separate line in the list."""
        return self.expunged or self.listed_until > self.ends_at

    @property
    def message_id(self) -> str:
        """As clients see it."""
        return message_id(self.engine_id)

    @property
    def key(self) -> MessageKey:
        """As the engine knows it."""
        return MessageKey(self.project, queue_uid(self.app_id), self.engine_id)

    def delivery_key(self, endpoint_id: str) -> DeliveryKey:
        """Its delivery to an endpoint."""
        return DeliveryKey(*self.key, endpoint_id)

    def has_payload(self, now: int) -> bool:
        """Whether its bytes are still there."""
        return not self.expunged and now < self.ends_at
