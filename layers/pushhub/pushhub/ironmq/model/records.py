"""Delivery records of pull queues: turns a change of a queued message into the event that happened. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.record import DeliveryRecord, RecordKind
from pushhub.engine.model.records import record_of_acceptance

if TYPE_CHECKING:
    from pushhub.engine.model.message import Message

PULL_SUBSCRIBER = "line"
"""Stands for the subscriber in the delivery ids of pull queues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullItem:
    """A message in a pull queue, as stored.

    Attributes:
        reserved_count: Times it was reserved or touched, whether or not a consumer received it.
        reservation_id: Id of the current reservation; None when it is free.
        reserved_until: End of that reservation, epoch milliseconds.
        leaving: Why it is about to be removed, if that was noted first (``exhausted``).
        entry: Distinguishes its stay in the queue from others under the same id; empty if there cannot be another.
        placed_at: When it was last reserved, touched or released, epoch milliseconds.
    """

    message: Message
    reserved_count: int = 0
    reservation_id: str | None = None
    reserved_until: int = 0
    leaving: str | None = None
    entry: str = ""
    placed_at: int | None = None


def record_of_pull(before: PullItem | None, after: PullItem | None, changed_at: int) -> DeliveryRecord | None:
    """The record of a pull queue's message that was put, reserved, released or removed.

    A removed message counts as delivered if a consumer held it, exhausted if it was moving to a dead-letter queue,
    expired if its lifetime was over, and otherwise cancelled: it was free, so it was deleted by its id.

    Args:
        before: The previous state; None when it was just put.
        after: The new state; None when it was removed.
        changed_at: Time of the change, epoch milliseconds; used where the item itself has no time for the event.

    Returns:
        None when the write changed nothing relevant.
    """
    if after is None:
        if before is None:
            return None
        kind = _end_in_queue(before, changed_at)
        return replace(_pull_event(before, kind, changed_at), state=kind.value)
    if before is None:
        return replace(
            record_of_acceptance(after.message),
            dialect="pull",
            record_id=f"{after.message.queue_uid}/{_stay(after)}/-/{RecordKind.ACCEPTED}/1",
            owed=(f"{_stay(after)}.{PULL_SUBSCRIBER}",),
            reservations=after.reserved_count,
        )
    moved_at = after.placed_at or changed_at
    if after.reserved_count > before.reserved_count:
        reserved = _pull_event(after, RecordKind.RESERVED, moved_at)
        return replace(reserved, state=DeliveryState.RESERVED.value, due_at=iso_time(after.reserved_until))
    if before.reservation_id and not after.reservation_id:
        return replace(_pull_event(after, RecordKind.RELEASED, moved_at), state=DeliveryState.PENDING.value)
    return None


def _end_in_queue(last: PullItem, removed_at: int) -> RecordKind:
    """How a message left its queue, judging by its last state there."""
    if last.leaving:
        return RecordKind(last.leaving)
    if removed_at >= last.message.expires_at:
        return RecordKind.EXPIRED
    held = last.reservation_id is not None and last.reserved_until > removed_at
    return RecordKind.DELIVERED if held else RecordKind.CANCELLED


def _stay(item: PullItem) -> str:
    """The message id, and what distinguishes this stay in the queue. What the hub itself puts there, copies and dead
    letters, may come a second time under the same id after it was consumed.
    """
    return f"{item.message.message_id}~{item.entry}" if item.entry else item.message.message_id


def _pull_event(item: PullItem, kind: RecordKind, at: int) -> DeliveryRecord:
    """A record with the fields common to all events of a message in a pull queue."""
    message = item.message
    return DeliveryRecord(
        record_id=f"{message.queue_uid}/{_stay(item)}/{PULL_SUBSCRIBER}/{kind}/{item.reserved_count}",
        kind=kind,
        at=iso_time(at),
        project=message.project,
        queue=message.queue,
        queue_uid=message.queue_uid,
        message_id=message.message_id,
        dialect="pull",
        accepted_at=iso_time(message.accepted_at),
        expires_at=iso_time(message.expires_at),
        delivery_id=f"{_stay(item)}.{PULL_SUBSCRIBER}",
        subscriber_id=PULL_SUBSCRIBER,
        reservations=item.reserved_count,
    )
