"""Delivery records: what a change of stored state says happened, as ``docs/records.md`` describes it. Pure.

A record is made from the state before and after one write and from nothing else, so replaying the write makes the same record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from pushhub.base.times import iso_time
from pushhub.engine.model.delivery import Attempt, Delivery, DeliveryState, close
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import Dialect
from pushhub.engine.model.record import DeliveryRecord, RecordKind
from pushhub.hub.model.message import SERVICE_QUEUES

LINE = "line"
"""Stands for the subscriber in the delivery id of a pull queue's message."""


class LineItem(Protocol):
    """A message in the line of a pull queue, as its store keeps it."""

    @property
    def message(self) -> Message:
        """The message."""
        ...

    @property
    def reserved_count(self) -> int:
        """Times it was reserved or touched, whether anybody was told or not."""
        ...

    @property
    def reservation_id(self) -> str | None:
        """Of the reservation that holds it, None when it is free."""
        ...

    @property
    def reserved_until(self) -> int:
        """End of that reservation, epoch milliseconds."""
        ...

    @property
    def leaving(self) -> str | None:
        """What is about to become of it, when whoever removes it has noted that first (``exhausted``)."""
        ...


def record_of_acceptance(message: Message) -> DeliveryRecord:
    """The record of a push queue's message that was just stored: what is owed to whom."""
    return DeliveryRecord(
        record_id=f"{message.queue_uid}/{message.message_id}/-/{RecordKind.ACCEPTED}/1",
        kind=RecordKind.ACCEPTED,
        at=iso_time(message.accepted_at),
        project=message.project,
        queue=message.queue,
        queue_uid=message.queue_uid,
        message_id=message.message_id,
        dialect=_dialect_of(message.queue),
        accepted_at=iso_time(message.accepted_at),
        expires_at=iso_time(message.expires_at),
        body_size=message.body_size,
        owed=tuple(f"{message.message_id}.{each}" for each in message.delivery_subscribers),
        due_at=iso_time(message.due_at),
    )


def record_of_delivery(before: Delivery | None, after: Delivery | None, changed_at: int) -> DeliveryRecord | None:
    """The record of a delivery that was written, or removed by its time to live.

    Args:
        before: As stored before, None when this is its first write.
        after: As stored now, None when it was removed.
        changed_at: When that was, epoch milliseconds; used where the delivery itself holds no time for the event.

    Returns:
        None when the change says nothing new: it left the due index (its version stays), or was settled long ago and is removed.
    """
    if after is None:
        if before is None or before.settled:
            return None
        after = close(before, DeliveryState.EXPIRED, changed_at)
    if after.version == (before.version if before else 0):
        return None
    if after.last is not None and after.attempts > (before.attempts if before else 0):
        return _record_of_attempt(after, after.last)
    if not after.settled:
        return replace(
            _delivery_event(after, RecordKind.RESCHEDULED, number=after.version, at=changed_at), parked=after.parked
        )
    settled = _delivery_event(
        after, RecordKind(after.state.value), number=after.version, at=after.settled_at or changed_at
    )
    return replace(settled, attempt=after.acknowledged_attempt)


def record_of_line(before: LineItem | None, after: LineItem | None, changed_at: int) -> DeliveryRecord | None:
    """The record of a pull queue's message that was put, reserved, released or removed.

    A removed message was delivered when a consumer held it, exhausted when it was on its way to a dead-letter queue, expired when its time was
    over, and cancelled otherwise: it was free, so somebody deleted it by its id.

    Args:
        before: As stored before, None when it was just put.
        after: As stored now, None when it was removed.
        changed_at: When that was, epoch milliseconds.

    Returns:
        None when the write changed nothing of this.
    """
    if after is None:
        if before is None:
            return None
        kind = _end_of_line(before, changed_at)
        return replace(_line_event(before, kind, changed_at), state=kind.value)
    if before is None:
        return replace(
            record_of_acceptance(after.message),
            dialect="pull",
            owed=(f"{after.message.message_id}.{LINE}",),
            reservations=after.reserved_count,
        )
    if after.reserved_count > before.reserved_count:
        reserved = _line_event(after, RecordKind.RESERVED, changed_at)
        return replace(reserved, state=DeliveryState.RESERVED.value, due_at=iso_time(after.reserved_until))
    if before.reservation_id and not after.reservation_id:
        return replace(_line_event(after, RecordKind.RELEASED, changed_at), state=DeliveryState.PENDING.value)
    return None


def _end_of_line(last: LineItem, removed_at: int) -> RecordKind:
    """How a message left its line, from how it last stood there."""
    if last.leaving:
        return RecordKind(last.leaving)
    if removed_at >= last.message.expires_at:
        return RecordKind.EXPIRED
    held = last.reservation_id is not None and last.reserved_until > removed_at
    return RecordKind.DELIVERED if held else RecordKind.CANCELLED


def _record_of_attempt(delivery: Delivery, last: Attempt) -> DeliveryRecord:
    kind = RecordKind.POLL if last.poll else RecordKind.ATTEMPT
    return replace(
        _delivery_event(delivery, kind, number=last.number, at=last.finished_at),
        subscriber_id=last.subscriber_id,
        subscriber=last.subscriber or None,
        parked=delivery.parked,
        attempt=last.number,
        tries_max=last.tries_max,
        verdict=last.verdict.value,
        status_code=last.status_code,
        error_class=last.error_class,
        started_at=iso_time(last.started_at),
        finished_at=iso_time(last.finished_at),
        duration_ms=last.finished_at - last.started_at,
        bytes_out=last.bytes_out,
        bytes_in=last.bytes_in,
        wait_before_ms=last.wait_before_ms,
        wait_after_ms=last.wait_after_ms,
    )


def _delivery_event(delivery: Delivery, kind: RecordKind, *, number: int, at: int) -> DeliveryRecord:
    """A record with the fields that every event of a push queue's delivery has."""
    return DeliveryRecord(
        record_id=f"{delivery.queue_uid}/{delivery.message_id}/{delivery.subscriber_id}/{kind}/{number}",
        kind=kind,
        at=iso_time(at),
        project=delivery.project,
        queue=delivery.queue,
        queue_uid=delivery.queue_uid,
        message_id=delivery.message_id,
        dialect=delivery.last.dialect if delivery.last else _dialect_of(delivery.queue),
        accepted_at=iso_time(delivery.accepted_at),
        expires_at=iso_time(delivery.expires_at),
        delivery_id=delivery.delivery_id,
        subscriber_id=delivery.subscriber_id,
        state=delivery.state.value,
        due_at=None if delivery.due_at is None else iso_time(delivery.due_at),
        version=delivery.version,
        tries=delivery.tries,
    )


def _dialect_of(queue: str) -> str:
    """What subscribers of a queue are sent, before any of them was."""
    return (Dialect.HUB if queue.startswith(SERVICE_QUEUES) else Dialect.RAW).value


def _line_event(item: LineItem, kind: RecordKind, at: int) -> DeliveryRecord:
    """A record with the fields that every event of a message in a line has."""
    message = item.message
    return DeliveryRecord(
        record_id=f"{message.queue_uid}/{message.message_id}/{LINE}/{kind}/{item.reserved_count}",
        kind=kind,
        at=iso_time(at),
        project=message.project,
        queue=message.queue,
        queue_uid=message.queue_uid,
        message_id=message.message_id,
        dialect="pull",
        accepted_at=iso_time(message.accepted_at),
        expires_at=iso_time(message.expires_at),
        delivery_id=f"{message.message_id}.{LINE}",
        subscriber_id=LINE,
        reservations=item.reserved_count,
    )
