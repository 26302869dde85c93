"""What messages and deliveries are found by."""

from __future__ import annotations

from typing import NamedTuple

LISTED = "~"
"""How the ``uid`` of a queue's generation begins whose messages can be listed: they are kept together,
in the order of their ids. Owners' queues have none.
"""


class MessageKey(NamedTuple):
    """Unique in the hub. Ids that the hub derives may occur in two queues, hence the queue's generation.

    Attributes:
        project: Owner.
        queue_uid: Generation of the queue.
        message_id: The message.
    """

    project: str
    queue_uid: str
    message_id: str


class DeliveryKey(NamedTuple):
    """One delivery of a message; unique in the hub.

    Attributes:
        project: Owner.
        queue_uid: Generation of the queue.
        message_id: The message.
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
