"""Messages of push queues: reading one with the state of its deliveries, and deleting one.

A message stays readable after it was delivered or given up, until it expires or is deleted. Deletion first cancels what
is still owed, so that nobody reads the body any more, then destroys the body, then the message.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base import json_text
from pushhub.base.conflicts import until_saved
from pushhub.base.errors import MessageNotFound, Unanswerable, Unreadable
from pushhub.engine.attempts.in_order import cancelled
from pushhub.engine.attempts.ports import Unsettled
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, DeliveryState, opening
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.ports import BodyStore, StoredMessages
from pushhub.ironmq.wire.messages import render_message
from pushhub.web.answer_size import ResponseBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pushhub.base.ports import Clock
    from pushhub.engine.attempts.resend import Resend
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import Queue
    from pushhub.ironmq.posting.named_fields import FieldIndex

PEEK_PAGE = 200
PEEK_PAGES = 50
"""Up to how many waiting deliveries are looked at for the messages of a peek: 10,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedMessage:
    """A message of a push queue.

    Attributes:
        deliveries: Each delivery owed, by ``subscriber_id``; untried ones in their initial state.
    """

    message: Message
    deliveries: Mapping[str, Delivery]

    @property
    def waiting(self) -> list[Delivery]:
        """Those that have not ended."""
        return [each for each in self.deliveries.values() if not each.settled]


class _Messages(StoredMessages, Unsettled, Protocol):
    """Messages with their deliveries, and deliveries that people need to know about."""


class PushMessages(Component):
    """Reads and deletes messages of push queues."""

    messages: _Messages
    bodies: BodyStore
    fields: FieldIndex
    resend: Callable[[], Resend]  # Makes what lets the next message of an ordering key go, on first use.
    clock: Clock

    def get(self, queue: Queue, message_id: str) -> PushedMessage:
        """A message with its deliveries.

        Raises:
            MessageNotFound: No such message, or it was deleted or has expired.
        """
        pushed = self.statuses(queue, message_id)
        if pushed.message.expires_at <= self.clock.now():
            raise MessageNotFound
        return pushed

    def statuses(self, queue: Queue, message_id: str) -> PushedMessage:
        """Like :meth:`get`, but also for a day after the message expired, to report that it did.

        Raises:
            MessageNotFound: No such message, or it was deleted.
        """
        pushed = self._stored(queue, message_id)
        if any(each.state is DeliveryState.CANCELLED for each in pushed.deliveries.values()):
            raise MessageNotFound
        return pushed

    def body(self, message: Message) -> bytes:
        """The message's body.

        Raises:
            MessageNotFound: It is gone.
        """
        return body_of(message, self.bodies)

    def peek(self, queue: Queue, count: int, *, compressed: bool = False) -> list[dict[str, object]]:
        """Messages that wait after a failed attempt, oldest first, rendered, and as many as fit into an answer.

        These are the messages that ``size`` counts.

        Args:
            queue: A push queue.
            compressed: The answer may be compressed, so that any single message fits. Otherwise, those that do not are
                left out.

        Raises:
            Unanswerable: There are only messages that do not fit.
        """
        room = ResponseBudget()
        found: list[dict[str, object]] = []
        skipped = False
        for message_id in self._waiting(queue):
            if len(found) == count:
                break
            try:
                message = self.get(queue, message_id).message
                if found and not room.may_take(message.body_size):
                    break
                shown = render_message(message_id, self.body(message), reserved_count=0)
            except (MessageNotFound, Unreadable):
                continue
            part = json_text.write(shown, spaced=True)
            if not room.takes(part):
                if not (compressed or ResponseBudget().takes(part)):
                    skipped = True
                    continue
                if found:
                    break
                room.close()
            found.append(shown)
        if skipped and not found:
            raise Unanswerable
        return found

    def _waiting(self, queue: Queue) -> Iterator[str]:
        """Ids of the messages that wait after a failed attempt, oldest first, read page by page. Deliveries that a
        clear has voided are left out: they stay among the others until they are next looked at.
        """
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(PEEK_PAGES):
            page, cursor = self.messages.unsettled(queue.project, queue.uid, limit=PEEK_PAGE, after=cursor)
            for each in page:
                if each.state is DeliveryState.EXHAUSTED:
                    # Those that were given up come last.
                    return
                if each.accepted_at > queue.cleared_at and each.message_id not in seen:
                    seen.add(each.message_id)
                    yield each.message_id
            if cursor is None:
                return

    def in_state(
        self, queue: Queue, state: DeliveryState, *, count: int, after: str | None
    ) -> tuple[list[Delivery], str | None]:
        """Deliveries of a queue in a given state, among those that failed at least once and were not delivered.

        Args:
            queue: A push queue.
            state: Retrying, reserved or exhausted.
            count: How many to look at, 1..100.
            after: Cursor from the previous page; None to begin.

        Returns:
            Deliveries in that state, oldest first, and a cursor for the next page.
        """
        read = self.messages.given_up if state is DeliveryState.EXHAUSTED else self.messages.unsettled
        page, cursor = read(queue.project, queue.uid, limit=count, after=after)
        if state is not DeliveryState.EXHAUSTED and any(each.state is DeliveryState.EXHAUSTED for each in page):
            # Deliveries given up come last.
            cursor = None
        return [each for each in page if each.state is state and each.accepted_at > queue.cleared_at], cursor

    def check_deletion(self, queue: Queue, message_id: str) -> None:
        """Raise whatever :meth:`delete` would raise, without deleting.

        Raises:
            MessageNotFound: No such message, or it was already deleted.
        """
        if self._stored(queue, message_id).message.expires_at <= self.clock.now():
            raise MessageNotFound

    def delete(self, queue: Queue, message_id: str) -> None:
        """Delete a message with its body: it is no longer pushed or shown. Can be repeated after a failure.

        Raises:
            MessageNotFound: No such message, or it was already deleted.
        """

        def cancels() -> tuple[Message, list[Delivery]]:
            pushed = self._stored(queue, message_id)
            ended = [cancelled(self.messages, each, pushed.message, self.clock.now()) for each in pushed.waiting]
            for delivery in ended:
                self.messages.save(delivery)
            return pushed.message, ended

        # An attempt may be recorded at the same time.
        message, ended = until_saved(cancels, doing="deleting a message under contention")
        if queue.search_fields:
            with suppress(MessageNotFound):
                self.fields.remove(queue, message, self.body(message))
        if message.body_ref is not None:
            self.bodies.erase(message.body_ref)
        self.messages.delete(message)
        if message.ordering is not None:
            self.resend().let_next_go(ended)

    def _stored(self, queue: Queue, message_id: str) -> PushedMessage:
        found = self.messages.message_with_deliveries(MessageKey(queue.project, queue.uid, message_id))
        if found is None or found[0].accepted_at <= queue.cleared_at:
            raise MessageNotFound
        message, stored = found
        deliveries = {each: opening(message, each) for each in message.delivery_subscribers}
        deliveries.update((each.subscriber_id, each) for each in stored)
        return PushedMessage(message=message, deliveries=deliveries)
