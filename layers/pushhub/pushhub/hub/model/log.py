"""What the hub shows about its messages: the state of each one, and what its service answered.

Everything here is derived from the engine's messages and deliveries. It is stored separately because the admin client
lists, filters and counts by attributes the engine has no index for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pushhub.base.fields import APART, field_metadata
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.hub.model.internal_queues import INCOMING_QUEUE, ROUTER, mapping_of_queue
from pushhub.hub.model.message import consumer_of, parent_of, type_of

if TYPE_CHECKING:
    from pushhub.engine.model.message import BodyRef, Message

PERSON = "person"
"""The subscriber name under which a delivery's statuses record a person's decision."""

ARCHIVED_BY_A_PERSON = "Archived by a person"
ARCHIVED_DURING_AN_ATTEMPT = "Archived by a person during an attempt, which the service may still have carried out"


class Location(StrEnum):
    """The queue a message is in, in the hub's words."""

    INCOMING = "incoming"
    ACCEPTED = "accepted"
    ARCHIVED = "archived"


class HubState(StrEnum):
    """The state of a message, in the hub's words."""

    PENDING = "pending"
    FAILING = "failing"
    SCHEDULED = "scheduled"
    PARKED = "parked"
    COMPLETED = "completed"
    NEVER_PROCESSED = "never_processed"
    """Archived without having been completed: no mapping wanted it, or a person archived it."""


class LogList(StrEnum):
    """The lists that messages are read from. Each message is in exactly one."""

    INCOMING = "incoming"
    PENDING = "pending"
    FAILING = "failing"
    SCHEDULED = "scheduled"
    PARKED = "parked"
    ARCHIVED_ACCEPTED = "archived-accepted"
    ARCHIVED_INCOMING = "archived-incoming"

    @classmethod
    def of(cls, location: Location) -> tuple[LogList, ...]:
        """The lists that make up a queue of the hub."""
        if location is Location.INCOMING:
            return (cls.INCOMING,)
        if location is Location.ACCEPTED:
            return (cls.PENDING, cls.FAILING, cls.SCHEDULED, cls.PARKED)
        return (cls.ARCHIVED_ACCEPTED, cls.ARCHIVED_INCOMING)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedMessage:
    """One message as the hub lists it.

    Attributes:
        message_id: Decimal id.
        mapping_id: The mapping an accepted copy is for, None for incoming messages.
        parent_id: Decimal id of the message that led to it.
        state: Its state, judged by its delivery alone.
        attempts: Consecutive failed attempts so far.
        attempt_at: Epoch milliseconds of the last request's end.
        next_at: Epoch milliseconds of the next request.
        completed_at: Epoch milliseconds when it was settled.
        last_error: Why the last attempt failed.
        consumer: Name of the mapping an accepted copy was made for.
        reason: Why it was archived without having been processed.
        children: Decimal ids of the messages it led to.
        version: Version of the delivery it was derived from; a higher one replaces a lower one.
    """

    project: str = field(metadata=field_metadata(stored=APART))
    message_id: str = field(metadata=field_metadata(stored=APART))
    type: str
    mapping_id: str | None
    parent_id: str | None
    location: Location
    state: HubState
    attempts: int = 0
    created_at: int
    attempt_at: int | None = None
    next_at: int | None = None
    completed_at: int | None = None
    last_error: str | None = None
    consumer: str | None = None
    reason: str | None = None
    children: tuple[str, ...] = field(default=(), metadata=field_metadata(stored=APART))
    version: int = 0

    @property
    def source(self) -> Location:
        """Whether it is an incoming message or an accepted copy of one."""
        return Location.INCOMING if self.mapping_id is None else Location.ACCEPTED

    @property
    def shown_state(self) -> HubState:
        """The state to show: an incoming message that no mapping wanted was skipped, not completed."""
        skipped = self.state is HubState.COMPLETED and self.mapping_id is None and not self.children
        return HubState.NEVER_PROCESSED if skipped else self.state

    @property
    def why_not(self) -> str | None:
        """Why it was never processed; None for every other message."""
        return self.reason if self.shown_state is HubState.NEVER_PROCESSED else None

    @property
    def listing(self) -> LogList:
        """The list it is in."""
        if self.location is Location.ARCHIVED:
            return LogList.ARCHIVED_ACCEPTED if self.mapping_id else LogList.ARCHIVED_INCOMING
        return LogList.INCOMING if self.location is Location.INCOMING else LogList(self.state.value)

    @property
    def queue(self) -> str:
        """The internal queue it is on."""
        return INCOMING_QUEUE if self.mapping_id is None else f"hub/{self.mapping_id}"

    @property
    def can_attempt(self) -> bool:
        """Whether an operator may retry it now, or archive it."""
        return self.location is Location.ACCEPTED


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """The answer that one attempt of a delivery got. There is only ever one per attempt number.

    Attributes:
        attempt: Number of the attempt, from 1.
        answer: The answer. Its body may be truncated, and is empty when it is stored at ``body_ref``.
        body_ref: Where a large body is stored.
        polled: The address that was polled, if it was a poll.
        expires_at: Epoch milliseconds after which it may be forgotten; None when it is the result.
    """

    attempt: int
    answer: Answer = field(metadata=field_metadata(stored=APART))
    body_ref: BodyRef | None = None
    polled: str | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """A request to a service, noted before it is sent. Nothing removes the note: the attempt's outcome overtakes it.

    Attributes:
        opened_at: Epoch milliseconds when it was about to be sent.
        ends_at: Epoch milliseconds by which it has ended, whatever happened to whoever sent it.
    """

    opened_at: int
    ends_at: int

    def may_be_open(self, entry: LoggedMessage, now: int) -> bool:
        """Whether the service may still be working on it."""
        answered = entry.attempt_at is not None and entry.attempt_at >= self.opened_at
        return entry.location is Location.ACCEPTED and not answered and now < self.ends_at


