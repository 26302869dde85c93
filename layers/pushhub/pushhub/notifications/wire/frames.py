r"""The text frames between hub and consumer: notifications one way, acknowledgements the other.

A notification is ``<ack id>\n/<tenant>/<type>/<source>\n<ACTION>\n\n<body>``. Clients split it in different ways: into
lines (the body is the last one), at the first empty line, or by ``/`` (the type is the third part, hence the leading
slash).

The ack id is the position in the topic, the same for every exclusive subscriber, plus a short code that only the hub
can make. So what was never sent cannot be acknowledged, and garbage is rejected before it reaches the table. For a
shared subscriber the code is valid only on the connection it was sent on, as acknowledgements are (Notifications 2.0:
"on the same connection the message was received on").
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pushhub.notifications.model.topic import Notification, Topic

FRAME_BYTES = 131_072
"""The largest frame in bytes: the limit of API Gateway for one WebSocket message. Clients' own limits are higher."""

UNSUBSCRIBE = "unsubscribe_subscriber"
"""What a consumer sends to have its subscriber removed."""

_POSITION_BYTES = 8
_CODE_BYTES = 3
_ACK_CHARACTERS = 16


class AckId(NamedTuple):
    """The content of an ack id.

    Attributes:
        position: The acknowledged position.
        shared: Whether it was made for a shared subscriber's connection.
    """

    position: int
    shared: bool


@dataclass(frozen=True, slots=True)
class AckIds:
    """Makes and reads ack ids.

    Args:
        secrets: Returns the secrets of this deployment: the first is used for new ack ids, all are valid for reading.
    """

    secrets: Callable[[], Sequence[bytes]]

    def write(self, position: int, connection_id: str = "") -> str:
        """The ack id of a position: 16 characters of standard base64, padding included.

        Args:
            position: In the topic.
            connection_id: The connection it is valid on, for shared subscribers.
        """
        packed = position.to_bytes(_POSITION_BYTES)
        return base64.b64encode(packed + _code(self.secrets()[0], packed, connection_id)).decode()

    def read(self, text: str, connection_id: str) -> AckId | None:
        """The content of an ack id, None when the hub did not make it for this connection.

        Args:
            text: As received.
            connection_id: The connection it was received on.
        """
        if len(text) != _ACK_CHARACTERS:
            return None
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return None
        packed, code = raw[:_POSITION_BYTES], raw[_POSITION_BYTES:]
        if len(code) != _CODE_BYTES:
            return None
        for shared in (False, True):
            scope = connection_id if shared else ""
            if any(hmac.compare_digest(code, _code(key, packed, scope)) for key in self.secrets()):
                return AckId(position=int.from_bytes(packed), shared=shared)
        return None


def _code(key: bytes, packed: bytes, connection_id: str) -> bytes:
    return hmac.digest(key, b"ack/" + packed + connection_id.encode(), hashlib.sha256)[:_CODE_BYTES]


def frame(ack_id: str, topic: Topic, notification: Notification) -> str:
    """The text frame of a notification."""
    description = f"/{topic.project}/{notification.api}/{notification.source}"
    return f"{ack_id}\n{description}\n{notification.action}\n\n{notification.body}"


def frame_size(topic: Topic, notification: Notification) -> int:
    """Bytes of its frame."""
    return len(frame("=" * _ACK_CHARACTERS, topic, notification).encode())
