"""Messages enter the hub: pushed by a store, asked for by an answer, raised by a notification, or ticked by a scheduler.

All of them go onto the incoming queue, which is an internal push queue of the engine: acceptance is the engine's one durable write, and the
stream takes it from there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.ids import MessageIds, derived_message_id
from pushhub.base.ports import Clock, Telemetry
from pushhub.engine.model.message import BodyRef, Message
from pushhub.engine.ports import BodyStore, MessageStore
from pushhub.hub.model.log import log_entry
from pushhub.hub.model.message import (
    INCOMING_QUEUE,
    INCOMING_UID,
    LIFE_MS,
    ROUTER,
    HubMessage,
    headers_of,
    service_queue,
)
from pushhub.hub.ports import HubLog, HubSettings
from pushhub.ironmq.post import INLINE_BODY_LIMIT

__all__ = ["HubIntake"]

ID_ROUNDS = 5
"""How often an id is made anew when another message has it already."""


class HubIntake:
    """Accepts messages of the hub.

    Args:
        messages: Where they are kept.
        bodies: Large bodies, kept as long as messages of the hub are.
        settings: Told of the types that exist.
        log: Told of messages that were pushed.
        clock: Time.
        telemetry: Told what could not be shown.
        next_worker: A number no other execution environment has, for message ids.
    """

    def __init__(
        self,
        *,
        messages: MessageStore,
        bodies: BodyStore,
        settings: HubSettings,
        log: HubLog,
        clock: Clock,
        telemetry: Telemetry,
        next_worker: Callable[[], int],
    ) -> None:
        self._messages = messages
        self._bodies = bodies
        self._settings = settings
        self._log = log
        self._clock = clock
        self._telemetry = telemetry
        self._next_worker = next_worker
        self._made_ids: MessageIds | None = None
        self._noted: set[tuple[str, str]] = set()

    def push(self, project_id: str, message: HubMessage) -> Message:
        """Accept a message from a producer.

        Raises:
            Unavailable: Nothing may be assumed; the producer has to push again.
        """
        body, ref = self._placed(project_id, message)
        for _ in range(ID_ROUNDS):
            now = self._clock.now()
            accepted = _incoming(project_id, self._ids().next(now), message, body, ref, now=now)
            try:
                self._messages.accept([accepted])
            except Conflict:
                continue
            self._show(accepted)
            return accepted
        raise Unavailable("finding a free message id")

    def derive(
        self, project_id: str, message: HubMessage, *, cause: str, at: int, parent_id: str | None, hops: int
    ) -> Message:
        """Accept a message that the hub itself made. Repeating the call does not make another one.

        Args:
            project_id: The store.
            message: What to accept.
            cause: What it is made for: the same each time, and never the same for another.
            at: When that was, epoch milliseconds; the same each time.
            parent_id: Decimal id of the message that led to it.
            hops: How many messages led to it.

        Raises:
            Unavailable: Nothing may be assumed; call again.
        """
        body, ref = self._placed(project_id, message)
        for bump in itertools.count():
            made = _incoming(
                project_id,
                derived_message_id(at, cause, bump),
                message,
                body,
                ref,
                now=self._clock.now(),
                cause=cause,
                parent_id=parent_id,
                hops=hops,
            )
            if self._messages.accept_once(made):
                return made
        raise AssertionError("unreachable: the numbers do not end")

    def copy(self, incoming: Message, message: HubMessage, mapping_id: str) -> Message:
        """Accept the copy of an incoming message for a mapping; one only, however often it is called.

        Args:
            incoming: The incoming message; its bytes are shared.
            message: Its content.
            mapping_id: Whom the copy is for.

        Raises:
            Unavailable: Nothing may be assumed; call again.
        """
        cause = f"route/{incoming.message_id}/{mapping_id}"
        now = self._clock.now()
        for bump in itertools.count():
            made = Message(
                project=incoming.project,
                queue=service_queue(mapping_id),
                queue_uid=mapping_id,
                message_id=derived_message_id(incoming.accepted_at, cause, bump),
                body=incoming.body,
                body_ref=incoming.body_ref,
                body_size=incoming.body_size,
                headers=headers_of(message.type, incoming.message_id),
                accepted_at=now,
                due_at=max(now, incoming.accepted_at + message.delay_s * 1000),
                expires_at=now + LIFE_MS,
                subscriber_ids=(mapping_id,),
                hops=incoming.hops,
                cause=cause,
            )
            if self._messages.accept_once(made):
                self._show(made)
                return made
        raise AssertionError("unreachable: the numbers do not end")

    def note_type(self, project_id: str, message_type: str) -> None:
        """Remember that messages of that type exist; once per execution environment."""
        key = (project_id, message_type)
        if key not in self._noted:
            self._settings.note_type(project_id, message_type)
            self._noted.add(key)

    def _show(self, message: Message) -> None:
        """Enter an accepted message into the log. What fails here is made up for when the message is worked on."""
        try:
            self._log.put(log_entry(message, None, self._clock.now()))
        except Unavailable as error:
            self._telemetry.event("message_not_listed", error=str(error), message_id=message.message_id)

    def _placed(self, project_id: str, message: HubMessage) -> tuple[bytes, BodyRef | None]:
        body = message.encode()
        if len(body) <= INLINE_BODY_LIMIT:
            return body, None
        (ref,) = self._bodies.put(project_id, [body], self._clock.now())
        return body, ref

    def _ids(self) -> MessageIds:
        if self._made_ids is None:
            self._made_ids = MessageIds(self._next_worker())
        return self._made_ids


def _incoming(
    project_id: str,
    message_id: str,
    message: HubMessage,
    body: bytes,
    ref: BodyRef | None,
    *,
    now: int,
    cause: str | None = None,
    parent_id: str | None = None,
    hops: int = 0,
) -> Message:
    return Message(
        project=project_id,
        queue=INCOMING_QUEUE,
        queue_uid=INCOMING_UID,
        message_id=message_id,
        body=None if ref else body,
        body_ref=ref,
        body_size=len(body),
        headers=headers_of(message.type, parent_id),
        accepted_at=now,
        due_at=now,
        expires_at=now + LIFE_MS,
        subscriber_ids=(ROUTER,),
        hops=hops,
        cause=cause,
    )
