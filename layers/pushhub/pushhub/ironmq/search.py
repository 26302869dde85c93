"""Finds messages by the fields that their owners have named (docs/decisions/interfaces.md): those of queues here,
those of other protocols by asking them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import MessageNotFound
from pushhub.engine.component import Component
from pushhub.engine.model.search import Found, IndexEntry, field_values, index_entries
from pushhub.ironmq.model.found import FoundMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.message import Message, NewMessage
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import Finder, QueueSource, SearchIndex, StoredMessages
    from pushhub.ironmq.pull import PullQueues
    from pushhub.ironmq.push_messages import PushMessages

PER_PAGE = 25
"""Entries of the index that one request looks at."""


class Fields:
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


class Search(Component):
    """Finds messages."""

    index: Callable[[], SearchIndex]  # The index; made on first use.
    config: QueueSource
    messages: StoredMessages
    push_messages: PushMessages
    pull: PullQueues
    finders: Callable[[str], Sequence[Finder]]  # Find messages of internal queues, by the queue's name.

    def run(self, project_id: str, value: str, after: str | None) -> tuple[list[FoundMessage | Found], str | None]:
        """The messages with a value in a named field, newest first, and where the next page begins.

        Those that were deleted, cleared or have expired are left out. Their entries stay until they expire: an entry is
        written before its message, so one without a message may be new.
        """
        entries, following = self.index().find(project_id, value, PER_PAGE, after)
        names = {each.queue for each in entries if "/" not in each.queue}
        queues = {each: self.config.queue(project_id, each, fresh=True) for each in names}
        found = (
            self._found(queues[each.queue], each) if each.queue in queues else self._elsewhere(each) for each in entries
        )
        return [each for each in found if each is not None], following

    def _elsewhere(self, entry: IndexEntry) -> Found | None:
        for finder in self.finders(entry.queue):
            return finder.found(entry)
        return None

    def values(self, queue: Queue, deliveries: Sequence[Delivery]) -> dict[str, dict[str, str]]:
        """The values of a queue's named fields in messages, by id; large bodies are not read for this."""
        if not queue.search_fields:
            return {}
        keys = {each.key.message for each in deliveries}
        stored = self.messages.messages([*keys])
        return {
            key.message_id: field_values(queue.search_fields, message.body or b"", message.headers)
            for key, message in stored.items()
        }

    def _found(self, queue: Queue | None, entry: IndexEntry) -> FoundMessage | None:
        if queue is None or (queue.uid if queue.is_push else queue.pull_uid) != entry.queue_uid:
            return None
        deliveries: Mapping[str, Delivery] = {}
        try:
            if queue.is_push:
                deliveries = self.push_messages.get(queue, entry.message_id).deliveries
            else:
                self.pull.get(queue, entry.message_id)
        except MessageNotFound:
            return None
        return FoundMessage(queue=queue, message_id=entry.message_id, field=entry.field, deliveries=deliveries)
