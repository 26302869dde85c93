"""Background tasks that go through an application's messages, oldest first: they resend messages, send those never
sent, erase contents, or count messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from pushhub.base import json_text
from pushhub.base.errors import Forbidden, MessageNotFound, Unreadable
from pushhub.base.ids import first_message_id, id_before
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.webhooks.model.endpoint import Endpoint, wants
from pushhub.webhooks.model.event_type import seen_with
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.model.payload_filter import lets_through
from pushhub.webhooks.model.refusals import Gone
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus, allowance

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.attempts.resend import Resend
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import BodyStore, Deliveries
    from pushhub.webhooks.model.message import ListedMessage
    from pushhub.webhooks.ports import ReadEndpoints

BATCH = 25
"""Messages per step: a cancelled task sends at most this many more."""

CLOCKS_MS = 60_000
"""More than the clocks of two execution environments ever differ."""

_SUCCESS, _FAIL, _SENDING = 0, 2, 3
_ARRIVED = frozenset({DeliveryState.DELIVERED, DeliveryState.ACKNOWLEDGED})


class MessagesInOrder(Protocol):
    """The messages of applications."""

    def messages(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[ListedMessage]:
        """The messages of an application with the engine's ids in a span, in its direction."""


class Tries(Protocol):
    """Deliveries of messages, and attempts at them."""

    def delivery(self, message: ListedMessage, endpoint_id: str) -> tuple[Message, Delivery | None] | None:
        """A message as the engine has it, with its delivery to an endpoint if there is one yet;
        None when its content is gone.
        """

    def ask(self, message: Message, endpoint_id: str) -> object:
        """Request one immediate attempt.

        Raises:
            Forbidden: It cannot be attempted again.
        """

    def add(self, message: Message, endpoint_id: str) -> object:
        """Create a delivery that did not exist, with all automatic retries."""

    def payload(self, message: Message) -> Mapping[str, Any] | None:
        """The JSON object that a message's bytes are; None when they are none, or gone."""


class EngineCopies(Protocol):
    """Finds the engine's copy of a message."""

    def stored(self, message: ListedMessage) -> Message:
        """The message.

        Raises:
            Gone: Its content is gone.
        """


class EngineTries(Component):
    """Implements :class:`Tries` with the engine."""

    messages: EngineCopies
    deliveries: Deliveries
    resend: Resend
    bodies: BodyStore

    def __post_init__(self) -> None:
        self.ask = self.resend.ask
        self.add = self.resend.add

    def delivery(self, message: ListedMessage, endpoint_id: str) -> tuple[Message, Delivery | None] | None:
        """A listed message as the engine stores it, with its delivery to an endpoint; None when it is gone."""
        try:
            stored = self.messages.stored(message)
        except Gone:
            return None
        return stored, self.deliveries.delivery(stored.delivery_key(endpoint_id))

    def payload(self, message: Message) -> Mapping[str, Any] | None:
        """The JSON object that a message's bytes are; None when they are none, or gone."""
        try:
            return payload_of(body_of(message, self.bodies))
        except MessageNotFound:
            return None


