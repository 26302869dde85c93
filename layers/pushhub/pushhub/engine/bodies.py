"""Reads the body of a message, wherever it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import MessageNotFound
from pushhub.engine.model.deflated import plain

if TYPE_CHECKING:
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import BodyStore


def body_of(message: Message, bodies: BodyStore) -> bytes:
    """The exact bytes that were posted.

    Raises:
        MessageNotFound: The bytes are gone because the message expired.
        Unreadable: They are not what the hub stored.
    """
    if message.body is not None:
        return plain(message.body)
    if message.body_ref is None:
        raise MessageNotFound
    return bodies.get(message.body_ref)
