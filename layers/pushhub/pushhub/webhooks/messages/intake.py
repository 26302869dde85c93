"""How messages enter applications: stored, then listed.

Once stored, a message is accepted and listed: it serves as its own line in the list. Only a message whose bytes are
deleted before it leaves the list needs a separate line. After a crash between the two writes, the message leaves the
list together with its bytes. Its producer got no answer and posts again with the idempotency key, which repairs this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict
from pushhub.base.ids import time_of_message_id
from pushhub.base.json_text import Verbatim
from pushhub.engine.component import Component
from pushhub.engine.model.message import Message, Ordering
from pushhub.engine.ports import Messages, MessageSink
from pushhub.webhooks.model.internal_queues import queue_of, queue_uid
from pushhub.webhooks.model.message import ListedMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.engine.acceptance.accept import AcceptBodies, PlacedBody
    from pushhub.engine.acceptance.first_orders import FirstOrders
    from pushhub.engine.model.queue import Subscriber
    from pushhub.webhooks.messages.named_fields import WebhooksFields
    from pushhub.webhooks.messages.ports import MessageLog
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.wire.message import NewWebhook


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A message that was posted.

    Attributes:
        message: The listed message.
        payload: Its payload as it was sent; None when it was posted before, and has to be read.
    """

    message: ListedMessage
    payload: Verbatim | None


class _Messages(MessageSink, Messages, Protocol):
    """Accepts messages, and shows those that are stored."""


class WebhooksIntake(Component):
    """Accepts messages into applications."""

    accept: AcceptBodies
    messages: _Messages
    log: MessageLog
    search_fields: WebhooksFields
    # Sends the first orders of eager applications; made when a producer posts to one.
    first_orders: Callable[[], FirstOrders]

    def __post_init__(self) -> None:
        self.next_id = self.accept.next_id

    def posted(
        self,
        application: Application,
        new: NewWebhook,
        engine_id: str,
        owed: tuple[str, ...],
        eager: Sequence[Subscriber] | None = None,
    ) -> Posted:
        """Accept what a producer posted; repeating the call with its id changes nothing.

        Args:
            eager: The subscribers whose first orders are sent at once; None when they are left to the stream.

        Raises:
            Unavailable: The message may or may not have been accepted; call again.
            Contended: Others kept storing and deleting a message with its id.
        """
        [placed] = self.accept.placed(application.project, [new.body])
        due_at = due_at_of(new, engine_id)
        message = webhook_message(application, new, engine_id, placed, owed=owed, due_at=due_at)
        if eager is not None:
            [message] = self.first_orders().marked([message], eager)
        self.search_fields.add(application, message, new.body)

        def stored_before() -> Message | None:
            try:
                self.messages.accept([message])
            except Conflict:
                if stored := self.messages.message(message.key):
                    return stored
                raise
            return None

        if before := until_saved(stored_before, doing="storing a message"):
            return Posted(message=self._listed(before), payload=None)
        if eager is not None:
            self.first_orders().send([message])
        return Posted(message=self._listed(message), payload=Verbatim(new.payload_text))

    def posted_together(
        self, application: Application, given: Sequence[NewWebhook], owed: Sequence[tuple[str, ...]], *, wait_ms: int
    ) -> list[ListedMessage]:
        """Accept messages that were posted together, with ids in their order.

        Args:
            owed: The subscribers of each.
            wait_ms: Milliseconds until they are due.

        Raises:
            Unavailable: Some of them may have been accepted, or all; post all of them again.
        """
        placed = self.accept.placed(application.project, [each.body for each in given])

        def make(ids: Sequence[str]) -> list[Message]:
            return [
                webhook_message(
                    application, each, engine_id, place, owed=to, due_at=time_of_message_id(engine_id) + wait_ms
                )
                for each, engine_id, place, to in zip(given, ids, placed, owed, strict=True)
            ]

        return [self._listed(each) for each in self.accept.new(self.messages, len(given), make)]

    def once(self, application: Application, new: NewWebhook, owed: tuple[str, ...], *, cause: str, at: int) -> None:
        """Accept a message that the hub itself makes; repeating the call does not make it again.

        Args:
            cause: What it is made for: the same on each repetition for the same reason, and never used for another.
            at: When the cause happened, epoch milliseconds; the same on each repetition.

        Raises:
            Unavailable: The message may or may not have been accepted; call again.
        """
        [placed] = self.accept.placed(application.project, [new.body])

        def make(engine_id: str) -> Message:
            return replace(webhook_message(application, new, engine_id, placed, owed=owed, due_at=at), cause=cause)

        message, _ = self.accept.once(self.messages, make, cause=cause, at=at)
        self._listed(message)

    def _listed(self, message: Message) -> ListedMessage:
        listed = ListedMessage.of(message)
        self.log.list_message(listed)
        return listed


def due_at_of(new: NewWebhook, engine_id: str) -> int:
    """When a posted message is due, epoch milliseconds."""
    return max(time_of_message_id(engine_id), new.fields.deliver_at or 0)


def webhook_message(
    application: Application,
    new: NewWebhook,
    engine_id: str,
    placed: PlacedBody,
    *,
    owed: tuple[str, ...],
    due_at: int,
) -> Message:
    """A message of the engine, as it is stored.

    Args:
        placed: Where its bytes are stored.
        due_at: Not sent before this time, epoch milliseconds.
    """
    key = new.fields.ordering_key
    return Message(
        project=application.project,
        queue=queue_of(application.app_id),
        queue_uid=queue_uid(application.app_id),
        message_id=engine_id,
        body=placed.inline,
        body_ref=placed.ref,
        body_size=placed.size,
        headers=new.fields.as_headers(),
        accepted_at=time_of_message_id(engine_id),
        due_at=due_at,
        expires_at=due_at + new.retention_ms,
        subscriber_ids=owed,
        ordering=None if key is None else Ordering(key=key),
        trace=new.trace,
        hops=new.hops,
    )