def payload_of(content: bytes) -> Mapping[str, Any] | None:
    """The JSON object that a message's bytes are; None when they are none."""
    try:
        payload = json_text.read(content)
    except json_text.NotJson:
        return None
    return payload if isinstance(payload, dict) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Some messages, and whether they are the last ones."""

    messages: list[ListedMessage]
    last: bool


def _part(log: MessagesInOrder, task: Task, app_id: str, most: int) -> _Part:
    """The next messages of a task."""
    span = KeyRange(above=task.cursor or id_before(task.ask.since), below=first_message_id(task.ask.until))
    found = list(islice(log.messages(task.project, app_id, span), most + 1))
    return _Part(messages=found[:most], last=len(found) <= most)


UNREADABLE = "messagesUnreadable"
"""How many messages a task has passed over, because nobody can read what is stored of them."""


def _advanced(task: Task, part: _Part, now: int, process: Callable[[ListedMessage], bool]) -> Task:
    """A task's state after processing some messages, each of which is sent, or erased, or not. One that cannot be read
    keeps none behind it waiting.
    """
    sent = unread = 0
    for each in part.messages:
        try:
            sent += process(each)
        except Unreadable:
            unread += 1
    if part.messages:
        looked = task.looked + len(part.messages)
        cursor = part.messages[-1].engine_id
        task = replace(task, cursor=cursor, looked=looked, sent=task.sent + sent, updated_at=now)
    if unread:
        before = task.result.get(UNREADABLE)
        task = replace(task, result={**task.result, UNREADABLE: unread + (before if isinstance(before, int) else 0)})
    return task.ended(TaskStatus.FINISHED, now) if part.last else task


def is_chosen(ask: TaskAsk, message: ListedMessage) -> bool:
    """Whether a task is about a message, as far as the message alone shows."""
    return (
        (not ask.event_types or message.fields.event_type in ask.event_types)
        and (ask.channel is None or ask.channel in message.fields.channels)
        and (ask.tag is None or ask.tag in message.fields.tags)
    )


def _stands_so(ask: TaskAsk, delivery: Delivery | None) -> bool:
    if ask.status_code_class is not None:
        code = delivery.last.status_code if delivery and delivery.last else None
        if code is None or code // 100 * 100 != ask.status_code_class:
            return False
    return ask.status is None or ask.status == _standing(delivery)


def _standing(delivery: Delivery | None) -> int | None:
    """The status of a delivery, as a number of the API; None before its first attempt."""
    if delivery is None or not delivery.attempts:
        return None
    if delivery.state in _ARRIVED:
        return _SUCCESS
    return _FAIL if delivery.settled else _SENDING


class Replay(Component):
    """Resends messages, or sends those that were never sent."""

    endpoints: ReadEndpoints
    log: MessagesInOrder
    tries: Tries
    # See :meth:`pushhub.webhooks.applications.event_types.WebhooksEventTypes.flags_for`.
    flags_for: Callable[[Endpoint, str], Sequence[str]]
    clock: Clock

    def step(self, task: Task) -> Task:
        """Process the next messages. An attempt requested by an earlier, interrupted step is not requested again."""
        now = self.clock.now()
        endpoint = self.endpoints.endpoint(task.project, task.app_id, task.endpoint_id)
        if endpoint is None or not endpoint.active:
            why = "The endpoint is deleted" if endpoint is None else "The endpoint is disabled"
            return task.ended(TaskStatus.FAILED, now, detail=why)
        allowed = allowance(task, now)
        if allowed == 0:
            return task
        part = _part(self.log, task, task.app_id, BATCH if allowed is None else min(BATCH, allowed))
        return _advanced(task, part, now, lambda each: self._sent(task, endpoint, each))

    def _sent(self, task: Task, endpoint: Endpoint, logged: ListedMessage) -> bool:
        if not is_chosen(task.ask, logged):
            return False
        found = self.tries.delivery(logged, endpoint.endpoint_id)
        if found is None:
            return False
        message, delivery = found
        if not self._is_due(task, endpoint, logged, message, delivery):
            return False
        if not task.ask.dry_run and (not _is_done(task, delivery) or _may_lack_its_order(task, delivery)):
            try:
                send = self.tries.add if task.kind is TaskKind.REPLAY_MISSING else self.tries.ask
                send(message, endpoint.endpoint_id)
            except Forbidden:
                return False
        return True

    def _is_due(
        self, task: Task, endpoint: Endpoint, logged: ListedMessage, message: Message, delivery: Delivery | None
    ) -> bool:
        """Whether a task has to send a message."""
        if task.kind is TaskKind.BULK_REPLAY:
            return _stands_so(task.ask, delivery) and self._may_be_sent(task, endpoint, logged, message, delivery)
        if task.kind is TaskKind.RECOVER:
            return _standing(delivery) in (_FAIL, _SENDING) or (delivery is not None and _is_done(task, delivery))
        owed = _was_owed(message, endpoint)
        never = not owed and (delivery is None or delivery.added)
        return (
            never
            and wants(
                endpoint,
                logged.fields.event_type,
                logged.fields.channels,
                type_flags=self.flags_for(endpoint, logged.fields.event_type),
            )
            and (delivery is None or _is_done(task, delivery))
            and self._lets_through(endpoint, message)
        )

    def _lets_through(self, endpoint: Endpoint, message: Message) -> bool:
        """Whether the endpoint's payload filters let a message through. What was posted as raw text passes none: its
        payload was not kept.
        """
        filters = endpoint.fields.filters
        if not filters:
            return True
        payload = self.tries.payload(message)
        return payload is not None and lets_through(filters, payload)

    def _may_be_sent(
        self, task: Task, endpoint: Endpoint, logged: ListedMessage, message: Message, delivery: Delivery | None
    ) -> bool:
        """Whether a portal may have a message sent to an endpoint: it was owed to it, or the portal could choose it."""
        if _was_owed(message, endpoint) or delivery is not None:
            return True
        asked_by = replace(endpoint, flags=task.ask.flags)
        return seen_with(task.ask.flags, self.flags_for(asked_by, logged.fields.event_type))


def _was_owed(message: Message, endpoint: Endpoint) -> bool:
    return endpoint.endpoint_id in message.delivery_subscribers


def _is_done(task: Task, delivery: Delivery | None) -> bool:
    """Whether the delivery was resent since the task began, by the task or by anyone else."""
    if delivery is None:
        return False
    if task.kind is TaskKind.REPLAY_MISSING:
        return delivery.added and (delivery.last is None or delivery.last.started_at >= task.created_at)
    return delivery.last is not None and delivery.last.manual and delivery.last.started_at >= task.created_at


def _may_lack_its_order(task: Task, delivery: Delivery | None) -> bool:
    """Whether a delivery was added since the task began, and never tried: the run that added it may have died before it
    queued it. Adding it again does that, and nothing else.
    """
    if task.kind is not TaskKind.REPLAY_MISSING or delivery is None or delivery.attempts or delivery.due_at is None:
        return False
    return delivery.due_at >= task.created_at - CLOCKS_MS


class Erasing(Component):
    """Erases the contents of all messages of an application."""

    log: MessagesInOrder
    expunge: Callable[[str, str, str], object]  # Erases the content of one, by project, application and id.
    clock: Clock

    def step(self, task: Task) -> Task:
        """Erase the next ones. Safe to repeat."""
        part = _part(self.log, task, task.app_id, BATCH)
        return _advanced(task, part, self.clock.now(), lambda each: self._erased(task, each))

    def _erased(self, task: Task, message: ListedMessage) -> bool:
        self.expunge(task.project, task.app_id, message.message_id)
        return True


COUNTED = 500
"""Messages counted per step."""

MOST_RESULT = 300_000
"""Characters of what was counted: some 7,500 applications. A task is one item of the table, which ends at 400 KB."""


class Counting(Component):
    """Counts messages by application, or by event type."""

    # The id of a project's first application whose id is greater than one given, or None.
    next_app: Callable[[str, str], str | None]
    log: MessagesInOrder
    clock: Clock

    def step(self, task: Task) -> Task:
        """Count the next messages of one application, or go on to the next one.

        The cursor is ``application`` or ``application/message``.
        """
        now = self.clock.now()
        app_id, inside, message_id = task.cursor.partition("/")
        if not inside:
            following = self._following(task, app_id)
            if following is None:
                return task.ended(TaskStatus.FINISHED, now)
            app_id = following
        part = _part(self.log, replace(task, cursor=message_id), app_id, COUNTED)
        counted = _counted(task.result, task.kind, app_id, part.messages)
        if len(json_text.write(counted)) > MOST_RESULT:
            return task.ended(
                TaskStatus.FAILED, now, detail="Too many to count together: name some of the applications"
            )
        looked = task.looked + len(part.messages)
        cursor = app_id if part.last else f"{app_id}/{part.messages[-1].engine_id}"
        return replace(task, cursor=cursor, result=counted, looked=looked, updated_at=now)

    def _following(self, task: Task, app_id: str) -> str | None:
        if not task.ask.apps:
            # The hidden application of operational webhooks has the lowest id of all, and is not the project's own.
            return self.next_app(task.project, max(app_id, OPERATIONAL_APP))
        return next((each for each in sorted(task.ask.apps) if each > app_id), None)


def _counted(
    before: Mapping[str, object], kind: TaskKind, app_id: str, messages: list[ListedMessage]
) -> dict[str, object]:
    name = "messagesByApp" if kind is TaskKind.APP_STATS else "messagesByEventType"
    stored = before.get(name)
    counts: dict[str, int] = dict(stored) if isinstance(stored, dict) else {}
    for each in messages:
        key = app_id if kind is TaskKind.APP_STATS else each.fields.event_type
        counts[key] = counts.get(key, 0) + 1
    return {**before, name: counts}
