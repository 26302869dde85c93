"""Delivery records of notifications: what a change of a topic or a backlog means for each (notification, subscriber).

One delivery is one notification owed to one subscriber. It is *reserved* each time it is sent to a consumer, and ends
as *acknowledged*, *expired* or *cancelled* (the subscriber was removed). Attempts have no version, as nothing counts
how often a notification was sent; the end has version 1. Non-persistent topics guarantee no delivery, so only the
acceptance of their notifications is recorded.

A topic's order is guaranteed per connection, and for shared subscribers per connection and source. So attempts carry
the connection (and the source's bucket) as ``order_key``, and the position in the topic as ``sequence``. The next
connection starts again with what was not acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time
from pushhub.base.verdict import Verdict
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.record import DeliveryRecord, RecordKind
from pushhub.notifications.model.topic import Commit, Notification, position_at, sequence_of

if TYPE_CHECKING:
    from pushhub.notifications.model.backlog import Backlog, Consumer, Entry

DIALECT = "notifications"

_SENT = 200
"""Status of an attempt: API Gateway took the frame for the consumer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitChange:
    """A commit was written, or removed by age.

    Attributes:
        changed_at: When, epoch milliseconds.
    """

    commit: Commit
    removed: bool
    changed_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogChange:
    """A write to a backlog.

    Attributes:
        before: As stored before, None when it was made.
        after: As stored now, None when it was removed.
        changed_at: When, epoch milliseconds.
    """

    before: Backlog | None
    after: Backlog | None
    changed_at: int


def records_of_commit(commit: Commit) -> Iterator[DeliveryRecord]:
    """The acceptance of each notification of a new commit.

    Notifications may wait for their consumer until they expire, so they are due then.
    """
    for position, notification in commit.positions:
        owed = () if commit.topic.non_persistent else commit.owed_to
        yield _record(
            commit,
            notification,
            RecordKind.ACCEPTED,
            at=commit.accepted_at,
            number=1,
            body_size=len(notification.body.encode()),
            owed=tuple(f"{notification.message_id}.{uid}" for uid in owed),
            due_at=iso_time(commit.expires_at),
            sequence=position,
        )


def records_of_expiry(commit: Commit, backlogs: Sequence[Backlog], changed_at: int) -> Iterator[DeliveryRecord]:
    """The end of each delivery that was still open when the table removed its commit by age.

    Args:
        commit: As it was.
        backlogs: The current backlogs of its topic: for positions they have passed, the end is already recorded.
        changed_at: When it was removed, epoch milliseconds.
    """
    if commit.topic.non_persistent:
        return
    for backlog in backlogs:
        if backlog.uid not in commit.owed_to or backlog.next is None:
            continue
        open_positions = _outstanding(backlog)
        for position, notification in commit.positions:
            if position >= backlog.next or position in open_positions:
                yield _end(commit, notification, backlog, DeliveryState.EXPIRED, changed_at)


def needed_of_change(change: BacklogChange) -> tuple[set[int], tuple[int, int] | None]:
    """Which commits :func:`records_of_backlog` needs for a change: single ones by sequence, and a range (first,
    last) of them.

    The range of a removed backlog is open-ended: it covers everything owed to it.
    """
    before, after = change.before, change.after
    if before is None or before.topic.non_persistent:
        return set(), None
    outstanding = _outstanding(before)
    begun = _begun(before)
    if after is None:
        passed = None if begun is None else (sequence_of(begun), sequence_of(1 << 62))
        return {sequence_of(each) for each in outstanding}, passed
    changed = {entry.position for entry, _ in _newly_sent(before, after)} | (outstanding - _outstanding(after))
    passed = None
    if begun is not None and after.next is not None and after.next > begun:
        passed = sequence_of(begun), sequence_of(after.next - 1)
    return {sequence_of(each) for each in changed}, passed


def records_of_backlog(
    change: BacklogChange, commits: Mapping[int, Commit], passed: Iterator[Commit]
) -> Iterator[DeliveryRecord]:
    """What a change of a backlog did to deliveries.

    Args:
        commits: The single commits it needs, by sequence; what is gone is missing.
        passed: The range of commits it needs, in order.
    """
    before, after = change.before, change.after
    if before is None or before.topic.non_persistent:
        return
    if after is None:
        yield from _cancelled(before, change.changed_at, commits, passed)
        return
    lapsed = after.lapsed

    def ended(position: int) -> DeliveryState:
        if before.next is None:
            # It was owed because of a handshake that failed halfway; the client was never connected.
            return DeliveryState.CANCELLED
        expired = any(first <= position <= last for first, last in lapsed)
        return DeliveryState.EXPIRED if expired else DeliveryState.ACKNOWLEDGED

    for entry, consumer in _newly_sent(before, after):
        for commit, notification in _found(commits, entry.position):
            fresh = before.next is None or entry.position >= before.next
            yield _attempt(commit, notification, after, consumer, entry, number=1 if fresh else None)
    outstanding = _outstanding(after)
    for position in sorted(_outstanding(before) - outstanding):
        for commit, notification in _found(commits, position):
            yield _end(commit, notification, after, ended(position), change.changed_at)
    first, end = before.next or 0, after.next or 0
    for commit in passed:
        for position, notification in commit.positions:
            if first <= position < end and position not in outstanding and after.uid in commit.owed_to:
                yield _end(commit, notification, after, ended(position), change.changed_at)


