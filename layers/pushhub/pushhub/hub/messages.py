"""The hub's messages as operators see and handle them: queues and counts, message details, try now, archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import read_change_save
from pushhub.base.errors import MessageNotFound, NotFound, Unavailable
from pushhub.base.ids import first_message_id, id_before
from pushhub.base.times import iso_time
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, DeliveryState, TargetStatus, close, opening, resume
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.work import WorkOrder
from pushhub.hub.model.internal_queues import INCOMING_UID
from pushhub.hub.model.log import (
    ARCHIVED_BY_A_PERSON,
    ARCHIVED_DURING_AN_ATTEMPT,
    PERSON,
    HubState,
    Location,
    LoggedMessage,
    LogList,
    OpenRequest,
    RecordedAnswer,
    log_entry,
)
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.object_ids import from_object_id
from pushhub.hub.ports import Answers, Entries, Notices, OpenRequests
from pushhub.hub.wire.fields import InvalidObject

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import BodyStore, StoredMessages, WorkQueue
    from pushhub.hub.model.notice import Notice

PER_PAGE = 25
"""Messages on a page (hub protocol v5)."""

LOOKED_AT = 2500
"""Messages that one listing examines, newest first: a hundred pages. Older ones can be found by date or id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search in a queue.

    Attributes:
        location: The queue.
        page: From 1.
        type: Only messages of that type.
        state: Only messages in that state.
        mapping_id: Only messages for that mapping.
        source: In the archive: accepted (the default) or incoming messages.
        message_id: Only that one (object id).
        start_at: Only messages created then or later, epoch milliseconds.
        end_at: Only messages created before, epoch milliseconds.
    """

    location: Location
    page: int = 1
    type: str | None = None
    state: HubState | None = None
    mapping_id: str | None = None
    source: Location | None = None
    message_id: str | None = None
    start_at: int | None = None
    end_at: int | None = None

    @property
    def listings(self) -> tuple[LogList, ...]:
        """The lists to read for this search."""
        every = LogList.of(self.location)
        if self.location is Location.ARCHIVED:
            return every[1:] if self.source is Location.INCOMING else every[:1]
        if self.location is Location.ACCEPTED and self.state is not None:
            return tuple(each for each in every if each.value == self.state.value)
        return every

    def wants(self, entry: LoggedMessage) -> bool:
        """Whether a message from these lists matches."""
        state = self.state
        if state is None and self.location is Location.ARCHIVED and self.source is None:
            # Hub protocol v5: the archive shows completed messages unless told otherwise.
            state = HubState.COMPLETED
        return (
            (self.type is None or entry.type == self.type)
            and (state is None or entry.shown_state is state)
            and (self.mapping_id is None or entry.mapping_id == self.mapping_id)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """One page of a queue.

    Attributes:
        page: Its number, from 1.
        pages: How many there are.
        entries: Newest first.
        open: The request that a service is working on, by message id.
    """

    page: int
    pages: int
    entries: Sequence[LoggedMessage]
    open: Mapping[str, OpenRequest]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDetails:
    """Everything about one message.

    Attributes:
        content: Its content; None when it is no longer kept.
        recorded: Its last answer, in full.
        open: The request that its service is working on, if any.
        children: Messages it led to.
        notifications: Notifications that refer to it.
    """

    entry: LoggedMessage
    content: HubMessage | None
    recorded: RecordedAnswer | None
    open: OpenRequest | None
    children: Sequence[LoggedMessage]
    notifications: Sequence[Notice]


class MessageEntries(Entries, Answers, OpenRequests, Notices, Protocol):
    """The parts of the log that are read for a message."""


class HubMessages(Component):
    """Shows and handles messages. Methods raise ``NotFound`` for what is not there."""

    log: MessageEntries
    messages: StoredMessages  # Messages and deliveries: the source of truth that the log is derived from.
    bodies: BodyStore
    retry_queue: Callable[[], WorkQueue]  # Created only when somebody tries a message now.
    clock: Clock

    def counts(self, project_id: str) -> dict[str, int]:
        """Messages in each queue and state, as the hub's overview shows them."""
        counted = {each: self.log.count(project_id, each) for each in LogList}
        shown = {each.value: counted[each] for each in (LogList.INCOMING, *LogList.of(Location.ACCEPTED))}
        return shown | {"archived": sum(counted[each] for each in LogList.of(Location.ARCHIVED))}

    def page(self, project_id: str, query: Query) -> QueuePage:
        """A page of a queue."""
        entries = [each for each in self._candidates(project_id, query) if query.wants(each)]
        start = (query.page - 1) * PER_PAGE
        pages = max(1, -(-len(entries) // PER_PAGE))
        shown = entries[start : start + PER_PAGE]
        return QueuePage(page=query.page, pages=pages, entries=shown, open=self._open(project_id, shown))

    def _open(self, project_id: str, entries: Sequence[LoggedMessage]) -> dict[str, OpenRequest]:
        accepted = {each.message_id: each for each in entries if each.location is Location.ACCEPTED}
        noted, now = self.log.open_requests(project_id, [*accepted]), self.clock.now()
        return {each: request for each, request in noted.items() if request.may_be_open(accepted[each], now)}

    def _candidates(self, project_id: str, query: Query) -> list[LoggedMessage]:
        if query.message_id is not None:
            message_id = from_object_id(query.message_id)
            entry = self.log.entry(project_id, message_id) if message_id else None
            return [entry] if entry and entry.listing in query.listings else []
        return self.log.listed(
            project_id,
            query.listings,
            before=None if query.end_at is None else first_message_id(query.end_at),
            after=None if query.start_at is None else id_before(query.start_at),
            limit=LOOKED_AT,
        )

    def details(self, project_id: str, object_id: str) -> MessageDetails:
        """Everything about a message."""
        entry = self._entry(project_id, object_id)
        message = self.messages.message(MessageKey(project_id, _uid(entry), entry.message_id))
        recorded = self.log.last_answer(project_id, entry.message_id)
        return MessageDetails(
            entry=entry,
            content=self._content(message) if message else None,
            recorded=self._whole(recorded) if recorded else None,
            open=self._open(project_id, [entry]).get(entry.message_id),
            children=self.log.entries(project_id, entry.children),
            notifications=self.log.notifications_of(project_id, entry.message_id),
        )

    def attempt_now(self, project_id: str, object_id: str) -> None:
        """Try a waiting or parked message immediately.

        Raises:
            InvalidObject: It is not in the accepted queue, or its service is working on it.
            Unavailable: The retry may or may not have been scheduled; call again.
        """
        request = self._open_request(project_id, object_id)
        if request is not None:
            since, until = iso_time(request.opened_at), iso_time(request.ends_at)
            raise InvalidObject({"base": [f"It is being attempted since {since}: wait for the answer, or for {until}"]})
        delivery = self._change(project_id, object_id, lambda delivery: resume(delivery, self.clock.now()))
        order = WorkOrder(key=delivery.key, queue=delivery.queue)
        try:
            self.retry_queue().send([(order, 0)])
        except Unavailable:
            return  # it is scheduled, so it is tried within a minute

    def archive(self, project_id: str, object_id: str) -> None:
        """Give up on a waiting or parked message: it is never tried again.

        An attempt in progress cannot be called back: what its answer asks for is done, and the message says so.

        Raises:
            InvalidObject: It is not in the accepted queue.
        """
        attempted = self._open_request(project_id, object_id) is not None
        reason = ARCHIVED_DURING_AN_ATTEMPT if attempted else ARCHIVED_BY_A_PERSON

        def archived(delivery: Delivery) -> Delivery:
            now = self.clock.now()
            closed = close(delivery, DeliveryState.CANCELLED, now)
            return replace(closed, statuses={**closed.statuses, PERSON: TargetStatus(message=reason, last_try_at=now)})

        self._change(project_id, object_id, archived)

    def _open_request(self, project_id: str, object_id: str) -> OpenRequest | None:
        entry = self._entry(project_id, object_id)
        return self._open(project_id, [entry]).get(entry.message_id)

    def _change(self, project_id: str, object_id: str, decide: Callable[[Delivery], Delivery]) -> Delivery:
        entry = self._entry(project_id, object_id)

        def read() -> tuple[Message, Delivery]:
            found = self.messages.message_with_deliveries(MessageKey(project_id, _uid(entry), entry.message_id))
            if found is None or entry.mapping_id is None:
                raise InvalidObject({"base": ["The message is not in the accepted queue"]})
            message, deliveries = found
            return message, deliveries[0] if deliveries else opening(message, message.subscriber_ids[0])

        def decided(current: tuple[Message, Delivery]) -> tuple[Message, Delivery]:
            message, delivery = current
            if delivery.settled:
                self.log.put(log_entry(message, delivery, self.clock.now()))
                raise InvalidObject({"base": ["The message is not in the accepted queue"]})
            return message, decide(delivery)

        message, delivery = read_change_save(
            read, decided, lambda changed: self.messages.save(changed[1]), doing="changing a delivery under contention"
        )
        self.log.put(log_entry(message, delivery, self.clock.now()))
        return delivery

    def _entry(self, project_id: str, object_id: str) -> LoggedMessage:
        message_id = from_object_id(object_id)
        entry = self.log.entry(project_id, message_id) if message_id else None
        if entry is None:
            raise NotFound("Message not found.")
        return entry

    def _content(self, message: Message) -> HubMessage | None:
        try:
            return HubMessage.decode(body_of(message, self.bodies))
        except MessageNotFound:
            return None

    def _whole(self, recorded: RecordedAnswer) -> RecordedAnswer:
        if recorded.body_ref is None:
            return recorded
        try:
            body = self.bodies.get(recorded.body_ref)
        except MessageNotFound:
            return recorded
        return replace(recorded, answer=replace(recorded.answer, body=body))


def _uid(entry: LoggedMessage) -> str:
    return entry.mapping_id or INCOMING_UID
