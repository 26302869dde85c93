"""Showing and expunging messages of applications."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import MessageNotFound, NotFound
from pushhub.base.ids import first_message_id, id_before
from pushhub.base.steps import MOST_STEPS, Steps
from pushhub.engine.attempts.in_order import cancelled
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import close, opening
from pushhub.engine.model.work import WorkOrder
from pushhub.webhooks.applications.applications import found_application
from pushhub.webhooks.model.ids import engine_id
from pushhub.webhooks.model.page import KeyRange, Page, Window, page_of, span_of
from pushhub.webhooks.model.redaction import TOO_COSTLY
from pushhub.webhooks.model.refusals import Gone, not_found
from pushhub.webhooks.wire.fields import NAME
from pushhub.webhooks.wire.message import payload_view

if TYPE_CHECKING:
    from pushhub.base.json_text import Verbatim
    from pushhub.base.ports import Clock
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import BodyStore, StoredMessages, WorkQueue
    from pushhub.webhooks.messages.named_fields import WebhooksFields
    from pushhub.webhooks.messages.ports import MessageLog
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.message import ListedMessage
    from pushhub.webhooks.model.redaction import Redaction
    from pushhub.webhooks.ports import ReadApplications


LIST_STEPS = 4 * MOST_STEPS
"""Steps for redacting all payloads of one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQuery:
    """A search for messages.

    Attributes:
        event_types: Of one of these; empty for all.
        channel: In this channel; empty for all.
        tag: With this tag; empty for all.
    """

    event_types: Collection[str] = ()
    channel: str = ""
    tag: str = ""

    def wants(self, event_type: str, channels: Collection[str], tags: Collection[str]) -> bool:
        """Whether a message matches."""
        return (
            (not self.event_types or event_type in self.event_types)
            and (not self.channel or self.channel in channels)
            and (not self.tag or self.tag in tags)
        )


def engine_span(window: Window) -> KeyRange:
    """The span of the engine's ids that a window of messages covers."""
    after = None if window.after is None else engine_id(window.after)
    if window.after is not None and after is None:
        # It has the right form, but no message ever had this id. A list only compares ids, so any id between two
        # messages will do.
        after = first_message_id(0)
    above = None if window.since is None else id_before(window.since)
    below = None if window.before is None else first_message_id(window.before)
    return span_of(replace(window, after=after), above=above, below=below)


class WebhooksMessages(Component):
    """The messages of applications. They are named by the hub's id or the producer's own.

    Methods raise ``NotFound`` for what is not there.
    """

    applications: ReadApplications
    log: MessageLog
    messages: StoredMessages
    bodies: BodyStore
    search_fields: WebhooksFields
    # Returns the retry queue when it is needed; a function that accepts messages has none.
    retry_queue: Callable[[], WorkQueue]
    clock: Clock

    def page(self, project_id: str, app: str, window: Window, query: MessageQuery) -> Page[ListedMessage]:
        """A page of an application's messages."""
        application = found_application(self.applications, project_id, app)
        found = self.log.messages(project_id, application.app_id, engine_span(window))
        return page_of(
            found,
            window,
            lambda each: each.message_id,
            lambda each: query.wants(each.fields.event_type, each.fields.channels, each.fields.tags),
        )

    def message(self, project_id: str, app: str, name: str) -> ListedMessage:
        """One message."""
        return self.of(found_application(self.applications, project_id, app), name)

    def of(self, application: Application, name: str) -> ListedMessage:
        """One message of an application."""
        engine = engine_id(name)
        if engine is None and NAME.fullmatch(name):
            engine = self.log.message_of_event(application.project, application.app_id, name)
        found = self.log.listed(application.project, application.app_id, engine) if engine else None
        if found is None:
            raise not_found()
        return found

    def redaction(self, project_id: str, app: str) -> Redaction:
        """What is redacted when an application's payloads are shown."""
        return found_application(self.applications, project_id, app).fields.redaction

    def payload(
        self, message: ListedMessage, redaction: Redaction, steps: Steps | None = None
    ) -> Mapping[str, Any] | Verbatim:
        """The payload of a message as it is shown, redacted.

        Args:
            steps: Shared by the messages of a list, :data:`LIST_STEPS` at first. When they are used up, the payloads
                that are left are withheld, and not even read. None for a message that is shown alone.
        """
        steps = steps or Steps()
        if redaction.payload and steps.left <= 0:
            return TOO_COSTLY
        content: bytes | None = None
        if message.has_payload(self.clock.now()):
            try:
                content = body_of(self.stored(message), self.bodies)
            except (Gone, MessageNotFound):
                content = None
        part = steps.part()
        shown = payload_view(content, redaction, part)
        steps.charge(part)
        return shown

    def stored(self, message: ListedMessage) -> Message:
        """A message as the engine has it.

        Raises:
            Gone: Its bytes are gone.
        """
        stored = None
        if message.has_payload(self.clock.now()):
            stored = self.messages.message(message.key)
        if stored is None:
            raise Gone
        return stored

    def expunge(self, project_id: str, app: str, name: str) -> None:
        """Erase the bytes of a message; it is no longer attempted, but stays listed."""
        application = found_application(self.applications, project_id, app)
        self._expunge(application, self.of(application, name))

    def expunge_all(self, project_id: str, app: str, names: Sequence[str]) -> dict[str, bool]:
        """Erase the bytes of several messages. Returns whether each had any, by its id or its producer's own."""
        application = found_application(self.applications, project_id, app)
        return {name: self._expunge_if_there(application, name) for name in names}

    def _expunge_if_there(self, application: Application, name: str) -> bool:
        try:
            found = self.of(application, name)
        except NotFound:
            return False
        self._expunge(application, found)
        return found.has_payload(self.clock.now())

    def _expunge(self, application: Application, message: ListedMessage) -> None:
        """The list is updated first: from then on the bytes are never shown, even if the other steps have to be
        repeated.
        """
        self.log.list_message(replace(message, expunged=True))
        found = self.messages.message_with_deliveries(message.key)
        if found is None:
            return
        stored, deliveries = found
        self._unindex(application, stored)
        for subscriber_id in {*stored.delivery_subscribers, *(each.subscriber_id for each in deliveries)}:
            self._cancel(stored, subscriber_id)
        if stored.ordering is not None:
            # The next worker that processes them releases the deliveries waiting behind them.
            orders = [
                WorkOrder(key=each, queue=stored.queue) for each in map(stored.delivery_key, stored.subscriber_ids)
            ]
            self.retry_queue().send([(order, 0) for order in orders])
        if stored.body_ref is not None:
            self.bodies.erase(stored.body_ref)
        self.messages.delete(stored)

    def _unindex(self, application: Application, message: Message) -> None:
        """Nobody finds it any more by what it said. Where no field is named, its body is not read for this."""
        if not application.fields.search_fields:
            return
        with suppress(MessageNotFound):
            self.search_fields.remove(application, message, body_of(message, self.bodies))

    def _cancel(self, message: Message, subscriber_id: str) -> None:
        """End a delivery: its next attempt may be queued together with the bytes, so the message would not be looked up
        again.
        """

        def once() -> None:
            delivery = self.messages.delivery(message.delivery_key(subscriber_id)) or opening(message, subscriber_id)
            if delivery.settled and delivery.asked_at is None:
                return
            now = self.clock.now()
            if delivery.settled:
                ended = close(delivery, delivery.state, now, "expunged")
            else:
                ended = cancelled(self.messages, delivery, message, now, "expunged")
            self.messages.save(ended)

        until_saved(once, doing="cancelling a delivery")
