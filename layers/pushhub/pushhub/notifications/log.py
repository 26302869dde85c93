"""Appends to a topic, in one order for all publishers, and refuses when its backlog is full.

A publisher reserves the next place in the log (one write to the topic's head, which also tells which subscribers the
commit is owed to), then writes its commit into that place. A reader that finds an empty place followed by a filled one
waits a moment, then voids the place by filling it with an empty commit; the slow publisher finds that and reserves
another place. So no reader ever skips a commit that appears later.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.component import Component
from pushhub.notifications.model.request import CommitPart
from pushhub.notifications.model.topic import Commit, Head, Line, Notification, Reservation, Topic, chunked, sequence_of
from pushhub.notifications.ports import AlreadyAppended, BacklogStore, TopicFull, TopicStore
from pushhub.notifications.wire.errors import BacklogFull

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.notifications.waker import Waker

APPEND_WITHIN_MS = 20_000
"""A place not filled within this time after it was reserved is left to the readers, milliseconds."""

_ROUNDS = 5
_SCAN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much of a topic is kept for subscribers that have not acknowledged it.

    Attributes:
        age_ms: Milliseconds until a notification expires (Notifications 2.0: 36 hours).
        volatile_age_ms: The same for non-persistent topics.
        size: Bytes of a topic's backlog (Notifications 2.0: 25 MiB).
    """

    age_ms: int = 129_600_000
    volatile_age_ms: int = 600_000
    size: int = 26_214_400

    def of(self, topic: Topic) -> int:
        """Milliseconds until notifications of a topic expire."""
        return self.volatile_age_ms if topic.non_persistent else self.age_ms


class TopicLog(Component):
    """Appends notifications to topics and wakes their subscribers."""

    topics: TopicStore  # Heads and logs.
    backlogs: BacklogStore  # Tell who is connected, and which notification is the oldest unacknowledged one.
    waker: Waker
    clock: Clock
    retention: Retention  # Limits of a backlog.

    def append(self, topic: Topic, lines: Sequence[Line], *, key: str = "", taken: int = 0) -> None:
        """Append notifications in order, all or none.

        Notifications for a topic without subscribers are dropped.

        Args:
            topic: The topic to append to.
            lines: The notifications with their numbers in the request, in ascending order.
            key: Key of the noted request they belong to; empty if it cannot be repeated.
            taken: Lines with lower numbers were appended by an earlier attempt of the same request.

        Raises:
            BacklogFull: The subscribers have not acknowledged enough; nothing was appended.
        """
        if topic.non_persistent and not any(each.consumers for each in self.backlogs.backlogs(topic)):
            return
        rest = [each for each in lines if each.number >= taken]
        # The earlier attempt may have failed before waking anyone.
        admitted = wake = len(rest) < len(lines)
        owed = frozenset[str]()
        for chunk in chunked(rest):
            owed |= self._commit(topic, chunk, key=key, admitted=admitted)
            admitted = True
        if wake or owed:
            backlogs = self.backlogs.backlogs(topic)
            self.waker.these(backlogs)
            # A backlog is there before anything is owed to it. These were removed while a consumer that has died since
            # was about to join them.
            for each in owed.difference(each.uid for each in backlogs):
                self.topics.dismiss(topic, each)

    def _commit(self, topic: Topic, lines: Sequence[Line], *, key: str, admitted: bool) -> frozenset[str]:
        """Write one commit; returns the ids of the subscribers it is owed to."""
        notifications = tuple(each.notification for each in lines)
        part = CommitPart(key=key, up_to=lines[-1].number + 1) if key else None

        def once() -> frozenset[str]:
            place = self._place(topic, sum(each.size for each in notifications), admitted=admitted)
            if place is None:
                return frozenset()
            commit = self._filled(topic, place, notifications)
            # By now readers may have skipped the place without marking it, as they assume that its writer is gone.
            if self.clock.now() - place.reserved_at > APPEND_WITHIN_MS:
                raise Conflict("the place was reserved too long ago")
            try:
                self.topics.append(commit, part)
            except AlreadyAppended:
                # A repetition of the request was faster. Readers should not have to wait for the place that stays
                # unused.
                with suppress(Conflict):
                    self.topics.append(replace(commit, notifications=(), owed_to=()))
            return place.subscribers

        return until_saved(once, doing="appending to a topic")

    def _filled(self, topic: Topic, place: Reservation, notifications: tuple[Notification, ...]) -> Commit:
        return Commit(
            topic=topic,
            topic_uid=place.topic_uid,
            sequence=place.sequence,
            notifications=notifications,
            accepted_at=place.reserved_at,
            expires_at=place.reserved_at + self.retention.of(topic),
            previous_at=place.previous_at,
            size_before=place.size_before,
            owed_to=tuple(sorted(place.subscribers)),
        )

    def _place(self, topic: Topic, size: int, *, admitted: bool) -> Reservation | None:
        """Reserve the next place once there is room."""
        # This is not the usual retry after a conflict (:mod:`pushhub.base.conflicts`): a reservation never conflicts,
        # but may hit a ceiling, which is then raised for all. More rounds are needed only if others use up the room
        # gained.
        for _ in range(_ROUNDS):
            try:
                return self.topics.reserve(topic, size, self.clock.now(), admitted=admitted)
            except TopicFull as full:
                ceiling = self._oldest_needed(topic, full.head) + self.retention.size
                if ceiling <= full.head.ceiling:
                    raise BacklogFull([topic], self.retention.size) from full
                self.topics.raise_ceiling(topic, ceiling)
        raise Unavailable("reserving a place in a topic")

    def _oldest_needed(self, topic: Topic, head: Head) -> int:
        """Bytes committed to the topic before the oldest notification that any subscriber still needs."""
        oldest = [each.oldest for each in self.backlogs.backlogs(topic) if each.oldest is not None]
        commit = self.oldest_needed(topic, min(oldest), head) if oldest else None
        return commit.size_before if commit else head.size

    def oldest_needed(self, topic: Topic, oldest: int | None, head: Head) -> Commit | None:
        """The commit with the oldest notification that a subscriber still needs; None if it needs none.

        Args:
            oldest: The oldest position that it has not dealt with; None for one that no consumer has joined.
            head: Of the topic, which may have grown since.
        """
        if oldest is None:
            return None
        now = self.clock.now()
        first = self._first_live(topic, sequence_of(oldest), head.sequence, now)
        while commits := self.topics.commits(topic, first, _SCAN):
            for commit in commits:
                if commit.expires_at > now and any(position >= oldest for position, _ in commit.positions):
                    return commit
            first = commits[-1].sequence + 1
        return None

    def _first_live(self, topic: Topic, first: int, last: int, now: int) -> int:
        """Where the commits begin that have not expired; expired ones stay for days, and are more than can be read.

        They expire in their order, but for the differences between the clocks of publishers.
        """
        place, end = first, last + 1
        while first < end:
            found = self.topics.commits(topic, place, 1)
            if found and found[0].expires_at <= now:
                first = found[0].sequence + 1
            else:
                end = place
            place = (first + end) // 2
        return first