def log_entry(message: Message, delivery: Delivery | None, now: int) -> LoggedMessage:
    """The log entry of a message.

    Args:
        message: On one of the hub's internal queues.
        delivery: Its one delivery, None before its first attempt.
    """
    mapping_id = mapping_of_queue(message.queue)
    entry = LoggedMessage(
        project=message.project,
        message_id=message.message_id,
        type=type_of(message),
        mapping_id=mapping_id,
        parent_id=parent_of(message),
        location=Location.ACCEPTED if mapping_id else Location.INCOMING,
        state=HubState.SCHEDULED if mapping_id and message.due_at > now else HubState.PENDING,
        created_at=message.accepted_at,
        next_at=message.due_at,
        consumer=consumer_of(message),
    )
    return entry if delivery is None else _with_delivery(entry, delivery, now)


def _with_delivery(entry: LoggedMessage, delivery: Delivery, now: int) -> LoggedMessage:
    location, state = entry.location, entry.state
    if delivery.settled:
        location = Location.ARCHIVED
        state = HubState.COMPLETED if delivery.state is DeliveryState.DELIVERED else HubState.NEVER_PROCESSED
    elif location is Location.ACCEPTED:
        state = _waiting_state(delivery, now)
    last = delivery.last
    failed = last is not None and last.verdict is Verdict.FAILED
    succeeded = delivery.state is DeliveryState.DELIVERED
    return replace(
        entry,
        location=location,
        state=state,
        attempts=max(0, delivery.tries - succeeded),
        attempt_at=last.finished_at if last else None,
        next_at=delivery.due_at,
        completed_at=delivery.settled_at,
        last_error=delivery.status(last.subscriber_id).message if failed and last else None,
        reason=_reason(entry, delivery),
        version=delivery.version,
    )


def _reason(entry: LoggedMessage, delivery: Delivery) -> str | None:
    """Why an archived message was not processed: the router's reason for incoming ones, the reason they were settled
    for accepted ones.
    """
    if entry.mapping_id is None:
        return delivery.status(ROUTER).message or None if delivery.settled else None
    match delivery.state:
        case DeliveryState.CANCELLED:
            return delivery.status(PERSON).message or "Its mapping was deleted"
        case DeliveryState.EXPIRED:
            return "Its retention period has ended"
        case _:
            return None


def _waiting_state(delivery: Delivery, now: int) -> HubState:
    match delivery.state:
        case DeliveryState.RETRYING:
            return HubState.FAILING
        case DeliveryState.HELD:
            return HubState.PARKED
        case DeliveryState.POLLING:
            return HubState.SCHEDULED
        case _:
            return HubState.SCHEDULED if delivery.due_at is not None and delivery.due_at > now else HubState.PENDING
