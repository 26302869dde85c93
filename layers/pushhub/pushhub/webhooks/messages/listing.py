"""The list of an application's messages: the messages themselves, and lines for those whose bytes are deleted before
they leave the list.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import ROUNDS
from pushhub.base.errors import Unavailable
from pushhub.base.ids import time_of_message_id
from pushhub.engine.model.keys import MessageKey
from pushhub.webhooks.model.internal_queues import queue_uid
from pushhub.webhooks.model.message import ListedMessage

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.message import Message
    from pushhub.webhooks.messages.ports import MessageLog
    from pushhub.webhooks.model.page import KeyRange

SETTLED_MS = 2_000
"""How long after its id was made a message becomes readable in order, milliseconds: until then, a message with a lower
id may still be on its way into the table.
"""

LATE_MS = 1_000
"""A message that took longer is also listed at a second place; the remaining time allows for clock skew,
milliseconds.
"""


class EngineMessages(Protocol):
    """Messages of the engine."""

    def message(self, key: MessageKey) -> Message | None:
        """The message, or None."""

    def listed(
        self,
        project_id: str,
        queue_uid: str,
        *,
        above: str | None = None,
        below: str | None = None,
        up: bool = True,
        wanted: int | None = None,
    ) -> Iterator[Message]:
        """The messages of a queue, see :meth:`pushhub.engine.ports.Messages.listed`."""


class Listing:
    """Implements :class:`pushhub.webhooks.messages.ports.MessageLog`.

    Args:
        lines: Lines, and producers' own ids of messages. A line takes precedence over the message.
        next_id: Makes an id that no message has, greater than all before.
    """

    def __init__(
        self, *, messages: EngineMessages, lines: MessageLog, next_id: Callable[[], str], clock: Clock
    ) -> None:
        self._messages = messages
        self._lines = lines
        self._next_id = next_id
        self._clock = clock
        self.note_late = lines.note_late
        self.late = lines.late
        self.claim_event = lines.claim_event
        self.message_of_event = lines.message_of_event

    def list_message(self, message: ListedMessage) -> None:
        """List a message. One that is stored as long as it is listed serves as its own line and needs no write.

        Raises:
            Unavailable: A reader going through messages in order may already have passed its place and may miss it;
                list it again.
        """
        if message.needs_line:
            self._lines.list_message(message)
        if message.expunged or not self._is_late(message.engine_id):
            return
        for _ in range(ROUNDS):
            position = self._next_id()
            self._lines.note_late(message, position)
            if not self._is_late(position):
                return
        raise Unavailable("listing a message in time")

    def _is_late(self, engine_id: str) -> bool:
        return self._clock.now() - time_of_message_id(engine_id) > LATE_MS

    def listed(self, project_id: str, app_id: str, engine_id: str) -> ListedMessage | None:
        """A message of an application: its line if it has one, else the message itself."""
        line = self._lines.listed(project_id, app_id, engine_id)
        if line is not None:
            return line
        stored = self._messages.message(MessageKey(project_id, queue_uid(app_id), engine_id))
        return ListedMessage.of(stored) if stored else None

    def messages(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[ListedMessage]:
        """Messages of an application, lines and messages that are their own lines merged by id."""
        stored = self._messages.listed(project_id, queue_uid(app_id), above=span.above, below=span.below, up=span.up)
        lines = self._lines.messages(project_id, app_id, span)
        # If two have the same id, the line comes first.
        both = heapq.merge(lines, map(ListedMessage.of, stored), key=lambda each: each.engine_id, reverse=not span.up)
        last = ""
        for each in both:
            if each.engine_id != last:
                last = each.engine_id
                yield each
