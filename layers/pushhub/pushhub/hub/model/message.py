"""Messages of the hub protocol: pushed by a producer, sent to a service, or requested by a service's answer.

A message is first *incoming*: it is compared with the mappings of its store. Each mapping that wants it gets one
*accepted* copy, with its own id and the incoming message as its parent. Both are ordinary messages of the engine, on
internal queues whose names an owner's queue can never have. Their headers, which are never sent, hold the type and the
parent; their hops count the messages that led to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard

from pushhub.base.json_text import Verbatim, members, object_of, stored, write

if TYPE_CHECKING:
    from pushhub.engine.model.message import Message

LIFE_MS = 10 * 366 * 86_400_000
"""How long a message of the hub is kept, delivered or not: ten years.

The protocol knows no expiry ("no messages are ever lost").
"""

MAX_CHAIN = 50
"""How many messages may lead to one another (parent, child, grandchild ...) before it is taken for a loop."""

MAX_TYPE = 200
"""Longest message type, in characters."""


def headers_of(message_type: str, parent_id: str | None, consumer: str | None = None) -> dict[str, str]:
    """The headers of the engine's message.

    Args:
        message_type: Type of the hub message, so that it is known without reading the body.
        parent_id: Decimal id of the message that led to it, if one did.
        consumer: Name of the mapping that an accepted copy is for; it is still known when the mapping is gone.
    """
    optional = {"parent": parent_id, "consumer": consumer}
    return {"type": message_type} | {name: value for name, value in optional.items() if value}


def type_of(message: Message) -> str:
    """Type of the hub message inside an engine's message."""
    return message.headers["type"]


def parent_of(message: Message) -> str | None:
    """Decimal id of the message that led to this one."""
    return message.headers.get("parent")


def consumer_of(message: Message) -> str | None:
    """Name of the mapping that an accepted copy was made for."""
    return message.headers.get("consumer")


def is_message_type(value: object) -> TypeGuard[str]:
    """Whether a value can be the type of a message: printable, without white space, at most 200 characters."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_TYPE
        and value.isprintable()
        and not any(character.isspace() for character in value)
    )


@dataclass(frozen=True, kw_only=True)
class HubMessage:
    """The content of a message: stored as the body of the engine's message.

    Attributes:
        type: ``order:new`` and the like.
        payload: The data; as :class:`Verbatim` just as somebody wrote it, which is how services get it.
        source: The ``<integration>.<service>`` it came from, on notification messages (sent to services).
        origin: Where it came from, according to the producer (kept, not sent).
        extra: Every other key the producer or service gave (kept, not sent).
        quiet: Notifications from its services raise no messages, because it descends from a message that a notification
            raised.
        delay_s: Seconds to wait before it is sent to services.
    """

    type: str
    payload: Mapping[str, Any] | Verbatim
    source: str | None = None
    origin: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    quiet: bool = False
    delay_s: int = 0

    @property
    def payload_text(self) -> str:
        """The data as JSON."""
        return self.payload.text if isinstance(self.payload, Verbatim) else write(self.payload)

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The data, read."""
        if isinstance(self.payload, Verbatim):
            read: dict[str, Any] = stored(self.payload.text)
            return read
        return self.payload

    def encode(self) -> bytes:
        """The body of the engine's message."""
        fields: dict[str, Any] = {"message": self.type, "payload": self.payload}
        if self.source is not None:
            fields["source"] = self.source
        if self.origin is not None:
            fields["origin"] = self.origin
        if self.extra:
            fields["extra"] = dict(self.extra)
        if self.quiet:
            fields["quiet"] = True
        if self.delay_s:
            fields["delay"] = self.delay_s
        return object_of({name: write(value) for name, value in fields.items()}).encode()

    @classmethod
    def decode(cls, body: bytes) -> HubMessage:
        """Read a body made by :meth:`encode`."""
        texts = members(body.decode())
        payload, extra = Verbatim(texts.pop("payload")), texts.pop("extra", "{}")
        fields: dict[str, Any] = {name: stored(text) for name, text in texts.items()}
        return cls(
            type=fields["message"],
            payload=payload,
            source=fields.get("source"),
            origin=fields.get("origin"),
            extra={name: Verbatim(text) for name, text in members(extra).items()},
            quiet=fields.get("quiet", False),
            delay_s=fields.get("delay", 0),
        )

    def as_sent(self, object_id: str) -> dict[str, Any]:
        """The message as the paths of filters and identifiers address it: as services see it."""
        fields: dict[str, Any] = {"message": self.type, "message_id": object_id, "payload": self.data}
        if self.source is not None:
            fields["source"] = self.source
        return fields
