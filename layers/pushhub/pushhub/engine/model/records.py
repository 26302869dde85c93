"""Delivery records: turns a change of stored state into the event described in ``docs/records.md``. Pure.

A record is derived only from the state before and after one write, so replaying the write produces the same record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.engine.model.delivery import Attempt, Delivery, DeliveryState, close
from pushhub.engine.model.queue import dialect_of
from pushhub.engine.model.record import DeliveryRecord, RecordKind

if TYPE_CHECKING:
    from pushhub.engine.model.message import Message


def record_of_acceptance(message: Message) -> DeliveryRecord:
    """The record of a push message that was just stored: which subscribers it is owed to."""
    return DeliveryRecord(
        record_id=f"{message.queue_uid}/{message.message_id}/-/{RecordKind.ACCEPTED}/1",
        kind=RecordKind.ACCEPTED,
        at=iso_time(message.accepted_at),
        project=message.project,
        queue=message.queue,
        queue_uid=message.queue_uid,
        message_id=message.message_id,
        dialect=dialect_of(message.queue),
        accepted_at=iso_time(message.accepted_at),
        expires_at=iso_time(message.expires_at),
        body_size=message.body_size,
        body_ref=f"{message.body_ref.key}@{message.body_ref.offset}" if message.body_ref else None,
        owed=tuple(f"{message.message_id}.{each}" for each in message.delivery_subscribers),
        due_at=iso_time(message.due_at),
        sequence=message.ordering.sequence if message.ordering else None,
    )


def record_of_delivery(before: Delivery | None, after: Delivery | None, changed_at: int) -> DeliveryRecord | None:
    """The record of a delivery that was written, or removed by its TTL.

    Args:
        before: The previous state; None when this is its first write.
        after: The new state; None when it was removed.
        changed_at: Time of the change, epoch milliseconds; used where the delivery itself has no time for the event.

    Returns:
        None when the change is no news: the version is unchanged, or it was settled long ago and is now removed.
    """
    if after is None:
        if before is None or before.settled:
            return None
        after = close(before, DeliveryState.EXPIRED, changed_at)
    if after.version == (before.version if before else 0):
        return None
    if before is None and after.added:
        return _record_of_addition(after, changed_at)
    if after.last is not None and after.attempts > (before.attempts if before else 0):
        return _record_of_attempt(after, after.last)
    settled_before = before is not None and before.state is after.state
    if not after.settled or settled_before:
        asked = after.asked_at != (before.asked_at if before else None)
        return replace(
            _delivery_event(after, RecordKind.RESCHEDULED, number=after.version, at=changed_at),
            scheduled=after.scheduled,
            manual=asked or None,
        )
    settled = _delivery_event(
        after, RecordKind(after.state.value), number=after.version, at=after.settled_at or changed_at
    )
    return replace(settled, attempt=after.acknowledged_attempt)


def _record_of_addition(delivery: Delivery, added_at: int) -> DeliveryRecord:
    """A delivery added after its message was accepted: an acceptance record of its own, for this one delivery.

    It is due when it was asked for even if nothing else makes it due: otherwise nobody would miss its try's record.
    """
    owed = _delivery_event(delivery, RecordKind.ACCEPTED, number=delivery.version, at=added_at)
    return replace(
        owed,
        owed=(delivery.delivery_id,),
        due_at=owed.due_at or iso_time(delivery.asked_at or added_at),
        manual=True,
        delivery_id=None,
        subscriber_id=None,
        state=None,
        tries=None,
    )


def _record_of_attempt(delivery: Delivery, last: Attempt) -> DeliveryRecord:
    kind = RecordKind.POLL if last.poll else RecordKind.ATTEMPT
    return replace(
        _delivery_event(delivery, kind, number=last.number, at=last.finished_at),
        subscriber_id=last.subscriber_id,
        subscriber=last.subscriber or None,
        scheduled=delivery.scheduled,
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
        manual=last.manual or None,
        order_key=delivery.order_key,
        sequence=delivery.sequence,
        trace_id=last.span.trace_id if last.span else None,
        parent_span_id=last.span.parent_id if last.span else None,
        span_id=last.span.span_id if last.span else None,
        signed_by=last.proof.schemes or None,
        token_client=last.proof.client or None,
        certificate=last.proof.certificate or None,
    )


def _delivery_event(delivery: Delivery, kind: RecordKind, *, number: int, at: int) -> DeliveryRecord:
    """A record with the fields common to all events of a push delivery."""
    return DeliveryRecord(
        record_id=f"{delivery.queue_uid}/{delivery.message_id}/{delivery.subscriber_id}/{kind}/{number}",
        kind=kind,
        at=iso_time(at),
        project=delivery.project,
        queue=delivery.queue,
        queue_uid=delivery.queue_uid,
        message_id=delivery.message_id,
        dialect=delivery.last.dialect if delivery.last else dialect_of(delivery.queue),
        accepted_at=iso_time(delivery.accepted_at),
        expires_at=iso_time(delivery.expires_at),
        delivery_id=delivery.delivery_id,
        subscriber_id=delivery.subscriber_id,
        state=delivery.state.value,
        reason=delivery.reason or None,
        due_at=None if delivery.due_at is None else iso_time(delivery.due_at),
        version=delivery.version,
        tries=delivery.tries,
    )
