"""The index of the fields that owners of queues have named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.model.search import index_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pushhub.engine.model.message import Message, NewMessage
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import SearchIndex


class FieldIndex:
    """Keeps the index of a queue's named fields. Queues without any cost nothing.

    Args:
        index: The index; made on first use.
    """

    def __init__(self, index: Callable[[], SearchIndex]) -> None:
        self._index = index

    def add(self, queue: Queue, messages: Iterable[tuple[Message, NewMessage]]) -> None:
        """Enter messages that are about to be stored. An entry whose message is not stored then is never shown.

        Raises:
            Unavailable: The effect is unknown; the messages must not be stored.
        """
        if not queue.search_fields:
            return
        entries = [
            entry for message, new in messages for entry in index_entries(queue.search_fields, message, new.body)
        ]
        if entries:
            self._index().add(entries)

    def remove(self, queue: Queue, message: Message, body: bytes) -> None:
        """Remove a message that is deleted."""
        entries = index_entries(queue.search_fields, message, body)
        if entries:
            self._index().remove(entries)