def _cancelled(
    before: Backlog, changed_at: int, commits: Mapping[int, Commit], passed: Iterator[Commit]
) -> Iterator[DeliveryRecord]:
    for position in sorted(_outstanding(before)):
        for commit, notification in _found(commits, position):
            yield _end(commit, notification, before, DeliveryState.CANCELLED, changed_at)
    for commit in passed:
        for position, notification in commit.positions:
            if position >= (before.next or 0) and before.uid in commit.owed_to:
                early = position in before.acknowledged_early
                state = DeliveryState.ACKNOWLEDGED if early else DeliveryState.CANCELLED
                yield _end(commit, notification, before, state, changed_at)


def _begun(backlog: Backlog) -> int | None:
    """The first position that is owed but not in the backlog yet; None if unknown."""
    if backlog.next is None and backlog.made_after is not None:
        return position_at(backlog.made_after + 1)
    return backlog.next


def _outstanding(backlog: Backlog) -> set[int]:
    """Positions below ``next`` that are still open."""
    sent = {entry.position for consumer in backlog.consumers for entry in consumer.unacknowledged}
    return sent | {entry.position for entry in backlog.returned}


def _newly_sent(before: Backlog, after: Backlog) -> Iterator[tuple[Entry, Consumer]]:
    """What was sent in a change, and to which consumer."""
    for consumer in after.consumers:
        was = before.consumer(consumer.connection_id)
        had = {entry.position for entry in was.unacknowledged} if was else set()
        for entry in consumer.unacknowledged:
            if entry.position not in had:
                yield entry, consumer


def _found(commits: Mapping[int, Commit], position: int) -> Iterator[tuple[Commit, Notification]]:
    commit = commits.get(sequence_of(position))
    notification = commit.notification(position) if commit else None
    if commit is not None and notification is not None:
        yield commit, notification


def _attempt(
    commit: Commit,
    notification: Notification,
    backlog: Backlog,
    consumer: Consumer,
    entry: Entry,
    *,
    number: int | None,
) -> DeliveryRecord:
    sent_at = consumer.active_at
    return _record(
        commit,
        notification,
        RecordKind.ATTEMPT,
        backlog,
        at=sent_at,
        number=backlog.version,
        state=DeliveryState.RESERVED.value,
        due_at=iso_time(commit.expires_at),
        attempt=number,
        verdict=Verdict.RESERVED.value,
        status_code=_SENT,
        error_class="",
        finished_at=iso_time(sent_at),
        bytes_out=len(notification.body.encode()),
        wait_before_ms=max(0, sent_at - commit.accepted_at),
        order_key=f"{consumer.connection_id}/{entry.bucket}" if backlog.shared else consumer.connection_id,
        sequence=entry.position,
    )


def _end(commit: Commit, notification: Notification, backlog: Backlog, state: DeliveryState, at: int) -> DeliveryRecord:
    kind = RecordKind(state.value)
    return _record(commit, notification, kind, backlog, at=at, number=1, state=state.value, version=1)


def _record(
    commit: Commit,
    notification: Notification,
    kind: RecordKind,
    backlog: Backlog | None = None,
    *,
    at: int,
    number: int,
    **more: Any,
) -> DeliveryRecord:
    """A record of a notification, or of its delivery to a backlog, with the fields common to all records.

    The number distinguishes records of the same kind.
    """
    about: dict[str, Any] = {}
    if backlog is not None:
        about = {
            "delivery_id": f"{notification.message_id}.{backlog.uid}",
            "subscriber_id": backlog.uid,
            "subscriber": backlog.subscriber,
        }
    return DeliveryRecord(
        record_id=f"{commit.topic_uid}/{notification.message_id}/{backlog.uid if backlog else '-'}/{kind}/{number}",
        kind=kind,
        at=iso_time(at),
        project=commit.topic.project,
        queue=commit.topic.name,
        queue_uid=commit.topic_uid,
        message_id=notification.message_id,
        dialect=DIALECT,
        accepted_at=iso_time(commit.accepted_at),
        expires_at=iso_time(commit.expires_at),
        **about,
        **more,
    )
