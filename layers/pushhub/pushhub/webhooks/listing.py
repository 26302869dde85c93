"""The list of an application's messages: the messages themselves, and lines for those whose bytes are gone before they leave the list."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Protocol

from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.message import Message
from pushhub.webhooks.model.application import queue_uid
from pushhub.webhooks.model.message import ListedMessage
from pushhub.webhooks.model.page import Span
from pushhub.webhooks.ports import MessageLog

__all__ = ["Listing"]


class StoredMessages(Protocol):
    """Messages of the engine."""

    def message(self, key: MessageKey) -> Message | None:
        """The message, or None."""
        ...

    def listed(
        self, project_id: str, queue_uid: str, *, above: str | None = None, below: str | None = None, up: bool = True
    ) -> Iterator[Message]:
        """The messages of a queue, see :meth:`pushhub.engine.ports.Messages.listed`."""
        ...


class Listing:
    """Implements :class:`pushhub.webhooks.ports.MessageLog`.

    Args:
        messages: Messages of the engine.
        lines: Lines, and producers' own ids of messages. What a line says of a message counts.
    """

    def __init__(self, *, messages: StoredMessages, lines: MessageLog) -> None:
        self._messages = messages
        self._lines = lines
        self.claim_event = lines.claim_event
        self.message_of_event = lines.message_of_event

    def list_message(self, message: ListedMessage) -> None:
        """See the port. A message that is stored for as long as it is listed is its own line, and costs no write."""
        if message.needs_line:
            self._lines.list_message(message)

    def listed(self, project_id: str, app_id: str, engine_id: str) -> ListedMessage | None:
        """See the port."""
        line = self._lines.listed(project_id, app_id, engine_id)
        if line is not None:
            return line
        stored = self._messages.message(MessageKey(project_id, queue_uid(app_id), engine_id))
        return ListedMessage.of(stored) if stored else None

    def messages(self, project_id: str, app_id: str, span: Span) -> Iterator[ListedMessage]:
        """See the port."""
        stored = self._messages.listed(project_id, queue_uid(app_id), above=span.above, below=span.below, up=span.up)
        lines = self._lines.messages(project_id, app_id, span)
        # Of two with the same id the line comes first.
        both = heapq.merge(lines, map(ListedMessage.of, stored), key=lambda each: each.engine_id, reverse=not span.up)
        last = ""
        for each in both:
            if each.engine_id != last:
                last = each.engine_id
                yield each
