"""How messages enter the hub: pushed by a store, requested by an answer, raised by a notification, or emitted by a
scheduler.

All of them go onto the incoming queue, an internal push queue of the engine. Accepting a message is a single durable
write by the engine; the stream takes it from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.base.ids import derived_message_id
from pushhub.engine.component import Component
from pushhub.engine.model.message import Message
from pushhub.engine.model.search import index_entries
from pushhub.hub.model.internal_queues import INCOMING_QUEUE, INCOMING_UID, ROUTER, service_queue
from pushhub.hub.model.log import log_entry
from pushhub.hub.model.message import LIFE_MS, HubMessage, headers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.acceptance.accept import AcceptBodies, PlacedBody
    from pushhub.engine.model.trace import Trace
    from pushhub.engine.ports import MessageSink, SearchIndex
    from pushhub.engine.projects.quotas import Quotas
    from pushhub.hub.model.mapping import ServiceMapping
    from pushhub.hub.ports import MessageTypes, WriteEntries


MOST_NOTED = 10_000
"""Message types that an environment remembers to have noted. Producers choose them."""


class HubIntake(Component):
    """Accepts messages of the hub."""

    accept: AcceptBodies
    messages: MessageSink
    settings: MessageTypes
    log: WriteEntries
    quotas: Callable[[], Quotas]  # Bounds what producers push; made when one does.
    index: Callable[[], SearchIndex]
    clock: Clock
    telemetry: Telemetry  # Reports messages that could not be entered into the log.

    def __post_init__(self) -> None:
        self._noted: set[tuple[str, str]] = set()

    def push(self, project_id: str, message: HubMessage, *, hops: int = 0, trace: Trace | None = None) -> Message:
        """Accept a message from a producer, of a trace if its request has one.

        Args:
            hops: Number of messages that led to it: a producer may be a mapping.

        Raises:
            QuotaExceeded: The project pushes more than it may.
            Unavailable: The message may or may not have been accepted; the producer has to push again.
        """
        self.quotas().take(project_id, 1)
        body = self._placed(project_id, message)

        def build(ids: Sequence[str]) -> list[Message]:
            now = self.clock.now()
            return [_incoming(project_id, each, message, body, now=now, hops=hops, trace=trace) for each in ids]

        (accepted,) = self.accept.new(self.messages, 1, build)
        self._show(accepted)
        return accepted

    def derive(
        self,
        project_id: str,
        message: HubMessage,
        *,
        cause: str,
        at: int,
        parent_id: str | None,
        hops: int,
        root: str | None = None,
        trace: Trace | None = None,
    ) -> Message:
        """Accept a message that the hub itself made. Idempotent: repeating the call does not create another one.

        Args:
            cause: Identifies why it is made: the same on every repetition, and unique to this message.
            at: Time of the cause, epoch milliseconds; the same on every repetition.
            parent_id: Decimal id of the message that led to it.
            hops: Number of messages that led to it.
            root: The accepted message it descends from.

        Raises:
            Unavailable: Nothing may be assumed; call again.
        """
        body = self._placed(project_id, message)

        def build(message_id: str) -> Message:
            return _incoming(
                project_id,
                message_id,
                message,
                body,
                now=self.clock.now(),
                cause=cause,
                parent_id=parent_id,
                hops=hops,
                root=root,
                trace=trace,
            )

        accepted, _ = self.accept.once(self.messages, build, cause=cause, at=at)
        return accepted

    @staticmethod
    def copy_id(incoming: Message, mapping_id: str) -> str:
        """The id of an incoming message's copy for a mapping, unless another message happens to have that id."""
        return derived_message_id(incoming.accepted_at, _copy_cause(incoming, mapping_id), 0)

    def copy(self, incoming: Message, message: HubMessage, mapping: ServiceMapping) -> Message:
        """Accept the copy of an incoming message for a mapping. Idempotent: only one copy is made.

        Args:
            incoming: The incoming message; its bytes are shared.

        Raises:
            Unavailable: Nothing may be assumed; call again.
        """
        mapping_id = mapping.mapping_id
        cause = _copy_cause(incoming, mapping_id)
        now = self.clock.now()

        def build(message_id: str) -> Message:
            copy = Message(
                project=incoming.project,
                queue=service_queue(mapping_id),
                queue_uid=mapping_id,
                message_id=message_id,
                body=incoming.body,
                body_ref=incoming.body_ref,
                body_size=incoming.body_size,
                headers=headers_of(message.type, incoming.message_id, mapping.name),
                accepted_at=now,
                due_at=max(now, incoming.accepted_at + message.delay_s * 1000),
                expires_at=now + LIFE_MS,
                subscriber_ids=(mapping_id,),
                hops=incoming.hops,
                root=incoming.root_id,
                cause=cause,
                trace=incoming.trace,
            )
            self._enter(copy, message, mapping)
            return copy

        copy, _ = self.accept.once(self.messages, build, cause=cause, at=incoming.accepted_at)
        self._show(copy)
        return copy

    def _enter(self, copy: Message, message: HubMessage, mapping: ServiceMapping) -> None:
        """Enter a copy that is about to be stored into the index, if its mapping names fields."""
        if not mapping.search_fields:
            return
        entries = index_entries(mapping.search_fields, copy, message.payload_text.encode())
        if entries:
            self.index().add(entries)

    def note_type(self, project_id: str, message_type: str) -> None:
        """Record that messages of that type exist; once per execution environment."""
        key = (project_id, message_type)
        if key not in self._noted:
            self.settings.note_type(project_id, message_type)
            if len(self._noted) >= MOST_NOTED:
                self._noted.clear()
            self._noted.add(key)

    def _show(self, message: Message) -> None:
        """Enter an accepted message into the log. If that fails, it is made up for when the message is processed."""
        try:
            self.log.put(log_entry(message, None, self.clock.now()))
        except Unavailable as error:
            self.telemetry.event("message_not_listed", error=str(error), message_id=message.message_id)

    def _placed(self, project_id: str, message: HubMessage) -> PlacedBody:
        (placed,) = self.accept.placed(project_id, [message.encode()])
        return placed


def _copy_cause(incoming: Message, mapping_id: str) -> str:
    return f"route/{incoming.message_id}/{mapping_id}"


def _incoming(
    project_id: str,
    message_id: str,
    message: HubMessage,
    body: PlacedBody,
    *,
    now: int,
    cause: str | None = None,
    parent_id: str | None = None,
    hops: int = 0,
    root: str | None = None,
    trace: Trace | None = None,
) -> Message:
    return Message(
        project=project_id,
        queue=INCOMING_QUEUE,
        queue_uid=INCOMING_UID,
        message_id=message_id,
        body=body.inline,
        body_ref=body.ref,
        body_size=body.size,
        headers=headers_of(message.type, parent_id),
        accepted_at=now,
        due_at=now,
        expires_at=now + LIFE_MS,
        subscriber_ids=(ROUTER,),
        hops=hops,
        root=root,
        cause=cause,
        trace=trace,
    )
