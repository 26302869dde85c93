"""Keys of messages and deliveries."""

from __future__ import annotations

from typing import NamedTuple

LISTED = "~"
"""Prefix of the ``uid`` of a queue generation whose messages can be listed: they are stored together, in the order of
their ids. Owners' queues never have it.
"""


Addressee = tuple[str, str, str]
"""Project, queue generation and subscriber."""


class MessageKey(NamedTuple):
    """Unique in the hub. Ids derived by the hub may occur in two queues, hence the queue's generation."""

    project: str
    queue_uid: str
    message_id: str


class DeliveryKey(NamedTuple):
    """One delivery of a message; unique in the hub.

    Attributes:
        subscriber_id: The subscriber owed, ``*`` for unicast.
    """

    project: str
    queue_uid: str
    message_id: str
    subscriber_id: str

    @property
    def message(self) -> MessageKey:
        """The key of its message."""
        return MessageKey(self.project, self.queue_uid, self.message_id)
